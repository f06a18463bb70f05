"""`asking`: as many questions under way as a model takes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from chunkcore.concurrency import ordered
from chunkcore.models.llm import LLM

__all__ = ["asking"]

R = TypeVar("R")
T = TypeVar("T")


def asking(llm: LLM, ask: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
    """What `ask` gives for each item, in their order; where it raises, nothing more is asked."""
    at_once = max(1, int(getattr(llm, "concurrency", 1)))
    with ThreadPoolExecutor(at_once) as pool:
        try:
            yield from ordered(pool, ask, iter(items), 2 * at_once)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
