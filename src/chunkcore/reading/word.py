"""What converters of Office files leave out: text boxes, numbers of lists, what stands beside the text. And RTF."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from io import BytesIO
from typing import TYPE_CHECKING, Any
from zipfile import ZipFile

from chunkcore.files import UnreadError
from chunkcore.lazy import needed
from chunkcore.reading.base import Reader, Reading, left_out, readers
from chunkcore.text import Document

if TYPE_CHECKING:
    from lxml.etree import _Element


_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_CHOICE = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Choice"
_FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
_DOCUMENT = "word/document.xml"
_PARTS = (_DOCUMENT, "word/footnotes.xml", "word/endnotes.xml")
# Texts beside that of a file: the members that hold them, and the elements around each.
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
_BLANKS = ("p", "br", "cr", "tab", "ptab")
_THREADED = "[Threaded comment]"  # begins the copy of a comment that is for old programs
_NUMBER = "\ue000"  # stands around the number of a list's item while the file is converted
_ITEM = re.compile(f"(?:\\d+\\. )?{_NUMBER}(\\d+){_NUMBER}")


def prepared(data: bytes) -> tuple[bytes, bool]:
    """The file as its converter reads it whole, and whether it has hidden text, which is taken out.

    Text boxes are paragraphs, and before each numbered item is its number, for `numbered`.
    """
    files = members_of(data)
    hidden = _hidden_styles(files)
    has_hidden = False
    for name in set(_PARTS).intersection(files):
        root = _xml(files[name])
        has_hidden |= _drop_hidden(root, hidden)
        for equation in root.iter(f"{_M}oMath"):
            _mend_equation(equation)
        for tag, known in (("cr", "br"), ("ptab", "tab")):
            for node in root.iter(f"{_W}{tag}"):
                node.tag = f"{_W}{known}"
        if name == _DOCUMENT:
            _unfold(root, _Lists(files))
        files[name] = needed("lxml.etree", "office", "read DOCX").tostring(root)
    return packed(files), has_hidden


def _unfold(body: _Element, lists: _Lists) -> None:
    boxes = list(body.iter(f"{_W}txbxContent"))
    for box in boxes:
        _move_out(box)
    for paragraph in body.iter(f"{_W}p"):
        number = lists.next_number(paragraph)
        if number is not None:
            _write_before(paragraph, f"{_NUMBER}{number}{_NUMBER}")


def numbered(markdown: str) -> str:
    """The converted text, its items with the numbers that `prepared` wrote."""
    return _ITEM.sub(r"\1. ", markdown)


def texts_apart(data: bytes) -> dict[str, list[str]]:
    """Texts of an Office file beside its own, by their kind."""
    texts: dict[str, list[str]] = {}
    with ZipFile(BytesIO(data)) as archive:
        for kind, (pattern, names) in _APART.items():
            tags = [f"{{*}}{name}" for name in names.split()]
            for member in sorted(archive.namelist()):
                if re.fullmatch(rf"(?:{pattern})\.xml", member):
                    elements = _xml(archive.read(member)).iter(*tags)
                    texts.setdefault(kind, []).extend(map(_text, elements))
    shown = {kind: list(filter(_is_shown, pieces)) for kind, pieces in texts.items()}
    return {kind: pieces for kind, pieces in shown.items() if pieces}


def _is_shown(text: str) -> bool:
    return bool(text) and not text.startswith(_THREADED)


def members_of(data: bytes) -> dict[str, bytes]:
    """The members of a ZIP archive."""
    with ZipFile(BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def packed(members: Mapping[str, bytes]) -> bytes:
    """A ZIP archive of these members."""
    target = BytesIO()
    with ZipFile(target, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return target.getvalue()


def _xml(content: bytes) -> _Element:
    etree: Any = needed("lxml.etree", "office", "read DOCX")
    parser = etree.XMLParser(resolve_entities=False, no_network=True)
    root: _Element = etree.fromstring(content, parser)
    return root


def _elements(files: Mapping[str, bytes], member: str, name: str) -> Iterator[_Element]:
    """The elements of a name in a member of the file, which need not be there."""
    if member in files:
        yield from _xml(files[member]).iter(f"{_W}{name}")


def _text(element: _Element) -> str:
    pieces = []
    for node in element.iter("{*}*"):
        name = str(node.tag).rpartition("}")[2]
        if name in _BLANKS:
            pieces.append(" ")
        elif name in ("t", "text"):
            pieces.append(node.text or "")
    return " ".join("".join(pieces).split())


def _hidden_styles(files: dict[str, bytes]) -> set[str]:
    """The names of styles that hide their text, themselves or through the style that they are based on."""
    elements = _elements(files, "word/styles.xml", "style")
    styles = {style.get(f"{_W}styleId", ""): style for style in elements}

    def is_hidden(name: str) -> bool:
        for _ in styles:  # so that a circle ends
            if name not in styles:
                return False
            state = _is_hidden(styles[name])
            if state is not None:
                return state
            name = _value(styles[name], "basedOn")
        return False

    return set(filter(is_hidden, styles))


def _is_hidden(element: _Element) -> bool | None:
    """Whether an element says that its text is hidden; None where it says nothing."""
    vanish = element.find(f"{_W}rPr/{_W}vanish")
    if vanish is None:
        return None
    return vanish.get(f"{_W}val", "1") not in ("0", "false", "off")


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
    names = {_value(run, "rPr", "rStyle"), _value(paragraph, "pPr", "pStyle")}
    return not styles.isdisjoint(names)


_KEPT = (f"{_W}fldChar", f"{_W}instrText")  # fields begin and end in runs


def _mend_equation(equation: _Element) -> None:
    """Make an equation one that markitdown writes as LaTeX; where it cannot, it is its letters alone."""
    from markitdown.converter_utils.docx.math.omml import oMath2Latex

    for node in list(equation.iter("{*}*")):
        name = str(node.tag).removeprefix(_M)
        if name in _OTHER_BOXES:
            node.tag = f"{_M}box"
        elif name in _WITH_PROPERTIES and node.find(f"{_M}{name}Pr") is None:
            node.insert(0, node.makeelement(f"{_M}{name}Pr", {}, None))
    try:
        oMath2Latex(equation)  # type: ignore[no-untyped-call]
    except (AttributeError, KeyError, NotImplementedError, TypeError, ValueError):
        letters = [node.text or "" for node in equation.iter(f"{_M}t")]
        run = equation.makeelement(f"{_M}r", {}, None)
        node = equation.makeelement(f"{_M}t", {}, None)
        node.text = " ".join(letters)
        run.append(node)
        equation[:] = [run]


_M = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
_OTHER_BOXES = ("sPre", "borderBox", "phant")
_WITH_PROPERTIES = ("acc", "bar", "d", "f", "groupChr")


def _move_out(box: _Element) -> None:
    """Put a box's paragraphs after the paragraph that it is anchored in; of two forms of one box the first."""
    parent = box.getparent()
    paragraph = next(box.iterancestors(f"{_W}p"), None)
    fallback = next(box.iterancestors(_FALLBACK), None)
    if parent is None:
        return
    parent.remove(box)
    if paragraph is None:
        return
    if fallback is not None:
        choices = fallback.itersiblings(_CHOICE, preceding=True)
        if any(choice.get("moved") for choice in choices):
            return
    for choice in parent.iterancestors(_CHOICE):
        choice.set("moved", "1")
    for child in reversed(box):
        paragraph.addnext(child)


def _write_before(paragraph: _Element, text: str) -> None:
    run = paragraph.makeelement(f"{_W}r", {}, None)
    node = paragraph.makeelement(f"{_W}t", {}, None)
    node.text = text
    run.append(node)
    has_properties = len(paragraph) > 0 and paragraph[0].tag == f"{_W}pPr"
    paragraph.insert(int(has_properties), run)


class _Lists:
    """The numbered lists of a file, and how far each has come."""

    def __init__(self, files: dict[str, bytes]) -> None:
        self.abstract: dict[str, str] = {}  # of a list, by its id
        self.starts: dict[tuple[str, str], int] = {}  # by abstract list and level
        self.styles: dict[str, tuple[str, str]] = {}  # a style's list and level
        self.counts: Counter[tuple[str, str]] = Counter()
        self.begun: set[str] = set()  # lists with a first number of their own
        for style in _elements(files, "word/styles.xml", "style"):
            self.styles[style.get(f"{_W}styleId", "")] = _place(style)
        for entry in _elements(files, "word/numbering.xml", "abstractNum"):
            name = entry.get(f"{_W}abstractNumId", "")
            for level in entry.iter(f"{_W}lvl"):
                if _value(level, "numFmt") == "decimal":
                    start = _value(level, "start") or "1"
                    self.starts[name, level.get(f"{_W}ilvl", "0")] = int(start)
        for entry in _elements(files, "word/numbering.xml", "num"):
            name = entry.get(f"{_W}numId", "")
            self.abstract[name] = _value(entry, "abstractNumId")
            if next(entry.iter(f"{_W}startOverride"), None) is not None:
                self.begun.add(name)

    def next_number(self, paragraph: _Element) -> int | None:
        """The number of a paragraph; None where it is no item of a list with decimal numbers."""
        name, level = _place(paragraph)
        if not name:
            name, level = self.styles.get(_value(paragraph, "pPr", "pStyle"), ("", ""))
        key = self.abstract.get(name, ""), level
        if key not in self.starts:
            return None
        if name in self.begun:
            self.begun.discard(name)
            self.counts[key] = 0
        for name, deeper in self.counts:
            if name == key[0] and deeper > level:
                self.counts[name, deeper] = 0
        self.counts[key] += 1
        return self.starts[key] + self.counts[key] - 1


def _place(element: _Element) -> tuple[str, str]:
    """The list and the level that a paragraph or a style names itself; "" for no list."""
    properties = "pPr", "numPr"
    return _value(element, *properties, "numId"), _value(element, *properties, "ilvl") or "0"


def _value(element: _Element, *path: str) -> str:
    child = element.find("/".join(f"{_W}{name}" for name in path))
    return "" if child is None else child.get(f"{_W}val", "")


_TOKEN = re.compile(
    r"\\([a-z]+)(-?\d+)? ?|\\'[0-9a-f]{2}|\\.|[{}]|[^\\{}]+", re.DOTALL | re.IGNORECASE
)
_HIDING = ("v", "deleted")  # hidden by the writer, and deleted while changes were tracked
_SHOWN = {"footnote": "", "shptxt": ""}  # footnotes and text boxes
_RUNNING = ("header", "headerl", "headerr", "headerf", "footer", "footerl", "footerr", "footerf")
_DESTINATIONS = {
    **_SHOWN,
    **dict.fromkeys(_RUNNING, "headers and footers of its pages"),
    "annotation": "comments",
    "moMath": "equations",
}
_BREAK = "\ufdd0"  # no character; before each group that is taken out of the text


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
        text, *apart = [part.strip() for part in plain.split(_BREAK)]
        texts = [text]
        notes: dict[str, list[str]] = {}
        for (kind, _), part in zip(groups.apart, apart, strict=True):
            if kind:
                notes.setdefault(kind, []).append(part)
            else:
                texts.append(part)
        if groups.has_hidden:
            notes["texts marked as hidden or deleted"] = []
        text = "\n\n".join(filter(None, texts))
        if not text:
            raise UnreadError(name, "has no text: it may hold pictures only")
        document = Document(name, text, {"format": "prose"})
        return Reading(document, left_out(notes))


@dataclass
class _State:
    """What holds inside a group: `pieces` get its text, and `hiding` are the words that hide it."""

    pieces: list[str]
    hiding: frozenset[str] = frozenset()
    is_unshown: bool = False


@dataclass
class _Groups:
    """A file's groups: those that are its text, and those that stand apart, each with the kind that a note names."""

    unshown: frozenset[str]  # words that begin a group without text
    characters: frozenset[str]  # words that are characters
    text: list[str] = field(default_factory=list)
    apart: list[tuple[str, list[str]]] = field(default_factory=list)
    has_hidden: bool = False

    def read(self, rtf: str) -> None:
        states = [_State(self.text)]
        place = 0
        while match := _TOKEN.match(rtf, place):
            place = match.end()
            piece, word = match[0], match[1]
            state = states[-1]
            if piece == "{":
                state.pieces.append(piece)
                states.append(_State(state.pieces, state.hiding, state.is_unshown))
            elif piece == "}":
                states.pop()
                if len(states) <= 1:  # what follows the file's own group is not its text
                    return
                states[-1].pieces.append(piece)
            elif word == "bin":
                place += int(match[2] or 0)
            elif word in _DESTINATIONS:
                state.pieces, state.is_unshown = [], False
                self.apart.append((_DESTINATIONS[word], state.pieces))
            elif word == "plain":
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
        begin = rf"{{\uc1\u{ord(_BREAK)}?"
        body = [
            *self.text,
            "}" * (_open_groups(self.text) - 1),
        ]  # those that a damaged file leaves open
        for _, pieces in self.apart:
            body += [begin, *pieces, "}" * (_open_groups(pieces) + 1)]
        return "".join([*body, "}"])


def _open_groups(pieces: list[str]) -> int:
    return pieces.count("{") - pieces.count("}")
