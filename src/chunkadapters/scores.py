"""Scores of a framework's retriever: `RetrieverHooks` makes the four public functions that run and score it."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from chunkadapters.models import at_once, finished, secrets_within, without_secrets
from chunkcore.concurrency import Progress
from chunkcore.errors import DataError, ModelError, OptionError, warn_user
from chunkcore.locating import Hit, Locator, Reason, Verdict
from chunkcore.options import check_number, check_option_names
from chunkcore.run import Retrieved, Run
from chunkcore.text import Document

if TYPE_CHECKING:
    from chunkcore.evaluation.benchmarks.benchmark import Benchmark, Query
    from chunkcore.evaluation.measures import Depth, Measure
    from chunkcore.evaluation.results import Report
    from chunkcore.evaluation.scoring import Scorer


class QuestionScorer:
    """Scores the hits for one question by the evidence of a benchmark, or of a collection that ships with chunkcore."""

    def __init__(self, benchmark: Benchmark | str, counter: str = "cl100k_base") -> None:
        from chunkcore.evaluation.scoring import Scorer

        benchmark = _benchmark(benchmark)
        self._scorer = Scorer(benchmark, counter=counter)
        self._locator = Locator(_by_id(benchmark), lenient=True)
        self._rows = {query.id: row for row, query in enumerate(benchmark.queries)}
        self._ids: dict[str, list[str]] = {query.id: [query.id] for query in benchmark.queries}
        for query in benchmark.queries:
            if query.text not in self._rows:
                self._ids.setdefault(query.text, []).append(query.id)

    def scores(
        self, question: str, hits: Sequence[Hit], measures: Sequence[Measure | str]
    ) -> list[float]:
        """One score a measure; for a text that several questions share, the mean of their scores.

        `question` is a text or an id, `hits` are best first. Raises `DataError`: the benchmark has no such question.
        """
        from chunkcore.evaluation.measures import get_measure

        ids = self._ids.get(question)
        if not ids:
            raise DataError(
                f"the benchmark has no question {question!r}: give a question's text or id as it has it"
            )
        pieces = [verdict.piece for verdict in self._locator.locate_all(hits)]
        parsed = [get_measure(measure) for measure in measures]
        report = self._scorer.score(Run("question", dict.fromkeys(ids, pieces)), parsed)
        rows = [self._rows[query_id] for query_id in ids]
        return [float(report.values(measure)[rows].mean()) for measure in parsed]


def _by_id(benchmark: Benchmark) -> dict[str, Document]:
    return {document.id: document for document in benchmark.documents}


def _benchmark(benchmark: Any) -> Benchmark:
    from chunkcore.datasets import load_dataset
    from chunkcore.evaluation.benchmarks.benchmark import Benchmark

    if isinstance(benchmark, Benchmark):
        return benchmark
    if isinstance(benchmark, str):
        return load_dataset(benchmark)
    raise OptionError(
        f"expected a Benchmark or a collection's name, got {type(benchmark).__name__}"
    )


def measures_of(measures: Sequence[Measure | str] | Measure | str) -> list[Measure]:
    """The measures of a list or of one. Raises `OptionError`: an unknown one, or one of answers; or an empty list."""
    from chunkcore.evaluation.measures import Measure, retrieval_measures

    names = [measures] if isinstance(measures, Measure | str) else _listed("measures", measures)
    parsed: list[Measure] = list(retrieval_measures(names))
    if not parsed:
        raise OptionError('measures is empty: expected some, such as ["Recall@1000tok", "IoU@5"]')
    return parsed


def _listed(option: str, values: Any) -> list[Any]:
    try:
        return list(values)
    except TypeError:
        raise OptionError(
            f"{option}: expected one or a list of them, got {type(values).__name__}"
        ) from None


# ---- Running a retriever

# If so many first questions fail, the rest are not asked.
_HOPELESS = 5
_DEPTHS: tuple[Depth, ...] = ("1000tok", 5)

D = TypeVar("D")
R = TypeVar("R")


class RetrievalWarning(UserWarning):
    """Some questions were not answered, or some hits could not be located."""


@dataclass(frozen=True, slots=True)
class DeployedRetriever:
    """How a framework's retriever is asked."""

    name: str  # in tables, unless the user gives one
    ask: Callable[[str], Any]  # from a question to the framework's answer
    aask: Callable[[str], Awaitable[Any]]  # the same, asynchronously
    parts: Any = None  # what the retriever is made of; no message repeats its secrets


@dataclass(frozen=True, kw_only=True)
class RunSettings:
    """How a retriever is run; see `RetrieverHooks.run_retriever`."""

    name: str | None = None
    retries: int = 2
    retry_wait: float = 0.5
    progress: Progress | None = None
    concurrency: int = 8

    def __post_init__(self) -> None:
        check_number("retries", self.retries)
        check_number("retry_wait", self.retry_wait, whole=False)
        check_number("concurrency", self.concurrency, 1)
        if not (self.progress is None or callable(self.progress)):
            raise OptionError(
                f"progress is a function of (stage, done, total), got {self.progress!r}"
            )


_USUAL = [option.name for option in fields(RunSettings)]


@dataclass
class RetrieverRun:
    """One run of a retriever over a benchmark's questions."""

    benchmark: Benchmark
    settings: RunSettings
    system: DeployedRetriever
    hits_of: Callable[[Any], list[Hit]]
    locator: Locator
    results: dict[str, list[Verdict]] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    began: float = field(default_factory=time.perf_counter)

    async def ask(
        self,
        query: Query,
        ask: Callable[[str], Awaitable[Any]],
        pause: Callable[[float], Awaitable[None]],
    ) -> None:
        """Ask one question, again after an exception."""
        reason: Exception | None = None
        for wait in [
            0.0,
            *(self.settings.retry_wait * 2**turn for turn in range(self.settings.retries)),
        ]:
            await pause(wait)
            try:
                hits = self.hits_of(await ask(query.text))
            except DataError as error:
                raise DataError(f"question {query.id}: {error}") from error
            except Exception as error:  # noqa: BLE001  # a retriever may raise anything
                reason = error
            else:
                self.results[query.id] = self.locator.locate_all(hits)
                break
        else:
            secrets = secrets_within(self.system.parts)
            self.failures[query.id] = f"{type(reason).__name__}: {without_secrets(reason, secrets)}"
            self._check_hope()
        if self.settings.progress is not None:
            answered = len(self.results) + len(self.failures)
            self.settings.progress("retrieve", answered, len(self.benchmark.queries))

    def _check_hope(self, most: int = _HOPELESS) -> None:
        if self.results or len(self.failures) < most:
            return
        query_id, reason = next(iter(self.failures.items()))
        raise ModelError(
            f"the retriever answered none of the first {len(self.failures)} questions, each asked "
            f"{self.settings.retries + 1} times; {query_id}: {reason}"
        )

    def run(self, pool: Sequence[Hit] | None) -> Run:
        """The answers, in the order of the benchmark's questions."""
        if self.failures:
            self._check_hope(most=1)
        seconds = {"search": time.perf_counter() - self.began}
        order = [query.id for query in self.benchmark.queries]
        run = Run(
            name=self.settings.name or self.system.name,
            results={key: _pieces(self.results[key]) for key in order if key in self.results},
            pool=None if pool is None else _pieces(self.locator.locate_all(pool)),
            seconds=seconds,
            failures={key: self.failures[key] for key in order if key in self.failures},
        )
        for message in _warnings(run, len(order), self.results.values()):
            warn_user(message, RetrievalWarning)
        return run


def _pieces(verdicts: Iterable[Verdict]) -> list[Retrieved]:
    return [verdict.piece for verdict in verdicts]


def _warnings(run: Run, questions: int, answers: Iterable[Sequence[Verdict]]) -> Iterator[str]:
    if run.failures:
        few = "; ".join(f"{key}: {reason}" for key, reason in list(run.failures.items())[:3])
        yield (
            f"{len(run.failures)} of {questions} questions went unanswered and score 0 ({few}); "
            "Run.failures has each with its reason"
        )
    verdicts = [verdict for answer in answers for verdict in answer]
    reasons = Counter(verdict.reason for verdict in verdicts)
    lost = sum(verdict.kind == "elsewhere" for verdict in verdicts)
    if verdicts and lost == len(verdicts):
        yield f"none of the {lost} answers stands in the benchmark's documents: was the index built from other texts?"
    elif lost:
        yield (
            f"{lost} of {len(verdicts)} answers ({100 * lost / len(verdicts):.0f} %) stand in no document of the "
            "benchmark and count as irrelevant. Are they summaries, or of other documents?"
        )
    for reason, advice in _ADVICE.items():
        if reasons[reason]:
            yield f"{reasons[reason]} of {len(verdicts)} answers: {reason}{advice}"


_ADVICE: dict[Reason, str] = {
    "another text stands at its stated place": (
        ", so that it was sought by its text: has a document changed since it was indexed, or does a splitter miscount?"
    ),
    "its stated place cannot be read": ", so that it was sought by its text",
    "its splitter searched for its place, and its text stands several times": (
        ", so that it may have the place of another occurrence: `exact` writes right places"
    ),
}


class RetrieverHooks(Generic[R, D]):
    """Makes a framework's four public functions; `R` is its retriever, `D` its document.

    Args:
        system: from a retriever and the framework's own options. Raises `DataError` for anything else.
        hit_of: from a document to a hit. Raises `DataError` for anything else.
        answer: what a retriever gives a list of, in words.
        advice: for one that gives a dictionary.
    """

    def __init__(
        self,
        system: Callable[..., DeployedRetriever],
        hit_of: Callable[[Any], Hit],
        answer: str,
        advice: str = "",
    ) -> None:
        self._system, self._hit_of, self._answer, self._advice = system, hit_of, answer, advice
        own = signature(system).parameters.values()
        self._names = [
            *_USUAL,
            *(option.name for option in own if option.kind is Parameter.KEYWORD_ONLY),
        ]

    def run_retriever(
        self,
        retriever: R,
        benchmark: Benchmark | str,
        *,
        pool: Iterable[D] | None = None,
        **options: Any,
    ) -> Run:
        """Ask a retriever every question of a benchmark, and locate its hits. Nothing is indexed again.

        A hit is located by its metadata if they are right (the source's id or path, with offsets or ``spans``), else by
        its text.

        Args:
            retriever: any retriever of LlamaIndex; any of LangChain, or a runnable from a string to documents; any of
                Haystack, or a whole pipeline.
            benchmark: whose documents the retriever searches; or the name of a collection that ships with chunkcore.
            pool: everything the retriever could have returned, for PrecisionOmega and k = "min".
            options: ``name``, the system's name in tables; ``retries`` after an exception (2); ``retry_wait`` in
                seconds before the first (0.5), doubled for each further one; ``progress``, called as
                ``progress("retrieve", done, total)``; and the framework's own, such as Haystack's sockets.

        `Run.failures` has the questions that failed to the last, with reasons; a warning says so.

        Raises:
            DataError: `retriever` is no retriever, or does not return the framework's documents.
            ModelError: every question failed, or the first five did.
        """
        run = self._run(retriever, benchmark, options)
        for query in run.benchmark.queries:
            finished(run.ask(query, at_once(run.system.ask), at_once(time.sleep)))
        return run.run(self._pool(pool))

    async def arun_retriever(
        self,
        retriever: R,
        benchmark: Benchmark | str,
        *,
        pool: Iterable[D] | None = None,
        **options: Any,
    ) -> Run:
        """`run_retriever` by the asynchronous method, with at most ``concurrency`` (8) questions at a time."""
        run = self._run(retriever, benchmark, options, concurrent=True)
        free = asyncio.Semaphore(run.settings.concurrency)

        async def ask(query: Query) -> None:
            async with free:
                await run.ask(query, run.system.aask, asyncio.sleep)

        tasks = [asyncio.ensure_future(ask(query)) for query in run.benchmark.queries]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
        return run.run(self._pool(pool))

    def evaluate_retriever(
        self,
        retriever: R,
        benchmark: Benchmark | str,
        *,
        measures: Sequence[Measure | str] | Measure | str | None = None,
        k: Depth | Sequence[Depth] = _DEPTHS,
        counter: str = "cl100k_base",
        **options: Any,
    ) -> Report:
        """Score a deployed retriever.

        Args:
            retriever: see `run_retriever`.
            benchmark: documents, questions and evidence; or the name of a collection that ships with chunkcore.
            measures: one or a list, such as ``["Recall@1000tok", "Precision@5"]``; by default Recall, Precision, IoU
                and F1 at `k`, and PrecisionOmega if there is a ``pool``.
            k: the depths of the default measures: an equal budget of tokens first, then so many hits.
            counter: whose tokens are counted.
            options: other arguments of `run_retriever`.

        Raises `OptionError`, before any question is asked: an unknown measure, depth, counter or option.
        """
        check_option_names(
            "evaluate_retriever", options, ["measures", "k", "counter", "pool", *self._names]
        )
        scorer, parsed, others = _scoring(benchmark, measures, k, counter, **options)
        return scorer.score(self.run_retriever(retriever, scorer.benchmark, **others), parsed)

    async def aevaluate_retriever(
        self, retriever: R, benchmark: Benchmark | str, **options: Any
    ) -> Report:
        """`evaluate_retriever` by the retriever's asynchronous method; `options` also take ``concurrency``."""
        check_option_names(
            "aevaluate_retriever", options, ["measures", "k", "counter", "pool", *self._names]
        )
        scorer, parsed, others = _scoring(benchmark, **options)
        return scorer.score(
            await self.arun_retriever(retriever, scorer.benchmark, **others), parsed
        )

    def _run(
        self,
        retriever: R,
        benchmark: Benchmark | str,
        options: dict[str, Any],
        *,
        concurrent: bool = False,
    ) -> RetrieverRun:
        from chunkcore.retrieval import Index, RetrievalMethod, get_retriever

        if "concurrency" in options and not concurrent:
            raise OptionError(
                "concurrency is of the asynchronous forms, arun_retriever and aevaluate_retriever"
            )
        check_option_names("run_retriever", options, [*self._names, "pool"])
        settings = RunSettings(**{name: value for name, value in options.items() if name in _USUAL})
        others = self._names[len(_USUAL) :]
        if isinstance(retriever, RetrievalMethod | str):
            get_retriever(retriever).retrieve("")  # raises: a method has no documents
        if isinstance(retriever, Index):
            raise DataError(
                "an index is scored by chunkcore's score(run_retriever(index, benchmark), benchmark)"
            )
        system = self._system(
            retriever, **{name: options[name] for name in others if name in options}
        )
        benchmark = _benchmark(benchmark)
        locator = Locator(_by_id(benchmark), lenient=True)
        return RetrieverRun(benchmark, settings, system, self._hits, locator)

    def _pool(self, pool: Iterable[D] | None) -> list[Hit] | None:
        return None if pool is None else self._hits(list(pool))

    def _hits(self, answer: Any) -> list[Hit]:
        if isinstance(answer, list | tuple):
            return list(map(self._hit_of, answer))
        hint = (
            f" with the keys {', '.join(map(str, answer))}{self._advice}"
            if isinstance(answer, dict)
            else ""
        )
        raise DataError(f"expected a list of {self._answer}, got a {type(answer).__name__}{hint}")


def _scoring(
    benchmark: Benchmark | str,
    measures: Sequence[Measure | str] | Measure | str | None = None,
    k: Depth | Sequence[Depth] = _DEPTHS,
    counter: str = "cl100k_base",
    **options: Any,
) -> tuple[Scorer, list[Measure], dict[str, Any]]:
    """The scorer, the measures, and the options of the run."""
    from chunkcore.evaluation.measures import measures_at
    from chunkcore.evaluation.scoring import Scorer

    if measures is None:
        usual = measures_at([k] if isinstance(k, int | str) else _listed("k", k), ["token"])
        parsed = [
            measure
            for measure in usual
            if not measure.needs_pool or options.get("pool") is not None
        ]
    else:
        parsed = measures_of(measures)
    return Scorer(_benchmark(benchmark), counter=counter), parsed, options
