"""`CallableLLM`: any function as a language model."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any

from chunkcore.errors import OptionError
from chunkcore.models.llm.base import Message, Reply
from chunkcore.models.llm.metered import MeteredLLM

__all__ = ["CallableLLM"]

Function = Callable[[Sequence[Message], Mapping[str, Any] | None], str | Reply | Awaitable[str | Reply]]


class CallableLLM(MeteredLLM):
    """A function of messages and a JSON schema (or None) that answers with text, at once or to be awaited.

    Args:
        function: called from several threads where `concurrency` is over 1. A `TimeoutError` from it is a
            question without an answer; any other error, raised twice, ends the work.
        name: for configurations and caches.
        fingerprint: what the answers depend on; None: the name. Give it another when the function changes.
        concurrency: calls at the same time.

    Raises:
        OptionError: no function, an empty name, or concurrency under 1.

    >>> llm = CallableLLM(lambda messages, schema: messages[-1]["content"].upper(), name="shouting")
    >>> llm.complete([{"role": "user", "content": "chunk"}]).text, llm.usage.calls
    ('CHUNK', 1)
    """

    def __init__(self, function: Function, *, name: str, fingerprint: str | None = None, concurrency: int = 1) -> None:
        if not callable(function):
            raise OptionError(f"expected a function of messages and a schema, got {type(function).__name__}")
        if not isinstance(name, str) or not name.strip():
            raise OptionError(f"name is a text that is not empty, got {name!r}")
        super().__init__(name=name, fingerprint=f"callable:{fingerprint or name}", concurrency=concurrency)
        self.function = function

    def __reduce__(self) -> tuple[Any, ...]:
        mark = self.fingerprint.removeprefix("callable:")
        again = partial(type(self), name=self.name, fingerprint=mark, concurrency=self.concurrency)
        return again, (self.function,)

    def _complete(
        self, messages: Sequence[Message], schema: Mapping[str, Any] | None
    ) -> str | Reply | Awaitable[str | Reply]:
        return self.function(messages, schema)
