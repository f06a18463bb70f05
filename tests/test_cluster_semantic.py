"""cluster_semantic finds the best segmentation there is, keeps every character, and needs little memory."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest
from chunkcore.chunkers import clusters
from chunkcore.chunkers.clusters import ClusterSemantic, mean_pair_similarity, optimal_segmentation
from chunkcore.chunkers.recursive import Recursive
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes import FakeEmbedder
from tests.processes import peak
from tests.strategies import hard_text, prose


def centred_similarities(vectors: np.ndarray) -> np.ndarray:
    wide = vectors.astype(np.float64)
    norms = np.linalg.norm(wide, axis=1, keepdims=True)
    unit = np.divide(wide, norms, out=np.zeros_like(wide), where=norms > 0)
    matrix = unit @ unit.T
    pairs = matrix[np.triu_indices(len(matrix), k=1)]
    matrix = matrix - (pairs.mean() if len(pairs) else 0.0)
    np.fill_diagonal(matrix, 0.0)
    return matrix


def total(matrix: np.ndarray, sizes: list[int]) -> float:
    ends = np.cumsum(sizes)
    return sum(matrix[end - size : end, end - size : end].sum() / 2 for end, size in zip(ends, sizes, strict=True))


def all_segmentations(count: int, most: int) -> list[list[int]]:
    if count == 0:
        return [[]]
    return [[*rest, size] for size in range(1, min(most, count) + 1) for rest in all_segmentations(count - size, most)]


def plain_programme(matrix: np.ndarray, most: int) -> list[int]:
    """The dynamic programme over the whole matrix, pair by pair."""
    best, last = [0.0], []
    for end in range(1, len(matrix) + 1):
        values = [
            best[end - size] + matrix[end - size : end, end - size : end].sum() / 2
            for size in range(1, min(most, end) + 1)
        ]
        last.append(max(size for size, value in enumerate(values, 1) if value >= max(values) - 1e-9))
        best.append(values[last[-1] - 1])
    sizes, end = [], len(matrix)
    while end:
        sizes.append(last[end - 1])
        end -= sizes[-1]
    return sizes[::-1]


def random_vectors(seed: int, count: int, dimensions: int, repeats: bool = False) -> np.ndarray:
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((count, dimensions))
    if repeats and count:
        rows = rows[rng.integers(0, max(1, count // 3), size=count)]
        rows[rng.random(count) < 0.1] = 0.0
    return rows.astype(np.float32)


@given(st.integers(0, 10**6), st.integers(1, 10), st.integers(1, 5), st.integers(1, 12), st.booleans())
def test_no_segmentation_is_better(seed, count, dimensions, most, repeats):
    vectors = random_vectors(seed, count, dimensions, repeats)
    matrix = centred_similarities(vectors)
    sizes = optimal_segmentation(vectors, most).tolist()
    assert sum(sizes) == count
    assert max(sizes) <= most
    best = max(total(matrix, each) for each in all_segmentations(count, most))
    assert total(matrix, sizes) == pytest.approx(best, abs=1e-7)


@given(st.integers(0, 10**6), st.integers(1, 90), st.integers(2, 9), st.integers(1, 100), st.integers(1, 100))
def test_the_boundaries_are_those_of_the_whole_matrix(seed, count, dimensions, most, block_rows):
    vectors = random_vectors(seed, count, dimensions)
    with patch.object(clusters, "BLOCK_ROWS", block_rows):
        sizes = optimal_segmentation(vectors, most).tolist()
    assert sizes == plain_programme(centred_similarities(vectors), most)


@pytest.mark.parametrize(("count", "most"), [(1500, 3), (1500, 8), (300, 260), (270, 270)])
def test_long_texts_and_long_windows_too(count, most):
    """Longer than one block of the computation, and wider than one of its matrix products."""
    vectors = random_vectors(count + most, count, 6)
    assert optimal_segmentation(vectors, most).tolist() == plain_programme(centred_similarities(vectors), most)


@given(st.integers(0, 10**6), st.integers(0, 60), st.integers(1, 9), st.booleans())
def test_the_mean_over_pairs_is_that_of_the_whole_matrix(seed, count, dimensions, repeats):
    vectors = random_vectors(seed, count, dimensions, repeats)
    norms = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    unit = vectors / np.where(norms > 0, norms, 1)
    pairs = (unit @ unit.T)[np.triu_indices(count, k=1)]
    assert mean_pair_similarity(vectors) == pytest.approx(pairs.mean() if len(pairs) else 0.0, abs=1e-7)


@given(st.integers(0, 10**6), st.integers(1, 9), st.integers(1, 5), st.integers(1, 9))
def test_of_what_fits_no_segmentation_is_better(seed, count, most, block_rows):
    vectors, most = random_vectors(seed, count, 3), min(most, count)
    matrix = centred_similarities(vectors)
    fits = np.random.default_rng(seed).random((count, most)) < 0.6
    fits[:, 0] = True

    def allowed(sizes: list[int]) -> bool:
        return all(fits[end - 1, size - 1] for end, size in zip(np.cumsum(sizes), sizes, strict=True))

    with patch.object(clusters, "BLOCK_ROWS", block_rows):
        sizes = optimal_segmentation(vectors, most, fits=fits).tolist()
    assert allowed(sizes)
    best = max(total(matrix, each) for each in all_segmentations(count, most) if allowed(each))
    assert total(matrix, sizes) == pytest.approx(best, abs=1e-7)


def test_a_small_case_by_hand():
    """3 of 15 pairs are alike (1), the others not (0): the mean is 0.2, a like pair is worth 0.8, an unlike -0.2."""
    a, b, c = np.eye(3, dtype=np.float32)
    vectors = np.array([a, a, b, b, c, c])
    assert mean_pair_similarity(vectors) == pytest.approx(0.2)
    assert optimal_segmentation(vectors, 6).tolist() == [2, 2, 2]
    assert optimal_segmentation(vectors, 1).tolist() == [1, 1, 1, 1, 1, 1]


def test_strangers_at_the_start_stay_apart():
    """The report's code joins all that precedes the first pair above the mean; the objective does not."""
    a, b, c = np.eye(3, dtype=np.float32)
    assert optimal_segmentation(np.array([a, b, c, c, c]), 5).tolist() == [1, 1, 3]


def test_pieces_that_are_all_alike_are_kept_together():
    vectors = np.tile(random_vectors(1, 1, 7), (10, 1))
    assert optimal_segmentation(vectors, 4).tolist() == [2, 4, 4]


def settled(vectors: np.ndarray, most: int, mean: float) -> set[int]:
    """The cuts that the best segmentations up to each of the last `most` rows have in common."""
    count = len(vectors)
    ends = range(max(0, count - most + 1), count + 1)
    cuts = [np.cumsum(optimal_segmentation(vectors[:end], most, mean=mean)).tolist() for end in ends]
    return {0}.union(set.intersection(*map(set, cuts)))


@given(st.lists(prose(), min_size=2, max_size=8).map("\n\n".join), prose() | hard_text())
def test_text_that_is_appended_moves_no_settled_boundary(before, after):
    frozen = chunker(size=20, piece_size=5, mean=0.2)
    splitter = Recursive(size=5, separators=frozen.separators)
    pieces = splitter.spans(before)[:-1]  # the last one can grow
    assert splitter.spans(before + after)[: len(pieces)] == pieces
    if not pieces:
        return
    vectors = FakeEmbedder().embed_documents([before[span.start : span.end] for ((span),) in pieces])
    starts = {pieces[cut][0].start for cut in settled(vectors, 4, 0.2) if cut < len(pieces)}
    assert starts <= {span.start for ((span),) in frozen.spans(before + after)}


def test_memory_is_far_from_that_of_the_matrix():
    vectors = random_vectors(3, 20_000, 16)
    assert peak(lambda: optimal_segmentation(vectors, 8)) < 20e6 < 20_000**2 * 4


def chunker(**options) -> ClusterSemantic:
    return ClusterSemantic(**{"embedder": FakeEmbedder(), "size": 60, "piece_size": 12, **options})


ANIMALS = "The cat sat. The cat slept. The cat purred. "
MONEY = "Shares fell today. Shares rose today. Shares fell again. "


def test_it_cuts_where_the_subject_changes():
    found = chunker(size=150, piece_size=30, counter="characters").split_text((ANIMALS + MONEY) * 3)
    assert all(("cat" in text) != ("Shares" in text) for text in found)
    assert len(found) == 6


@given(hard_text())
def test_a_chunk_has_no_more_pieces_than_the_maximum_allows(text):
    pieces = Recursive(size=12, separators=chunker().separators, counter="characters").spans(text)
    starts = [spans[0].start for spans in pieces]
    for ((span),) in chunker(counter="characters").spans(text):
        assert sum(span.start <= start < span.end for start in starts) <= 60 // 12


def test_with_maximum_text_the_white_space_inside_a_chunk_counts():
    options = {"counter": "characters", "size": 40, "piece_size": 20}
    text = ("x" * 15 + "\n" * 30) * 6
    assert max(map(len, chunker(**options).split_text(text))) == 60
    assert max(map(len, chunker(size_of="text", **options).split_text(text))) == 15


def test_the_defaults_are_the_reports():
    default = ClusterSemantic()
    assert (default.size, default.piece_size, default.counter.name) == (200, 50, "cl100k_base")
    assert default.separators == ("\n\n", "\n", ".", "?", "!", " ", "")
    assert default.hard_maximum is None
