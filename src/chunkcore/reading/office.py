"""Word, PowerPoint and EPUB through MarkItDown; Excel through openpyxl; notebooks."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from io import BytesIO
from typing import Any

from chunkcore.boundaries.html import without_hidden
from chunkcore.files import UnreadError
from chunkcore.lazy import needed
from chunkcore.reading import base, word
from chunkcore.reading.base import Reader, Reading, left_out, listed, readers
from chunkcore.reading.html import fenced
from chunkcore.text import Document, Mark, Span

_ZIP = b"PK\x03\x04"
# The header of a table without <th>.
_NO_HEADER = re.compile(r"^\|(?:  \|)+\n(\|(?: --- \|)+)\n(\|.*)$", re.MULTILINE)
_SLIDE = re.compile(r"<!-- Slide number: (\d+) -->\n?")
_PICTURE = re.compile(r"data:[\w.+/-]+;base64,[A-Za-z0-9+/=\s]{40,}")
_FORMULA = b"<f"
_LOCKS = "META-INF/encryption.xml"
_TITLE = "p[style-name='Title'] => h1:fresh"


class _Packed(Reader):
    """What these formats share: the archive, which is first unpacked within limits, and a file that tells its kind."""

    magic = _ZIP
    telling = b""

    def recognises(self, head: bytes) -> bool:
        return head.startswith(_ZIP) and self.telling in head

    def read(self, data: bytes, name: str) -> Reading:
        members = unpacked(data, name)
        if re.search(rb'URI="[^"]*html?"', members.get(_LOCKS, b"")):  # fonts alone may be locked
            raise UnreadError(
                name, "is protected against copying (DRM), so its text cannot be read"
            )
        reading = self.reading(data, members, name)
        if not reading.document.text:
            raise UnreadError(name, "has no text: it may hold pictures only")
        return Reading(reading.document, (*reading.notes, *left_out(word.texts_apart(data))))

    def reading(self, data: bytes, members: Mapping[str, bytes], name: str) -> Reading:
        return Reading(Document(name, self.markdown(data), {"format": "markdown"}))

    def markdown(self, data: bytes) -> str:
        """The file as Markdown, by MarkItDown's converter of its kind."""
        needed("markitdown", "office", f"read {self.name}")
        from markitdown import StreamInfo, converters

        converter = getattr(converters, f"{self.name.title()}Converter")()
        info = StreamInfo(extension=f".{self.name.lower()}")
        # No marks for bold and italics: they would stand inside words.
        plain = {"escape_underscores": False, "escape_asterisks": False, "strong_em_symbol": ""}
        converted = converter.convert(BytesIO(data), info, style_map=_TITLE, **plain)
        text = converted.markdown.replace("\r\n", "\n")
        text = re.sub(r"\n{3,}", "\n\n", text).strip()
        return _NO_HEADER.sub(r"\2\n\1", text)


@readers.register("notebook")
class Notebook(Reader):
    """A Jupyter notebook as Markdown: its texts and code; no outputs, no pictures."""

    endings = ("ipynb",)

    def read(self, data: bytes, name: str) -> Reading:
        notebook = json.loads(data.decode("utf-8-sig"))
        metadata = notebook.get("metadata", {})
        language = metadata.get("kernelspec", {}).get("language")
        language = language or metadata.get("language_info", {}).get("name") or "python"
        blocks = [_cell(cell, str(language).lower()) for cell in notebook["cells"]]
        text = "\n\n".join(filter(None, blocks)).strip()
        if not text:
            raise UnreadError(name, "is a notebook without a text: take it out")
        return Reading(Document(name, _PICTURE.sub("data:", text), {"format": "markdown"}))


def _cell(cell: Mapping[str, Any], language: str) -> str:
    source = "".join(cell.get("source", ""))
    if not source.strip():
        return ""
    if cell.get("cell_type") == "markdown":
        return source.strip("\n")
    return fenced(source, language if cell.get("cell_type") == "code" else "")


@readers.register("DOCX")
class Docx(_Packed):
    """A Word document as Markdown: headings, lists, tables, notes, text boxes, equations. The extra ``office``.

    Headers and footers of pages, comments, titles of charts and hidden text are told in notes.
    """

    endings = ("docx", "docm", "dotx")
    telling = b"word/"

    def reading(self, data: bytes, members: Mapping[str, bytes], name: str) -> Reading:
        prepared, has_hidden = word.prepared(data)
        document = super().reading(prepared, members, name).document
        document = replace(document, text=word.numbered(document.text))
        notes = ("texts marked as hidden are left out",) if has_hidden else ()
        return Reading(document, notes)


@readers.register("EPUB")
class Epub(_Packed):
    """An e-book as Markdown: title and authors, then its chapters in reading order, without what they hide.

    The extra ``office``.
    """

    endings = ("epub",)
    telling = b"application/epub+zip"

    def markdown(self, data: bytes) -> str:
        members = word.members_of(data)
        for name in members:
            if name.endswith("html"):
                shown = without_hidden(members[name].decode("latin-1"))
                members[name] = shown.encode("latin-1")
        return super().markdown(word.packed(members))


@readers.register("PPTX")
class Pptx(_Packed):
    """Slides as Markdown, with notes; each is a ``page`` (``number``) and a ``section``. The extra ``office``."""

    endings = ("pptx", "pptm")
    telling = b"ppt/"

    def reading(self, data: bytes, members: Mapping[str, bytes], name: str) -> Reading:
        pieces = _SLIDE.split(self.markdown(data))  # before the first slide, then numbers and texts
        texts, marks, size = [], [], 0
        for number, piece in zip(pieces[1::2], map(str.strip, pieces[2::2]), strict=True):
            if piece:
                start = size + 2 * bool(size)
                size = start + len(piece)
                texts.append(piece)
                marks.append(Mark("page", Span(start, size), {"number": int(number)}))
                marks.append(Mark("section", Span(start, size)))
        text = "\n\n".join(texts)
        return Reading(Document(name, text, {"format": "markdown"}, tuple(marks)))


@readers.register("XLSX")
class Xlsx(_Packed):
    """A workbook as Markdown: each sheet a heading and a table of its values. The extra ``office``.

    Hidden sheets, comments, titles of charts and text boxes are told in notes.
    """

    endings = ("xlsx", "xlsm")
    telling = b"xl/"

    def reading(self, data: bytes, members: Mapping[str, bytes], name: str) -> Reading:
        openpyxl = needed("openpyxl", "office", "read XLSX")
        book = openpyxl.load_workbook(BytesIO(data), read_only=True, data_only=True)
        formulas = None
        if any(_FORMULA in head or len(head) == _BLOCK for head in members.values()):
            formulas = openpyxl.load_workbook(BytesIO(data), read_only=True)
        sheets = []
        shown: list[str] = []  # the cells that show a formula
        hidden = [sheet.title for sheet in book.worksheets if sheet.sheet_state != "visible"]
        for sheet in book.worksheets:
            if sheet.title in hidden:
                continue
            base.on_reached(f"sheet {sheet.title[:50]!r}")
            other = None if formulas is None else formulas[sheet.title]
            text = table(_sheet_rows(sheet, other, shown))
            if text:
                sheets.append(f"## {' '.join(sheet.title.split())}\n\n{text}")
        document = Document(name, "\n\n".join(sheets), {"format": "markdown"})
        notes = []
        if hidden:
            notes.append(f"hidden sheets are left out: {listed(hidden)}")
        if shown:
            cells = "cell" if len(shown) == 1 else "cells"
            notes.append(
                f"no program has computed {cells} {listed(shown)}: the formula is shown; open it and save it"
            )
        return Reading(document, tuple(notes))


def _sheet_rows(sheet: Any, formulas: Any, shown: list[str]) -> Iterator[list[str]]:
    """A sheet's rows; where a value is missing, its formula, whose cell is added to `shown`."""
    get_column_letter = needed("openpyxl.utils", "office", "read XLSX").get_column_letter
    sheet.reset_dimensions()  # what the file says of them may be false
    values = sheet.iter_rows(values_only=True)
    if formulas is None:
        yield from map(_cells, values)
        return
    formulas.reset_dimensions()
    pairs = zip(values, formulas.iter_rows(values_only=True), strict=False)
    for number, (row, others) in enumerate(pairs, start=1):
        cells = list(row)
        for column, (value, other) in enumerate(zip(row, others, strict=False), start=1):
            formula = str(getattr(other, "text", other))
            if value is None and formula.startswith("="):
                cells[column - 1] = formula
                shown.append(f"{sheet.title}!{get_column_letter(column)}{number}")
        yield _cells(cells)


def _cells(row: Iterable[object]) -> list[str]:
    cells = ["" if value is None else str(value) for value in row]
    while cells and not cells[-1]:
        cells.pop()
    return cells


def table(rows: Iterable[Sequence[str]]) -> str:
    r"""A Markdown table, the first row its header; no row is filled up, and rows without text are left out.

    >>> table([["Kind", "Heat"], ["black"]])
    '| Kind | Heat |\n| --- | --- |\n| black |'
    """
    lines = []
    for row in rows:
        cells = [" ".join(cell.split()).replace("|", "\\|") for cell in row]
        if any(cells):
            lines.append(f"| {' | '.join(cells)} |")
            if len(lines) == 1:
                lines.append(f"|{' --- |' * len(cells)}")
    return "\n".join(lines)


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


_BLOCK = 1024**2
RATIO = 50  # text is packed to a fifth or so; bombs to a thousandth
ALWAYS = 64 * 1024**2  # bytes that are unpacked at any ratio
MEMBERS = 10_000


def unpacked(data: bytes, name: str) -> dict[str, bytes]:
    """The first bytes of an archive's members, all of which are unpacked once within limits: a header may misstate a
    size.

    Raises `UnreadError`: no archive, or a damaged one; over 10,000 members; or they unpack to over 50 times the file,
    and over 64 MB.
    """
    from zipfile import BadZipFile, ZipFile  # slow to import

    room = max(ALWAYS, RATIO * len(data))
    heads = {}
    try:
        archive = ZipFile(BytesIO(data))
        members = archive.infolist()
        if len(members) > MEMBERS:
            reason = f"has {len(members):,} files, over {MEMBERS:,}: nothing is unpacked"
            raise UnreadError(name, reason)
        for member in members:
            with archive.open(member) as file:
                heads[member.filename] = block = file.read(_BLOCK)
                while block:
                    room -= len(block)
                    if room < 0:
                        reason = f"unpacks to over {RATIO} times its size: it is not unpacked"
                        raise UnreadError(name, reason)
                    block = file.read(_BLOCK)
    except (BadZipFile, zlib.error, RuntimeError, EOFError, OSError) as error:
        raise UnreadError(name, f"is damaged or encrypted, or no ZIP file: {error}") from error
    return heads
