"""The span algebra is the algebra of sets of positions."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from chunkcore.spans import as_ranges, clip_ranges, merge_touching, union, union_ranges
from chunkcore.text import Span
from hypothesis import given
from hypothesis import strategies as st

places = st.tuples(st.integers(0, 30), st.integers(1, 12)).map(lambda pair: Span(pair[0], pair[0] + pair[1]))
groups = st.lists(places, max_size=8)


def positions(spans: list[Span]) -> set[int]:
    return {place for span in spans for place in range(span.start, span.end)}


def is_normal(spans: list[Span]) -> bool:
    return all(left.end < right.start for left, right in pairwise(spans))


@given(groups, groups)
def test_the_algebra_is_that_of_sets_of_positions(left: list[Span], right: list[Span]) -> None:
    assert positions(union(left, right)) == positions(left) | positions(right)
    assert is_normal(union(left, right))
    clipped, owners = clip_ranges(as_ranges(left), union_ranges(as_ranges(right)))
    for number, span in enumerate(left):
        parts = [Span(*row) for row in clipped[owners == number].tolist()]
        assert positions(parts) == positions([span]) & positions(right)
        assert is_normal(parts)


@given(groups)
def test_the_union_of_arrays_is_that_of_spans(spans: list[Span]) -> None:
    assert union_ranges(as_ranges(spans)).tolist() == as_ranges(union(spans)).tolist()


@given(groups)
def test_merging_joins_only_neighbours_that_touch_in_their_order(spans: list[Span]) -> None:
    merged = merge_touching(spans)
    assert [p for s in merged for p in range(s.start, s.end)] == [p for s in spans for p in range(s.start, s.end)]
    assert all(left.end != right.start for left, right in pairwise(merged))


def test_small_cases() -> None:
    assert union([Span(5, 9), Span(0, 3)], [Span(3, 4)]) == [Span(0, 4), Span(5, 9)]
    assert merge_touching([Span(3, 5), Span(0, 3)]) == (Span(3, 5), Span(0, 3))


def test_ranges_drop_what_is_empty() -> None:
    assert union_ranges(np.array([[4, 4], [1, 2]])).tolist() == [[1, 2]]
    assert as_ranges([]).shape == (0, 2)
