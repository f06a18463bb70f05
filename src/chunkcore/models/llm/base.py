"""What a language model is: the `LLM` protocol, what asking costs, and the cache in front of a model."""

from __future__ import annotations

import inspect
import json
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import (
    TYPE_CHECKING,
    Any,
    Generic,
    Literal,
    Protocol,
    TypeAlias,
    TypedDict,
    TypeVar,
    runtime_checkable,
)

from chunkcore.concurrency import check_wanted, ordered
from chunkcore.errors import ChunkcoreError, ModelError, NoAnswerError, echo
from chunkcore.models.base import Fingerprinted
from chunkcore.models.cache import LLMCache
from chunkcore.options import check_number
from chunkcore.plain import digest, encodable
from chunkcore.tokens import get_counter

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

T = TypeVar("T")
R = TypeVar("R")

_MILLION = 1_000_000
_ENCODING = "cl100k_base"
# The role and the marks around a message, in the chat formats of OpenAI's models.
_TOKENS_A_MESSAGE = 4
_LONGEST = 1_000_000  # characters of an answer that are read
_ATTEMPTS = 1_000  # places tried as the beginning of JSON
_REPEATED = 2_000  # characters of a bad answer that the model is shown again
_TYPES: dict[type, str] = {
    dict: "object",
    list: "array",
    str: "string",
    int: "integer",
    bool: "boolean",
    type(None): "null",
}
_RULES = ("type", "minimum", "maximum", "minItems", "maxItems")
_lock = threading.Lock()


class Message(TypedDict):
    """One turn of a conversation with a language model."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True)
class Reply:
    """A language model's answer and its token counts.

    Attributes:
        text: the answer.
        finish: "stop" for a whole answer, "length" for a truncated one, "refusal" for none.
        input_tokens: of the question, as the endpoint bills them; None where it does not say.
        output_tokens: of the answer, likewise.
    """

    text: str
    finish: Literal["stop", "length", "refusal"] = "stop"
    input_tokens: int | None = None
    output_tokens: int | None = None


Messages: TypeAlias = Sequence[Message]
Schema: TypeAlias = Mapping[str, Any]  # of JSON
Completion: TypeAlias = str | Reply | Awaitable[str | Reply]


@runtime_checkable
class LLM(Protocol):
    """Answers messages with text. Several threads may call it at once.

    Attributes:
        name: the string that `get_llm` builds it from, as configurations hold it.
        fingerprint: changes when the answers could change; cache keys contain it.

    Optional: an attribute `concurrency`, the number of questions at once (default 1).
    """

    @property
    def name(self) -> str: ...
    @property
    def fingerprint(self) -> str: ...

    def complete(self, messages: Messages, schema: Schema | None = None) -> Completion:
        """The answer, or an awaitable of it.

        With a schema the answer should be JSON of that schema; the caller checks it.

        Raises `NoAnswerError`: this question cannot be answered, even if asked again; `ModelError`: no question can.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class Prices:
    """Prices of a million tokens of questions and of answers, in any currency.

    Raises `OptionError`: a price is negative or not finite.
    """

    input: float
    output: float

    def __post_init__(self) -> None:
        for name, price in vars(self).items():
            check_number(f"the price of a million tokens ({name})", price, whole=False)


@dataclass(frozen=True, kw_only=True)
class Usage:
    """Calls and tokens.

    Attributes:
        calls: questions sent, retries included.
        input_tokens: of all questions.
        output_tokens: of all answers.
        kept_answers: questions answered by a cache, without a call.

    >>> Usage(calls=2, input_tokens=3_000_000, output_tokens=500_000).cost(Prices(input=0.15, output=0.6))
    0.75
    """

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    kept_answers: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(**{name: count + getattr(other, name) for name, count in vars(self).items()})

    def __sub__(self, other: Usage) -> Usage:
        return Usage(**{name: count - getattr(other, name) for name, count in vars(self).items()})

    def cost(self, prices: Prices) -> float:
        """In the prices' currency."""
        return (self.input_tokens * prices.input + self.output_tokens * prices.output) / _MILLION


class Metered:
    """Sums usage over threads."""

    usage = Usage()

    def count(self, more: Usage) -> None:
        """Add to the usage."""
        with _lock:
            self.usage = self.usage + more

    def count_call(self, messages: Messages, reply: Reply) -> None:
        """Add a question and its answer to the usage, by the endpoint's own counts where there are any."""
        read, written = reply.input_tokens, reply.output_tokens
        if read is None:
            read = count_message_tokens(messages)
        if written is None:
            written = count_text_tokens(reply.text)
        self.count(Usage(calls=1, input_tokens=read, output_tokens=written))


def count_message_tokens(messages: Messages) -> int:
    """The approximate tokens of a conversation: its texts as `cl100k_base`, and 4 a message."""
    return sum(count_text_tokens(message["content"]) + _TOKENS_A_MESSAGE for message in messages)


def count_text_tokens(text: str) -> int:
    """The approximate tokens of a text to a language model: those of `cl100k_base`."""
    return get_counter(_ENCODING).count(text)


class SchemaRefusedError(ModelError):
    """The model takes no JSON schema."""


class MeteredLLM(Fingerprinted, Metered, ABC):
    """An `LLM` that limits the questions at once and counts usage. A subclass implements `_complete`; after a
    `SchemaRefusedError` it is asked without a schema from then on.

    Attributes:
        name: the string that builds it.
        fingerprint: changes when the answers could change.
        concurrency: questions at once over all threads; further ones wait.
        takes_schema: False once the model has refused one.
        usage: in this process. Calls that got no answer are not counted.
    """

    takes_schema = True

    def __init__(self, *, name: str, fingerprint: str, concurrency: int) -> None:
        check_number("concurrency", concurrency, 1, 1_000)
        self.name = name
        self.fingerprint = fingerprint
        self.concurrency = concurrency
        self._places = threading.BoundedSemaphore(concurrency)

    def __getstate__(self) -> dict[str, Any]:
        # Places and counts belong to the process.
        state = dict(vars(self), _places=None)
        state.pop("usage", None)
        return state

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        vars(self).update(state)
        self._places = threading.BoundedSemaphore(self.concurrency)

    def complete(self, messages: Messages, schema: Schema | None = None) -> Reply:
        """The answer; see `LLM.complete`."""
        asked_schema = schema if self.takes_schema else None
        with self._places:
            try:
                answer = awaited(self._complete(messages, asked_schema))
            except SchemaRefusedError:
                answer = awaited(self._complete(messages, None))
                self.takes_schema = False  # it answers without one
        reply = answer if isinstance(answer, Reply) else Reply(answer)
        self.count_call(messages, reply)
        return reply

    @abstractmethod
    def _complete(self, messages: Messages, schema: Schema | None) -> Completion: ...


def question_key(messages: Messages, schema: Schema | None) -> bytes:
    """The cache key of a question: 20 bytes from its messages and the schema of its answer."""
    return bytes.fromhex(digest([list(messages), schema], 20))


class CachedLLM(Fingerprinted):
    """A language model with a cache of its valid answers. Name and fingerprint are the model's.

    `ask` calls `recall` before the model, and `keep` after it found the answer valid: bad answers are never kept.
    By default the cache is a new one in memory.
    """

    def __init__(self, llm: LLM, cache: LLMCache | None = None) -> None:
        self.llm = llm
        self.cache = LLMCache() if cache is None else cache
        self.name = llm.name
        self.fingerprint = llm.fingerprint
        self.concurrency = int(getattr(llm, "concurrency", 1))
        self._kept = Metered()

    @property
    def usage(self) -> Usage:
        """The model's usage in this process, where it has one, and the answers from the cache."""
        usage: Usage = getattr(self.llm, "usage", Usage())
        return usage + self._kept.usage

    def complete(self, messages: Messages, schema: Schema | None = None) -> str | Reply:
        """The model's answer. The cache is not read: see `recall`."""
        answer: str | Reply = awaited(self.llm.complete(messages, schema))
        return answer

    def recall(self, messages: Messages, schema: Schema | None) -> str | None:
        """The cached answer; None where there is none."""
        answer = self.cache.fetch(self.fingerprint, question_key(messages, schema))
        if answer is not None:
            self._kept.count(Usage(kept_answers=1))
        return answer

    def keep(self, messages: Messages, schema: Schema | None, answer: str) -> None:
        """Cache a valid answer."""
        self.cache.store(self.fingerprint, question_key(messages, schema), answer)


def awaited(value: Any) -> Any:
    """The value; of an awaitable, its result.

    All run on one loop in a thread of its own: every thread can use a client that belongs to a loop.
    """
    if not inspect.isawaitable(value):
        return value
    import asyncio  # slow to import, and most models are not asynchronous

    async def result() -> Any:
        return await value

    with _lock:
        loop = _loop(os.getpid())
    return asyncio.run_coroutine_threadsafe(result(), loop).result()


@cache
def _loop(process: int) -> AbstractEventLoop:
    """The loop of a process, which runs in a thread: a forked child does not have its parent's."""
    import asyncio

    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="chunkcore-llm", daemon=True).start()
    return loop


class BadAnswerError(ValueError):
    """A model's answer is not valid. The message goes to the model: what was expected, and what it wrote."""


def found_json(text: Any) -> dict[str, Any]:
    r"""The last JSON object in a text: alone, in a code fence, or after prose; `BadAnswerError` where there is none.

    >>> found_json('Certainly! Here it is:\n```json\n{"split_after": [3]}\n```\nI hope this helps.')
    {'split_after': [3]}
    >>> found_json('{"split_after": [3')
    Traceback (most recent call last):
    chunkcore.models.llm.base.BadAnswerError: expected a JSON object, got '{"split_after": [3'
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
        raise BadAnswerError(f"expected a JSON object, got {echo(text)}")
    return value


def check_answer(value: Any, schema: Schema, name: str) -> None:
    """Raise `BadAnswerError` where a JSON value has not its schema's type, bounds or number of items.

    >>> check_answer(7, {"type": "integer", "minimum": 1, "maximum": 5}, "first")
    Traceback (most recent call last):
    chunkcore.models.llm.base.BadAnswerError: expected 'first' with type integer, minimum 1, maximum 5, got 7
    """
    kinds = schema["type"]
    if isinstance(kinds, str):
        kinds = [kinds]
    fits = _TYPES.get(type(value)) in kinds
    if fits and isinstance(value, int | list):
        amount = value if isinstance(value, int) else len(value)
        least = schema.get("minimum", schema.get("minItems", amount))
        most = schema.get("maximum", schema.get("maxItems", amount))
        fits = least <= amount <= most
    if not fits:
        rules = ", ".join(f"{rule} {schema[rule]}" for rule in _RULES if rule in schema)
        raise BadAnswerError(f"expected {name!r} with {rules}, got {echo(value)}")
    for key, member in schema.get("properties", {}).items():
        if key in value:
            check_answer(value[key], member, key)
    for item in value if isinstance(value, list) else ():
        check_answer(item, schema["items"], name)


def check_ascending(numbers: Sequence[int], name: str) -> None:
    """Raise `BadAnswerError` where the numbers do not ascend."""
    if any(after <= before for before, after in pairwise(numbers)):
        raise BadAnswerError(
            f"expected {name!r} in ascending order, each once, got {echo(numbers)}"
        )


def text_of(text: str, name: str) -> str:
    """The text, stripped; `BadAnswerError` for an empty one."""
    if not text.strip():
        raise BadAnswerError(f"expected {name!r} to be a text that is not empty, got {echo(text)}")
    return text.strip()


@dataclass(frozen=True, kw_only=True)
class Question(Generic[T]):
    """What a model is asked, and how its answer is read.

    Attributes:
        messages: the conversation so far. Unpaired surrogates are sent as U+FFFD.
        schema: of the JSON answer; an endpoint may enforce it.
        read: from the answer's text to its value. Raises `BadAnswerError` with a message for the model.
        assumed: the answer, as JSON values, that a dry run assumes.
    """

    messages: Messages
    schema: Schema
    read: Callable[[str], T]
    assumed: Any


class Estimator(Metered):
    """In place of a model: gives each question its assumed answer, and counts its usage in `cl100k_base` tokens."""

    name = fingerprint = "estimate"
    concurrency = 1

    def complete(self, messages: Messages, schema: Schema | None = None) -> str:
        """Always an error: only a `Question` has an assumed answer."""
        raise NoAnswerError("an estimator answers no messages: ask it a Question")

    def assume(self, question: Question[T]) -> str:
        """The assumed answer, counted."""
        text = json.dumps(question.assumed, ensure_ascii=False)
        self.count_call(_sendable(question.messages), Reply(text))
        return text


def ask(llm: LLM, question: Question[T], *, retries: int = 2) -> T:
    """The value of the model's first valid answer.

    The model sees a bad answer again with what is wrong with it, at most `retries` times. A `CachedLLM` keeps the
    valid answer, under the question as first asked.

    Raises `NoAnswerError`: no valid answer, and what was wrong with the last. Raises `ModelError`: it failed twice.
    """
    if isinstance(llm, Estimator):
        return question.read(llm.assume(question))
    messages = _sendable(question.messages)
    kept = llm.recall(messages, question.schema) if isinstance(llm, CachedLLM) else None
    if kept is not None:
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


def _reply(llm: LLM, messages: Messages, schema: Schema, *, again: bool = True) -> Reply:
    """The model's reply. A model that fails is asked once more."""
    try:
        answer = awaited(llm.complete(messages, schema))
    except (ChunkcoreError, BadAnswerError):
        raise
    except TimeoutError as error:
        raise BadAnswerError("expected an answer in time, got none") from error
    except Exception as error:
        if again:
            return _reply(llm, messages, schema, again=False)
        raise ModelError(
            f"the model {llm.name!r} failed: {type(error).__name__}: {error}"
        ) from error
    reply = answer if isinstance(answer, Reply) else Reply(answer)
    if not isinstance(reply.text, str):
        raise BadAnswerError(f"expected a text, got {type(reply.text).__name__}")
    return reply


def _whole(reply: Reply) -> str:
    if reply.finish == "refusal":
        said = f": {reply.text[:200]!r}" if reply.text else ""
        raise BadAnswerError(f"expected an answer, got a refusal{said}")
    if reply.finish == "length":
        raise BadAnswerError(
            "expected a whole answer, got one that was cut off at the limit of its length"
        )
    return reply.text


def _correction(answer: str, problem: str) -> list[Message]:
    if not answer.strip():
        return []
    shown = answer if len(answer) <= _REPEATED else f"{answer[:_REPEATED]}…"
    complaint = f"This answer cannot be used: {problem}. Answer the question again, with nothing but that JSON object."
    return _sendable(
        [{"role": "assistant", "content": shown}, {"role": "user", "content": complaint}]
    )


def _sendable(messages: Messages) -> list[Message]:
    return [
        {"role": message["role"], "content": encodable(message["content"])} for message in messages
    ]


def conversation(instructions: str, content: str) -> list[Message]:
    """A conversation of instructions and what they are about."""
    return [{"role": "system", "content": instructions}, {"role": "user", "content": content}]


def quoted(title: str, texts: Sequence[str]) -> str:
    """Texts as a JSON list, one element a line, under a title."""
    lines = ",\n".join(json.dumps(text, ensure_ascii=False) for text in texts)
    return f"{title}:\n[\n{lines}\n]"


def schema_of(**properties: Schema) -> dict[str, Any]:
    """The JSON schema of an object with exactly these properties, all required."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def json_question(
    messages: Messages, read: Callable[[dict[str, Any]], T], assumed: Any, **properties: Schema
) -> Question[T]:
    """The question for a JSON object of these properties. `read` gets one of which those that are there fit."""
    schema = schema_of(**properties)

    def read_text(text: str) -> T:
        answer = found_json(text)
        check_answer(answer, schema, "answer")
        try:
            return read(answer)
        except KeyError as error:
            seen = echo(", ".join(answer))
            raise BadAnswerError(
                f"expected a JSON object with {error}, got one with {seen}"
            ) from error

    return Question(messages=messages, schema=schema, read=read_text, assumed=assumed)


def ask_all(llm: LLM, ask: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
    """``ask(item)`` for each item, in order, with the model's concurrency. An error ends it."""
    at_once = max(1, int(getattr(llm, "concurrency", 1)))
    with ThreadPoolExecutor(at_once) as pool:
        yield from ordered(pool, ask, iter(items), 2 * at_once)
