"""Word, PowerPoint and EPUB through MarkItDown; Excel through openpyxl. All are ZIP files."""

from __future__ import annotations

import re
from io import BytesIO

from chunkcore.archives import ArchiveMembers
from chunkcore.document import Document, Mark, Span
from chunkcore.files import UnreadError
from chunkcore.lazy import needed
from chunkcore.reading import base
from chunkcore.reading.base import Reader, Reading, readers
from chunkcore.reading.markup import table

_ZIP = b"PK\x03\x04"
_NO_HEADER = re.compile(r"^\|(?:  \|)+\n(\|(?: --- \|)+)\n(\|.*)$", re.MULTILINE)  # of a table without <th>
_SLIDE = re.compile(r"<!-- Slide number: (\d+) -->\n?")
_LOCKS = "META-INF/encryption.xml"
_TITLE = "p[style-name='Title'] => h1:fresh"


class _Packed(Reader):
    """What these formats share: the archive, which is first unpacked within limits, and a file that tells its kind."""

    magic = _ZIP
    telling = b""

    def recognises(self, head: bytes) -> bool:
        return head.startswith(_ZIP) and self.telling in head

    def read(self, data: bytes, name: str) -> Reading:
        archive = ArchiveMembers(BytesIO(data), name)
        locks = archive.read(_LOCKS) if _LOCKS in archive else b""
        if re.search(rb'URI="[^"]*html?"', locks):  # fonts alone may be locked
            raise UnreadError(name, "is protected against copying (DRM), so its text cannot be read")
        archive.check()
        document = self.document(data, name)
        if not document.text:
            raise UnreadError(name, "has no text: it may hold pictures only")
        return Reading(document)

    def document(self, data: bytes, name: str) -> Document:
        return Document(name, self.markdown(data), {"format": "markdown"})

    def markdown(self, data: bytes) -> str:
        needed("markitdown", "office", f"read {self.name}")
        from markitdown import StreamInfo, converters

        converter = getattr(converters, f"{self.name.title()}Converter")()
        info = StreamInfo(extension=f".{self.name.lower()}")
        text = converter.convert(BytesIO(data), info, style_map=_TITLE).markdown.replace("\r\n", "\n")
        return _NO_HEADER.sub(r"\2\n\1", re.sub(r"\n{3,}", "\n\n", text)).strip()


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
    """Slides as Markdown, notes included; each slide is a ``page`` mark with its ``number``. The extra ``office``."""

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
