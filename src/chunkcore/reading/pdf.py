"""PDF: its text page by page, by pypdfium2, with page marks."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from chunkcore.files import UnreadError
from chunkcore.lazy import needed
from chunkcore.reading import base
from chunkcore.reading.base import Reader, Reading, excerpts, listed
from chunkcore.reading.encodings import is_utf8
from chunkcore.text import Document, Mark, Span

_PAGES = 100_000
_OCR = "recognise it first (OCR)"
_FEWEST = 3  # pages with a line that is their header or footer
# A word at a hyphen between two lines, with hyphens of its own before. PDFium writes U+0002 or U+FFFE for some.
_WORD = "[^\\W_]+"
_DIVIDED = re.compile(
    f"((?:{_WORD}[-\u2010])*{_WORD})(?:[-\u2010\u00ad]\n|[\u0002\ufffe]\n?)({_WORD})"
)
_WORDS = re.compile(f"{_WORD}(?:[-\u2010]{_WORD})*")
# A line that is the number of its page, with what may stand around it: "Page 3 of 9", "Of tea | 3", "Tea, page 3";
# and as Chrome prints it: "https://example.org/tea 3/9".
_PAGE = r"(?:page|seite|pagina|página|sida|side|strona|strana|oldal|sivu|sayfa|стр\.?|с\.|p\.|pg\.?|s\.)\s*"
_PAGE_NUMBER = re.compile(
    rf"(?i)(?:[-–—·|\s]*|.*[|·•]\s*|.*\s(?={_PAGE}\d)|\w+://\S+\s+)(?:{_PAGE})?(\d+)"
    r"(?:\s*(?:of|von|van|de|di|sur|av|af|z|из|/)\s*\d+(?:\s.*)?)?(?:[-–—·|\s]*|\s*[|·•].*)"
)
_SIGNS = re.compile("[\u0000-\u0008\u000b-\u001f\u007f\u00ad\ufffe\uffff]")


class Pdf(Reader):
    """A PDF: its lines in the order of PDFium, a blank line between pages.

    Marks: ``page`` with ``number`` and where known ``label``. First or last lines, up to three, that most pages share,
    but for the page's number, are the mark's ``header`` or ``footer``, and no text. A word that a hyphen divides
    between two lines is joined, with a mark ``divided`` whose ``printed`` is the word as it is printed. What is filled
    into a form or typed over a page is lines at the page's end. Pages without text, such as scanned ones, keep their
    numbers. Notes name these pages, those that PDFium cannot read, comments, and the boxes of forms that are checked.
    """

    endings = ("pdf",)
    magic = b"%PDF-"

    def recognises(self, head: bytes) -> bool:
        # Some begin with other bytes. A text that speaks of the mark is UTF-8, which a PDF's second line is not.
        begin = head.find(self.magic)
        return begin >= 0 and (not head[:begin].strip() or not is_utf8(head))

    def read(self, data: bytes, name: str) -> Reading:
        pdf = _opened(data, name)
        pages = list(_pages(pdf))
        broken = [page.number for page in pages if page.is_broken]
        empty = [page.number for page in pages if not (page.is_broken or page.lines or page.typed)]
        if len(broken) == len(pages):
            raise UnreadError(name, "has no page that PDFium can read: mend it, or take it out")
        if len(broken) + len(empty) == len(pages):
            raise UnreadError(name, f"is scanned: no text on {_places(empty)}; {_OCR}")
        text, marks = _joined(pages)
        metadata = {"format": "prose"}
        for key in ("Title", "Author"):
            value = _SIGNS.sub("", pdf.get_metadata_value(key)).strip()
            if value:
                metadata[key.lower()] = value[:1000]
        comments = [line for page in pages for line in page.comments]
        boxes = [name for page in pages for name in page.checked]
        told = (
            (empty, f"scanned: no text on {_places(empty)} of {len(pages):,}; {_OCR}"),
            (broken, f"PDFium cannot read {_places(broken)} of {len(pages):,}: mend the file"),
            (comments, f"comments are left out: {excerpts(comments)}"),
            (boxes, f"boxes of a form are left out; checked are {excerpts(boxes)}"),
        )
        notes = tuple(note for found, note in told if found)
        return Reading(Document(name, text, metadata, marks), notes)


def _places(numbers: Sequence[int]) -> str:
    word = "page" if len(numbers) == 1 else "pages"
    return f"{word} {listed(numbers)}"


def _opened(data: bytes, name: str) -> Any:
    pdfium = needed("pypdfium2", "files", "read PDF")
    try:
        pdf = pdfium.PdfDocument(data)
    except pdfium.PdfiumError as error:
        reason = "is no PDF, or is broken: mend it, or take it out"
        if re.search("password|security", str(error).lower()):
            reason = "is encrypted: remove its password, or take it out"
        raise UnreadError(name, reason) from error
    with suppress(pdfium.PdfiumError):
        pdf.init_forms()
    if len(pdf) > _PAGES:
        raise UnreadError(
            name, f"has {len(pdf):,} pages, over {_PAGES:,}: split it, or take it out"
        )
    return pdf


@dataclass
class _Page:
    number: int
    label: str = ""
    lines: list[str] = field(default_factory=list)
    typed: list[str] = field(default_factory=list)  # lines that were typed over the page
    comments: list[str] = field(default_factory=list)
    checked: list[str] = field(default_factory=list)  # names of boxes
    is_broken: bool = False


def _pages(pdf: Any) -> Iterator[_Page]:
    from pypdfium2 import PdfiumError

    for index in range(len(pdf)):
        page = _Page(index + 1)
        base.on_reached(f"page {page.number:,}")
        with suppress(PdfiumError):
            page.label = _SIGNS.sub("", pdf.get_page_label(index))[:40]
        try:
            handle = pdf.get_page(index)
            page.lines = _lines("\n".join(_rows(handle.get_textpage())))
            _add_annotations(page, handle, pdf.formenv)
            handle.close()
        except PdfiumError:
            page.is_broken = True
        yield page


def _lines(text: str) -> list[str]:
    lines = [line.strip(" \t") for line in re.split("\r\n?|\n", text)]
    return [line for line in lines if line]


def _rows(page: Any) -> list[str]:
    """The page's lines. Of short cells alone PDFium tears rows, or takes several for one: these are mended."""
    from pypdfium2 import raw

    def box(place: int) -> Any:
        area = raw.FS_RECTF()
        index = raw.FPDFText_GetCharIndexFromTextIndex(page, place)
        raw.FPDFText_GetLooseCharBox(page, index, area)
        return area

    rows = [""]
    before = box(0)  # the last character
    start = 0
    for line in page.get_text_range().split("\r\n"):
        is_one = _are_level(box(start), box(start + len(line) - 1))
        pieces = [line] if is_one else line.split(" ")
        for number, piece in enumerate(pieces):
            first = box(start)
            # Inside of a line only a return to the left begins another one.
            if before.left < first.right and (number or _are_level(before, first)):
                rows[-1] += f" {piece}"
            else:
                rows.append(piece)
            before = box(start + len(piece) - 1)
            start += len(piece) + 1
        start += 1
    return rows


def _are_level(box: Any, other: Any) -> bool:
    """Whether one's middle is about as high as the other's."""
    return bool(abs(box.top + box.bottom - other.top - other.bottom) < box.top - box.bottom)


def _add_annotations(page: _Page, handle: Any, form: Any) -> None:
    """Add to the page what stands over it: fields of forms, texts and comments."""
    from pypdfium2 import raw

    unseen = raw.FPDF_ANNOT_FLAG_HIDDEN | raw.FPDF_ANNOT_FLAG_NOVIEW
    for index in range(raw.FPDFPage_GetAnnotCount(handle)):
        annotation = raw.FPDFPage_GetAnnot(handle, index)
        kind = raw.FPDFAnnot_GetSubtype(annotation)
        if raw.FPDFAnnot_GetFlags(annotation) & unseen:
            pass
        elif kind == raw.FPDF_ANNOT_WIDGET:
            if form:
                _add_field(page, form, annotation)
        elif kind not in (raw.FPDF_ANNOT_LINK, raw.FPDF_ANNOT_POPUP):
            lines = page.typed if kind == raw.FPDF_ANNOT_FREETEXT else page.comments
            lines += _lines(_string(raw.FPDFAnnot_GetStringValue, annotation, b"Contents"))
        raw.FPDFPage_CloseAnnot(annotation)


_PASSWORD = 1 << 13


def _add_field(page: _Page, form: Any, annotation: Any) -> None:
    """Add the value of a form's field: its text, or the labels of the options that are chosen."""
    from pypdfium2 import raw

    place = form, annotation
    kind = raw.FPDFAnnot_GetFormFieldType(*place)
    if raw.FPDFAnnot_IsChecked(*place):
        label = _string(raw.FPDFAnnot_GetFormFieldAlternateName, *place)
        page.checked.append(label or _string(raw.FPDFAnnot_GetFormFieldName, *place))
    elif kind == raw.FPDF_FORMFIELD_TEXTFIELD:
        if not raw.FPDFAnnot_GetFormFieldFlags(*place) & _PASSWORD:
            page.typed += _lines(_string(raw.FPDFAnnot_GetFormFieldValue, *place))
    elif kind in (raw.FPDF_FORMFIELD_COMBOBOX, raw.FPDF_FORMFIELD_LISTBOX):
        options = range(raw.FPDFAnnot_GetOptionCount(*place))
        chosen = [option for option in options if raw.FPDFAnnot_IsOptionSelected(*place, option)]
        labels = [_string(raw.FPDFAnnot_GetOptionLabel, *place, option) for option in chosen]
        page.typed += labels or _lines(_string(raw.FPDFAnnot_GetFormFieldValue, *place))


def _string(function: Any, *arguments: Any) -> str:
    """A text of PDFium's, which first tells its size in bytes, then writes it."""
    import ctypes

    size = function(*arguments, None, 0)
    buffer = (ctypes.c_uint16 * (size // 2))()
    function(*arguments, buffer, size)
    return bytes(buffer).decode("utf-16-le", "replace").rstrip("\0")


def _joined(pages: Sequence[_Page]) -> tuple[str, tuple[Mark, ...]]:
    texts = []
    marks = []
    start = 0
    printed = [page.lines for page in pages]
    headers = _repeated(printed)
    footers = _repeated([lines[::-1] for lines in printed])
    known = _known_words(printed)
    for page, first, last in zip(pages, headers, footers, strict=True):
        after = len(page.lines) - last
        lines = page.lines[first:after] + page.typed
        if not lines:
            continue
        text, divided = _undivided("\n".join(lines), known, start)
        data = {
            "number": page.number,
            "label": page.label,
            "header": _SIGNS.sub("", "\n".join(page.lines[:first])),
            "footer": _SIGNS.sub("", "\n".join(page.lines[after:])),
        }
        stated = {key: value for key, value in data.items() if value}
        marks.append(Mark("page", Span(start, start + len(text)), stated))
        marks += divided
        texts.append(text)
        start += len(text) + len(_BETWEEN)
    return _BETWEEN.join(texts), tuple(marks)


_BETWEEN = "\n\n"
_DEEPEST = 3  # lines of a header or a footer


def _repeated(pages: Sequence[list[str]]) -> list[int]:
    """How many of each page's first lines most pages have, word for word but for page numbers, and an earlier page.

    Where such a line first stands, it is text, so that search finds it.
    """
    repeated = [0] * len(pages)
    fewest = max(_FEWEST, 1 + sum(len(lines) > 2 for lines in pages) // 2)
    numbers: Sequence[int] = range(len(pages))
    for place in range(_DEEPEST):
        patterns = {
            number: _pattern(pages[number][place], number)
            for number in numbers
            if len(pages[number]) > 2 * place + 2
        }
        counts = Counter(patterns.values())

        numbers = [number for number, pattern in patterns.items() if counts[pattern] >= fewest]
        shown = set()
        for number in numbers:
            if patterns[number] in shown and repeated[number] == place:
                repeated[number] += 1
            shown.add(patterns[number])
    return repeated


def _pattern(line: str, number: int) -> str:
    """The line; of a page number how far it is from the page's place in the file."""
    match = _PAGE_NUMBER.fullmatch(line)
    if match is None:
        return line
    return f"{line[: match.start(1)]}{int(match[1]) - number:+}{line[match.end(1) :]}"


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
    marks = []
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
    """The word of two halves: the form that the document has elsewhere, or a word list; "" where none has it.

    No hyphen is put after or before one letter, nor before a capital or a digit but in a word of capitals.
    """
    whole, hyphened = first + second, f"{first}-{second}"
    times, times_hyphened = known[whole.lower()], known[_spelled(hyphened)]
    if times < times_hyphened:
        return hyphened
    is_divided = second[0].islower() or (whole.isalpha() and whole.isupper())
    if not is_divided or min(len(first), len(second)) < 2:
        return ""
    listed_in = (language for language in _LANGUAGES if whole.lower() in _word_list(language))
    return whole if times or any(listed_in) else ""


@cache
def _word_list(language: str) -> frozenset[str]:
    """The words of a language; none without the package pyspellchecker."""
    try:
        from spellchecker import SpellChecker
    except ImportError:
        return frozenset()
    return frozenset(SpellChecker(language, distance=1).word_frequency.keys())


_LANGUAGES = ("en", "de", "fr", "es")


def _plain(text: str) -> str:
    """Without control characters; a hyphen at a line's end for each of PDFium's marks of one."""
    return _SIGNS.sub("", re.sub("[\u0002\ufffe]\n?", "-\n", text))
