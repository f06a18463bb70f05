"""The span algebra: unions of half-open ranges, as `Span` objects, and as ``(n, 2)`` int64 arrays of many at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from chunkcore.text import Span

Numbers = NDArray[np.int64]  # of any shape
Ranges = NDArray[np.int64]  # shape (n, 2): starts and ends
Range = tuple[int, int]  # a start and an end
Scores = NDArray[np.float64]  # of any shape
Floats = NDArray[np.floating]  # of any shape and width
Flags = NDArray[np.bool_]


def as_table(pairs: Ranges | Sequence[tuple[int, int]]) -> Ranges:
    """Starts and ends as an ``(n, 2)`` int64 array."""
    return np.array(pairs, np.int64).reshape(-1, 2)


def as_ranges(spans: Iterable[Span]) -> Ranges:
    """Spans as an ``(n, 2)`` int64 array."""
    return as_table([(span.start, span.end) for span in spans])


def shifted(spans: Iterable[Span], by: int) -> tuple[Span, ...]:
    """The spans, so many code points further on."""
    return tuple([Span(span.start + by, span.end + by) for span in spans])


def pairs_of(spans: Iterable[Span]) -> list[list[int]]:
    """Spans as JSON values."""
    return [[span.start, span.end] for span in spans]


def union_ranges(ranges: Ranges) -> Ranges:
    """Sorted, disjoint, non-touching ranges that cover the same positions. O(n log n).

    >>> union_ranges(np.array([[5, 9], [0, 3], [3, 4], [8, 12]])).tolist()
    [[0, 4], [5, 12]]
    """
    ranges = ranges[ranges[:, 1] > ranges[:, 0]]
    if not len(ranges):
        return np.empty((0, 2), np.int64)
    ranges = ranges[np.argsort(ranges[:, 0], kind="stable")]
    reach = np.maximum.accumulate(ranges[:, 1])
    has_gap = ranges[1:, 0] > reach[:-1]
    starts, ends = ranges[np.append(True, has_gap), 0], reach[np.append(has_gap, True)]
    return np.column_stack((starts, ends))


def clip_ranges(ranges: Ranges, union: Ranges) -> tuple[Ranges, Numbers]:
    """The parts of each range inside of sorted disjoint ones, and the number of each part's range."""
    first = np.searchsorted(union[:, 1], ranges[:, 0], side="right")
    after = np.searchsorted(union[:, 0], ranges[:, 1], side="left")
    owner, within = ragged_indices(first, np.maximum(after - first, 0))
    starts = np.maximum(ranges[owner, 0], union[within, 0])
    return np.column_stack((starts, np.minimum(ranges[owner, 1], union[within, 1]))), owner


def ragged_indices(first: Numbers, counts: Numbers) -> tuple[Numbers, Numbers]:
    """For each row i the numbers first[i] ... first[i] + counts[i] - 1, and i for each."""
    row = np.repeat(np.arange(len(first), dtype=np.int64), counts)
    within = np.arange(len(row), dtype=np.int64) - np.repeat(np.cumsum(counts) - counts, counts)
    return row, first[row] + within


def union(*groups: Iterable[Span]) -> list[Span]:
    """The positions in any group, as sorted spans that neither overlap nor touch.

    >>> union([Span(0, 3)], [Span(2, 5), Span(7, 8)])
    [Span(start=0, end=5), Span(start=7, end=8)]
    """
    merged: list[Span] = []
    for span in sorted(chain(*groups)):
        if merged and span.start <= merged[-1].end:
            merged[-1] = Span(merged[-1].start, max(span.end, merged[-1].end))
        else:
            merged.append(span)
    return merged


def merge_touching(spans: Sequence[Span]) -> tuple[Span, ...]:
    """Join each span to its predecessor where they touch, keeping the order.

    >>> merge_touching([Span(0, 3), Span(3, 5), Span(8, 9)])
    (Span(start=0, end=5), Span(start=8, end=9))
    """
    merged: list[Span] = []
    for span in spans:
        if merged and merged[-1].end == span.start:
            merged[-1] = Span(merged[-1].start, span.end)
        else:
            merged.append(span)
    return tuple(merged)


def trim(text: str, start: int, end: int) -> tuple[int, int]:
    """The range without white space at its ends; empty, at `end`, if it is all white space.

    >>> trim("  a b ", 0, 6)
    (2, 5)
    """
    kept = text[start:end].lstrip()
    begin = end - len(kept)
    return begin, begin + len(kept.rstrip())
