"""`RetrieverHooks`: a framework's four public functions, made of how it is asked and what its answers are."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from inspect import Parameter, signature
from pathlib import Path
from typing import Any, Generic, TypeVar

from chunkadapters._awaiting import at_once, finished
from chunkadapters._retrieval.asking import Answers, Settings, System
from chunkadapters._retrieval.bar import Progress, telling
from chunkadapters._retrieval.keeping import KeptAnswers
from chunkadapters._retrieval.locating import Locator
from chunkadapters._retrieval.pieces import Piece
from chunkadapters._retrieval.scored import benchmark_of, depth_measures, measures_of
from chunkcore.errors import OptionError
from chunkcore.evaluation.benchmark import Benchmark, Query
from chunkcore.evaluation.measures import Depth, Measure
from chunkcore.evaluation.results import Report
from chunkcore.evaluation.run import Run
from chunkcore.evaluation.scoring import Scorer

__all__ = ["RetrieverHooks"]

D = TypeVar("D")
R = TypeVar("R")


@dataclass(frozen=True)
class _Scored:
    """What a run is scored by."""

    scorer: Scorer
    measures: list[Measure]

    @classmethod
    def of(
        cls,
        benchmark: Benchmark | str,
        measures: Sequence[Measure | str] | Measure | str | None,
        k: Depth | Sequence[Depth],
        counter: str,
        how: dict[str, Any],
    ) -> _Scored:
        pooled = how.get("pool") is not None
        chosen = depth_measures(k, pooled=pooled) if measures is None else measures_of(measures)
        return cls(Scorer(benchmark_of(benchmark), counter=counter), chosen)

    @property
    def benchmark(self) -> Benchmark:
        return self.scorer.benchmark

    def report(self, run: Run) -> Report:
        return self.scorer.score(run, self.measures)


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
        benchmark: Benchmark | str,
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
            benchmark: whose documents are, or contain, what the retriever answers with; or the name of a collection
                that ships with chunkcore.
            name: the system's name in tables; the retriever's own by default.
            pool: everything that the retriever could have answered with, if PrecisionOmega or k = "min" is wanted.
            retries: how often a question is asked again after an exception.
            retry_wait: seconds before the first of these; each further wait is twice as long.
            progress: called as ``progress("retrieve", done, total)``; True for a bar on standard error.
            answers_file: keeps every answer as it comes, so that a run that was interrupted, or in which questions
                failed, asks only for the rest. It is of one system: by its name, and by what the retriever is set to,
                as far as that tells. Delete it when the index has changed.
            asked: how to ask it, where a framework has more than one way: Haystack's sockets.

        Returns:
            The run. Questions that failed to the last are in `Run.failures` with their reasons, and warned about.

        Raises:
            DataError: `retriever` is no retriever, or answers with something else than the framework's documents; or
                `answers_file` has other answers than this system's.
            ModelError: every question failed, or the first few did.
        """
        settings = Settings(retries, retry_wait, progress=progress, answers_file=answers_file)
        return self._run(self._asked(retriever, asked), benchmark_of(benchmark), name, pool, settings)

    async def arun_retriever(
        self,
        retriever: R,
        benchmark: Benchmark | str,
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
        return await self._arun(self._asked(retriever, asked), benchmark_of(benchmark), name, pool, settings)

    def evaluate_retriever(
        self,
        retriever: R,
        benchmark: Benchmark | str,
        *,
        measures: Sequence[Measure | str] | Measure | str | None = None,
        k: Depth | Sequence[Depth] = 5,
        counter: str = "cl100k_base",
        **how: Any,
    ) -> Report:
        """Score a retriever that is deployed, as it is.

        Args:
            retriever: as `run_retriever` takes it.
            benchmark: documents, questions and the spans that answer them; or a shipped collection's name.
            measures: such as ``["Recall@5", "Precision@5"]``, or one; by default Recall, Precision, IoU and F1 at `k`,
                and PrecisionOmega when there is a ``pool``.
            k: how many of the answers count, by default.
            counter: whose tokens are counted.
            how: what else `run_retriever` takes: ``name``, ``pool``, ``retries``, ``retry_wait``, ``progress``,
                ``answers_file``, and the framework's own.

        Returns:
            The report: per-question scores, how many answers could be located (`Report.located`), and the
            questions that went unanswered (`Report.unanswered`).

        Raises:
            OptionError: an unknown measure, depth, counter or option; before any question is asked.
        """
        scored = _Scored.of(benchmark, measures, k, counter, how)
        return scored.report(self.run_retriever(retriever, scored.benchmark, **how))

    async def aevaluate_retriever(
        self,
        retriever: R,
        benchmark: Benchmark | str,
        *,
        measures: Sequence[Measure | str] | Measure | str | None = None,
        k: Depth | Sequence[Depth] = 5,
        counter: str = "cl100k_base",
        **how: Any,
    ) -> Report:
        """`evaluate_retriever` by the retriever's asynchronous method; `how` also takes ``concurrency``."""
        scored = _Scored.of(benchmark, measures, k, counter, how)
        return scored.report(await self.arun_retriever(retriever, scored.benchmark, **how))

    def _asked(self, retriever: R, options: dict[str, Any]) -> System:
        """The retriever as what is asked, by the framework's own options."""
        known = [
            each.name for each in signature(self._system).parameters.values() if each.kind is Parameter.KEYWORD_ONLY
        ]
        if "concurrency" in options:
            raise OptionError("concurrency is of the asynchronous forms, arun_retriever and aevaluate_retriever")
        if unknown := sorted(options.keys() - set(known)):
            among = [*known, "name", "pool", "retries", "retry_wait", "progress", "answers_file"]
            raise OptionError(f"there is no option {unknown[0]!r}; expected one of {', '.join(sorted(among))}")
        return self._system(retriever, **options)

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
        mark = "" if settings.answers_file is None else system.settings()
        kept = KeptAnswers(settings.answers_file, name or system.name, mark)
        with kept, telling(settings.progress) as progress:
            yield Answers(benchmark, settings, Locator(benchmark), kept, progress, system.secrets)

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
