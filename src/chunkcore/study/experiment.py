"""`run_experiment`: systems to reports; `run_retriever`: any retriever to a `Run`; what each system costs."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, is_dataclass, replace
from functools import partial
from itertools import product
from operator import attrgetter
from time import perf_counter
from typing import Any, TypeVar

import numpy as np

from chunkcore import guesses
from chunkcore.chunkers.base import Chunker, get_chunker
from chunkcore.chunkers.llm import llms_of
from chunkcore.columns import blocks
from chunkcore.concurrency import Progress, no_progress
from chunkcore.errors import DataError, ModelError, OptionError, echo
from chunkcore.evaluation.benchmarks import Benchmark, Query
from chunkcore.evaluation.measures import Measure, Measures, retrieval_measures
from chunkcore.evaluation.resampling import SHARES
from chunkcore.evaluation.results import (
    STAGES,
    ChunkStatistics,
    Cost,
    Report,
    System,
    system_name,
)
from chunkcore.evaluation.scoring import Scorer
from chunkcore.models.base import Embedder, Vectors, counts_tokens
from chunkcore.models.llm import Usage
from chunkcore.models.loading import (
    DEFAULT_MODEL,
    CachedEmbedder,
    EmbedderCounter,
    cached_embedder,
    get_embedder,
)
from chunkcore.options import suggesting
from chunkcore.plain import text_key
from chunkcore.retrieval import ChunkedCorpus, Index, RetrievalMethod, chunk_corpus, get_retriever
from chunkcore.retrieval.base import PassageIndex, check_limits
from chunkcore.retrieval.vectors import Rows, TextVectors
from chunkcore.run import Answers, Retrieved, Retriever, Run
from chunkcore.spans import Numbers, Scores
from chunkcore.study.behind import (
    HITS,
    Ask,
    Limits,
    PassagesBehind,
    Race,
    Runs,
    ask_each,
    curve_of,
    limits_of,
    recalls,
    score_limits,
)
from chunkcore.text import Document
from chunkcore.tokens import TokenCounter, get_counter

_PIECES_A_CHUNK = 4  # about: for the forecast
Chunkers = Sequence[Chunker | str] | Mapping[str, Chunker] | Chunker | str
_Named = TypeVar("_Named")


@suggesting
def run_retriever(
    retriever: Retriever,
    queries: Benchmark | Iterable[Query],
    k: int | None = 10,
    max_tokens: int | None = None,
    *,
    counter: TokenCounter | str | None = None,
    name: str = "",
) -> Run:
    """Ask a retriever every query.

    An `Index` answers all queries at once, or one after another if that fails, or if a question has a filter
    (`Query.where`); its run has a pool, for k = "min" and PrecisionOmega. With `max_tokens`, every query gets at least
    that many tokens and `k` chunks of an index ("Recall@4096tok" needs it), and at most both of an index that makes
    passages. Any other retriever is asked with both; a question's filter goes to its ``retrieve(..., where=)``.

    Args:
        retriever: an `Index`, or any object with ``retrieve(query, k)``.
        k: pieces per query; None for no limit.
        max_tokens: tokens per query; None for no limit.
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
    kind = type(retriever).__name__
    if not isinstance(retriever, Retriever):
        raise OptionError(guesses.NO_RETRIEVER.format(kind))
    if isinstance(queries, Benchmark):
        queries = queries.queries
    questions = list(queries)
    check_limits(k, max_tokens)
    name = name or kind
    if isinstance(retriever, Index):
        counts = None if counter is None else get_counter(counter)
        return run_index(retriever, questions, k, max_tokens, name=name, counter=counts)
    limits = [k] if max_tokens is None else [k, max_tokens]

    def ask(query: Query) -> Sequence[Retrieved]:
        filters: dict[str, Any] = {} if query.where is None else {"where": query.where}
        answer = retriever.retrieve(query.text, *limits, **filters)
        for piece in answer:
            if not isinstance(piece, Retrieved):
                other = type(piece).__name__
                raise DataError(f"{kind}.retrieve returned a {other}, no Retrieved")
        return answer

    return ask_each(questions, ask, name)


def run_index(
    index: Index,
    questions: Sequence[Query],
    k: int | None,
    max_tokens: int | None,
    *,
    name: str,
    counter: TokenCounter | None,
    sizes: Numbers | None = None,
) -> Run:
    """All questions at once, or one after another if that fails or one has a filter; `sizes` are of all chunks."""
    pool, limits = index.corpus.retrieved, (k, max_tokens)

    def ask(query: Query) -> Sequence[Retrieved]:
        part, tokens = index, sizes
        if query.where is not None:
            part = index.within(query.where)
            tokens = None if sizes is None else sizes[part.corpus.places]
        return part.answers([query.text], *limits, sizes=tokens, counter=counter)[0]

    if all(query.where is None for query in questions):
        with suppress(Exception):  # one question may have failed: which one?
            texts = [query.text for query in questions]
            answers = index.answers(texts, *limits, sizes=sizes, counter=counter)
            return Run(name, Answers.of([query.id for query in questions], answers), pool)
    return replace(ask_each(questions, ask, name), pool=pool)


@suggesting
def run_experiment(
    benchmark: Benchmark | Scorer,
    chunkers: Chunkers,
    embedder: Embedder | str | Sequence[Embedder | str] = DEFAULT_MODEL,
    *,
    retrievers: Sequence[str | RetrievalMethod] = ("dense",),
    behind: str = "",
    measures: Measures = None,
    curved: bool = False,
    race: Race | None = None,
    choose: Callable[[Sequence[Report]], Report | None] = lambda reports: None,
    progress: Progress | None = None,
    done: Callable[[Report], None] = lambda report: None,
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
        choose: called with all reports; the system of the one that it returns is scored with passages behind it, too.
        progress: called with a step ("chunk", "embed", "queries", "search"), the count done, and the total.
        done: called with each finished report.

    Raises:
        OptionError: no chunker, retriever, embedder or measure, a repeated name, or an option out of range.
        MissingExtraError: a retriever's package is not installed.
        ModelError: the embedder or a reranker failed twice.
    """
    methods = _methods(retrievers, behind)
    meters = _meters(embedder)
    for meter, method in product(meters.values(), methods.values()):
        method.check(meter)
    scored = retrieval_measures(measures)
    scorer = benchmark if isinstance(benchmark, Scorer) else Scorer(benchmark)
    plain = _chunkers(chunkers)
    progress = progress or no_progress
    reports: list[Report] = []
    benches: dict[str, _Bench] = {}
    counts = {"retriever": len(methods), "embedder": len(meters)}
    # Names leave out what all systems have alike.
    unnamed = {part: "" for part, count in counts.items() if count == 1}
    for model, meter in meters.items():
        bench = _Bench(scorer, scored, meter, methods, plain, progress, race, curved)
        benches[model] = bench
        benches.setdefault("", bench)  # of systems without a model, which are cut and asked once
        systems = bench.systems(model, behind)
        if reports:  # a system without a model has the same result with the next one
            systems = [system for system in systems if system.embedder]
        bench.cut(systems)
        for place, system in enumerate(systems, start=1):
            reports.append(bench.report(system, replace(system, **unnamed).name))
            done(reports[-1])
            progress("search", place, len(systems))
    chosen = choose(reports)
    if chosen is not None:
        system = replace(chosen.system, behind="hits")
        name = system_name(chosen.name, system.stage)
        reports.append(benches[system.embedder].report(system, name))
        done(reports[-1])
    return reports


def _meters(embedder: Embedder | str | Sequence[Embedder | str]) -> dict[str, Meter]:
    """The models by name, measured."""
    if isinstance(embedder, str) or not isinstance(embedder, Sequence):
        embedder = [embedder]
    models = _by_name(embedder, "embedder", lambda model: str(getattr(model, "name", model)))
    return {name: Meter(cached_embedder(model)) for name, model in models.items()}


def _methods(
    retrievers: Sequence[str | RetrievalMethod], behind: str
) -> dict[str, RetrievalMethod]:
    """The methods by name. Raises `OptionError`: that cannot stand behind them."""
    if isinstance(retrievers, str):
        retrievers = [retrievers]
    methods = _by_name(map(get_retriever, retrievers), "retriever", attrgetter("name"))
    if behind not in STAGES:
        expected = ", ".join(map(repr, STAGES))
        raise OptionError(f"behind is one of {expected}; got {echo(behind)}")
    if behind and all(method.makes_passages for method in methods.values()):
        raise OptionError(
            "nothing stands behind retrievers that make passages: leave out behind, or give another retriever"
        )
    return methods


def _by_name(
    values: Iterable[_Named], noun: str, name_of: Callable[[_Named], str]
) -> dict[str, _Named]:
    named = {}
    for value in values:
        name = name_of(value)
        if name in named:
            raise OptionError(f"the {noun} {name} is given twice: give each once")
        named[name] = value
    if not named:
        raise OptionError(f"there is no {noun} to run: expected at least one")
    return named


def _chunkers(chunkers: Chunkers) -> dict[str, Chunker]:
    if isinstance(chunkers, Mapping) and chunkers:
        return {name: get_chunker(chunker) for name, chunker in chunkers.items()}
    if isinstance(chunkers, str | Chunker):
        chunkers = [chunkers]
    return _by_name(map(get_chunker, chunkers), "chunker", attrgetter("label"))


@dataclass
class _Bench:
    """What the systems of one embedder share: chunks, vectors, and the words behind retrievers."""

    scorer: Scorer
    measures: Sequence[Measure]
    meter: Meter
    methods: Mapping[str, RetrievalMethod]
    plain: Mapping[str, Chunker]
    progress: Progress
    race: Race | None
    curved: bool

    def __post_init__(self) -> None:
        self.queries = self.scorer.benchmark.queries
        self.documents = self.scorer.benchmark.documents
        self.chunkers = {
            name: with_run_embedder(chunker, self.meter) for name, chunker in self.plain.items()
        }
        self.embedding = [
            name for name in self.plain if self.chunkers[name] is not self.plain[name]
        ]
        self._cuts: dict[str, tuple[ChunkedCorpus, Work]] = {}
        self._corpora: list[ChunkedCorpus] = []
        self._vectors = MeteredVectors(self.meter, self._corpora, progress=self.progress)
        self._behind = PassagesBehind(self.scorer)

    def systems(self, model: str, behind: str) -> list[System]:
        systems = []
        for method, chunker in product(self.methods.values(), self.chunkers):
            if not (behind and method.makes_passages):
                embedder = ""
                if method.embeds or chunker in self.embedding:
                    embedder = model
                systems.append(System(chunker, method.name, embedder, behind))
        return systems

    def cut(self, systems: Sequence[System]) -> None:
        """Cut the documents by the chunkers of these systems, and check that all chunks can be indexed."""
        names = dict.fromkeys(system.chunker for system in systems)
        size = len(self.documents)

        def cut_so_far(done: int) -> None:
            self.progress("chunk", len(self._cuts) * size + done, len(names) * size)

        cut_so_far(0)
        # Those that embed come last: how many texts are embedded in all is known then, nearly.
        embedding = [name for name in names if name in self.embedding]
        for name in sorted(names, key=embedding.__contains__):
            if name in embedding[:1]:
                self._embed_pieces([self.chunkers[other] for other in embedding])
            chunker = self.chunkers[name]
            before = _usage(chunker)
            with self.meter.measured() as work:
                corpus = chunk_corpus(self.documents, chunker, progress=cut_so_far)
            work.usage = _usage(chunker) - before
            self._corpora.append(corpus)
            self._cuts[name] = corpus, work
            cut_so_far(0)
        for system in systems:
            self.methods[system.retriever].check_chunks(self._cuts[system.chunker][0])

    def _embed_pieces(self, chunkers: Sequence[Chunker]) -> None:
        """Embed what chunkers will embed, of all documents together, before the chunks."""
        pieces = []
        for chunker in chunkers:
            if not llms_of(chunker):
                pieces += embedded_first(chunker, self.documents, self.meter)
        later = 0
        if any(method.embeds for method in self.methods.values()):
            later = sum(map(len, self._corpora)) + len(pieces) // _PIECES_A_CHUNK
        if pieces:
            self._vectors.embed_ahead(pieces, later)

    def report(self, system: System, name: str) -> Report:
        """Index the system's chunks, ask the questions, and score the answers."""
        corpus, cutting = self._cuts[system.chunker]
        method = self.methods[system.retriever]
        with self.meter.measured() as work:
            index = method.index(corpus, self._vectors)
            if method.embeds:
                # All at once, also for a part of them; one of them may fail alone.
                with self.meter.waiting(), suppress(ModelError):
                    self._vectors.queries([query.text for query in self.queries])
            limits = self._limits(index, system, self.measures)
            ask = self._asked(index, system, name)
            runs, asked = self._answers(ask, index, limits, system, name)
        cost, seconds = self.meter.cost(cutting, work, corpus, self.queries)
        if asked:
            seconds.pop("search", None)
        report = score_limits(self.scorer, runs, limits, self.measures, asked)
        report = replace(
            report,
            chunks=self.meter.statistics(work, corpus, _lengths(corpus, self.scorer.counter)),
            cost=replace(cost, source_tokens=self.scorer.tokens.size),
            seconds={**seconds, **report.seconds},
            system=system,
        )
        if asked:
            return report
        if self.race:
            self.race.add(report)
        if self.curved:
            report = replace(report, curve=self._curve(ask, index, system, runs))
        return report

    def _asked(self, index: Index, system: System, name: str) -> Ask:
        """How a system is asked: a run for each limit."""
        if system.behind:
            hits = run_retriever(index, self.queries, HITS)
            return lambda limits, _: self._behind.runs(hits, limits, system.behind, name)
        sizes = self.scorer.token_counts(index.corpus.retrieved)
        run = partial(run_index, index, name=name, counter=self.scorer.counter, sizes=sizes)
        return lambda limits, queries: {limit: run(queries, *limit) for limit in limits}

    def _answers(
        self, ask: Ask, index: Index, limits: Limits, system: System, name: str
    ) -> tuple[Runs, set[str] | None]:
        """A run for each limit, and the ids of the questions that were asked; None for all."""
        race, parts = self.race, [self.queries]
        if race and not system.behind:
            parts = race.parts(name, system.chunker, system.retriever)
        at_once = len(self.queries) or 1
        if isinstance(index, PassageIndex):
            at_once = index.questions_kept or at_once
        runs: Runs = {}
        asked: set[str] = set()
        for part in parts:
            asked |= {query.id for query in part}
            for some in blocks(part, at_once):
                runs = _joined(runs, ask(limits, some))
            if race and part is not parts[-1]:
                so_far = score_limits(self.scorer, runs, limits, self.measures, asked)
                if race.is_behind(so_far):
                    return runs, asked
        return runs, None

    def _curve(self, ask: Ask, index: Index, system: System, known: Runs) -> dict[int, Scores]:
        """`Report.curve`, up to where the largest of `SHARES` is found."""
        curve: dict[int, Scores] = {}
        # Passages are asked for each budget anew; chunks once for all.
        for limit, measures in self._limits(index, system, recalls(self.scorer)).items():
            runs = known if limit in known else ask([limit], self.queries)
            curve |= curve_of(self.scorer.score(runs[limit], measures))
            if any(np.nanmean(shares) >= SHARES[-1] for shares in curve.values()):
                break
        return curve

    def _limits(self, index: Index, system: System, measures: Sequence[Measure]) -> Limits:
        if system.behind:
            return limits_of(measures)
        most = 0
        if any(measure.k == "min" for measure in measures):
            most = int(self.scorer.depths(index.corpus.retrieved).max(initial=0))
        limits = limits_of(measures, most)
        if index.nested:
            k = max(k or 1 for k, _ in limits)
            budget = max(tokens or 0 for _, tokens in limits) or None
            limits = {(k, budget): measures}
        return limits


def _joined(before: Runs, after: Runs) -> Runs:
    """The same retriever's answers to two lists of questions."""
    if not before:
        return after
    joined = {}
    for limit, run in before.items():
        results = {**run.results, **after[limit].results}
        failures = {**run.failures, **after[limit].failures}
        joined[limit] = replace(run, results=results, failures=failures)
    return joined


def _lengths(corpus: ChunkedCorpus, counter: TokenCounter) -> Numbers:
    if corpus.chunker and corpus.chunker.token_counter == counter:
        return corpus.token_counts
    counts = []
    for some in blocks(corpus):
        texts = [chunk.text for chunk in some]
        counts.append(counter.count_many(texts))
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

    def _embed(self, texts: Sequence[str], role: str) -> Vectors:
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


@dataclass
class Work:
    """What cutting, or a search, did."""

    seconds: float = 0.0  # of the whole
    embedding: float = 0.0  # seconds in which the chunker's own texts were embedded
    texts: set[bytes] = field(default_factory=set)  # keys of those texts
    waiting: float = 0.0  # seconds in which a search waited for vectors
    late: tuple[float, int, int] = (0.0, 0, 0)  # seconds, tokens and documents of late chunking
    chunks: bool = False  # whether a search used the chunks' vectors
    usage: Usage = field(default_factory=Usage)  # of the chunker's language models


class Meter(CachedEmbedder):
    """A cached embedder that measures the time and tokens of each text.

    A call's time is split over its new texts by length, so a text costs the same whether or not another chunker
    embedded it before. It uses the model and the cache of `embedder`.
    """

    def __init__(self, embedder: CachedEmbedder) -> None:
        super().__init__(embedder.model, embedder.cache, batch_size=embedder.batch_size)
        self._seconds: dict[bytes, float] = {}  # of a text; NaN if a cache had its vector
        self._tokens: dict[bytes, int] = {}
        self._work = Work()
        # One call at a time, so that waiting for another thread does not count as work.
        self._one_call = threading.RLock()

    def _embed(self, texts: Sequence[str], role: str) -> Vectors:
        with self._one_call:
            began, before = perf_counter(), self.embedded
            vectors = super()._embed(texts, role)
            seconds = perf_counter() - began
            by_key = {text_key(text): text for text in texts}
            new = {key: text for key, text in by_key.items() if key not in self._seconds}
            if self.embedded - before < len(new):  # the cache had some: this time is not a model's
                seconds = math.nan
            characters = sum(map(len, new.values())) or 1
            for key, text in new.items():
                self._seconds[key] = seconds * len(text) / characters
            if new and counts_tokens(self.embedder):
                counts = self.count_tokens(list(new.values())).tolist()
                self._tokens.update(zip(new, counts, strict=True))
            self._work.texts |= by_key.keys()
            self._work.embedding += perf_counter() - began
        return vectors

    @contextmanager
    def measured(self) -> Iterator[Work]:
        """Measure the block, in all threads."""
        work = self._work = Work()
        began = perf_counter()
        try:
            yield work
        finally:
            work.seconds = perf_counter() - began
            self._work = Work()

    @contextmanager
    def waiting(self) -> Iterator[Work]:
        """Count the block as waiting for vectors."""
        work = self._work
        began = perf_counter()
        try:
            yield work
        finally:
            work.waiting += perf_counter() - began

    def cost(
        self, cutting: Work, searching: Work, corpus: ChunkedCorpus, queries: Sequence[Query]
    ) -> tuple[Cost, dict[str, float]]:
        """The cost of a chunker and a search, and the seconds of each step: "chunk", "embed", "search".

        A step for which a cache had vectors has no seconds: they would be too few.
        """
        chunks = _keys(corpus) if searching.chunks else set()
        late_seconds, late_tokens, documents = searching.late
        questions = set()
        if searching.chunks or documents:
            questions = {text_key(query.text) for query in queries}
        texts = chunks | cutting.texts
        batches = [cutting.texts, chunks - cutting.texts]
        calls = sum(math.ceil(len(keys) / self.batch_size) for keys in batches)
        tokens = self._tokens_read(texts)
        if tokens is not None:
            tokens += late_tokens
        cost = Cost(
            embedder_calls=calls + documents,
            embedded_texts=len(texts) + documents,
            embedded_tokens=tokens,
            llm_calls=cutting.usage.calls,
            llm_input_tokens=cutting.usage.input_tokens,
            llm_output_tokens=cutting.usage.output_tokens,
        )
        cut_alone = max(cutting.seconds - cutting.embedding, 0.0)
        seconds = {
            "chunk": cut_alone + self._seconds_of(cutting.texts),
            "embed": self._seconds_of(chunks | questions) + late_seconds,
            "search": max(searching.seconds - searching.waiting, 0.0),
        }
        return cost, {step: value for step, value in seconds.items() if not math.isnan(value)}

    def statistics(
        self, searching: Work, corpus: ChunkedCorpus, lengths: Numbers
    ) -> ChunkStatistics:
        """The chunks' `lengths`, and what the model cuts off of the chunks that a search embeds."""
        lost = []
        if searching.chunks and self.max_tokens:
            over = (self._tokens.get(key, 0) - self.max_tokens for key in _keys(corpus))
            lost = [tokens for tokens in over if tokens > 0]
        return ChunkStatistics(lengths, len(lost), sum(lost))

    def _seconds_of(self, keys: Iterable[bytes]) -> float:
        return math.fsum(self._seconds.get(key, 0.0) for key in keys)

    def _tokens_read(self, keys: Collection[bytes]) -> int | None:
        """The tokens that the model reads of distinct texts; None if it does not say."""
        if not keys:
            return 0  # without loading a model
        if not counts_tokens(self.embedder):
            return None
        most = self.max_tokens or math.inf
        return int(sum(min(self._tokens.get(key, 0), most) for key in keys))


def _keys(corpus: ChunkedCorpus) -> set[bytes]:
    return set(map(text_key, corpus.embedded_texts))


def _usage(chunker: Chunker) -> Usage:
    usages = [getattr(llm, "usage", Usage()) for llm in llms_of(chunker)]
    return sum(usages, Usage())


class MeteredVectors(TextVectors):
    """Vectors by a `Meter`, which records what a search uses."""

    embedder: Meter
    _late: tuple[float, int, int] | None = None

    def chunks(self, corpus: ChunkedCorpus, *, cluster_only: bool = False) -> tuple[Rows, Numbers]:
        with self.embedder.waiting() as work:
            work.chunks = True
            return super().chunks(corpus, cluster_only=cluster_only)

    def late(self, corpus: ChunkedCorpus) -> tuple[Rows, Numbers]:
        with self.embedder.waiting() as work:
            began = perf_counter()
            vectors = super().late(corpus)
            if not self._late:
                seconds = perf_counter() - began
                texts = [document.text for document in corpus.documents]
                tokens = sum(map(self.late_embedder.tokens_read, texts))
                self._late = seconds, tokens, len(texts)
            work.late = self._late
        return vectors
