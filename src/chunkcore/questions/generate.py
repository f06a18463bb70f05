"""`generate_benchmark`: questions about the user's documents, with the places that answer them.

The journal has each call on disk before it is made, each answer before it is used: JSON lines, append-only. A restarted
run asks the same questions in the same order, and `JournaledLLM` replays the answers and failures. Failures of an
endpoint that then ended the run are not replayed.
"""

from __future__ import annotations

import threading
import warnings
from collections import Counter, defaultdict, deque
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from chunkcore.concurrency import Progress
from chunkcore.document import Document, Span
from chunkcore.errors import DataError, ModelError, NoAnswerError, OptionError
from chunkcore.evaluation.benchmarks import load_benchmark
from chunkcore.evaluation.benchmarks.benchmark import Benchmark, Evidence, documents_digest
from chunkcore.evaluation.text_search import fold
from chunkcore.files import AppendLog, installed_version
from chunkcore.models import Embedder
from chunkcore.models.llm import (
    LLM,
    BadAnswerError,
    Estimator,
    Message,
    Prices,
    Reply,
    UnreachableError,
    Usage,
    ask,
    get_llm,
)
from chunkcore.models.llm.base import awaited, count_message_tokens, question_key
from chunkcore.questions.filters import Dropped, Filtered, FilterThresholds, filter_questions
from chunkcore.questions.prompts import (
    MODES,
    Mode,
    NotVerbatimError,
    Sample,
    Schedule,
    Written,
    locate_excerpts,
    prompt_version,
    question_about,
)
from chunkcore.registry import LARGEST, check_number


@dataclass(frozen=True, kw_only=True)
class GenerationOptions:
    """How questions are made.

    Attributes:
        questions: how many to make, before the filters.
        mode: "factual" asks for facts, as the Chroma report does; "realistic" asks vaguely, in everyday words.
        sample_size: characters of a document shown at once.
        earlier: the most earlier questions shown, those about the same document first.
        excerpts: the most excerpts a question may have.
        seed: of the samples and of the earlier questions shown.
        concurrency: questions under way at once, not shown to each other: the questions depend on it.
        retries: after an unreadable answer. Excerpts that are not verbatim reject the question without a retry.
        patience: rejections in a row after which a document is given up.
    """

    questions: int = 100
    mode: Mode = "factual"
    sample_size: int = 4_000
    earlier: int = 50
    excerpts: int = 5
    seed: int = 0
    concurrency: int = 4
    retries: int = 1
    patience: int = 5

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise OptionError(f"mode is one of {', '.join(MODES)}, got {self.mode!r}")
        least = {"sample_size": 100, "earlier": 0, "seed": 0, "retries": 0}
        for name, value in asdict(self).items():
            if name != "mode":
                check_number(name, value, least.get(name, 1), 1_000 if name == "concurrency" else LARGEST)


class BudgetError(ModelError):
    """One more call would exceed the budget."""


Stage = Literal["answer", "excerpts", "question", "relevance", "duplicate"]

_LEAK = 20  # letters and digits; shorter questions occur by chance


@dataclass(frozen=True, slots=True)
class Rejection:
    """A question that is not in the benchmark.

    Attributes:
        id: the id it would have had.
        stage: "answer" (unreadable), "excerpts" (not verbatim), "question" (asked before or copied), or the filter.
        reason: in words.
        question: "" without one.
        excerpts: as the model wrote them.
    """

    id: str
    document_id: str
    sample: Span
    stage: Stage
    reason: str
    question: str = ""
    excerpts: tuple[str, ...] = ()


class Kept(NamedTuple):
    """A question that is kept."""

    id: str
    text: str
    sample: Sample
    spans: tuple[Span, ...]

    @property
    def excerpts(self) -> list[str]:
        return [span.slice(self.sample.document.text) for span in self.spans]


class QuestionWriter:
    """The questions so far. Answers are used in the order of asking, not of arrival."""

    def __init__(self, documents: Sequence[Document], options: GenerationOptions, *, assumed: bool = False) -> None:
        if len({document.id for document in documents}) < len(documents):
            raise DataError("two documents share an id, so a place could not be named: make the ids unique")
        self.options = options
        self.schedule = Schedule(documents, options.sample_size, options.seed, options.patience)
        if not len(self.schedule):
            raise DataError(f"none of the {len(documents)} documents has a letter or a digit to ask about")
        self.kept: list[Kept] = []
        self.rejections: list[Rejection] = []
        self.asked = 0
        self._assumed = assumed
        self._written: list[tuple[str, str]] = []  # document and question, also rejected ones
        self._folded: dict[str, str] = {}  # ids of kept questions

    def run(self, llm: LLM, threads: int, progress: Progress | None) -> None:
        """Ask until there are enough questions or nothing is left to ask."""
        waiting: deque[tuple[str, Sample, Future[Written]]] = deque()
        pool = ThreadPoolExecutor(min(threads, self.options.concurrency))
        try:
            while True:
                while (
                    len(waiting) < self.options.concurrency
                    and len(self.kept) + len(waiting) < self.options.questions
                    and (sample := self.schedule.draw()) is not None
                ):
                    self.asked += 1
                    earlier = self._earlier(sample.document.id)
                    question = question_about(
                        sample.text, earlier, self.options.mode, self.options.excerpts, self.asked
                    )
                    answer = pool.submit(ask, llm, question, retries=self.options.retries)
                    waiting.append((f"g{self.asked}", sample, answer))
                if not waiting:
                    return
                self._take(*waiting.popleft())
                if progress is not None:
                    progress("questions", len(self.kept), self.options.questions)
        except BudgetError:
            for each in waiting:  # answered meanwhile
                try:
                    self._take(*each)
                except UnreachableError:  # calls that were never made reached the cap
                    raise
                except ModelError:
                    pass
            raise
        finally:
            pool.shutdown(cancel_futures=True)  # wait for answers already paid for

    def _earlier(self, document_id: str) -> list[str]:
        """Earlier questions in order, those of this document first, sampled if there are too many."""
        drawn = np.random.default_rng([self.options.seed, self.asked])
        same = [place for place, (name, _) in enumerate(self._written) if name == document_id]
        others = [place for place, (name, _) in enumerate(self._written) if name != document_id]
        chosen: list[int] = []
        for places in (same, others):
            most = min(len(places), self.options.earlier - len(chosen))
            chosen += drawn.choice(places, most, replace=False).tolist() if most else []
        return [self._written[place][1] for place in sorted(chosen)]

    def _take(self, name: str, sample: Sample, answer: Future[Written]) -> None:
        found = self._judge(name, sample, answer)
        self.schedule.settle(sample, kept=isinstance(found, Kept))
        if isinstance(found, Kept):
            self.kept.append(found)
            self._folded[fold(found.text).text] = name
        else:
            self.rejections.append(found)

    def _judge(self, name: str, sample: Sample, answer: Future[Written]) -> Kept | Rejection:
        try:
            written = answer.result()
        except NoAnswerError as error:
            return Rejection(name, sample.document.id, sample.span, "answer", str(error))
        self._written.append((sample.document.id, written.question))
        if self._assumed:
            return Kept(name, written.question, sample, (sample.span,))

        def rejected(stage: Stage, reason: str) -> Rejection:
            return Rejection(name, sample.document.id, sample.span, stage, reason, written.question, written.excerpts)

        folded = fold(written.question).text
        if folded in self._folded:
            return rejected("question", f"it was asked before, as {self._folded[folded]}")
        if len(folded) >= _LEAK and folded in fold(sample.text).text:
            return rejected("question", "it stands in the passage word for word, so that any search finds it there")
        try:
            spans = locate_excerpts(sample, written.excerpts)
        except NotVerbatimError as error:
            return rejected("excerpts", str(error))
        return Kept(name, written.question, sample, tuple(spans))


INTERRUPTED = "it was interrupted"


@dataclass(frozen=True)
class Generated:
    """Questions, and the rejected ones.

    Attributes:
        rows: one question each, as in a ``questions.jsonl``.
        rejections: in the order of asking.
        usage: all calls of the journal, earlier runs included.
        filtered: what the filters did; None without an embedder.
        stopped: why there are too few questions; "" if there are enough.
        unfinished: a cap or Ctrl-C stopped the work; the same call with a higher cap resumes it.
        info: seed, model, prompt, options.
    """

    documents: Sequence[Document]
    rows: Sequence[Mapping[str, Any]]
    rejections: Sequence[Rejection]
    usage: Usage
    filtered: Filtered | None = None
    stopped: str = ""
    unfinished: bool = False
    info: Mapping[str, Any] = field(default_factory=dict)

    def benchmark(self, name: str = "generated") -> Benchmark:
        """The questions as a benchmark, each place verified. Raises `DataError` without questions."""
        return load_benchmark(self.documents, self.rows, name=name)


def generate_benchmark(
    documents: Sequence[Document],
    llm: LLM | str,
    options: GenerationOptions | None = None,
    *,
    journal: Journal | Path | str | None = None,
    budget: CallBudget | None = None,
    embedder: Embedder | None = None,
    thresholds: FilterThresholds | None = None,
    progress: Progress | None = None,
) -> Generated:
    """Questions that a language model writes about passages of the documents, with verbatim excerpts that answer them.

    After the Chroma report, "Dataset Generation" and "Dataset Prefiltering": the model sees a passage and earlier
    questions, and writes a question and up to five excerpts. An excerpt that is not in the passage, apart from white
    space, rejects the question. Only the places of excerpts are kept, so the model can change no text.

    The result depends only on the documents, the options and the model's answers. With a journal no answer is paid for
    twice: a stopped run resumes, and the same call with more questions adds to them.

    Args:
        documents: at least one that is not blank.
        journal: the file of calls and answers; None keeps them in memory.
        budget: caps all runs of the journal; the questions so far are then filtered and returned.
        embedder: for the filters; None for none.
        thresholds: of the filters; None proposes them from the data.
        progress: called with "questions", the number kept, and wanted.

    Raises:
        DataError: no document to ask about, two share an id, or the journal is damaged.
        ModelError: the model cannot be asked, or the embedder failed.

    >>> from chunkcore.models.llm import CallableLLM
    >>> told = '{"oath": "I will.", "question": "Who naps?", "excerpts": ["The fox naps."]}'
    >>> llm = CallableLLM(lambda messages, schema: told, name="always so")
    >>> made = generate_benchmark([Document("fox.txt", "The fox naps.")], llm, GenerationOptions(questions=1))
    >>> made.rows[0]["question"], made.rows[0]["evidence"]
    ('Who naps?', [{'start': 0, 'end': 13, 'text': 'The fox naps.'}])
    """
    options = options or GenerationOptions()
    model = get_llm(llm)
    made = QuestionWriter(documents, options)
    stopped, unfinished = "", False
    with nullcontext(journal) if isinstance(journal, Journal) else Journal(journal) as kept_calls:
        journaled = JournaledLLM(model, kept_calls, budget)
        try:
            made.run(journaled, journaled.concurrency, progress)
        except BudgetError as error:
            stopped, unfinished = str(error), True
        except KeyboardInterrupt:
            if not made.kept:
                raise
            stopped, unfinished = INTERRUPTED, True
        except ModelError as error:
            path = kept_calls.path
            if path is None:
                raise
            raise ModelError(f"{error}. What was answered is kept in {path}: do the same again to go on") from error
    if not stopped and len(made.kept) < options.questions:
        stopped = f"every document was given up after {options.patience} rejections in a row"
    filtered, rejections = None, made.rejections
    gone: dict[int, Dropped] = {}
    if embedder is not None and made.kept:
        filtered = filter_questions(
            [each.text for each in made.kept],
            [[Evidence(each.sample.document.id, span) for span in each.spans] for each in made.kept],
            [each.excerpts for each in made.kept],
            embedder,
            thresholds or FilterThresholds(),
        )
        gone = {each.index: each for each in filtered.dropped}
        more = [_rejection(made.kept[at], each.stage, each.reason) for at, each in gone.items()]
        rejections = sorted([*rejections, *more], key=lambda each: int(each.id[1:]))
    return Generated(
        documents=documents,
        rows=tuple(_row(each, options.mode) for at, each in enumerate(made.kept) if at not in gone),
        rejections=tuple(rejections),
        usage=kept_calls.usage,
        filtered=filtered,
        stopped=stopped,
        unfinished=unfinished,
        info=_info(documents, model, options, made, filtered, embedder),
    )


def estimate_generation(documents: Sequence[Document], options: GenerationOptions | None = None) -> Usage:
    """Calls and tokens (`cl100k_base`) that generating would take. Nothing is asked.

    Assumes that every question is kept, with an answer of about 200 tokens (the Chroma report's mean), and no journal.
    """
    estimator = Estimator()
    made = QuestionWriter(documents, options or GenerationOptions(), assumed=True)
    made.run(estimator, 1, None)
    return estimator.usage


def _row(kept: Kept, mode: Mode) -> dict[str, Any]:
    places = zip(kept.spans, kept.excerpts, strict=True)
    return {
        "id": kept.id,
        "question": kept.text,
        "document_id": kept.sample.document.id,
        "evidence": [{"start": span.start, "end": span.end, "text": text} for span, text in places],
        "mode": mode,
        "sample": [kept.sample.span.start, kept.sample.span.end],
    }


def _rejection(kept: Kept, stage: Stage, reason: str) -> Rejection:
    where = kept.sample
    return Rejection(kept.id, where.document.id, where.span, stage, reason, kept.text, tuple(kept.excerpts))


def _info(
    documents: Sequence[Document],
    llm: LLM,
    options: GenerationOptions,
    made: QuestionWriter,
    filtered: Filtered | None,
    embedder: Embedder | None,
) -> dict[str, Any]:
    represented = {kept.sample.document.id for kept in made.kept}
    return {
        "chunkcore": installed_version(),
        "model": llm.name,
        "model_fingerprint": llm.fingerprint,
        "prompt": prompt_version(options.mode),
        "seed": options.seed,
        "options": asdict(options),
        "documents": len(documents),
        "documents_hash": documents_digest(documents),
        "asked": made.asked,
        "kept_before_filters": len(made.kept),
        "without_question": [each.id for each in documents if each.id not in represented],
        "embedder": embedder.name if embedder is not None else None,
        "duplicate_threshold": filtered.duplicate if filtered else None,
        "relevance_threshold": filtered.relevance if filtered else None,
    }


@dataclass(frozen=True, kw_only=True)
class CallBudget:
    """A cap on all calls of a journal, earlier runs included.

    Attributes:
        max_calls: None for no limit.
        max_cost: in the prices' currency; None for no limit. Unknown answers count 200 tokens, so longer ones can
            exceed it.
        prices: of tokens; needed for `max_cost`.
    """

    max_calls: int | None = None
    max_cost: float | None = None
    prices: Prices | None = None

    def __post_init__(self) -> None:
        if self.max_calls is not None:
            check_number("max_calls", self.max_calls)
        if self.max_cost is not None:
            check_number("max_cost", self.max_cost, whole=False)
        if self.max_cost is not None and self.prices is None:
            raise OptionError("max_cost needs the prices of a million tokens: give them, or cap the calls instead")

    def check(self, spent: Usage) -> None:
        """Raise `BudgetError` if this is too much."""
        if self.max_calls is not None and spent.calls > self.max_calls:
            raise BudgetError(f"the cap of {self.max_calls:,} calls is reached")
        if self.max_cost is not None and self.prices is not None and spent.cost(self.prices) > self.max_cost:
            raise BudgetError(f"one more call could cost more than the cap of {self.max_cost:g}")


_HEADER = {"journal": "chunkcore generate", "version": 1}
FINISHES = ("stop", "length", "refusal")
_IN_A_ROW = 10  # more failures in a row are the endpoint's, not a question's
_ANSWER_TOKENS = 200  # of an unknown answer: the Chroma report's mean


@dataclass(frozen=True, slots=True)
class FailedCall:
    """A call without a readable answer; `again` says whether the question may be repeated."""

    reason: str
    again: bool

    def error(self) -> Exception:
        """The exception for `ask`."""
        return BadAnswerError(self.reason) if self.again else NoAnswerError(self.reason)


class Journal:
    """Calls to models and their answers, in memory and, with a path, on disk.

    One process at a time may have the file open. An unfinished last line is cut off.

    Raises:
        OptionError: another process has the file open.
        DataError: the file is no journal, is damaged, or cannot be read or written.

    >>> with Journal() as journal:
    ...     journal.ask("k", 120)
    ...     journal.answer("k", Reply("It is.", output_tokens=3))
    ...     journal.fetch("k").text, journal.usage.calls, journal.usage.input_tokens
    ('It is.', 1, 120)
    """

    def __init__(self, path: Path | str | None = None) -> None:
        self.path = None if path is None else Path(path)
        self._lock = threading.RLock()
        self._replies: dict[str, Reply] = {}
        self._failures: dict[str, list[FailedCall]] = defaultdict(list)
        self._unwritten: list[tuple[str, FailedCall]] = []
        self._asked: dict[str, int] = {}  # question tokens by key
        self._spent = Usage()
        self._log: AppendLog | None = None
        if self.path is not None:
            self._log = AppendLog(self.path, _HEADER, what="journal of questions", advice="name another output")
            if self._log.cut_off:
                warnings.warn(f"{self.path}: the last line was not finished and is cut off", stacklevel=2)
            for number, entry in self._log.entries:
                try:
                    self._take(entry)
                except (ValueError, KeyError, TypeError) as error:
                    self._log.close()
                    raise DataError(
                        f"{self.path}, line {number}: no line of a journal; delete it, and its call is made again"
                    ) from error

    def fetch(self, key: str) -> Reply | None:
        """The recorded answer, or None."""
        return self._replies.get(key)

    def failures(self, key: str) -> Sequence[FailedCall]:
        return tuple(self._failures.get(key, ()))

    def ask(self, key: str, input_tokens: int, budget: CallBudget | None = None) -> None:
        """Record a call before it is made; it is on disk on return. Raises `BudgetError` over the budget."""
        with self._lock:
            if budget is not None:
                budget.check(self._spent + _unanswered(input_tokens))
            self._record({"asked": key, "input_tokens": input_tokens})

    def answer(self, key: str, reply: Reply) -> None:
        """Record an answer; it is on disk on return."""
        with self._lock:
            self._note_answered(key, reply)
            failed = [{"failed": name, **asdict(failure)} for name, failure in self._unwritten]
            self._unwritten.clear()
            self._append(*failed, {"answered": key, **asdict(reply)})

    def withdraw(self, key: str) -> None:
        """Record that a call was never made; it no longer counts."""
        with self._lock:
            self._record({"withdrawn": key})

    def fail(self, key: str, failure: FailedCall) -> None:
        """Note a failure, recorded with the next answer: a dead endpoint leaves no trace. Raises `ModelError` at 10 in
        a row.
        """
        with self._lock:
            self._failures[key].append(failure)
            self._unwritten.append((key, failure))
            if len(self._unwritten) >= _IN_A_ROW:
                raise ModelError(f"{_IN_A_ROW} calls in a row failed, the last one: {failure.reason}")

    @property
    def usage(self) -> Usage:
        """All calls, with those that failed or were interrupted.

        `Usage.estimated_calls` are calls whose tokens are counted here; a missing answer counts 200.
        """
        return self._spent

    @property
    def unanswered(self) -> int:
        """Calls that failed or were interrupted."""
        return self._spent.calls - len(self._replies)

    def close(self) -> None:
        if self._log is not None:
            self._log.close()

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _note_answered(self, key: str, reply: Reply) -> None:
        asked = self._asked.get(key, 0)
        self._spent += Usage.of(asked, reply) - _unanswered(asked)
        self._replies[key] = reply

    def _append(self, *entries: Mapping[str, Any]) -> None:
        if self._log is not None:
            self._log.append(*entries)

    def _record(self, entry: Mapping[str, Any]) -> None:
        self._append(entry)
        self._take(entry)

    def _take(self, entry: Mapping[str, Any]) -> None:
        if "asked" in entry:
            count = self._asked[_text(entry["asked"])] = _count(entry["input_tokens"])
            self._spent += _unanswered(count)
        elif "withdrawn" in entry:
            self._spent -= _unanswered(self._asked.pop(_text(entry["withdrawn"])))
        elif "failed" in entry:
            failure = FailedCall(_text(entry["reason"]), entry["again"] is True)
            self._failures[_text(entry["failed"])].append(failure)
        else:
            if entry["finish"] not in FINISHES:
                raise ValueError(entry["finish"])
            read, written = (
                None if entry[name] is None else _count(entry[name]) for name in ("input_tokens", "output_tokens")
            )
            reply = Reply(_text(entry["text"]), entry["finish"], read, written, _count(entry["cached_tokens"]))
            self._note_answered(_text(entry["answered"]), reply)


def _unanswered(input_tokens: int) -> Usage:
    return Usage(calls=1, input_tokens=input_tokens, output_tokens=_ANSWER_TOKENS, estimated_calls=1)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value


def _count(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(value)
    return value


class JournaledLLM:
    """A language model that replays answers and failures from a journal."""

    def __init__(self, llm: LLM, journal: Journal, budget: CallBudget | None = None) -> None:
        self.llm = llm
        self.journal = journal
        self.budget = budget
        self.name = llm.name
        self.fingerprint = llm.fingerprint
        self.concurrency = max(1, int(getattr(llm, "concurrency", 1)))
        self._tries: Counter[str] = Counter()  # failures replayed for each question
        self._locks: dict[str, threading.Lock] = defaultdict(threading.Lock)
        self._guard = threading.Lock()

    def complete(self, messages: Sequence[Message], schema: Mapping[str, Any] | None = None) -> Any:
        """The journal's answer, else the model's. Raises `BudgetError` if the budget is spent, or as the model does."""
        key = f"{self.fingerprint}:{question_key(messages, schema).hex()}"
        with self._guard:
            lock = self._locks[key]
        with lock:  # concurrent callers get this answer
            failures = self.journal.failures(key)
            if self._tries[key] < len(failures):
                self._tries[key] += 1
                raise failures[self._tries[key] - 1].error()
            kept = self.journal.fetch(key)
            if kept is not None:
                return kept
            self.journal.ask(key, count_message_tokens(messages), self.budget)
            try:
                answer = awaited(self.llm.complete(messages, schema))
            except UnreachableError:
                self.journal.withdraw(key)
                raise
            except (NoAnswerError, BadAnswerError, TimeoutError) as error:
                self._tries[key] += 1
                reason = "expected an answer in time, got none" if isinstance(error, TimeoutError) else str(error)
                failure = FailedCall(reason, again=not isinstance(error, NoAnswerError))
                self.journal.fail(key, failure)
                raise failure.error() from error
            reply = Reply(answer) if isinstance(answer, str) else answer
            if isinstance(reply, Reply) and isinstance(reply.text, str) and reply.finish in FINISHES:
                self.journal.answer(key, reply)
            return answer
