"""`ask`: a question, its answer checked, the error told to the model, so many times and no more."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from chunkcore.concurrency import check_wanted
from chunkcore.errors import ChunkcoreError, ModelError, NoAnswerError
from chunkcore.models.batching import encodable
from chunkcore.models.llm.answers import BadAnswerError
from chunkcore.models.llm.base import LLM, Message, Reply
from chunkcore.models.llm.cache import CachedLLM
from chunkcore.models.llm.metered import awaited
from chunkcore.models.llm.usage import Meter, Usage, count_message_tokens, count_text_tokens

__all__ = ["Estimator", "Question", "ask"]

T = TypeVar("T")

_REPEATED = 2_000  # characters of a bad answer that the model is shown again


@dataclass(frozen=True, kw_only=True)
class Question(Generic[T]):
    """What a model is asked, and how its answer is read.

    Attributes:
        messages: the conversation so far. Unpaired surrogates, which no endpoint can read, are shown to the
            model as U+FFFD.
        schema: of the JSON that is expected; an endpoint may hold the model to it, or not.
        read: from the answer's text to its value. Raises `BadAnswerError` with what the model is told.
        assumed: the answer, as JSON values, that a dry run takes for granted.
    """

    messages: Sequence[Message]
    schema: Mapping[str, Any]
    read: Callable[[str], T]
    assumed: Any


class Estimator:
    """In place of a model: answers every question as the question assumes, and counts what it would take.

    Tokens are those of `cl100k_base`; retries are not foreseen.
    """

    name = "estimate"
    fingerprint = "estimate"
    concurrency = 1

    def __init__(self) -> None:
        self._meter = Meter()

    @property
    def usage(self) -> Usage:
        """What the questions until now would have taken."""
        return self._meter.usage

    def complete(self, messages: Sequence[Message], schema: Mapping[str, Any] | None = None) -> str:
        """Nothing: only a `Question` says what its answer may be."""
        raise NoAnswerError("an estimator answers no messages: ask it a Question")

    def assume(self, question: Question[T]) -> str:
        """The assumed answer, counted."""
        text = json.dumps(question.assumed, ensure_ascii=False)
        asked = count_message_tokens(_sendable(question.messages))
        answered = count_text_tokens(text)
        self._meter.add(Usage(calls=1, input_tokens=asked, output_tokens=answered, estimated_calls=1))
        return text


def ask(llm: LLM, question: Question[T], *, retries: int = 2) -> T:
    """The value of the model's first valid answer.

    An answer that cannot be read is shown to the model with what is wrong with it, `retries` times at most.
    A valid one is kept, where the model is a `CachedLLM`, under the question as it was first asked.

    Raises:
        NoAnswerError: no answer was valid, or there was none; the message says what was wrong with the last.
        ModelError: the model failed in another way, twice.
    """
    if isinstance(llm, Estimator):
        return question.read(llm.assume(question))
    messages = _sendable(question.messages)
    if isinstance(llm, CachedLLM) and (kept := llm.recall(messages, question.schema)) is not None:
        try:
            return question.read(kept)
        except BadAnswerError:
            pass  # of an older version of the question's reader
    told = list(messages)
    problem = ""
    for _ in range(retries + 1):
        check_wanted()
        text = ""
        try:
            reply = _reply(llm, told, question.schema)
            text = reply.text
            value = question.read(_whole(reply))
        except BadAnswerError as error:
            problem = str(error)
            told = [*messages, *_correction(text, problem)]
            continue
        if isinstance(llm, CachedLLM):
            llm.keep(messages, question.schema, text)
        return value
    times = f"{retries + 1} times" if retries else "once"
    raise NoAnswerError(f"the model was asked {times}, the last time: {problem}")


def _reply(llm: LLM, messages: Sequence[Message], schema: Mapping[str, Any]) -> Reply:
    """The model's reply; of an error that is not of our tree, one more try."""
    for last in (False, True):
        try:
            answer = awaited(llm.complete(messages, schema))
        except (ChunkcoreError, BadAnswerError):
            raise
        except TimeoutError as error:
            raise BadAnswerError("expected an answer in time, got none") from error
        except Exception as error:
            if last:
                raise ModelError(f"the model {llm.name!r} failed: {type(error).__name__}: {error}") from error
            continue
        if isinstance(answer, Reply) and isinstance(answer.text, str):
            return answer
        if isinstance(answer, str):
            return Reply(answer)
        seen = answer.text if isinstance(answer, Reply) else answer
        raise BadAnswerError(f"expected a text, got {type(seen).__name__}")
    raise AssertionError


def _whole(reply: Reply) -> str:
    if reply.finish == "refusal":
        raise BadAnswerError("expected an answer, got a refusal" + (f": {reply.text[:200]!r}" if reply.text else ""))
    if reply.finish == "length":
        raise BadAnswerError("expected a whole answer, got one that was cut off at the limit of its length")
    return reply.text


def _correction(answer: str, problem: str) -> list[Message]:
    """What follows the question after a bad answer: the answer, where there was one, and what is wrong with it."""
    if not answer.strip():
        return []
    shown = answer if len(answer) <= _REPEATED else f"{answer[:_REPEATED]}…"
    complaint = f"This answer cannot be used: {problem}. Answer the question again, with nothing but that JSON object."
    return _sendable([{"role": "assistant", "content": shown}, {"role": "user", "content": complaint}])


def _sendable(messages: Sequence[Message]) -> list[Message]:
    contents = encodable([each["content"] for each in messages])
    return [{"role": each["role"], "content": content} for each, content in zip(messages, contents, strict=True)]
