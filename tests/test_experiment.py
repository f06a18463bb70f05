"""Strategies are scored side by side as each would be alone, and each distinct text is embedded once."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from chunkcore.chunkers import parse_chunker
from chunkcore.chunkers.base import Chunker
from chunkcore.document import Chunk, Document
from chunkcore.errors import ModelError, OptionError
from chunkcore.evaluation.benchmark import Benchmark
from chunkcore.evaluation.comparison import compare
from chunkcore.evaluation.experiment import run_chunkers
from chunkcore.evaluation.loading import load_benchmark
from chunkcore.evaluation.metering import MeteredEmbedder
from chunkcore.evaluation.results import Report
from chunkcore.evaluation.run import Run
from chunkcore.evaluation.scoring import evaluate
from chunkcore.index import DenseIndex, MultiVectorIndex
from chunkcore.models import CachedEmbedder, EmbeddingCache
from chunkcore.models.base import Vectors
from tests.fakes import FakeEmbedder, NanEmbedder

SPECS = [
    "fixed_token:counter=words,size=12",
    "recursive:counter=words,size=20",
    "recursive:counter=words,size=20,overlap=5",
    "cluster_semantic:counter=words,max_size=40,piece_size=8",
]


@pytest.fixture(scope="module")
def benchmark() -> Benchmark:
    tales = [
        "The fox naps under the old oak. A crow watches it from above. Rain begins to fall at noon.",
        "Bread needs flour, water, salt and time. Knead it well.\n\nLet it rest under a cloth for two hours.",
        "The ferry leaves at nine.\n\nTickets are sold on board. Bicycles travel free of charge on weekdays.",
    ]
    documents = [Document(f"{name}.txt", f"{text}\n\n" * 4) for name, text in zip("abc", tales, strict=True)]
    documents[0] = Document("a.txt", tales[0] + "\n\n" + "Nothing else happens here. " * 20)
    rows = [
        {"question": "Who naps under the oak?", "evidence": [{"document": "a.txt", "text": "The fox naps"}]},
        {
            "question": "bread flour salt",
            "evidence": [{"document": "b.txt", "text": "flour, water, salt", "occurrence": 2}],
        },
        {"question": "bicycles on the ferry", "evidence": [{"document": "c.txt", "text": "Bicycles", "occurrence": 1}]},
    ]
    return load_benchmark(documents, rows, name="tales")


def chunkers(*specs: str) -> list[Chunker]:
    return [parse_chunker(spec) for spec in specs or SPECS]


def test_every_strategy_scores_what_it_scores_alone(benchmark: Benchmark) -> None:
    reports = run_chunkers(benchmark, chunkers(), FakeEmbedder(), counter="words")
    assert [report.name for report in reports] == SPECS
    for report, spec in zip(reports, SPECS, strict=True):
        model = FakeEmbedder()
        (chunker,) = chunkers(spec)
        if spec.startswith("cluster"):
            (chunker,) = chunkers()[3:]
            object.__setattr__(chunker, "embedder", model)
        index = DenseIndex.build([*chunker.chunk_many(benchmark.documents)], model)
        results = {query.id: index.retrieve(query.text, 50) for query in benchmark.queries}
        alone = evaluate(benchmark, Run(spec, results, index.retrieve("", 10_000)), counter="words")
        for measure in alone.scores:
            np.testing.assert_array_equal(report.values(measure), alone.values(measure), err_msg=str(measure))
        assert report.found == alone.found
        assert report.unanswered == ()


def test_each_distinct_text_is_embedded_once_in_a_run(benchmark: Benchmark) -> None:
    model = FakeEmbedder()
    run_chunkers(benchmark, chunkers(*SPECS, "recursive:size=21,counter=words"), model)
    # A piece that is also a chunk and a chunk of two strategies are one text; a question may be, too.
    repeated = [text for text, count in Counter(model.texts).items() if count > 1]
    assert repeated == []
    assert {query.text for query in benchmark.queries} <= set(model.texts)


def test_all_strategies_are_embedded_in_one_sorted_pass(benchmark: Benchmark) -> None:
    model = FakeEmbedder()
    run_chunkers(benchmark, chunkers(*SPECS[:3]), model)
    assert model.calls == 2  # the chunks, the questions
    chunks = model.texts[: -len(benchmark.queries)]
    assert [len(text) for text in chunks] == sorted((len(text) for text in chunks), reverse=True)


def test_a_second_run_embeds_nothing(benchmark: Benchmark, tmp_path: Path) -> None:
    first, second = FakeEmbedder(), FakeEmbedder()
    one = run_chunkers(benchmark, chunkers(), first, cache=tmp_path / "cache.sqlite")
    two = run_chunkers(benchmark, chunkers(), second, cache=EmbeddingCache(tmp_path / "cache.sqlite"))
    assert first.calls > 0
    assert second.calls == 0
    for a, b in zip(one, two, strict=True):
        # What is told of the models is the same whether a cache was there or not, but for the time.
        assert _timeless(a) == _timeless(b)


def _timeless(report: Report) -> dict[str, Any]:
    plain = report.to_dict()
    return {**plain, "seconds": 0, "cost": {**plain["cost"], "seconds": 0}}


def test_an_embedder_with_a_cache_keeps_it(benchmark: Benchmark) -> None:
    model = CachedEmbedder(FakeEmbedder())
    run_chunkers(benchmark, chunkers(), model)
    assert model.embedded == 0  # the run has a wrapper of its own around the same model and cache
    assert len(model.cache) > 0
    run_chunkers(benchmark, chunkers(), model)
    assert len(model.embedder.texts) == len(set(model.embedder.texts))  # type: ignore[attr-defined]
    with pytest.raises(OptionError, match="has a cache of its own"):
        run_chunkers(benchmark, chunkers(), model, cache=EmbeddingCache())


def test_a_strategy_keeps_an_embedder_that_is_another_model(benchmark: Benchmark) -> None:
    own, model = FakeEmbedder(8, name="own"), FakeEmbedder(name="model")
    (cluster,) = chunkers(SPECS[3])
    object.__setattr__(cluster, "embedder", own)
    run_chunkers(benchmark, [cluster], model)
    assert own.calls > 0
    pieces = set(own.texts)
    object.__setattr__(cluster, "embedder", FakeEmbedder(name="model"))  # another object, the same model
    run_chunkers(benchmark, [cluster], model)
    assert cluster.embedder.calls == 0  # type: ignore[attr-defined]
    assert pieces <= set(model.texts)


def test_min_goes_as_deep_as_the_evidence_of_a_query_is_spread(benchmark: Benchmark) -> None:
    text = benchmark.document("a.txt").text
    wide = load_benchmark(
        benchmark.documents, [{"question": "?", "evidence": [{"document": "a.txt", "start": 0, "end": len(text)}]}]
    )
    (report,) = run_chunkers(
        wide, chunkers("fixed_token:size=3,counter=words"), FakeEmbedder(), ks=["min"], counter="words"
    )
    assert report.chunks is not None
    held = -(-len(text.split()) // 3)
    assert held > 30
    assert report.retrieved_tokens["min"].tolist() == [pytest.approx(3 * held, abs=2)]


def test_min_rule_and_omega_rule_are_handed_on(benchmark: Benchmark) -> None:
    overlapping = chunkers("fixed_token:size=6,overlap=4,counter=words")
    (plain,) = run_chunkers(benchmark, overlapping, FakeEmbedder(), counter="words")
    (repeats,) = run_chunkers(benchmark, overlapping, FakeEmbedder(), counter="words", omega_rule="repeats")
    (touching,) = run_chunkers(benchmark, overlapping, FakeEmbedder(), counter="words", min_rule="touching")
    assert plain.mean("PrecisionOmega") > repeats.mean("PrecisionOmega")
    assert (plain.min_rule, touching.min_rule) == ("holding", "touching")
    assert plain.mean_tokens("min") < touching.mean_tokens("min")


def test_what_was_written_about_a_chunk_is_embedded_with_it(
    benchmark: Benchmark, monkeypatch: pytest.MonkeyPatch
) -> None:
    (chunker,) = chunkers(SPECS[0])
    plain = type(chunker).chunk_many
    (untitled,) = run_chunkers(benchmark, [chunker], FakeEmbedder())
    assert untitled.chunks is not None

    def titled(self: Chunker, *arguments: Any, **options: Any) -> Iterator[Chunk]:
        return (replace(each, context="A title") for each in plain(self, *arguments, **options))

    monkeypatch.setattr(type(chunker), "chunk_many", titled)
    embedder = FakeEmbedder()
    (report,) = run_chunkers(benchmark, [chunker], embedder)
    chunks = [text for text in embedder.texts if text.startswith("A title\n")]
    assert len(chunks) + len(benchmark.queries) == len(embedder.texts)
    assert report.chunks is not None
    assert report.chunks.tokens.tolist() == untitled.chunks.tokens.tolist(), "the context is no part of a chunk's text"


@pytest.mark.parametrize("cluster_only", [False, True])
def test_chunks_with_segments_are_searched_by_each_of_them(benchmark: Benchmark, cluster_only: bool) -> None:
    embedder = FakeEmbedder()
    spec = "hierarchical:counter=words,segmenter=texttiling:1:0,k=0,max_segment=12,max_size=60"
    (report,) = run_chunkers(benchmark, chunkers(spec), embedder, counter="words", cluster_only=cluster_only)
    chunks = [*replace(parse_chunker(spec), embedder=embedder).chunk_many(benchmark.documents)]  # type: ignore[call-arg]
    assert any(len(chunk.segments) > 1 for chunk in chunks)
    index = MultiVectorIndex.build(chunks, embedder, cluster_only=cluster_only)
    results = {query.id: index.retrieve(query.text, 50) for query in benchmark.queries}
    alone = evaluate(benchmark, Run(spec, results, index.retrieve("", 10_000)), counter="words")
    assert report.found == alone.found
    for measure in alone.scores:
        np.testing.assert_array_equal(report.values(measure), alone.values(measure), err_msg=str(measure))


def test_chunk_lengths_are_told_in_the_tokens_that_are_scored(benchmark: Benchmark) -> None:
    (chunker,) = chunkers(SPECS[1])
    chunks = [*chunker.chunk_many(benchmark.documents)]
    for counter, count in (("words", lambda text: len(text.split())), ("characters", len)):
        (report,) = run_chunkers(benchmark, [chunker], FakeEmbedder(), counter=counter)
        assert report.chunks is not None
        assert report.chunks.tokens.tolist() == [count(chunk.text) for chunk in chunks]


def test_what_the_embedder_cuts_off_is_counted_once_a_distinct_text(benchmark: Benchmark) -> None:
    (chunker,) = chunkers(SPECS[1])
    texts = {chunk.text for chunk in chunker.chunk_many(benchmark.documents)}
    over = [tokens - 15 for tokens in FakeEmbedder().count_tokens([*texts]) if tokens > 15]
    assert over
    (report,) = run_chunkers(benchmark, [chunker], FakeEmbedder(max_tokens=15))
    assert report.chunks is not None
    assert (report.chunks.truncated, report.chunks.tokens_lost) == (len(over), sum(over))
    (unlimited,) = run_chunkers(benchmark, [chunker], FakeEmbedder())
    assert unlimited.chunks is not None
    assert (unlimited.chunks.truncated, unlimited.chunks.tokens_lost) == (0, 0)


def test_a_strategy_without_a_chunk_scores_nothing() -> None:
    blank = Document("blank", " \n ")
    found = load_benchmark([blank, Document("a", "A fox.")], [{"question": "?", "evidence": ["fox"]}])
    only_blank = Benchmark("b", [blank], [])
    assert run_chunkers(only_blank, chunkers(SPECS[1]), FakeEmbedder())[0].query_ids == ()
    assert run_chunkers(found, chunkers(SPECS[1]), FakeEmbedder())[0].mean("Recall@5") == 1


def test_progress_and_seconds_are_told_for_every_step(benchmark: Benchmark) -> None:
    told: list[tuple[str, int, int]] = []
    reports = run_chunkers(
        benchmark, chunkers(), FakeEmbedder(), progress=lambda step, done, total: told.append((step, done, total))
    )
    for step in ("chunk", "embed", "queries", "search"):
        mine = [(done, total) for each, done, total in told if each == step]
        assert mine[-1][0] == mine[-1][1] > 0
        assert mine == sorted(mine)
    assert ("chunk", 5, 12) in told
    for report in reports:
        assert set(report.seconds) == {"chunk", "embed", "search", "score"}
        assert all(value > 0 for value in report.seconds.values())


def test_workers_change_nothing(benchmark: Benchmark) -> None:
    one = run_chunkers(benchmark, chunkers(), FakeEmbedder(), workers=1)
    four = run_chunkers(benchmark, chunkers(), FakeEmbedder(), workers=4)
    assert [r.to_dict()["scores"] for r in one] == [r.to_dict()["scores"] for r in four]


def test_a_run_can_be_compared(benchmark: Benchmark) -> None:
    found = compare(run_chunkers(benchmark, chunkers(), FakeEmbedder()), resamples=200)
    assert len(found.differences) == 6
    assert set(found.tied) <= set(SPECS)


def test_a_broken_model_is_told(benchmark: Benchmark) -> None:
    with pytest.raises(ModelError, match="NaN"):
        run_chunkers(benchmark, chunkers(SPECS[1]), NanEmbedder())


@pytest.mark.parametrize(
    ("specs", "options", "message"),
    [
        ([], {}, "there is no strategy to run"),
        (SPECS[:1] * 2, {}, "the strategy fixed_token:counter=words,size=12 is given twice"),
        (SPECS[:1], {"ks": [0]}, "got k=0"),
        (SPECS[:1], {"workers": 0}, "workers is at least 1, got 0"),
        (SPECS[:1], {"min_rule": "some"}, "min_rule is"),
    ],
)
def test_what_can_not_be_run_is_refused(
    benchmark: Benchmark, specs: list[str], options: dict[str, object], message: str
) -> None:
    with pytest.raises(OptionError) as caught:
        run_chunkers(benchmark, [parse_chunker(spec) for spec in specs], FakeEmbedder(), **options)  # type: ignore[arg-type]
    assert message in str(caught.value)


# --- what a text costs -------------------------------------------------------------------------------


class Clock:
    """A model that takes a second a character, by a clock of its own."""

    name = fingerprint = "clock"
    max_tokens = None

    def __init__(self) -> None:
        self.now = 0.0

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        self.now += sum(map(len, texts))
        return np.ones((len(texts), 2), dtype=np.float32)

    embed_queries = embed_documents


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setitem(MeteredEmbedder._timed.__globals__, "time", type("", (), {"perf_counter": lambda: found.now}))
    return found


def test_a_calls_time_is_split_by_length(clock: Clock) -> None:
    metered = MeteredEmbedder(CachedEmbedder(clock))
    metered.embed_documents(["a" * 10, "b" * 30])
    assert metered.cost(["a" * 10]) == 10
    assert metered.cost(["b" * 30, "b" * 30, "never asked"]) == 30


def test_a_text_that_was_there_already_costs_what_it_cost(clock: Clock) -> None:
    metered = MeteredEmbedder(CachedEmbedder(clock))
    with metered.billed() as first:
        metered.embed_documents(["a" * 10])
    with metered.billed() as second:
        metered.embed_documents(["a" * 10, "b" * 5])
    assert (first.seconds, metered.cost(first.texts)) == (10, 10)
    assert (second.seconds, metered.cost(second.texts)) == (5, 15)


def test_calls_from_threads_are_all_billed(clock: Clock) -> None:
    metered = MeteredEmbedder(CachedEmbedder(clock))
    with metered.billed() as bill:
        threads = [threading.Thread(target=metered.embed_documents, args=([str(i) * 7],)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert (bill.seconds, metered.cost(bill.texts)) == (56, 56)
