"""Vectors in shards or in files: the answer is the one that a single array in memory would give."""

from __future__ import annotations

import gc
import io
import pickle
import random
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import lru_cache, partial
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from chunkadapters.ray import RayMap
from hypothesis import given, settings
from hypothesis import strategies as st

from chunkcore.chunkers import get_chunker
from chunkcore.columns import blocks, concatenate
from chunkcore.datasets import load_dataset
from chunkcore.document import Chunk, Span
from chunkcore.errors import DataError, MissingExtraError, ModelError, OptionError
from chunkcore.evaluation import experiment
from chunkcore.evaluation.benchmarks import Benchmark
from chunkcore.evaluation.experiment import run_experiment
from chunkcore.evaluation.measures import measures_at
from chunkcore.evaluation.scoring import Scorer
from chunkcore.retrieval import ChunkedCorpus, Passages, Sharded, TextVectors, chunk_corpus, get_retriever
from chunkcore.retrieval import vectors as text_vectors
from chunkcore.retrieval.search import SelectedRows, Shard, top_k, top_k_shards
from chunkcore.tokens import get_counter
from tests.fakes import ChangingEmbedder, FakeEmbedder, NanEmbedder, index_of
from tests.test_passages import OPTIONS, WORDS, Table, corpora
from tests.test_search import vectors_with_repeats


def shards_of(vectors: np.ndarray, cuts: Iterable[int]) -> list[Shard]:
    """Neighbouring shards; where a cut comes twice, one of them is empty."""
    edges = [0, *sorted(min(cut, len(vectors)) for cut in cuts), len(vectors)]
    return [Shard(start, vectors[start:stop]) for start, stop in pairwise(edges)]


def shuffled(function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
    """A mapper whose answers come in another order."""
    waiting = list(items)
    random.Random(len(waiting)).shuffle(waiting)
    return map(function, waiting)


@settings(max_examples=150)
@given(
    st.integers(0, 10**6),
    st.integers(0, 90),
    st.integers(1, 12),
    st.integers(0, 6),
    st.integers(1, 40),
    st.lists(st.integers(0, 90), max_size=9),
    st.sampled_from([map, shuffled]),
)
def test_any_shards_in_any_order_find_what_one_search_finds(seed, count, dimensions, asked, k, cuts, mapper):
    vectors = vectors_with_repeats(seed, count, dimensions)  # a third of them distinct: ties everywhere
    queries = vectors_with_repeats(seed + 1, asked, dimensions)
    indices, scores = top_k_shards(queries, shards_of(vectors, cuts), k, mapper=mapper)
    expected = top_k(queries, vectors, k)
    assert (indices.dtype, scores.dtype) == (np.int64, np.float32)
    np.testing.assert_array_equal(indices, expected.indices)
    np.testing.assert_array_equal(scores, expected.scores)


def test_of_equal_vectors_in_different_shards_the_lower_number_is_first():
    vectors = np.ones((6, 3), dtype=np.float32)
    shards = [Shard(4, vectors[4:]), Shard(0, vectors[:1]), Shard(1, vectors[1:4])]
    assert top_k_shards(vectors[:1], shards, 5).indices.tolist() == [[0, 1, 2, 3, 4]]


def test_threads_can_search_the_shards():
    vectors, queries = vectors_with_repeats(3, 500, 16), vectors_with_repeats(4, 20, 16)
    with ThreadPoolExecutor(3) as pool:
        found = top_k_shards(queries, shards_of(vectors, range(0, 500, 37)), 11, mapper=pool.map)
    assert found.indices.tolist() == top_k(queries, vectors, 11).indices.tolist()


def test_a_shard_may_be_what_loads_it(tmp_path):
    vectors = vectors_with_repeats(5, 40, 8)
    paths = [tmp_path / "a.npy", tmp_path / "b.npy"]
    for path, part in zip(paths, (vectors[:13], vectors[13:]), strict=True):
        np.save(path, part)
    shards = [Shard(0, partial(np.load, paths[0])), Shard(13, partial(np.load, paths[1]))]
    assert top_k_shards(vectors[:4], shards, 6).indices.tolist() == top_k(vectors[:4], vectors, 6).indices.tolist()


def test_no_shard_finds_nothing_and_what_cannot_be_searched_is_told():
    assert top_k_shards(np.ones((2, 3)), [], 4).indices.shape == (2, 0)
    assert top_k_shards(np.ones((0, 3)), [Shard(0, np.ones((4, 3)))], 2).indices.shape == (0, 2)
    with pytest.raises(OptionError, match="k is at least 1, got 0"):
        top_k_shards(np.ones((1, 3)), [], 0)
    with pytest.raises(ModelError, match="vectors hold NaN"):
        top_k_shards(np.ones((1, 2)), [Shard(0, np.ones((1, 2))), Shard(1, np.full((1, 2), np.nan))], 1)
    with pytest.raises(ModelError, match="queries have 2 dimensions and vectors 3"):
        top_k_shards(np.ones((1, 2)), [Shard(0, np.ones((1, 3)))], 1)


def test_a_mapper_that_loses_an_answer_is_told():
    vectors = vectors_with_repeats(5, 40, 8)
    with pytest.raises(DataError, match="2 shards were to be searched and 1 answered"):
        top_k_shards(vectors[:1], shards_of(vectors, [20]), 3, mapper=lambda *work: list(map(*work))[1:])


def test_merging_keeps_the_best_of_both():
    shards = [Shard(0, np.array([[1.0, 0], [0, 1]])), Shard(2, np.array([[1.0, 1]]))]
    assert top_k_shards([[1.0, 0]], shards, 2).indices.tolist() == [[0, 2]]


# --- files of vectors ------------------------------------------------------------------------------------------


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.integers(0, 60), st.integers(1, 9), st.integers(1, 70), st.integers(1, 4000))
def test_rows_of_a_file_are_searched_as_an_array_is(seed, count, dimensions, k, block_bytes):
    vectors = vectors_with_repeats(seed, count, dimensions)
    file = concatenate(np.array_split(vectors, 3), np.float32, memory_bytes=0)
    order = np.random.default_rng(seed).integers(0, max(count, 1), size=count)
    queries = vectors_with_repeats(seed + 1, 4, dimensions)
    for rows, array in ((file, vectors), (SelectedRows(file, order), vectors[order])):
        np.testing.assert_array_equal(np.asarray(rows), array)
        found, expected = (top_k(queries, each, k, block_bytes=block_bytes) for each in (rows, array))
        np.testing.assert_array_equal(found.indices, expected.indices)
        np.testing.assert_array_equal(found.scores, expected.scores)


@pytest.mark.parametrize("memory_bytes", [0, 10**9])
def test_a_model_that_changes_its_mind_about_dimensions_is_told(memory_bytes, monkeypatch):
    monkeypatch.setattr(text_vectors, "_MEMORY", memory_bytes)
    monkeypatch.setattr(text_vectors, "blocks", lambda items: blocks(items, 2))
    chunks = [Chunk("d", number, (Span(number, number + 1),), f"w{number}", 1) for number in range(5)]
    with pytest.raises(ModelError, match="vectors of 32 dimensions, then 33"):
        TextVectors(ChangingEmbedder()).chunks(ChunkedCorpus(chunks))


# --- a comparison whose vectors are made and searched elsewhere --------------------------------------------------


@lru_cache
def lochmere_reports(method: Any) -> list[dict[str, Any]]:
    chunkers = [get_chunker("recursive:size=60,counter=words"), get_chunker("fixed_token:size=40,counter=words")]
    whole = load_dataset("lochmere")
    few = Benchmark(whole.name, whole.documents, whole.queries[:15])
    made = run_experiment(
        Scorer(few, counter="words"),
        chunkers,
        FakeEmbedder(),
        measures=measures_at((5, "min", "200tok")),
        retrievers=[method],
    )
    plain = [report.to_dict() for report in made]
    for each in plain:
        each["cost"]["seconds"] = each["seconds"] = each["name"] = 0
    return plain


@pytest.mark.parametrize("mapper", [map, shuffled, "threads"])
def test_a_comparison_by_shards_is_the_comparison(mapper: Any, tmp_path: Path) -> None:
    """Scores, costs and chunk statistics, whatever does the work, in whatever order; and nothing is left behind."""
    with ThreadPoolExecutor(3) as pool:
        found = lochmere_reports(Sharded(mapper=pool.map if mapper == "threads" else mapper, folder=tmp_path, size=7))
    assert found == lochmere_reports("dense")
    gc.collect()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("calls", [1, 2], ids=["embed", "search"])
def test_a_worker_that_does_not_see_the_folder_is_told(calls: int, tmp_path: Path) -> None:
    called = []

    def elsewhere(function: Any, items: Any) -> Any:
        called.append(function)
        if len(called) == calls:
            for folder in tmp_path.iterdir():
                shutil.rmtree(folder)
        return map(function, items)

    with pytest.raises(DataError, match="give sharded a folder that every worker sees"):
        lochmere_reports(Sharded(mapper=elsewhere, folder=tmp_path, size=7))
    assert len(called) == calls


def test_whoever_asks_embeds_and_counts_nothing_but_the_questions() -> None:
    class Elsewhere(FakeEmbedder):
        def __reduce__(self):
            return partial(FakeEmbedder, max_tokens=20), (self.dimensions,)

        def count_tokens(self, texts):
            counted.update(texts)
            return super().count_tokens(texts)

    def sent(function, items):
        """As to another process: by pickles."""
        return (pickle.loads(pickle.dumps(function))(pickle.loads(pickle.dumps(item))) for item in items)

    counted: set[str] = set()
    model = Elsewhere(max_tokens=20)
    benchmark = load_dataset("lochmere")
    questions = {query.text for query in benchmark.queries}
    chunkers = [get_chunker("sentence:size=30")]
    (report,) = run_experiment(benchmark, chunkers, model, retrievers=[Sharded(mapper=sent, size=50)])
    assert set(model.texts) == counted == questions
    (here,) = run_experiment(benchmark, chunkers, FakeEmbedder(max_tokens=20))
    assert here.chunks.truncated > 0
    assert (report.chunks.truncated, report.chunks.tokens_lost) == (here.chunks.truncated, here.chunks.tokens_lost)
    told = [replace(each.cost, seconds=0) for each in (report, here)]
    assert told[0] == told[1]


def test_what_embedding_took_elsewhere_is_a_cost_of_the_strategy(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(experiment, "time", SimpleNamespace(perf_counter=lambda: now[0]))

    def slow(function: Any, items: Any) -> Any:
        if not now[0]:  # embedding; a search comes after it
            now[0] = 100.0
        return map(function, items)

    chunkers = [get_chunker("fixed_token:size=40,counter=words")]
    retrievers = [Sharded(mapper=slow)]
    (report,) = run_experiment(
        load_dataset("lochmere"), chunkers, FakeEmbedder(), measures=measures_at((1,)), retrievers=retrievers
    )
    assert report.cost.seconds == report.seconds["embed"] == 100
    assert report.seconds["search"] == 0


def test_progress_is_told_shard_by_shard() -> None:
    told: list[tuple[int, int]] = []

    def progress(step: str, done: int, total: int) -> None:
        if step == "embed":
            told.append((done, total))

    (report,) = run_experiment(
        Scorer(load_dataset("lochmere"), counter="words"),
        [get_chunker("fixed_token:size=40,counter=words")],
        FakeEmbedder(),
        measures=measures_at((1,)),
        retrievers=[Sharded(size=100)],
        progress=progress,
    )
    count = report.chunks.count
    assert told == [(done, count) for done in [*range(100, count, 100), count]]


def test_without_ray_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"chunkadapters\[ray\]"):
        list(RayMap()(str, [1]))
    with pytest.raises(OptionError, match="in_flight is at least 1, got 0"):
        RayMap(in_flight=0)
    for wrong in ("4", 0, 2.5):
        with pytest.raises(OptionError, match=r"is (at least 1|a whole number), got"):
            RayMap(in_flight=wrong)  # type: ignore[arg-type]
        with pytest.raises(OptionError, match="size is "):
            Sharded(size=wrong)  # type: ignore[arg-type]


def test_a_lazy_mapper_holds_the_texts_of_one_shard() -> None:
    texts: list[int] = []

    def lazily(function, items):
        for item in items:
            if isinstance(item, tuple) and isinstance(item[1], list):
                texts.append(len(item[1]))
            yield function(item)

    chunks = [Chunk("d", number, (Span(number, number + 1),), f"w{number}", 1) for number in range(100)]
    found = (
        Sharded(mapper=lazily, size=30)
        .index(ChunkedCorpus(chunks), TextVectors(FakeEmbedder()))
        .search(["w7", "w99"], 1)
    )
    assert found.indices.tolist() == [[7], [99]]
    assert texts == [30, 30, 30, 10]


def test_what_shards_cannot_do_is_told(tmp_path: Path) -> None:
    chunk = Chunk("d", 0, (Span(0, 4),), "text", 1)
    with pytest.raises(OptionError, match="size is at least 1, got 0"):
        Sharded(size=0)
    with pytest.raises(OptionError, match=r"the folder .*nowhere.* is not there"):
        index_of([chunk], FakeEmbedder(), Sharded(folder=tmp_path / "nowhere"))
    with pytest.raises(OptionError, match="have segments"):
        index_of([replace(chunk, segments=((Span(0, 2),),))], FakeEmbedder(), Sharded())
    with pytest.raises(ModelError, match="the model 'fake'"):
        index_of([chunk], NanEmbedder(), Sharded())
    with pytest.raises(DataError, match="3 shards were to be embedded and 2 came back"):
        Sharded(mapper=lambda function, items: list(map(function, items))[1:], size=1).index(
            ChunkedCorpus([chunk] * 3), TextVectors(FakeEmbedder())
        )
    assert index_of([], FakeEmbedder(), Sharded()).search(["?"], 3).indices.shape == (1, 0)


def test_a_shard_that_was_changed_meanwhile_is_told(tmp_path: Path) -> None:
    chunks = [Chunk("d", number, (Span(number, number + 1),), f"w{number}", 1) for number in range(4)]
    searcher = index_of(chunks, FakeEmbedder(), Sharded(folder=tmp_path, size=2))
    (path, _) = sorted(tmp_path.glob("*/*"))
    path.write_bytes(path.read_bytes() * 2)
    with pytest.raises(DataError, match="holds 4 vectors, 2 were written"):
        searcher.search(["w1"], 1)


# --- passages of shards ------------------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(
    corpora(),
    st.lists(st.lists(st.sampled_from([*WORDS, "unknown"]), max_size=5).map(" ".join), min_size=1, max_size=3),
    OPTIONS,
    st.integers(1, 9),
    st.integers(1, 30),
    st.sampled_from([map, shuffled]),
)
def test_passages_of_shards_are_those_of_one_index(corpus, queries, options, size, budget, mapper):
    method = Passages(**options)
    one = method.index(corpus, TextVectors(Table()))
    shards = Sharded(method=method, size=size, mapper=mapper).index(corpus, TextVectors(Table()))
    found, expected = (index.search(queries, max(1, len(corpus))) for index in (shards, one))
    for row in range(len(queries)):
        scores = [dict(zip(*map(np.ndarray.tolist, each.row(row)), strict=True)) for each in (found, expected)]
        assert scores[0] == pytest.approx(scores[1], abs=1e-9)
    few = shards.search(queries, 2)
    np.testing.assert_array_equal(few.indices, found.indices[:, :2])
    for own, other in zip(shards.answers(queries, None, budget), one.answers(queries, None, budget), strict=True):
        if len({round(score, 6) for score in expected.scores[0]}) == len(corpus):  # of equal scores rounding decides
            assert [each.spans for each in own] == [each.spans for each in other]
        assert sum(get_counter("cl100k_base").count(each.text) for each in own) <= budget


def test_a_report_of_passages_by_shards_is_the_report() -> None:
    """Scores, costs and chunk statistics, the budget's counter being the report's."""
    assert lochmere_reports(Sharded(method=Passages(), size=80)) == lochmere_reports(Passages())


def lochmere_units(units: str = "sentence:size=50") -> ChunkedCorpus:
    return chunk_corpus(load_dataset("lochmere").documents, get_chunker(units))


@pytest.mark.parametrize("spec", ["passages", "passages:lexical", "passages:dense"])
def test_workers_that_know_only_what_is_sent_find_the_same_passages(spec: str, tmp_path: Path) -> None:
    def sent(function: Any, items: Any) -> Any:
        return (pickle.loads(pickle.dumps(function))(pickle.loads(pickle.dumps(item))) for item in items)

    method = Sharded(method=get_retriever(spec), mapper=sent, folder=tmp_path, size=60)
    corpus = lochmere_units()
    questions = [query.text for query in load_dataset("lochmere").queries][:8]
    shards = method.index(corpus, TextVectors(FakeEmbedder()))
    assert len(list(tmp_path.glob("*/*.npz"))) > 3
    assert list(tmp_path.glob("*/*.f32")) == []
    one = get_retriever(spec).index(corpus, TextVectors(FakeEmbedder()))
    for k, budget in ((None, 500), (3, None), (1, 4000)):
        for own, other in zip(shards.answers(questions, k, budget), one.answers(questions, k, budget), strict=True):
            assert [(each.document_id, each.spans) for each in own] == [
                (each.document_id, each.spans) for each in other
            ]
            assert [each.score for each in own] == pytest.approx([each.score for each in other], rel=1e-6, abs=1e-5)
    del shards
    gc.collect()
    assert list(tmp_path.iterdir()) == []


def test_a_budget_in_smaller_tokens_asks_the_shards_for_more() -> None:
    corpus = lochmere_units()
    texts = ("battery", "how long does the sensor log?")
    counters = get_counter("cl100k_base"), get_counter("characters")
    for counter, budget in zip(counters, (20_000, 9_000), strict=True):
        own, other = (
            index.answers(texts, None, budget, counter=counter)
            for index in (
                Sharded(method=Passages(kinds=("lexical",)), size=40).index(corpus),
                Passages(kinds=("lexical",)).index(corpus),
            )
        )
        assert [[each.spans for each in found] for found in own] == [[each.spans for each in found] for found in other]


def test_a_named_document_is_asked_alone_in_whatever_shard_it_is() -> None:
    corpus = lochmere_units()
    title = corpus.documents[3].text.partition("\n")[0]
    texts = [f"{title}: how do I reset it?", "how do I reset it?", f"{title}: unheard"]
    for kinds in (("lexical",), ("dense", "lexical")):
        method = Passages(kinds=kinds)
        one, shards = (
            each.index(corpus, TextVectors(FakeEmbedder())) for each in (method, Sharded(method=method, size=40))
        )
        found, expected = (index.search(texts, len(corpus)) for index in (shards, one))
        assert {corpus[i].document_id for i in found.row(0)[0].tolist()} == {corpus.documents[3].id}
        np.testing.assert_array_equal(found.counts, expected.counts)
        np.testing.assert_array_equal(found.indices[:2, :20], expected.indices[:2, :20])
        spans = [
            [[each.spans for each in own] for own in index.answers(texts[:2], None, 400)] for index in (shards, one)
        ]
        assert spans[0] == spans[1]


@pytest.mark.parametrize("lost", ["_make", "_held", "_moments", "_ranked"])
def test_a_mapper_that_loses_a_shard_of_passages_is_told(lost: str) -> None:
    def losing(function: Any, items: Any) -> Any:
        found = list(map(function, items))
        return found[1:] if function.func.__name__ == lost else found

    with pytest.raises(DataError, match="expected each once"):
        Sharded(method=Passages(kinds=("lexical",)), size=40, mapper=losing).index(lochmere_units()).retrieve("battery")


def test_a_worker_that_does_not_see_a_shard_of_passages_is_told(tmp_path: Path) -> None:
    index = Sharded(method=Passages(kinds=("lexical",)), size=40, folder=tmp_path).index(lochmere_units())
    for file in tmp_path.glob("*/*.npz"):
        file.unlink()
    with pytest.raises(DataError, match="give sharded a folder that every worker sees"):
        index.retrieve("battery")


def other_arrays(data: bytes) -> bytes:
    file = io.BytesIO()
    np.savez(file, numbers=np.arange(3))
    return file.getvalue()


@pytest.mark.parametrize(
    "damaged", [lambda data: b"", lambda data: data[:-9], lambda data: b"x" * len(data), other_arrays]
)
def test_a_shard_of_passages_that_was_changed_is_told(damaged: Callable[[bytes], bytes], tmp_path: Path) -> None:
    index = Sharded(method=Passages(kinds=("lexical",)), size=40, folder=tmp_path).index(lochmere_units())
    path = next(tmp_path.glob("*/*.npz"))
    path.write_bytes(damaged(path.read_bytes()))
    with pytest.raises(DataError, match="holds no shard: it has been changed"):
        index.retrieve("battery")


def test_a_string_names_what_is_sharded() -> None:
    for spec in ("sharded", "sharded:passages", 'sharded:"passages:lexical,scales=0/3"'):
        method = get_retriever(spec)
        assert (method.name, get_retriever(method.name)) == (spec, method)
        assert method.makes_passages == ("passages" in spec)
        assert method.embeds == ("lexical" not in spec)
    for wrong in ("sharded:bm25", 'sharded:"passages:hits=50"', 'sharded:"dense:cluster_only=true"'):
        with pytest.raises(OptionError, match="the method is dense, or passages without hits"):
            get_retriever(wrong)
    assert get_retriever("sharded:passages").index(ChunkedCorpus()).retrieve("?") == []
