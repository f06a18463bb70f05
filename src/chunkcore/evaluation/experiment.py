"""`run_experiment`: chunkers x retrievers x embedders to reports; `run_retriever`: any retriever to a `Run`.

`Meter` has the model calls and times of strategies and searches. Shared work counts in each.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, is_dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from chunkcore.chunkers.base import Chunker, get_chunker
from chunkcore.chunkers.llm import llms_of
from chunkcore.columns import BLOCK, Keys, NumberByText, blocks, text_keys
from chunkcore.concurrency import Progress
from chunkcore.errors import DataError, OptionError
from chunkcore.evaluation.benchmarks.benchmark import Benchmark, Query
from chunkcore.evaluation.measures import Depth, Measure, budget_of, measures_at, retrieval_measures
from chunkcore.evaluation.results import ChunkStatistics, Cost, Report, system_name
from chunkcore.evaluation.scoring import Scorer
from chunkcore.models.base import Embedder, TokenCountingEmbedder, Vectors
from chunkcore.models.cache import CachedEmbedder
from chunkcore.models.llm import Usage
from chunkcore.models.loading import DEFAULT_MODEL, EmbedderCounter, get_embedder
from chunkcore.retrieval import ChunkedCorpus, Index, RetrievalMethod, chunk_corpus, get_retriever
from chunkcore.retrieval.search import Mapper, Rows
from chunkcore.retrieval.vectors import StoredVectors, TextVectors
from chunkcore.run import Retrieved, Retriever, Run
from chunkcore.spans import Numbers
from chunkcore.tokens import TokenCounter

Chunkers = Sequence[Chunker | str] | Mapping[str, Chunker]
DEFAULT_DEPTHS: tuple[Depth, ...] = ("1000tok", 5, 10, "min")  # an equal budget first


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
    asked = list(queries.queries if isinstance(queries, Benchmark) else queries)
    texts = [query.text for query in asked]
    pool: Sequence[Retrieved] | None = None
    results: Sequence[Sequence[Retrieved]]
    if isinstance(retriever, Index):
        pool = retriever.corpus.retrieved
        results = retriever.answers(texts, k, max_tokens, sizes=sizes, counter=counter)
    else:
        limits = (k,) if max_tokens is None else (k, max_tokens)
        results = []
        for text in texts:
            pieces = retriever.retrieve(text, *limits)
            wrong = next((each for each in pieces if not isinstance(each, Retrieved)), None)
            if wrong is not None:
                raise DataError(
                    f"{type(retriever).__name__}.retrieve returned a {type(wrong).__name__}: "
                    "expected Retrieved pieces, such as Retrieved(document_id, (Span(0, 40),))"
                )
            results.append(pieces)
    found = {query.id: pieces for query, pieces in zip(asked, results, strict=True)}
    return Run(name or type(retriever).__name__, found, pool)


def run_experiment(
    benchmark: Benchmark | Scorer,
    chunkers: Chunkers | Callable[[Embedder], Chunkers],
    embedder: Embedder | str | Sequence[Embedder | str] = DEFAULT_MODEL,
    *,
    retrievers: Sequence[str | RetrievalMethod] = ("dense",),
    measures: Iterable[Measure | str] | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
    done: Callable[[Report], None] | None = None,
) -> list[Report]:
    """Score chunkers by searching their chunks, with one retrieval method or several.

    Every query searches all chunks of all documents. The distinct chunks of all strategies are embedded together,
    longest first, when first needed. A strategy that embeds uses the experiment's embedder if its own is the default or
    the same model; the counter "embedder" counts that model's tokens.

    A report's `seconds` and `cost` are those of its strategy and search as if alone, so shared work counts in each
    report. "chunk" is cutting, with the strategy's own embedding; "embed" is embedding the distinct chunks and the
    queries (a shared call is split by text length); "search" is the rest of indexing and searching, with reranking;
    "score" is scoring.

    Args:
        benchmark: documents and queries; or their `Scorer`, with its counter and rules.
        chunkers: strategies or their names, a mapping by report name, or a function of the embedder that makes them.
        embedder: of chunks and queries, or its name; a `CachedEmbedder` keeps its cache. With several, a report's name
            ends in " · " and the model's; combinations that embed nothing run once, without it.
        retrievers: for `get_retriever`, such as "dense", "bm25", "hybrid" or "hybrid+rerank". With several, a report's
            name ends in " · " and the retriever's.
        measures: by default `measures_at(DEFAULT_DEPTHS)`. MRR, MAP and nDCG without a depth use the deepest of the
            others.
        workers: threads that cut documents; by default one per core.
        progress: called with a step ("chunk", "embed", "queries", "search"), the count done, and the total.
        done: called with each finished report.

    Returns:
        One report per embedder, retriever and strategy; strategies vary fastest, then retrievers.

    Raises:
        OptionError: no strategy, retriever or embedder, a repeated name, or an option out of range.
        MissingExtraError: a retriever's package is not installed.
        ModelError: the embedder or a reranker failed twice.
    """
    methods = [get_retriever(each) for each in ([retrievers] if isinstance(retrievers, str) else retrievers)]
    _check_names([each.name for each in methods], "retriever")
    meters = _meters(embedder)
    for meter in meters.values():
        for method in methods:
            method.check(meter)
    wanted = list(retrieval_measures(measures_at(DEFAULT_DEPTHS) if measures is None else measures))
    tell = progress or (lambda step, done, total: None)
    scorer = benchmark if isinstance(benchmark, Scorer) else Scorer(benchmark)
    reports: list[Report] = []
    for number, (model, meter) in enumerate(meters.items()):
        strategies = _strategies(chunkers, meter)
        # Combinations without a model have the same result with the next one.
        pairs = [(how, each) for how in methods for each in strategies if not number or how.embeds or each.embeds]
        cuts = _cut_all({each.name: each.chunker for _, each in pairs}, scorer.benchmark, meter, workers, tell)
        vectors = MeteredVectors(meter, [each.corpus for each in cuts.values()], progress=tell)
        for place, (method, strategy) in enumerate(pairs, start=1):
            used = model if method.embeds or strategy.embeds else ""
            parts = (strategy.name, method.name if len(methods) > 1 else "", used if len(meters) > 1 else "")
            report = _report(system_name(*parts), cuts[strategy.name], method, vectors, scorer, wanted, meter)
            reports.append(replace(report, chunker=strategy.name, retriever=method.name, embedder=used))
            if done is not None:
                done(reports[-1])
            tell("search", place, len(pairs))
    return reports


@dataclass(frozen=True, eq=False)
class _Cut:
    chunker: Chunker
    corpus: ChunkedCorpus
    spent: WorkCost


def _cut_all(
    chunkers: Mapping[str, Chunker], benchmark: Benchmark, meter: Meter, workers: int | None, tell: Progress
) -> dict[str, _Cut]:
    documents = benchmark.documents
    total = len(chunkers) * len(documents)
    found: dict[str, _Cut] = {}

    def progress(done: int) -> None:
        tell("chunk", len(found) * len(documents) + done, total)

    for name, chunker in chunkers.items():
        progress(0)
        with meter.measured(chunker) as spent:
            corpus = chunk_corpus(documents, chunker, workers=workers, progress=progress)
        found[name] = _Cut(chunker, corpus, spent)
    progress(0)
    return found


def _report(
    name: str,
    made: _Cut,
    method: RetrievalMethod,
    vectors: MeteredVectors,
    scorer: Scorer,
    measures: Sequence[Measure],
    meter: Meter,
) -> Report:
    corpus, queries = made.corpus, scorer.benchmark.queries
    budget = max([0, *(budget_of(measure.k) or 0 for measure in measures)])
    sizes = scorer.token_counts(corpus.retrieved) if budget else None
    ks = {measure.k for measure in measures}
    depth = max([1, *(k for k in ks if isinstance(k, int))])
    if "min" in ks:
        depth = max(depth, int(scorer.depths(corpus.retrieved).max(initial=0)))
    with meter.measured() as spent:
        index = method.index(corpus, vectors)
        asked = [(depth, budget or None, measures)] if index.nested else _one_by_one(measures, depth)
        runs = [
            (run_retriever(index, queries, k, most, sizes=sizes, counter=scorer.counter, name=name), own)
            for k, most, own in asked
        ]
    texts = [query.text for query in queries]
    cost, seconds = meter.cost(made.spent, spent, corpus, texts, scorer.tokens.size)
    reports = [scorer.score(replace(run, seconds=seconds), own) for run, own in runs]
    report = reports[0] if len(reports) == 1 else reports[0].joined(reports[1:], measures)
    chunks = meter.statistics(spent, corpus, made.chunker, scorer.counter)
    return replace(report, chunks=chunks, cost=cost, search_recall=index.recall)


def _one_by_one(measures: Sequence[Measure], depth: int) -> list[tuple[int | None, int | None, Sequence[Measure]]]:
    """Each limit of the measures (k = "min": `depth`), and its measures; those without go with the deepest."""
    limits = dict.fromkeys(measure.k for measure in measures if measure.k is not None) or {1: None}
    deepest = max(limits, key=lambda k: (isinstance(k, int), k if isinstance(k, int) else budget_of(k) or 0))
    owned = {k: [each for each in measures if (deepest if each.k is None else each.k) == k] for k in limits}
    return [
        (k if isinstance(k, int) else None if budget_of(k) else depth, budget_of(k), own) for k, own in owned.items()
    ]


class _Strategy(NamedTuple):
    name: str
    chunker: Chunker
    embeds: bool


def _strategies(chunkers: Chunkers | Callable[[Embedder], Chunkers], meter: Meter) -> list[_Strategy]:
    given = chunkers(meter.embedder) if callable(chunkers) else chunkers
    named = (
        list(given.items()) if isinstance(given, Mapping) else [(each.label, each) for each in map(get_chunker, given)]
    )
    _check_names([name for name, _ in named], "strategy")
    shared = [with_run_embedder(chunker, meter) for _, chunker in named]
    return [_Strategy(name, mine, mine is not own) for (name, own), mine in zip(named, shared, strict=True)]


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
    given: Sequence[Embedder | str] = embedder if isinstance(embedder, list | tuple) else [embedder]  # type: ignore[list-item]
    names = [each if isinstance(each, str) else getattr(each, "name", "") for each in given]
    _check_names(names, "embedder")
    models = map(get_embedder, given)
    cached = (each if isinstance(each, CachedEmbedder) else CachedEmbedder(each) for each in models)
    return {name: Meter(each) for name, each in zip(names, cached, strict=True)}


def _check_names(names: Sequence[str], what: str) -> None:
    if not names:
        raise OptionError(f"there is no {what} to run: expected at least one")
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise OptionError(f"the {what} {repeated[0]} is given twice: give each once")


@dataclass(eq=False)
class WorkCost:
    """The cost of cutting, or of a search."""

    seconds: float = 0.0
    embedding: float = 0.0  # seconds of embedding a strategy's own texts
    waiting: float = 0.0  # seconds that a search waited for vectors
    elsewhere: float = 0.0  # of these, in which workers embedded chunks
    late: tuple[float, int] | None = None  # seconds and tokens of late chunking
    chunks: bool = False  # whether a search used the chunks' vectors
    queries: bool = False
    calls: int = 0  # batches of the strategy's distinct texts
    usage: Usage = field(default_factory=Usage)
    _texts: NumberByText = field(default_factory=lambda: NumberByText(np.bool_))

    @property
    def texts(self) -> Keys:
        """The keys of the distinct texts embedded by the strategy, ascending."""
        return self._texts.keys

    def add(self, keys: Keys) -> int:
        new = int(np.count_nonzero(~self._texts.of(keys)[1]))
        self._texts.add(keys, np.ones(len(keys), dtype=np.bool_))
        return new


class Meter(CachedEmbedder):
    """A cached embedder that measures the time and tokens of each text.

    A call's time is split over its new texts by length, so a text costs the same whether or not another strategy
    embedded it before. `embedder` lends its model and its cache, and keeps its own `progress`.

    >>> from types import SimpleNamespace
    >>> ones = lambda texts: np.ones((len(texts), 2), dtype=np.float32)
    >>> model = SimpleNamespace(name="m", fingerprint="m", max_tokens=None, embed_documents=ones, embed_queries=ones)
    >>> meter = Meter(CachedEmbedder(model))
    >>> meter.embed_documents(["a", "b"]).shape, meter.seconds_of(["a"]) == meter.seconds_of(["b"]) > 0
    ((2, 2), True)
    """

    def __init__(self, embedder: CachedEmbedder) -> None:
        self.plain = CachedEmbedder(
            embedder.embedder, embedder.cache, batch_size=embedder.batch_size, timeout=embedder.timeout
        )
        super().__init__(embedder.embedder, embedder.cache, batch_size=embedder.batch_size, timeout=embedder.timeout)
        self._seconds = NumberByText(np.float64)
        self._tokens = NumberByText(np.int64)
        self._spent = WorkCost()
        # One call at a time, so that waiting for another thread does not count as work.
        self._one_call = threading.RLock()

    def __reduce__(self) -> tuple[Any, ...]:
        return self.plain.__reduce__()  # other processes do not measure

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        return self._timed(super().embed_documents, texts)

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        return self._timed(super().embed_queries, texts)

    def _timed(self, embed: Callable[[Sequence[str]], Vectors], texts: Sequence[str]) -> Vectors:
        with self._one_call:
            began = time.perf_counter()
            vectors = embed(texts)
            seconds = time.perf_counter() - began
            keys, first = np.unique(text_keys(texts), return_index=True)
            lengths = np.array([len(texts[i]) for i in first.tolist()], dtype=np.float64)
            new = ~self._seconds.of(keys)[1]
            self._seconds.add(keys[new], seconds * lengths[new] / (lengths[new].sum() or 1))
            self.count(texts)
            self._spent.calls += self._batches(self._spent.add(keys))
            self._spent.embedding += time.perf_counter() - began
        return vectors

    @contextmanager
    def measured(self, chunker: Chunker | None = None) -> Iterator[WorkCost]:
        """Measure the block, in all threads; `chunker` is its strategy."""
        spent = self._spent = WorkCost()
        before = _usage(chunker)
        began = time.perf_counter()
        try:
            yield spent
        finally:
            spent.seconds = time.perf_counter() - began
            spent.usage = _usage(chunker) - before
            self._spent = WorkCost()

    @contextmanager
    def waiting(self) -> Iterator[WorkCost]:
        spent = self._spent
        began = time.perf_counter()
        try:
            yield spent
        finally:
            spent.waiting += time.perf_counter() - began

    def count(self, texts: Sequence[str], counts: NDArray[np.integer] | None = None) -> None:
        """Store the texts' lengths in the model's tokens, if known; `counts` comes from a worker."""
        if not isinstance(self, TokenCountingEmbedder):
            return
        keys = text_keys(texts)
        with self._one_call:
            if counts is None:
                unknown = np.flatnonzero(~self._tokens.of(keys)[1])
                if not len(unknown):
                    return
                firsts = np.sort(unknown[np.unique(keys[unknown], return_index=True)[1]])
                keys, counts = keys[firsts], self.count_tokens([texts[i] for i in firsts.tolist()])
            self._tokens.add(keys, counts)

    def token_counts(self, keys: Keys) -> NDArray[np.int64] | None:
        """The texts' lengths in the model's tokens, by key: int64; None if the model does not say."""
        return self._tokens.of(keys)[0] if isinstance(self, TokenCountingEmbedder) else None

    def tokens_read(self, keys: Keys) -> int | None:
        """The tokens that the model reads of distinct texts; None if it does not say."""
        counts = self.token_counts(keys)
        if counts is None or self.max_tokens is None:
            return None if counts is None else int(counts.sum())
        return int(np.minimum(counts, self.max_tokens).sum())

    def seconds_of(self, texts: Sequence[str] | Keys) -> float:
        keys = texts if isinstance(texts, np.ndarray) else text_keys(texts)
        return float(self._seconds.of(np.unique(keys))[0].sum())

    def _batches(self, texts: int) -> int:
        return -(-texts // self.batch_size)

    def cost(
        self, cutting: WorkCost, searching: WorkCost, corpus: ChunkedCorpus, queries: Sequence[str], source_tokens: int
    ) -> tuple[Cost, dict[str, float]]:
        """The cost of a strategy and a search, and the seconds of each step: "chunk", "embed", "search"."""
        own = _keys(corpus) if searching.chunks else text_keys([])
        asked = text_keys(queries if searching.queries else [])
        late_seconds, late_tokens = searching.late or (0.0, 0)
        documents = len(corpus.documents) if searching.late else 0
        texts = np.union1d(own, cutting.texts)
        tokens = self.tokens_read(texts)
        elsewhere = searching.elsewhere + late_seconds
        cost = Cost(
            source_tokens=source_tokens,
            embedder_calls=cutting.calls
            + self._batches(len(np.setdiff1d(own, cutting.texts, assume_unique=True)))
            + documents,
            embedded_texts=len(texts) + documents,
            embedded_tokens=None if tokens is None else tokens + late_tokens,
            query_texts=len(np.unique(asked)),
            query_tokens=self.tokens_read(np.unique(asked)),
            llm_calls=cutting.usage.calls,
            llm_kept_answers=cutting.usage.kept_answers,
            llm_input_tokens=cutting.usage.input_tokens,
            llm_output_tokens=cutting.usage.output_tokens,
            llm_cached_tokens=cutting.usage.cached_tokens,
            seconds=self.seconds_of(texts) + self.seconds_of(asked) + elsewhere,
        )
        return cost, {
            "chunk": max(cutting.seconds - cutting.embedding, 0.0) + self.seconds_of(cutting.texts),
            "embed": self.seconds_of(own) + elsewhere + self.seconds_of(asked),
            "search": max(searching.seconds - searching.waiting, 0.0),
        }

    def statistics(
        self, searching: WorkCost, corpus: ChunkedCorpus, chunker: Chunker, counter: TokenCounter
    ) -> ChunkStatistics:
        """The chunks' lengths in the counter's unit, and what the model truncates."""
        if chunker.token_counter == counter:
            lengths = corpus.token_counts
        else:
            lengths = np.concatenate([counter.count_many([chunk.text for chunk in some]) for some in blocks(corpus)])
        known = self.token_counts(_keys(corpus) if searching.chunks else text_keys([]))
        if known is None or self.max_tokens is None:
            return ChunkStatistics(lengths)
        over = known - self.max_tokens
        return ChunkStatistics(lengths, int((over > 0).sum()), int(np.maximum(over, 0).sum()))


def _keys(corpus: ChunkedCorpus) -> Keys:
    return np.unique(text_keys(corpus.embedded_texts))


def _usage(chunker: Chunker | None) -> Usage:
    return sum((getattr(llm, "usage", Usage()) for llm in (llms_of(chunker) if chunker else ())), Usage())


class MeteredVectors(TextVectors):
    """Vectors by a `Meter`, which records what a search uses."""

    def __init__(self, meter: Meter, corpora: Sequence[ChunkedCorpus], *, progress: Progress | None = None) -> None:
        super().__init__(meter, corpora, progress=progress)
        self._meter = meter
        self._late: tuple[float, int] | None = None

    @property
    def worker_embedder(self) -> CachedEmbedder:
        return self._meter.plain

    def chunks(self, corpus: ChunkedCorpus, *, cluster_only: bool = False) -> tuple[Rows, Numbers]:
        with self._meter.waiting() as spent:
            spent.chunks = True
            return super().chunks(corpus, cluster_only=cluster_only)

    def late(self, corpus: ChunkedCorpus) -> tuple[Rows, Numbers]:
        with self._meter.waiting() as spent:
            began = time.perf_counter()
            found = super().late(corpus)
            if self._late is None:
                seconds = time.perf_counter() - began
                self._late = seconds, sum(self.late_embedder.tokens_read(each.text) for each in corpus.documents)
            spent.late = self._late
        return found

    def queries(self, texts: Sequence[str]) -> Vectors:
        with self._meter.waiting() as spent:
            spent.queries = True
            return super().queries(texts)

    def stored(
        self, corpus: ChunkedCorpus, folder: Path | str, *, mapper: Mapper = map, size: int = BLOCK
    ) -> list[StoredVectors]:
        with self._meter.waiting() as spent:
            spent.chunks = True
            began = time.perf_counter()
            found = super().stored(corpus, folder, mapper=mapper, size=size)
            spent.elsewhere += time.perf_counter() - began
            for each in found:
                self._meter.count(corpus.embedded_texts[each.start : each.start + each.size], each.token_counts)
        return found
