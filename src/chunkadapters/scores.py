"""Scores of a framework's retriever: `RetrieverHooks` makes the four public functions that run and score it."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from inspect import signature
from itertools import chain
from types import UnionType
from typing import TYPE_CHECKING, Any, Generic, TypedDict, TypeVar

from typing_extensions import Unpack

from chunkadapters.models import at_once, finished, told_openly
from chunkadapters.places import ALSO_IN, PAGE_KEYS, PAGES, SPANS, MetadataLike, page_of
from chunkcore.concurrency import Progress
from chunkcore.errors import DataError, ModelError, OptionError, echo, shortened, warn_user
from chunkcore.locating import (
    NAMING_KEYS,
    NO_PAGE,
    DocumentNames,
    Hit,
    Locator,
    Reason,
    StatedPlace,
    Verdict,
    names_of,
    read_spans,
)
from chunkcore.locating.alignment import find_quote
from chunkcore.options import check_number, suggesting
from chunkcore.retrieval.where import allowed_documents
from chunkcore.run import Retrieved, Run
from chunkcore.text import Span

if TYPE_CHECKING:
    from chunkcore.evaluation.benchmarks.benchmark import Benchmark, Query
    from chunkcore.evaluation.measures import Depth, Measure
    from chunkcore.evaluation.results import Report


# ---- Hits in a benchmark's documents

_SHORTEST_QUOTE = 24  # letters: shorter evidence is in hits without a name by chance


class BenchmarkPlaces:
    """Where hits stand in a benchmark's documents.

    An app may read its files with another loader. A hit whose text is in no document then counts for the evidence of
    its question that it holds word for word: `Retrieved.match` is "quoted", and its parts have the words.
    """

    def __init__(self, benchmark: Benchmark) -> None:
        documents = {document.id: document for document in benchmark.documents}
        self.locator = Locator(documents, lenient=True)
        self._names = DocumentNames(documents)

    def answers(self, query: Query, hits: Sequence[Hit]) -> list[Verdict]:
        """The verdicts on the hits for a question."""
        verdicts = self.locator.locate_all(hits)
        for number, (hit, verdict) in enumerate(zip(hits, verdicts, strict=True)):
            if verdict.kind == "elsewhere" and hit.text:
                piece = self._quoted(query, hit, verdict)
                if piece is not None:
                    verdicts[number] = Verdict("placed", piece, verdict.reason, verdict.document)
            elif (
                ALSO_IN in hit.metadata and verdict.piece.match == "spans"
            ):  # no piece of a passage
                piece = replace(verdict.piece, sources=self._also_in(hit))
                verdicts[number] = replace(verdict, piece=piece)
        return verdicts

    def _also_in(self, hit: Hit) -> tuple[Retrieved, ...]:
        """The places of the copies that a passage stands for, as `Passage.metadata` writes them; () for others'."""
        sources = []
        with suppress(AttributeError, KeyError, TypeError, ValueError):  # of another program
            for place in hit.metadata[ALSO_IN]:
                others = place.keys() - {*PAGE_KEYS, *NAMING_KEYS}
                ends = sorted(place[key] for key in others if isinstance(place[key], int))
                stated = StatedPlace(read_spans(place.get(SPANS)) or (Span(*ends),))
                page = NO_PAGE if PAGES in place else page_of(place)
                names = names_of(place["source_id"], *map(place.get, NAMING_KEYS))
                group, *_ = [*self._names.groups(names), []]
                copy = Hit("", names=tuple(group), stated=stated, page=page)
                piece = self.locator.locate(copy).piece
                is_known = page != NO_PAGE or names[0] in group or "#" not in names[0]
                if len(group) == 1 and is_known and piece.spans:
                    sources.append(Retrieved(piece.document_id, piece.spans))
        return tuple(sources)

    def _quoted(self, query: Query, hit: Hit, verdict: Verdict) -> Retrieved | None:
        name, certainty = verdict.document, 1.0
        parts = []
        for evidence in query.evidence:
            document_id = evidence.document_id
            words = evidence.span.slice(self.locator.documents[document_id].text)
            is_by_chance = not verdict.document and len(words) < _SHORTEST_QUOTE
            if is_by_chance or name not in ("", document_id):
                continue
            quote = find_quote(hit.text, words)
            if quote is not None:
                name, certainty = document_id, min(certainty, quote.certainty)
                text = quote.span.slice(hit.text)
                parts.append(Retrieved(document_id, (evidence.span,), hit.score, text))
        if not parts:
            return None
        spans = tuple(part.spans[0] for part in parts)
        return Retrieved(
            name, spans, hit.score, hit.text, tuple(parts), match="quoted", certainty=certainty
        )


class QuestionScorer:
    """Scores the hits for one question by the evidence of a benchmark, or of a collection that ships with chunkcore."""

    def __init__(self, benchmark: Benchmark | str, counter: str = "cl100k_base") -> None:
        from chunkcore.evaluation.scoring import Scorer

        benchmark = _benchmark(benchmark)
        self._scorer = Scorer(benchmark, counter=counter)
        self._places = BenchmarkPlaces(benchmark)

    def scores(
        self, question: str, hits: Sequence[Hit], measures: Sequence[Measure | str]
    ) -> list[float]:
        """One score a measure; for a text that several questions share, the mean of their scores.

        `question` is a text or an id, `hits` are best first. Raises `DataError`: the benchmark has no such question.
        """
        queries = self._scorer.benchmark.queries
        rows = [row for row, query in enumerate(queries) if query.id == question]
        rows = rows or [row for row, query in enumerate(queries) if query.text == question]
        if not rows:
            raise DataError(
                f"the benchmark has no question {question!r}: give a question's text or id as it has it"
            )
        asked = [queries[row] for row in rows]
        results = {query.id: _pieces(self._places.answers(query, hits)) for query in asked}
        report = self._scorer.score(Run("question", results), measures)
        return [float(report.values(measure)[rows].mean()) for measure in measures]


def _pieces(verdicts: Iterable[Verdict]) -> list[Retrieved]:
    return [verdict.piece for verdict in verdicts]


def _benchmark(benchmark: Benchmark | str) -> Benchmark:
    from chunkcore.datasets import load_dataset
    from chunkcore.evaluation.benchmarks.benchmark import Benchmark

    if isinstance(benchmark, str):
        return load_dataset(benchmark)
    if isinstance(benchmark, Benchmark):
        return benchmark
    raise OptionError(
        f"expected a Benchmark or a collection's name, got {type(benchmark).__name__}: the retriever comes first, "
        "then the benchmark"
    )


# ---- Running a retriever

# If so many first questions fail, the rest are not asked.
_HOPELESS = 5
DEPTHS: tuple[Depth, ...] = ("1000tok", 5)

Retriever = TypeVar("Retriever")


class RetrievalWarning(UserWarning):
    """Some questions were not answered, or some hits could not be located as they say."""


Ask = Callable[[str], object]
AsyncAsk = Callable[[str], Awaitable[object]]
Pause = Callable[[float], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class DeployedRetriever:
    """How a framework's retriever is asked.

    Attributes:
        name: in tables, unless the user gives one.
        ask: from a question to the framework's answer.
        aask: the same, asynchronously.
        parts: what the retriever is made of; no message repeats its secrets.
        filtered: the same retriever with the filter of one question; None if it takes none.
        advice: what to do where it answers no question.
    """

    name: str
    ask: Ask
    aask: AsyncAsk
    parts: object = None
    filtered: Callable[[MetadataLike], DeployedRetriever] | None = None
    advice: str = ""


class _Sockets(TypedDict, total=False):
    query_socket: str | Sequence[str] | None
    documents_socket: str | None
    inputs: Mapping[str, object] | None


class RunOptions(_Sockets, total=False):
    """How a retriever is run; see `RetrieverHooks.run_retriever`."""

    pool: Iterable[Any] | None
    name: str | None
    retries: int
    retry_wait: float
    progress: Progress | None


class _Scored(TypedDict, total=False):
    measures: Sequence[Measure | str] | Measure | str | None
    k: Depth | Sequence[Depth]
    counter: str


class ScoreOptions(_Scored, RunOptions, total=False):
    """How a retriever is run and scored; see `RetrieverHooks.evaluate_retriever`. Hints name the first ones first."""


def check_obeyed(where: MetadataLike, metadata: MetadataLike) -> None:
    """Raise `OptionError`: a filter names a value, and a hit has another one.

    A text and a number are not compared: a store may make one of the other.
    """
    for key, value in where.items():
        kept = metadata.get(key, value)
        are_texts = isinstance(value, str) and isinstance(kept, str)
        are_numbers = isinstance(value, int | float) and isinstance(kept, int | float)
        if kept != value and (are_texts or are_numbers):
            raise OptionError(
                f"the retriever ignored the filter {dict(where)!r:.80}: a hit has {kept!r:.40} for {key!r}. Does every "
                "retriever inside get the filter, in its store's form?"
            )


@dataclass
class RetrieverRun:
    """One run of a retriever over a benchmark's questions; see `RetrieverHooks.run_retriever`."""

    system: DeployedRetriever
    hits_of: Callable[[object], list[Hit]]
    benchmark: Benchmark
    pool: Iterable[object] | None = None
    name: str | None = None
    retries: int = 2
    retry_wait: float = 0.5
    progress: Progress | None = None

    def __post_init__(self) -> None:
        check_number("retries", self.retries)
        check_number("retry_wait", self.retry_wait, whole=False)
        self._places = BenchmarkPlaces(self.benchmark)
        self._pool = None
        if self.pool is not None:
            hits = self.hits_of(list(self.pool))
            self._pool = _pieces(self._places.locator.locate_all(hits))
        self._verdicts: dict[str, list[Verdict]] = {}
        self._failures: dict[str, str] = {}
        self._began = time.perf_counter()
        self._systems = [self._filtered(query) for query in self.benchmark.queries]

    def _filtered(self, query: Query) -> DeployedRetriever:
        """The retriever for a question. Raises `OptionError`: it takes no such filter."""
        if not query.where:
            return self.system
        filtered = f"question {query.id} has a filter (where)"
        if self.system.filtered is None:
            raise OptionError(f"{filtered}, and {self.system.name} takes none in a call")
        allowed_documents(query.where, [])  # raises for operators, and for what equals nothing
        for key, value in query.where.items():
            if not isinstance(value, str | int | float):
                raise OptionError(
                    f"{filtered} with {echo(value)} for {echo(key)}: a framework's retriever gets one text, number, "
                    "true or false a key, which means the same in every store"
                )
        return self.system.filtered(query.where)

    async def ask_all(self, concurrency: int | None) -> None:
        """Ask all questions: by the asynchronous method, at most so many at a time; or one after the other (None)."""
        asked = zip(self.benchmark.queries, self._systems, strict=True)
        if concurrency is None:
            for query, system in asked:
                await self._ask(query, at_once(system.ask), at_once(time.sleep))
            return
        check_number("concurrency", concurrency, 1)
        free = asyncio.Semaphore(concurrency)

        async def ask(query: Query, system: DeployedRetriever) -> None:
            async with free:
                await self._ask(query, system.aask, asyncio.sleep)

        tasks = [asyncio.ensure_future(ask(query, system)) for query, system in asked]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()

    async def _ask(self, query: Query, ask: AsyncAsk, pause: Pause) -> None:
        """Ask one question. Raises `OptionError`: a hit is of a document that the question's filter hides."""
        try:
            hits = await self._hits(query.text, ask, pause)
        except Exception as error:  # noqa: BLE001  # a retriever may raise anything
            self._fail(query, error)
        else:
            verdicts = self._verdicts[query.id] = self._places.answers(query, hits)
            for hit, verdict in zip(hits, verdicts, strict=True):
                document = self._places.locator.documents.get(verdict.piece.document_id)
                more = {} if document is None else document.metadata
                check_obeyed(query.where or {}, {**hit.metadata, **more})
        if self.progress is not None:
            done = len(self._verdicts) + len(self._failures)
            self.progress("retrieve", done, len(self.benchmark.queries))

    async def _hits(self, question: str, ask: AsyncAsk, pause: Pause) -> list[Hit]:
        """The hits for a question, which is asked again after an exception."""
        for turn in range(self.retries):
            try:
                return self.hits_of(await ask(question))
            except (DataError, OptionError):  # another try does not mend it
                raise
            except Exception:  # noqa: BLE001  # as above
                await pause(self.retry_wait * 2**turn)
        return self.hits_of(await ask(question))

    def _fail(self, query: Query, reason: Exception) -> None:
        self._failures[query.id] = told_openly(reason, self.system.parts)
        if self._verdicts or len(self._failures) < min(_HOPELESS, len(self.benchmark.queries)):
            return
        if isinstance(reason, DataError | OptionError):
            raise type(reason)(f"question {query.id}: {reason}") from reason
        first, failure = next(iter(self._failures.items()))
        raise ModelError(
            f"the retriever answered none of the first {len(self._failures)} questions, each asked "
            f"{self.retries + 1} times; {first}: {failure}{self._systems[0].advice}"
        )

    def run(self) -> Run:
        """The answers, in the order of the benchmark's questions; warns of what is wrong with them."""
        seconds = {"search": time.perf_counter() - self._began}
        order = [query.id for query in self.benchmark.queries]
        run = Run(
            name=self.name or self.system.name,
            results={key: _pieces(self._verdicts[key]) for key in order if key in self._verdicts},
            pool=self._pool,
            seconds=seconds,
            failures={key: self._failures[key] for key in order if key in self._failures},
        )
        verdicts = list(chain.from_iterable(self._verdicts.values()))
        if run.failures:
            few = "; ".join(f"{key}: {reason}" for key, reason in list(run.failures.items())[:3])
            warn_user(
                f"{len(run.failures)} of {len(order)} questions went unanswered and score 0 ({few}); "
                "Run.failures has each with its reason",
                RetrievalWarning,
            )
        for message in _place_warnings(verdicts):
            warn_user(message, RetrievalWarning)
        return run


_ADVICE: dict[Reason, str] = {
    "another text stands at its stated place": (
        ", so that it was sought by its text: has a document changed since it was indexed, or does a splitter miscount?"
    ),
    "its stated place cannot be read": ", so that it was sought by its text",
    "its splitter searched for its place, and its text stands several times": (
        ", so that it may have the place of another occurrence: `exact` writes right places"
    ),
}


def _place_warnings(verdicts: Sequence[Verdict]) -> Iterator[str]:
    count = len(verdicts)
    lost = [verdict for verdict in verdicts if verdict.kind == "elsewhere"]
    if lost:
        yield (
            f"{len(lost)} of {count} answers ({100 * len(lost) / count:.0f} %) stand in no document of the benchmark "
            "and count as irrelevant: was the index built from other texts, or are they summaries?"
            f"{_differing(lost)}"
        )
    quoted = [verdict for verdict in verdicts if verdict.piece.match == "quoted"]
    if quoted:
        yield (
            f"{len(quoted)} of {count} answers have another text than their documents, and count by the evidence that "
            f"they hold word for word: give load_benchmark the app's own documents{_differing(quoted)}"
        )
    reasons = Counter(verdict.reason for verdict in verdicts if verdict.piece.spans)
    for reason, advice in _ADVICE.items():
        if reasons[reason]:
            yield f"{reasons[reason]} of {count} answers: {reason}{advice}"


def _differing(verdicts: Iterable[Verdict]) -> str:
    """The documents that some hits name, and whose text is another."""
    names = sorted({verdict.document for verdict in verdicts} - {""})
    return f" (the text differs of {shortened(', '.join(names), 200)})" if names else ""


@dataclass(frozen=True)
class RetrieverHooks(Generic[Retriever]):
    """Makes a framework's four public functions.

    Attributes:
        system: how a retriever is asked; its options have names. Raises `DataError` for anything else.
        hit_of: from a document to a hit.
        kind: the types of what `hit_of` takes.
        answer: what a retriever gives a list of, in words.
        advice: for one that gives a dictionary.
    """

    system: Callable[..., DeployedRetriever]
    hit_of: Callable[[Any], Hit]
    kind: type | UnionType
    answer: str
    advice: str = ""

    @suggesting
    def run_retriever(
        self, retriever: Retriever, benchmark: Benchmark | str, **options: Unpack[RunOptions]
    ) -> Run:
        """Ask a retriever every question of a benchmark, and locate its hits. Nothing is indexed again.

        A hit is located by its metadata if they are right (the source's id or path, with offsets or ``spans``), else by
        its text, else by the evidence that it holds word for word. A question's filter (`Query.where`)
        goes to the retriever in its framework's form: to every retriever inside, beside the filters that these have, or
        it is refused.

        Args:
            retriever: any retriever of LlamaIndex; any of LangChain, or a runnable from a string to documents; a
                component of Haystack, or a `Pipeline`, which is run to its end: leave out a generator that costs money.
            benchmark: whose documents the retriever searches; or the name of a collection that ships with chunkcore.
            pool: everything the retriever could have returned, for PrecisionOmega and k = "min".
            name: the system's name in tables.
            retries: after an exception; by default 2.
            retry_wait: seconds before the first retry, by default 0.5, doubled for each further one.
            progress: called as ``progress("retrieve", done, total)``.
            query_socket: of Haystack: the inputs that take the question, ``"component.input"`` of a pipeline; by
                default the only mandatory string.
            documents_socket: of Haystack: the output that counts; by default the only one of documents.
            inputs: of Haystack: what every run gets besides, such as ``{"retriever": {"top_k": 20}}``.

        `Run.failures` has the questions that failed to the last, with reasons; a warning says so.

        Raises:
            DataError: `retriever` is no retriever, or does not return the framework's documents.
            ModelError: every question failed, or the first five did.
            OptionError: a number is out of range, or the retriever takes no filter in a call and a question has one.
        """
        return finished(self.run(retriever, benchmark, options))

    @suggesting
    async def arun_retriever(
        self,
        retriever: Retriever,
        benchmark: Benchmark | str,
        *,
        concurrency: int = 8,
        **options: Unpack[RunOptions],
    ) -> Run:
        """`run_retriever` by the asynchronous method, with at most `concurrency` questions at a time."""
        return await self.run(retriever, benchmark, options, concurrency)

    @suggesting
    def evaluate_retriever(
        self, retriever: Retriever, benchmark: Benchmark | str, **options: Unpack[ScoreOptions]
    ) -> Report:
        """Score a deployed retriever.

        Args:
            retriever: see `run_retriever`, which has further options, from `pool` on.
            benchmark: documents, questions and evidence; or the name of a collection that ships with chunkcore.
            measures: one or a list, such as ``["Recall@1000tok", "Precision@5"]``; by default Recall, Precision, IoU
                and F1 at `k`, and PrecisionOmega if there is a `pool`.
            k: the depths of the default measures: an equal budget of tokens first, then so many hits; by default
                ``("1000tok", 5)``.
            counter: the tokenizer; by default "cl100k_base".

        Raises `OptionError`, before any question is asked: an unknown measure, depth or counter.
        """
        return finished(self.report(retriever, benchmark, options))

    @suggesting
    async def aevaluate_retriever(
        self,
        retriever: Retriever,
        benchmark: Benchmark | str,
        *,
        concurrency: int = 8,
        **options: Unpack[ScoreOptions],
    ) -> Report:
        """`evaluate_retriever` by the asynchronous method, with at most `concurrency` questions at a time."""
        return await self.report(retriever, benchmark, options, concurrency)

    async def run(
        self,
        retriever: Retriever,
        benchmark: Benchmark | str,
        options: Mapping[str, Any],
        concurrency: int | None = None,
    ) -> Run:
        """The run; without `concurrency` nothing is awaited. Mistakes are found before the first question."""
        from chunkcore.retrieval import Index, RetrievalMethod, get_retriever

        if isinstance(retriever, RetrievalMethod | str):
            get_retriever(retriever).retrieve("")  # raises: a method has no documents
        if isinstance(retriever, Index):
            raise DataError(
                "an index is scored by chunkcore's score(run_retriever(index, benchmark), benchmark)"
            )
        check_is_retriever(retriever)
        sockets = {name: options[name] for name in _Sockets.__annotations__ if name in options}
        others = {name: value for name, value in options.items() if name not in sockets}
        if sockets.keys() - signature(self.system).parameters:
            raise OptionError(
                f"{', '.join(sockets)}: only for Haystack's components and pipelines; leave it out"
            )
        system = self.system(retriever, **sockets)
        run = RetrieverRun(system, self.hits, _benchmark(benchmark), **others)
        await run.ask_all(concurrency)
        return run.run()

    async def report(
        self,
        retriever: Retriever,
        benchmark: Benchmark | str,
        options: Mapping[str, Any],
        concurrency: int | None = None,
    ) -> Report:
        """The scores; as `run`."""
        from chunkcore.evaluation.measures import measures_at, retrieval_measures
        from chunkcore.evaluation.scoring import Scorer

        others = dict(options)
        chosen, depths = others.pop("measures", None), others.pop("k", DEPTHS)
        scorer = Scorer(_benchmark(benchmark), counter=others.pop("counter", "cl100k_base"))
        if chosen is None:
            if isinstance(depths, int | str):
                depths = [depths]
            chosen = measures_at(depths, ["token"])
            if others.get("pool") is None:
                chosen = [measure for measure in chosen if not measure.needs_pool]
        measures = retrieval_measures(chosen)
        run = await self.run(retriever, scorer.benchmark, others, concurrency)
        report = scorer.score(run, measures)
        uncertain = [
            f"{measure} is {measure.show(low)} to {measure.show(high)}"
            for measure, (low, high) in report.bounds.items()
            if low < high
        ]
        if uncertain:
            warn_user(
                f"some hits may stand at other places of their text: {', '.join(uncertain)} (Report.bounds)",
                RetrievalWarning,
            )
        return report

    def hits(self, answer: object) -> list[Hit]:
        """What a retriever answered, as hits. Raises `DataError`: it is no list of the framework's documents."""
        if not isinstance(answer, list | tuple):
            hint = ""
            if isinstance(answer, dict):
                hint = f" with the keys {', '.join(map(str, answer))}{self.advice}"
            raise DataError(
                f"expected a list of {self.answer}, got a {type(answer).__name__}{hint}"
            )
        for document in answer:
            if not isinstance(document, self.kind):
                raise DataError(
                    f"expected {self.answer}, got a {type(document).__name__} among the answers"
                )
        return list(map(self.hit_of, answer))


def check_is_retriever(retriever: object) -> None:
    """Raise `OptionError` for a framework's store or index."""
    if hasattr(retriever, "as_retriever"):
        name = type(retriever).__name__
        raise OptionError(f"{name} is no retriever, but has one: pass its .as_retriever()")
