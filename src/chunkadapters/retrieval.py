"""`RetrieverHooks`: a framework's four public functions that run and score its retrievers as they are deployed."""

from __future__ import annotations

import asyncio
import time
import warnings
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from inspect import Parameter, signature
from math import isfinite
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from chunkadapters.hits import Hit
from chunkadapters.models import at_once, digest_of, finished, plain, secrets_within, settings_of, without_secrets
from chunkcore.concurrency import Progress
from chunkcore.document import Span
from chunkcore.errors import DataError, ModelError, OptionError
from chunkcore.files import AppendLog
from chunkcore.registry import check_number
from chunkcore.run import Retrieved, Run

if TYPE_CHECKING:  # a splitter's import should not wait for the evaluation's
    from chunkcore.evaluation.benchmarks.benchmark import Benchmark, Query
    from chunkcore.evaluation.measures import Depth, Measure
    from chunkcore.evaluation.results import Report
    from chunkcore.evaluation.scoring import Scorer

# ---- What hits are located in


class _Locator:
    """Finds the place of hits in a benchmark's documents.

    A hit's document is matched by id, else by file name, with or without suffix, if only one document has it.

    Attributes:
        misplaced: number of hits that state a place where their document has another text.
    """

    def __init__(self, benchmark: Benchmark) -> None:
        from chunkcore.evaluation.alignment import Aligner

        self._aligner = Aligner(benchmark.documents)
        self._texts = {document.id: document.text for document in benchmark.documents}
        owners: dict[str, set[str]] = {}
        for each in self._texts:
            for name in _short_names(each):
                owners.setdefault(name, set()).add(each)
        self._names = {name: each.pop() for name, each in owners.items() if name and len(each) == 1}
        self.misplaced = 0

    def locate(self, hit: Hit) -> Retrieved:
        """The hit's place: the stated one if it is right, else the place of its text."""
        document_id = self._document(hit)
        if document_id:
            text = "" if hit.derived else hit.text  # text that a model wrote has no place; its passage has
            found = self._aligner.locate(text, document_id=document_id, spans=hit.spans, score=hit.score)
            if hit.derived:
                found = replace(found, text=hit.text)
            self.misplaced += bool(text and hit.spans and found.match != "spans")
            if found.match != "unlocated":
                return found
        # It names no document, or one without its text: look for the text in all.
        return self._aligner.locate(hit.text, score=hit.score)

    def _document(self, hit: Hit) -> str:
        """The document that the hit names; if it names none, the only one with its text at its span."""
        for candidate in hit.document_ids:
            if candidate in self._texts:
                return candidate
        for candidate in hit.document_ids:
            for name in _short_names(candidate):
                if name in self._names:
                    return self._names[name]
        if len(hit.spans) != 1:
            return ""
        start, end = hit.spans[0].start, hit.spans[0].end
        holding = [key for key, text in self._texts.items() if text[start:end] == hit.text]
        return holding[0] if len(holding) == 1 else ""


def _short_names(document_id: str) -> tuple[str, str]:
    path = PurePath(document_id)
    return path.name, path.stem


class QuestionScorer:
    """Scores the hits for one question by the benchmark's evidence. Reads the documents once.

    Args:
        benchmark: a benchmark, or the name of a collection that ships with chunkcore.
        counter: whose tokens are counted.

    Raises:
        OptionError: no such collection or counter.
    """

    def __init__(self, benchmark: Benchmark | str, counter: str = "cl100k_base") -> None:
        from chunkcore.evaluation.scoring import Scorer

        benchmark = _benchmark(benchmark)
        self._scorer = Scorer(benchmark, counter=counter)
        self._locator = _Locator(benchmark)
        self._place = {query.id: place for place, query in enumerate(benchmark.queries)}
        self._ids: dict[str, list[str]] = {}
        for query in benchmark.queries:
            self._ids.setdefault(query.text, []).append(query.id)

    def scores(self, question: str, hits: Sequence[Hit], measures: Sequence[Measure | str]) -> list[float]:
        """One score a measure.

        Args:
            question: its text, or its id.
            hits: best first.
            measures: such as ``["Recall@5", "IoU@5"]``.

        Raises:
            DataError: the benchmark has no such question, or several of that text.
            OptionError: an unknown measure.
        """
        from chunkcore.evaluation.measures import get_measure

        query_id = self._found(question)
        wanted = [get_measure(each) for each in measures]
        report = self._scorer.score(Run("question", {query_id: list(map(self._locator.locate, hits))}), wanted)
        return [float(report.values(each)[self._place[query_id]]) for each in wanted]

    def _found(self, question: str) -> str:
        if question in self._place:
            return question
        ids = self._ids.get(question, [])
        if len(ids) == 1:
            return ids[0]
        if ids:
            raise DataError(f"the benchmark asks {question!r} {len(ids)} times: give the id, one of {', '.join(ids)}")
        raise DataError(f"the benchmark has no question {question!r}: give a question's text or id as it has it")


def _benchmark(benchmark: Any) -> Benchmark:
    from chunkcore.datasets import load_dataset
    from chunkcore.evaluation.benchmarks.benchmark import Benchmark

    if isinstance(benchmark, Benchmark):
        return benchmark
    if isinstance(benchmark, str):
        return load_dataset(benchmark)
    raise OptionError(f"expected a Benchmark or a collection's name, got {type(benchmark).__name__}")


def measures_of(measures: Sequence[Measure | str] | Measure | str) -> list[Measure]:
    """The measures, given as a list or as one.

    Raises:
        OptionError: an unknown measure, or one of answers; or an empty list.

    >>> [str(each) for each in measures_of("Recall@5")]
    ['Recall@5']
    """
    from chunkcore.evaluation.measures import Measure, retrieval_measures

    found: list[Measure] = list(
        retrieval_measures([measures] if isinstance(measures, Measure | str) else _listed("measures", measures))
    )
    if not found:
        raise OptionError('measures is empty: expected some, such as ["Recall@5", "IoU@5"]')
    return found


def _listed(option: str, values: Any) -> list[Any]:
    try:
        return list(values)
    except TypeError:
        raise OptionError(f"{option}: expected one or a list of them, got {type(values).__name__}") from None


# ---- A file of answers, so that an interrupted run can go on

_FORMAT = "chunkadapters answers 2"
_ASK_AGAIN = "name another file, or delete this one to ask again"


class AnswersFile:
    """A log of JSON lines: a header with the system, then one line for each answered question.

    It holds the hits as they came; they are located anew each time.

    Args:
        path: the file, see `AppendLog`; None to keep nothing.
        system: the retriever's name.
        settings: a mark of the retriever's settings.

    Raises:
        OptionError: another process is at work on the file.
        DataError: the file is of another system or other settings, is something else, is damaged before its last line,
            or cannot be written.
    """

    def __init__(self, path: Path | str | None, system: str, settings: str = "") -> None:
        self._path = path
        self._header = {"format": _FORMAT, "system": system, "settings": settings}
        self._known: dict[str, list[Hit]] = {}
        self._log: AppendLog | None = None

    def __enter__(self) -> AnswersFile:
        if self._path is None:
            return self
        what = "file of a retriever's kept answers"
        self._log = AppendLog(self._path, self._header, what=what, advice=_ASK_AGAIN, check=self._check)
        for number, entry in self._log.entries:
            try:
                self._known[_text(entry["question"])] = [_hit(each) for each in entry["pieces"]]
            except (ValueError, TypeError, KeyError, OverflowError) as error:
                self._log.close()
                raise DataError(
                    f"{self._path}, line {number}: expected a retriever's kept answers, found something else "
                    f"({type(error).__name__}); {_ASK_AGAIN}"
                ) from None
        return self

    def __exit__(self, *_: object) -> None:
        if self._log is not None:
            self._log.close()

    def fetch(self, question: str) -> list[Hit] | None:
        """The hits for a question; None if it was not answered."""
        return self._known.get(question)

    def keep(self, question: str, hits: Sequence[Hit]) -> None:
        """Write an answer at once."""
        self._known[question] = list(hits)
        if self._log is not None:
            self._log.append({"question": question, "pieces": [_plain(each) for each in hits]})

    def _check(self, header: Mapping[str, Any]) -> None:
        system = header.get("system")
        if system != self._header["system"]:
            raise DataError(
                f"{self._path} has the answers of {system!r}, and this is {self._header['system']!r}: name another "
                "file, or give the system its name"
            )
        if header.get("settings") != self._header["settings"]:
            raise DataError(f"{self._path} has the answers of {system!r} with other settings: {_ASK_AGAIN}")


def _plain(hit: Hit) -> dict[str, Any]:
    return {
        "text": hit.text,
        "score": hit.score if isfinite(hit.score) else str(hit.score),
        "document_ids": hit.document_ids,
        "spans": [[span.start, span.end] for span in hit.spans],
        "derived": hit.derived,
    }


def _hit(entry: Any) -> Hit:
    return Hit(
        text=_text(entry["text"]),
        score=float(entry["score"]),
        document_ids=tuple(_text(each) for each in entry["document_ids"]),
        spans=tuple(Span(start, end) for start, end in entry["spans"]),
        derived=entry["derived"] is True,
    )


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


_DEPTH = 5


def settings_mark(retriever: Any, is_part: Callable[[Any], bool]) -> str:
    """A mark of a retriever's settings and its parts' settings, for `AnswersFile`.

    Settings are what a class's constructor takes; counts and caches are none. An object that is no part, such as a
    store, counts by its class only.

    Args:
        retriever: a retriever, or a list of what it is made of.
        is_part: whether an object's own settings count.
    """
    return digest_of(_settings(retriever, is_part, _DEPTH))


def _settings(value: Any, is_part: Callable[[Any], bool], depth: int) -> Any:
    if depth and is_part(value):
        known = _parameters(type(value))
        found = {
            key: _settings(held, is_part, depth - 1)
            for key, held in settings_of(value)
            if key.lstrip("_") in known or key in known
        }
        return [_name(type(value)), found]
    if depth and isinstance(value, list | tuple):
        return [_settings(each, is_part, depth - 1) for each in value]
    if isinstance(value, Mapping) or value is None:
        return plain(value)
    said = plain(value)
    return _name(type(value)) if said is None else said


def _parameters(cls: type) -> set[str]:
    found = set(getattr(cls, "model_fields", ()))  # pydantic's
    for each in cls.__mro__[:-1]:
        if "__init__" in each.__dict__:
            found.update(signature(each.__dict__["__init__"]).parameters)
    return found


def _name(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


# ---- Running a retriever

# If so many first questions fail, the rest are not asked.
_HOPELESS = 5

D = TypeVar("D")
R = TypeVar("R")


class RetrievalWarning(UserWarning):
    """Some questions were not answered, or some hits could not be located."""


@dataclass(frozen=True, slots=True)
class DeployedRetriever:
    """How a framework's retriever is asked.

    Attributes:
        name: its name in tables, unless the user gives one.
        ask: from a question to the framework's answer.
        aask: the same, asynchronously.
        parts: the retriever, or a list of what it is made of: its answers depend on their settings (see
            `settings_mark`), and no message repeats their secrets.
        is_part: whether an object's own settings count.
    """

    name: str
    ask: Callable[[str], Any]
    aask: Callable[[str], Awaitable[Any]]
    parts: Any
    is_part: Callable[[Any], bool]


@dataclass(frozen=True, slots=True)
class RunSettings:
    """How a retriever is run: retries, concurrency, progress and the file of answers."""

    retries: int
    retry_wait: float
    progress: Progress | bool | None
    answers_file: Path | str | None
    concurrency: int = 8

    def __post_init__(self) -> None:
        check_number("retries", self.retries)
        check_number("retry_wait", self.retry_wait, whole=False)
        check_number("concurrency", self.concurrency, 1)
        if not (self.progress is None or isinstance(self.progress, bool) or callable(self.progress)):
            raise OptionError(f"progress is True, False or a function of (stage, done, total), got {self.progress!r}")
        if not (self.answers_file is None or isinstance(self.answers_file, str | Path)):
            raise OptionError(f"answers_file is a file's path, got {self.answers_file!r}")


@dataclass
class RetrieverRun:
    """One run of a retriever over a benchmark's questions."""

    benchmark: Benchmark
    how: RunSettings
    system: DeployedRetriever
    hits_of: Callable[[Any], list[Hit]]
    locator: _Locator
    kept: AnswersFile
    progress: Progress | None
    results: dict[str, list[Retrieved]] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    began: float = field(default_factory=time.perf_counter)

    async def ask(
        self, query: Query, ask: Callable[[str], Awaitable[Any]], pause: Callable[[float], Awaitable[None]]
    ) -> None:
        """Ask one question, again after an exception, unless the file has its answer."""
        hits = self.kept.fetch(query.text)
        reason: Exception | None = None
        waits = [0.0, *(self.how.retry_wait * 2**turn for turn in range(self.how.retries))]
        for wait in waits if hits is None else ():
            await pause(wait)
            try:
                hits = self.hits_of(await ask(query.text))
            except DataError as error:
                raise DataError(f"question {query.id}: {error}") from error
            except Exception as error:  # noqa: BLE001  # a retriever may raise anything
                reason = error
            else:
                self.kept.keep(query.text, hits)
                break
        if hits is not None:
            self.results[query.id] = list(map(self.locator.locate, hits))
        else:
            secrets = secrets_within(self.system.parts)
            self.failures[query.id] = f"{type(reason).__name__}: {without_secrets(reason, secrets)}"
            self._check_hope()
        if self.progress is not None:
            self.progress("retrieve", len(self.results) + len(self.failures), len(self.benchmark.queries))

    def _check_hope(self, most: int = _HOPELESS) -> None:
        if self.results or len(self.failures) < most:
            return
        query_id, reason = next(iter(self.failures.items()))
        raise ModelError(
            f"the retriever answered none of the first {len(self.failures)} questions, each asked "
            f"{self.how.retries + 1} times; {query_id}: {reason}"
        )

    def run(self, name: str, pool: Sequence[Hit] | None) -> Run:
        if self.failures:
            self._check_hope(most=1)
        misplaced = self.locator.misplaced  # among the answers; the pool is located below
        seconds = {"search": time.perf_counter() - self.began}
        order = [query.id for query in self.benchmark.queries]
        run = Run(
            name=name,
            results={key: self.results[key] for key in order if key in self.results},
            pool=None if pool is None else list(map(self.locator.locate, pool)),
            seconds=seconds,
            failures={key: self.failures[key] for key in order if key in self.failures},
        )
        for message in _warnings(run, len(order), misplaced):
            warnings.warn(message, RetrievalWarning, stacklevel=3)
        return run


def _warnings(run: Run, asked: int, misplaced: int) -> Iterator[str]:
    if run.failures:
        few = "; ".join(f"{key}: {reason}" for key, reason in list(run.failures.items())[:3])
        yield (
            f"{len(run.failures)} of {asked} questions went unanswered and score 0 ({few}); "
            "Run.failures has each with its reason"
        )
    found = [each for results in run.results.values() for each in results]
    lost = sum(each.match == "unlocated" for each in found)
    if found and lost == len(found):
        yield f"none of the {lost} answers stands in the benchmark's documents: was the index built from other texts?"
    elif misplaced:
        yield (
            f"{misplaced} of {len(found)} answers state a place where another text stands, and were sought by their "
            "text: has a document changed since it was indexed, or does a splitter miscount?"
        )


@contextmanager
def _shown(progress: Progress | bool | None) -> Iterator[Progress | None]:
    """The function to report progress to; for True a bar on standard error, which disappears at the end."""
    if not isinstance(progress, bool):
        yield progress
        return
    if not progress:
        yield None
        return
    from rich.console import Console  # slow to import
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("questions"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("questions", total=None)
        yield lambda stage, done, total: bar.update(task, completed=done, total=total)


class RetrieverHooks(Generic[R, D]):
    """Makes a framework's four public functions; `R` is its retriever, `D` its document.

    Args:
        system: from a retriever and the framework's own options. Raises `DataError` for anything else.
        hits: from an answer, or a pool, to hits. Raises `DataError` for anything but a list of documents.
    """

    def __init__(self, system: Callable[..., DeployedRetriever], hits: Callable[[Any], list[Hit]]) -> None:
        self._system = system
        self._hits = hits

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
        """Ask a retriever every question of a benchmark, and locate its hits. Nothing is indexed again.

        A hit is located by its metadata if they are right (the source's id or path, with offsets or ``spans``), else by
        its text.

        Args:
            retriever: any retriever of LlamaIndex; any of LangChain, or a runnable from a string to documents; any of
                Haystack, or a whole pipeline.
            benchmark: whose documents the retriever searches; or the name of a collection that ships with chunkcore.
            name: the system's name in tables; by default the retriever's own.
            pool: everything the retriever could have returned, for PrecisionOmega and k = "min".
            retries: how often a question is asked again after an exception.
            retry_wait: seconds before the first retry; doubled for each further one.
            progress: called as ``progress("retrieve", done, total)``; True for a bar on standard error.
            answers_file: keeps every answer as it comes: a run that was interrupted, or had failures, asks only the
                rest. The file belongs to one system, by its name and, where known, its settings. Delete it when the
                index has changed.
            asked: the framework's own options, such as Haystack's sockets.

        Returns:
            The run. `Run.failures` has the questions that failed to the last, with reasons; a warning says so.

        Raises:
            DataError: `retriever` is no retriever, or does not return the framework's documents; or `answers_file` is
                of another system.
            ModelError: every question failed, or the first five did.
        """
        how = RunSettings(retries, retry_wait, progress, answers_file)
        asking = self._asking(retriever, benchmark, name, how, asked)
        with asking as run:
            for query in run.benchmark.queries:
                finished(run.ask(query, at_once(run.system.ask), at_once(time.sleep)))
        return run.run(name or run.system.name, self._pool(pool))

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
        """`run_retriever` by the retriever's asynchronous method, with at most `concurrency` questions at a time."""
        how = RunSettings(retries, retry_wait, progress, answers_file, concurrency)
        free = asyncio.Semaphore(how.concurrency)
        with self._asking(retriever, benchmark, name, how, asked) as run:

            async def ask(query: Query) -> None:
                async with free:
                    await run.ask(query, run.system.aask, asyncio.sleep)

            tasks = [asyncio.ensure_future(ask(query)) for query in run.benchmark.queries]
            try:
                await asyncio.gather(*tasks)
            finally:
                for task in tasks:
                    task.cancel()
        return run.run(name or run.system.name, self._pool(pool))

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
        """Score a deployed retriever.

        Args:
            retriever: see `run_retriever`.
            benchmark: documents, questions and evidence; or the name of a collection that ships with chunkcore.
            measures: one or a list, such as ``["Recall@5", "Precision@5"]``; by default Recall, Precision, IoU and F1
                at `k`, and PrecisionOmega if there is a ``pool``.
            k: how many hits count in the default measures.
            counter: whose tokens are counted.
            how: other arguments of `run_retriever`: ``name``, ``pool``, ``retries``, ``retry_wait``, ``progress``,
                ``answers_file``, and the framework's own.

        Returns:
            The report: scores per question, how many hits were located (`Report.located`), and the questions without
            an answer (`Report.unanswered`).

        Raises:
            OptionError: an unknown measure, depth, counter or option; before any question is asked.
        """
        scorer, wanted = _scoring(benchmark, measures, k, counter, how)
        return scorer.score(self.run_retriever(retriever, scorer.benchmark, **how), wanted)

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
        scorer, wanted = _scoring(benchmark, measures, k, counter, how)
        return scorer.score(await self.arun_retriever(retriever, scorer.benchmark, **how), wanted)

    @contextmanager
    def _asking(
        self, retriever: R, benchmark: Benchmark | str, name: str | None, how: RunSettings, options: dict[str, Any]
    ) -> Iterator[RetrieverRun]:
        system = self._system(retriever, **self._checked(options))
        benchmark = _benchmark(benchmark)
        mark = "" if how.answers_file is None else settings_mark(system.parts, system.is_part)
        kept = AnswersFile(how.answers_file, name or system.name, mark)
        with kept, _shown(how.progress) as progress:
            yield RetrieverRun(benchmark, how, system, self._hits, _Locator(benchmark), kept, progress)

    def _checked(self, options: dict[str, Any]) -> dict[str, Any]:
        if "concurrency" in options:
            raise OptionError("concurrency is of the asynchronous forms, arun_retriever and aevaluate_retriever")
        parameters = signature(self._system).parameters.values()
        known = [each.name for each in parameters if each.kind is Parameter.KEYWORD_ONLY]
        if unknown := sorted(options.keys() - set(known)):
            among = [*known, "name", "pool", "retries", "retry_wait", "progress", "answers_file"]
            raise OptionError(f"there is no option {unknown[0]!r}; expected one of {', '.join(sorted(among))}")
        return options

    def _pool(self, pool: Iterable[D] | None) -> list[Hit] | None:
        return None if pool is None else self._hits(list(pool))


def _scoring(
    benchmark: Benchmark | str,
    measures: Sequence[Measure | str] | Measure | str | None,
    k: Depth | Sequence[Depth],
    counter: str,
    how: Mapping[str, Any],
) -> tuple[Scorer, list[Measure]]:
    from chunkcore.evaluation.measures import measures_at
    from chunkcore.evaluation.scoring import Scorer

    if measures is None:
        usual = measures_at([k] if isinstance(k, int | str) else _listed("k", k), ["token"])
        wanted = [each for each in usual if not each.needs_pool or how.get("pool") is not None]
    else:
        wanted = measures_of(measures)
    return Scorer(_benchmark(benchmark), counter=counter), wanted
