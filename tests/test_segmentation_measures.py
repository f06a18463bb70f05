"""Boundaries found, missed and moved: hand-computed cases, and the field's own programs where they are installed."""

from __future__ import annotations

from itertools import combinations, pairwise
from types import ModuleType

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from chunkcore.errors import DataError
from chunkcore.evaluation.segmentation import boundary_scores, boundary_similarity, pk, window_diff, window_size

# --- Boundary precision, recall and F1 --------------------------------------------------------------------------


def test_boundaries_that_stand_in_the_same_place_are_right():
    """Of three found one is right, of two to be found one was."""
    assert boundary_scores([10, 20], [10, 15, 30], 40) == (1 / 3, 1 / 2, 2 / 5)


def test_a_tolerance_lets_each_boundary_be_right_by_one_other():
    assert boundary_scores([10], [9, 11], 40, tolerance=1) == (1 / 2, 1, 2 / 3)
    assert boundary_scores([10, 12], [11], 40, tolerance=1) == (1, 1 / 2, 2 / 3)
    assert boundary_scores([10], [13], 40, tolerance=2) == (0, 0, 0)
    assert boundary_scores([10, 11], [9, 10], 40, tolerance=1) == (1, 1, 1)


def test_what_has_no_boundaries_at_all():
    assert boundary_scores([], [], 40) == (1, 1, 1)
    assert boundary_scores([10], [], 40) == (0, 0, 0)
    assert boundary_scores([], [10], 40) == (0, 1, 0)
    assert boundary_scores([], [], 0) == (1, 1, 1)


STARTS = st.sets(st.integers(1, 29), max_size=7)


@given(STARTS, STARTS, st.integers(0, 6))
def test_as_many_pairs_are_made_as_can_be(reference, hypothesis, tolerance):
    """Brute force: augmenting paths in the graph of all pairs that are near enough."""
    partner: dict[int, int] = {}

    def placed(start: int, seen: set[int]) -> bool:
        for other in hypothesis:
            if abs(start - other) <= tolerance and other not in seen:
                seen.add(other)
                if other not in partner or placed(partner[other], seen):
                    partner[other] = start
                    return True
        return False

    pairs = sum(placed(start, set()) for start in reference)
    found = boundary_scores(reference, hypothesis, 30, tolerance)
    if hypothesis:
        assert found.precision == pairs / len(hypothesis)
    if reference:
        assert found.recall == pairs / len(reference)
    back = boundary_scores(hypothesis, reference, 30, tolerance)
    assert back.f1 == found.f1
    if reference and hypothesis:
        assert (back.precision, back.recall) == (found.recall, found.precision)


# --- Boundary similarity ----------------------------------------------------------------------------------------


def test_similarity_counts_agreements_and_a_move_in_part():
    assert boundary_similarity([10], [10], 40) == 1
    assert boundary_similarity([10], [11], 40) == 1 / 2  # one edit, moved by 1 of at most 1
    assert boundary_similarity([10], [12], 40) == 0  # two edits, both whole
    assert boundary_similarity([10], [12], 40, near=2) == 1 - 2 / 3
    assert boundary_similarity([10, 20], [10], 40) == 1 / 2
    assert boundary_similarity([10, 20, 30], [10, 21, 25], 40) == (1 + 1 / 2) / (1 + 1 + 2)
    assert boundary_similarity([], [], 40) == 1
    assert boundary_similarity([], [10], 40) == 0


def test_the_nearest_are_paired_first_and_each_once():
    """12 is 2 from 10 and 1 from 13: it moves to 13, and 10 stays alone."""
    assert boundary_similarity([10, 13], [12], 40, near=2) == pytest.approx((1 - 1 / 3) / 2)


def test_no_near_miss_counts_where_none_is_asked_for():
    assert boundary_similarity([10, 20], [11, 20], 40, near=0) == 1 / 3


@given(STARTS, STARTS, st.integers(0, 5))
def test_similarity_is_symmetric_and_one_only_for_equals(reference, hypothesis, near):
    found = boundary_similarity(reference, hypothesis, 30, near)
    assert 0 <= found <= 1
    assert found == pytest.approx(boundary_similarity(hypothesis, reference, 30, near))
    assert (found == 1) == (reference == hypothesis)
    assert found <= boundary_similarity(reference, hypothesis, 30, near + 1) + 1e-9 or near


@pytest.mark.parametrize("wrong", [0, 40, -1])
def test_a_boundary_outside_the_text_is_told(wrong):
    for measure in (boundary_scores, boundary_similarity):
        with pytest.raises(DataError, match=f"begin at 1 to 39 .*got {wrong}"):
            measure([10], [wrong], 40)
    with pytest.raises(DataError, match="tolerance is at least 0"):
        boundary_scores([10], [10], 40, tolerance=-1)
    with pytest.raises(DataError, match="near is at least 0"):
        boundary_similarity([10], [10], 40, near=-1)


# --- The field's own programs -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def segeval() -> ModuleType:
    return pytest.importorskip("segeval", reason="segeval, the program of Fournier (2013), is not installed")


def masses(starts: set[int], count: int) -> tuple[int, ...]:
    """What segeval reads: the lengths of segments."""
    places = [0, *sorted(starts), count]
    return tuple(after - before for before, after in pairwise(places))


@settings(max_examples=200)
@given(st.data(), st.integers(2, 30), st.integers(1, 5))
def test_boundary_similarity_is_segevals(segeval, data, count, near):
    starts = st.sets(st.integers(1, count - 1))
    reference, hypothesis = data.draw(starts), data.draw(starts)
    assume(reference or hypothesis)  # segeval fails where there is no boundary at all
    theirs = segeval.boundary_similarity(masses(reference, count), masses(hypothesis, count), n_t=near + 1)
    assert boundary_similarity(reference, hypothesis, count, near) == pytest.approx(float(theirs), abs=1e-9)


@given(st.data(), st.integers(4, 30))
def test_exact_precision_and_recall_are_segevals(segeval, data, count):
    starts = st.sets(st.integers(1, count - 1), min_size=1)
    reference, hypothesis = data.draw(starts), data.draw(starts)
    confusion = segeval.boundary_confusion_matrix(masses(reference, count), masses(hypothesis, count), n_t=1)
    found = boundary_scores(reference, hypothesis, count)
    assert found.precision == pytest.approx(float(segeval.precision(confusion, 1)))
    assert found.recall == pytest.approx(float(segeval.recall(confusion, 1)))
    assert found.f1 == pytest.approx(float(segeval.fmeasure(confusion, 1)))


@settings(max_examples=200)
@given(st.data(), st.integers(3, 40))
def test_pk_and_window_diff_are_nltks(data, count):
    """nltk reads a string with 1 where a boundary follows a unit.

    After the last unit no boundary can be: with a place for it, nltk would count a window more than the papers do.
    """
    nltk = pytest.importorskip("nltk.metrics.segmentation", reason="nltk is not installed")
    starts = st.sets(st.integers(1, count - 1))
    reference, hypothesis = data.draw(starts), data.draw(starts)
    window = data.draw(st.integers(1, count - 1))
    one, other = ("".join("01"[place in each] for place in range(1, count)) for each in (reference, hypothesis))
    assert pk(reference, hypothesis, count, window) == pytest.approx(nltk.pk(one, other, k=window))
    assert window_diff(reference, hypothesis, count, window) == pytest.approx(nltk.windowdiff(one, other, window))


def test_the_default_window_is_half_a_segment():
    for reference in combinations(range(1, 12), 2):
        assert window_size(reference, 12) == 2
