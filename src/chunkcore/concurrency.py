"""`ordered`: results of threads or processes in the order of what they were made from."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from itertools import islice
from typing import TypeVar

__all__ = ["ordered"]

R = TypeVar("R")
T = TypeVar("T")


def ordered(pool: Executor, work: Callable[[T], R], items: Iterator[T], ahead: int) -> Iterator[R]:
    """Results in the order of the items, with at most `ahead` of them under way.

    >>> from concurrent.futures import ThreadPoolExecutor
    >>> with ThreadPoolExecutor(2) as pool:
    ...     list(ordered(pool, str.upper, iter("abc"), ahead=2))
    ['A', 'B', 'C']
    """
    waiting: deque[Future[R]] = deque(pool.submit(work, each) for each in islice(items, ahead))
    while waiting:
        yield waiting.popleft().result()
        waiting.extend(pool.submit(work, each) for each in islice(items, 1))
