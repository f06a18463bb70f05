"""`top_k_shards`: exact search of vectors that stand in several places, with the answer that one place would give."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from chunkcore.errors import DataError, OptionError
from chunkcore.index.search import Best, Rows, top_k
from chunkcore.models.base import Vectors

__all__ = ["Mapper", "Shard", "merge", "search_shard", "top_k_shards"]


class Mapper(Protocol):
    """What `map` is: a function done for each item. Answers may come in any order; nothing may be lost."""

    def __call__(self, function: Callable[[Any], Any], items: Iterable[Any], /) -> Iterable[Any]: ...


class Shard(NamedTuple):
    """Neighbouring vectors of many.

    Attributes:
        start: the number of the first.
        vectors: theirs; or what loads them where they are searched, so that only the loader travels there.
    """

    start: int
    vectors: Rows | Callable[[], Rows]


def search_shard(shard: Shard, *, queries: Vectors, k: int) -> Best:
    """`top_k` of one shard, with the numbers that its vectors have among all."""
    rows = shard.vectors() if callable(shard.vectors) else shard.vectors
    indices, scores = top_k(queries, rows, k)
    return Best(indices + shard.start, scores)


def merge(one: Best, other: Best, k: int) -> Best:
    """The `k` best of both; of equal ones the lower number first.

    >>> one = Best(np.array([[4, 7]]), np.array([[0.9, 0.5]], dtype=np.float32))
    >>> merge(one, Best(np.array([[2]]), np.array([[0.5]], dtype=np.float32)), 2).indices.tolist()
    [[4, 2]]
    """
    indices = np.concatenate((one.indices, other.indices), axis=1)
    scores = np.concatenate((one.scores, other.scores), axis=1)
    order = np.lexsort((indices, -scores), axis=1)[:, :k]
    return Best(np.take_along_axis(indices, order, axis=1), np.take_along_axis(scores, order, axis=1))


def top_k_shards(queries: ArrayLike, shards: Iterable[Shard], k: int, *, mapper: Mapper = map) -> Best:
    """What `top_k` finds in all shards' vectors, one after the other: the same numbers, the same scores, in any order.

    Args:
        queries: shape (q, d).
        shards: each knows where it stands.
        k: how many are wanted; where there are fewer, there are as many.
        mapper: searches the shards: `map`, a pool's, or one that sends them to other machines. Whoever asks holds the
            best so far and one answer, each (q, k), however many shards there are.

    Raises:
        OptionError: k is under 1.
        ModelError: see `top_k`.
        DataError: the mapper did not answer for each shard once.

    >>> rows = np.eye(3, dtype=np.float32)
    >>> top_k_shards(rows[:1], [Shard(1, rows[1:]), Shard(0, rows[:1])], 2).indices.tolist()
    [[0, 1]]
    """
    if k < 1:
        raise OptionError(f"k is at least 1, got {k}")
    asked = np.asarray(queries)
    best = Best.none(len(asked), 0)
    sent = answered = 0

    def counted() -> Iterator[Shard]:
        nonlocal sent
        for sent, shard in enumerate(shards, start=1):  # noqa: B007
            yield shard

    for found in mapper(partial(search_shard, queries=asked, k=k), counted()):
        best = merge(best, found, k)
        answered += 1
    if answered != sent:
        raise DataError(f"{sent} shards were to be searched and {answered} answered: expected each once")
    return best
