"""single_linkage joins the nearest sentences first, within its limits, by the joint distance of Qu et al. (2024)."""

from __future__ import annotations

import numpy as np
import pytest
from chunkcore.chunkers import clusters
from chunkcore.chunkers.clusters import SingleLinkage, link, near_pairs, pairs_within
from chunkcore.chunkers.sentence import FixedSentences
from chunkcore.errors import DataError
from chunkcore.models.base import unit_rows
from chunkcore.text import Document
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes import FakeEmbedder
from tests.strategies import prose
from tests.test_breakpoint import REGEX, AngleEmbedder


def linkage(**options) -> SingleLinkage:
    return SingleLinkage(**{"embedder": AngleEmbedder(), "counter": "words", "splitter": REGEX, **options})


def random_unit(seed: int, count: int, dimensions: int = 3) -> np.ndarray:
    return unit_rows(np.random.default_rng(seed).standard_normal((count, dimensions)).astype(np.float32))


def joint_distances(unit: np.ndarray, weight: float) -> np.ndarray:
    """Equations 1 to 3 for all pairs, shape (n, n)."""
    places = np.arange(len(unit))
    meaning = 1.0 - np.clip(unit @ unit.T, 0.0, 1.0)
    return meaning * (1.0 - weight) + weight * (np.abs(places[:, None] - places) / len(unit))


def test_the_distance_is_that_of_equations_1_to_3():
    """Four sentences at 0°, 60°, 90° and 180°: cosines to the first 0.5, 0 and -1, which counts as 0."""
    unit = np.array([[np.cos(a), np.sin(a)] for a in np.radians([0, 60, 90, 180])])
    for weight, expected in [(0.0, [0.5, 1, 1]), (1.0, [0.25, 0.5, 0.75]), (0.25, [0.4375, 0.875, 0.9375])]:
        left, right, distances = near_pairs(unit, weight, 1.0, slice(0, 1))
        assert (left.tolist(), right.tolist()) == ([0, 0, 0], [1, 2, 3])
        assert distances == pytest.approx(expected, abs=1e-12)


weights, stops = st.sampled_from([0.0, 0.25, 0.5, 0.9, 1.0]), st.sampled_from([0.0, 0.1, 0.3, 0.5, 0.7, 1.0])


@given(st.integers(0, 10**6), st.integers(1, 20), st.integers(1, 7), weights, stops)
def test_the_near_pairs_are_those_of_the_whole_matrix(seed, count, step, weight, stop):
    unit = random_unit(seed, count)
    whole = joint_distances(unit, weight)
    if (np.abs(whole - stop) < 1e-12).any() and weight < 1:
        return
    found = []
    for start in range(0, count, step):
        rows = slice(start, min(start + step, count))
        found += list(zip(*near_pairs(unit, weight, stop, rows), strict=True))
    expected = [(a, b) for a in range(count) for b in range(a + 1, count) if whole[a, b] <= stop]
    assert [(a, b) for a, b, _ in found] == expected
    assert [distance for _, _, distance in found] == pytest.approx([whole[pair] for pair in expected])


def test_more_sentences_than_can_be_compared_are_refused(monkeypatch):
    monkeypatch.setattr(clusters, "MOST_SENTENCES", 3)
    with pytest.raises(DataError, match="the text has 4 sentences, and comparing all of over 3 takes hours: cut the"):
        linkage().split_text("0. 1. 2. 3.")
    assert linkage().split_text("0. 1. 2.")


def plain_program(distances: np.ndarray, weights: np.ndarray, limits: np.ndarray, stop: float) -> list[set[int]]:
    """Appendix A: every pair by distance; a merge that exceeds a limit is not done; over the threshold none is."""
    count = len(distances)
    clusters = [{row} for row in range(count)]
    pairs = sorted((distances[a, b], a, b) for a in range(count) for b in range(a + 1, count))
    for distance, a, b in pairs:
        if distance > stop:
            break
        first = next(each for each in clusters if a in each)
        second = next(each for each in clusters if b in each)
        if first is not second and (weights[list(first | second)].sum(axis=0) <= limits).all():
            clusters.remove(second)
            first |= second
    return sorted(clusters, key=min)


few, gaps = st.sampled_from([0.0, 0.3, 0.9]), st.sampled_from([0.2, 0.5, 2.0])


@given(st.integers(0, 10**6), st.integers(2, 25), few, gaps, st.booleans())
def test_the_clusters_are_those_of_the_plain_program(seed, count, weight, stop, ties):
    unit = random_unit(seed, count)
    if ties:
        unit = unit[np.random.default_rng(seed).integers(0, min(3, count), count)]
    weights = np.random.default_rng(seed).integers(1, 5, (count, 2))
    limits = np.array([9, 12])
    distances = joint_distances(unit, weight)
    expected = plain_program(distances, weights, limits, stop)
    labels = link(*pairs_within("", unit, weight, ("stop", stop)), weights, limits)
    assert labels.tolist() == [min(next(each for each in expected if row in each)) for row in range(count)]


def test_one_near_sentence_links_two_that_are_far_from_each_other():
    """0° and 80° are 0.83 apart, each less than 0.24 from 40°."""
    assert linkage(position_weight=0.0).split_text("0. 80. 40.") == ["0. 80. 40."]
    assert linkage(position_weight=0.0).split_text("0. 80.") == ["0.", "80."]


def test_clusters_need_not_be_contiguous_and_are_ordered_by_their_start():
    chunks = linkage(position_weight=0.1).chunk(Document("d", "0. 90. 1. 2. 91. 180."))
    assert [chunk.text for chunk in chunks] == ["0. 1. 2.", "90. 91.", "180."]
    spans = [[(span.start, span.end) for span in chunk.spans] for chunk in chunks]
    assert spans == [[(0, 2), (7, 12)], [(3, 6), (13, 16)], [(17, 21)]]


def test_a_merge_over_the_limit_is_not_done_and_a_later_one_that_fits_is():
    """All are alike, so the nearest are the next: 1 + 2 words, which the 4 cannot join, but the 1 can."""
    text = "0. 0 0. 0 0 0 0. 0."
    assert linkage(size=4).split_text(text) == ["0. 0 0. 0.", "0 0 0 0."]
    assert linkage(size=3).split_text("0. 0 0. 0 0. 0.") == ["0. 0 0.", "0 0. 0."]


def test_the_number_of_chunks_limits_the_sentences_of_each():
    text = "0. 0. 0. 0. 0. 0. 0."
    assert linkage(chunks=3).split_text(text) == ["0. 0. 0.", "0. 0. 0.", "0."]
    assert linkage(chunks=100).split_text(text) == ["0."] * 7


@given(prose(max_sentences=30), st.integers(1, 12))
def test_by_position_alone_the_chunks_are_those_of_fixed_sentences(text, chunks):
    """Section 2: with λ = 1 it mirrors the fixed-size chunker."""
    options = {"chunks": chunks, "position_weight": 1.0, "size": None, "embedder": FakeEmbedder()}
    count = len(FixedSentences(sentences=1, splitter=REGEX).spans(text))
    size = -(-count // chunks)
    assert linkage(**options, stop=1.0).spans(text) == FixedSentences(sentences=size, splitter=REGEX).spans(text)


def test_over_the_stopping_distance_nothing_is_joined():
    """60° apart, next to each other, of two: 0.5 · 0.5 + 0.5 · 0.5."""
    assert linkage(stop=0.51).split_text("0. 60.") == ["0. 60."]
    assert linkage(stop=0.49).split_text("0. 60.") == ["0.", "60."]
    assert linkage(position_weight=1.0, stop=0.5).split_text("0. 60.") == ["0. 60."]  # at it something is


def test_the_maximum_is_of_the_joined_text():
    """Two far parts of three characters are seven with the space between them."""
    options = {"counter": "characters", "position_weight": 0.0}
    assert linkage(size=7, **options).split_text("10. 90. 10.") == ["10. 10.", "90."]
    assert linkage(size=6, **options).split_text("10. 90. 10.") == ["10.", "90.", "10."]


def test_white_space_that_makes_a_chunk_too_large_parts_it():
    assert linkage(size=7, counter="characters").split_text("10. 10.") == ["10. 10."]
    assert linkage(size=7, counter="characters").split_text("10.     10.") == ["10.", "10."]


def test_a_sentence_over_the_maximum_is_clustered_in_parts():
    assert linkage(size=3).split_text("1 2 3 4 5. 180.") == ["1 2 3", "4 5.", "180."]


def test_more_pairs_than_memory_should_hold_are_refused(monkeypatch):
    monkeypatch.setattr(clusters, "MOST_PAIRS", 10)
    with pytest.raises(DataError, match=r"single_linkage: .* more than 10 pairs are within stop=0\.5.*lower stop"):
        linkage().split_text("0. 0. 0. 0. 0. 0.")
