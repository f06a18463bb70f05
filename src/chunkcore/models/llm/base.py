"""What a language model must be able to do, as a protocol: whoever has this method is one."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypedDict, runtime_checkable

from chunkcore.errors import ModelError

__all__ = ["LLM", "Message", "Reply", "UnreachableError"]


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
