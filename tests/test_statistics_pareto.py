"""The front is what brute force finds: what no other point beats."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chunkcore.errors import DataError, OptionError
from chunkcore.evaluation.statistics.resampling import pareto_front

small = st.sampled_from([0.0, 1.0, 2.0, 3.0, math.nan, math.inf])


def test_the_best_quality_of_each_price_is_on_the_front() -> None:
    #         tokens, recall: dearer and no better; cheap; the best; dearer and worse than the cheap one
    assert pareto_front([(900, 0.8), (200, 0.5), (800, 0.8), (300, 0.4)]) == [1, 2]


def test_equal_points_are_on_the_front_together() -> None:
    assert pareto_front([(1, 1), (2, 0), (1, 1)]) == [0, 2]


def test_what_is_not_known_is_not_on_the_front_and_beats_nothing() -> None:
    assert pareto_front([(math.nan, 1.0), (2.0, 0.5), (1.0, math.nan)]) == [1]
    assert pareto_front([]) == []
    assert pareto_front([(math.nan, math.nan)]) == []


def test_the_side_that_is_better_is_chosen_by_coordinate() -> None:
    points = [(1, 1), (2, 2), (3, 3)]
    assert pareto_front(points, better=("low", "low")) == [0]
    assert pareto_front(points, better=("high", "high")) == [2]
    assert pareto_front(points, better=("high", "low")) == [2, 1, 0]


@given(
    st.integers(1, 3).flatmap(
        lambda width: st.tuples(
            st.lists(st.tuples(*[small] * width), max_size=12),
            st.lists(st.sampled_from(["low", "high"]), min_size=width, max_size=width),
        )
    )
)
def test_it_is_what_brute_force_finds(drawn: tuple[list[tuple[float, ...]], list[str]]) -> None:
    points, better = drawn

    def beats(a: tuple[float, ...], b: tuple[float, ...]) -> bool:
        signed = [(x, y) if word == "low" else (-x, -y) for x, y, word in zip(a, b, better, strict=True)]
        return all(x <= y for x, y in signed) and any(x < y for x, y in signed)

    known = {i for i, point in enumerate(points) if all(map(math.isfinite, point))}
    expected = {i for i in known if not any(beats(points[j], points[i]) for j in known)}
    found = pareto_front(points, better=better)
    assert set(found) == expected
    assert len(found) == len(expected)
    firsts = [points[i][0] if better[0] == "low" else -points[i][0] for i in found]
    assert firsts == sorted(firsts)


def test_points_that_are_none_are_refused() -> None:
    with pytest.raises(DataError, match="rows of 2 numbers"):
        pareto_front([(1.0, 2.0, 3.0)])
    with pytest.raises(DataError, match="rows of 2 numbers"):
        pareto_front([("cheap", "good")])  # type: ignore[list-item]
    with pytest.raises(DataError, match=r"shape \(3,\)"):
        pareto_front(np.array([1.0, 2.0, 3.0]))
    with pytest.raises(OptionError, match='"low" or "high"'):
        pareto_front([(1, 1)], better=("low", "hgih"))
