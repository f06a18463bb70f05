"""The journal of paid calls: each call is on disk before it is made, each answer before it is used.

A file of JSON lines, append-only. A restarted run asks the same questions in the same order, and `JournaledLLM` replays
the answers and failures. Failures of an endpoint that then ended the run are not replayed.
"""

from __future__ import annotations

import threading
import warnings
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from chunkcore.errors import DataError, ModelError, NoAnswerError, OptionError
from chunkcore.files import AppendLog
from chunkcore.models.llm import LLM, BadAnswerError, Message, Prices, Reply, UnreachableError, Usage
from chunkcore.models.llm.base import awaited, count_message_tokens, count_text_tokens, question_key
from chunkcore.registry import check_number


class BudgetError(ModelError):
    """One more call would exceed the budget."""


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
class Failure:
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
        self._failures: dict[str, list[Failure]] = defaultdict(list)
        self._unwritten: list[tuple[str, Failure]] = []
        self._asked: dict[str, int] = {}  # question tokens by key
        self._spent = Usage()
        self._log: AppendLog | None = None
        if self.path is not None:
            advice = "name another output"
            self._log = AppendLog(self.path, _HEADER, what="journal of questions", advice=advice)
            if self._log.cut_off:
                warnings.warn(f"{self.path}: the last line was not finished and is cut off", stacklevel=2)
            try:
                self._take_all(self._log)
            except BaseException:
                self._log.close()
                raise

    def fetch(self, key: str) -> Reply | None:
        """The recorded answer, or None."""
        return self._replies.get(key)

    def failures(self, key: str) -> Sequence[Failure]:
        return tuple(self._failures.get(key, ()))

    def ask(self, key: str, input_tokens: int, budget: CallBudget | None = None) -> None:
        """Record a call before it is made; it is on disk on return. Raises `BudgetError` over the budget."""
        with self._lock:
            if budget is not None:
                budget.check(self._spent + _unanswered(input_tokens))
            self._append({"asked": key, "input_tokens": input_tokens})
            self._note_asked(key, input_tokens)

    def answer(self, key: str, reply: Reply) -> None:
        """Record an answer; it is on disk on return."""
        with self._lock:
            self._note_answered(key, reply)
            failed = [
                {"failed": name, "reason": failure.reason, "again": failure.again} for name, failure in self._unwritten
            ]
            self._unwritten.clear()
            self._append(
                *failed,
                {
                    "answered": key,
                    "text": reply.text,
                    "finish": reply.finish,
                    "input_tokens": reply.input_tokens,
                    "output_tokens": reply.output_tokens,
                    "cached_tokens": reply.cached_tokens,
                },
            )

    def withdraw(self, key: str) -> None:
        """Record that a call was never made; it no longer counts."""
        with self._lock:
            self._append({"withdrawn": key})
            self._note_withdrawn(key)

    def fail(self, key: str, failure: Failure) -> None:
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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _note_asked(self, key: str, input_tokens: int) -> None:
        self._asked[key] = input_tokens
        self._spent += _unanswered(input_tokens)

    def _note_withdrawn(self, key: str) -> None:
        asked = _unanswered(self._asked.pop(key))
        self._spent += Usage(
            calls=-asked.calls,
            input_tokens=-asked.input_tokens,
            output_tokens=-asked.output_tokens,
            estimated_calls=-asked.estimated_calls,
        )

    def _note_answered(self, key: str, reply: Reply) -> None:
        guessed = self._asked.get(key, 0)
        told = reply.input_tokens is not None and reply.output_tokens is not None
        read = guessed if reply.input_tokens is None else reply.input_tokens
        written = count_text_tokens(reply.text) if reply.output_tokens is None else reply.output_tokens
        self._spent += Usage(
            input_tokens=read - guessed,
            cached_tokens=min(reply.cached_tokens, read),
            output_tokens=written - _ANSWER_TOKENS,
            estimated_calls=-1 if told else 0,
        )
        self._replies[key] = reply

    def _append(self, *entries: Mapping[str, Any]) -> None:
        if self._log is not None:
            self._log.append(*entries)

    def _take_all(self, log: AppendLog) -> None:
        for number, entry in log.entries:
            try:
                self._take(entry)
            except (ValueError, KeyError, TypeError) as error:
                raise DataError(
                    f"{self.path}, line {number}: no line of a journal; delete it, and its call is made again"
                ) from error

    def _take(self, entry: Mapping[str, Any]) -> None:
        if "asked" in entry:
            self._note_asked(_text(entry["asked"]), _count(entry["input_tokens"]))
        elif "withdrawn" in entry:
            self._note_withdrawn(_text(entry["withdrawn"]))
        elif "failed" in entry:
            failure = Failure(_text(entry["reason"]), entry["again"] is True)
            self._failures[_text(entry["failed"])].append(failure)
        else:
            self._note_answered(_text(entry["answered"]), _reply(entry))


def _unanswered(input_tokens: int) -> Usage:
    return Usage(calls=1, input_tokens=input_tokens, output_tokens=_ANSWER_TOKENS, estimated_calls=1)


def _reply(entry: Mapping[str, Any]) -> Reply:
    if entry["finish"] not in FINISHES:
        raise ValueError(entry["finish"])
    told = {name: None if entry[name] is None else _count(entry[name]) for name in ("input_tokens", "output_tokens")}
    return Reply(_text(entry["text"]), entry["finish"], **told, cached_tokens=_count(entry["cached_tokens"]))


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value


def _count(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(value)
    return value


class JournaledLLM:
    """A language model that replays answers and failures from a journal.

    `replayed` counts the answers from the journal.
    """

    def __init__(self, llm: LLM, journal: Journal, budget: CallBudget | None = None) -> None:
        self.llm = llm
        self.journal = journal
        self.budget = budget
        self.name = llm.name
        self.fingerprint = llm.fingerprint
        self.concurrency = max(1, int(getattr(llm, "concurrency", 1)))
        self.replayed = 0
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
                with self._guard:
                    self.replayed += 1
                return kept
            self.journal.ask(key, count_message_tokens(messages), self.budget)
            return self._answer(key, messages, schema)

    def _answer(self, key: str, messages: Sequence[Message], schema: Mapping[str, Any] | None) -> Any:
        try:
            answer = awaited(self.llm.complete(messages, schema))
        except UnreachableError:
            self.journal.withdraw(key)
            raise
        except (NoAnswerError, BadAnswerError, TimeoutError) as error:
            self._tries[key] += 1
            again = not isinstance(error, NoAnswerError)
            reason = "expected an answer in time, got none" if isinstance(error, TimeoutError) else str(error)
            failure = Failure(reason, again)
            self.journal.fail(key, failure)
            raise failure.error() from error
        reply = Reply(answer) if isinstance(answer, str) else answer
        if isinstance(reply, Reply) and isinstance(reply.text, str) and reply.finish in FINISHES:
            self.journal.answer(key, reply)
        return answer
