"""What a structured text is made of: `Block`s, which touch each other, and into which every format is read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

__all__ = ["Block", "between", "lines"]

_LINE = re.compile(r"[^\r\n]*(?:\r\n?|\n|\Z)")
_NOT_BLANK = re.compile(r"[ \t]*\S")


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A part of a text that its format knows, and the smaller ones that it can be cut into.

    Attributes:
        start: its first code point.
        end: the code point after its last.
        path: titles of the headings that it stands under, or of the definitions that it stands in, itself included.
        whole: worth keeping in one piece up to the maximum, and not only up to the target.
        leads: belongs with what follows it, as a heading does.
        level: of a heading that sections begin with, 1 the highest; 0 for all else.
        header: for a row of a table, the range of the table's header.
        parts: tells the blocks that it is made of; None where its format knows none.
        text: what cuts it where `parts` does not: its sentences, its lines, or only words.
    """

    start: int
    end: int
    path: tuple[str, ...] = ()
    whole: bool = False
    leads: bool = False
    level: int = 0
    header: tuple[int, int] | None = None
    parts: Callable[[], Sequence[Block]] | None = None
    text: Literal["sentences", "lines", "words"] = "sentences"


def between(text: str, start: int, end: int, cuts: Iterable[int]) -> list[tuple[int, int] | None]:
    r"""The ranges from `start` to each of the cuts, in order, and to `end`; None where only white space is there.

    They have no white space at their ends, and at their beginnings only what indents their first line.

    >>> between("one\n\n  two ", 0, 11, [4])
    [(0, 3), (5, 10)]
    """
    return [_kept(text, low, high) for low, high in pairwise([start, *cuts, end])]


def lines(text: str, start: int, end: int) -> list[tuple[int, int]]:
    r"""The lines of a range that are not blank, as CommonMark knows them: "\n", "\r\n" and "\r" end one.

    >>> lines("a\r\n\n  b", 0, 7)
    [(0, 1), (4, 7)]
    """
    ends = [line.end() for line in _LINE.finditer(text, start, end) if line.end() < end]
    return [kept for kept in between(text, start, end, ends) if kept]


def _kept(text: str, start: int, end: int) -> tuple[int, int] | None:
    piece = text[start:end]
    stripped = piece.rstrip()
    if not stripped:
        return None
    leading = len(stripped) - len(stripped.lstrip())
    line = max(stripped.rfind("\n", 0, leading), stripped.rfind("\r", 0, leading)) + 1
    return start + line, start + len(stripped)
