"""`MeteredLLM`: what every model that comes with the package does around a call: wait for a place, count, await."""

from __future__ import annotations

import inspect
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from chunkcore.errors import OptionError
from chunkcore.models.llm.base import Message, Reply
from chunkcore.models.llm.usage import Meter, Usage

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

__all__ = ["MeteredLLM", "awaited"]


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
        self._meter = Meter()
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
