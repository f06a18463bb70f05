"""Work in batches; threads: results in order, work that is cancelled."""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError, Executor, Future, ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

R = TypeVar("R")
T = TypeVar("T")

# Called with a step's name, how much of it is done, and how much there is.
Progress = Callable[[str, int, int], None]


def no_progress(step: str, done: int, total: int) -> None:
    """Tell nobody; unlike a lambda, it can be pickled."""


_thread = threading.local()


def ordered(pool: Executor, work: Callable[[T], R], items: Iterator[T], ahead: int) -> Iterator[R]:
    """Yield ``work(item)`` in the order of the items, with at most `ahead` calls under way.

    When the iterator is closed (by an error or Ctrl-C), calls that have not begun are cancelled. Threads at work, and
    threads they wait for, see the cancellation in `check_wanted`.

    >>> with ThreadPoolExecutor(2) as pool:
    ...     list(ordered(pool, str.upper, iter("abc"), ahead=2))
    ['A', 'B', 'C']
    """
    stopped = threading.Event()
    stops = (*getattr(_thread, "stops", ()), stopped)  # also of the threads that wait for these

    def in_thread(item: T) -> R:
        _thread.stops = stops
        try:
            return work(item)
        finally:
            _thread.stops = ()

    begin = in_thread if isinstance(pool, ThreadPoolExecutor) else work
    waiting: deque[Future[R]] = deque(pool.submit(begin, item) for item in islice(items, ahead))
    try:
        while waiting:
            yield waiting.popleft().result()
            waiting.extend(pool.submit(begin, item) for item in islice(items, 1))
    finally:
        stopped.set()
        for future in waiting:
            future.cancel()


def batches_of(
    items: Iterable[T], weight: Callable[[T], int], most: int, count: int = sys.maxsize
) -> Iterator[list[T]]:
    """Consecutive items in lists, each ended by the item at which its weights reach `most` or its length `count`.

    >>> list(batches_of("abcde", lambda each: 1 + (each == "b"), most=3))
    [['a', 'b'], ['c', 'd', 'e']]
    """
    batch: list[T] = []
    size = 0
    for item in items:
        batch.append(item)
        size += weight(item)
        if size >= most or len(batch) == count:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def check_wanted() -> None:
    """Call before expensive work in a thread of `ordered`; raises `CancelledError` if its results are not wanted."""
    if any(stop.is_set() for stop in getattr(_thread, "stops", ())):
        raise CancelledError
