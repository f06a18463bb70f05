"""A chunk is found by the best of its vectors, and answers are those of a search over every chunk."""

from __future__ import annotations

import numpy as np
import pytest
from chunkcore.errors import DataError
from chunkcore.retrieval import Dense
from chunkcore.retrieval.corpus import segment_texts
from chunkcore.retrieval.vectors import top_k
from chunkcore.text import Chunk, Span, text_of_spans
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes import FakeEmbedder, index_of
from tests.test_breakpoint import AngleEmbedder


def chunk_of(*segments: str, index: int = 0, start: int = 0, **options) -> Chunk:
    """A chunk of segments with a space between them."""
    spans = []
    for segment in segments:
        spans.append(Span(start, start + len(segment)))
        start += len(segment) + 1
    parts = tuple((span,) for span in spans)
    whole = Span(spans[0].start, spans[-1].end)
    return Chunk("d", index, (whole,), " ".join(segments), 1, segments=parts, **options)


def test_the_score_is_the_highest_of_the_segments_and_the_cluster():
    """Segments at 0° and 90°, whose mean is at 45°; another chunk at 30°."""
    chunks = [chunk_of("0", "90"), chunk_of("30", index=1, start=10)]
    index = index_of(chunks, AngleEmbedder())
    for query, first, scores in [
        ("0", 0, [1.0, np.cos(np.radians(30))]),
        ("45", 0, [1.0, np.cos(np.radians(15))]),
        ("90", 0, [1.0, 0.5]),
        ("25", 1, [np.cos(np.radians(5)), np.cos(np.radians(20))]),
    ]:
        found = index.retrieve(query, 5)
        assert [piece.spans for piece in found] == [chunks[first].spans, chunks[1 - first].spans]
        assert [piece.score for piece in found] == pytest.approx(scores, abs=1e-6)


def test_by_the_cluster_only_the_segments_are_not_looked_at():
    chunks = [chunk_of("0", "90"), chunk_of("30", index=1, start=10)]
    index = index_of(chunks, AngleEmbedder(), Dense(cluster_only=True))
    assert [piece.spans for piece in index.retrieve("0", 1)] == [chunks[1].spans]


def test_segments_are_cut_out_of_chunks_of_several_spans():
    text = "AAAA bb CCCC dd EEEE"
    spans = (Span(0, 4), Span(8, 12), Span(16, 20))
    chunk = Chunk("d", 0, spans, text_of_spans(text, spans), 3)
    segments = ((Span(0, 4), Span(8, 10)), (Span(17, 20),))
    with_segments = Chunk("d", 0, chunk.spans, chunk.text, 3, segments=segments)
    assert segment_texts(with_segments, text) == ["AAAA CC", "EEE"]


@given(st.integers(0, 10**6), st.integers(1, 12), st.integers(1, 9), st.integers(1, 14), st.booleans())
def test_the_search_is_that_over_every_owner(seed, owners, most, k, ties):
    random = np.random.default_rng(seed)
    counts = random.integers(1, most + 1, owners)
    whose = np.repeat(np.arange(owners), counts)
    vectors = random.standard_normal((len(whose), 4))
    if ties:
        vectors = vectors[random.integers(0, len(vectors), len(vectors)) // 3]
    queries = random.standard_normal((5, 4))
    unit = vectors / np.sqrt((vectors * vectors).sum(axis=1))[:, None]
    cosines = (queries / np.sqrt((queries * queries).sum(axis=1))[:, None]) @ unit.T
    best = np.stack([cosines[:, whose == owner].max(axis=1) for owner in range(owners)], axis=1)
    indices, scores = top_k(queries, vectors, k, owners=whose)
    assert indices.shape == scores.shape == (5, min(k, owners))
    assert scores == pytest.approx(-np.sort(-best, axis=1)[:, :k], abs=1e-6)
    assert np.take_along_axis(best, indices, axis=1) == pytest.approx(scores, abs=1e-6)
    for row, values in zip(indices.tolist(), scores.tolist(), strict=True):
        assert len(set(row)) == len(row)
        pairs = list(zip([-value for value in values], row, strict=True))
        assert pairs == sorted(pairs)


def test_one_owner_of_nearly_all_the_vectors_does_not_hide_the_others():
    vectors = np.concatenate((np.tile([1.0, 0.0], (500, 1)), [[0.0, 1.0], [0.5, 1.0]]))
    indices, _ = top_k([[1.0, 0.0], [0.0, 1.0]], vectors, 3, owners=np.array([0] * 500 + [1, 2]))
    assert indices.tolist() == [[0, 2, 1], [1, 2, 0]]


def test_wrong_arguments_are_told():
    with pytest.raises(DataError, match=r"has a segment at .* outside its spans"):
        index_of([Chunk("d", 0, (Span(0, 4),), "text", 1, segments=((Span(2, 6),),))], FakeEmbedder())
