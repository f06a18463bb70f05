"""What the three frameworks' retriever hooks share: ask every question, locate what came back, score it.

A framework says how one question is asked (`System`) and what an answer's `Piece`s are; `RetrieverHooks` makes
its public functions of that. Nothing here knows a framework.
"""

from __future__ import annotations

import asyncio
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from types import TracebackType
from typing import Any, Generic, TypeVar

from chunkadapters._origin import decode_spans
from chunkcore.document import Span
from chunkcore.errors import DataError, ModelError, OptionError
from chunkcore.evaluation.alignment import Aligner
from chunkcore.evaluation.benchmark import Benchmark, Query
from chunkcore.evaluation.measures import Depth, Measure, as_measure, measures_at
from chunkcore.evaluation.results import Report
from chunkcore.evaluation.run import Retrieved, Run
from chunkcore.evaluation.scoring import evaluate

__all__ = [
    "Locator",
    "Piece",
    "Progress",
    "RetrievalWarning",
    "RetrieverHooks",
    "Settings",
    "System",
    "names",
    "stated_spans",
]

D = TypeVar("D")
R = TypeVar("R")
Progress = Callable[[str, int, int], None]

# Where the first questions all fail, the rest need not be waited for.
_HOPELESS = 5


class RetrievalWarning(UserWarning):
    """Some questions went unanswered, or some answers could not be located."""


@dataclass(frozen=True, slots=True)
class Piece:
    """One result, as a framework returned it.

    Attributes:
        text: the source text, without what a framework wrote around it.
        score: the retriever's own, higher is better; 0 where there is none.
        document_ids: what may name the source document, the most telling first.
        spans: where in that document the framework's metadata says that it stands.
        derived: whether a model wrote the text; the spans are then the passage that it was written from.
    """

    text: str
    score: float = 0.0
    document_ids: tuple[str, ...] = ()
    spans: tuple[Span, ...] = ()
    derived: bool = False


@dataclass(frozen=True, slots=True)
class Settings:
    """How to ask.

    Attributes:
        retries: how often a question is asked again after an exception.
        retry_wait: seconds before the first of these; each further wait is twice as long.
        concurrency: how many questions may be under way, where they are asked asynchronously.
        progress: called as ``progress("retrieve", done, total)``.
    """

    retries: int = 2
    retry_wait: float = 0.5
    concurrency: int = 8
    progress: Progress | None = None

    def __post_init__(self) -> None:
        if self.retries < 0:
            raise OptionError(f"retries is 0 or more, got {self.retries}")
        if not self.retry_wait >= 0:
            raise OptionError(f"retry_wait is 0 seconds or more, got {self.retry_wait}")
        if self.concurrency < 1:
            raise OptionError(f"concurrency is at least 1, got {self.concurrency}")

    def waits(self) -> list[float]:
        """Seconds to wait before each attempt."""
        return [0.0, *(self.retry_wait * 2**turn for turn in range(self.retries))]


@dataclass(frozen=True, slots=True)
class System:
    """A retriever, as what is asked.

    Attributes:
        name: what it is called in tables, unless the user says otherwise.
        ask: a question to the framework's own answer.
        aask: the same, asynchronously.
    """

    name: str
    ask: Callable[[str], Any]
    aask: Callable[[str], Awaitable[Any]]


def names(*candidates: object) -> tuple[str, ...]:
    """Those of the candidates that can name a document, each once."""
    return tuple(dict.fromkeys(each for each in candidates if isinstance(each, str) and each))


def stated_spans(spans: object, start: object, end: object, text: str) -> tuple[Span, ...]:
    """The spans that metadata states: the adapters' own, or a start with an end or the text's length.

    Several spans that were handed down, by somebody's splitter that did not know them, do not have the
    start and the end.
    """
    found = decode_spans(spans)
    if found and (start, end) in ((None, None), (min(found).start, max(each.end for each in found))):
        return found
    if type(start) is not int or start < 0:
        return ()
    stop = end if type(end) is int else start + len(text)
    return (Span(start, stop),) if stop > start else ()


class Locator:
    """Finds the place of pieces in a benchmark's documents.

    What a framework calls a document is matched to the benchmark's by its id, else by its file name, with
    or without the suffix, where only one document has it.
    """

    def __init__(self, benchmark: Benchmark) -> None:
        self._aligner = Aligner(benchmark.documents)
        self._texts = {document.id: document.text for document in benchmark.documents}
        self._names = _unique(self._texts)

    def locate(self, piece: Piece) -> Retrieved:
        """Where the piece stands, by what it states first and by its text otherwise."""
        document_id = self._document(piece)
        if document_id:
            # What a model wrote stands nowhere: its passage does.
            text = "" if piece.derived else piece.text
            found = self._aligner.locate(text, document_id=document_id, spans=piece.spans, score=piece.score)
            if piece.derived:
                found = replace(found, text=piece.text)
            if found.how != "unlocated":
                return found
        # Not in the document that it names, or it names none: its text is the better witness.
        return self._aligner.locate(piece.text, score=piece.score)

    def _document(self, piece: Piece) -> str:
        """The document that the piece names; where it names none, the only one that has its text at its spans."""
        for candidate in piece.document_ids:
            if candidate in self._texts:
                return candidate
        for candidate in piece.document_ids:
            for name in _short_names(candidate):
                if name in self._names:
                    return self._names[name]
        if len(piece.spans) != 1:
            return ""
        start, end = piece.spans[0].start, piece.spans[0].end
        holding = [key for key, text in self._texts.items() if text[start:end] == piece.text]
        return holding[0] if len(holding) == 1 else ""


def _short_names(document_id: str) -> tuple[str, str]:
    path = PurePath(document_id)
    return path.name, path.stem


def _unique(ids: Iterable[str]) -> dict[str, str]:
    """Short names that only one document has."""
    owners: dict[str, set[str]] = {}
    for each in ids:
        for name in _short_names(each):
            owners.setdefault(name, set()).add(each)
    return {name: each.pop() for name, each in owners.items() if name and len(each) == 1}


class _Attempt:
    """A question asked once. As a context it keeps what is raised inside: a retriever may raise anything."""

    def __init__(self, query: Query, wait: float) -> None:
        self.query = query
        self.wait = wait
        self.pieces: list[Piece] = []
        self.error: Exception | None = None

    def __enter__(self) -> _Attempt:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: TracebackType | None) -> bool:
        if isinstance(error, DataError):
            raise DataError(f"question {self.query.id}: {error}") from error
        self.error = error if isinstance(error, Exception) else None
        return self.error is not None


@dataclass
class _Answers:
    """Located answers and failures, as they come in."""

    benchmark: Benchmark
    settings: Settings
    locator: Locator
    results: dict[str, list[Retrieved]] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    began: float = field(default_factory=time.perf_counter)

    def attempts(self, query: Query) -> Iterator[_Attempt]:
        """One after the other, until the question is answered or was asked often enough."""
        for wait in self.settings.waits():
            yield (attempt := _Attempt(query, wait))
            if attempt.error is None:
                self.results[query.id] = [self.locator.locate(piece) for piece in attempt.pieces]
                break
        else:
            self.failures[query.id] = f"{type(attempt.error).__name__}: {attempt.error}"
            if not self.results and len(self.failures) >= _HOPELESS:
                raise self._hopeless() from attempt.error
        if self.settings.progress is not None:
            done = len(self.results) + len(self.failures)
            self.settings.progress("retrieve", done, len(self.benchmark.queries))

    def _hopeless(self) -> ModelError:
        query_id, reason = next(iter(self.failures.items()))
        return ModelError(
            f"the retriever answered none of the first {len(self.failures)} questions, each asked "
            f"{self.settings.retries + 1} times; {query_id}: {reason}"
        )

    def run(self, name: str, pool: Sequence[Piece] | None) -> Run:
        if self.failures and not self.results:
            raise self._hopeless()
        seconds = {"search": time.perf_counter() - self.began}
        order = [query.id for query in self.benchmark.queries]
        run = Run(
            name=name,
            results={key: self.results[key] for key in order if key in self.results},
            pool=None if pool is None else [self.locator.locate(piece) for piece in pool],
            seconds=seconds,
            failures={key: self.failures[key] for key in order if key in self.failures},
        )
        _warn(run, len(order))
        return run


class RetrieverHooks(ABC, Generic[R, D]):
    """Makes a framework's four public functions; `R` is what it calls a retriever, `D` what that answers with."""

    @abstractmethod
    def system(self, retriever: R) -> System:
        """What is asked. Raises `DataError` where it is no retriever."""

    @abstractmethod
    def pieces(self, answer: Any) -> list[Piece]:
        """What came back, or the pool. Raises `DataError` where it is no list of what a retriever answers with."""

    def run_retriever(
        self,
        retriever: R,
        benchmark: Benchmark,
        *,
        name: str | None = None,
        pool: Iterable[D] | None = None,
        retries: int = 2,
        retry_wait: float = 0.5,
        progress: Progress | None = None,
    ) -> Run:
        """Ask a retriever every question of a benchmark, and locate what it answers. Nothing is indexed again.

        An answer is located by its metadata where that holds (the source's id or path, with offsets or
        ``spans``), and by its text otherwise.

        Args:
            retriever: the framework's own: any retriever of LlamaIndex, any of LangChain or another runnable from
                a string to a list of documents.
            benchmark: whose documents are, or contain, what the retriever answers with.
            name: the system's name in tables; the retriever's own by default.
            pool: everything that the retriever could have answered with, if PrecisionOmega or k = "min" is wanted.
            retries: how often a question is asked again after an exception.
            retry_wait: seconds before the first of these; each further wait is twice as long.
            progress: called as ``progress("retrieve", done, total)``.

        Returns:
            The run. Questions that failed to the last are in `Run.failures` with their reasons, and warned about.

        Raises:
            DataError: `retriever` is no retriever, or answers with something else than the framework's documents.
            ModelError: every question failed, or the first few did.
        """
        settings = Settings(retries, retry_wait, progress=progress)
        return self._run(self.system(retriever), benchmark, name, pool, settings)

    async def arun_retriever(
        self,
        retriever: R,
        benchmark: Benchmark,
        *,
        name: str | None = None,
        pool: Iterable[D] | None = None,
        concurrency: int = 8,
        retries: int = 2,
        retry_wait: float = 0.5,
        progress: Progress | None = None,
    ) -> Run:
        """`run_retriever` by the retriever's asynchronous method, with at most `concurrency` questions under way."""
        settings = Settings(retries, retry_wait, concurrency, progress)
        return await self._arun(self.system(retriever), benchmark, name, pool, settings)

    def evaluate_retriever(
        self,
        retriever: R,
        benchmark: Benchmark,
        *,
        measures: Sequence[Measure | str] | None = None,
        k: int | Sequence[int] = 5,
        counter: str = "cl100k_base",
        **how: Any,
    ) -> Report:
        """Score a retriever that is deployed, as it is.

        Args:
            retriever: as `run_retriever` takes it.
            benchmark: documents, questions and the spans that answer them.
            measures: such as ``["Recall@5", "Precision@5"]``; by default Recall, Precision, IoU and F1 at `k`,
                and PrecisionOmega when there is a ``pool``.
            k: how many of the answers count, by default.
            counter: whose tokens are counted.
            how: what else `run_retriever` takes: ``name``, ``pool``, ``retries``, ``retry_wait``, ``progress``.

        Returns:
            The report: per-question scores, how many answers could be located (`Report.located`), and the
            questions that went unanswered (`Report.unanswered`).
        """
        return _score(benchmark, self.run_retriever(retriever, benchmark, **how), measures, k, counter)

    async def aevaluate_retriever(
        self,
        retriever: R,
        benchmark: Benchmark,
        *,
        measures: Sequence[Measure | str] | None = None,
        k: int | Sequence[int] = 5,
        counter: str = "cl100k_base",
        **how: Any,
    ) -> Report:
        """`evaluate_retriever` by the retriever's asynchronous method; `how` also takes ``concurrency``."""
        return _score(benchmark, await self.arun_retriever(retriever, benchmark, **how), measures, k, counter)

    def _run(
        self, system: System, benchmark: Benchmark, name: str | None, pool: Iterable[D] | None, settings: Settings
    ) -> Run:
        answers = _Answers(benchmark, settings, Locator(benchmark))
        for query in benchmark.queries:
            for attempt in answers.attempts(query):
                time.sleep(attempt.wait)
                with attempt:
                    attempt.pieces = self.pieces(system.ask(query.text))
        return answers.run(name or system.name, self._pool(pool))

    async def _arun(
        self, system: System, benchmark: Benchmark, name: str | None, pool: Iterable[D] | None, settings: Settings
    ) -> Run:
        answers = _Answers(benchmark, settings, Locator(benchmark))
        free = asyncio.Semaphore(settings.concurrency)

        async def ask(query: Query) -> None:
            async with free:
                for attempt in answers.attempts(query):
                    await asyncio.sleep(attempt.wait)
                    with attempt:
                        attempt.pieces = self.pieces(await system.aask(query.text))

        tasks = [asyncio.ensure_future(ask(query)) for query in benchmark.queries]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
        return answers.run(name or system.name, self._pool(pool))

    def _pool(self, pool: Iterable[D] | None) -> list[Piece] | None:
        return None if pool is None else self.pieces(list(pool))


def _warn(run: Run, asked: int) -> None:
    """Say what would otherwise only be seen by who looks into the report."""
    if run.failures:
        few = "; ".join(f"{key}: {reason}" for key, reason in list(run.failures.items())[:3])
        warnings.warn(
            f"{len(run.failures)} of {asked} questions went unanswered and score 0 ({few}); "
            "Run.failures has each with its reason",
            RetrievalWarning,
            stacklevel=4,
        )
    pieces = [piece for results in run.results.values() for piece in results]
    lost = sum(piece.how == "unlocated" for piece in pieces)
    if pieces and lost == len(pieces):
        warnings.warn(
            f"none of the {lost} answers stands in the benchmark's documents: was the index built from other texts?",
            RetrievalWarning,
            stacklevel=4,
        )


def _score(
    benchmark: Benchmark,
    run: Run,
    measures: Sequence[Measure | str] | None,
    k: Depth | Sequence[Depth],
    counter: str,
) -> Report:
    """Evaluate a run, by default with every measure at `k`."""
    if measures is None:
        depths = [k] if isinstance(k, int | str) else list(k)
        chosen = [each for each in measures_at(depths, ["token"]) if run.pool is not None or _needs_no_pool(each)]
    else:
        chosen = [as_measure(each) for each in measures]
    return evaluate(benchmark, run, chosen, counter=counter)


def _needs_no_pool(measure: Measure) -> bool:
    return measure.name != "PrecisionOmega" and measure.k != "min"
