"""`ordered`: results of threads or processes in the order of what they were made from."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Executor, Future, ThreadPoolExecutor
from itertools import islice
from queue import Empty, SimpleQueue
from typing import TypeVar

__all__ = ["LateError", "Progress", "check_wanted", "ordered", "within"]

R = TypeVar("R")
T = TypeVar("T")

_thread = threading.local()


def ordered(pool: Executor, work: Callable[[T], R], items: Iterator[T], ahead: int) -> Iterator[R]:
    """Results in the order of the items, with at most `ahead` of them under way.

    When nobody wants more of them, because of an error or Ctrl-C, nothing is begun that has not begun. Threads that
    are at work, and the threads that these wait for, find out by `check_wanted`.

    >>> with ThreadPoolExecutor(2) as pool:
    ...     list(ordered(pool, str.upper, iter("abc"), ahead=2))
    ['A', 'B', 'C']
    """
    effort = _Effort(getattr(_thread, "effort", None))
    begin = effort.of(work) if isinstance(pool, ThreadPoolExecutor) else work
    waiting: deque[Future[R]] = deque(pool.submit(begin, each) for each in islice(items, ahead))
    try:
        while waiting:
            yield waiting.popleft().result()
            waiting.extend(pool.submit(begin, each) for each in islice(items, 1))
    finally:
        effort.wanted = False
        for each in waiting:
            each.cancel()


def check_wanted() -> None:
    """To be called before something dear: go on only if somebody still waits for what this thread does.

    Raises:
        CancelledError: nobody does.
    """
    effort: _Effort | None = getattr(_thread, "effort", None)
    while effort is not None:
        if not effort.wanted:
            raise CancelledError
        effort = effort.outer


class _Effort:
    """What the threads of one `ordered` do, as a part of what the thread does that waits for them."""

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


# Called with a step's name, what is done of it, and how much there is.
Progress = Callable[[str, int, int], None]


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
