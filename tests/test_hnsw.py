"""Approximate search: exact scores, a recall that is measured and told, the same answer every time."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from chunkcore.chunkers import get_chunker
from chunkcore.document import Document, Span
from chunkcore.errors import DataError, MissingExtraError, OptionError
from chunkcore.evaluation.benchmarks.benchmark import Benchmark, Evidence, Query
from chunkcore.evaluation.experiment import run_experiment
from chunkcore.evaluation.measures import measures_at
from chunkcore.evaluation.results import Report
from chunkcore.evaluation.statistics.comparison import compare
from chunkcore.report import ReportPage
from chunkcore.report.tables import warnings
from chunkcore.retrieval import HNSW, ChunkedCorpus, Dense, Index, RetrievalMethod, SearchRecall, get_retriever
from tests.fakes import FakeEmbedder, GivenVectors
from tests.test_search import vectors_with_repeats


def index_of(method: RetrievalMethod, vectors: np.ndarray, owners: np.ndarray | None = None) -> Index:
    return method.index(ChunkedCorpus(), GivenVectors(vectors, owners))


def asked(vectors: np.ndarray) -> list[str]:
    return [" ".join(map(repr, row.tolist())) for row in vectors.astype(np.float64)]


def clustered(count: int, dimensions: int, seed: int = 0) -> np.ndarray:
    draw = np.random.default_rng(seed)
    centres = draw.standard_normal((40, dimensions))
    return (centres[draw.integers(0, 40, count)] + 0.5 * draw.standard_normal((count, dimensions))).astype(np.float32)


def test_it_finds_most_of_what_exact_search_finds_and_says_how_much() -> None:
    pytest.importorskip("usearch")
    vectors = clustered(3000, 48)
    index, queries = index_of(HNSW(checked=40), vectors), asked(clustered(40, 48, seed=1))
    found, exact = index.search(queries, 10), index_of(Dense(), vectors).search(queries, 10)
    pairs = zip(found.indices.tolist(), exact.indices.tolist(), strict=True)
    shares = [len(set(own) & set(other)) / 10 for own, other in pairs]
    assert index.recall == SearchRecall(pytest.approx(np.mean(shares)), 40, 10)
    assert index.recall.share > 0.9
    for own, scores, other, values in zip(*map(np.ndarray.tolist, (*found, *exact)), strict=True):
        expected = dict(zip(other, values, strict=True))
        assert all(score == expected[index] for index, score in zip(own, scores, strict=True) if index in expected)
        assert scores == sorted(scores, reverse=True)


def test_a_shallow_graph_search_is_told_to_miss_more() -> None:
    pytest.importorskip("usearch")
    vectors = np.random.default_rng(0).standard_normal((4000, 64)).astype(np.float32)  # nothing is near anything
    queries = asked(np.random.default_rng(1).standard_normal((30, 64)))
    shallow, deep = (index_of(HNSW(m=4, build=8, depth=depth), vectors) for depth in (10, 400))
    for index in (shallow, deep):
        index.search(queries, 10)
    assert shallow.recall is not None
    assert deep.recall is not None
    assert 0 < shallow.recall.share < deep.recall.share <= 1


def test_the_same_every_time_with_ties_in_order() -> None:
    pytest.importorskip("usearch")
    vectors = vectors_with_repeats(2, 400, 8)
    queries = asked(vectors[:20])
    answers = [index_of(HNSW(precision=p), vectors).search(queries, 7) for p in ("f32", "f32", "f16", "i8")]
    assert answers[0].indices.tolist() == answers[1].indices.tolist()
    for found in answers:
        for own, scores in zip(found.indices.tolist(), found.scores.tolist(), strict=True):
            assert len(set(own)) == 7
            order = [(-score, number) for score, number in zip(scores, own, strict=True)]
            assert order == sorted(order)


def test_chunks_of_several_vectors_are_found_by_the_best() -> None:
    pytest.importorskip("usearch")
    vectors = clustered(300, 16)
    owners = np.repeat(np.arange(60), 5)
    index, queries = index_of(HNSW(), vectors, owners), asked(clustered(10, 16, seed=3))
    found, exact = index.search(queries, 8), index_of(Dense(), vectors, owners).search(queries, 8)
    assert found.indices.tolist() == exact.indices.tolist()
    assert found.scores.tolist() == exact.scores.tolist()
    assert index.recall == SearchRecall(1.0, 10, 8)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_fewer_chunks_than_are_wanted(count: int) -> None:
    pytest.importorskip("usearch")
    index = index_of(HNSW(), np.eye(3, dtype=np.float32)[:count])
    for queries in ([], asked(np.eye(3)[:1]), asked(np.eye(3)[:2])):
        found = index.search(queries, 5)
        assert found.indices.shape == (len(queries), count)
        assert [set(row) for row in found.indices.tolist()] == [set(range(count))] * len(queries)


def test_a_report_tells_what_was_found_and_is_read_back() -> None:
    pytest.importorskip("usearch")
    pytest.importorskip("bm25s")
    text = "The fox naps. The hen sits. A crow watches. Rain falls at noon. " * 30
    query = Query("q", "Who watches?", (Evidence("d", Span(28, 43)),))
    benchmark = Benchmark("tales", [Document("d", text)], [query, Query("q2", "rain", (Evidence("d", Span(44, 60)),))])
    chunkers = [get_chunker("fixed_token:size=5,counter=words")]
    reports = run_experiment(
        benchmark,
        chunkers,
        FakeEmbedder(),
        measures=measures_at((3,)),
        retrievers=["dense", "hnsw", "hybrid:hnsw,bm25", "hnsw:depth=7"],
    )
    exact, *others = reports
    assert exact.search_recall is None
    for report in others:
        assert report.search_recall is not None
        assert report.search_recall.queries == 2
        assert Report.from_dict(report.to_dict()).search_recall == report.search_recall
    told = [each for each in warnings(ReportPage(compare(reports, "Recall@3"), benchmark)) if "approximate" in each]
    assert len(told) == 3
    assert told[0].startswith(f"{others[0].name}: the search is approximate and found ")
    assert "best 3 chunks that exact search finds, measured on 2 questions." in told[0]
    with pytest.raises(DataError, match="a share of 0 to 1"):
        SearchRecall.from_dict({"share": 2, "queries": 1, "depth": 1})


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("hnsw:m=1", "m is at least 2 and at most 1000, got 1"),
        ("hnsw:depth=0", "depth is at least 1 and at most 100000, got 0"),
        ("hnsw:precision=f8", "precision"),
        ("hnsw:ef=9", "no option 'ef'"),
    ],
)
def test_options_out_of_range_are_told(spec: str, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        get_retriever(spec)


def test_a_missing_package_is_told_before_the_long_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "usearch.index", None)
    with pytest.raises(MissingExtraError, match=r"chunkadapters\[ann\]"):
        run_experiment(Benchmark("none", [], []), [get_chunker("sentence")], FakeEmbedder(), retrievers=["hnsw"])
