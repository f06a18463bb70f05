"""`reader_of`: what finds the header of the table that a row of a document stands in."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from chunkcore.boundaries import table_blocks
from chunkcore.boundaries.formats import format_of
from chunkcore.boundaries.html import visible_pieces
from chunkcore.errors import MissingExtraError
from chunkcore.reading.visible import is_html
from chunkcore.spans import shifted
from chunkcore.text import Document, Span

# The header of a Markdown table, and the rule below it.
_MARKDOWN = re.compile(r"^\|[^\n]*\n(?=[^\n]*-)\|[-:| \t]+$", re.MULTILINE)
_NO_ROW = re.compile(r"^[^|]", re.MULTILINE)
_ROW = re.compile(r"<tr\b", re.IGNORECASE)
_TH, _TD = re.compile(r"<th\b", re.IGNORECASE), re.compile(r"<td\b", re.IGNORECASE)
_START = 20_000  # characters of a CSV text, in which its header is looked for
_FAR = 100_000  # characters that a row may be below its header

Header = tuple[Span, ...]
Reader = Callable[[str, int], Header]


def reader_of(document: Document) -> Reader | None:
    r"""What gives the header's spans for a text and the place of a row in it; None if no such table is there.

    It reads Markdown, HTML and, of a document that is named so, CSV; where no row is, it gives none.

    >>> text = "| tea | heat |\n|---|---|\n| green | 80 |"
    >>> reader_of(Document("teas.md", text))(text, text.index("| green"))
    (Span(start=0, end=24),)
    """
    text = document.text
    if is_html(document):
        return _of_html if _TH.search(text) else None
    if format_of("", document).kind == "table":
        return _of_csv
    return _of_markdown if "|\n|" in text else None


def _of_markdown(text: str, place: int) -> Header:
    if not text.startswith("|", place):
        return ()
    headers = list(_MARKDOWN.finditer(text, max(0, place - _FAR), place))
    if not headers or _NO_ROW.search(text, headers[-1].end() + 1, place):
        return ()
    return (Span(*headers[-1].span()),)


def _of_html(text: str, place: int) -> Header:
    """What is above the row of the table's first cell `td`, if cells `th` are."""
    before = text[max(0, place - _FAR) : place]
    start = before.lower().rfind("<table")
    first = _TD.search(before, start)
    if start < 0 or first is None or "</table" in before[start:].lower():
        return ()
    above = before[start : first.start()]
    cell = _TH.search(above)
    if cell is None or not _ROW.search(above, cell.end()):
        return ()
    try:
        cells = visible_pieces(above)
    except MissingExtraError:
        return ()
    return shifted([Span(*piece) for piece in cells], place - len(before) + start)


def _of_csv(text: str, place: int) -> Header:
    header = _header_of_csv(text[:_START])
    if header is None or header[1] > place:
        return ()
    return (Span(*header),)


@lru_cache(maxsize=64)
def _header_of_csv(text: str) -> tuple[int, int] | None:
    for block in table_blocks(text):
        if block.header is not None:
            return block.header
    return None
