"""Breakpoints stand where the papers' formulas put them, sizes are kept in bounds, and the model is asked once."""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np
import pytest
from chunkcore.chunkers.recursive import Recursive
from chunkcore.chunkers.semantic import Breakpoint, Kamradt, KamradtModified, breakpoints, group_pieces
from chunkcore.tokens import CharacterCounter
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes import FakeEmbedder

REGEX = r"regex:(?<=[.?!])\s+"


class AngleEmbedder(FakeEmbedder):
    """A text's vector points to the mean of the numbers in it, in degrees."""

    def _vector(self, text: str) -> np.ndarray:
        angle = np.radians(np.mean([int(number) for number in re.findall(r"\d+", text)] or [0]))
        return np.array([np.cos(angle), np.sin(angle)] + [0.0] * (self.dimensions - 2))


def angles(**options) -> Breakpoint:
    usual = {"embedder": AngleEmbedder(), "splitter": REGEX, "buffer": 0, "threshold": "distance"}
    return Breakpoint(**{**usual, "counter": "words", **options})


DISTANCES = np.array([0.1, 0.2, 0.3, 0.4, 1.0])


@pytest.mark.parametrize(
    ("threshold", "amount", "cuts"),
    [
        ("percentile", 70, [3, 4]),  # over 0.38
        ("percentile", 50, [3, 4]),  # over 0.3, and 0.3 is not
        ("percentile", 100, []),
        ("standard_deviation", 1, [4]),  # over 0.4 + 0.316
        ("standard_deviation", -0.5, [2, 3, 4]),  # over 0.4 - 0.158
        ("standard_deviation", 2, []),
        ("interquartile", 1.5, [4]),  # over 0.4 + 1.5 · 0.2
        ("interquartile", -0.75, [2, 3, 4]),
        ("gradient", 70, [3, 4]),  # of 0.1, 0.1, 0.1, 0.35, 0.6 over 0.3
        ("gradient", 75, [4]),
        ("distance", 0.3, [3, 4]),
        ("distance", 0.0, [0, 1, 2, 3, 4]),
        ("absolute_gradient", 0.35, [4]),
        ("absolute_gradient", 0.2, [3, 4]),
    ],
)
def test_the_thresholds_by_hand(threshold, amount, cuts):
    assert np.flatnonzero(breakpoints(DISTANCES, threshold, amount)).tolist() == cuts


def test_distances_that_are_all_the_same_are_not_cut_by_rounding():
    same = np.full(1001, 0.3)
    for threshold in ("percentile", "standard_deviation", "interquartile", "gradient"):
        assert not breakpoints(same, threshold, 0).any()


@pytest.mark.parametrize("threshold", ["gradient", "absolute_gradient"])
def test_one_distance_has_no_gradient(threshold):
    assert breakpoints(np.array([0.9]), threshold, 0).tolist() == [False]
    assert angles(threshold=threshold, amount=0).split_text("0. 90.") == ["0. 90."]


def test_a_chunk_ends_where_the_direction_changes():
    """1 - cos 90° = 1 and 1 - cos 30° = 0.134."""
    text = " 0. 0.\n\n90. 90. 60. "
    assert angles().split_text(text) == ["0. 0.", "90. 90. 60."]
    assert angles(amount=0.13).split_text(text) == ["0. 0.", "90. 90.", "60."]


def plain_chunks(text: str, model: FakeEmbedder, percentile: float) -> list[str]:
    """Kamradt's program, sentence by sentence: one on each side, all distances over a percentile."""
    sentences = [part for part in re.split(r"(?<=[.?!])\s+", text) if part.strip()]
    windows = [" ".join(sentences[max(0, i - 1) : i + 2]).strip() for i in range(len(sentences))]
    vectors = [model._vector(window) for window in windows]
    distances = [1 - left @ right for left, right in pairwise(vectors)]
    limit = np.percentile(distances, percentile) if distances else 0
    chunks: list[list[str]] = [[]]
    for place, sentence in enumerate(sentences):
        if place and distances[place - 1] > limit + 1e-6:
            chunks.append([])
        chunks[-1].append(sentence)
    return ["".join("".join(chunk).split()) for chunk in chunks if chunk]


SENTENCES = st.lists(st.sampled_from(["Cats sat.", "Dogs ran!", "Shares fell?", "Cats ran.", "It rains today."]))


@given(SENTENCES, st.sampled_from([" ", "\n", "\n\n "]), st.sampled_from([50, 80, 95]))
def test_the_chunks_are_those_of_the_plain_program(sentences, gap, percentile):
    text = gap.join(sentences)
    ours = Kamradt(amount=percentile, embedder=FakeEmbedder()).split_text(text)
    assert ["".join(chunk.split()) for chunk in ours] == plain_chunks(text, FakeEmbedder(), percentile)


def test_the_model_reads_windows_joined_by_spaces_each_once_and_together():
    model = FakeEmbedder()
    Kamradt(embedder=model).spans("A.\nB.  C.\n\nA. B. C. A.")
    assert model.calls == 1
    assert model.texts == ["A. B.", "A. B. C.", "B. C. A.", "C. A. B.", "C. A."]


def test_a_pattern_that_takes_more_than_white_space_loses_nothing():
    text = "(0)0; 90; 0"
    assert angles(splitter="regex:;").split_text(text) == ["(0)0;", "90;", "0"]
    assert angles(splitter=r"regex:\(0\)").split_text(text) == [text]


def test_an_empty_last_sentence_counts_where_the_original_has_one():
    """Its distance is one more: the median of 0, 1, 1 is 1, which nothing is over; that of 0, 1 is 0.5."""
    text, half = "A 0. B 0. C 90.", {"threshold": "percentile", "amount": 50, "minimum": 0}
    cut, whole = ["A 0. B 0.", "C 90."], ["A 0. B 0. C 90."]
    assert angles(**half).split_text(text + " \n") == cut
    assert angles(**half, empty_end=True).split_text(text + " \n") == whole
    assert angles(**half, empty_end=True).split_text(text) == cut  # re.split leaves none here
    assert angles(**half, empty_end=True, splitter="default").split_text(text + " \n") == cut
    assert angles(**half, empty_end=True).split_text("A 0. ") == ["A 0."]
    assert angles(threshold="distance", amount=0.5, empty_end=True).split_text(text + " ") == cut  # it is cut off
    assert angles(**half, empty_end=True).split_text(" ") == []


def test_a_fragment_joins_the_nearer_neighbour():
    options = {"amount": 0.05, "minimum": 2}
    assert angles(**options).split_text("0. 0. 50. 90. 90.") == ["0. 0.", "50. 90. 90."]
    assert angles(**options).split_text("0. 0. 40. 90. 90.") == ["0. 0. 40.", "90. 90."]
    assert angles(**options).split_text("40. 90. 90.") == ["40. 90. 90."]
    assert angles(**options).split_text("90. 90. 40.") == ["90. 90. 40."]
    assert angles(**{**options, "minimum": 4}).split_text("0. 40. 90.") == ["0. 40. 90."]


def test_a_fragment_that_does_not_fit_joins_the_other_neighbour_or_stays():
    text = "0. 0. 0. 40. 90. 90."
    options = {"amount": 0.05, "minimum": 2}
    assert angles(size=4, **options).split_text(text) == ["0. 0. 0. 40.", "90. 90."]
    assert angles(size=3, **options).split_text(text) == ["0. 0. 0.", "40. 90. 90."]
    assert angles(size=2, **options).split_text("0. 0. 40. 90. 90.") == ["0. 0.", "40.", "90. 90."]


def test_a_chunk_over_the_maximum_is_packed_from_its_sentences_and_a_sentence_cut_at_words():
    assert angles(size=2).split_text("0. 0. 0. 90.") == ["0. 0.", "0.", "90."]
    assert angles(size=3).split_text("0 0 0 0. 0. 90.") == ["0 0 0", "0.", "0.", "90."]


@given(st.lists(st.tuples(st.integers(1, 9), st.floats(0, 2), st.booleans()), min_size=1), st.integers(1, 30))
def test_without_a_maximum_no_chunk_is_under_the_minimum_unless_the_text_is(pieces, least):
    text = " ".join("x" * size for size, _, _ in pieces)
    ranges = np.array([match.span() for match in re.finditer("x+", text)])
    distances = np.array([each[1] for each in pieces[1:]])
    cuts = np.array([each[2] for each in pieces[1:]], dtype=bool)
    found = group_pieces(CharacterCounter().tokenize(text), ranges, distances, cuts, minimum=least)
    sizes = [end - start for start, end in found]
    assert len(sizes) == 1 or min(sizes) >= least
    assert {start for start, _ in found} <= {0, *ranges[1:][cuts, 0].tolist()}


def modified(**options) -> KamradtModified:
    return KamradtModified(
        **{"embedder": AngleEmbedder(), "splitter": REGEX, "buffer": 0, "counter": "words", **options}
    )


def test_the_greatest_threshold_that_keeps_the_largest_chunk_within_the_size():
    """Distances in turn: 0.06, 0.5, 0.06, 0.23, 0.06: cut after the second alone, then also after the fourth."""
    text = "0. 20. 80. 100. 140. 160."
    assert modified(size=6).split_text(text) == [text]
    assert modified(size=5).split_text(text) == ["0. 20.", "80. 100. 140. 160."]
    assert modified(size=3).split_text(text) == ["0. 20.", "80. 100.", "140. 160."]
    assert modified(size=1).split_text(text) == text.split()


@given(st.lists(st.tuples(st.integers(0, 180), st.integers(1, 6)), min_size=2, max_size=9), st.integers(1, 12))
def test_no_greater_threshold_would_do(sentences, size):
    text = " ".join(" ".join([str(angle)] * words) + "." for angle, words in sentences)
    strategy = modified(size=size)
    distances = [1 - np.cos(np.radians(a - b)) for (a, _), (b, _) in pairwise(sentences)]
    if min(np.diff(sorted([*distances, 2.1]))) < 1e-5:
        return  # which of them is greater is rounding

    def chunk_ends(threshold: float) -> list[int]:
        return [*(i for i, each in enumerate(distances) if each > threshold + 1e-6), len(sentences) - 1]

    def fits(ends: list[int]) -> bool:
        firsts = [0, *(end + 1 for end in ends[:-1])]
        return all(
            first == end or sum(words for _, words in sentences[first : end + 1]) <= size
            for first, end in zip(firsts, ends, strict=True)
        )

    best = next(ends for each in [*sorted(distances, reverse=True), -1.0] if fits(ends := chunk_ends(each)))
    expected = {sum(words for _, words in sentences[: end + 1]) for end in best}
    chunks = strategy.split_text(text)
    assert max(len(chunk.split()) for chunk in chunks) <= size
    assert expected <= set(np.cumsum([len(chunk.split()) for chunk in chunks]).tolist())
    if max(words for _, words in sentences) <= size:
        assert len(chunks) == len(best)


@given(st.lists(st.integers(0, 180), min_size=2, max_size=25), st.integers(1, 30))
def test_the_mean_goal_makes_as_many_cuts_as_the_size_goes_into_the_text_or_one_more(sentences, size):
    distances = [1 - np.cos(np.radians(a - b)) for a, b in pairwise(sentences)]
    if max(distances) > 0.99 or min(np.diff(sorted([0.0, *distances]))) < 2e-5:
        return  # cuts that come only together, and distances where the code does not look
    found = modified(goal="mean", size=size).split_text(" ".join(f"{angle}." for angle in sentences))
    wanted = len(sentences) // size
    cuts = np.cumsum([len(chunk.split()) for chunk in found])[:-1] - 1
    assert len(cuts) in (min(wanted, len(distances)), wanted + 1)
    assert set(cuts.tolist()) == set(np.argsort(distances)[::-1][: len(cuts)].tolist())


def test_the_mean_goal_by_hand():
    """The greatest distances, 0.5 and 0.234, are 1 - cos 60° and 1 - cos 40°."""
    text = "0. 20. 80. 100. 140. 160."
    assert modified(goal="mean", size=4).split_text(text) == ["0. 20.", "80. 100. 140. 160."]
    assert modified(goal="mean", size=3).split_text(text) == ["0. 20.", "80. 100.", "140. 160."]
    assert modified(goal="mean").hard_maximum is None


def test_pieces_of_a_size_take_the_place_of_sentences():
    model = FakeEmbedder()
    text = "One two three. Four five six. Seven eight nine."
    KamradtModified(piece_size=4, size=8, buffer=0, counter="words", embedder=model).spans(text)
    separators = ("\n\n", "\n", ".", "?", "!", " ", "")
    assert model.texts == Recursive(size=4, counter="words", separators=separators).split_text(text)


@pytest.mark.parametrize("chunker", [Breakpoint, Kamradt, KamradtModified])
def test_a_text_without_sentences_has_no_chunks(chunker: type[Breakpoint | KamradtModified]) -> None:
    assert chunker(embedder=FakeEmbedder()).split_text(" \n") == []
