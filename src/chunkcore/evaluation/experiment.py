"""`run_experiment`: chunkers x retrievers x embedders to reports; `run_retriever`: any retriever to a `Run`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, is_dataclass, replace
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from chunkcore.chunkers.base import Chunker, get_chunker
from chunkcore.columns import blocks
from chunkcore.concurrency import Progress
from chunkcore.errors import DataError, OptionError, check_type
from chunkcore.evaluation.benchmarks.benchmark import Benchmark, Query
from chunkcore.evaluation.costs import Meter, MeteredVectors, Work
from chunkcore.evaluation.measures import Measure, budget_of, measures_at, retrieval_measures
from chunkcore.evaluation.results import Report, system_name
from chunkcore.evaluation.scoring import Scorer
from chunkcore.models.base import Embedder
from chunkcore.models.cache import CachedEmbedder
from chunkcore.models.loading import DEFAULT_MODEL, EmbedderCounter, get_embedder, lazy_embedder
from chunkcore.options import check_number
from chunkcore.retrieval import ChunkedCorpus, Index, RetrievalMethod, chunk_corpus, get_retriever
from chunkcore.run import Answers, Retrieved, Retriever, Run
from chunkcore.spans import Numbers
from chunkcore.tokens import TokenCounter

Chunkers = Sequence[Chunker | str] | Mapping[str, Chunker]


def run_retriever(
    retriever: Retriever,
    queries: Benchmark | Iterable[Query],
    k: int | None = 10,
    max_tokens: int | None = None,
    *,
    sizes: NDArray[np.int64] | None = None,
    counter: TokenCounter | None = None,
    name: str = "",
) -> Run:
    """Ask a retriever every query.

    An `Index` answers all queries at once, and its run has a pool, for k = "min" and PrecisionOmega. With `max_tokens`,
    an index is searched until every query has that many tokens and at least `k` chunks ("Recall@4096tok" needs it). An
    index that makes passages (`PassageIndex`) keeps to both limits; any other retriever gets both.

    Args:
        retriever: an `Index`, or any object with ``retrieve(query, k)``.
        k: pieces per query; None for no limit.
        max_tokens: tokens per query; None for no limit.
        sizes: the tokens of each chunk of an index; by default its chunker's counts.
        counter: of `max_tokens`, for an index that makes passages; by default its own.
        name: the run's; by default the retriever's class.

    Raises `DataError`: the retriever returned something other than `Retrieved`.

    >>> from chunkcore.datasets import load_dataset
    >>> class Nothing:
    ...     def retrieve(self, query, k):
    ...         return []
    >>> len(run_retriever(Nothing(), load_dataset("lochmere"), 5).results)
    90
    """
    check_type("a retriever", retriever, Retriever, "an object with retrieve(query, k)")
    check_type("queries", queries, Benchmark | Iterable, "a Benchmark, or Query objects")
    questions = list(queries.queries if isinstance(queries, Benchmark) else queries)
    for question in questions:
        check_type("one of the queries", question, Query, "a Query")
    for limit, value in (("k", k), ("max_tokens", max_tokens)):
        if value is not None:
            check_number(limit, value)
    ids, texts = [query.id for query in questions], [query.text for query in questions]
    name = name or type(retriever).__name__
    if isinstance(retriever, Index):
        answers = retriever.answers(texts, k, max_tokens, sizes=sizes, counter=counter)
        return Run(name, Answers.of(ids, answers), retriever.corpus.retrieved)
    limits = (k,) if max_tokens is None else (k, max_tokens)
    results: dict[str, Sequence[Retrieved]] = {}
    for query, text in zip(ids, texts, strict=True):
        results[query] = retriever.retrieve(text, *limits)
        wrong = next((piece for piece in results[query] if not isinstance(piece, Retrieved)), None)
        if wrong is not None:
            raise DataError(
                f"{type(retriever).__name__}.retrieve returned a {type(wrong).__name__}: "
                "expected Retrieved pieces, such as Retrieved(document_id, (Span(0, 40),))"
            )
    return Run(name, results)


def run_experiment(
    benchmark: Benchmark | Scorer,
    chunkers: Chunkers | Callable[[Embedder], Chunkers],
    embedder: Embedder | str | Sequence[Embedder | str] = DEFAULT_MODEL,
    *,
    retrievers: Sequence[str | RetrievalMethod] = ("dense",),
    measures: Iterable[Measure | str] | Measure | str | None = None,
    progress: Progress | None = None,
    done: Callable[[Report], None] | None = None,
) -> list[Report]:
    """Score chunkers by searching their chunks: one report per embedder, retriever and chunker, chunkers fastest.

    Every query searches all chunks of all documents. Distinct chunks are embedded together, longest first, when first
    needed. A chunker that embeds uses the experiment's embedder if its own is the default or the same model. A report's
    `seconds` ("chunk", "embed", "search", "score") and `cost` are those of its chunker and search as if alone.

    Args:
        benchmark: documents and queries; or their `Scorer`, with its counter and rules.
        chunkers: chunkers or their specs, a mapping by report name, or a function of the embedder that makes them.
        embedder: of chunks and queries, or its name; a `CachedEmbedder` keeps its cache. With several, a report's name
            ends in " · " and the model's; combinations that embed nothing run once, without it.
        retrievers: for `get_retriever`, such as "dense", "bm25" or "hybrid+rerank". With several, a report's name ends
            in " · " and the retriever's.
        measures: by default `measures_at()`. MRR, MAP and nDCG without a depth use the deepest of the others.
        progress: called with a step ("chunk", "embed", "queries", "search"), the count done, and the total.
        done: called with each finished report.

    Raises:
        OptionError: no chunker, retriever or embedder, a repeated name, or an option out of range.
        MissingExtraError: a retriever's package is not installed.
        ModelError: the embedder or a reranker failed twice.
    """
    check_type("what is run on", benchmark, Benchmark | Scorer, "a Benchmark, as of load_benchmark, or its Scorer")
    check_type("retrievers", retrievers, Iterable, "names of retrievers")
    methods = [get_retriever(name) for name in ([retrievers] if isinstance(retrievers, str) else retrievers)]
    _check_names([method.name for method in methods], "retriever")
    meters = _meters(embedder)
    for meter, method in product(meters.values(), methods):
        method.check(meter)
    scored = list(retrieval_measures(measures_at() if measures is None else measures))
    report_progress = progress or (lambda step, done, total: None)
    scorer = benchmark if isinstance(benchmark, Scorer) else Scorer(benchmark)
    reports: list[Report] = []
    for number, (model, meter) in enumerate(meters.items()):
        strategies = _strategies(chunkers, meter)
        # Combinations without a model have the same result with the next one.
        pairs = [(m, s) for m in methods for s in strategies if not number or m.embeds or s.embeds]
        cuts = _cut_all({s.name: s.chunker for _, s in pairs}, scorer.benchmark, meter, report_progress)
        vectors = MeteredVectors(meter, [cut.corpus for cut in cuts.values()], progress=report_progress)
        for place, (method, strategy) in enumerate(pairs, start=1):
            used = model if method.embeds or strategy.embeds else ""
            parts = (strategy.name, method.name if len(methods) > 1 else "", used if len(meters) > 1 else "")
            report = _report(system_name(*parts), cuts[strategy.name], method, vectors, scorer, scored, meter)
            reports.append(replace(report, chunker=strategy.name, retriever=method.name, embedder=used))
            if done is not None:
                done(reports[-1])
            report_progress("search", place, len(pairs))
    return reports


@dataclass(frozen=True, eq=False)
class _Cut:
    chunker: Chunker
    corpus: ChunkedCorpus
    work: Work


def _cut_all(
    chunkers: Mapping[str, Chunker], benchmark: Benchmark, meter: Meter, progress: Progress
) -> dict[str, _Cut]:
    documents = benchmark.documents
    total = len(chunkers) * len(documents)
    cuts: dict[str, _Cut] = {}

    def cut_so_far(done: int) -> None:
        progress("chunk", len(cuts) * len(documents) + done, total)

    for name, chunker in chunkers.items():
        cut_so_far(0)
        with meter.measured(chunker) as work:
            corpus = chunk_corpus(documents, chunker, progress=cut_so_far)
        cuts[name] = _Cut(chunker, corpus, work)
    cut_so_far(0)
    return cuts


def _report(
    name: str,
    cut: _Cut,
    method: RetrievalMethod,
    vectors: MeteredVectors,
    scorer: Scorer,
    measures: Sequence[Measure],
    meter: Meter,
) -> Report:
    corpus, queries = cut.corpus, scorer.benchmark.queries
    budget = max([0, *(budget_of(measure.k) or 0 for measure in measures)])
    sizes = scorer.token_counts(corpus.retrieved) if budget else None
    ks = {measure.k for measure in measures}
    depth = max([1, *(k for k in ks if isinstance(k, int))])
    if "min" in ks:
        depth = max(depth, int(scorer.depths(corpus.retrieved).max(initial=0)))
    with meter.measured() as work:
        index = method.index(corpus, vectors)
        limits = [(depth, budget or None, measures)] if index.nested else _one_by_one(measures, depth)
        runs = [
            (run_retriever(index, queries, k, most, sizes=sizes, counter=scorer.counter, name=name), group)
            for k, most, group in limits
        ]
    texts = [query.text for query in queries]
    cost, seconds = meter.cost(cut.work, work, corpus, texts, scorer.tokens.size)
    first, *others = [scorer.score(replace(run, seconds=seconds), group) for run, group in runs]
    report = first.joined(others, measures) if others else first
    chunks = meter.statistics(work, corpus, _lengths(cut, scorer.counter))
    return replace(report, chunks=chunks, cost=cost)


def _lengths(cut: _Cut, counter: TokenCounter) -> Numbers:
    if cut.chunker.token_counter == counter:
        return cut.corpus.token_counts
    return np.concatenate([counter.count_many([chunk.text for chunk in some]) for some in blocks(cut.corpus)])


def _one_by_one(measures: Sequence[Measure], depth: int) -> list[tuple[int | None, int | None, Sequence[Measure]]]:
    """Each limit of the measures (k = "min": `depth`), and its measures; those without go with the deepest."""
    limits = dict.fromkeys(measure.k for measure in measures if measure.k is not None) or {1: None}
    deepest = max(limits, key=lambda k: (isinstance(k, int), k if isinstance(k, int) else budget_of(k) or 0))
    groups = {k: [m for m in measures if (deepest if m.k is None else m.k) == k] for k in limits}
    return [
        (k if isinstance(k, int) else None if budget_of(k) else depth, budget_of(k), group)
        for k, group in groups.items()
    ]


class _Strategy(NamedTuple):
    name: str
    chunker: Chunker
    embeds: bool


def _strategies(chunkers: Chunkers | Callable[[Embedder], Chunkers], meter: Meter) -> list[_Strategy]:
    chosen = chunkers(meter.embedder) if callable(chunkers) else chunkers
    check_type("chunkers", chosen, Iterable, "specs or Chunkers")
    if isinstance(chosen, Mapping):
        named = {name: get_chunker(chunker) for name, chunker in chosen.items()}
        _check_names(list(named), "strategy")
    else:
        built = list(map(get_chunker, chosen))
        _check_names([chunker.label for chunker in built], "strategy")
        named = {chunker.label: chunker for chunker in built}
    shared = {name: with_run_embedder(chunker, meter) for name, chunker in named.items()}
    return [_Strategy(name, chunker, chunker is not named[name]) for name, chunker in shared.items()]


def with_run_embedder(chunker: Chunker, embedder: CachedEmbedder) -> Chunker:
    """The strategy with this embedder (and its token counter) in place of the default or of the same model.

    Wrapped strategies and overlaps change too. A strategy that does not embed is returned unchanged.
    """
    changes: dict[str, Any] = {}
    for name in chunker.option_names():
        value = getattr(chunker, name)
        if isinstance(value, Chunker):
            if (shared := with_run_embedder(value, embedder)) is not value:
                changes[name] = shared
        elif name == "embedder":
            default = value == type(chunker).embedder  # type: ignore[attr-defined]
            if default or get_embedder(value).fingerprint == embedder.fingerprint:
                changes[name] = embedder
        elif is_dataclass(value) and getattr(value, "embedder", None) == DEFAULT_MODEL:
            changes[name] = replace(value, embedder=embedder)  # type: ignore[type-var]
    if chunker.token_counter == EmbedderCounter():
        changes["counter"] = EmbedderCounter(embedder)
    return replace(chunker, **changes) if changes else chunker


def _meters(embedder: Embedder | str | Sequence[Embedder | str]) -> dict[str, Meter]:
    several: Sequence[Embedder | str] = embedder if isinstance(embedder, list | tuple) else [embedder]  # type: ignore[list-item]
    names = [model if isinstance(model, str) else getattr(model, "name", "") for model in several]
    _check_names(names, "embedder")
    cached = (model if isinstance(model, CachedEmbedder) else CachedEmbedder(lazy_embedder(model)) for model in several)
    return {name: Meter(model) for name, model in zip(names, cached, strict=True)}


def _check_names(names: Sequence[str], what: str) -> None:
    if not names:
        raise OptionError(f"there is no {what} to run: expected at least one")
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise OptionError(f"the {what} {repeated[0]} is given twice: give each once")
