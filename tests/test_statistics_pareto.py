"""The front is what brute force finds: what no other point beats."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from chunkcore.evaluation.resampling import pareto_front

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


@given(st.lists(st.tuples(small, small), max_size=12))
def test_it_is_what_brute_force_finds(points: list[tuple[float, float]]) -> None:
    def beats(a: tuple[float, float], b: tuple[float, float]) -> bool:
        return a[0] <= b[0] and a[1] >= b[1] and a != b

    finite = {i for i, point in enumerate(points) if all(map(math.isfinite, point))}
    front = pareto_front(points)
    assert set(front) == {i for i in finite if not any(beats(points[j], points[i]) for j in finite)}
    prices = [points[i][0] for i in front]
    assert prices == sorted(prices)
