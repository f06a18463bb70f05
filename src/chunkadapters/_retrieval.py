"""What the three frameworks' retriever hooks share: ask every question, locate what came back, score it.

A framework's hook turns one answer into `Piece`s. Everything after that is here, and knows no framework.
"""

from __future__ import annotations

import asyncio
import time
import warnings
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath

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
    "Settings",
    "acollect",
    "collect",
    "names",
    "score",
    "stated_spans",
]

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
    """

    text: str
    score: float = 0.0
    document_ids: tuple[str, ...] = ()
    spans: tuple[Span, ...] = ()


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


def names(*candidates: object) -> tuple[str, ...]:
    """Those of the candidates that can name a document, each once."""
    return tuple(dict.fromkeys(each for each in candidates if isinstance(each, str) and each))


def stated_spans(spans: object, start: object, end: object, text: str) -> tuple[Span, ...]:
    """The spans that metadata states: the adapters' own, or a start with an end or the text's length."""
    if found := decode_spans(spans):
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
            spans = piece.spans
            found = self._aligner.locate(piece.text, document_id=document_id, spans=spans, score=piece.score)
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


@dataclass
class _Answers:
    """Located answers and failures, as they come in."""

    benchmark: Benchmark
    settings: Settings
    locator: Locator
    results: dict[str, list[Retrieved]] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    began: float = field(default_factory=time.perf_counter)

    def add(self, query: Query, pieces: list[Piece]) -> None:
        self.results[query.id] = [self.locator.locate(piece) for piece in pieces]
        self._tell()

    def fail(self, query: Query, error: Exception) -> None:
        self.failures[query.id] = f"{type(error).__name__}: {error}"
        if not self.results and len(self.failures) >= _HOPELESS:
            raise self._hopeless() from error
        self._tell()

    def _tell(self) -> None:
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


def collect(
    answer: Callable[[str], list[Piece]],
    benchmark: Benchmark,
    *,
    name: str,
    pool: Sequence[Piece] | None = None,
    settings: Settings | None = None,
) -> Run:
    """Ask every question of the benchmark, one after the other.

    Raises:
        DataError: an answer is of the wrong kind.
        ModelError: every question failed, or the first few did.
    """
    settings = settings or Settings()
    answers = _Answers(benchmark, settings, Locator(benchmark))
    for query in benchmark.queries:
        for wait, last in _attempts(settings):
            time.sleep(wait)
            try:
                pieces = answer(query.text)
            except DataError as error:
                raise DataError(f"question {query.id}: {error}") from error
            except Exception as error:  # noqa: BLE001  a retriever may raise anything; the run tells
                if last:
                    answers.fail(query, error)
            else:
                answers.add(query, pieces)
                break
    return answers.run(name, pool)


async def acollect(
    answer: Callable[[str], Awaitable[list[Piece]]],
    benchmark: Benchmark,
    *,
    name: str,
    pool: Sequence[Piece] | None = None,
    settings: Settings | None = None,
) -> Run:
    """`collect`, with several questions under way at a time."""
    settings = settings or Settings()
    answers = _Answers(benchmark, settings, Locator(benchmark))
    free = asyncio.Semaphore(settings.concurrency)

    async def ask(query: Query) -> None:
        for wait, last in _attempts(settings):
            await asyncio.sleep(wait)
            try:
                pieces = await answer(query.text)
            except DataError as error:
                raise DataError(f"question {query.id}: {error}") from error
            except Exception as error:  # noqa: BLE001  as above
                if last:
                    answers.fail(query, error)
            else:
                answers.add(query, pieces)
                break

    async def bounded(query: Query) -> None:
        async with free:
            await ask(query)

    tasks = [asyncio.ensure_future(bounded(query)) for query in benchmark.queries]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
    return answers.run(name, pool)


def _attempts(settings: Settings) -> list[tuple[float, bool]]:
    """Seconds to wait before each attempt, and whether it is the last one."""
    waits = settings.waits()
    return [(wait, turn == len(waits) - 1) for turn, wait in enumerate(waits)]


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


def score(
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
