"""What a language model must be able to do, as a protocol: whoever has this method is one."""

from __future__ import annotations

import inspect
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypedDict, runtime_checkable

from chunkcore.errors import ModelError, OptionError
from chunkcore.tokens import get_counter

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

__all__ = [
    "LLM",
    "Message",
    "MeteredLLM",
    "Prices",
    "Reply",
    "UnreachableError",
    "Usage",
    "UsageMeter",
    "awaited",
    "count_message_tokens",
    "count_text_tokens",
]


class UnreachableError(ModelError):
    """No connection to the model was made: the question was not sent, and nothing can have been charged."""


class Message(TypedDict):
    """One turn of a conversation with a language model."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True)
class Reply:
    """What a language model answered, and what it took.

    Attributes:
        text: the answer.
        finish: "stop" for a whole answer, "length" for one that was cut off, "refusal" for none.
        input_tokens: of the question, as the endpoint counts and bills them; None where it does not say.
        output_tokens: of the answer, likewise.
        cached_tokens: how many of the question's the endpoint had already read, which it bills for less.
    """

    text: str
    finish: Literal["stop", "length", "refusal"] = "stop"
    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int = 0


@runtime_checkable
class LLM(Protocol):
    """Answers messages with text. Several threads may ask it at once.

    Attributes:
        name: what it was built from, so that a configuration can name it.
        fingerprint: changes when the answers could change; caches are keyed by it.

    It may also have an attribute `concurrency`: how many questions it takes at once; 1 where it does not say.
    """

    @property
    def name(self) -> str: ...
    @property
    def fingerprint(self) -> str: ...

    def complete(
        self, messages: Sequence[Message], schema: Mapping[str, Any] | None = None
    ) -> str | Reply | Awaitable[str | Reply]:
        """The answer, at once or to be awaited.

        It is JSON of the schema where one is given and the model can be held to it; whoever asks checks.

        Raises:
            NoAnswerError: this question cannot be answered, and asking again does not help.
            ModelError: no question can: a wrong key, no such model, nobody there.
        """
        ...


_MILLION = 1_000_000
_ENCODING = "cl100k_base"
_TOKENS_A_MESSAGE = 4  # the role and the marks around a message, in the chat formats of OpenAI's models


@dataclass(frozen=True, kw_only=True)
class Prices:
    """What a million tokens cost, in any currency.

    Attributes:
        input: tokens of questions.
        output: tokens of answers.
        cached_input: tokens of questions that the endpoint had already read; None: as `input`.

    Raises:
        OptionError: a price is negative or no finite number.
    """

    input: float
    output: float
    cached_input: float | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            price = getattr(self, field.name)
            if price is not None and not 0 <= price < float("inf"):
                raise OptionError(f"the price of a million tokens is at least 0, got {field.name}={price}")


@dataclass(frozen=True, kw_only=True)
class Usage:
    """Calls and tokens.

    Attributes:
        calls: questions that were sent, repeated ones included.
        input_tokens: of all questions.
        cached_tokens: how many of those the endpoint had already read.
        output_tokens: of all answers.
        estimated_calls: those whose endpoint told no tokens, so that they were counted as `cl100k_base`.
        kept_answers: questions that a cache on disk answered without a call.

    >>> Usage(calls=2, input_tokens=3_000_000, output_tokens=500_000).cost(Prices(input=0.15, output=0.6))
    0.75
    """

    calls: int = 0
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    estimated_calls: int = 0
    kept_answers: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(**{each.name: getattr(self, each.name) + getattr(other, each.name) for each in fields(self)})

    def cost(self, prices: Prices) -> float:
        """What it costs, in the prices' currency."""
        cached = prices.input if prices.cached_input is None else prices.cached_input
        fresh = self.input_tokens - self.cached_tokens
        return (fresh * prices.input + self.cached_tokens * cached + self.output_tokens * prices.output) / _MILLION


class UsageMeter:
    """Adds up usage from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._usage = Usage()

    @property
    def usage(self) -> Usage:
        """All of it until now."""
        return self._usage

    def add(self, more: Usage) -> None:
        """Count this, too."""
        with self._lock:
            self._usage += more

    def add_call(self, messages: Sequence[Message], reply: Reply) -> None:
        """Count a question and its answer, by the endpoint's own numbers where it told them."""
        told = reply.input_tokens is not None and reply.output_tokens is not None
        asked = count_message_tokens(messages) if reply.input_tokens is None else reply.input_tokens
        answered = count_text_tokens(reply.text) if reply.output_tokens is None else reply.output_tokens
        self.add(
            Usage(
                calls=1,
                input_tokens=asked,
                cached_tokens=min(reply.cached_tokens, asked),
                output_tokens=answered,
                estimated_calls=0 if told else 1,
            )
        )


def count_message_tokens(messages: Sequence[Message]) -> int:
    """About how many tokens a conversation is: its texts as `cl100k_base`, and 4 a message for what is around."""
    return sum(count_text_tokens(each["content"]) + _TOKENS_A_MESSAGE for each in messages)


def count_text_tokens(text: str) -> int:
    """About how many tokens a text is to a language model: those of `cl100k_base`."""
    return get_counter(_ENCODING).count(text)


class MeteredLLM(ABC):
    """An `LLM` that takes so many questions at once and counts what they take.

    Attributes:
        name: what it was built from.
        fingerprint: what its answers depend on.
        concurrency: questions at once, of all threads; the others wait.
    """

    def __init__(self, *, name: str, fingerprint: str, concurrency: int) -> None:
        if concurrency < 1:
            raise OptionError(f"concurrency is at least 1, got {concurrency}")
        self.name = name
        self.fingerprint = fingerprint
        self.concurrency = concurrency
        self._meter = UsageMeter()
        self._places = threading.BoundedSemaphore(concurrency)

    @property
    def usage(self) -> Usage:
        """What it has been asked in this process."""
        return self._meter.usage

    def complete(self, messages: Sequence[Message], schema: Mapping[str, Any] | None = None) -> Reply:
        """The answer. A call that fails is counted where it was answered at all.

        Raises:
            NoAnswerError: this question cannot be answered.
            ModelError: no question can.
        """
        with self._places:
            answer = awaited(self._complete(messages, schema))
        reply = answer if isinstance(answer, Reply) else Reply(answer)
        self._meter.add_call(messages, reply)
        return reply

    @abstractmethod
    def _complete(
        self, messages: Sequence[Message], schema: Mapping[str, Any] | None
    ) -> str | Reply | Awaitable[str | Reply]: ...

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.__dict__["fingerprint"] == self.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"


def awaited(value: Any) -> Any:
    """The value, or what it comes to where it is to be awaited.

    All are awaited on one loop in a thread of its own, so that a client which belongs to a loop can be used
    from every thread, also from one that runs a loop itself.
    """
    if not inspect.isawaitable(value):
        return value
    import asyncio  # slow to import, and most models are not asynchronous

    return asyncio.run_coroutine_threadsafe(_coroutine(value), _loop()).result()


async def _coroutine(value: Awaitable[Any]) -> Any:
    return await value


_loops: dict[int, AbstractEventLoop] = {}
_lock = threading.Lock()


def _loop() -> AbstractEventLoop:
    """The loop of the process: on the other side of a fork its thread is not there."""
    import asyncio

    with _lock:
        if os.getpid() not in _loops:
            loop = asyncio.new_event_loop()
            threading.Thread(target=loop.run_forever, name="chunkcore-llm", daemon=True).start()
            _loops[os.getpid()] = loop
        return _loops[os.getpid()]
