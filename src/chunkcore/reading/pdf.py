"""PDF: its text page by page, by pypdfium2, with page marks."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
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
        labels: list[str] = []
        pages: list[list[str]] = []
        pdf = _opened(data, name)
        for label, lines in _pages(pdf):
            labels.append(label)
            pages.append(lines)
        scanned = [number for number, lines in enumerate(pages, start=1) if not lines]
        if len(scanned) == len(pages):
            count = "1 page" if len(pages) == 1 else f"{len(pages):,} pages"
            raise UnreadError(name, f"is scanned: {count} without text; {_OCR}")
        text, marks = _joined(pages, labels)
        metadata = {"format": "prose"}
        for key in ("Title", "Author"):
            value = _SIGNS.sub("", pdf.get_metadata_value(key)).strip()
            if value:
                metadata[key.lower()] = value[:1000]
        notes = []
        if scanned:
            word = "page" if len(scanned) == 1 else "pages"
            notes.append(f"scanned: no text on {word} {listed(scanned)} of {len(pages):,}; {_OCR}")
        return Reading(Document(name, text, metadata, marks), tuple(notes))


def _opened(data: bytes, name: str) -> Any:
    pdfium = needed("pypdfium2", "files", "read PDF")
    try:
        pdf = pdfium.PdfDocument(data)
    except pdfium.PdfiumError as error:
        reason = "is no PDF, or is broken: mend it, or take it out"
        if re.search("password|security", str(error).lower()):
            reason = "is encrypted: remove its password, or take it out"
        raise UnreadError(name, reason) from error
    if len(pdf) > _PAGES:
        reason = f"has {len(pdf):,} pages, over {_PAGES:,}: split it, or take it out"
        raise UnreadError(name, reason)
    return pdf


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
    start = 0
    running = _running(pages)
    known = _known_words(pages)
    for number, (page, label) in enumerate(zip(pages, labels, strict=True)):
        data: dict[str, Any] = {"number": number + 1}
        if label:
            data["label"] = label
        lines = list(page)
        for place, key in running[number].items():
            data[key] = _SIGNS.sub("", lines.pop(place))
        if not lines:
            continue
        text, divided = _undivided("\n".join(lines), known, start)
        marks.append(Mark("page", Span(start, start + len(text)), data))
        marks += divided
        texts.append(text)
        start += len(text) + len(_BETWEEN)
    return _BETWEEN.join(texts), tuple(marks)


_BETWEEN = "\n\n"
_PLACES = {0: "header", -1: "footer"}


def _running(pages: Sequence[list[str]]) -> list[dict[int, str]]:
    """For each page, the places of its lines that most pages begin or end with, word for word; and page numbers.

    Where such a line first stands, it is text, so that search finds it.
    """
    running: list[dict[int, str]] = [{} for _ in pages]
    long = [number for number, lines in enumerate(pages) if len(lines) > 2]
    for place, key in _PLACES.items():
        patterns = [_pattern(pages[number][place], number) for number in long]
        counts = Counter(patterns)
        shown: set[str] = set()
        for number, pattern in zip(long, patterns, strict=True):
            if counts[pattern] < _FEWEST or 2 * counts[pattern] <= len(long):
                continue
            if pattern in shown:
                running[number][place] = key
            shown.add(pattern)
    return running


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
    for lines in pages:
        for line in lines:
            size = len(line.rstrip(_HYPHENS))
            for match in _WORDS.finditer(line):
                if match.end() < size or size == len(line):
                    words[_spelled(match[0])] += 1
    return words


_HYPHENS = "-\u2010\u00ad\u0002\ufffe"


def _spelled(word: str) -> str:
    return word.lower().replace("\u2010", "-")


def _undivided(text: str, known: Counter[str], start: int) -> tuple[str, list[Mark]]:
    """The text with words joined that a hyphen divides, and a mark for each; the text begins at `start`.

    A word is joined where it is `known` in one of its forms, without the hyphen or with it; else it stays as printed.
    """
    joined = ""
    marks: list[Mark] = []
    end = 0
    for match in _DIVIDED.finditer(text):
        word = _joined_word(match[1], match[2], known)
        if not word:
            continue
        joined += _plain(text[end : match.start()])
        begin = start + len(joined)
        joined += word
        hyphen = "\u2010" if "\u2010" in match[0] else "-"
        printed = {"printed": f"{match[1]}{hyphen}\n{match[2]}"}
        marks.append(Mark("divided", Span(begin, begin + len(word)), printed))
        end = match.end()
    return joined + _plain(text[end:]), marks


def _joined_word(first: str, second: str, known: Counter[str]) -> str:
    """The word of two halves: the form that the document has elsewhere, or a word list; "" where none has it."""
    if not second[0].islower():
        return ""
    whole, hyphened = first + second, f"{first}-{second}"
    times, times_hyphened = known[whole.lower()], known[_spelled(hyphened)]
    if times < times_hyphened:
        return hyphened
    return whole if times or _is_listed(whole) else ""


def _is_listed(word: str) -> bool:
    """Whether a word list has the word; without the package pyspellchecker none has it."""
    return any(word.lower() in _word_list(language) for language in _LANGUAGES)


@cache
def _word_list(language: str) -> frozenset[str]:
    try:
        from spellchecker import SpellChecker
    except ImportError:
        return frozenset()
    return frozenset(SpellChecker(language, distance=1).word_frequency.keys())


_LANGUAGES = ("en", "de", "fr", "es")


def _plain(text: str) -> str:
    """Without control characters; a hyphen at a line's end for each of PDFium's marks of one."""
    return _SIGNS.sub("", re.sub("[\u0002\ufffe]\n?", "-\n", text))
