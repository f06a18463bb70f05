"""Lines that are units: records of logs, chats, captions, verse; and lines that are headings."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

from chunkcore.spans import Ranges

_LONGEST_RECORD = 300  # characters; a longer line is a paragraph
_LONGEST_HEADING = 100
_MOST_HEADINGS = 4  # short lines in a row; more are a list
_ENDING = ".!?;,…。！？；，।"

_OPENERS = "[(<{"  # of records
_CUE = re.compile(r"[\d:.,]+ --> [\d:.,]+")
_BULLET = re.compile(r"[-+•‣◦·>|]|[([]?[a-z0-9]{1,3}[.)\\]][ \\t]")
_UNDERLINE = re.compile(r"([=\-~^\"'#*+.])\1{2,}")
_MARKED = re.compile(
    r"={1,6}[ \t]*\S|\*{1,6}[ \t]+\S|#{1,6}[ \t]+\S|!{1,3}[ \t]+\S"  # AsciiDoc, wikis, Org, Markdown
    r"|\\(?:part|chapter|(?:sub){0,2}section|(?:sub)?paragraph)\*?[{\[]"  # LaTeX
)


@lru_cache(maxsize=1)  # asked for twice of a text: for sentences, and for what stays whole
def record_lines(text: str) -> list[tuple[int, int]]:
    r"""The lines of logs, chats, captions, addresses and verse; none of wrapped prose. Linear time.

    >>> log = "10:01 Boats in. All well.\n10:02 Tide high.\n10:03 Gate shut."
    >>> [log[start:end] for start, end in record_lines(log)]
    ['10:01 Boats in. All well.', '10:02 Tide high.', '10:03 Gate shut.']
    >>> record_lines("The gate of the lock\nwas shut at noon, and\nnobody came.")
    []
    """
    rows: list[tuple[int, int]] = []
    block: list[str] = []
    start = place = 0
    for line in [*text.split("\n"), ""]:
        if line and not line.isspace():
            block.append(line)
        else:
            if _are_records(block):
                rows += _ranges(block, start)
            block = []
            start = place + len(line) + 1
        place += len(line) + 1
    return rows


def _ranges(lines: Sequence[str], start: int) -> list[tuple[int, int]]:
    """The lines' ranges; a line of signs alone, such as a table's rule, is one with the line before it."""
    rows: list[tuple[int, int]] = []
    for line in lines:
        end = start + len(line)
        if rows and not any(map(str.isalnum, line)):
            rows[-1] = (rows[-1][0], end)
        else:
            rows.append((start, end))
        start = end + 1
    return rows


def _are_records(lines: Sequence[str]) -> bool:
    """Whether the lines are units: they begin like records, or alike, or end where the next word had fitted."""
    count = len(lines)
    if count < 3 or max(map(len, lines)) > _LONGEST_RECORD:
        return False
    if any(_CUE.match(line) for line in lines[:3]):
        return True
    words = [line.split(None, 1)[0] for line in lines]
    marked = sum(word[0] in _OPENERS or word[0].isdecimal() for word in words)
    if marked >= 0.9 * count:
        return True
    if count >= 5 and max(Counter(words).values()) >= 0.6 * count:
        return True
    small = sum(word[0].islower() for word in words)
    return small <= 0.1 * count and _early_ends(lines, words) >= 0.2 * count


def _early_ends(lines: Sequence[str], words: Sequence[str]) -> int:
    """How many lines end where the first word of the next line had fitted."""
    width = max(map(len, lines))
    pairs = zip(lines, words[1:], strict=False)
    return sum(len(line) + 1 + len(word) <= width for line, word in pairs)


def heading_flags(text: str, sentences: Ranges) -> list[bool]:
    r"""Which sentences are headings: a short line alone, without a full stop, or with the mark of a format.

    >>> import numpy as np
    >>> heading_flags("PART ONE\n\nBoats pay.", np.array([[0, 8], [10, 20]]))
    [True, False]
    """
    flags = [False] * len(sentences)
    short = (sentences[:, 1] - sentences[:, 0] <= _LONGEST_HEADING).nonzero()[0]
    rows = sentences.tolist()
    for number in short.tolist():
        if number + 1 == len(rows):
            break
        start, end = rows[number]
        if text[end] == " " and rows[number + 1][0] == end + 1:  # prose, nearly always
            continue
        before = text[rows[number - 1][1] : start] if number else "\n\n"
        after = text[end : rows[number + 1][0]]
        if "\n" in before and "\n" in after:
            following = text[slice(*rows[number + 1])]
            flags[number] = _is_heading(text[start:end], before, after, following)
    return _without_lists(flags)


def _is_heading(line: str, before: str, after: str, following: str) -> bool:
    if "\n" in line:
        return False
    if _UNDERLINE.fullmatch(line) or _UNDERLINE.fullmatch(following):
        return True
    stands_alone = before.count("\n") > 1 and after.count("\n") > 1
    if _MARKED.match(line):
        return stands_alone or line[0] in "\\=#"
    if not stands_alone and not line.isupper():
        return False
    return line[-1] not in _ENDING and not _BULLET.match(line) and any(map(str.isalpha, line))


def _without_lists(flags: list[bool]) -> list[bool]:
    run = 0
    for number, flag in enumerate([*flags, False]):
        if flag:
            run += 1
            continue
        if run > _MOST_HEADINGS:
            flags[number - run : number] = [False] * run
        run = 0
    return flags
