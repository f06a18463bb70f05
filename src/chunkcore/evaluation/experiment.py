"""`run_experiment`: chunkers x retrievers x embedders to reports; `run_retriever`: any retriever to a `Run`."""

from __future__ import annotations

import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, is_dataclass, replace
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from chunkcore.chunkers.base import Chunker, get_chunker
from chunkcore.chunkers.llm import llms_of
from chunkcore.columns import blocks, text_key
from chunkcore.concurrency import Progress, no_progress
from chunkcore.errors import DataError, OptionError, check_type
from chunkcore.evaluation.benchmarks.benchmark import Benchmark, Query
from chunkcore.evaluation.measures import Measure, budget_of, measures_at, retrieval_measures
from chunkcore.evaluation.results import ChunkStatistics, Cost, Report, system_name
from chunkcore.evaluation.scoring import Scorer
from chunkcore.models.base import Embedder, TokenCountingEmbedder, Vectors
from chunkcore.models.cache import CachedEmbedder
from chunkcore.models.llm import Usage
from chunkcore.models.loading import DEFAULT_MODEL, EmbedderCounter, cached_embedder, get_embedder
from chunkcore.options import check_number, named_options
from chunkcore.retrieval import ChunkedCorpus, Index, RetrievalMethod, chunk_corpus, get_retriever
from chunkcore.retrieval.vectors import Rows, TextVectors
from chunkcore.run import Answers, Retrieved, Retriever, Run
from chunkcore.spans import Numbers
from chunkcore.tokens import TokenCounter, get_counter

Chunkers = Sequence[Chunker | str] | Mapping[str, Chunker] | Chunker | str


@named_options()
def run_retriever(
    retriever: Retriever,
    queries: Benchmark | Iterable[Query],
    k: int | None = 10,
    max_tokens: int | None = None,
    *,
    sizes: NDArray[np.int64] | None = None,
    counter: TokenCounter | str | None = None,
    name: str = "",
) -> Run:
    """Ask a retriever every query.

    An `Index` answers all queries at once, and its run has a pool, for k = "min" and PrecisionOmega. With `max_tokens`,
    every query gets at least that many tokens and `k` chunks of an index ("Recall@4096tok" needs it), and at most both
    of an index that makes passages. Any other retriever is asked with both.

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
    if isinstance(retriever, str):
        get_retriever(retriever).retrieve("")  # raises: a method has no documents
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
        named = None if counter is None else get_counter(counter)
        answers = retriever.answers(texts, k, max_tokens, sizes=sizes, counter=named)
        return Run(name, Answers.of(ids, answers), retriever.corpus.retrieved)
    limits = (k,) if max_tokens is None else (k, max_tokens)
    results: dict[str, Sequence[Retrieved]] = {}
    for query, text in zip(ids, texts, strict=True):
        results[query] = retriever.retrieve(text, *limits)
        wrong = next((piece for piece in results[query] if not isinstance(piece, Retrieved)), None)
        if wrong is not None:
            raise DataError(
                f"{type(retriever).__name__}.retrieve returned a {type(wrong).__name__}, no Retrieved"
            )
    return Run(name, results)


@named_options()
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
        chunkers: a chunker or several, or their specs, a mapping by report name, or a function of the embedder that
            makes them.
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
    check_type(
        "what is run on",
        benchmark,
        Benchmark | Scorer,
        "a Benchmark, as of load_benchmark, or its Scorer",
    )
    methods = _methods(retrievers)
    meters = _meters(embedder)
    for meter, method in product(meters.values(), methods):
        method.check(meter)
    scored = list(retrieval_measures(measures_at() if measures is None else measures))
    report_progress = progress or no_progress
    scorer = benchmark if isinstance(benchmark, Scorer) else Scorer(benchmark)
    reports: list[Report] = []
    for number, (model, meter) in enumerate(meters.items()):
        strategies = _strategies(chunkers, meter)
        # Combinations without a model have the same result with the next one.
        pairs = [(m, s) for m in methods for s in strategies if not number or m.embeds or s.embeds]
        cuts = _cut_all(
            {s.name: s.chunker for _, s in pairs}, scorer.benchmark, meter, report_progress
        )
        for method, strategy in pairs:
            method.check_chunks(cuts[strategy.name].corpus)
        vectors = MeteredVectors(
            meter, [cut.corpus for cut in cuts.values()], progress=report_progress
        )
        for place, (method, strategy) in enumerate(pairs, start=1):
            used = model if method.embeds or strategy.embeds else ""
            parts = (
                strategy.name,
                method.name if len(methods) > 1 else "",
                used if len(meters) > 1 else "",
            )
            report = _report(
                system_name(*parts), cuts[strategy.name], method, vectors, scorer, scored
            )
            reports.append(
                replace(report, chunker=strategy.name, retriever=method.name, embedder=used)
            )
            if done is not None:
                done(reports[-1])
            report_progress("search", place, len(pairs))
    return reports


def _methods(retrievers: Sequence[str | RetrievalMethod] | str) -> list[RetrievalMethod]:
    check_type("retrievers", retrievers, Iterable, "names of retrievers")
    methods = [
        get_retriever(name)
        for name in ([retrievers] if isinstance(retrievers, str) else retrievers)
    ]
    _check_names([method.name for method in methods], "retriever")
    return methods


class _Cut(NamedTuple):
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

    cut_so_far(0)
    for name, chunker in chunkers.items():
        with meter.measured(chunker) as work:
            corpus = chunk_corpus(documents, chunker, progress=cut_so_far)
        cuts[name] = _Cut(corpus, work)
        cut_so_far(0)
    return cuts


def _report(
    name: str,
    cut: _Cut,
    method: RetrievalMethod,
    vectors: MeteredVectors,
    scorer: Scorer,
    measures: Sequence[Measure],
) -> Report:
    corpus, queries, meter = cut.corpus, scorer.benchmark.queries, vectors.meter
    budget = max([0, *(budget_of(measure.k) or 0 for measure in measures)])
    sizes = scorer.token_counts(corpus.retrieved) if budget else None
    ks = {measure.k for measure in measures}
    depth = max([1, *(k for k in ks if isinstance(k, int))])
    if "min" in ks:
        depth = max(depth, int(scorer.depths(corpus.retrieved).max(initial=0)))
    with meter.measured() as work:
        index = method.index(corpus, vectors)
        limits = (
            [(depth, budget or None, measures)] if index.nested else _one_by_one(measures, depth)
        )
        runs = [
            (
                run_retriever(
                    index, queries, k, most, sizes=sizes, counter=scorer.counter, name=name
                ),
                group,
            )
            for k, most, group in limits
        ]
    texts = [query.text for query in queries]
    cost, seconds = meter.cost(cut.work, work, corpus, texts, scorer.tokens.size)
    first, *others = [scorer.score(replace(run, seconds=seconds), group) for run, group in runs]
    report = first.joined(others, measures) if others else first
    chunks = meter.statistics(work, corpus, _lengths(corpus, scorer.counter))
    return replace(report, chunks=chunks, cost=cost)


def _lengths(corpus: ChunkedCorpus, counter: TokenCounter) -> Numbers:
    if corpus.chunker is not None and corpus.chunker.token_counter == counter:
        return corpus.token_counts
    return np.concatenate(
        [counter.count_many([chunk.text for chunk in some]) for some in blocks(corpus)]
    )


def _one_by_one(
    measures: Sequence[Measure], depth: int
) -> list[tuple[int | None, int | None, Sequence[Measure]]]:
    """Each limit of the measures (k = "min": `depth`), and its measures; those without go with the deepest."""
    limits = dict.fromkeys(measure.k for measure in measures if measure.k is not None) or {1: None}
    deepest = max(
        limits, key=lambda k: (isinstance(k, int), k if isinstance(k, int) else budget_of(k) or 0)
    )
    groups = {k: [m for m in measures if (deepest if m.k is None else m.k) == k] for k in limits}
    return [
        (k if isinstance(k, int) else None if budget_of(k) else depth, budget_of(k), group)
        for k, group in groups.items()
    ]


class _Strategy(NamedTuple):
    name: str
    chunker: Chunker
    embeds: bool


def _strategies(
    chunkers: Chunkers | Callable[[Embedder], Chunkers], meter: Meter
) -> list[_Strategy]:
    chosen = chunkers(meter.embedder) if callable(chunkers) else chunkers
    chosen = [chosen] if isinstance(chosen, str | Chunker) else chosen
    check_type("chunkers", chosen, Iterable, "specs or Chunkers")
    if isinstance(chosen, Mapping):
        named = [(name, get_chunker(chunker)) for name, chunker in chosen.items()]
    else:
        named = [(chunker.label, chunker) for chunker in map(get_chunker, chosen)]
    _check_names([name for name, _ in named], "chunker")
    shared = [with_run_embedder(chunker, meter) for _, chunker in named]
    return [
        _Strategy(name, used, used is not chunker)
        for (name, chunker), used in zip(named, shared, strict=True)
    ]


def with_run_embedder(chunker: Chunker, embedder: CachedEmbedder) -> Chunker:
    """The chunker with this embedder (and its token counter) in place of the default or of the same model.

    Wrapped chunkers and overlaps change too. A chunker that does not embed is returned unchanged.
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
    several: Sequence[Any] = embedder if isinstance(embedder, list | tuple) else [embedder]
    names = [model if isinstance(model, str) else getattr(model, "name", "") for model in several]
    _check_names(names, "embedder")
    return {name: Meter(cached_embedder(model)) for name, model in zip(names, several, strict=True)}


def _check_names(names: Sequence[str], what: str) -> None:
    if not names:
        raise OptionError(f"there is no {what} to run: expected at least one")
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise OptionError(f"the {what} {repeated[0]} is given twice: give each once")


# What a chunker and a search cost, as if each ran alone: one observer sees each text that is embedded.


@dataclass(eq=False)
class Work:
    """What cutting, or a search, did."""

    seconds: float = 0.0  # of the whole
    embedding: float = 0.0  # seconds in which the chunker's own texts were embedded
    texts: set[bytes] = field(default_factory=set)  # keys of those texts
    calls: int = 0  # batches of those texts
    waiting: float = 0.0  # seconds in which a search waited for vectors
    late: tuple[float, int] | None = None  # seconds and tokens of late chunking
    chunks: bool = False  # whether a search used the chunks' vectors
    queries: bool = False  # whether a search used the queries' vectors
    usage: Usage = field(default_factory=Usage)  # of the chunker's language models


class Meter(CachedEmbedder):
    """A cached embedder that measures the time and tokens of each text.

    A call's time is split over its new texts by length, so a text costs the same whether or not another chunker
    embedded it before. It uses the model and the cache of `embedder`.
    """

    def __init__(self, embedder: CachedEmbedder) -> None:
        super().__init__(embedder.embedder, embedder.cache, batch_size=embedder.batch_size)
        self._texts: dict[bytes, tuple[float, int]] = {}  # seconds and tokens of each text
        self._work = Work()
        # One call at a time, so that waiting for another thread does not count as work.
        self._one_call = threading.RLock()

    def _embed(self, texts: Sequence[str], *, queries: bool) -> Vectors:
        with self._one_call:
            began = time.perf_counter()
            vectors = super()._embed(texts, queries=queries)
            seconds = time.perf_counter() - began
            by_key = {text_key(text): text for text in texts}
            new = {key: text for key, text in by_key.items() if key not in self._texts}
            counts = [0] * len(new)
            if new and isinstance(self, TokenCountingEmbedder):
                counts = self.count_tokens(list(new.values())).tolist()
            rate = seconds / (sum(map(len, new.values())) or 1)
            self._texts |= {
                key: (rate * len(new[key]), count) for key, count in zip(new, counts, strict=True)
            }
            self._work.calls += self._batches(len(by_key.keys() - self._work.texts))
            self._work.texts |= by_key.keys()
            self._work.embedding += time.perf_counter() - began
        return vectors

    @contextmanager
    def measured(self, chunker: Chunker | None = None) -> Iterator[Work]:
        """Measure the block, in all threads; `chunker` is the one that cuts."""
        work = self._work = Work()
        before = _usage(chunker)
        began = time.perf_counter()
        try:
            yield work
        finally:
            work.seconds = time.perf_counter() - began
            work.usage = _usage(chunker) - before
            self._work = Work()

    @contextmanager
    def waiting(self) -> Iterator[Work]:
        """Count the block as waiting for vectors."""
        work = self._work
        began = time.perf_counter()
        try:
            yield work
        finally:
            work.waiting += time.perf_counter() - began

    def cost(
        self,
        cutting: Work,
        searching: Work,
        corpus: ChunkedCorpus,
        queries: Sequence[str],
        source_tokens: int,
    ) -> tuple[Cost, dict[str, float]]:
        """The cost of a chunker and a search, and the seconds of each step: "chunk", "embed", "search"."""
        chunks = _keys(corpus) if searching.chunks else set()
        questions = {text_key(text) for text in queries} if searching.queries else set()
        late_seconds, late_tokens = searching.late or (0.0, 0)
        documents = len(corpus.documents) if searching.late else 0
        texts = chunks | cutting.texts
        tokens = self._tokens_read(texts)
        cost = Cost(
            source_tokens=source_tokens,
            embedder_calls=cutting.calls + self._batches(len(chunks - cutting.texts)) + documents,
            embedded_texts=len(texts) + documents,
            embedded_tokens=None if tokens is None else tokens + late_tokens,
            llm_calls=cutting.usage.calls,
            llm_input_tokens=cutting.usage.input_tokens,
            llm_output_tokens=cutting.usage.output_tokens,
        )
        return cost, {
            "chunk": max(cutting.seconds - cutting.embedding, 0.0) + self._seconds(cutting.texts),
            "embed": self._seconds(chunks) + late_seconds + self._seconds(questions),
            "search": max(searching.seconds - searching.waiting, 0.0),
        }

    def statistics(
        self, searching: Work, corpus: ChunkedCorpus, lengths: Numbers
    ) -> ChunkStatistics:
        """The chunks' `lengths`, and what the model cuts off of the chunks that a search embeds."""
        if not searching.chunks or self.max_tokens is None:
            return ChunkStatistics(lengths)
        over = (self._texts.get(key, (0.0, 0))[1] - self.max_tokens for key in _keys(corpus))
        lost = [tokens for tokens in over if tokens > 0]
        return ChunkStatistics(lengths, len(lost), sum(lost))

    def _seconds(self, keys: Iterable[bytes]) -> float:
        return math.fsum(self._texts[key][0] for key in keys if key in self._texts)

    def _tokens_read(self, keys: Collection[bytes]) -> int | None:
        """The tokens that the model reads of distinct texts; None if it does not say."""
        if not keys:
            return 0  # without loading a model
        if not isinstance(self, TokenCountingEmbedder):
            return None
        most = math.inf if self.max_tokens is None else self.max_tokens
        return int(sum(min(self._texts[key][1], most) for key in keys if key in self._texts))

    def _batches(self, texts: int) -> int:
        return -(-texts // self.batch_size)


def _keys(corpus: ChunkedCorpus) -> set[bytes]:
    return set(map(text_key, corpus.embedded_texts))


def _usage(chunker: Chunker | None) -> Usage:
    return sum(
        (getattr(llm, "usage", Usage()) for llm in (llms_of(chunker) if chunker else ())), Usage()
    )


class MeteredVectors(TextVectors):
    """Vectors by a `Meter`, which records what a search uses."""

    def __init__(
        self, meter: Meter, corpora: Sequence[ChunkedCorpus], *, progress: Progress | None = None
    ) -> None:
        super().__init__(meter, corpora, progress=progress)
        self.meter = meter
        self._late: tuple[float, int] | None = None

    def chunks(self, corpus: ChunkedCorpus, *, cluster_only: bool = False) -> tuple[Rows, Numbers]:
        with self.meter.waiting() as work:
            work.chunks = True
            return super().chunks(corpus, cluster_only=cluster_only)

    def late(self, corpus: ChunkedCorpus) -> tuple[Rows, Numbers]:
        with self.meter.waiting() as work:
            began = time.perf_counter()
            vectors = super().late(corpus)
            if self._late is None:
                seconds = time.perf_counter() - began
                self._late = (
                    seconds,
                    sum(map(self.late_embedder.tokens_read, (d.text for d in corpus.documents))),
                )
            work.late = self._late
        return vectors

    def queries(self, texts: Sequence[str]) -> Vectors:
        with self.meter.waiting() as work:
            work.queries = True
            return super().queries(texts)
