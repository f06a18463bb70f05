"""`ask`: a question to a model, with its answer checked and bad answers corrected."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Generic, TypeVar

from chunkcore.concurrency import check_wanted, ordered
from chunkcore.errors import ChunkcoreError, ModelError, NoAnswerError
from chunkcore.escaping import encodable
from chunkcore.models.llm.base import LLM, CachedLLM, Message, Reply, Usage, UsageMeter, awaited

_LONGEST = 1_000_000  # characters of an answer that are read
_ATTEMPTS = 1_000  # places tried as the beginning of JSON
_SHOWN = 80  # characters of an answer that an error repeats


T = TypeVar("T")
R = TypeVar("R")


class BadAnswerError(ValueError):
    """A model's answer is not valid. The message goes to the model: what was expected, and what it wrote."""


def found_json(text: Any) -> dict[str, Any]:
    r"""The last JSON object in a text: alone, in a code fence, or after prose; `BadAnswerError` where there is none.

    >>> found_json('Certainly! Here it is:\n```json\n{"split_after": [3]}\n```\nI hope this helps.')
    {'split_after': [3]}
    >>> found_json('{"split_after": [3')
    Traceback (most recent call last):
    chunkcore.models.llm.asking.BadAnswerError: expected a JSON object, got '{"split_after": [3'
    """
    if not isinstance(text, str):
        raise BadAnswerError(f"expected a text, got {type(text).__name__}")
    decoder = json.JSONDecoder()
    value: dict[str, Any] | None = None
    text = text[:_LONGEST]
    end = 0
    for _ in range(_ATTEMPTS):
        place = text.find("{", end)
        if place < 0:
            break
        try:
            value, end = decoder.raw_decode(text, place)
        except (ValueError, RecursionError):
            end = place + 1
    if value is None:
        raise BadAnswerError(f"expected a JSON object, got {_shown(text)}")
    return value


def member(data: Mapping[str, Any], key: str) -> Any:
    """The value of a key; `BadAnswerError` where there is none."""
    if key not in data:
        raise BadAnswerError(f"expected a JSON object with {key!r}, got one with {_shown(', '.join(data))}")
    return data[key]


def whole_number(value: Any, key: str, least: int, most: int) -> int:
    """The value, if it is a whole number in a range, ends included; else `BadAnswerError`.

    >>> whole_number(7, "first", 1, 5)
    Traceback (most recent call last):
    chunkcore.models.llm.asking.BadAnswerError: expected 'first' to be a whole number from 1 to 5, got 7
    """
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise BadAnswerError(f"expected {key!r} to be a whole number from {least} to {most}, got {_shown(value)}")
    return value


def ascending(values: Any, key: str, least: int, most: int) -> list[int]:
    """The values, if they are a list of ascending whole numbers in a range; else `BadAnswerError`.

    >>> ascending([3, 2], "split_after", 0, 5)
    Traceback (most recent call last):
    chunkcore.models.llm.asking.BadAnswerError: expected 'split_after' in ascending order, each once, got [3, 2]
    """
    if not isinstance(values, list):
        raise BadAnswerError(f"expected {key!r} to be a list of whole numbers, got {_shown(values)}")
    numbers = [whole_number(value, key, least, most) for value in values]
    if any(after <= before for before, after in pairwise(numbers)):
        raise BadAnswerError(f"expected {key!r} in ascending order, each once, got {_shown(numbers)}")
    return numbers


def text_of(value: Any, key: str) -> str:
    """The text, stripped; `BadAnswerError` for no text or an empty one."""
    if not isinstance(value, str) or not value.strip():
        raise BadAnswerError(f"expected {key!r} to be a text that is not empty, got {_shown(value)}")
    return value.strip()


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


_REPEATED = 2_000  # characters of a bad answer that the model is shown again


@dataclass(frozen=True, kw_only=True)
class Question(Generic[T]):
    """What a model is asked, and how its answer is read.

    Attributes:
        messages: the conversation so far. Unpaired surrogates are sent as U+FFFD.
        schema: of the JSON answer; an endpoint may enforce it.
        read: from the answer's text to its value. Raises `BadAnswerError` with a message for the model.
        assumed: the answer, as JSON values, that a dry run assumes.
    """

    messages: Sequence[Message]
    schema: Mapping[str, Any]
    read: Callable[[str], T]
    assumed: Any


class Estimator:
    """In place of a model: gives each question its assumed answer, and counts the usage in `cl100k_base` tokens.

    Retries are not included.
    """

    name = "estimate"
    fingerprint = "estimate"
    concurrency = 1

    def __init__(self) -> None:
        self._meter = UsageMeter()

    @property
    def usage(self) -> Usage:
        """The usage that the questions so far would have had."""
        return self._meter.usage

    def complete(self, messages: Sequence[Message], schema: Mapping[str, Any] | None = None) -> str:
        """Always an error: only a `Question` has an assumed answer."""
        raise NoAnswerError("an estimator answers no messages: ask it a Question")

    def assume(self, question: Question[T]) -> str:
        """The assumed answer, counted."""
        text = json.dumps(question.assumed, ensure_ascii=False)
        self._meter.add_call(_sendable(question.messages), Reply(text))
        return text


def ask(llm: LLM, question: Question[T], *, retries: int = 2) -> T:
    """The value of the model's first valid answer.

    The model sees a bad answer again with what is wrong with it, at most `retries` times. A `CachedLLM` keeps the
    valid answer, under the question as first asked.

    Raises:
        NoAnswerError: no valid answer; the message says what was wrong with the last.
        ModelError: the model failed twice in another way.
    """
    if isinstance(llm, Estimator):
        return question.read(llm.assume(question))
    messages = _sendable(question.messages)
    if isinstance(llm, CachedLLM) and (kept := llm.recall(messages, question.schema)) is not None:
        with suppress(BadAnswerError):  # kept by an older version of the reader
            return question.read(kept)
    conversation = list(messages)
    problem = ""
    for _ in range(retries + 1):
        check_wanted()
        text = ""
        try:
            reply = _reply(llm, conversation, question.schema)
            text = reply.text
            value = question.read(_whole(reply))
        except BadAnswerError as error:
            problem = str(error)
            conversation = [*messages, *_correction(text, problem)]
            continue
        if isinstance(llm, CachedLLM):
            llm.keep(messages, question.schema, text)
        return value
    times = f"{retries + 1} times" if retries else "once"
    raise NoAnswerError(f"the model was asked {times}, the last time: {problem}")


def _reply(llm: LLM, messages: Sequence[Message], schema: Mapping[str, Any]) -> Reply:
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
    if not answer.strip():
        return []
    shown = answer if len(answer) <= _REPEATED else f"{answer[:_REPEATED]}…"
    complaint = f"This answer cannot be used: {problem}. Answer the question again, with nothing but that JSON object."
    return _sendable([{"role": "assistant", "content": shown}, {"role": "user", "content": complaint}])


def _sendable(messages: Sequence[Message]) -> list[Message]:
    return [{"role": message["role"], "content": encodable(message["content"])} for message in messages]


def conversation(instructions: str, content: str) -> list[Message]:
    """A conversation of instructions and what they are about."""
    return [{"role": "system", "content": instructions}, {"role": "user", "content": content}]


def quoted(title: str, texts: Sequence[str]) -> str:
    """Texts as a JSON list, one element a line, under a title."""
    lines = ",\n".join(json.dumps(text, ensure_ascii=False) for text in texts)
    return f"{title}:\n[\n{lines}\n]"


def schema_of(**properties: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON schema of an object with exactly these properties, all required."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def ask_all(llm: LLM, ask: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
    """``ask(item)`` for each item, in order, with the model's concurrency. An error ends it."""
    at_once = max(1, int(getattr(llm, "concurrency", 1)))
    with ThreadPoolExecutor(at_once) as pool:
        yield from ordered(pool, ask, iter(items), 2 * at_once)
