"""`within`: work that may hang is waited for so long."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import TypeVar

__all__ = ["LateError", "within"]

T = TypeVar("T")


class LateError(TimeoutError):
    """Work was given up. The work's own `TimeoutError` is none."""


def within(seconds: float | None, work: Callable[[], T]) -> T:
    """What the work gives, or raises; with None it is waited for as long as it takes.

    Work that is given up goes on in a thread of its own, which does not keep the process from ending.

    Raises:
        LateError: the time is over.

    >>> within(5, lambda: 2 + 2)
    4
    """
    if seconds is None:
        return work()
    told: SimpleQueue[tuple[T | None, BaseException | None]] = SimpleQueue()

    def tell() -> None:
        try:
            told.put((work(), None))
        except BaseException as error:  # noqa: BLE001  # it is raised where it is waited for
            told.put((None, error))

    threading.Thread(target=tell, name="chunkcore-model", daemon=True).start()
    try:
        value, error = told.get(timeout=seconds)
    except Empty:
        raise LateError from None
    if error is not None:
        raise error
    return value  # type: ignore[return-value]
