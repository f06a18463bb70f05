"""Where a text can be cut: one boundary finder per format; each reads a text into `Block`s, which chunkers pack."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from itertools import islice, pairwise
from typing import Literal, NamedTuple

from chunkcore.spans import Range, trim

# How a page of HTML begins.
HTML_PAGE = re.compile(
    r"(?i)\s*(?:<\?xml[^>]*>\s*)?(?:<!--[^>]*-->\s*)?<(?:!doctype\s+html|html|head|body)\b"
)
_LINE = re.compile(r"[^\r\n]*(?:\r\n?|\n|\Z)")

Titles = tuple[str, ...]  # of headings, or names of definitions
Pieces = Literal["sentences", "lines", "words"]


class Block(NamedTuple):
    """A part of a text, such as a paragraph, a table or a function: half-open, in code points."""

    start: int
    end: int
    path: Titles = ()  # around the block, and its own
    whole: bool = False  # kept in one piece up to the maximum size, not only up to the target
    leads: bool = False  # belongs to the next block, as a heading does
    level: int = 0  # heading level, 1 the highest; 0 for other blocks
    header: Range | None = None  # for a table row, the range of the table's header
    parts: Callable[[], Sequence[Block]] | None = (
        None  # returns the inner blocks; None if there are none
    )
    text: Pieces = "sentences"  # what a block without `parts` is cut into


def one_line(text: str) -> str:
    """The text with a space for each run of white space."""
    return " ".join(text.split())


def words(*rows: str) -> frozenset[str]:
    """The words of the rows."""
    return frozenset(" ".join(rows).split())


def pairs(*rows: str) -> dict[str, str]:
    """The pairs of the rows.

    >>> pairs("go=func python=def")
    {'go': 'func', 'python': 'def'}
    """
    return dict(pair.split("=") for pair in " ".join(rows).split())


def between(text: str, around: Range, cuts: Iterable[int]) -> list[Range | None]:
    r"""The ranges between the start of the one around, the cuts in order, and its end; None for a range of white space.

    White space is stripped, except the indent of a range's first line.

    >>> between("one\n\n  two ", (0, 11), [4])
    [(0, 3), (5, 10)]
    """
    start, end = around
    return [_kept(text, low, high) for low, high in pairwise([start, *cuts, end])]


def lines(text: str, around: Range) -> list[Range]:
    r"""The lines of a range that are not blank; "\n", "\r\n" and "\r" end a line, as in CommonMark.

    >>> lines("a\r\n\n  b", (0, 7))
    [(0, 1), (4, 7)]
    """
    ends = [line.end() for line in _LINE.finditer(text, *around) if line.end() < around[1]]
    return [*filter(None, between(text, around, ends))]


def table_blocks(text: str) -> list[Block]:
    r"""The rows of a CSV or TSV text, as Python's `csv` reads them. Linear time.

    The first row of the usual length is the header of the rows after it; titles, comments and ``sep=;`` above it lead,
    and rows of which most fields are empty, as a spreadsheet writes its titles.

    >>> text = 'Teas\n\nkind,heat\n"black\ntea",hot\n'
    >>> [(text[block.start : block.end], block.header) for block in table_blocks(text)]
    [('Teas', None), ('kind,heat', None), ('"black\ntea",hot', (6, 15))]
    """
    if not text:
        return []
    ends, lengths = zip(*_csv_rows(text, _delimiter(text)), strict=True)
    first = lengths[:_SAMPLE]
    several = [length for length in first if length > 1]
    usual = Counter(several or first).most_common(1)[0][0]
    blocks = []
    header = None
    for kept, length in zip(between(text, (0, len(text)), ends[:-1]), lengths, strict=True):
        if kept is None:
            continue
        above = header is None
        blocks.append(Block(*kept, whole=True, leads=above, header=header))
        if above and length == usual and not text.startswith(_ABOVE_HEADER, kept[0]):
            header = kept
    return blocks


_SAMPLE = 50  # rows that say how a table is written
_ABOVE_HEADER = ("sep=", "# ")
_DELIMITERS = "\t;|,^~"
# In TSV a quotation mark is a character, but around a field with line ends and no tab.
_TSV_FIELD = r'(?:"[^"\t]*(?:""[^"\t]*)*"(?=[\t\r\n]|\Z)|[^\t\r\n]*)'
_TSV_ROW = re.compile(rf"(?:{_TSV_FIELD}\t)*{_TSV_FIELD}(?:\r\n?|\n|\Z)")
_QUOTED = re.compile(f'(?<![^\\n\\r{_DELIMITERS}])"(?:[^"]|"")*"')

_ESCAPED = re.compile(rf'\\"(?![\s"{_DELIMITERS}]|\Z)')  # unlike the end of a folder's name


def _delimiter(text: str) -> str:
    """The character that most of the first lines have in the same number, but in quotes; or what ``sep=`` says."""
    begin = "".join(line[0] for line in islice(_LINE.finditer(text), _SAMPLE))
    sample = [line[0] for line in _LINE.finditer(_QUOTED.sub("", begin))]
    stated = sample[0].strip()
    if stated.startswith("sep=") and len(stated) == 5:
        return stated[-1]
    pairs = ((line.count(sign), sign) for sign in _DELIMITERS for line in sample if sign in line)
    rows = Counter(pairs)
    return max(rows, key=lambda pair: (rows[pair], *pair), default=",")[-1]


def _csv_rows(text: str, delimiter: str) -> list[tuple[int, int]]:
    """Where each row ends, and the number of its fields; 1 of titles among the first rows."""
    quoting: Literal[0, 3] = csv.QUOTE_MINIMAL
    line = _LINE
    if delimiter == "\t":
        quoting = csv.QUOTE_NONE
        line = _TSV_ROW
    ends = [row.end() for row in line.finditer(text) if row[0]]
    pieces = [" ".join(text[start:end].splitlines()) for start, end in pairwise([0, *ends])]
    # The line end more is a row of its own, unless a mark is open.
    escape = "\\" if _ESCAPED.search(text) else None
    reader = csv.reader(
        [*pieces, "\n"],
        delimiter=delimiter,
        quoting=quoting,
        escapechar=escape,
        skipinitialspace=True,
    )
    rows: list[tuple[int, int]] = []
    first = 0  # line of the row
    with suppress(csv.Error):  # a field of over 131,072 characters
        for row in reader:
            last = reader.line_num
            if last > len(ends):
                break
            length = len(row)
            if length > 2 and len(rows) < _SAMPLE:
                filled = len([*filter(str.strip, row)])
                length = length if 2 * filled > length else 1
            rows.append((ends[last - 1], length))
            first = last
    # A mark that is never closed is text.
    return rows + [(end, 1) for end in ends[first:]]


def _kept(text: str, start: int, end: int) -> Range | None:
    begin, stop = trim(text, start, end)
    if begin == stop:
        return None
    line = max(text.rfind("\n", start, begin), text.rfind("\r", start, begin)) + 1
    return max(start, line), stop
