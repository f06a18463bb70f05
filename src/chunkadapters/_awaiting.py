"""One body for what is asked at once and what is awaited: written as a coroutine, and run through at once where no
event loop is wanted.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

__all__ = ["at_once", "finished"]

T = TypeVar("T")


def at_once(function: Callable[..., T]) -> Callable[..., Awaitable[T]]:
    """A function as one to be awaited, which waits for nothing else."""

    async def call(*arguments: Any) -> T:
        return function(*arguments)

    return call


def finished(coroutine: Coroutine[Any, Any, T]) -> T:
    """What a coroutine comes to that awaits only functions `at_once`.

    No event loop is needed, so that one may be running already.

    >>> async def double(ask):
    ...     return 2 * await ask()
    >>> finished(double(at_once(lambda: 21)))
    42
    """
    try:
        coroutine.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    coroutine.close()
    raise AssertionError("something was awaited that was not done at once")
