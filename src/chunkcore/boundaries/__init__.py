"""Where a text can be cut: one boundary finder per format; each reads a text into `Block`s, which chunkers pack."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Literal, NamedTuple

# How a page of HTML begins.
HTML_PAGE = re.compile(
    r"\s*(?:<\?xml[^>]*>\s*)?(?:<!--[^>]*-->\s*)?<(?:!doctype\s+html|html|head|body)\b",
    re.IGNORECASE,
)
_LINE = re.compile(r"[^\r\n]*(?:\r\n?|\n|\Z)")


class Block(NamedTuple):
    """A part of a text, such as a paragraph, a table or a function: half-open, in code points."""

    start: int
    end: int
    path: tuple[
        str, ...
    ] = ()  # titles of the headings, or names of the definitions, around the block and its own
    whole: bool = False  # kept in one piece up to the maximum size, not only up to the target
    leads: bool = False  # belongs to the next block, as a heading does
    level: int = 0  # heading level, 1 the highest; 0 for other blocks
    header: tuple[int, int] | None = None  # for a table row, the range of the table's header
    parts: Callable[[], Sequence[Block]] | None = (
        None  # returns the inner blocks; None if there are none
    )
    text: Literal["sentences", "lines", "words"] = (
        "sentences"  # where to cut a block without `parts`
    )


def between(text: str, start: int, end: int, cuts: Iterable[int]) -> list[tuple[int, int] | None]:
    r"""The ranges between `start`, the cuts in order, and `end`; None for a range of white space.

    White space is stripped, except the indent of a range's first line.

    >>> between("one\n\n  two ", 0, 11, [4])
    [(0, 3), (5, 10)]
    """
    return [_kept(text, low, high) for low, high in pairwise([start, *cuts, end])]


def lines(text: str, start: int, end: int) -> list[tuple[int, int]]:
    r"""The lines of a range that are not blank; "\n", "\r\n" and "\r" end a line, as in CommonMark.

    >>> lines("a\r\n\n  b", 0, 7)
    [(0, 1), (4, 7)]
    """
    ends = [line.end() for line in _LINE.finditer(text, start, end) if line.end() < end]
    return [kept for kept in between(text, start, end, ends) if kept]


def table_blocks(text: str) -> list[Block]:
    r"""The rows of a CSV or TSV text; the first is the header of the others. Linear time.

    A line end within quotation marks ends no row, unless a mark is never closed.

    >>> [(block.start, block.end, block.header) for block in table_blocks('kind,heat\n"black\ntea",hot\n')]
    [(0, 9, None), (10, 25, (0, 9))]
    """
    cuts, quotes = [], 0
    for line in _LINE.finditer(text):
        quotes += text.count('"', *line.span())
        if quotes % 2 == 0 and line.end() < len(text):
            cuts.append(line.end())
    rows = (
        [kept for kept in between(text, 0, len(text), cuts) if kept]
        if quotes % 2 == 0
        else lines(text, 0, len(text))
    )
    return [
        Block(
            start=start,
            end=end,
            whole=True,
            leads=not turn,
            header=rows[0] if turn else None,
            text="words",
        )
        for turn, (start, end) in enumerate(rows)
    ]


def _kept(text: str, start: int, end: int) -> tuple[int, int] | None:
    piece = text[start:end]
    stripped = piece.rstrip()
    if not stripped:
        return None
    leading = len(stripped) - len(stripped.lstrip())
    line = max(stripped.rfind("\n", 0, leading), stripped.rfind("\r", 0, leading)) + 1
    return start + line, start + len(stripped)
