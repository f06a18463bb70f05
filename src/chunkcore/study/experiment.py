"""`run_experiment`: systems to reports; `run_retriever`: any retriever to a `Run`."""

from __future__ import annotations

import math
from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, is_dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from chunkcore import guesses
from chunkcore.chunkers.base import Chunker, get_chunker
from chunkcore.chunkers.llm import llms_of
from chunkcore.columns import blocks
from chunkcore.concurrency import Progress, no_progress
from chunkcore.errors import DataError, OptionError, echo
from chunkcore.evaluation.benchmarks.benchmark import Benchmark, Query
from chunkcore.evaluation.measures import Depth, Measure, budget_of, measures_at, retrieval_measures
from chunkcore.evaluation.resampling import SHARES
from chunkcore.evaluation.results import STAGES, Report, System, system_name
from chunkcore.evaluation.scoring import Scorer
from chunkcore.models.base import Embedder, Vectors
from chunkcore.models.loading import (
    DEFAULT_MODEL,
    CachedEmbedder,
    EmbedderCounter,
    cached_embedder,
    get_embedder,
)
from chunkcore.options import suggesting
from chunkcore.retrieval import ChunkedCorpus, Index, RetrievalMethod, chunk_corpus, get_retriever
from chunkcore.retrieval.base import PassageIndex, check_limits
from chunkcore.run import Answers, Retrieved, Retriever, Run
from chunkcore.spans import Numbers, Scores
from chunkcore.study.behind import (
    HITS,
    Limit,
    PassagesBehind,
    Race,
    ask_each,
    curve_of,
    limits_of,
    recalls,
    score_limits,
)
from chunkcore.study.metering import Meter, MeteredVectors, Work
from chunkcore.text import Document
from chunkcore.tokens import TokenCounter, get_counter

_PIECES_A_CHUNK = 4  # about: for the forecast
Chunkers = Sequence[Chunker | str] | Mapping[str, Chunker] | Chunker | str


@suggesting
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

    An `Index` answers all queries at once, or one after another if that fails; its run has a pool, for k = "min" and
    PrecisionOmega. With `max_tokens`, every query gets at least that many tokens and `k` chunks of an index
    ("Recall@4096tok" needs it), and at most both of an index that makes passages. Any other retriever is asked with
    both. If a question has a filter (`Query.where`), one question is asked after another, and a question's filter goes
    to ``retrieve(..., where=)``.

    Args:
        retriever: an `Index`, or any object with ``retrieve(query, k)``.
        k: pieces per query; None for no limit.
        max_tokens: tokens per query; None for no limit.
        sizes: the tokens of each chunk of an index; by default its chunker's counts.
        counter: of `max_tokens`, for an index that makes passages; by default its own.
        name: the run's; by default the retriever's class.

    Raises:
        OptionError: `k` or `max_tokens` is under 1 or no whole number, or this is no retriever.
        DataError: every question got something other than `Retrieved`.
        Exception: whatever the retriever raised, if no question was answered.

    Warns:
        UserWarning: some questions failed. They count as unanswered; `Run.failures` says why.

    >>> from chunkcore.datasets import load_dataset
    >>> class Nothing:
    ...     def retrieve(self, query, k):
    ...         return []
    >>> len(run_retriever(Nothing(), load_dataset("lochmere"), 5).results)
    90
    """
    if isinstance(retriever, str):
        get_retriever(retriever).retrieve("")  # raises: a method has no documents
    if isinstance(retriever, Benchmark):
        raise OptionError(guesses.SWAPPED["run_retriever"])
    if not isinstance(retriever, Retriever):
        raise OptionError(guesses.NO_RETRIEVER.format(type(retriever).__name__))
    if isinstance(queries, Benchmark):
        queries = queries.queries
    questions = list(queries)
    check_limits(k, max_tokens)
    name = name or type(retriever).__name__
    has_filters = any(query.where is not None for query in questions)
    if has_filters or not isinstance(retriever, Index):
        limits = [k]
        if max_tokens is not None:
            limits.append(max_tokens)

        def ask(query: Query) -> Sequence[Retrieved]:
            filters: dict[str, Any] = {}
            if query.where is not None:
                filters["where"] = query.where
            answer = retriever.retrieve(query.text, *limits, **filters)
            for piece in answer:
                if not isinstance(piece, Retrieved):
                    kind = type(piece).__name__
                    method = f"{type(retriever).__name__}.retrieve"
                    raise DataError(f"{method} returned a {kind}, no Retrieved")
            return answer

        return ask_each(questions, ask, name)
    index = retriever
    if counter is not None:
        counter = get_counter(counter)

    def answers_of(some: Sequence[Query]) -> Sequence[Sequence[Retrieved]]:
        texts = [query.text for query in some]
        return index.answers(texts, k, max_tokens, sizes=sizes, counter=counter)

    try:
        answers = answers_of(questions)
    except Exception:  # noqa: BLE001 - one question may have failed: which one?
        run = ask_each(questions, lambda query: answers_of([query])[0], name)
        return replace(run, pool=index.corpus.retrieved)
    ids = [query.id for query in questions]
    return Run(name, Answers.of(ids, answers), index.corpus.retrieved)


@suggesting
def run_experiment(
    benchmark: Benchmark | Scorer,
    chunkers: Chunkers,
    embedder: Embedder | str | Sequence[Embedder | str] = DEFAULT_MODEL,
    *,
    retrievers: Sequence[str | RetrievalMethod] = ("dense",),
    behind: str = "",
    measures: Iterable[Measure | str] | Measure | str | None = None,
    curved: bool = False,
    race: Race | None = None,
    progress: Progress | None = None,
    done: Callable[[Report], None] | None = None,
) -> list[Report]:
    """Score systems: one report per embedder, retriever and chunker, which goes fastest.

    Every query searches all chunks of all documents. Distinct chunks are embedded together, longest first, when first
    needed. A chunker that embeds uses the experiment's embedder if its own is the default or the same model. A report's
    `seconds` ("chunk", "embed", "search", "score") and `cost` are those of its system as if alone.

    Args:
        benchmark: documents and queries; or their `Scorer`, with its counter and rules.
        chunkers: a chunker or several, or their specs, or a mapping by report name.
        embedder: of chunks and queries, or its name; a `CachedEmbedder` keeps its cache. With several, a report's name
            ends in " · " and the model's; combinations that embed nothing run once, without it.
        retrievers: for `get_retriever`, such as "dense", "bm25" or "hybrid+rerank". With several, a report's name ends
            in " · " and the retriever's.
        behind: what stands behind each retriever: "" for nothing, "hits" for passages of the hits' own text, "whole"
            for passages of the hits' documents. Retrievers that make passages have nothing behind them.
        measures: by default `measures_at()`. MRR, MAP and nDCG without a depth use the deepest of the others.
        curved: whether systems that were asked everything are asked for other budgets, too, for `Report.curve`;
            seconds are without that.
        race: systems that are surely behind are not asked all questions.
        progress: called with a step ("chunk", "embed", "queries", "search"), the count done, and the total.
        done: called with each finished report.

    Raises:
        OptionError: no chunker, retriever, embedder or measure, a repeated name, or an option out of range.
        MissingExtraError: a retriever's package is not installed.
        ModelError: the embedder or a reranker failed twice.
    """
    if isinstance(retrievers, str):
        retrievers = [retrievers]
    methods = _by_name(map(get_retriever, retrievers), lambda method: method.name, "retriever")
    if behind not in STAGES:
        expected = ", ".join(map(repr, STAGES))
        raise OptionError(f"behind is one of {expected}; got {echo(behind)}")
    if behind and all(method.makes_passages for method in methods.values()):
        raise OptionError(
            "nothing stands behind retrievers that make passages: leave out behind, or give another retriever"
        )
    if isinstance(embedder, str) or not isinstance(embedder, Sequence):
        embedder = [embedder]
    models = _by_name(embedder, _model_name, "embedder")
    meters = {name: Meter(cached_embedder(model)) for name, model in models.items()}
    for meter, method in product(meters.values(), methods.values()):
        method.check(meter)
    scored = retrieval_measures(measures_at() if measures is None else measures)
    scorer = benchmark if isinstance(benchmark, Scorer) else Scorer(benchmark)
    plain = _chunkers(chunkers)
    reports: list[Report] = []
    for number, (model, meter) in enumerate(meters.items()):
        bench = _Bench(scorer, list(scored), meter, methods, plain, progress or no_progress)
        systems = list(bench.systems(model, behind))
        if number:  # a system without a model has the same result with the next one
            systems = [system for system in systems if system.embedder]
        bench.cut(systems)
        for place, system in enumerate(systems, start=1):
            parts = [system.chunker]
            if len(methods) > 1:
                parts.append(system.retriever)
            if len(meters) > 1:
                parts.append(system.embedder)
            name = system_name(*parts, system.stage)
            report = bench.report(system, name, race, curved=curved)
            reports.append(report)
            if done is not None:
                done(report)
            bench.progress("search", place, len(systems))
    return reports


_Named = TypeVar("_Named")
_Key = TypeVar("_Key")


def _by_name(
    values: Iterable[_Named], name_of: Callable[[_Named], str], noun: str
) -> dict[str, _Named]:
    named: dict[str, _Named] = {}
    for value in values:
        name = name_of(value)
        if name in named:
            raise OptionError(f"the {noun} {name} is given twice: give each once")
        named[name] = value
    if not named:
        raise OptionError(f"there is no {noun} to run: expected at least one")
    return named


def _model_name(model: Embedder | str) -> str:
    return model if isinstance(model, str) else getattr(model, "name", "")


def _chunkers(chunkers: Chunkers) -> dict[str, Chunker]:
    if isinstance(chunkers, Mapping) and chunkers:
        return {name: get_chunker(chunker) for name, chunker in chunkers.items()}
    if isinstance(chunkers, str | Chunker):
        chunkers = [chunkers]
    return _by_name(map(get_chunker, chunkers), lambda chunker: chunker.label, "chunker")


@dataclass(frozen=True, slots=True)
class _Cut:
    corpus: ChunkedCorpus
    work: Work


@dataclass
class _Bench:
    """What the systems of one embedder share: chunks, vectors, and the words behind retrievers."""

    scorer: Scorer
    measures: Sequence[Measure]
    meter: Meter
    methods: Mapping[str, RetrievalMethod]
    plain: Mapping[str, Chunker]
    progress: Progress
    _hits: tuple[Index, Run] | None = None  # of all queries, for passages behind them

    def __post_init__(self) -> None:
        self.queries = self.scorer.benchmark.queries
        self.chunkers: dict[str, Chunker] = {}
        self.embedding: list[str] = []
        for name, chunker in self.plain.items():
            self.chunkers[name] = with_run_embedder(chunker, self.meter)
            if self.chunkers[name] is not chunker:
                self.embedding.append(name)

    def systems(self, model: str, behind: str) -> Iterator[System]:
        for method, chunker in product(self.methods.values(), self.chunkers):
            if not (behind and method.makes_passages):
                embeds = method.embeds or chunker in self.embedding
                yield System(chunker, method.name, model if embeds else "", behind)

    def cut(self, systems: Sequence[System]) -> None:
        """Cut the documents by the chunkers of these systems, and check that all chunks can be indexed."""
        documents = self.scorer.benchmark.documents
        names = dict.fromkeys(system.chunker for system in systems)
        total = len(names) * len(documents)
        self._cuts: dict[str, _Cut] = {}

        def cut_so_far(done: int) -> None:
            self.progress("chunk", len(self._cuts) * len(documents) + done, total)

        cut_so_far(0)
        corpora: list[ChunkedCorpus] = []
        texts = [query.text for query in self.queries]
        self._vectors = MeteredVectors(self.meter, corpora, texts, progress=self.progress)
        # Those that embed come last: how many texts are embedded in all is known then, nearly.
        embedding = [name for name in names if name in self.embedding]
        for name in sorted(names, key=embedding.__contains__):
            if name in embedding[:1]:
                self._embed_pieces([self.chunkers[other] for other in embedding], corpora)
            chunker = self.chunkers[name]
            with self.meter.measured(chunker) as work:
                corpora.append(chunk_corpus(documents, chunker, progress=cut_so_far))
            self._cuts[name] = _Cut(corpora[-1], work)
            cut_so_far(0)
        for system in systems:
            self.methods[system.retriever].check_chunks(self._cuts[system.chunker].corpus)

    def _embed_pieces(self, chunkers: Sequence[Chunker], corpora: Sequence[ChunkedCorpus]) -> None:
        """Embed what chunkers will embed, of all documents together; `corpora` are embedded later, and their chunks."""
        documents = self.scorer.benchmark.documents
        pieces: list[str] = []
        for chunker in chunkers:
            if not llms_of(chunker):
                pieces += embedded_first(chunker, documents, self.meter)
        later = 0
        if any(method.embeds for method in self.methods.values()):
            later = sum(map(len, corpora)) + len(pieces) // _PIECES_A_CHUNK
        if pieces:
            self._vectors.embed_ahead(pieces, later)

    def report(
        self, system: System, name: str, race: Race | None, *, curved: bool = False
    ) -> Report:
        """Index the system's chunks, ask the questions, and score the answers."""
        cut = self._cuts[system.chunker]
        corpus = cut.corpus
        parts: Sequence[Sequence[Query]] = [self.queries]
        if race is not None and not system.behind:
            parts = race.parts(name, system.chunker, system.retriever)
        asked: list[Query] = []
        answers: list[list[Run]] = []
        with self.meter.measured() as work:
            index = self.methods[system.retriever].index(corpus, self._vectors)
            limits = self._limits(index, system, self.measures)
            for part in parts:
                asked += part
                answers.append(self._runs(index, system, limits, name, part))
                runs = [_joined(some) for some in zip(*answers, strict=True)]
                if len(asked) == len(self.queries) or race is None:
                    continue
                if race.is_behind(_asked_alone(self._scored(runs, limits), asked)):
                    break
        texts = [query.text for query in self.queries]
        cost, seconds = self.meter.cost(cut.work, work, corpus, texts, self.scorer.tokens.size)
        lengths = _lengths(corpus, self.scorer.counter)
        report = replace(
            self._scored([replace(run, seconds=seconds) for run in runs], limits),
            chunks=self.meter.statistics(work, corpus, lengths),
            cost=cost,
            system=system,
        )
        if len(asked) < len(self.queries):
            return _asked_alone(report, asked)
        if race is not None:
            race.add(report)
        if not curved:
            return report
        known = {}
        for limit, run in zip(limits, runs, strict=True):
            if limit.k is None:
                known[limit.max_tokens] = run
        return replace(report, curve=self._curve(index, system, known))

    def _scored(self, runs: Sequence[Run], limits: Sequence[Limit]) -> Report:
        within = {measure for limit in limits for measure in limit.measures}
        scored = [measure for measure in self.measures if measure in within]
        return score_limits(self.scorer, runs, limits, scored)

    def _curve(
        self, index: Index, system: System, known: Mapping[int | None, Run]
    ) -> dict[int, Scores]:
        """`Report.curve`, up to where the largest of `SHARES` is found. `known`: passages by their budget."""
        curve: dict[int, Scores] = {}
        # Passages are asked for each budget anew; chunks once for all.
        for limit in self._limits(index, system, recalls(self.scorer)):
            run = known.get(limit.max_tokens)
            if run is None:
                (run,) = self._runs(index, system, [limit], system.name, self.queries)
            curve |= curve_of(score_limits(self.scorer, [run], [limit], limit.measures))
            if any(np.nanmean(shares) >= SHARES[-1] for shares in curve.values()):
                break
        return curve

    def _limits(self, index: Index, system: System, measures: Sequence[Measure]) -> list[Limit]:
        depths = {measure.k for measure in measures}
        depth = max((k for k in depths if isinstance(k, int)), default=1)
        if system.behind:
            return limits_of([measure for measure in measures if not measure.needs_pool], depth)
        if "min" in depths:
            most = self.scorer.depths(index.corpus.retrieved).max(initial=0)
            depth = max(depth, int(most))
        if not index.nested:
            return limits_of(measures, depth)
        budgets = filter(None, map(budget_of, depths))
        return [Limit(depth, max(budgets, default=None), measures)]

    def _runs(
        self,
        index: Index,
        system: System,
        limits: Sequence[Limit],
        name: str,
        queries: Sequence[Query],
    ) -> list[Run]:
        counter = self.scorer.counter
        if system.behind:
            if self._hits is None or self._hits[0] is not index:
                self._hits = index, run_retriever(index, queries, HITS)
            return self._behind.runs(self._hits[1], limits, system.behind, name)
        sizes = None
        if any(limit.max_tokens for limit in limits):
            sizes = self.scorer.token_counts(index.corpus.retrieved)
        at_once = len(queries) or 1
        if isinstance(index, PassageIndex):
            at_once = index.questions_kept or at_once
        pairs = [(limit.k, limit.max_tokens) for limit in limits]
        answered: dict[tuple[int | None, int | None], list[Run]] = {pair: [] for pair in pairs}
        for some in blocks(queries, at_once):
            for (k, max_tokens), runs in answered.items():
                run = run_retriever(
                    index, some, k, max_tokens, sizes=sizes, counter=counter, name=name
                )
                runs.append(run)
        return [_joined(answered[pair]) for pair in pairs]

    @cached_property
    def _behind(self) -> PassagesBehind:
        return PassagesBehind(self.scorer)


def _joined(runs: Sequence[Run]) -> Run:
    """One run of the same retriever's answers to several lists of questions."""
    if len(runs) == 1:
        return runs[0]
    results = ChainMap(*[dict(run.results) for run in runs])
    failures = dict(ChainMap(*[dict(run.failures) for run in runs]))
    return replace(runs[0], results=results, failures=failures)


def _asked_alone(report: Report, asked: Sequence[Query]) -> Report:
    """The report of a system that was asked these questions alone: without scores for the others, or seconds."""
    ids = {query.id for query in asked}
    is_asked = np.array([name in ids for name in report.query_ids], dtype=np.bool_)

    def alone(columns: Mapping[_Key, Scores]) -> dict[_Key, Scores]:
        return {key: np.where(is_asked, column, math.nan) for key, column in columns.items()}

    found: dict[Depth, tuple[tuple[float, ...], ...]] = {}
    for k, rows in report.found.items():
        pairs = zip(report.query_ids, rows, strict=True)
        found[k] = tuple(row if name in ids else (math.nan,) * len(row) for name, row in pairs)
    return replace(
        report,
        scores=alone(report.scores),
        retrieved_tokens=alone(report.retrieved_tokens),
        found=found,
        unanswered=tuple(name for name in report.unanswered if name in ids),
        seconds={step: value for step, value in report.seconds.items() if step != "search"},
        bounds={},
        asked=len(ids),
    )


def _lengths(corpus: ChunkedCorpus, counter: TokenCounter) -> Numbers:
    if corpus.chunker is not None and corpus.chunker.token_counter == counter:
        return corpus.token_counts
    counts = [counter.count_many([chunk.text for chunk in some]) for some in blocks(corpus)]
    return np.concatenate(counts)


def with_run_embedder(chunker: Chunker, embedder: CachedEmbedder) -> Chunker:
    """The chunker with this embedder (and its token counter) in place of the default or of the same model.

    Wrapped chunkers and overlaps change too. A chunker that does not embed is returned unchanged.
    """
    changes: dict[str, object] = {}
    for name in chunker.option_names():
        value = getattr(chunker, name)
        if isinstance(value, Chunker):
            shared = with_run_embedder(value, embedder)
            if shared is not value:
                changes[name] = shared
        elif name == "embedder":
            default = value == type(chunker).embedder  # type: ignore[attr-defined]
            if default or get_embedder(value).fingerprint == embedder.fingerprint:
                changes[name] = embedder
        elif is_dataclass(value) and getattr(value, "embedder", None) == DEFAULT_MODEL:
            changes[name] = replace(value, embedder=embedder)  # type: ignore[type-var]
    if chunker.token_counter == EmbedderCounter():
        changes["counter"] = EmbedderCounter(embedder)
    if not changes:
        return chunker
    return replace(chunker, **changes)  # type: ignore[arg-type]


class _NotedError(BaseException):
    """Ends a chunker that embeds: its texts are noted. No `Exception`, as a model's are tried again."""


class _Noting(CachedEmbedder):
    """In place of a model: notes what is embedded, and ends who embeds it."""

    def __init__(self, embedder: CachedEmbedder) -> None:
        super().__init__(embedder.model, embedder.cache)
        self.texts: list[str] = []

    def _embed(self, texts: Sequence[str], *, queries: bool) -> Vectors:
        self.texts += texts
        raise _NotedError


def embedded_first(
    chunker: Chunker, documents: Iterable[Document], embedder: CachedEmbedder
) -> list[str]:
    """The texts that a chunker embeds first of each document, by which it cuts; nothing is embedded."""
    noting = _Noting(embedder)
    alike = with_run_embedder(chunker, noting)
    for document in documents:
        with suppress(_NotedError):
            alike.chunk(document)
    return noting.texts
