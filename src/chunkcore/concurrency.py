"""Work in batches; threads: results in order, work that is cancelled, work with a time limit."""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError, Executor, Future, ThreadPoolExecutor
from itertools import islice
from queue import Empty, SimpleQueue
from typing import TypeVar

R = TypeVar("R")
T = TypeVar("T")

# Called with a step's name, how much of it is done, and how much there is.
Progress = Callable[[str, int, int], None]

_thread = threading.local()


def ordered(pool: Executor, work: Callable[[T], R], items: Iterator[T], ahead: int) -> Iterator[R]:
    """Yield ``work(item)`` in the order of the items, with at most `ahead` calls under way.

    When the iterator is closed (by an error or Ctrl-C), calls that have not begun are cancelled. Threads at work, and
    threads they wait for, see the cancellation in `check_wanted`.

    >>> with ThreadPoolExecutor(2) as pool:
    ...     list(ordered(pool, str.upper, iter("abc"), ahead=2))
    ['A', 'B', 'C']
    """
    effort = _Effort(getattr(_thread, "effort", None))
    begin = effort.of(work) if isinstance(pool, ThreadPoolExecutor) else work
    waiting: deque[Future[R]] = deque(pool.submit(begin, item) for item in islice(items, ahead))
    try:
        while waiting:
            yield waiting.popleft().result()
            waiting.extend(pool.submit(begin, item) for item in islice(items, 1))
    finally:
        effort.wanted = False
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
    effort: _Effort | None = getattr(_thread, "effort", None)
    while effort is not None:
        if not effort.wanted:
            raise CancelledError
        effort = effort.outer


class _Effort:
    """The threads of one `ordered`; `outer` is the effort of the thread that waits for them."""

    def __init__(self, outer: _Effort | None) -> None:
        self.outer = outer
        self.wanted = True

    def of(self, work: Callable[[T], R]) -> Callable[[T], R]:
        def begun(item: T) -> R:
            _thread.effort = self
            try:
                return work(item)
            finally:
                _thread.effort = None

        return begun


LONGEST_WAIT = 31_536_000  # seconds: a year; threads cannot wait for some hundreds


class TimeoutExpired(TimeoutError):  # noqa: N818
    """The time limit of `with_timeout` passed. Distinct from a TimeoutError raised by the work."""


def with_timeout(seconds: float | None, work: Callable[[], T]) -> T:
    """The result of the work, or its error. None waits for ever.

    Work over its time continues in a daemon thread, which does not keep the process alive.

    Raises `TimeoutExpired`: no result in time.

    >>> with_timeout(5, lambda: 2 + 2)
    4
    """
    if seconds is None:
        return work()
    results: SimpleQueue[tuple[T | None, BaseException | None]] = SimpleQueue()

    def run() -> None:
        try:
            results.put((work(), None))
        except BaseException as error:  # noqa: BLE001  # raised again by the waiting thread
            results.put((None, error))

    threading.Thread(target=run, name="chunkcore-model", daemon=True).start()
    try:
        value, error = results.get(timeout=seconds)
    except Empty:
        raise TimeoutExpired from None
    if error is not None:
        raise error
    return value  # type: ignore[return-value]
