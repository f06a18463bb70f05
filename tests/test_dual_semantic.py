"""dual_semantic groups sentences as the paper's section 3 says, and never holds the n × n matrix."""

from __future__ import annotations

import re

import numpy as np
import pytest
from chunkcore.chunkers.semantic import DualSemantic, band_statistics
from chunkcore.models.base import unit_rows
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.fakes import FakeEmbedder
from tests.processes import peak
from tests.test_breakpoint import REGEX, AngleEmbedder


def dual(**options) -> DualSemantic:
    usual = {"embedder": AngleEmbedder(), "splitter": REGEX, "k": 0.0, "counter": "words", "size": 20}
    return DualSemantic(**{**usual, "size_of": "text", **options})


@given(st.integers(0, 10**6), st.integers(2, 40), st.integers(1, 50))
def test_the_statistics_are_those_of_the_band_of_the_whole_matrix(seed, count, reach):
    unit = unit_rows(np.random.default_rng(seed).standard_normal((count, 3)).astype(np.float32))
    matrix = unit @ unit.T
    band = [matrix[i, j] for i in range(count) for j in range(i + 1, min(i + reach, count - 1) + 1)]
    assert band_statistics(unit, reach) == pytest.approx((np.mean(band), np.std(band)))


def test_memory_is_far_from_that_of_the_matrix():
    unit = unit_rows(np.random.default_rng(3).standard_normal((20_000, 16)).astype(np.float32))
    assert peak(lambda: band_statistics(unit, 50)) < 10e6 < 20_000**2 * 4


def test_a_block_joins_while_it_is_similar_to_every_block_of_the_chunk():
    """Neighbours are 30° apart: 0.866 each, 0.5 at two steps, 0 at three. Pairs up to 2 apart have the mean 0.72."""
    text = "0. 30. 60. 90."
    assert dual(d=2).split_text(text) == ["0. 30.", "60. 90."]
    assert dual(d=2, k=-1.3).split_text(text) == ["0. 30. 60.", "90."]  # over 0.72 - 1.3 · 0.18 = 0.487


def test_the_threshold_is_strict():
    """All similarities are equal: none is over their mean."""
    assert dual().split_text("5. 5. 5.") == ["5.", "5.", "5."]


@pytest.mark.parametrize("seed", range(40))
def test_the_one_similarity_of_two_sentences_is_the_threshold_and_not_over_it(seed):
    first, second = np.random.default_rng(seed).standard_normal((2, 384)).astype(np.float32)

    class Two(FakeEmbedder):
        def embed_documents(self, texts):
            return np.array([first if "One" in text else second for text in texts])

    for k in (0.0, 3.0):
        assert dual(embedder=Two(), k=k).split_text("One is here. Two is there.") == ["One is here.", "Two is there."]


def test_a_chunk_under_its_minimum_takes_the_next_block_whatever_it_is():
    text = "0. 90. 90. 0. 0."
    assert dual(d=1).split_text(text) == ["0.", "90. 90.", "0. 0."]
    assert dual(d=1, minimum=2, size_of="pieces").split_text(text) == ["0. 90.", "90. 0.", "0."]
    assert dual(d=1, minimum=2, size=2).split_text("0. 0 0. 0.") == ["0.", "0 0.", "0."]
    assert dual(minimum=2).split_text("0. 90.") == ["0. 90."]


def test_what_is_left_under_the_minimum_joins_its_neighbour_where_sizes_are_of_the_text():
    assert dual(d=1, minimum=2).split_text("0. 90. 90. 0. 0.") == ["0. 90.", "90. 0. 0."]
    # The one before, however alike: with the one after it would be over the maximum, or it had joined it.
    assert dual(d=1, minimum=2, size=4).split_text("0 0 0. 90. 90 90 90 90.") == ["0 0 0. 90.", "90 90 90 90."]


def test_a_block_that_would_take_the_chunk_over_the_maximum_begins_the_next():
    text = "0. 0. 0. 0. 0. 90."
    assert dual(d=1).split_text(text) == ["0. 0. 0. 0. 0.", "90."]
    assert dual(d=1, size=2).split_text(text) == ["0. 0.", "0. 0.", "0.", "90."]


def test_sizes_are_of_the_text_or_sums_over_blocks():
    text = "aa." + " " * 9 + "bb. zz."
    options = {"counter": "characters", "minimum": 6, "size": 8, "embedder": FakeEmbedder()}
    assert dual(size_of="pieces", **options).split_text(text) == ["aa." + " " * 9 + "bb.", "zz."]
    assert dual(size_of="text", **options).split_text(text) == ["aa.", "bb. zz."]


def test_a_sentence_over_the_maximum_is_cut_at_words_or_kept_where_sizes_are_sums():
    text = "1 2 3 4 5. 180."
    assert dual(size=3, d=1).split_text(text) == ["1 2 3", "4 5.", "180."]
    assert dual(size=3, d=1, size_of="pieces").split_text(text) == ["1 2 3 4 5.", "180."]


def plain_program(
    angles: list[int], sizes: list[int], k: float, d: int, least: int, most: int, *, maximum_first: bool
) -> list[list[int]]:
    similarity = [[np.cos(np.radians(a - b)) for b in angles] for a in angles]
    count = len(angles)
    band = [similarity[i][j] for i in range(count) for j in range(i + 1, min(i + d, count - 1) + 1)]
    threshold = np.mean(band) + k * np.std(band)
    # Where a similarity is the threshold but for rounding, rounding decides.
    assume(all(abs(value - threshold) > 1e-5 for row in similarity for value in row))
    chunks: list[list[int]] = [[0]]
    for block in range(1, count):
        size = sum(sizes[each] for each in chunks[-1])
        fits = size + sizes[block] <= most
        small = size < least and (fits or not maximum_first)
        if small or (fits and all(similarity[block][each] > threshold for each in chunks[-1])):
            chunks[-1].append(block)
        else:
            chunks.append([block])
    return chunks


@given(
    st.lists(st.tuples(st.integers(0, 180), st.integers(1, 5)), min_size=2, max_size=30),
    st.sampled_from([-1.0371, -0.3129, 0.4177, 1.0913]),
    st.integers(1, 12),
    st.just(0) | st.integers(0, 8),
    st.integers(8, 15),
)
def test_the_chunks_are_those_of_the_plain_program(sentences, k, d, least, most):
    angles, sizes = [angle for angle, _ in sentences], [words for _, words in sentences]
    text = " ".join(" ".join([str(angle)] * words) + "." for angle, words in sentences)
    # Of the text, what is left under the minimum is joined besides.
    for size_of in ("pieces", "text") if least == 0 else ("pieces",):
        chunks = plain_program(angles, sizes, k, d, least, most, maximum_first=size_of == "text")
        found = dual(k=k, d=d, minimum=least, size=most, size_of=size_of).split_text(text)
        assert [len(chunk.split()) for chunk in found] == [sum(sizes[block] for block in chunk) for chunk in chunks]


def test_the_papers_first_step_comes_before_its_maximum_where_sizes_are_sums():
    text = "0 0. 90 90 90 90 90 90. 180."
    assert dual(d=1, minimum=3, size=7, size_of="pieces").split_text(text) == ["0 0. 90 90 90 90 90 90.", "180."]
    assert dual(d=1, minimum=3, size=7).split_text(text) == ["0 0.", "90 90 90 90 90 90. 180."]


def test_by_default_sizes_are_those_of_the_papers_code():
    default = DualSemantic()
    assert (default.k, default.d, default.size) == (3.0, 10, 200)
    assert default.hard_maximum is None


def test_sentences_of_the_regular_expression_are_the_blocks():
    model = FakeEmbedder()
    text = "A b. C d? E."
    dual(embedder=model).spans(text)
    assert model.texts == re.split(r"(?<=[.?!])\s+", text)
