"""`RetrieverHooks`: a framework's four public functions, made of how it is asked and what its answers are."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Generic, TypeVar

from chunkadapters._awaiting import at_once, finished
from chunkadapters._retrieval.asking import Answers, Settings, System
from chunkadapters._retrieval.bar import Progress, telling
from chunkadapters._retrieval.keeping import KeptAnswers
from chunkadapters._retrieval.locating import Locator
from chunkadapters._retrieval.pieces import Piece
from chunkcore.evaluation.benchmark import Benchmark, Query
from chunkcore.evaluation.measures import Depth, Measure, as_measure, measures_at
from chunkcore.evaluation.results import Report
from chunkcore.evaluation.run import Run
from chunkcore.evaluation.scoring import evaluate

__all__ = ["RetrieverHooks"]

D = TypeVar("D")
R = TypeVar("R")


class RetrieverHooks(Generic[R, D]):
    """Makes a framework's four public functions; `R` is what it calls a retriever, `D` what that answers with.

    Args:
        system: what is asked, of a retriever, and of the framework's own options for asking it. Raises `DataError`
            where it is no retriever.
        pieces: what came back, or the pool. Raises `DataError` where it is no list of what a retriever answers with.
    """

    def __init__(self, system: Callable[..., System], pieces: Callable[[Any], list[Piece]]) -> None:
        self._system = system
        self._pieces = pieces

    def run_retriever(
        self,
        retriever: R,
        benchmark: Benchmark,
        *,
        name: str | None = None,
        pool: Iterable[D] | None = None,
        retries: int = 2,
        retry_wait: float = 0.5,
        progress: Progress | bool | None = None,
        answers_file: Path | str | None = None,
        **asked: Any,
    ) -> Run:
        """Ask a retriever every question of a benchmark, and locate what it answers. Nothing is indexed again.

        An answer is located by its metadata where that holds (the source's id or path, with offsets or
        ``spans``), and by its text otherwise.

        Args:
            retriever: the framework's own: any retriever of LlamaIndex, any of LangChain or another runnable from
                a string to a list of documents, any of Haystack or a whole pipeline.
            benchmark: whose documents are, or contain, what the retriever answers with.
            name: the system's name in tables; the retriever's own by default.
            pool: everything that the retriever could have answered with, if PrecisionOmega or k = "min" is wanted.
            retries: how often a question is asked again after an exception.
            retry_wait: seconds before the first of these; each further wait is twice as long.
            progress: called as ``progress("retrieve", done, total)``; True for a bar on standard error.
            answers_file: keeps every answer as it comes, so that a run that was interrupted, or in which questions
                failed, asks only for the rest. Delete it when the index has changed.
            asked: how to ask it, where a framework has more than one way: Haystack's sockets.

        Returns:
            The run. Questions that failed to the last are in `Run.failures` with their reasons, and warned about.

        Raises:
            DataError: `retriever` is no retriever, or answers with something else than the framework's documents; or
                `answers_file` has other answers than this system's.
            ModelError: every question failed, or the first few did.
        """
        settings = Settings(retries, retry_wait, progress=progress, answers_file=answers_file)
        return self._run(self._system(retriever, **asked), benchmark, name, pool, settings)

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
        progress: Progress | bool | None = None,
        answers_file: Path | str | None = None,
        **asked: Any,
    ) -> Run:
        """`run_retriever` by the retriever's asynchronous method, with at most `concurrency` questions under way."""
        settings = Settings(retries, retry_wait, concurrency, progress, answers_file)
        return await self._arun(self._system(retriever, **asked), benchmark, name, pool, settings)

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
            how: what else `run_retriever` takes: ``name``, ``pool``, ``retries``, ``retry_wait``, ``progress``,
                ``answers_file``, and the framework's own.

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
        with self._answers(system, benchmark, name, settings) as answers:
            for query in benchmark.queries:
                finished(self._answer(answers, query, at_once(system.ask), at_once(time.sleep)))
        return answers.run(name or system.name, self._pool(pool))

    async def _arun(
        self, system: System, benchmark: Benchmark, name: str | None, pool: Iterable[D] | None, settings: Settings
    ) -> Run:
        free = asyncio.Semaphore(settings.concurrency)
        with self._answers(system, benchmark, name, settings) as answers:

            async def ask(query: Query) -> None:
                async with free:
                    await self._answer(answers, query, system.aask, asyncio.sleep)

            tasks = [asyncio.ensure_future(ask(query)) for query in benchmark.queries]
            try:
                await asyncio.gather(*tasks)
            finally:
                for task in tasks:
                    task.cancel()
        return answers.run(name or system.name, self._pool(pool))

    @contextmanager
    def _answers(self, system: System, benchmark: Benchmark, name: str | None, settings: Settings) -> Iterator[Answers]:
        kept = KeptAnswers(settings.answers_file, name or system.name)
        with kept, telling(settings.progress) as progress:
            yield Answers(benchmark, settings, Locator(benchmark), kept, progress)

    async def _answer(
        self,
        answers: Answers,
        query: Query,
        ask: Callable[[str], Awaitable[Any]],
        pause: Callable[[float], Awaitable[None]],
    ) -> None:
        for attempt in answers.attempts(query):
            await pause(attempt.wait)
            with attempt:
                attempt.pieces = self._pieces(await ask(query.text))

    def _pool(self, pool: Iterable[D] | None) -> list[Piece] | None:
        return None if pool is None else self._pieces(list(pool))


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
