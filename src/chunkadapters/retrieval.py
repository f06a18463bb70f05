"""`RetrieverHooks`: a framework's four public functions, made of how it is asked and what its answers are."""

from __future__ import annotations

import asyncio
import json
import time
import warnings
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from inspect import Parameter, signature
from io import FileIO
from pathlib import Path, PurePath
from types import TracebackType
from typing import Any, Generic, TypeVar

from chunkadapters.models import at_once, digest_of, finished, plain, settings_of, without_secrets
from chunkadapters.places import decode_spans
from chunkcore.concurrency import Progress
from chunkcore.datasets import load_dataset
from chunkcore.document import Span
from chunkcore.errors import DataError, ModelError, OptionError
from chunkcore.evaluation.alignment import Aligner
from chunkcore.evaluation.benchmarks.benchmark import Benchmark, Query
from chunkcore.evaluation.measures import Depth, Measure, get_measure, measures_at, retrieval_measures
from chunkcore.evaluation.results import Report
from chunkcore.evaluation.scoring import Scorer
from chunkcore.files import append_lines
from chunkcore.run import Retrieved, Run

__all__ = [
    "Answers",
    "Attempt",
    "KeptAnswers",
    "Locator",
    "Piece",
    "Progress",
    "QuestionScorer",
    "RetrievalWarning",
    "RetrieverHooks",
    "Settings",
    "System",
    "benchmark_of",
    "depth_measures",
    "described",
    "measures_of",
    "names",
    "settings_mark",
    "stated_spans",
    "telling",
]


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

    Attributes:
        misplaced: how many pieces stated places in a document that hold another text there.
    """

    def __init__(self, benchmark: Benchmark) -> None:
        self._aligner = Aligner(benchmark.documents)
        self._texts = {document.id: document.text for document in benchmark.documents}
        self._names = _unique(self._texts)
        self.misplaced = 0

    def locate(self, piece: Piece) -> Retrieved:
        """Where the piece stands, by what it states first and by its text otherwise."""
        document_id = self._document(piece)
        if document_id:
            # What a model wrote stands nowhere: its passage does.
            text = "" if piece.derived else piece.text
            found = self._aligner.locate(text, document_id=document_id, spans=piece.spans, score=piece.score)
            if piece.derived:
                found = replace(found, text=piece.text)
            self.misplaced += bool(text and piece.spans and found.how != "spans")
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


@contextmanager
def telling(progress: Progress | bool | None) -> Iterator[Progress | None]:
    """What is told of progress: to the function, or for True to a bar on standard error, which goes in the end."""
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


_DEPTH = 5


def settings_mark(asked: Any, is_part: Callable[[Any], bool]) -> str:
    """A mark of what answers depend on, as far as an object tells; see `described`."""
    return digest_of(described(asked, is_part))


def described(value: Any, is_part: Callable[[Any], bool], depth: int = _DEPTH) -> Any:
    """What a retriever was set to, and its parts were, as JSON knows it.

    Settings are what the class's constructor takes: what an object counts or keeps while it works is none. Of objects
    that are no parts, such as stores, only the class is told.

    Args:
        value: the retriever, or anything that it holds.
        is_part: whether an object is looked into.
        depth: how far.
    """
    if depth and is_part(value):
        known = _parameters(type(value))
        found = {
            key: described(held, is_part, depth - 1)
            for key, held in settings_of(value)
            if key.lstrip("_") in known or key in known
        }
        return [_name(type(value)), found]
    if depth and isinstance(value, list | tuple):
        return [described(each, is_part, depth - 1) for each in value]
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


_FORMAT = "chunkadapters answers 2"


class KeptAnswers:
    """A file of JSON lines: which system, then a line a question that it answered.

    Answers are kept as they came, and located anew each time. A last line that is not whole, as a process leaves it
    that was killed, is cut off.

    Args:
        path: the file, which need not be there; None to keep nothing.
        system: whose answers these are.
        settings: a mark of what that system is set to.

    Raises:
        DataError: the file is another one, of another system or other settings, damaged before its end, or cannot be
            written.
    """

    def __init__(self, path: Path | str | None, system: str, settings: str = "") -> None:
        self._path = None if path is None else Path(path)
        self._system = system
        self._settings = settings
        self._known: dict[str, list[Piece]] = {}
        self._file: FileIO | None = None

    def __enter__(self) -> KeptAnswers:
        if self._path is None:
            return self
        try:
            self._file = self._path.open("a+b", buffering=0)
            self._file.seek(0)
            data = self._file.read()
        except OSError as error:
            raise DataError(f"{self._path} cannot be read and written: {error.strerror or error}") from error
        try:
            self._take(data)
        except BaseException:
            self._file.close()
            raise
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._file is not None:
            self._file.close()

    def fetch(self, question: str) -> list[Piece] | None:
        """What was answered to a question; None where nothing was."""
        return self._known.get(question)

    def keep(self, question: str, pieces: Sequence[Piece]) -> None:
        """Write an answer down, at once."""
        self._known[question] = list(pieces)
        self._write({"question": question, "pieces": [_plain(each) for each in pieces]})

    def _write(self, entry: dict[str, Any]) -> None:
        if self._file is None:
            return
        try:
            append_lines(self._file, json.dumps(entry).encode("ascii") + b"\n")
        except OSError as error:
            raise DataError(
                f"{self._path} cannot be written: {error.strerror or error}; what was answered before is kept there"
            ) from error

    def _take(self, data: bytes) -> None:
        """Read what is there, and cut off or begin what is not whole. A file of others is left as it is."""
        whole = data.rfind(b"\n") + 1
        header = {"format": _FORMAT, "system": self._system, "settings": self._settings}
        if not whole and not json.dumps(header).encode("ascii").startswith(data):
            raise self._foreign(1)
        self._read(data[:whole].splitlines())
        if self._file is not None and whole < len(data):
            self._file.truncate(whole)
        if not whole:
            self._write(header)

    def _foreign(self, line: int, reason: str = "") -> DataError:
        return DataError(
            f"{self._path}, line {line}: expected a retriever's kept answers, found something else{reason}; "
            "name another file, or delete this one to ask again"
        )

    def _read(self, lines: Sequence[bytes]) -> None:
        system, settings = self._system, self._settings
        for number, line in enumerate(lines, start=1):
            try:
                entry = json.loads(line)
                if number == 1:
                    system, settings = _system_of(entry)
                else:
                    self._known[_text(entry["question"])] = [_piece(each) for each in entry["pieces"]]
            except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
                raise self._foreign(number, f" ({type(error).__name__})") from None
        if system != self._system:
            raise DataError(
                f"{self._path} has the answers of {system!r}, and this is {self._system!r}: name another file, or give "
                "the system its name"
            )
        if settings != self._settings:
            raise DataError(
                f"{self._path} has the answers of {system!r} with other settings: name another file, or delete this "
                "one to ask again"
            )


def _system_of(header: Any) -> tuple[str, str]:
    if header["format"] != _FORMAT:
        raise ValueError
    return _text(header["system"]), _text(header["settings"])


def _plain(piece: Piece) -> dict[str, Any]:
    return {
        "text": piece.text,
        "score": piece.score,
        "document_ids": piece.document_ids,
        "spans": [[span.start, span.end] for span in piece.spans],
        "derived": piece.derived,
    }


def _piece(entry: Any) -> Piece:
    return Piece(
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


def benchmark_of(benchmark: Any) -> Benchmark:
    """The benchmark, or the collection of that name that ships with chunkcore.

    Raises:
        OptionError: there is no such collection, or it is neither.
    """
    if isinstance(benchmark, Benchmark):
        return benchmark
    if isinstance(benchmark, str):
        return load_dataset(benchmark)
    raise OptionError(f"expected a Benchmark or a collection's name, got {type(benchmark).__name__}")


def measures_of(measures: Sequence[Measure | str] | Measure | str) -> list[Measure]:
    """The measures; one alone counts as a list of it.

    Raises:
        OptionError: one is none, or is of answers; or there are none.

    >>> [str(each) for each in measures_of("Recall@5")]
    ['Recall@5']
    """
    found = retrieval_measures([measures] if isinstance(measures, Measure | str) else _listed("measures", measures))
    if not found:
        raise OptionError('measures is empty: expected some, such as ["Recall@5", "IoU@5"]')
    return found


def depth_measures(k: Depth | Sequence[Depth], *, pooled: bool) -> list[Measure]:
    """The usual measures at `k`; those that need a pool only where there is one.

    Raises:
        OptionError: a depth is none.
    """
    depths = [k] if isinstance(k, int | str) else _listed("k", k)
    return [each for each in measures_at(depths, ["token"]) if pooled or _needs_no_pool(each)]


def _listed(option: str, values: Any) -> list[Any]:
    try:
        return list(values)
    except TypeError:
        raise OptionError(f"{option}: expected one or a list of them, got {type(values).__name__}") from None


def _needs_no_pool(measure: Measure) -> bool:
    return not measure.needs_pool


class QuestionScorer:
    """Scores what was retrieved for a question by the benchmark's evidence for it. Documents are read once.

    Args:
        benchmark: documents, questions and the spans that answer them; or a shipped collection's name.
        counter: whose tokens are counted.

    Raises:
        OptionError: no such collection or counter.
    """

    def __init__(self, benchmark: Benchmark | str, counter: str = "cl100k_base") -> None:
        benchmark = benchmark_of(benchmark)
        self._scorer = Scorer(benchmark, counter=counter)
        self._locator = Locator(benchmark)
        self._place = {query.id: place for place, query in enumerate(benchmark.queries)}
        self._ids: dict[str, list[str]] = {}
        for query in benchmark.queries:
            self._ids.setdefault(query.text, []).append(query.id)

    def scores(self, question: str, pieces: Sequence[Piece], measures: Sequence[Measure | str]) -> list[float]:
        """A score for each measure.

        Args:
            question: its text, or its id.
            pieces: what was retrieved, best first.
            measures: such as ``["Recall@5", "IoU@5"]``.

        Raises:
            DataError: the benchmark has no such question, or several of that text.
            OptionError: an unknown measure.
        """
        query_id = self._found(question)
        wanted = [get_measure(each) for each in measures]
        run = Run("question", {query_id: [self._locator.locate(each) for each in pieces]})
        report = self._scorer.score(run, wanted)
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
