"""PDF: its text page by page, by pypdfium2, with page marks."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterator, Sequence
from contextlib import suppress
from functools import cache
from typing import Any

from chunkcore.files import UnreadError
from chunkcore.lazy import needed
from chunkcore.reading import base
from chunkcore.reading.base import Reader, Reading, listed, readers
from chunkcore.reading.encodings import is_utf8
from chunkcore.text import Document, Mark, Span

_PAGES = 100_000
_OCR = "recognise it first (OCR)"
_FEWEST = 3  # pages with a line that is their header or footer
# A word at a hyphen between two lines, with hyphens of its own before. PDFium writes U+0002 or U+FFFE for some.
_WORD = "[^\\W\\d_]+"
_DIVIDED = re.compile(
    f"((?:{_WORD}[-\u2010])*{_WORD})(?:[-\u2010\u00ad]\n|[\u0002\ufffe]\n?)({_WORD})"
)
_WORDS = re.compile(f"{_WORD}(?:[-\u2010]{_WORD})*")
# A line that is the number of its page, with what may stand around it.
_PAGE_NUMBER = re.compile(
    r"[-–—·|\s]*(?:(?:page|seite|pagina|página|sida|side|strona|strana|oldal|стр\.?|с\.|p\.|pg\.?|s\.)\s*)?(\d+)"
    r"(?:\s*(?:of|von|de|di|av|af|z|из|/)\s*\d+)?[-–—·|\s]*",
    re.IGNORECASE,
)
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
    running = _Running(pages)
    known = _known_words(pages)
    for number, (lines, label) in enumerate(zip(pages, labels, strict=True), start=1):
        data: dict[str, Any] = {"number": number}
        if label:
            data["label"] = label
        lines = running.taken_out(lines, number, data)
        if not lines:
            continue
        text, divided = _undivided("\n".join(lines), known)
        start = size + 2 * bool(size)
        texts.append(text)
        size = start + len(text)
        marks.append(Mark("page", Span(start, size), data))
        for first, last, printed in divided:
            marks.append(Mark("divided", Span(start + first, start + last), {"printed": printed}))
    return "\n\n".join(texts), tuple(marks)


class _Running:
    """The lines that most pages begin or end with, word for word, and page numbers.

    A line stays where it first stands, so that search finds it; elsewhere it is the page's ``header`` or ``footer``.
    """

    def __init__(self, pages: Sequence[list[str]]) -> None:
        long = [(number, lines) for number, lines in enumerate(pages, start=1) if len(lines) > 2]
        self._lines = {
            place: _running([_pattern(lines[place], number) for number, lines in long], len(long))
            for place in _PLACES
        }
        self._shown: set[tuple[int, str]] = set()

    def taken_out(self, lines: Sequence[str], number: int, data: dict[str, Any]) -> list[str]:
        """The page's other lines; its header and footer go into `data`."""
        kept = list(lines)
        if len(lines) <= 2:
            return kept
        for place, key in _PLACES.items():
            pattern = _pattern(lines[place], number)
            if pattern not in self._lines[place]:
                continue
            if (place, pattern) in self._shown:
                data[key] = _SIGNS.sub("", kept.pop(place))
            self._shown.add((place, pattern))
        return kept


_PLACES = {0: "header", -1: "footer"}


def _running(patterns: Sequence[str], pages: int) -> set[str]:
    counts = Counter(patterns)
    return {pattern for pattern, count in counts.items() if count >= _FEWEST and 2 * count > pages}


def _pattern(line: str, number: int) -> str:
    """The line; of a page number how far it is from the page's place in the file."""
    match = _PAGE_NUMBER.fullmatch(line)
    if match is None:
        return line
    before, after = line[: match.start(1)], line[match.end(1) :]
    return f"{before}{int(match[1]) - number:+}{after}"


def _known_words(pages: Sequence[list[str]]) -> Counter[str]:
    """How often the document has each word inside a line, in lower case; with hyphens and each part alone, too."""
    words: Counter[str] = Counter()
    for line in (line for lines in pages for line in lines):
        for match in _WORDS.finditer(line):
            if match.end() < len(line.rstrip("-\u2010\u00ad\u0002\ufffe")) or line[-1].isalnum():
                words[match[0].lower().replace("\u2010", "-")] += 1
    return words


def _undivided(text: str, known: Counter[str]) -> tuple[str, list[tuple[int, int, str]]]:
    """The text with words joined that a hyphen divides; and the place and the printed form of each such word.

    A word is joined where it is `known` in one of its forms, without the hyphen or with it; else it stays as printed.
    """
    parts: list[str] = []
    divided: list[tuple[int, int, str]] = []
    size = end = 0
    for match in _DIVIDED.finditer(text):
        word = _joined_word(match[1], match[2], known)
        if not word:
            continue
        before = _plain(text[end : match.start()])
        parts += [before, word]
        size += len(before) + len(word)
        hyphen = "\u2010" if "\u2010" in match[0] else "-"
        divided.append((size - len(word), size, f"{match[1]}{hyphen}\n{match[2]}"))
        end = match.end()
    return "".join([*parts, _plain(text[end:])]), divided


def _joined_word(first: str, second: str, known: Counter[str]) -> str:
    """The word of two halves: the form that the document has elsewhere, or a word list; "" where none has it."""
    if not second[0].islower():
        return ""
    whole, hyphened = first + second, f"{first}-{second}"
    counts = known[whole.lower()], known[hyphened.lower().replace("\u2010", "-")]
    if any(counts):
        return whole if counts[0] >= counts[1] else hyphened
    return whole if _is_listed(whole) else ""


def _is_listed(word: str) -> bool:
    """Whether a word list has the word; without the package pyspellchecker none has it."""
    return any(word.lower() in _word_list(language) for language in _LANGUAGES)


@cache
def _word_list(language: str) -> Container[str]:
    try:
        from spellchecker import SpellChecker
    except ImportError:
        return ()
    words: Container[str] = SpellChecker(language, distance=1).word_frequency
    return words


_LANGUAGES = ("en", "de", "fr", "es")


def _plain(text: str) -> str:
    """Without control characters; a hyphen at a line's end for each of PDFium's marks of one."""
    return _SIGNS.sub("", re.sub("[\u0002\ufffe]\n?", "-\n", text))
