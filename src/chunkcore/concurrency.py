"""`ordered`: results of threads in the order of what they were made from."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

__all__ = ["ordered"]

R = TypeVar("R")
T = TypeVar("T")


def ordered(pool: ThreadPoolExecutor, work: Callable[[T], R], items: Iterator[T], ahead: int) -> Iterator[R]:
    """Results in the order of the items, with at most `ahead` of them under way.

    >>> with ThreadPoolExecutor(2) as pool:
    ...     list(ordered(pool, str.upper, iter("abc"), ahead=2))
    ['A', 'B', 'C']
    """
    waiting: list[Future[R]] = [pool.submit(work, each) for each in islice(items, ahead)]
    while waiting:
        first = waiting.pop(0)
        yield first.result()
        waiting.extend(pool.submit(work, each) for each in islice(items, 1))
