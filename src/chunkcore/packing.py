"""Pieces into chunks (`pack`), a hard maximum (`split_to_maximum`), a soft minimum (`join_small`)."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from operator import itemgetter
from typing import Any

import numpy as np
import regex

from chunkcore.spans import Numbers, Range, Ranges, as_table
from chunkcore.spans import trim as trim
from chunkcore.tokens import TokenizedText
from chunkcore.tokens.tokenized import IS_WHITE, BytePairText

# Where a word ends: before white space, after a comma, a tsheg or a zero width space of a script without spaces.
_SPACE = re.compile(r"\s+|[\u200b\u0f0b\u104a\uff0c\u3001\uff1b\uff1a\u3002\uff01\uff1f]+")
_LINE_END = re.compile(r"[\n\r]")
_NO_SPACE = re.compile(r"\S")
# Thai, Lao, Burmese, Khmer, Japanese and Chinese. Beyond U+FFFF the library's places are not those of Python's text.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3041-\u309f\u30a0-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
    "\ua9e0-\ua9ff\uaa60-\uaa7f]+"
)
_LONGEST_WORD = 40  # characters
_NEAR = 40  # characters
GRAPHEME = regex.compile(r"\X")
_LONGEST = 1_000  # characters of a grapheme beyond what may fit that are looked at: some texts are one grapheme
_USUAL = 2  # characters of white space before a chunk; for more, arrays are slower


def running_counts(source: TokenizedText, pieces: Ranges) -> Numbers:
    """Sums of the first 0, 1, ..., n pieces' tokens, all but the first with the white space before it: for `pack`."""
    before = np.concatenate((pieces[:1, 0], pieces[:-1, 1]))
    return np.append(0, np.cumsum(source.counts(before, pieces[:, 1])))


def pack(
    sums: Numbers,
    size: float,
    overlap: int = 0,
    *,
    gap: int = 0,
    runs: Iterable[Range] | None = None,
    firsts: Sequence[int] | None = None,
) -> list[Range]:
    """Ranges of neighbouring pieces, as large as `size` allows, with overlap.

    A range's size is the sum of its pieces and of the gaps between them. A piece over `size` is a range of its own, or
    follows pieces of size 0. Each range ends later than the one before. Pieces are shared only if the next piece still
    fits. O(chunks x log(pieces)) time.

    `sums` are of the sizes of the first 0, 1, ..., n pieces, each with the `gap` after it. Each of several `runs`, the
    first piece and the one after the last, is packed by itself. `firsts` has for each piece the first that a range may
    share in which that piece is the first new one; by default those within `overlap`.

    >>> pack(np.array([0, 4, 7, 9, 14, 23]), size=9, overlap=2)
    [(0, 3), (2, 4), (4, 5)]
    """
    reader = sums.data  # faster to bisect: no array scalars
    ranges = []
    for begin, stop in [(0, len(sums) - 1)] if runs is None else runs:
        end = begin
        while end < stop:
            end = bisect_right(reader, reader[begin] + size + gap, end + 2, stop + 1) - 1
            ranges.append((begin, end))
            if end < stop:
                least = min(reader[end], reader[end + 1] - size)  # what fits beside the next piece
                if firsts is None:
                    least = max(least, reader[end] - overlap)
                else:
                    begin = max(begin, min(end, firsts[end]))
                begin = bisect_left(reader, least - gap, begin, end)
    return ranges


def pack_words(source: BytePairText, texts: Ranges, size: int) -> tuple[Ranges, Ranges, Ranges]:
    """`pack`, without overlap, of texts whose words begin with a space: spaces are looked for only where a range ends.

    Returns the ranges; the words of `size` tokens or more; and the texts that are not packed: those without a space
    inside, or with one that is no context-free boundary.

    >>> from chunkcore.tokens import TiktokenCounter
    >>> source = TiktokenCounter().tokenize("one two three four")
    >>> pack_words(source, source.parts, 3)[0].tolist()
    [[0, 13], [13, 18]]
    """
    text = source.text
    starts = source.boundaries.data  # faster to bisect: no array scalars
    is_boundary = np.frombuffer(source.flags, dtype=np.bool_)[:-1]
    spaces = [
        (text.find(" ", begin + 1, end), text.rfind(" ", begin + 1, end))
        for begin, end in texts.tolist()
    ]
    seconds, lasts = as_table(spaces).T
    ragged = ((source.code_points == ord(" ")) & ~is_boundary).nonzero()[0]
    first = ragged.searchsorted(texts[:, 0], side="right")
    is_left = (seconds < 0) | (first < ragged.searchsorted(texts[:, 1]))
    packed, seconds, lasts = texts[~is_left], seconds[~is_left], lasts[~is_left]
    # Tokens up to a text, and to its end; the first and the last word need not stand between boundaries.
    begun = source.boundaries.searchsorted(seconds) - source.counts(packed[:, 0], seconds)
    before_lasts = source.boundaries.searchsorted(lasts)
    totals = before_lasts + source.counts(lasts, packed[:, 1])
    rows = np.column_stack((packed, lasts, begun, before_lasts, totals))
    ranges: list[Range] = []
    large: list[Range] = []
    for begin, end, last, before, before_last, total in rows.tolist():
        while begin < end:
            stop, reached = end, total
            if total - before > size:
                within = before + size
                reach = starts[max(0, within)] if within < before_last else last
                stop = text.rfind(" ", begin + 1, reach + 1)
                if stop < 0:  # in a large word
                    stop = text.find(" ", begin + 1, end)
                if stop < 0:
                    stop = end
                else:
                    reached = bisect_left(starts, stop)
            is_large = reached - before >= size and text.find(" ", begin + 1, stop) < 0
            (large if is_large else ranges).append((begin, stop))
            begin, before = stop, reached
    return as_table(ranges), as_table(large), texts[is_left]


def join_small(
    sizes: Sequence[int],
    gaps: Sequence[Any],
    minimum: int,
    maximum: int | None,
    together: Callable[[int, int], int],
) -> list[Range]:
    """The soft minimum: ranges of chunks to merge, so that small chunks join a neighbour.

    In order, each chunk under `minimum` joins the neighbour across the smaller gap (ties: the one before), else the
    other one. It stays small if both merges exceed `maximum`. O(n) time, at most two calls of `together` a small chunk.

    Each chunk has its size and, before it, a gap: characters, a distance, or None to forbid a merge; the first is
    ignored. `together` gives the size of the merged chunks `first` to ``last - 1``.

    >>> words = [5, 1, 4, 5, 2]
    >>> join_small(words, [0, 2, 1, 1, 1], 3, 7, lambda first, last: sum(words[first:last]))
    [(0, 1), (1, 3), (3, 5)]
    """
    done: list[tuple[int, int, int]] = []  # first, last, and a lower bound of the size
    waiting = [(place, place + 1, size) for place, size in enumerate(sizes)][::-1]
    while waiting:
        first, last, size = waiting.pop()
        neighbours = []  # each with the gap between, and the list that holds it
        if size < minimum and done and gaps[first] is not None:
            neighbours.append((gaps[first], done))
        if size < minimum and waiting and gaps[last] is not None:
            neighbours.append((gaps[last], waiting))
        for _, neighbour in sorted(neighbours, key=itemgetter(0)):
            begin, end, whole = neighbour[-1]
            begin, end, whole = min(first, begin), max(last, end), max(size, whole)
            if maximum is not None or whole < minimum:
                whole = together(begin, end)
            if maximum is None or whole <= maximum:
                neighbour.pop()
                waiting.append((begin, end, whole))
                break
        else:
            done.append((first, last, size))
    return [(first, last) for first, last, _ in done]


def join_ranges(
    source: TokenizedText,
    rows: Ranges | Sequence[Range],
    minimum: int,
    maximum: int | None = None,
    gaps: Sequence[Any] | None = None,
) -> Ranges:
    """`join_small` for ranges of a text in order, measured by their own text; they may overlap.

    Ranges in different parts of `source` are not merged. `gaps` are by default the characters between two ranges.

    >>> from chunkcore.tokens import WordCounter
    >>> source = WordCounter().tokenize("one two. three.  four five.")
    >>> join_ranges(source, [(0, 8), (9, 15), (17, 27)], minimum=2).tolist()
    [[0, 15], [17, 27]]
    """
    table = as_table(rows)
    if minimum <= 0 or len(table) < 2:
        return table
    starts, ends = table.T
    reach = np.maximum.accumulate(ends)
    if gaps is None:
        gaps = [0, *(starts[1:] - ends[:-1]).tolist()]
    owners = source.parts[:, 1].searchsorted(starts, side="right")
    changes = np.diff(owners, prepend=0).tolist()
    gaps = [None if change else gap for gap, change in zip(gaps, changes, strict=True)]

    def together(first: int, after: int) -> int:
        return source.count(int(starts[first]), int(reach[after - 1]))

    sizes = source.counts(starts, ends).tolist()
    firsts, afters = as_table(join_small(sizes, gaps, minimum, maximum, together)).T
    # An unmerged chunk keeps its end, even if an earlier chunk reaches farther.
    ends = np.where(afters - firsts == 1, ends[firsts], reach[afters - 1])
    return np.column_stack((starts[firsts], ends))


def split_to_maximum(
    source: TokenizedText, start: int, end: int, maximum: int, *, strip: bool = True
) -> list[Range]:
    """Cut ``text[start:end]`` into ranges whose own text counts at most `maximum`. Linear time.

    Each part ends after a word (of scripts without spaces: `word_ends`), inside a long word after a grapheme, or inside
    a long grapheme after a code point, about as late as fits. One code point over the maximum is a part. With `strip`
    parts lose the white space at their ends, and blank parts are dropped.

    >>> from chunkcore.tokens import CharacterCounter
    >>> source = CharacterCounter().tokenize("five words, extraordinarily short")
    >>> [source.text[a:b] for a, b in split_to_maximum(source, 0, 33, 11)]
    ['five words,', 'extraordina', 'rily short']
    """

    def kept(begin: int, stop: int) -> Range:
        return trim(source.text, begin, stop) if strip else (begin, stop)

    def fits(stop: int) -> bool:
        return source.count(start, kept(start, stop)[1]) <= maximum

    start, end = kept(start, end)
    parts = []
    while start < end:
        place = int(source.boundaries.searchsorted(start))
        # A range that is far too long is not recounted for each part cut off.
        if end <= _begin_of(source, place + 8 * maximum + 64) and fits(end):
            parts.append((start, end))
            break
        limit = min(end, max(start + 1, _begin_of(source, place + maximum + 1)))
        lasts = (_last_that_fits(cuts, fits) for cuts in _cuts(source, start, end, limit))
        cut = next((last for last in lasts if last is not None), start + 1)
        parts.append(kept(start, cut))
        start = cut
        if strip and cut < end:
            start = _NO_SPACE.search(source.text, cut, end).start()  # type: ignore[union-attr]
    return parts


def trim_ranges(source: TokenizedText, ranges: Ranges) -> Ranges:
    """The ranges without white space at their ends; those of white space alone are left out.

    >>> from chunkcore.tokens import CharacterCounter
    >>> trim_ranges(CharacterCounter().tokenize(" a  b "), np.array([[0, 3], [2, 4], [3, 6]])).tolist()
    [[1, 2], [4, 5]]
    """
    codes = source.code_points
    starts, ends = ranges.T.copy()
    for _ in range(_USUAL):
        starts = np.minimum(starts + IS_WHITE.take(codes[starts], mode="clip"), ends - 1)
    edges = codes[np.stack((starts, ends - 1))]
    wider = IS_WHITE.take(edges, mode="clip").any(axis=0)
    texts = source.slices(np.column_stack((starts, ends))[wider])
    for place, text in zip(wider.nonzero()[0].tolist(), texts, strict=True):
        starts[place] += len(text) - len(text.lstrip())
        ends[place] -= len(text) - len(text.rstrip())
    trimmed: Ranges = np.column_stack((starts, ends))[starts < ends]
    return trimmed


def halves(first: int, after: int, fits: Callable[[int, int], bool]) -> Iterator[Range]:
    """The items `first` to ``after - 1`` in ranges that fit, each halved until it does; one item may not fit.

    >>> list(halves(0, 5, lambda first, after: after - first <= 2))
    [(0, 2), (2, 3), (3, 5)]
    """
    waiting = [(first, after)]
    while waiting:
        first, after = waiting.pop()
        if after - first == 1 or fits(first, after):
            yield first, after
        else:
            middle = (first + after) // 2
            waiting += [(middle, after), (first, middle)]


def whole_runs(ranges: Ranges, runs: Ranges | Sequence[Range]) -> Ranges:
    """Each run of ranges as one: from the first one's start to the end of the one before `after`."""
    firsts, afters = as_table(runs).T
    return np.column_stack((ranges[firsts, 0], ranges[afters - 1, 1]))


def fitting(
    source: TokenizedText, ranges: Ranges, maximum: int | None
) -> Callable[[int, int], bool]:
    """Whether the ranges `first` to ``after - 1``, as one, count at most `maximum`; None for no maximum."""

    def fits(first: int, after: int) -> bool:
        start, end = int(ranges[first, 0]), int(ranges[after - 1, 1])
        return maximum is None or source.count(start, end) <= maximum

    return fits


def split_ranges_to_maximum(
    source: TokenizedText, ranges: Ranges, maximum: int | None, *, strip: bool = True
) -> Ranges:
    """The ranges in order, those over the maximum cut by `split_to_maximum`. None for no maximum.

    >>> from chunkcore.tokens import WordCounter
    >>> source = WordCounter().tokenize("One. And three words.")
    >>> split_ranges_to_maximum(source, np.array([[0, 4], [5, 21]]), 2).tolist()
    [[0, 4], [5, 14], [15, 21]]
    """
    if maximum is None:
        return ranges
    parts: list[Range] = []
    for (start, end), count in zip(ranges.tolist(), source.counts(*ranges.T), strict=True):
        if count > maximum:
            parts += split_to_maximum(source, start, end, maximum, strip=strip)
        else:
            parts.append((start, end))
    return as_table(parts)


def _begin_of(source: TokenizedText, token: int) -> int:
    """Where a token of the text's own tokenization begins."""
    return int(source.boundaries[token]) if token < len(source.boundaries) else len(source.text)


def _cuts(source: TokenizedText, start: int, end: int, limit: int) -> Iterator[Sequence[int]]:
    """Where a part may end, best kind first: lines, words, words of scripts without spaces, graphemes, code points."""
    text = source.text
    if _LINE_END.search(text, start + 1, limit):
        gaps = _SPACE.finditer(text, start + 1, limit)
        yield [gap.start() for gap in gaps if _LINE_END.search(gap[0])]
    for begin in (limit - _NEAR, 0):  # nearly always one near the limit fits
        gaps = _SPACE.finditer(text, max(start + 1, begin), limit)
        yield [gap.start() if gap[0].isspace() else gap.end() for gap in gaps]
    yield word_ends(text, start, limit, end)
    graphemes = list(_grapheme_ends(source, start, end, limit))
    yield graphemes
    first = graphemes[0] if graphemes else limit + 1
    yield range(start + 1, min(first, limit + 1))


def _grapheme_ends(source: TokenizedText, start: int, end: int, limit: int) -> Iterator[int]:
    """Up to the first end at or after `limit`; none of a grapheme that is far longer.

    The pattern is given a slice: before a regional indicator it would count all of them back to the text's beginning.
    """
    bound = min(end, limit + _LONGEST)
    for grapheme in GRAPHEME.finditer(source.text[start:bound]):
        stop = start + grapheme.end()
        if stop == bound < end:
            return
        yield stop
        if stop >= limit:
            return


def _last_that_fits(cuts: Sequence[int], fits: Callable[[int], bool]) -> int | None:
    """The last cut that fits, searched from the end in doubling steps: 0, 1, 2, 3, 4, 6, 10, ... back."""
    back = [0, 1, 2, *(2**step + 2 for step in range(len(cuts).bit_length()))]
    tried = (cuts[max(0, len(cuts) - 1 - steps)] for steps in back if cuts)
    return next(filter(fits, tried), None)


def word_ends(text: str, start: int, end: int, last: int) -> list[int]:
    """Where words of scripts without spaces end in ``text[start:end]``, before its end; a word begins at `start`, and
    the text that may be looked at ends at `last`. None without the extra ``words``. Linear time.
    """
    breaker = _breaker()
    if breaker is None:
        return []
    ends = []
    for run in _UNSPACED.finditer(text, start, min(last, end + _LONGEST_WORD)):
        ends += [run.start() + stop for _, stop in breaker(run[0], "").segments()]
    return [stop for stop in ends if stop < end]


@cache
def _breaker() -> Any:
    try:
        from icu4py.breakers import WordBreaker
    except ImportError:
        return None
    return WordBreaker
