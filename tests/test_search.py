"""Exact search: right, deterministic on ties, whatever the block size, in bounded memory."""

from __future__ import annotations

import tracemalloc
from unittest.mock import patch

import numpy as np
import pytest
from chunkcore import Chunk, ModelError, OptionError, Retriever, Span
from chunkcore.retrieval import vectors as search
from chunkcore.spans import Floats, Numbers
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fakes import BROKEN, FakeEmbedder, index_of


def top_k(queries: np.ndarray, vectors: np.ndarray, k: int, working: int = 2**20) -> tuple[Numbers, Floats]:
    """In this much memory; the same with lengths that are measured beforehand."""
    with patch.object(search, "WORKING", working):
        found = search.top_k(queries, vectors, k)
        measured = search.top_k(queries, vectors, k, lengths=search.search_lengths(vectors))
    assert all(map(np.array_equal, found, measured))
    return found


@pytest.mark.parametrize("k", [0, -1])
def test_none_of_the_vectors_cannot_be_asked_for(k: int) -> None:
    with pytest.raises(OptionError, match="k is at least 1"):
        search.top_k(np.ones((1, 2)), np.ones((3, 2)), k)


def brute_force(queries: np.ndarray, vectors: np.ndarray, k: int) -> list[list[int]]:
    """Pair by pair in float64, rounded as the search rounds, lower index first."""

    def unit(row):
        norm = np.sqrt((row.astype(np.float64) ** 2).sum())
        return row.astype(np.float64) / (norm or 1.0)

    answer = []
    for query in queries:
        scores = [float(np.float32((unit(vector) * unit(query)).sum())) for vector in vectors]
        answer.append(sorted(range(len(vectors)), key=lambda i: (-scores[i], i))[:k])
    return answer


def vectors_with_repeats(seed: int, count: int, dimensions: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((max(1, count // 3), dimensions)).astype(np.float32)
    rows = rows[rng.integers(0, len(rows), size=count)]
    rows[rng.random(count) < 0.1] = 0.0
    return rows


@given(st.integers(0, 10**6), *(st.integers(*ends) for ends in ((0, 70), (1, 40), (0, 6), (1, 80), (1, 9000))))
def test_equal_to_brute_force_at_any_block_size(seed, count, dimensions, asked, k, block_bytes):
    vectors = vectors_with_repeats(seed, count, dimensions)
    queries = vectors_with_repeats(seed + 1, asked, dimensions)
    indices, scores = top_k(queries, vectors, k, block_bytes)
    assert indices.shape == scores.shape == (asked, min(k, count))
    assert indices.tolist() == brute_force(queries, vectors, k)
    assert (np.diff(scores, axis=1) <= 0).all()


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.integers(1, 30), st.integers(5_000, 1_500_000))
def test_near_ties_that_float32_products_would_swap_are_in_order(seed, k, block_bytes):
    rng = np.random.default_rng(seed)
    near = rng.standard_normal(200) + 3e-7 * rng.standard_normal((120, 200))
    queries = rng.standard_normal((2, 200))
    assert top_k(queries, near, k, block_bytes)[0].tolist() == brute_force(queries, near, k)


@pytest.mark.parametrize("block_bytes", [5_000, 40_000, 10**9])
def test_a_tie_that_k_cuts_through_keeps_the_lowest_indices(block_bytes):
    """1,000 copies of 7 vectors: the 50 best of each query are the first 50 copies of one of them."""
    rng = np.random.default_rng(0)
    originals = rng.standard_normal((7, 384)).astype(np.float32)
    which = rng.integers(0, 7, size=1000)
    indices, scores = top_k(originals, originals[which], 50, block_bytes)
    for row in range(7):
        assert indices[row].tolist() == np.flatnonzero(which == row)[:50].tolist()
        assert np.unique(scores[row]).tolist() == [1.0]


def test_scores_are_cosines_and_length_does_not_matter():
    indices, scores = top_k(np.array([[2.0, 0.0]]), np.array([[0.0, 5.0], [1e-30, 1e-30], [1e14, 0.0], [-1.0, 0.0]]), 4)
    assert indices.tolist() == [[2, 1, 0, 3]]
    assert scores[0] == pytest.approx([1.0, np.sqrt(0.5), 0.0, -1.0])


def test_nothing_to_search_or_to_ask():
    assert top_k(np.zeros((3, 4)), np.zeros((0, 4)), 5)[0].shape == (3, 0)
    assert top_k(np.zeros((0, 4)), np.ones((2, 4)), 5)[0].shape == (0, 2)
    assert top_k(np.zeros((0, 0)), np.ones((2, 4)), 5)[1].shape == (0, 2)


@pytest.mark.parametrize(
    ("queries", "vectors", "message"),
    [
        ([1.0, 0.0], [[1.0, 0.0]], r"queries are a matrix .* shape \(2,\)"),
        ([[1.0, 0.0]], [[1.0, 0.0, 0.0]], "queries have 2 dimensions and vectors 3"),
        ([[1.0, np.nan]], [[1.0, 0.0]], "queries hold NaN"),
        ([[1.0, 0.0]], [[np.inf, 0.0]], "vectors hold NaN or infinity"),
        ([[1.0, 0.0]], [[1e16, 0.0]], "vectors hold NaN or infinity"),
    ],
)
def test_what_cannot_be_searched_is_told(queries, vectors, message):
    with pytest.raises(ModelError, match=message):
        search.top_k(np.array(queries), np.array(vectors), 1)


def test_memory_is_bounded_by_the_blocks(monkeypatch):
    monkeypatch.setattr(search, "WORKING", 2 * 2**20)
    rng = np.random.default_rng(2)
    queries, vectors = (rng.standard_normal((n, 32), dtype=np.float32) for n in (200, 20_000))
    tracemalloc.start()
    search.top_k(queries, vectors, 10)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 6 * 2**20 < queries.shape[0] * vectors.shape[0] * 4


@pytest.mark.parametrize("k", [4_000, 10**9])
def test_asking_for_everything_costs_little_more_than_the_answer(monkeypatch, k):
    monkeypatch.setattr(search, "WORKING", 2**20)
    rng = np.random.default_rng(3)
    queries, vectors = (rng.standard_normal((n, 8), dtype=np.float32) for n in (100, 4_000))
    tracemalloc.start()
    indices, scores = search.top_k(queries, vectors, k)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (np.sort(indices, axis=1) == np.arange(4_000)).all()
    assert peak < indices.nbytes + scores.nbytes + 3 * 2**20


def chunks_of(*texts: str) -> list[Chunk]:
    return [Chunk(f"doc{i}", 0, (Span(5, 5 + len(text)),), text, len(text.split())) for i, text in enumerate(texts)]


CHUNKS = chunks_of("cats purr and sleep", "shares fell on Monday", "rain is expected")


def test_an_index_is_a_retriever():
    index = index_of(CHUNKS, FakeEmbedder())
    assert isinstance(index, Retriever)
    best = index.retrieve("do cats purr", 2)
    assert len(best) == 2
    first = best[0]
    assert (first.document_id, first.spans, first.text) == ("doc0", (Span(5, 24),), "cats purr and sleep")
    assert (first.match, first.id) == ("spans", CHUNKS[0].id)
    assert best[0].score > best[1].score


def test_what_is_retrieved_comes_to_no_more_than_the_limits():
    index = index_of(CHUNKS, FakeEmbedder())
    ranked = index.retrieve("cats and rain")
    assert len(ranked) == 3
    assert index.retrieve("cats and rain", 2) == index.retrieve("cats and rain", 2, 100) == ranked[:2]
    for most in range(1, 13):
        found = index.retrieve("cats and rain", max_tokens=most)
        assert sum(len(piece.text.split()) for piece in found) <= most
        assert found == ranked[: len(found)]
    assert found == ranked


def test_queries_are_embedded_in_one_call_as_queries():
    class Told(FakeEmbedder):
        asked = 0

        def embed_queries(self, texts):
            self.asked += 1
            return super().embed_queries(texts)

    model = Told()
    index = index_of(CHUNKS, model)
    found = index.pieces(index.search(["cats", "shares", "rain"], 1))
    assert [each[0].document_id for each in found] == ["doc0", "doc1", "doc2"]
    assert model.asked == 1
    assert index.pieces(index.search([], 1)) == []


@pytest.mark.parametrize("broken", BROKEN)
def test_a_model_that_answers_nonsense_is_an_error(broken):
    with pytest.raises(ModelError, match="the model 'fake'"):
        index_of(CHUNKS, broken())
