"""Word's DOCX and EPUB as Markdown: ZIP files of XML and XHTML, read by the standard library and `add_html`."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from xml.parsers import expat  # entities are refused below

from chunkcore.document import Document, Mark, Span
from chunkcore.errors import DataError, MissingExtraError
from chunkcore.files import ArchiveMembers
from chunkcore.reading.base import Reader, Reading, UnreadError, decode_text, readers
from chunkcore.reading.markup import MarkdownText, add_html

_ZIP = b"PK\x03\x04"
_DEEPEST = 2_000  # elements in each other

Attributes = Mapping[str, str]


def _walk(data: bytes, start: Callable[[str, Attributes], None], end: Any = None, said: Any = None) -> None:
    """Call `start`, `end` and `said` for the elements and texts of an XML document, by their names without namespaces.

    A document type is refused: it can define entities, which expand without limit or name other files. Neither format
    has one. Raises `DataError`: it has one, or is no XML.
    """
    depth = 0

    def starts(name: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > _DEEPEST:
            raise DataError(f"elements lie in each other {_DEEPEST:,} deep")
        start(_local(name), {_local(key): value for key, value in attributes.items()})

    def ends(name: str) -> None:
        nonlocal depth
        depth -= 1
        if end is not None:
            end(_local(name))

    def refuse(*_: Any) -> None:
        raise DataError("has a document type, which could define entities: take that out, or the file")

    parser = expat.ParserCreate(namespace_separator=" ")
    parser.StartElementHandler, parser.EndElementHandler = starts, ends
    parser.StartDoctypeDeclHandler = parser.EntityDeclHandler = refuse
    parser.buffer_text = True
    if said is not None:
        parser.CharacterDataHandler = said
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        raise DataError(f"its XML is damaged: {error}") from error


def _local(name: str) -> str:
    return name.rpartition(" ")[2]


class _Packed(Reader):
    """What DOCX and EPUB share: the archive, recognised by a file in it."""

    magic = _ZIP
    telling = b""

    def recognises(self, head: bytes) -> bool:
        return head.startswith(_ZIP) and self.telling in head

    def read(self, path: Path, name: str) -> Reading:
        text = MarkdownText()
        notes: list[str] = []
        try:
            metadata = self.write(ArchiveMembers(path), text, notes)
        except MissingExtraError as error:
            raise UnreadError(path, f"cannot be read: {error}") from error
        except DataError as error:
            raise UnreadError(path, str(error).removeprefix(f"{path} ")) from error
        if not text.size:
            raise UnreadError(path, "has no text: it may hold pictures only")
        document = Document(name, text.text, {"format": "markdown", **metadata}, tuple(text.marks))
        return Reading(document, tuple(notes))

    def write(self, archive: ArchiveMembers, text: MarkdownText, notes: list[str]) -> dict[str, Any]:
        """Write the text, and notes on what is missing; returns the metadata."""
        raise NotImplementedError


@readers.register("DOCX")
class Docx(_Packed):
    """A Word document: headings by their styles' outline levels, lists, tables, foot- and endnotes (``[^1]``).

    Insertions that are tracked are read, deletions not; page headers, comments and text in pictures are left out.
    """

    endings = ("docx", "docm", "dotx")
    telling = b"word/"

    def write(self, archive: ArchiveMembers, text: MarkdownText, notes: list[str]) -> dict[str, Any]:
        levels, lists = _styles(archive.read("word/styles.xml")) if "word/styles.xml" in archive else ({}, {})
        numbered = _numbered(archive.read("word/numbering.xml")) if "word/numbering.xml" in archive else set()
        _Word(text, levels, numbered, lists).read(archive.read("word/document.xml"))
        for part in ("footnotes", "endnotes"):
            if f"word/{part}.xml" in archive:
                _Word(text, {}, set(), {}, note=part[:-5]).read(archive.read(f"word/{part}.xml"))
        return {}


def _styles(data: bytes) -> tuple[dict[str, int], dict[str, str]]:
    """The heading level of each paragraph style that has one, and the number of the list of each that is one's."""
    levels: dict[str, int] = {}
    lists: dict[str, str] = {}
    based: dict[str, str] = {}
    style = ""

    def start(name: str, attributes: Attributes) -> None:
        nonlocal style
        value = attributes.get("val", "")
        if name == "style":
            style = attributes.get("styleId", "") if attributes.get("type", "paragraph") == "paragraph" else ""
        elif not style:
            pass
        elif name == "outlineLvl" and value.isdecimal() and int(value) < 9:
            levels[style] = int(value) + 1
        elif name == "basedOn":
            based[style] = value
        elif name == "numId":
            lists[style] = value
        elif name == "name" and (value.lower() == "title" or value.lower().removeprefix("heading ").isdecimal()):
            levels.setdefault(style, 1 if value.lower() == "title" else int(value[8:]))

    _walk(data, start, lambda _: None)
    for each in list(based):
        seen, origin = {each}, each
        while origin not in levels and based.get(origin, each) not in seen:
            origin = based[origin]
            seen.add(origin)
        if origin in levels:
            levels.setdefault(each, levels[origin])
    return levels, lists


def _numbered(data: bytes) -> set[tuple[str, str]]:
    abstract: dict[str, set[str]] = {}
    found: set[tuple[str, str]] = set()
    owner = level = number = ""

    def start(name: str, attributes: Attributes) -> None:
        nonlocal owner, level, number
        if name == "abstractNum":
            owner = attributes.get("abstractNumId", "")
        elif name == "lvl":
            level = attributes.get("ilvl", "0")
        elif name == "numFmt" and attributes.get("val") not in ("bullet", "none"):
            abstract.setdefault(owner, set()).add(level)
        elif name == "num":
            number = attributes.get("numId", "")
        elif name == "abstractNumId":
            found.update((number, each) for each in abstract.get(attributes.get("val", ""), ()))

    _walk(data, start, lambda _: None)
    return found


class _Word:
    def __init__(
        self,
        text: MarkdownText,
        levels: Mapping[str, int],
        numbered: set[tuple[str, str]],
        lists: Mapping[str, str],
        *,
        note: str = "",
    ) -> None:
        self.text = text
        self.levels = levels
        self.numbered = numbered
        self.lists = lists
        self.note = note  # in notes: "foot" or "end"
        self.number = ""  # of the open note
        self.runs: list[list[str]] = []  # of open paragraphs: a text box has its own
        self.styles: list[dict[str, str]] = []
        self.counts: dict[tuple[str, str], int] = {}
        self.rows: list[list[str]] | None = None
        self.cells: list[list[str]] = []  # of open cells
        self.skipped = 0
        self.reading = 0

    def read(self, data: bytes) -> None:
        _walk(data, self._start, self._end, self._said)

    def _start(self, name: str, attributes: Attributes) -> None:
        if self.skipped or name in ("Fallback", "del", "moveFrom"):
            self.skipped += 1
        elif name == "p":
            self.runs.append([])
            self.styles.append({})
        elif name == "tbl":
            self.rows = [] if self.rows is None else self.rows
            self.styles.append({"table": "yes"})
        elif name == "tr" and self.rows is not None and len(self.cells) == 0:
            self.rows.append([])
        elif name == "tc":
            self.cells.append([])
        elif name == "t":
            self.reading += 1
        elif name in ("footnote", "endnote") and attributes.get("id", "").isdecimal():
            self.number = attributes["id"]
        elif self.runs:
            self._in_paragraph(name, attributes)

    def _in_paragraph(self, name: str, attributes: Attributes) -> None:
        run, style = self.runs[-1], self.styles[-1]
        if name in ("pStyle", "outlineLvl", "ilvl", "numId"):
            style.setdefault(name, attributes.get("val", ""))
        elif name in ("tab", "ptab"):
            run.append("\t")
        elif name in ("br", "cr"):
            run.append("\n")
        elif name == "noBreakHyphen":
            run.append("-")
        elif name in ("footnoteReference", "endnoteReference"):
            run.append(f"[^{'e' * (name[0] == 'e')}{attributes.get('id', '')}]")

    def _said(self, data: str) -> None:
        if self.reading and not self.skipped and self.runs:
            self.runs[-1].append(data)

    def _end(self, name: str) -> None:
        if self.skipped:
            self.skipped -= 1
        elif name == "t":
            self.reading -= 1
        elif name == "p":
            self._paragraph("".join(self.runs.pop()), self.styles.pop())
        elif name == "tc" and self.cells:
            cell = " ".join(self.cells.pop())
            if self.cells:  # of a table in a cell
                self.cells[-1].append(cell)
            elif self.rows:
                self.rows[-1].append(cell)
        elif name == "tbl":
            self.styles.pop()
            if not self.cells and self.rows is not None:
                rows, self.rows = self.rows, None
                self.text.table(rows)

    def _paragraph(self, text: str, style: Mapping[str, str]) -> None:
        if not text.strip():
            return
        if self.cells:
            self.cells[-1].append(text)
            return
        if self.note:
            if self.number:
                self.text.paragraph(f"[^{'e' * (self.note == 'end')}{self.number}]: {text}")
            return
        outline = style.get("outlineLvl", "")
        level = (
            int(outline) + 1
            if outline.isdecimal() and int(outline) < 9
            else self.levels.get(style.get("pStyle", ""), 0)
        )
        number = style.get("numId", self.lists.get(style.get("pStyle", ""), "0"))
        if level:
            self.text.heading(level, text)
        elif number != "0" or style.get("pStyle", "").startswith("List"):
            self._item(text, number, style.get("ilvl", "0"))
        else:
            self.text.paragraph(text)

    def _item(self, text: str, number: str, level: str) -> None:
        counted = (number, level) in self.numbered
        count = self.counts[number, level] = self.counts.get((number, level), 0) + 1
        for other in [each for each in self.counts if each[0] == number and each[1] > level]:
            del self.counts[other]
        self.text.item(int(level) if level.isdecimal() else 0, count if counted else None, text)


@readers.register("EPUB")
class Epub(_Packed):
    """An e-book: its chapters' visible text in reading order, with marks ``chapter``; the extra ``files``."""

    endings = ("epub",)
    telling = b"application/epub+zip"

    def write(self, archive: ArchiveMembers, text: MarkdownText, notes: list[str]) -> dict[str, Any]:
        found: list[str] = []
        container = archive.read("META-INF/container.xml")
        _walk(container, lambda name, at: found.append(at.get("full-path", "")) if name == "rootfile" else None)
        if not found:
            raise DataError("names no content: it is damaged")
        chapters, metadata = _package(archive.read(found[0]), posixpath.dirname(found[0]))
        hidden = _encrypted(archive.read("META-INF/encryption.xml")) if "META-INF/encryption.xml" in archive else set()
        if hidden.intersection(chapters):
            raise DataError("is protected against copying (DRM), so its text cannot be read")
        missing = [chapter for chapter in chapters if chapter not in archive]
        if missing:
            notes.append(f"{len(missing):,} of its {len(chapters):,} chapters are not in the archive")
        for number, chapter in enumerate(chapters, start=1):
            if chapter not in archive:
                continue
            begin = text.size + 2 * bool(text.size)
            add_html(text, decode_text(archive.read(chapter) or b" ", Path(chapter))[0])
            if text.size > begin:
                text.marks.append(Mark("chapter", Span(begin, text.size), {"number": number}))
        return metadata


def _package(data: bytes, folder: str) -> tuple[list[str], dict[str, str]]:
    files: dict[str, str] = {}
    order: list[str] = []
    metadata: dict[str, str] = {}
    key = ""

    def start(name: str, attributes: Attributes) -> None:
        nonlocal key
        key = {"title": "title", "creator": "author"}.get(name, "")
        if name == "item" and "html" in attributes.get("media-type", ""):
            path = unquote(attributes.get("href", "").partition("#")[0])
            files[attributes.get("id", "")] = posixpath.normpath(posixpath.join(folder, path))
        elif name == "itemref":
            order.append(attributes.get("idref", ""))

    def said(text: str) -> None:
        if key and text.strip():
            metadata[key] = f"{metadata.get(key, '')}{text}".strip()

    _walk(data, start, said=said)
    return list(dict.fromkeys(files[each] for each in order if each in files)), metadata


def _encrypted(data: bytes) -> set[str]:
    found: set[str] = set()
    _walk(data, lambda name, at: found.add(unquote(at.get("URI", ""))) if name == "CipherReference" else None)
    return found
