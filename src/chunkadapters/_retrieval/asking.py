"""Every question is asked, again where that failed, and what comes back is located and collected.

Nothing here waits or asks by itself: `Answers.attempts` says what to ask and how long to wait before, and whoever
asks, synchronously or not, fills in what came back.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from chunkadapters._models.identity import without_secrets
from chunkadapters._retrieval.bar import Progress
from chunkadapters._retrieval.keeping import KeptAnswers
from chunkadapters._retrieval.locating import Locator
from chunkadapters._retrieval.pieces import Piece
from chunkcore.errors import DataError, ModelError, OptionError
from chunkcore.evaluation.benchmark import Benchmark, Query
from chunkcore.evaluation.run import Retrieved, Run

__all__ = ["Answers", "Attempt", "RetrievalWarning", "Settings", "System"]

# Where the first questions all fail, the rest need not be waited for.
_HOPELESS = 5


class RetrievalWarning(UserWarning):
    """Some questions went unanswered, or some answers could not be located."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How to ask.

    Attributes:
        retries: how often a question is asked again after an exception.
        retry_wait: seconds before the first of these; each further wait is twice as long.
        concurrency: how many questions may be under way, where they are asked asynchronously.
        progress: called as ``progress("retrieve", done, total)``; True for a bar on standard error.
        answers_file: where answers are kept, for a run that was interrupted to go on; None for nowhere.
    """

    retries: int = 2
    retry_wait: float = 0.5
    concurrency: int = 8
    progress: Progress | bool | None = None
    answers_file: Path | str | None = None

    def __post_init__(self) -> None:
        if not _is_whole(self.retries) or self.retries < 0:
            raise OptionError(f"retries is a whole number, 0 or more, got {self.retries!r}")
        if not isinstance(self.retry_wait, int | float) or not self.retry_wait >= 0:
            raise OptionError(f"retry_wait is 0 seconds or more, got {self.retry_wait!r}")
        if not _is_whole(self.concurrency) or self.concurrency < 1:
            raise OptionError(f"concurrency is a whole number, at least 1, got {self.concurrency!r}")
        if not (self.progress is None or isinstance(self.progress, bool) or callable(self.progress)):
            raise OptionError(f"progress is True, False or a function of (stage, done, total), got {self.progress!r}")
        if not (self.answers_file is None or isinstance(self.answers_file, str | Path)):
            raise OptionError(f"answers_file is a file's path, got {self.answers_file!r}")

    def waits(self) -> list[float]:
        """Seconds to wait before each attempt."""
        return [0.0, *(self.retry_wait * 2**turn for turn in range(self.retries))]


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


@dataclass(frozen=True, slots=True)
class System:
    """A retriever, as what is asked.

    Attributes:
        name: what it is called in tables, unless the user says otherwise.
        ask: a question to the framework's own answer.
        aask: the same, asynchronously.
        settings: a mark of what it is set to, which tells it from another one of that name.
        secrets: what must not be told that it holds.
    """

    name: str
    ask: Callable[[str], Any]
    aask: Callable[[str], Awaitable[Any]]
    settings: Callable[[], str] = str
    secrets: Callable[[], tuple[str, ...]] = tuple


class Attempt:
    """A question asked once. As a context it keeps what is raised inside: a retriever may raise anything."""

    def __init__(self, query: Query, wait: float) -> None:
        self.query = query
        self.wait = wait
        self.pieces: list[Piece] = []
        self.error: Exception | None = None

    def __enter__(self) -> Attempt:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: TracebackType | None) -> bool:
        if isinstance(error, DataError):
            raise DataError(f"question {self.query.id}: {error}") from error
        self.error = error if isinstance(error, Exception) else None
        return self.error is not None


@dataclass
class Answers:
    """Located answers and failures, as they come in."""

    benchmark: Benchmark
    settings: Settings
    locator: Locator
    kept: KeptAnswers
    progress: Progress | None
    secrets: Callable[[], tuple[str, ...]] = tuple
    results: dict[str, list[Retrieved]] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    began: float = field(default_factory=time.perf_counter)

    def attempts(self, query: Query) -> Iterator[Attempt]:
        """One after the other, until the question is answered or was asked often enough; none if its answer is kept."""
        pieces = self.kept.fetch(query.text)
        for wait in self.settings.waits() if pieces is None else ():
            yield (attempt := Attempt(query, wait))
            if attempt.error is None:
                pieces = attempt.pieces
                self.kept.keep(query.text, pieces)
                break
        if pieces is not None:
            self.results[query.id] = [self.locator.locate(piece) for piece in pieces]
        else:
            self.failures[query.id] = self._reason(attempt.error)
            if not self.results and len(self.failures) >= _HOPELESS:
                raise self._hopeless()
        if self.progress is not None:
            done = len(self.results) + len(self.failures)
            self.progress("retrieve", done, len(self.benchmark.queries))

    def _reason(self, error: Exception | None) -> str:
        return f"{type(error).__name__}: {without_secrets(error, self.secrets())}"

    def _hopeless(self) -> ModelError:
        query_id, reason = next(iter(self.failures.items()))
        return ModelError(
            f"the retriever answered none of the first {len(self.failures)} questions, each asked "
            f"{self.settings.retries + 1} times; {query_id}: {reason}"
        )

    def run(self, name: str, pool: Sequence[Piece] | None) -> Run:
        if self.failures and not self.results:
            raise self._hopeless()
        misplaced = self.locator.misplaced  # among the answers; the pool comes later
        seconds = {"search": time.perf_counter() - self.began}
        order = [query.id for query in self.benchmark.queries]
        run = Run(
            name=name,
            results={key: self.results[key] for key in order if key in self.results},
            pool=None if pool is None else [self.locator.locate(piece) for piece in pool],
            seconds=seconds,
            failures={key: self.failures[key] for key in order if key in self.failures},
        )
        _warn(run, len(order), misplaced)
        return run


def _warn(run: Run, asked: int, misplaced: int) -> None:
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
    elif misplaced:
        warnings.warn(
            f"{misplaced} of {len(pieces)} answers state a place where another text stands, and were sought by their "
            "text: has a document changed since it was indexed, or does a splitter miscount?",
            RetrievalWarning,
            stacklevel=4,
        )
