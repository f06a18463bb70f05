"""Lines that are units: records of logs, chats, captions, verse; and lines that are headings."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

from chunkcore.spans import Ranges

_LONGEST_RECORD = 300  # characters; a longer line is a paragraph
_LONGEST_HEADING = 100
_MOST_HEADINGS = 4  # short lines in a row; more are a list
_ENDING = ".!?;,…。！？；，।"

_LEADING = re.compile(r"(?:\s*\n)?")
_BLANK = re.compile(r"\n\s*\n")
_OPENERS = "[(<{"  # of records
_CUE = re.compile(r"[\d:.,]+ --> [\d:.,]+")
_CAPTION = re.compile(rf"(?:[^\n]*\n)?{_CUE.pattern}")  # often numbered
_BULLET = re.compile(r"[-+•‣◦·>|]|[([]?[a-z0-9]{1,3}[.)\\]][ \\t]")
_UNDERLINE = re.compile(r"([=\-~^\"'#*+.])\1{2,}")
_MARKED = re.compile(
    r"={1,6}[ \t]*\S|\*{1,6}[ \t]+\S|#{1,6}[ \t]+\S|!{1,3}[ \t]+\S"  # AsciiDoc, wikis, Org, Markdown
    r"|\\(?:part|chapter|(?:sub){0,2}section|(?:sub)?paragraph)\*?[{\[]"  # LaTeX
)

# A fenced block, or, of Markdown and of HTML, the level and the title.
_HEADING = re.compile(
    r"^ {0,3}(?:```|~~~).*?(?:^ {0,3}(?:```|~~~)|\Z)"
    r"|^ {0,3}(#{1,6})[ \t]+([^\n]{1,300})|<h([1-6])\b[^<>]{0,300}>(.{1,300}?)</h[1-6]>",
    re.MULTILINE | re.DOTALL | re.IGNORECASE,
)


class Heading(NamedTuple):
    """A heading with the mark of its level, 1 to 6, by which a section begins."""

    start: int
    end: int
    level: int
    title: str


def marked_headings(text: str) -> Iterator[Heading]:
    r"""The headings of Markdown (``#``) and of HTML (``<h1>``) outside of fenced blocks. Linear time.

    >>> list(marked_headings("```sh\n# make\n```\n## Use"))
    [Heading(start=17, end=23, level=2, title='Use')]
    """
    for match in _HEADING.finditer(text):
        marks, markdown, level, html = match.groups()
        if marks:
            yield Heading(*match.span(), len(marks), markdown)
        elif level:
            yield Heading(*match.span(), int(level), html)


@lru_cache(maxsize=1)  # asked for twice of a text: for sentences, and for what stays whole
def record_lines(text: str) -> list[tuple[int, int]]:
    r"""The lines of logs, chats, addresses and verse, and captions; none of wrapped prose. Linear time.

    >>> log = "10:01 Boats in. All well.\n10:02 Tide high.\n10:03 Gate shut."
    >>> [log[start:end] for start, end in record_lines(log)]
    ['10:01 Boats in. All well.', '10:02 Tide high.', '10:03 Gate shut.']
    >>> record_lines("The gate of the lock\nwas shut at noon, and\nnobody came.")
    []
    """
    rows: list[tuple[int, int]] = []
    last = len(text.rstrip())
    start = _LEADING.match(text).end()  # type: ignore[union-attr]
    for gap in chain(_BLANK.finditer(text, start, last), (None,)):
        end = last if gap is None else gap.start()
        if text.count("-->", start, end) == 1 and _CAPTION.match(text, start, end):
            rows.append((start, end))
        elif text.count("\n", start, end) > 1:
            lines = text[start:end].split("\n")
            if _are_records(lines):
                rows += _ranges(lines, start)
        start = last if gap is None else gap.end()
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
    if any("-->" in line and _CUE.match(line) for line in lines[:3]):
        return True
    words = [line.split(None, 1)[0] for line in lines]
    if count >= 5 and len(set(words)) <= 0.4 * count + 1:
        ((_, times),) = Counter(words).most_common(1)
        if times >= 0.6 * count:
            return True
    firsts = [word[0] for word in words]
    if sum(map(str.islower, firsts)) > 0.1 * count:  # prose, and few lines can begin like records
        return False
    marked = sum(first in _OPENERS or first.isdecimal() for first in firsts)
    if marked >= 0.9 * count:
        return True
    width = max(map(len, lines))
    pairs = zip(lines, words[1:], strict=False)
    early = sum(len(line) + 1 + len(word) <= width for line, word in pairs)
    return early >= 0.2 * count


def heading_numbers(text: str, sentences: Ranges) -> list[int]:
    r"""Which sentences are headings: a short line alone, without a full stop, or with the mark of a format.

    >>> import numpy as np
    >>> heading_numbers("PART ONE\n\nBoats pay.", np.array([[0, 8], [10, 20]]))
    [0]
    """
    numbers: list[int] = []
    starts, ends = sentences.T.tolist()
    short = (sentences[:-1, 1] - sentences[:-1, 0] <= _LONGEST_HEADING).nonzero()[0]
    for number in short.tolist():
        start, end, following = starts[number], ends[number], starts[number + 1]
        after = text[end:following]
        line = text[start:end]
        if "\n" not in after or "\n" in line:
            continue
        is_plain = line[0].isalnum() and text[following].isalnum() and not line.isupper()
        if after == "\n" and is_plain:  # a line right before another one has no mark of a heading
            continue
        before = text[ends[number - 1] : start] if number else "\n\n"
        if "\n" not in before:
            continue
        is_alone = before.count("\n") > 1 and after.count("\n") > 1
        is_underlined = _UNDERLINE.fullmatch(text, following, ends[number + 1]) is not None
        if is_underlined or _is_heading(line, is_alone=is_alone):
            numbers.append(number)
    return _without_lists(numbers)


def _is_heading(line: str, *, is_alone: bool) -> bool:
    if not line[0].isalnum():  # nearly never
        if _UNDERLINE.fullmatch(line):
            return True
        if _MARKED.match(line):
            return is_alone or line[0] in "\\=#"
    if not is_alone and not line.isupper():
        return False
    return line[-1] not in _ENDING and not _BULLET.match(line) and any(map(str.isalpha, line))


def _without_lists(numbers: Sequence[int]) -> list[int]:
    kept: list[int] = []
    run: list[int] = []
    for number in (*numbers, -1):
        if run and number != run[-1] + 1:
            if len(run) <= _MOST_HEADINGS:
                kept += run
            run = []
        run.append(number)
    return kept
