"""Word, PowerPoint, EPUB and notebooks through MarkItDown; Excel through openpyxl."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Sequence
from io import BytesIO

from chunkcore.files import UnreadError
from chunkcore.lazy import needed
from chunkcore.reading import base
from chunkcore.reading.base import Reader, Reading, readers
from chunkcore.text import Document, Mark, Span

_ZIP = b"PK\x03\x04"
_NO_HEADER = re.compile(
    r"^\|(?:  \|)+\n(\|(?: --- \|)+)\n(\|.*)$", re.MULTILINE
)  # of a table without <th>
_SLIDE = re.compile(r"<!-- Slide number: (\d+) -->\n?")
_PICTURE = re.compile(r"data:[\w.+/-]+;base64,[A-Za-z0-9+/=\s]{40,}")
_LOCKS = "META-INF/encryption.xml"
_TITLE = "p[style-name='Title'] => h1:fresh"


class _Packed(Reader):
    """What these formats share: the archive, which is first unpacked within limits, and a file that tells its kind."""

    magic = _ZIP
    telling = b""

    def recognises(self, head: bytes) -> bool:
        return head.startswith(_ZIP) and self.telling in head

    def read(self, data: bytes, name: str) -> Reading:
        if re.search(
            rb'URI="[^"]*html?"', unpacked(data, name).get(_LOCKS, b"")
        ):  # fonts alone may be locked
            raise UnreadError(
                name, "is protected against copying (DRM), so its text cannot be read"
            )
        document = self.document(data, name)
        if not document.text:
            raise UnreadError(name, "has no text: it may hold pictures only")
        return Reading(document)

    def document(self, data: bytes, name: str) -> Document:
        return Document(name, self.markdown(data), {"format": "markdown"})

    def markdown(self, data: bytes) -> str:
        return _NO_HEADER.sub(r"\2\n\1", _converted(data, self.name))


def _converted(data: bytes, kind: str) -> str:
    """A file as Markdown, by MarkItDown's converter of its kind."""
    needed("markitdown", "office", f"read {kind}")
    from markitdown import StreamInfo, converters

    converter = getattr(converters, f"{kind.title()}Converter")()
    info = StreamInfo(extension=f".{kind.lower()}")
    text = converter.convert(BytesIO(data), info, style_map=_TITLE).markdown.replace("\r\n", "\n")
    return re.sub(r"\n{3,}", "\n\n", text).strip()


@readers.register("notebook")
class Notebook(Reader):
    """A Jupyter notebook as Markdown: its texts and code; no outputs, no pictures. The extra ``office``."""

    endings = ("ipynb",)

    def read(self, data: bytes, name: str) -> Reading:
        text = _PICTURE.sub("data:", _converted(data, "ipynb"))
        if not text:
            raise UnreadError(name, "is a notebook without a text: take it out")
        return Reading(Document(name, text, {"format": "markdown"}))


@readers.register("DOCX")
class Docx(_Packed):
    """A Word document as Markdown: headings, lists, tables, notes. The extra ``office``."""

    endings = ("docx", "docm", "dotx")
    telling = b"word/"


@readers.register("EPUB")
class Epub(_Packed):
    """An e-book as Markdown: title and authors, then its chapters in reading order. The extra ``office``."""

    endings = ("epub",)
    telling = b"application/epub+zip"


@readers.register("PPTX")
class Pptx(_Packed):
    """Slides as Markdown, with notes; each is a ``page`` (``number``) and a ``section``. The extra ``office``."""

    endings = ("pptx", "pptm")
    telling = b"ppt/"

    def document(self, data: bytes, name: str) -> Document:
        pieces = _SLIDE.split(self.markdown(data))  # before the first slide, then numbers and texts
        texts, marks, size = [], [], 0
        for number, piece in zip(pieces[1::2], map(str.strip, pieces[2::2]), strict=True):
            if piece:
                start = size + 2 * bool(size)
                size = start + len(piece)
                texts.append(piece)
                marks.append(Mark("page", Span(start, size), {"number": int(number)}))
                marks.append(Mark("section", Span(start, size)))
        return Document(name, "\n\n".join(texts), {"format": "markdown"}, tuple(marks))


@readers.register("XLSX")
class Xlsx(_Packed):
    """A workbook as Markdown: each sheet a heading and a table of its values. The extra ``office``."""

    endings = ("xlsx", "xlsm")
    telling = b"xl/"

    def markdown(self, data: bytes) -> str:
        openpyxl = needed("openpyxl", "office", "read XLSX")
        book = openpyxl.load_workbook(BytesIO(data), read_only=True, data_only=True)
        sheets = []
        for sheet in book.worksheets:
            base.on_reached(f"sheet {sheet.title[:50]!r}")
            sheet.reset_dimensions()  # what the file says of them may be false
            if rows := table(map(_cells, sheet.iter_rows(values_only=True))):
                sheets.append(f"## {' '.join(sheet.title.split())}\n\n{rows}")
        return "\n\n".join(sheets)


def _cells(row: tuple[object, ...]) -> list[str]:
    cells = ["" if value is None else str(value) for value in row]
    while cells and not cells[-1]:
        cells.pop()
    return cells


def table(rows: Iterable[Sequence[str]]) -> str:
    r"""A Markdown table, the first row its header; no row is filled up, and rows without text are left out.

    >>> table([["Kind", "Heat"], ["black"]])
    '| Kind | Heat |\n| --- | --- |\n| black |'
    """
    lines: list[str] = []
    for row in rows:
        if any(cell.strip() for cell in row):
            lines.append(
                f"| {' | '.join(' '.join(cell.split()).replace('|', chr(92) + '|') for cell in row)} |"
            )
            if len(lines) == 1:
                lines.append(f"|{' --- |' * len(row)}")
    return "\n".join(lines)


_BLOCK = 1024**2
_RATIO = 50  # text is packed to a fifth or so; bombs to a thousandth
_ALWAYS = 64 * 1024**2  # bytes that are unpacked at any ratio
_MEMBERS = 10_000


def unpacked(data: bytes, name: str) -> dict[str, bytes]:
    """The first bytes of an archive's members, all of which are unpacked once within limits: a header may misstate a
    size.

    Raises `UnreadError`: no archive, or a damaged one; over 10,000 members; or they unpack to over 50 times the file,
    and over 64 MB.
    """
    from zipfile import BadZipFile, ZipFile  # slow to import

    heads = {}
    room = max(_ALWAYS, _RATIO * len(data))
    try:
        archive = ZipFile(BytesIO(data))
        if len(archive.namelist()) > _MEMBERS:
            raise UnreadError(
                name,
                f"has {len(archive.namelist()):,} files, over {_MEMBERS:,}: nothing is unpacked",
            )
        for member in archive.infolist():
            with archive.open(member) as file:
                heads[member.filename] = block = file.read(_BLOCK)
                while block:
                    room -= len(block)
                    if room < 0:
                        raise UnreadError(
                            name, f"unpacks to over {_RATIO} times its size: it is not unpacked"
                        )
                    block = file.read(_BLOCK)
    except (BadZipFile, zlib.error, RuntimeError, EOFError, OSError) as error:
        raise UnreadError(name, f"is damaged or encrypted, or no ZIP file: {error}") from error
    return heads
