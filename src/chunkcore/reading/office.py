"""Archives: Word by MarkItDown, with what it leaves out, and EPUB; notebooks."""

from __future__ import annotations

import json
import re
import zlib
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from io import BytesIO
from posixpath import dirname, join, normpath
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote
from zipfile import BadZipFile, ZipFile

from chunkcore.boundaries import one_line, words
from chunkcore.files import UnreadError
from chunkcore.lazy import needed
from chunkcore.reading.base import Reader, Reading, left_out
from chunkcore.reading.encodings import decode_text
from chunkcore.reading.visible import (
    HASHES,
    RULE,
    closed,
    fenced,
    in_cell,
    numeral,
    raised,
    visible_text,
)
from chunkcore.text import Document, Mark

if TYPE_CHECKING:
    from lxml.etree import _Element

Members = dict[str, bytes]  # of an archive, by their names
# The header of a table without <th>.
_NO_HEADER = re.compile(r"(?m)^\|(?:  \|)+\n(\|(?: --- \|)+)\n(\|.*)$")
_SUP = "\x02"  # around raised text, until it is made `raised`
_RAISED = re.compile(f"{_SUP}([^{_SUP}]*){_SUP}")
# From a note's number to the note, and back.
_NOTE_LINK = re.compile(
    r"\[\[(\d+)\]\]\(#(?:foot|end)note-\d+\)| ?\[↑\]\(#(?:foot|end)note-ref-\d+\)"
)
_SHOWN_PICTURE = re.compile(r"!\[([^\]]*)\]\(data:[^)]*\)")
_LOCKS = "META-INF/encryption.xml"
_TITLE = "p[style-name='Title'] => h1:fresh"


class Packed(Reader):
    """What these formats share: the archive, which is first unpacked within limits, and a file that tells its kind."""

    magic = b"PK\x03\x04"
    telling = b""

    def recognises(self, head: bytes) -> bool:
        return super().recognises(head) and self.telling in head

    def read(self, data: bytes, name: str) -> Reading:
        members = unpacked(data, name)
        if re.search(rb'URI="[^"]*html?"', members.get(_LOCKS, b"")):  # fonts alone may be locked
            raise UnreadError(
                name, "is protected against copying (DRM), so its text cannot be read"
            )
        notes: list[str] = []
        marks: list[Mark] = []
        text = self.markdown(members, notes, marks)
        notes += left_out(texts_apart(members))
        return Reading(Document(name, text, {"format": "markdown"}, tuple(marks)), tuple(notes))

    @abstractmethod
    def markdown(self, members: Members, notes: list[str], marks: list[Mark]) -> str:
        """The file as Markdown; `notes` and `marks` are added."""


RATIO = 50  # text is packed to a fifth or so; bombs to a thousandth
ALWAYS = 64 * 1024**2  # bytes that are unpacked at any ratio
MEMBERS = 10_000
_MEDIA = ("word/media/", "ppt/media/", "xl/media/")  # may be most of a file


def unpacked(data: bytes, name: str) -> Members:
    """The members of an archive, unpacked once within limits, and media emptied: a header may misstate a size.

    Raises `UnreadError`: no archive, or a damaged one; over 10,000 members; or they unpack to over 50 times the file,
    and over 64 MB.
    """
    room = max(ALWAYS, RATIO * len(data))
    members = {}
    try:
        archive = ZipFile(BytesIO(data))
        entries = archive.infolist()
        if len(entries) > MEMBERS:
            raise UnreadError(
                name, f"has {len(entries):,} files, over {MEMBERS:,}: nothing is unpacked"
            )
        for entry in entries:
            with archive.open(entry) as file:
                content = file.read(room + 1)
            room -= len(content)
            if room < 0:
                raise UnreadError(
                    name, f"unpacks to over {RATIO} times its size: it is not unpacked"
                )
            if entry.filename.startswith(_MEDIA):
                content = b""
            members[entry.filename] = content
    except (BadZipFile, zlib.error, RuntimeError, EOFError, OSError) as error:
        raise UnreadError(name, f"is damaged or encrypted, or no ZIP file: {error}") from error
    return members


def packed(members: Members) -> bytes:
    """An archive of the members."""
    target = BytesIO()
    with ZipFile(target, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return target.getvalue()


# Texts beside that of an Office file: the members that hold them, and the elements around each.
_APART = {
    "headers and footers of its pages": (r"word/(?:header|footer)\d*", "p"),
    "comments": (
        r"(?:word|xl)/comments\d*|(?:xl|ppt)/(?:threadedC|c)omments/.*",
        "comment threadedComment cm",
    ),
    "titles of charts": (r"(?:word|xl)/charts/chart\d*|(?:word|xl|ppt)/charts/chartEx\d*", "title"),
    "text boxes": (r"xl/drawings/drawing\d*", "txBody"),
    "diagrams": (r"(?:word|xl|ppt)/diagrams/data\d*", "pt"),
}
_THREADED = "[Threaded comment]"  # begins the copy of a comment that is for old programs
_BLANKS = words("p br cr tab ptab")


def texts_apart(members: Members) -> dict[str, list[str]]:
    """Texts of an Office file beside its own, by their kind."""
    texts: dict[str, list[str]] = {}
    for kind, (pattern, names) in _APART.items():
        tags = [f"{{*}}{name}" for name in names.split()]
        for member in sorted(members):
            if re.fullmatch(rf"(?:{pattern})\.xml", member):
                for text in map(text_of, xml_of(members[member]).iter(*tags)):
                    if text and not text.startswith(_THREADED):
                        texts.setdefault(kind, []).append(text)
    return texts


def xml_of(content: bytes) -> _Element:
    """A member of an archive, read without entities and without the network."""
    etree: Any = needed("lxml.etree", "office", "read DOCX")
    parser = etree.XMLParser(resolve_entities=False, no_network=True)
    root: _Element = etree.fromstring(content, parser)
    return root


def text_of(element: _Element) -> str:
    """The words of an element, with a space at each line's end and tab."""
    pieces = []
    for node in element.iter("{*}*"):
        name = str(node.tag).rpartition("}")[2]
        if name in _BLANKS:
            pieces.append(" ")
        elif name in ("t", "text"):
            pieces.append(node.text or "")
    return one_line("".join(pieces))


class Epub(Packed):
    """An e-book as Markdown: title and authors, then what a reader sees of its chapters, in reading order.

    The extra ``office``.
    """

    endings = ("epub",)
    telling = b"application/epub+zip"

    def markdown(self, members: Members, notes: list[str], marks: list[Mark]) -> str:
        place = xml_of(members["META-INF/container.xml"]).find(".//{*}rootfile").get("full-path")
        package = xml_of(members[place])
        authors = ", ".join(filter(None, (author.text for author in package.iter("{*}creator"))))
        head = {"Title": package.findtext(".//{*}title"), "Authors": authors}
        blocks = ["\n".join(f"**{key}:** {value}" for key, value in head.items() if value)]
        links = {item.get("id"): item.get("href", "") for item in package.iter("{*}item")}
        order = dict.fromkeys(part.get("idref") for part in package.iter("{*}itemref"))
        for part in order:  # each once, as the format says
            link = links.get(part, "")
            paths = [normpath(join(dirname(place), form)) for form in (unquote(link), link)]
            page = next((members[path] for path in paths if path in members), None)
            if page is None:
                notes.append(f"lacks its part {link}")
            else:
                blocks.append(visible_text(decode_text(page, link)[0]))
        return "\n\n".join(filter(None, blocks))


_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
MATH = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
COMPATIBLE = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
_SPACES = {"w": _W[1:-1], "mc": COMPATIBLE[1:-1]}
_DOCUMENT = "word/document"  # "word/document2.xml" in some
_PARTS = re.compile(rf"(?:{_DOCUMENT}|word/footnotes|word/endnotes)\d*\.xml")
_AROUND_TEXT = words("fldSimple bdo dir ruby rubyBase")
# Elements that mammoth leaves out with their text, or, of a cell that goes on below, with its column.
_READ_AS = {
    f"{_W}cr": f"{_W}br",
    f"{_W}ptab": f"{_W}tab",
    f"{_W}moveFrom": f"{_W}del",
    f"{_W}vMerge": f"{_W}noWrap",
    **dict.fromkeys((_W + name for name in _AROUND_TEXT), f"{_W}smartTag"),
}
_NUMBER = "\ue000"  # stands around the number of a list's item while the file is converted
_ITEM = re.compile(f"(\\d+\\. )?{_NUMBER}([^{_NUMBER}]*){_NUMBER}")


class Docx(Packed):
    """A Word document as Markdown: headings, lists, tables, notes, text boxes, equations. The extra ``office``.

    Headers and footers of pages, comments, titles of charts and hidden text are told in notes.
    """

    endings = ("docx", "docm", "dotx")
    telling = b"word/"

    def markdown(self, members: Members, notes: list[str], marks: list[Mark]) -> str:
        etree = needed("lxml.etree", "office", "read DOCX")
        styles = {
            style.get(f"{_W}styleId", ""): style for style in _elements(members, "styles", "style")
        }
        styles.pop("", None)  # else a style without an id would be that of all other text
        hidden = {name for name in styles if _hides(_with_bases(name, styles))}
        has_hidden = has_parts = False
        for name in filter(_PARTS.fullmatch, list(members)):
            root = xml_of(members[name])
            has_hidden |= _drop_hidden(root, hidden)
            _show_fields(root)
            for equation in root.iter(f"{MATH}oMath"):
                mend_equation(equation)
            _unfold_tables(root)
            _escape(root)
            for node in root.iter(*_READ_AS):
                node.tag = _READ_AS[str(node.tag)]
            for line_end in root.iter(f"{_W}br"):  # of a page or a column, too
                line_end.attrib.pop(f"{_W}type", None)
            for initial in root.xpath("//w:framePr[@w:dropCap != 'none']", namespaces=_SPACES):
                mark = initial.makeelement(f"{_W}rPr")  # its paragraph goes on in the next one
                mark.append(mark.makeelement(f"{_W}del"))
                initial.addprevious(mark)
            if name.startswith(_DOCUMENT):
                has_parts |= root.find(f".//{_W}altChunk") is not None
                _move_boxes(root)
                _write_numbers(root, _Lists(members, styles))
                _name_headings(root, styles)
            members[name] = etree.tostring(root)
        if has_hidden:
            notes.append("texts marked as hidden are left out")
        if has_parts:
            notes.append("documents inside it (altChunk) are left out")
        return _ITEM.sub(_item, _converted(packed(members)))


def _escape(root: _Element) -> None:
    """Escape what Markdown would take for edges of cells and for headings; MarkItDown leaves it as it is."""
    for text in root.xpath("//w:tc//w:t", namespaces=_SPACES):
        text.text = in_cell(text.text or "")
    for text in root.xpath("//w:p[not(ancestor::w:tc)]/descendant::w:t[1]", namespaces=_SPACES):
        text.text = HASHES.sub(r"\\\g<0>", text.text or "")


def _converted(data: bytes) -> str:
    """A Word document as Markdown, by MarkItDown."""
    needed("markitdown", "office", "read DOCX")
    from markitdown import StreamInfo, converters

    converter: Any = converters.DocxConverter
    converted = converter().convert(
        BytesIO(data),
        StreamInfo(),
        style_map=_TITLE,
        escape_underscores=False,
        escape_asterisks=False,
        strong_em_symbol="",  # marks of bold and italics would stand inside words
        sup_symbol=_SUP,
    )
    text = _NOTE_LINK.sub(r"\1", converted.markdown.replace("\r\n", "\n"))
    text = _SHOWN_PICTURE.sub(r"\1", _RAISED.sub(lambda match: raised(match[1]), text))
    text = re.sub(r"\n{3,}", "\n\n", RULE.sub("\n\n", text)).strip()
    return _NO_HEADER.sub(r"\2\n\1", text)


def _value(element: _Element, path: str) -> str:
    child = element.find(path, _SPACES)
    return "" if child is None else child.get(f"{_W}val", "")


def _elements(members: Members, part: str, name: str) -> Iterator[_Element]:
    """The elements of a name in a part of the file, which need not be there."""
    for member, content in members.items():
        if re.fullmatch(rf"word/{part}\d*\.xml", member):
            yield from xml_of(content).iter(f"{_W}{name}")


_DEEPEST = 50  # styles over one another; some are in a circle


def _with_bases(name: str, styles: Mapping[str, _Element]) -> Iterator[_Element]:
    """A style, and those that it is based on, the nearest first."""
    for _ in range(_DEEPEST):
        if name not in styles:
            return
        yield styles[name]
        name = _value(styles[name], "w:basedOn")


def _hides(elements: Iterable[_Element]) -> bool | None:
    """Whether the first element that says something of it says that text is hidden; None where none does."""
    for element in elements:
        vanish = element.find("w:rPr/w:vanish", _SPACES)
        if vanish is not None:
            return vanish.get(f"{_W}val", "1") not in ("0", "false", "off")
    return None


_KEPT = (f"{_W}fldChar", f"{_W}instrText")  # fields begin and end in runs


def _drop_hidden(root: _Element, styles: set[str]) -> bool:
    """Take hidden text out, and paragraphs of which all is hidden; whether there was any."""
    has_hidden = False
    for paragraph in root.xpath("//w:p", namespaces=_SPACES):
        runs = list(paragraph.iter(f"{_W}r"))
        hidden = [run for run in runs if _is_run_hidden(run, paragraph, styles)]
        if not any(map(text_of, hidden)):
            continue
        has_hidden = True
        for run in hidden:
            run[:] = [child for child in run if child.tag in _KEPT]
        if len(hidden) == len(runs) and not any(map(len, hidden)):
            paragraph.getparent().remove(paragraph)
    return has_hidden


def _is_run_hidden(run: _Element, paragraph: _Element, styles: set[str]) -> bool:
    is_hidden = _hides([run])
    if is_hidden is not None:
        return is_hidden
    names = {_value(run, "w:rPr/w:rStyle"), _value(paragraph, "w:pPr/w:pStyle")}
    return not styles.isdisjoint(names)


# Of a list of a form, the entry that is shown.
_CHOSEN = (
    "w:ffData/w:ddList/w:listEntry[count(preceding-sibling::w:listEntry)"
    " = sum(../w:result/@w:val | ../w:default[not(../w:result)]/@w:val)]/@w:val"
)


def _show_fields(root: _Element) -> None:
    """Write what a list of a form shows, and take out what a field inside the code of another one does."""
    in_code: list[bool] = []  # of the fields around, in this paragraph
    for node in list(root.iter(f"{_W}p", f"{_W}fldChar", f"{_W}t")):
        kind = node.get(f"{_W}fldCharType")
        if node.tag == f"{_W}p":
            in_code.clear()
        elif kind == "begin":
            in_code.append(True)
            for entry in node.xpath(_CHOSEN, namespaces=_SPACES):
                text = node.makeelement(f"{_W}t")
                text.text = entry
                node.addprevious(text)
        elif in_code and kind == "end":
            in_code.pop()
        elif in_code and kind == "separate":
            in_code[-1] = False
        elif any(in_code[:-1]):
            node.text = ""


_OTHER_BOXES = ("sPre", "borderBox", "phant")
_WITH_PROPERTIES = words("acc bar d f groupChr")


def mend_equation(equation: _Element) -> str:
    """Make an equation one that markitdown writes as LaTeX, and write it; where that fails, it is its letters alone."""
    from lxml.etree import SubElement
    from markitdown.converter_utils.docx.math.omml import oMath2Latex

    for node in list(equation.iter("{*}*")):
        name = str(node.tag).removeprefix(MATH)
        if name in _OTHER_BOXES:
            node.tag = f"{MATH}box"
        elif name in _WITH_PROPERTIES and node.find(f"{MATH}{name}Pr") is None:
            node.insert(0, node.makeelement(f"{MATH}{name}Pr"))
    write: Any = oMath2Latex
    try:
        return str(write(equation))
    except (AttributeError, KeyError, NotImplementedError, TypeError, ValueError):
        letters = [node.text or "" for node in equation.iter(f"{MATH}t")]
        equation[:] = []
        run = SubElement(equation, f"{MATH}r")
        SubElement(run, f"{MATH}t").text = " ".join(letters)
        return str(write(equation))


_MOST_SKIPPED = 63  # columns, as many as Word has


def _unfold_tables(root: _Element) -> None:
    """Replace tables of a layout, which hold others or have one column, by what they hold; fill up short rows."""
    for skipped in list(root.iter(f"{_W}gridBefore")):
        row, columns = skipped.getparent().getparent(), skipped.get(f"{_W}val", "")
        count = int(columns) if columns.isdecimal() else 0
        for _ in range(min(count, _MOST_SKIPPED)):
            row.insert(0, row.makeelement(f"{_W}tc"))
    for table in root.xpath(
        "//w:tbl[.//w:tbl or not(.//w:tr[count(.//w:tc) > 1])]", namespaces=_SPACES
    ):
        for child in table.xpath(".//w:tc/*[not(self::w:tcPr)]", namespaces=_SPACES):
            if next(child.iterancestors(f"{_W}tbl")) is table:
                table.addprevious(child)
        table.getparent().remove(table)


_LONGEST_HEADING = 120  # characters; a longer paragraph of an outline is a clause


def _name_headings(root: _Element, styles: Mapping[str, _Element]) -> None:
    """Give paragraphs of styles that are based on a heading's, or of an outline, the style of a heading."""
    for properties in root.xpath("//w:p[not(ancestor::w:tc)]/w:pPr", namespaces=_SPACES):
        paragraph = properties.getparent()
        bases = _with_bases(_value(paragraph, "w:pPr/w:pStyle"), styles)
        levels = (_value(element, "w:pPr/w:outlineLvl") for element in (paragraph, *bases))
        level = next(filter(None, levels), "")
        is_short = len(text_of(paragraph)) <= _LONGEST_HEADING
        if is_short and re.fullmatch("[0-5]", level):
            for style in properties.findall("w:pStyle", _SPACES):
                properties.remove(style)
            value = {f"{_W}val": f"Heading{int(level) + 1}"}
            properties.insert(0, properties.makeelement(f"{_W}pStyle", value))


def _move_boxes(root: _Element) -> None:
    """Put the paragraphs of text boxes, in order, after the one that anchors them; of two forms of a box the first."""
    copies = "//mc:Fallback[preceding-sibling::mc:Choice//w:txbxContent]//w:txbxContent"
    for box in root.xpath(copies, namespaces=_SPACES):
        box[:] = []
    for box in reversed(root.xpath("//w:p//w:txbxContent", namespaces=_SPACES)):
        anchor = next(box.iterancestors(f"{_W}p"))
        for child in reversed(box):
            anchor.addnext(child)


def _item(match: re.Match[str]) -> str:
    """What stands before an item: Markdown has no other numbers than "1.", and a heading's is part of it."""
    is_in_list, label = match.groups()
    if is_in_list and not re.fullmatch(r"\d+\.", label):
        return f"- {label} "
    return f"{label} "


_Place = tuple[str, str]  # a list and a level


class _Lists:
    """The numbered lists of a file, and how far each has come."""

    def __init__(self, members: Members, styles: Mapping[str, _Element]) -> None:
        self.abstract: dict[str, str] = {}  # of a list, by its id
        self.numbers: dict[_Place, int] = {}  # the last ones, of abstract lists
        self.levels: dict[_Place, _Element] = {}
        self.styles = {name: _place(style) for name, style in styles.items()}
        self.begun: set[str] = set()  # lists with a first number of their own
        for entry in _elements(members, "numbering", "abstractNum"):
            name = entry.get(f"{_W}abstractNumId", "")
            for level in entry.iter(f"{_W}lvl"):
                if _value(level, "w:numFmt") not in ("", "bullet", "none"):
                    self.levels[name, level.get(f"{_W}ilvl", "0")] = level
        for entry in _elements(members, "numbering", "num"):
            name = entry.get(f"{_W}numId", "")
            self.abstract[name] = _value(entry, "w:abstractNumId")
            if next(entry.iter(f"{_W}startOverride"), None) is not None:
                self.begun.add(name)

    def next_label(self, paragraph: _Element) -> str:
        """What Word writes before a paragraph, such as "1.2" or "(a)"; "" where it is no item of a numbered list."""
        name, level = _place(paragraph)
        if not name:
            name, level = self.styles.get(_value(paragraph, "w:pPr/w:pStyle"), ("", ""))
        key = self.abstract.get(name, ""), level
        if key not in self.levels:
            return ""
        if name in self.begun:
            self.begun.discard(name)
            self.numbers.pop(key, None)
        number = self._number(key) + (key in self.numbers)
        # Levels below begin anew.
        for place in list(self.numbers):
            if place[0] == key[0] and place[1] > level:
                del self.numbers[place]
        self.numbers[key] = number
        return self._label(key)

    def _number(self, key: _Place) -> int:
        """The last number of a level, or its first."""
        return self.numbers.get(key) or int(_value(self.levels[key], "w:start") or "1")

    def _label(self, key: _Place) -> str:
        """The text of a level, which has %1 for the number of the first level, as in "%1.%2"."""
        is_decimal = self.levels[key].find("w:isLgl", _SPACES) is not None  # all its numbers are

        def number(match: re.Match[str]) -> str:
            place = key[0], str(int(match[1]) - 1)
            if place not in self.levels:
                return ""
            form = "decimal" if is_decimal else _value(self.levels[place], "w:numFmt")
            return numeral(self._number(place), form)

        text = _value(self.levels[key], "w:lvlText") or f"%{int(key[1]) + 1}."
        return re.sub("%([1-9])", number, text).strip()


def _place(element: _Element) -> _Place:
    """The list and the level that a paragraph or a style names itself; "" for no list."""
    properties = "w:pPr/w:numPr/w:"
    return _value(element, f"{properties}numId"), _value(element, f"{properties}ilvl") or "0"


def _write_numbers(root: _Element, lists: _Lists) -> None:
    """Write its number before each item of a list."""
    from lxml.etree import SubElement

    first: _Element | None = None  # whose end, and those of the next ones, are deleted
    for paragraph in root.iter(f"{_W}p"):
        if first is None:
            first = paragraph
        if paragraph.find("w:pPr/w:rPr/w:del", _SPACES) is not None:
            continue
        label = lists.next_label(paragraph)
        if label:
            run = paragraph.makeelement(f"{_W}r")
            SubElement(run, f"{_W}t").text = f"{_NUMBER}{label}{_NUMBER}"
            has_properties = len(first) > 0 and first[0].tag == f"{_W}pPr"
            first.insert(int(has_properties), run)
        first = None


# ---- Kinds that are no archives


_PICTURE = re.compile(r"data:[\w.+/-]+;base64,[A-Za-z0-9+/=\s]{40,}")


class Notebook(Reader):
    """A Jupyter notebook as Markdown: its texts and code; no pictures, and a note of outputs."""

    endings = ("ipynb",)

    def read(self, data: bytes, name: str) -> Reading:
        notebook = json.loads(data)  # in UTF-8, 16 or 32
        metadata = notebook.get("metadata") or {}
        kernel, info = metadata.get("kernelspec") or {}, metadata.get("language_info") or {}
        language = kernel.get("language") or info.get("name") or "python"
        blocks = []
        notes: tuple[str, ...] = ()
        for sheet in notebook.get("worksheets") or [notebook]:  # sheets before version 4
            for cell in sheet["cells"]:
                source = "".join(cell.get("source") or cell.get("input") or "")
                kind = cell.get("cell_type")
                if kind in ("markdown", "heading"):
                    text = closed(source.strip("\n"))
                    if kind == "heading":
                        text = f"{'#' * min(int(cell.get('level', 1)), 6)} {text}"
                    blocks.append(text)
                elif source.strip():
                    name_of_code = str(language).lower() if kind == "code" else ""
                    blocks.append(fenced(source, name_of_code))
                if cell.get("outputs"):
                    notes = ("outputs of its cells are left out",)
        text = "\n\n".join(filter(str.strip, blocks)).strip()
        return Reading(Document(name, _PICTURE.sub("data:", text), {"format": "markdown"}), notes)


class _Refused(Reader):
    """A kind of file that nothing here reads."""

    advice = ""

    def read(self, data: bytes, name: str) -> Reading:
        raise UnreadError(name, self.advice)


class PostScript(_Refused):
    """A program for printers, which is not run."""

    endings = ("ps", "eps")
    magic = b"%!PS"
    advice = "is PostScript: convert it to PDF, or take it out"


class OldOffice(_Refused):
    """A binary document of Word, Excel, PowerPoint or Outlook."""

    endings = ("doc", "xls", "ppt", "msg")
    magic = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
    advice = "is of Office before 2007, or has a password: save it as DOCX, XLSX, PPTX or EML, or take it out"
