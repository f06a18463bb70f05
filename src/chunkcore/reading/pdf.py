"""PDF: its text page by page, by pypdfium2, with page marks."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

from chunkcore.files import UnreadError
from chunkcore.lazy import needed
from chunkcore.reading import base
from chunkcore.reading.base import Reader, Reading, listed, readers
from chunkcore.reading.opening import is_utf8
from chunkcore.text import Document, Mark, Span

_PAGES = 100_000
_OCR = "recognise it first (OCR)"
_FEWEST = 3  # pages with a line that is their header or footer
# A word that a hyphen divides between two lines. PDFium writes U+0002 or U+FFFE for hyphens that it takes for such.
_DIVIDED = re.compile("([^\\W\\d_]+)(?:[-\u2010\u00ad]\n|[\u0002\ufffe]\n?)([^\\W\\d_]+)")
_SIGNS = re.compile("[\u0000-\u0008\u000b-\u001f\u007f\u00ad\ufffe\uffff]")


@readers.register("PDF")
class Pdf(Reader):
    """A PDF: its lines in the order of PDFium, a blank line between pages.

    Marks: ``page`` with ``number`` and where known ``label``. A first or last line that most pages share, but for its
    digits, is the mark's ``header`` or ``footer``, and no text. A word that a hyphen divides between two lines
    is joined, with a mark ``divided`` whose ``printed`` is the word as it is printed. Pages without text, such as
    scanned ones, keep their numbers and are told in a note.
    """

    endings = ("pdf",)
    magic = b"%PDF-"

    def recognises(self, head: bytes) -> bool:
        # Some begin with other bytes. A text that speaks of the mark is UTF-8, which a PDF's second line is not.
        begin = head.find(self.magic)
        return begin >= 0 and (not head[:begin].strip() or not is_utf8([head]))

    def read(self, data: bytes, name: str) -> Reading:
        pdfium = needed("pypdfium2", "files", "read PDF")
        try:
            pdf = pdfium.PdfDocument(data)
        except pdfium.PdfiumError as error:
            is_locked = "password" in str(error).lower() or "security" in str(error).lower()
            locked = "is encrypted: remove its password, or take it out"
            reason = locked if is_locked else "is no PDF, or is broken: mend it, or take it out"
            raise UnreadError(name, reason) from error
        if len(pdf) > _PAGES:
            raise UnreadError(
                name, f"has {len(pdf):,} pages, over {_PAGES:,}: split it, or take it out"
            )
        labels, pages = zip(*_pages(pdf), strict=True) if len(pdf) else ((), ())
        scanned = [number for number, lines in enumerate(pages, start=1) if not lines]
        if len(scanned) == len(pages):
            raise UnreadError(
                name,
                f"is scanned: {len(pages):,} page{'s' * (len(pages) != 1)} without text; {_OCR}",
            )
        text, marks = _joined(pages, labels)
        numbers = f"page{'s' * (len(scanned) > 1)} {listed(scanned)}"
        notes = [f"scanned: no text on {numbers} of {len(pages):,}; {_OCR}"] if scanned else []
        named = {
            key.lower(): _SIGNS.sub("", pdf.get_metadata_value(key)).strip()[:1000]
            for key in ("Title", "Author")
        }
        metadata = {"format": "prose"} | {key: value for key, value in named.items() if value}
        return Reading(Document(name, text, metadata, marks), tuple(notes))


def _pages(pdf: Any) -> Iterator[tuple[str, list[str]]]:
    """The label and the lines of each page; a page that cannot be read has none."""
    from pypdfium2 import PdfiumError

    for number in range(len(pdf)):
        base.on_reached(f"page {number + 1:,}")
        label, text = "", ""
        with suppress(PdfiumError):
            label = _SIGNS.sub("", pdf.get_page_label(number))[:40]
        with suppress(PdfiumError):
            page = pdf.get_page(number)
            text = page.get_textpage().get_text_range()
            page.close()
        lines = [line.strip(" \t") for line in text.replace("\r\n", "\n").split("\n")]
        yield label, [line for line in lines if line]


def _joined(pages: Sequence[list[str]], labels: Sequence[str]) -> tuple[str, tuple[Mark, ...]]:
    texts: list[str] = []
    marks: list[Mark] = []
    size = 0
    headers, footers = _running(pages, 0), _running(pages, -1)
    for number, (lines, label) in enumerate(zip(pages, labels, strict=True), start=1):
        data: dict[str, Any] = {"number": number} | ({"label": label} if label else {})
        lines, is_long = list(lines), len(lines) > 2
        for place, key, running in ((0, "header", headers), (-1, "footer", footers)):
            if is_long and _pattern(lines[place]) in running:
                data[key] = _SIGNS.sub("", lines.pop(place))
        if not lines:
            continue
        text, divided = _undivided("\n".join(lines))
        start = size + 2 * bool(size)
        texts.append(text)
        size = start + len(text)
        marks.append(Mark("page", Span(start, size), data))
        marks += [
            Mark("divided", Span(start + a, start + b), {"printed": printed})
            for a, b, printed in divided
        ]
    return "\n\n".join(texts), tuple(marks)


def _undivided(text: str) -> tuple[str, list[tuple[int, int, str]]]:
    """The text with divided words joined; and the place and the printed form of each such word."""
    parts: list[str] = []
    divided: list[tuple[int, int, str]] = []
    size = end = 0
    for match in _DIVIDED.finditer(text):
        if match[2][0].islower():
            before = _plain(text[end : match.start()])
            word = match[1] + match[2]
            parts += [before, word]
            size += len(before) + len(word)
            hyphen = "\u2010" if "\u2010" in match[0] else "-"
            divided.append((size - len(word), size, f"{match[1]}{hyphen}\n{match[2]}"))
            end = match.end()
    return "".join([*parts, _plain(text[end:])]), divided


def _plain(text: str) -> str:
    """Without control characters; a hyphen for each of PDFium's marks of one."""
    return _SIGNS.sub("", text.replace("\u0002", "-").replace("\ufffe", "-"))


def _running(pages: Sequence[list[str]], place: int) -> set[str]:
    """The patterns of the first or last lines that most pages share, of pages with three lines or more."""
    counts = Counter(_pattern(lines[place]) for lines in pages if len(lines) > 2)
    return {
        pattern for pattern, count in counts.items() if count >= _FEWEST and 2 * count > len(pages)
    }


def _pattern(line: str) -> str:
    return re.sub(r"\d+", "#", line)
