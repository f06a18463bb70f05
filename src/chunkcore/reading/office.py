"""Office files and EPUB by MarkItDown and openpyxl, with what these leave out; Rich Text Format; notebooks."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, time, timedelta
from io import BytesIO
from itertools import groupby, islice, repeat
from pathlib import Path
from posixpath import dirname, join, normpath
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote
from zipfile import BadZipFile, ZipFile

from chunkcore.files import UnreadError
from chunkcore.lazy import needed
from chunkcore.reading import base
from chunkcore.reading.base import Reader, Reading, left_out, listed, readers
from chunkcore.reading.encodings import decode_text
from chunkcore.reading.visible import fenced, in_cell, numeral, raised, visible_text
from chunkcore.text import Document, Mark, Span

if TYPE_CHECKING:
    from lxml.etree import _Element

# The header of a table without <th>.
_NO_HEADER = re.compile(r"^\|(?:  \|)+\n(\|(?: --- \|)+)\n(\|.*)$", re.MULTILINE)
_SUP = "\x02"  # around raised text, until it is made `raised`
_RAISED = re.compile(f"{_SUP}([^{_SUP}]*){_SUP}")
_LOCKS = "META-INF/encryption.xml"
_TITLE = "p[style-name='Title'] => h1:fresh"
_NO_TEXT = "has no text: it may hold pictures only"


class _Packed(Reader):
    """What these formats share: the archive, which is first unpacked within limits, and a file that tells its kind."""

    magic = b"PK\x03\x04"
    telling = b""

    def recognises(self, head: bytes) -> bool:
        return super().recognises(head) and self.telling in head

    def read(self, data: bytes, name: str) -> Reading:
        members = unpacked(data, name)
        if re.search(rb'URI="[^"]*html?"', members.get(_LOCKS, b"")):  # fonts alone may be locked
            reason = "is protected against copying (DRM), so its text cannot be read"
            raise UnreadError(name, reason)
        notes: list[str] = []
        document = self.document(name, data, members, notes)
        if not document.text:
            raise UnreadError(name, _NO_TEXT)
        notes += left_out(texts_apart(members))
        return Reading(document, tuple(notes))

    def document(
        self, name: str, data: bytes, members: dict[str, bytes], notes: list[str]
    ) -> Document:
        return Document(name, self.markdown(data, members, notes), {"format": "markdown"})

    def markdown(self, data: bytes, members: dict[str, bytes], notes: list[str]) -> str:
        """The file as Markdown; `notes` are added."""
        raise NotImplementedError


RATIO = 50  # text is packed to a fifth or so; bombs to a thousandth
ALWAYS = 64 * 1024**2  # bytes that are unpacked at any ratio
MEMBERS = 10_000


def unpacked(data: bytes, name: str) -> dict[str, bytes]:
    """The members of an archive, unpacked once within limits: a header may misstate a size.

    Raises `UnreadError`: no archive, or a damaged one; over 10,000 members; or they unpack to over 50 times the file,
    and over 64 MB.
    """
    room = max(ALWAYS, RATIO * len(data))
    members = {}
    try:
        archive = ZipFile(BytesIO(data))
        entries = archive.infolist()
        if len(entries) > MEMBERS:
            reason = f"has {len(entries):,} files, over {MEMBERS:,}: nothing is unpacked"
            raise UnreadError(name, reason)
        for entry in entries:
            with archive.open(entry) as file:
                content = file.read(room + 1)
            room -= len(content)
            if room < 0:
                reason = f"unpacks to over {RATIO} times its size: it is not unpacked"
                raise UnreadError(name, reason)
            members[entry.filename] = content
    except (BadZipFile, zlib.error, RuntimeError, EOFError, OSError) as error:
        raise UnreadError(name, f"is damaged or encrypted, or no ZIP file: {error}") from error
    return members


def _packed(members: Mapping[str, bytes]) -> bytes:
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
    "titles of charts": (r"(?:word|xl)/charts/chart(?:Ex)?\d*", "title"),
    "text boxes": (r"xl/drawings/drawing\d*", "txBody"),
    "diagrams": (r"(?:word|xl|ppt)/diagrams/data\d*", "pt"),
}
_THREADED = "[Threaded comment]"  # begins the copy of a comment that is for old programs
_BLANKS = ("p", "br", "cr", "tab", "ptab")


def texts_apart(members: Mapping[str, bytes]) -> dict[str, list[str]]:
    """Texts of an Office file beside its own, by their kind."""
    texts: dict[str, list[str]] = {}
    for kind, (pattern, names) in _APART.items():
        tags = [f"{{*}}{name}" for name in names.split()]
        for member in sorted(members):
            if re.fullmatch(rf"(?:{pattern})\.xml", member):
                for text in map(_text, _xml(members[member]).iter(*tags)):
                    if text and not text.startswith(_THREADED):
                        texts.setdefault(kind, []).append(text)
    return texts


def _xml(content: bytes) -> _Element:
    etree: Any = needed("lxml.etree", "office", "read DOCX")
    parser = etree.XMLParser(resolve_entities=False, no_network=True)
    root: _Element = etree.fromstring(content, parser)
    return root


def _text(element: _Element) -> str:
    pieces = []
    for node in element.iter("{*}*"):
        name = str(node.tag).rpartition("}")[2]
        if name in _BLANKS:
            pieces.append(" ")
        elif name in ("t", "text"):
            pieces.append(node.text or "")
    return " ".join("".join(pieces).split())


@readers.register("EPUB")
class Epub(_Packed):
    """An e-book as Markdown: title and authors, then what a reader sees of its chapters, in reading order.

    The extra ``office``.
    """

    endings = ("epub",)
    telling = b"application/epub+zip"

    def markdown(self, data: bytes, members: dict[str, bytes], notes: list[str]) -> str:
        place = _xml(members["META-INF/container.xml"]).find(".//{*}rootfile").get("full-path")
        package = _xml(members[place])
        authors = ", ".join(filter(None, (author.text for author in package.iter("{*}creator"))))
        head = {"Title": package.findtext(".//{*}title"), "Authors": authors}
        blocks = ["\n".join(f"**{key}:** {value}" for key, value in head.items() if value)]
        links = {item.get("id"): item.get("href", "") for item in package.iter("{*}item")}
        for part in package.iter("{*}itemref"):
            link = links.get(part.get("idref"), "")
            paths = [normpath(join(dirname(place), form)) for form in (unquote(link), link)]
            page = next((members[path] for path in paths if path in members), None)
            if page is None:
                notes.append(f"lacks its part {link}")
            else:
                blocks.append(visible_text(decode_text(page, Path(link))[0]))
        return "\n\n".join(filter(None, blocks))


_A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_MATH = "{http://schemas.microsoft.com/office/drawing/2010/main}m"


@readers.register("PPTX")
class Pptx(_Packed):
    """Slides as Markdown, with notes; each is a ``page`` (``number``) and a ``section``. The extra ``office``."""

    endings = ("pptx", "pptm")
    telling = b"ppt/"

    def document(
        self, name: str, data: bytes, members: dict[str, bytes], notes: list[str]
    ) -> Document:
        pptx = needed("pptx", "office", "read PPTX", "python-pptx")
        text = ""
        marks = []
        hidden = []
        for number, slide in enumerate(pptx.Presentation(BytesIO(data)).slides, start=1):
            if slide.element.get("show") in ("0", "false"):
                hidden.append(number)
                continue
            piece = _slide(slide)
            if piece:
                text += "\n\n" if text else ""
                span = Span(len(text), len(text) + len(piece))
                text += piece
                marks += [Mark("page", span, {"number": number}), Mark("section", span)]
        if hidden:
            notes.append(f"hidden slides are left out: {listed(hidden)}")
        return Document(name, text, {"format": "markdown"}, tuple(marks))


def _slide(slide: Any) -> str:
    _mend_slide(slide.element)
    blocks = list(_shapes(slide.shapes, slide.shapes.title))
    frame = slide.notes_slide.notes_text_frame if slide.has_notes_slide else None
    if frame is not None and frame.text.strip():
        blocks.append(f"\n### Notes:\n{frame.text}")
    lines = "\n".join(blocks).replace("\v", "\n")
    return re.sub(r"\n{3,}", "\n\n", lines).strip()


def _mend_slide(root: _Element) -> None:
    """Write as plain text what python-pptx leaves out: the newer of two forms, equations, raised and struck text."""
    for forms in list(root.iter(f"{_COMPATIBLE}AlternateContent")):
        for child in reversed(forms[0]):
            forms.addnext(child)
    for math in list(root.iter(_MATH)):
        run = math.makeelement(f"{_A}r")
        letters = run.makeelement(f"{_A}t")
        letters.text = " ".join(f"${_latex(equation)}$" for equation in math.iter(f"{_M}oMath"))
        run.append(letters)
        math.addprevious(run)
    for run in root.iter(f"{_A}r"):
        properties, text = run.find(f"{_A}rPr"), run.find(f"{_A}t")
        if properties is not None and text is not None:
            is_raised = properties.get("baseline", "-")[0] not in "-0"
            is_struck = properties.get("strike", "noStrike") != "noStrike"
            text.text = _shown(text.text or "", is_raised, is_struck)


def _latex(equation: _Element) -> str:
    from markitdown.converter_utils.docx.math.omml import oMath2Latex

    _mend_equation(equation)
    return str(oMath2Latex(equation))  # type: ignore[no-untyped-call]


def _shown(text: str, is_raised: bool | None, is_struck: bool | None) -> str:
    if is_raised:
        text = raised(text)
    return f"~~{text.strip()}~~" if is_struck and text.strip() else text


def _shapes(shapes: Iterable[Any], title: Any) -> Iterator[str]:
    """What the shapes show, from top to bottom; a line end stands around what is a block of its own."""
    for shape in sorted(shapes, key=_top_left):
        if shape.element.xpath("./*[1]/p:cNvPr[@hidden='1' or @hidden='true']"):
            continue
        if hasattr(shape, "shapes"):
            yield from _shapes(shape.shapes, title)
        elif shape.has_chart:
            yield f"\n{_chart(_xml(shape.chart_part.blob))}\n"
        elif shape.has_table:
            rows = ([cell.text for cell in row.cells] for row in shape.table.rows)
            yield f"\n{table(rows)}\n"
        elif shape.has_text_frame:
            text = shape.text_frame.text
            is_title = shape == title and text.strip()
            yield f"# {' '.join(text.split())}" if is_title else text
        else:
            for label in shape.element.xpath("./p:nvPicPr/p:cNvPr/@descr"):
                words = re.sub(r"[][]", " ", label).split()
                picture = re.sub(r"\W", "", shape.name)
                yield f"\n![{' '.join(words)}]({picture}.jpg)\n"


def _top_left(shape: Any) -> tuple[int, int]:
    outside = -(2**63)  # as are those without a place
    top = outside if shape.top is None else shape.top
    return top, outside if shape.left is None else shape.left


_CHART = "{http://schemas.openxmlformats.org/drawingml/2006/chart}"


def _chart(root: _Element) -> str:
    """A chart as a heading and the table of its data."""
    titles = map(_text, root.iter(f"{_CHART}title"))
    heading = ": ".join(["### Chart", *filter(None, islice(titles, 1))])
    names = ["Category"]
    rows: dict[tuple[int, str], dict[int, str]] = {}  # by place and category; values by column
    for column, series in enumerate(root.iter(f"{_CHART}ser"), start=1):
        names.append("".join(value.text or "" for value in series.iterfind("{*}tx//{*}v")))
        categories = _points(series, "cat", "xVal")
        for place, value in _points(series, "val", "yVal").items():
            rows.setdefault((place, categories.get(place, "")), {})[column] = value
    lines = [names]
    for place, category in sorted(rows):
        values = rows[place, category]
        lines.append([category, *(values.get(column, "") for column in range(1, len(names)))])
    return f"{heading}\n\n{table(lines)}".strip()


def _points(series: _Element, *names: str) -> dict[int, str]:
    """The points of a series that stand in the first of these elements that it has, by their places."""
    points: dict[int, str] = {}
    for name in names:
        for point in series.iterfind(f"{_CHART}{name}//{_CHART}pt"):
            points.setdefault(int(point.get("idx", "0")), point.findtext(f"{_CHART}v") or "")
    return points


@readers.register("XLSX")
class Xlsx(_Packed):
    """A workbook as Markdown: each sheet a heading and the tables of its values. The extra ``office``.

    Hidden sheets, comments, titles of charts and text boxes are told in notes.
    """

    endings = ("xlsx", "xlsm")
    telling = b"xl/"

    def markdown(self, data: bytes, members: dict[str, bytes], notes: list[str]) -> str:
        openpyxl = needed("openpyxl", "office", "read XLSX")
        book = openpyxl.load_workbook(BytesIO(data), read_only=True, data_only=True, rich_text=True)
        formulas = None
        if any(b"<f" in content for content in members.values()):
            formulas = openpyxl.load_workbook(BytesIO(data), read_only=True)
        sheets = []
        shown: list[str] = []  # the cells that show a formula
        hidden = []
        for sheet in book.worksheets:
            if sheet.sheet_state != "visible":
                hidden.append(sheet.title)
                continue
            base.on_reached(f"sheet {sheet.title[:50]!r}")
            other = None if formulas is None else formulas[sheet.title]
            text = _sheet(_sheet_rows(sheet, other, shown))
            if text:
                sheets.append(f"## {' '.join(sheet.title.split())}\n\n{text}")
        if hidden:
            notes.append(f"hidden sheets are left out: {listed(hidden)}")
        if shown:
            cells = "cell" if len(shown) == 1 else "cells"
            advice = "the formula is shown; open it and save it"
            notes.append(f"no program has computed {cells} {listed(shown)}: {advice}")
        return "\n\n".join(sheets)


def _sheet_rows(sheet: Any, formulas: Any, shown: list[str]) -> Iterator[list[str]]:
    """A sheet's rows; where a value is missing, its formula, whose cell is added to `shown`."""
    get_column_letter = needed("openpyxl.utils", "office", "read XLSX").get_column_letter
    others: Iterable[Sequence[object]] = repeat(())
    sheet.reset_dimensions()  # what the file says of them may be false
    if formulas is not None:
        formulas.reset_dimensions()
        others = formulas.iter_rows(values_only=True)
    for number, (row, written) in enumerate(zip(sheet.iter_rows(), others, strict=False), start=1):
        cells = list(map(_cell, row))
        for column, (cell, formula) in enumerate(zip(row, written, strict=False)):
            formula = str(getattr(formula, "text", formula))
            # One that is computed to be empty is a text ("str").
            if cell.value is None and cell.data_type != "str" and formula.startswith("="):
                cells[column] = formula
                shown.append(f"{sheet.title}!{get_column_letter(column + 1)}{number}")
        yield cells


def _cell(cell: Any) -> str:
    if cell.value is None:
        return ""
    pieces = cell.value if isinstance(cell.value, list) else [cell.value]
    shown = ""
    for piece in pieces:
        font = getattr(piece, "font", cell.font)
        text = formatted(getattr(piece, "text", piece), cell.number_format)
        shown += _shown(text, font.vertAlign == "superscript", font.strike)
    return shown


def _sheet(rows: Iterable[list[str]]) -> str:
    """The tables of a sheet, and the titles over them, the first a heading.

    Below an empty row, a row of two or more texts without digits over one with digits begins a table.
    """
    sheet = list(rows)
    if all(len(_filled(row)) < 2 for row in sheet):
        return table(sheet)
    parts: list[str] = []
    current: list[list[str]] = []
    for is_filled, group in groupby(sheet, lambda row: bool(_filled(row))):
        if not is_filled:
            continue
        block = list(group)
        columns = list(map(_filled, block))
        left = min(columns)[0]
        wider = (number for number, filled in enumerate(columns) if filled != [left])
        titles = next(wider, len(block))
        head = [_has_names(row) for row in block[titles : titles + 2]]
        if not current or head == [True, False]:
            parts.append(table(current))
            lines = "\n".join(" ".join(row[left].split()) for row in block[:titles])
            parts.append(lines and f"### {lines}")
            current = []
            block = block[titles:]
        current += block
    return "\n\n".join(filter(None, [*parts, table(current)]))


def _filled(row: Sequence[str]) -> list[int]:
    return [column for column, cell in enumerate(row) if cell.strip()]


def _has_names(row: Sequence[str]) -> bool:
    return len(_filled(row)) > 1 and not re.search(r"\d", " ".join(row))


# What a format shows as it stands; [$€-407] has a locale, too.
_LITERAL = re.compile(r'"([^"]*)"|\\(.)|\[\$([^\]-]*)[^\]]*\]|([€$£¥])')
_UNSEEN = re.compile(r"\[[A-Za-z]\w{2,}\]|[_*].")  # colours, and the width of a sign


def formatted(value: object, number_format: str) -> str:
    """A cell as its format shows it, but with all its digits: percent, currency and unit, leading zeros, days, hours.

    >>> formatted(0.125, "0%"), formatted(7, "00000"), formatted(1234.5, '#,##0.00 "kg"')
    ('12.5%', '00007', '1234.5 kg')
    >>> formatted(datetime(2024, 3, 5), "dd.mm.yyyy"), formatted(timedelta(hours=30, minutes=5), "[h]:mm")
    ('2024-03-05', '30:05:00')
    """
    if value is None:
        return ""
    if isinstance(value, timedelta):
        minutes, seconds = divmod(round(abs(value).total_seconds()), 60)
        sign = "-" if value < timedelta() else ""
        return f"{sign}{minutes // 60}:{minutes % 60:02}:{seconds:02}"
    if isinstance(value, datetime) and value.time() == time() and "h" not in number_format.lower():
        return value.date().isoformat()
    if not isinstance(value, int | float) or isinstance(value, bool):
        return str(value)
    if number_format == "General" or re.search(r"\[[<>=]", number_format):  # a condition
        return str(value)
    return _number(value, number_format)


def _number(value: float, number_format: str) -> str:
    sections = _UNSEEN.sub("", number_format).replace("General", "0").split(";")
    form = _section(value, sections)
    number = _LITERAL.sub(lambda literal: " " * len(literal[0]), form)  # at its places
    places = [digit.start() for digit in re.finditer("[0#?]", number)]
    literals = list(_LITERAL.finditer(form))
    words = "".join(literal[1] or "" for literal in literals).strip()
    if not places and re.search(r"[^\W\d_]", words):
        return words
    if "%" in number:
        return f"{100 * value:.12g}%"
    if not places or number.rstrip().endswith(","):  # "0,": thousands
        return str(value)
    before = after = ""
    for literal in literals:
        shown = "".join(filter(None, literal.groups()))
        if literal.start() < places[0]:
            before += shown
        elif literal.start() > places[-1]:
            after += shown
    if form is not sections[0]:  # its sign stands before all
        before, after = before.strip("-( "), after.strip("-) ")
    sign = "-" if value < 0 else ""
    text = _placed(abs(value), form[places[0] : places[-1] + 1])
    return f"{sign}{before}{text} {after.strip()}".strip()


def _section(value: float, sections: Sequence[str]) -> str:
    """The part of a format for numbers above, below or at zero."""
    if value == 0 and len(sections) > 2:
        return sections[2]
    if value < 0 and len(sections) > 1:
        return sections[1]
    return sections[0]


def _placed(value: float, form: str) -> str:
    """The digits of a whole number at their places, as in "000-0000"; of other numbers as they are."""
    digits = str(value)
    form = form.replace("\\", "")
    if not isinstance(value, int) or re.search(r"[^0#?() -]", form):
        return digits
    places = len(re.findall("[0#?]", form))
    if len(digits) < places:
        if re.search("[#?]", form):
            return digits
        digits = digits.zfill(places)
    first = 1 + len(digits) - places
    others = iter(digits[first:])
    text = digits[:first] + re.sub("[0#?]", lambda _: next(others), form[1:])
    return f"({text}" if text.count(")") > text.count("(") else text


def table(rows: Iterable[Sequence[str]]) -> str:
    r"""A Markdown table, the first row its header; no row is filled up, and rows without text are left out.

    >>> table([["Kind", "Heat"], ["black", ""]])
    '| Kind | Heat |\n| --- | --- |\n| black |'
    """
    lines = []
    for row in rows:
        cells = [in_cell(" ".join(cell.split())) for cell in row]
        while cells and not cells[-1]:
            cells.pop()
        if cells:
            lines.append(f"| {' | '.join(cells)} |")
            if len(lines) == 1:
                lines.append(f"|{' --- |' * len(cells)}")
    return "\n".join(lines)


# ---- DOCX


_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_M = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
_COMPATIBLE = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
_SPACES = {"w": _W[1:-1], "mc": _COMPATIBLE[1:-1]}
_DOCUMENT = "word/document.xml"
_PARTS = (_DOCUMENT, "word/footnotes.xml", "word/endnotes.xml")
_AROUND_TEXT = ("fldSimple", "bdo", "dir", "ruby", "rubyBase")
# Elements that mammoth leaves out with their text, or, of a cell that goes on below, with its column.
_READ_AS = {
    f"{_W}cr": f"{_W}br",
    f"{_W}ptab": f"{_W}tab",
    f"{_W}vMerge": f"{_W}noWrap",
    **dict.fromkeys((_W + name for name in _AROUND_TEXT), f"{_W}smartTag"),
}
_NUMBER = "\ue000"  # stands around the number of a list's item while the file is converted
_ITEM = re.compile(f"(\\d+\\. )?{_NUMBER}([^{_NUMBER}]*){_NUMBER}")


@readers.register("DOCX")
class Docx(_Packed):
    """A Word document as Markdown: headings, lists, tables, notes, text boxes, equations. The extra ``office``.

    Headers and footers of pages, comments, titles of charts and hidden text are told in notes.
    """

    endings = ("docx", "docm", "dotx")
    telling = b"word/"

    def markdown(self, data: bytes, members: dict[str, bytes], notes: list[str]) -> str:
        etree = needed("lxml.etree", "office", "read DOCX")
        hidden = _hidden_styles(members)
        has_hidden = False
        for name in members.keys() & _PARTS:
            root = _xml(members[name])
            has_hidden |= _drop_hidden(root, hidden)
            for equation in root.iter(f"{_M}oMath"):
                _mend_equation(equation)
            for text in root.xpath("//w:tc[not(.//w:tc)]//w:t", namespaces=_SPACES):
                text.text = in_cell(text.text or "")  # MarkItDown leaves a bar as it is
            for node in root.iter(*_READ_AS):
                node.tag = _READ_AS[str(node.tag)]
            for line_end in root.iter(f"{_W}br"):  # of a page or a column, too
                line_end.attrib.pop(f"{_W}type", None)
            if name == _DOCUMENT:
                _move_boxes(root)
                _write_numbers(root, _Lists(members))
            members[name] = etree.tostring(root)
        if has_hidden:
            notes.append("texts marked as hidden are left out")
        return _ITEM.sub(_item, _converted(_packed(members)))


def _converted(data: bytes) -> str:
    """A Word document as Markdown, by MarkItDown."""
    needed("markitdown", "office", "read DOCX")
    from markitdown import StreamInfo, converters

    # No marks for bold and italics: they would stand inside words.
    plain = {
        "escape_underscores": False,
        "escape_asterisks": False,
        "strong_em_symbol": "",
        "sup_symbol": _SUP,
    }
    converter: Any = converters.DocxConverter
    converted = converter().convert(BytesIO(data), StreamInfo(), style_map=_TITLE, **plain)
    text = converted.markdown.replace("\r\n", "\n")
    text = _RAISED.sub(lambda match: raised(match[1]), text)
    text = re.sub(r"\n{3,}", "\n\n", text).strip()
    return _NO_HEADER.sub(r"\2\n\1", text)


def _value(element: _Element, path: str) -> str:
    child = element.find(path, _SPACES)
    return "" if child is None else child.get(f"{_W}val", "")


def _elements(members: Mapping[str, bytes], member: str, name: str) -> Iterator[_Element]:
    """The elements of a name in a member of the file, which need not be there."""
    if member in members:
        yield from _xml(members[member]).iter(f"{_W}{name}")


def _hidden_styles(members: Mapping[str, bytes]) -> set[str]:
    """The names of styles that hide their text, themselves or through the style that they are based on."""
    hidden: set[str] = set()
    bases: dict[str, str] = {}  # of the styles that say nothing themselves
    for style in _elements(members, "word/styles.xml", "style"):
        name, is_hidden = style.get(f"{_W}styleId", ""), _is_hidden(style)
        if is_hidden:
            hidden.add(name)
        elif is_hidden is None:
            bases[name] = _value(style, "w:basedOn")
    hidden.discard("")  # the base of a style without one
    while True:
        more = {name for name, above in bases.items() if above in hidden} - hidden
        if not more:
            return hidden
        hidden |= more


def _is_hidden(element: _Element) -> bool | None:
    """Whether an element says that its text is hidden; None where it says nothing."""
    vanish = element.find("w:rPr/w:vanish", _SPACES)
    if vanish is None:
        return None
    return vanish.get(f"{_W}val", "1") not in ("0", "false", "off")


_KEPT = (f"{_W}fldChar", f"{_W}instrText")  # fields begin and end in runs


def _drop_hidden(root: _Element, styles: set[str]) -> bool:
    """Take hidden text out, and paragraphs of which all is hidden; whether there was any."""
    has_hidden = False
    for paragraph in list(root.iter(f"{_W}p")):
        runs = list(paragraph.iter(f"{_W}r"))
        hidden = [run for run in runs if _is_run_hidden(run, paragraph, styles)]
        if not any(map(_text, hidden)):
            continue
        has_hidden = True
        for run in hidden:
            run[:] = [child for child in run if child.tag in _KEPT]
        parent = paragraph.getparent()
        if len(hidden) == len(runs) and not any(map(len, hidden)) and parent is not None:
            parent.remove(paragraph)
    return has_hidden


def _is_run_hidden(run: _Element, paragraph: _Element, styles: set[str]) -> bool:
    is_hidden = _is_hidden(run)
    if is_hidden is not None:
        return is_hidden
    names = {_value(run, "w:rPr/w:rStyle"), _value(paragraph, "w:pPr/w:pStyle")}
    return not styles.isdisjoint(names)


_OTHER_BOXES = ("sPre", "borderBox", "phant")
_WITH_PROPERTIES = ("acc", "bar", "d", "f", "groupChr")


def _mend_equation(equation: _Element) -> None:
    """Make an equation one that markitdown writes as LaTeX; where it cannot, it is its letters alone."""
    from lxml.etree import SubElement
    from markitdown.converter_utils.docx.math.omml import oMath2Latex

    for node in list(equation.iter("{*}*")):
        name = str(node.tag).removeprefix(_M)
        if name in _OTHER_BOXES:
            node.tag = f"{_M}box"
        elif name in _WITH_PROPERTIES and node.find(f"{_M}{name}Pr") is None:
            node.insert(0, node.makeelement(f"{_M}{name}Pr"))
    try:
        oMath2Latex(equation)  # type: ignore[no-untyped-call]
    except (AttributeError, KeyError, NotImplementedError, TypeError, ValueError):
        letters = [node.text or "" for node in equation.iter(f"{_M}t")]
        equation[:] = []
        run = SubElement(equation, f"{_M}r")
        SubElement(run, f"{_M}t").text = " ".join(letters)


def _move_boxes(root: _Element) -> None:
    """Put the paragraphs of each text box after the one that it is anchored in; of two forms of one box the first."""
    copies = "//mc:Fallback[preceding-sibling::mc:Choice//w:txbxContent]//w:txbxContent"
    for box in root.xpath(copies, namespaces=_SPACES):
        box[:] = []
    for box in list(root.iter(f"{_W}txbxContent")):
        anchor = next(box.iterancestors(f"{_W}p"), None)
        if anchor is not None:
            for child in reversed(box):
                anchor.addnext(child)


def _item(match: re.Match[str]) -> str:
    """What stands before an item: Markdown has no other numbers than "1.", and a heading's is part of it."""
    is_in_list, label = match.groups()
    if is_in_list and not re.fullmatch(r"\d+\.", label):
        return f"- {label} "
    return f"{label} "


_FORMS = ("decimal", "decimalZero", "lowerLetter", "upperLetter", "lowerRoman", "upperRoman")


@dataclass
class _Level:
    """How a level of a list is numbered: `text` has %1 for the number of the first level, as in "%1.%2"."""

    start: int
    form: str
    text: str
    is_decimal: bool  # also the numbers of other levels


class _Lists:
    """The numbered lists of a file, and how far each has come."""

    def __init__(self, members: Mapping[str, bytes]) -> None:
        self.abstract: dict[str, str] = {}  # of a list, by its id
        self.following: dict[tuple[str, str], int] = {}  # by abstract list and level
        self.levels: dict[tuple[str, str], _Level] = {}
        self.styles: dict[str, tuple[str, str]] = {}  # a style's list and level
        self.begun: set[str] = set()  # lists with a first number of their own
        for style in _elements(members, "word/styles.xml", "style"):
            self.styles[style.get(f"{_W}styleId", "")] = _place(style)
        for entry in _elements(members, "word/numbering.xml", "abstractNum"):
            name = entry.get(f"{_W}abstractNumId", "")
            for level in entry.iter(f"{_W}lvl"):
                form, place = _value(level, "w:numFmt"), level.get(f"{_W}ilvl", "0")
                if form in _FORMS:
                    start = int(_value(level, "w:start") or "1")
                    text = _value(level, "w:lvlText") or f"%{int(place) + 1}."
                    is_decimal = level.find("w:isLgl", _SPACES) is not None
                    self.levels[name, place] = _Level(start, form, text, is_decimal)
        for entry in _elements(members, "word/numbering.xml", "num"):
            name = entry.get(f"{_W}numId", "")
            self.abstract[name] = _value(entry, "w:abstractNumId")
            if next(entry.iter(f"{_W}startOverride"), None) is not None:
                self.begun.add(name)

    def next_label(self, paragraph: _Element) -> str | None:
        """What Word writes before a paragraph, such as "1.2" or "(a)"; None where it is no item of a numbered list."""
        name, level = _place(paragraph)
        if not name:
            name, level = self.styles.get(_value(paragraph, "w:pPr/w:pStyle"), ("", ""))
        key = self.abstract.get(name, ""), level
        if key not in self.levels:
            return None
        restarted = [place for place in self.following if place[0] == key[0] and place[1] > level]
        if name in self.begun:
            self.begun.discard(name)
            restarted.append(key)
        for place in restarted:
            self.following.pop(place, None)
        self.following[key] = 1 + self.following.get(key, self.levels[key].start)
        return self._label(key)

    def _label(self, key: tuple[str, str]) -> str:
        level = self.levels[key]

        def number(match: re.Match[str]) -> str:
            place = key[0], str(int(match[1]) - 1)
            if place not in self.levels:
                return ""
            other = self.levels[place]
            current = self.following.get(place, 1 + other.start) - 1
            return numeral(current, "decimal" if level.is_decimal else other.form)

        return re.sub("%([1-9])", number, level.text).strip()


def _place(element: _Element) -> tuple[str, str]:
    """The list and the level that a paragraph or a style names itself; "" for no list."""
    properties = "w:pPr/w:numPr/w:"
    return _value(element, f"{properties}numId"), _value(element, f"{properties}ilvl") or "0"


def _write_numbers(root: _Element, lists: _Lists) -> None:
    """Write its number before each item of a list."""
    from lxml.etree import SubElement

    for paragraph in root.iter(f"{_W}p"):
        label = lists.next_label(paragraph)
        if label:
            run = paragraph.makeelement(f"{_W}r")
            SubElement(run, f"{_W}t").text = f"{_NUMBER}{label}{_NUMBER}"
            has_properties = len(paragraph) > 0 and paragraph[0].tag == f"{_W}pPr"
            paragraph.insert(int(has_properties), run)


# ---- Kinds that are no archives


_PICTURE = re.compile(r"data:[\w.+/-]+;base64,[A-Za-z0-9+/=\s]{40,}")


@readers.register("notebook")
class Notebook(Reader):
    """A Jupyter notebook as Markdown: its texts and code; no pictures, and a note of outputs."""

    endings = ("ipynb",)

    def read(self, data: bytes, name: str) -> Reading:
        notebook = json.loads(data.decode("utf-8-sig"))
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
                    marks = "#" * cell.get("level", 1) + " " if kind == "heading" else ""
                    blocks.append(marks + source.strip("\n"))
                elif source.strip():
                    blocks.append(fenced(source, str(language).lower() if kind == "code" else ""))
                if cell.get("outputs"):
                    notes = ("outputs of its cells are left out",)
        text = "\n\n".join(filter(str.strip, blocks)).strip()
        if not text:
            raise UnreadError(name, "is a notebook without a text: take it out")
        return Reading(Document(name, _PICTURE.sub("data:", text), {"format": "markdown"}), notes)


class _Refused(Reader):
    """A kind of file that nothing here reads."""

    advice = ""

    def read(self, data: bytes, name: str) -> Reading:
        raise UnreadError(name, self.advice)


@readers.register("PostScript")
class PostScript(_Refused):
    """A program for printers, which is not run."""

    endings = ("ps", "eps")
    magic = b"%!PS"
    advice = "is PostScript: convert it to PDF, or take it out"


@readers.register("Office before 2007")
class OldOffice(_Refused):
    """A binary document of Word, Excel, PowerPoint or Outlook."""

    endings = ("doc", "xls", "ppt", "msg")
    magic = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
    advice = "is of Office before 2007: save it as DOCX, XLSX, PPTX or EML, or take it out"


_TOKEN = re.compile(
    r"\\([a-z]+)(-?\d+)? ?|\\'[0-9a-f]{2}|\\.|[{}]|[^\\{}]+", re.DOTALL | re.IGNORECASE
)
_HIDING = ("v", "deleted")  # hidden by the writer, and deleted while changes were tracked
_SHOWN = dict.fromkeys(("footnote", "shptxt", "result"), "")  # notes, text boxes, what objects show
_RUNNING = ("header", "headerl", "headerr", "headerf", "footer", "footerl", "footerr", "footerf")
_DESTINATIONS = {
    **_SHOWN,
    **dict.fromkeys(_RUNNING, "headers and footers of its pages"),
    "annotation": "comments",
    "moMath": "equations",
}
_RAISING = (
    "super",
    "up",
    "nosupersub",
    "plain",
    "sub",
    "dn",
)  # the first two begin it, unless with 0
# No characters: before each group that is taken out of the text, and around raised text.
_BREAK, _RAISE, _LOWER = "\ufdd0", "\ufdd1", "\ufdd2"
_RAISED_RTF = re.compile(f"{_RAISE}([^{_RAISE}{_LOWER}]*){_LOWER}|[{_RAISE}{_LOWER}]")


def _escaped(sign: str) -> str:
    """The sign as a group of RTF."""
    return rf"{{\uc1\u{ord(sign)}?}}"


@readers.register("RTF")
class Rtf(Reader):
    """A text in Rich Text Format: its plain text, then its footnotes and text boxes. The extra ``files``.

    Headers and footers of pages, comments, equations and hidden text are told in notes.
    """

    endings = ("rtf",)
    magic = b"{\\rtf"

    def read(self, data: bytes, name: str) -> Reading:
        striprtf = needed("striprtf.striprtf", "files", "read RTF")
        unshown = striprtf.destinations | {"fonttbl", "colortbl"}
        groups = _Groups(frozenset(unshown), frozenset(striprtf.specialchars) | {"u"})
        groups.read(data.decode("latin-1"))
        plain = striprtf.rtf_to_text(groups.rtf(), errors="replace")
        plain = _RAISED_RTF.sub(lambda match: raised(match[1] or ""), plain)
        texts: dict[str, list[str]] = {"": []}
        for (kind, _), text in zip(groups.parts, plain.split(_BREAK), strict=True):
            texts.setdefault(kind, []).append(text.strip())
        if groups.has_hidden:
            texts["texts marked as hidden or deleted"] = []
        text = "\n\n".join(filter(None, texts.pop("")))
        if not text:
            raise UnreadError(name, _NO_TEXT)
        return Reading(Document(name, text, {"format": "prose"}), left_out(texts))


@dataclass
class _State:
    """What holds inside a group: `pieces` get its text, and `hiding` are the words that hide it."""

    pieces: list[str]
    hiding: frozenset[str] = frozenset()
    is_raised: bool = False
    is_unshown: bool = False


@dataclass
class _Groups:
    """A file's groups: its text, and those that stand apart, each with the kind that a note names; "" for a text."""

    unshown: frozenset[str]  # words that begin a group without text
    characters: frozenset[str]  # words that are characters
    parts: list[tuple[str, list[str]]] = field(default_factory=lambda: [("", [])])
    has_hidden: bool = False

    def read(self, rtf: str) -> None:
        states = [_State(self.parts[0][1])]
        place = 0
        while match := _TOKEN.match(rtf, place):
            place = match.end()
            piece, word = match[0], match[1]
            state = states[-1]
            if piece == "{":
                state.pieces.append(piece)
                states.append(replace(state))
            elif piece == "}":
                states.pop()
                if len(states) <= 1:  # what follows the file's own group is not its text
                    return
                if state.is_raised and not states[-1].is_raised:
                    state.pieces.append(_escaped(_LOWER))
                states[-1].pieces.append(piece)
            elif word == "bin":
                place += int(match[2] or 0)
            elif word in _DESTINATIONS:
                state.pieces, state.is_unshown = [], False
                self.parts.append((_DESTINATIONS[word], state.pieces))
            elif word in _RAISING:
                state.is_raised = word in _RAISING[:2] and match[2] != "0"
                state.pieces.append(_escaped(_RAISE if state.is_raised else _LOWER))
                if word == "plain":
                    state.hiding -= {"v"}
            elif word in _HIDING:
                others = state.hiding - {word}
                state.hiding = others if match[2] == "0" else others | {word}
            elif word != "pntext":  # the number of an item is text
                state.is_unshown |= word in self.unshown or piece == "\\*"
                self.add(piece, word, state)

    def add(self, piece: str, word: str | None, state: _State) -> None:
        is_text = word in self.characters if word else piece != "\\*"
        if not (state.hiding and is_text):
            state.pieces.append(piece)
        elif piece.strip() and not state.is_unshown:
            self.has_hidden = True

    def rtf(self) -> str:
        """The file without hidden text; the groups that stand apart are at its end, each after a `_BREAK`."""
        written = []
        for number, (_, pieces) in enumerate(self.parts):
            left_open = pieces.count("{") - pieces.count("}")  # by a damaged file
            if number:
                written.append(rf"{{\uc1\u{ord(_BREAK)}?")
                left_open += 2
            written += [*pieces, "}" * (left_open - 1)]
        return "".join([*written, "}"])
