"""Strategies are scored side by side as each would be alone, and each distinct text is embedded once."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from chunkcore import Benchmark, Chunker, DataError, Document, OptionError, Retrieved, Run, Span, load_benchmark
from chunkcore.chunkers import Contextual, get_chunker
from chunkcore.evaluation.measures import DEFAULT_DEPTHS, measures_at, retrieval_measures
from chunkcore.evaluation.results import ModelPrices, Report, System
from chunkcore.evaluation.scoring import Scorer, score
from chunkcore.models.llm import CallableLLM, Prices
from chunkcore.models.loading import CachedEmbedder
from chunkcore.retrieval import ChunkedCorpus, Dense, Hits, Index, PassageIndex, RetrievalMethod, TextVectors
from chunkcore.study.behind import limits_of
from chunkcore.study.experiment import embedded_first, run_experiment, run_retriever

from tests.fakes import FakeEmbedder, index_of

WORDS = "recursive:counter=words,size=20"
CLUSTER = "cluster_semantic:counter=words,size=40,piece_size=8"
SPECS = ["fixed_token:counter=words,size=12", WORDS, f"{WORDS},overlap=5", CLUSTER]


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
        {"question": "bread flour salt", "evidence": [{"document": "b.txt", "text": "flour, water", "occurrence": 2}]},
        {"question": "bicycles on the ferry", "evidence": [{"document": "c.txt", "text": "Bicycles", "occurrence": 1}]},
    ]
    return load_benchmark(documents, rows, name="tales")


def chunkers(*specs: str) -> list[Chunker]:
    return [get_chunker(spec) for spec in specs or SPECS]


@pytest.mark.parametrize("where", [None, {}])  # a question's filter changes no other question's figures
def test_every_strategy_scores_what_it_scores_alone(benchmark: Benchmark, where: dict[str, str] | None) -> None:
    asked = replace(benchmark, queries=[replace(benchmark.queries[0], where=where), *benchmark.queries[1:]])
    reports = run_experiment(Scorer(asked, counter="words"), chunkers(), FakeEmbedder())
    assert [report.name for report in reports] == SPECS
    for report, spec in zip(reports, SPECS, strict=True):
        model, (chunker,) = FakeEmbedder(), chunkers(spec)
        if spec.startswith("cluster"):
            (chunker,) = chunkers()[3:]
            object.__setattr__(chunker, "embedder", model)
        index = index_of([*chunker.chunk_many(benchmark.documents)], model)
        results = {query.id: index.retrieve(query.text, 50) for query in benchmark.queries}
        run = Run(spec, results, index.retrieve("", 10_000))
        alone = score(run, benchmark, measures_at(DEFAULT_DEPTHS), counter="words")
        for measure in alone.scores:
            np.testing.assert_array_equal(report.values(measure), alone.values(measure), err_msg=str(measure))
        assert (report.found, report.unanswered) == (alone.found, ())


def test_each_distinct_text_is_embedded_once_in_a_run(benchmark: Benchmark) -> None:
    model = FakeEmbedder()
    run_experiment(benchmark, chunkers(*SPECS, "recursive:size=21,counter=words"), model)
    # A piece that is also a chunk and a chunk of two chunkers are one text; a question may be, too.
    repeated = [text for text, count in Counter(model.texts).items() if count > 1]
    assert repeated == []
    assert {query.text for query in benchmark.queries} <= set(model.texts)


def test_a_strategy_keeps_an_embedder_that_is_another_model(benchmark: Benchmark) -> None:
    own, model = FakeEmbedder(8, name="own"), FakeEmbedder(name="model")
    (cluster,) = chunkers(SPECS[3])
    object.__setattr__(cluster, "embedder", own)
    run_experiment(benchmark, [cluster], model)
    assert own.calls > 0
    pieces = set(own.texts)
    object.__setattr__(cluster, "embedder", FakeEmbedder(name="model"))  # another object, the same model
    run_experiment(benchmark, [cluster], model)
    assert cluster.embedder.calls == 0  # type: ignore[attr-defined]
    assert pieces <= set(model.texts)


@pytest.mark.parametrize("method", [Dense(), Dense(cluster_only=True)])
def test_chunks_with_segments_are_searched_by_each_of_them(benchmark: Benchmark, method: Dense) -> None:
    embedder = FakeEmbedder()
    spec = "hierarchical:counter=words,window=1,deviations=0,k=0,max_segment=12,size=60"
    (report,) = run_experiment(Scorer(benchmark, counter="words"), chunkers(spec), embedder, retrievers=[method])
    chunks = [*replace(get_chunker(spec), embedder=embedder).chunk_many(benchmark.documents)]  # type: ignore[call-arg]
    assert any(len(chunk.segments) > 1 for chunk in chunks)
    index = index_of(chunks, embedder, method)
    results = {query.id: index.retrieve(query.text, 50) for query in benchmark.queries}
    run = Run(spec, results, index.retrieve("", 10_000))
    alone = score(run, benchmark, measures_at(DEFAULT_DEPTHS), counter="words")
    assert report.found == alone.found
    for measure in alone.scores:
        np.testing.assert_array_equal(report.values(measure), alone.values(measure), err_msg=str(measure))


def test_what_the_embedder_cuts_off_is_counted_once_a_distinct_text(benchmark: Benchmark) -> None:
    (chunker,) = chunkers(SPECS[1])
    texts = {chunk.text for chunk in chunker.chunk_many(benchmark.documents)}
    over = [tokens - 15 for tokens in FakeEmbedder().count_tokens([*texts]) if tokens > 15]
    assert over
    (report,) = run_experiment(benchmark, [chunker], FakeEmbedder(max_tokens=15))
    assert report.chunks is not None
    assert (report.chunks.truncated, report.chunks.tokens_lost) == (len(over), sum(over))
    (unlimited,) = run_experiment(benchmark, [chunker], FakeEmbedder())
    assert unlimited.chunks is not None
    assert (unlimited.chunks.truncated, unlimited.chunks.tokens_lost) == (0, 0)


def test_a_question_that_fails_is_named_and_the_others_are_scored(benchmark: Benchmark) -> None:
    class Fails:
        def __init__(self, *questions: str) -> None:
            self.questions = questions

        def retrieve(self, query: str, k: int | None = None, max_tokens: int | None = None) -> list[Retrieved]:
            if query in self.questions:
                raise ConnectionError("no route")
            return [Retrieved("a.txt", (Span(0, 12),))]

    first, *_ = texts = [query.text for query in benchmark.queries]
    with pytest.warns(UserWarning, match=r"Fails failed at 1 of 3 questions.* is 'q1' \(ConnectionError: no route\)"):
        run = run_retriever(Fails(first), benchmark, 5)
    assert run.failures == {"q1": "ConnectionError: no route"}
    assert score(run, benchmark, ["Recall@5"]).unanswered == ("q1",)
    with pytest.raises(ConnectionError):
        run_retriever(Fails(*texts), benchmark, 5)


def test_an_index_that_fails_at_one_question_answers_the_others(benchmark: Benchmark) -> None:
    broken = benchmark.queries[1]

    class Breaks(FakeEmbedder):
        def embed_queries(self, texts: Sequence[str]) -> np.ndarray:
            if broken.text in texts:
                raise ValueError("no vector")
            return super().embed_queries(texts)

    (whole,) = run_experiment(benchmark, SPECS[0], FakeEmbedder(), measures=["Recall@1"])
    with pytest.warns(UserWarning, match=f"failed at 1 of 3 questions.*{broken.id}"):
        (report,) = run_experiment(benchmark, SPECS[0], Breaks(), measures=["Recall@1"])
    assert report.unanswered == (broken.id,)
    (scores,), (expected,) = report.scores.values(), whole.scores.values()
    assert scores[0] == expected[0]
    assert scores[1] == 0


def test_what_stands_behind_a_retriever_is_a_stage_of_an_experiment(benchmark: Benchmark) -> None:
    scorer = Scorer(benchmark, counter="words")
    reports = []
    for behind in ("", "hits", "whole"):
        options = {"retrievers": ["bm25", "passages:lexical"], "measures": ["Recall@12tok", "Recall@1"]}
        reports += run_experiment(scorer, SPECS[1], FakeEmbedder(), behind=behind, **options)
    expected = [("bm25", ""), ("passages:lexical", ""), ("bm25", "hits"), ("bm25", "whole")]
    assert [(report.system.retriever, report.system.behind) for report in reports] == expected
    assert reports[2].name == f"{SPECS[1]} · bm25 · passages behind"
    assert all({"chunk", "embed", "search", "score"} == report.seconds.keys() for report in reports)
    assert all(report.retrieved_tokens["12tok"].max() <= 12 for report in reports)


def test_a_warm_cache_has_no_seconds(benchmark: Benchmark) -> None:
    model = CachedEmbedder(FakeEmbedder())
    (cold,), (warm,) = (run_experiment(benchmark, SPECS[0], model) for _ in range(2))
    assert "embed" in cold.seconds
    assert "embed" not in warm.seconds


@pytest.mark.parametrize(
    ("specs", "options", "message"),
    [
        ([], {}, "there is no chunker to run"),
        (SPECS[:1] * 2, {}, "the chunker fixed_token:counter=words,size=12 is given twice"),
        (SPECS[:1], {"retrievers": []}, "there is no retriever to run"),
        (SPECS[:1], {"retrievers": ["bm25", "bm25:k1=1.2"]}, "the retriever bm25 is given twice"),
        (SPECS[:1], {"embedder": []}, "there is no embedder to run"),
        (SPECS[:1], {"behind": "all"}, "behind is one of '', 'hits', 'whole'; got 'all'"),
        (SPECS[:1], {"behind": "hits", "retrievers": ["passages:lexical"]}, "nothing stands behind"),
    ],
)
def test_what_can_not_be_run_is_refused(benchmark, specs, options, message):
    with pytest.raises(OptionError) as caught:
        run_experiment(benchmark, chunkers(*specs) if specs else [], **{"embedder": FakeEmbedder(), **options})
    assert message in str(caught.value)


def test_each_retriever_scores_what_it_scores_alone(benchmark: Benchmark) -> None:
    specs, retrievers = SPECS[1:], ["dense", "bm25", "hybrid:bm25,dense"]
    together = run_experiment(
        Scorer(benchmark, counter="words"), chunkers(*specs), FakeEmbedder(), retrievers=retrievers
    )
    assert [report.name for report in together] == [f"{spec} · {each}" for each in retrievers for spec in specs]
    for each, group in zip(retrievers, (together[:3], together[3:6], together[6:]), strict=True):
        alone = run_experiment(Scorer(benchmark, counter="words"), chunkers(*specs), FakeEmbedder(), retrievers=[each])
        assert [report.name for report in alone] == specs
        for one, other in zip(group, alone, strict=True):
            assert one.found == other.found
            assert one.cost is not None
            assert other.cost is not None
            assert one.cost == other.cost
    assert together[0].run is not None
    assert together[3].run is not None
    assert together[0].run.results != together[3].run.results


def test_passages_are_made_for_each_depth_and_budget_of_the_measures(benchmark: Benchmark) -> None:
    """What is found at 4 words is no part of what is found at 40, and each measure sees its own."""
    asked: list[tuple[int | None, int | None, str]] = []

    class Whole(RetrievalMethod):
        kind = "whole"
        embeds = False

        def build(self, corpus: ChunkedCorpus, vectors: TextVectors | None = None) -> Index:
            return WholeIndex(corpus)

    class WholeIndex(PassageIndex):
        """One passage from the document's start, as long as the budget allows: nothing at k."""

        def rank(self, queries: Sequence[str], k: int) -> Hits:
            return Hits.of([])

        def passages(self, queries, k, max_tokens, counter):  # type: ignore[no-untyped-def]
            asked.append((k, max_tokens, counter.name))
            if max_tokens is None:
                return [[] for _ in queries]
            text = benchmark.documents[0].text
            end = int(counter.boundaries(text)[max_tokens])
            return [[Retrieved("a.txt", (Span(0, end),), 1.0, text[:end])] for _ in queries]

    scorer = Scorer(benchmark, counter="words")
    measures = ["Recall@2tok", "Recall@3", "Recall@4tok", "MRR", "Recall@min"]
    (report,) = run_experiment(scorer, chunkers(SPECS[0]), FakeEmbedder(), measures=measures, retrievers=[Whole()])
    assert asked == [(None, 2, "words"), (3, None, "words"), (None, 4, "words")]  # k = min needs no more than 3
    assert list(map(str, report.scores)) == measures
    assert list(limits_of(retrieval_measures(["Recall@min", "MRR"]), 7)) == [(7, None)]
    assert [report.mean(each) for each in report.scores] == pytest.approx([2 / 9, 0, 1 / 3, 0, 0])
    assert report.retrieved_tokens["2tok"].tolist() == [2, 2, 2]
    assert report.run is not None
    assert [len(piece[0].text.split()) for piece in report.run.results.values()] == [2, 2, 2]


def test_with_several_embedders_names_tell_which_and_what_needs_none_runs_once(benchmark: Benchmark) -> None:
    small, large = FakeEmbedder(4, name="small"), FakeEmbedder(64, name="large")
    specs = [SPECS[0], SPECS[3]]
    named, scorer = dict(zip("fc", chunkers(*specs), strict=True)), Scorer(benchmark, counter="words")
    reports = run_experiment(scorer, named, [small, large], retrievers=["dense", "bm25"])
    first = ["f · dense · small", "c · dense · small", "f · bm25", "c · bm25 · small"]
    names = [report.name for report in reports]
    assert names == [*first, "f · dense · large", "c · dense · large", "c · bm25 · large"]
    systems = [("f", "bm25", ""), ("c", "bm25", "small"), ("f", "dense", "large")]
    assert [report.system for report in reports[2:5]] == [System(*system) for system in systems]
    assert [Report.from_dict(report.to_dict()).system for report in reports] == [report.system for report in reports]
    for model, group in ((small, reports[:2]), (large, reports[4:6])):
        alone = run_experiment(Scorer(benchmark, counter="words"), chunkers(*specs), model)
        assert [each.found for each in group] == [each.found for each in alone]
    behind = run_experiment(scorer, named, [small, large], retrievers=["bm25"], choose=lambda reports: reports[0])
    assert behind[-1].system == System("f", "bm25", "", "hits")


def test_a_strategy_over_one_that_embeds_shares_the_runs_embedder(benchmark: Benchmark) -> None:
    llm = CallableLLM(lambda messages, schema: '{"context": "Of tales."}', name="always so")
    model = FakeEmbedder()
    chunker = Contextual(llm=llm, chunker=SPECS[3], counter="words")
    (report,) = run_experiment(Scorer(benchmark, counter="words"), [chunker], model)
    pieces = [text for text in model.texts if "Of tales." not in text]
    assert len(pieces) > len(benchmark.queries)  # the inner chunker's own, by the run's model
    assert report.cost is not None
    assert report.chunks is not None
    assert report.cost.llm_calls == report.chunks.count
    assert report.cost.llm_input_tokens > 0


@pytest.mark.parametrize(
    ("retriever", "message", "before"),
    [
        ("late", "late chunking needs those of tokens", set()),
        ("hybrid:bm25,late", "late chunking needs those of tokens", set()),
        ('bm25+rerank:model=" "', "a reranker is a folder", set()),
        ("passages", "cut without overlap", {"chunk"}),
    ],
)
def test_what_a_retriever_lacks_is_told_before_anything_is_cut_or_embedded(benchmark, retriever, message, before):
    steps: list[str] = []
    record, plain = lambda step, *_: steps.append(step), chunkers(SPECS[2])
    with pytest.raises((OptionError, DataError), match=message):
        run_experiment(benchmark, plain, FakeEmbedder(), retrievers=["dense", retriever], progress=record)
    assert set(steps) == before


def test_a_cost_counts_what_a_strategy_alone_would_ask_for(benchmark: Benchmark) -> None:
    specs = [SPECS[0], SPECS[3]]
    for report, spec in zip(run_experiment(benchmark, chunkers(*specs), FakeEmbedder()), specs, strict=True):
        model = FakeEmbedder()
        run_experiment(benchmark, chunkers(spec), model)
        cost = report.cost
        assert cost is not None
        questions = [query.text for query in benchmark.queries]
        texts = [text for text in model.texts if text not in questions]
        assert cost.embedded_texts == len(texts)
        assert cost.embedded_tokens == model.count_tokens(texts).sum()
        assert cost.embedder_calls == model.calls - 1  # less the one for the questions
        assert cost.source_tokens > 0


def test_money_is_told_where_there_are_prices_for_all_that_was_used(benchmark: Benchmark) -> None:
    reports = run_experiment(benchmark, chunkers(SPECS[0]), FakeEmbedder(), retrievers=["dense", "bm25"])
    dense, words = (each.cost.priced(ModelPrices(embedding=2.0)) for each in reports if each.cost is not None)
    assert dense.embedded_tokens is not None
    assert dense.money == pytest.approx(2.0 * dense.embedded_tokens / 1e6)
    assert dense.money_per_million == pytest.approx(2.0 * dense.tokens_ratio)
    assert (words.money, words.embedded_texts) == (0, 0)

    llm = CallableLLM(lambda messages, schema: '{"context": "x"}', name="x")
    asks = Contextual(llm=llm, chunker=SPECS[0], counter="words")
    prices = Prices(input=10.0, output=20.0)
    (report,) = run_experiment(benchmark, [asks], FakeEmbedder())
    cost = report.cost
    assert cost is not None
    assert cost.embedded_tokens is not None
    assert cost.priced(ModelPrices(embedding=2.0)).money is None
    assert cost.priced(ModelPrices(llm=prices)).money is None
    total = 10 * cost.llm_input_tokens + 20 * cost.llm_output_tokens + 2 * cost.embedded_tokens
    assert cost.priced(ModelPrices(embedding=2.0, llm=prices)).money == pytest.approx(total / 1e6)


def test_a_report_with_its_cost_is_read_back(benchmark: Benchmark) -> None:
    (report,) = run_experiment(benchmark, chunkers(SPECS[0]), FakeEmbedder())
    assert report.cost is not None
    report = replace(report, cost=report.cost.priced(ModelPrices(embedding=2.0)))
    plain = json.loads(json.dumps(report.to_dict()))
    again = Report.from_dict(plain)
    assert again.cost == report.cost
    assert again.run is None
    assert "run" not in plain
    plain["cost"]["embedded_texts"] = "many"
    with pytest.raises(DataError, match="this is no report"):
        Report.from_dict(plain)


def test_what_chunkers_embed_is_embedded_together_and_counted_in_the_forecast(benchmark: Benchmark) -> None:
    model, steps = FakeEmbedder(), []
    cluster = SPECS[3]
    reports = run_experiment(benchmark, [SPECS[0], cluster], model, progress=lambda *step: steps.append(step))
    embedded = [step for step in steps if step[0] == "embed"]
    pieces = embedded_first(get_chunker(cluster), benchmark.documents, CachedEmbedder(FakeEmbedder()))
    assert embedded[0][1] == 0
    assert embedded[0][2] >= len(set(pieces)) + reports[0].chunks.count, "the first forecast has all of them"
    assert steps.index(embedded[1]) < max(place for place, step in enumerate(steps) if step[0] == "chunk")
    assert embedded[-1][1] == embedded[-1][2]
    assert model.calls == 3, "pieces of all documents, chunks, questions"
