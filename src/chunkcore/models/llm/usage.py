"""What language models were asked and what it costs: `Usage`, `Prices`, and the `Meter` that adds up."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, fields

from chunkcore.errors import OptionError
from chunkcore.models.llm.base import Message, Reply
from chunkcore.tokens import get_counter

__all__ = ["Meter", "Prices", "Usage", "count_message_tokens", "count_text_tokens"]

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


class Meter:
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
