"""What a model is asked for: each distinct text once, those of like length together, so that little is padding."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["distinct", "encodable", "sorted_batches"]

_SURROGATE = re.compile("[\ud800-\udfff]")


def distinct(texts: Sequence[str]) -> tuple[list[str], NDArray[np.int64]]:
    """The distinct texts, in the order in which they come first, and for each text its place among them.

    >>> found, places = distinct(["b", "a", "b"])
    >>> found, places.tolist()
    (['b', 'a'], [0, 1, 0])
    """
    place = {text: row for row, text in enumerate(dict.fromkeys(texts))}
    return list(place), np.array([place[text] for text in texts], dtype=np.int64)


def sorted_batches(
    lengths: Sequence[int] | NDArray[np.int64], *, size: int, total: int | None = None
) -> Iterator[NDArray[np.int64]]:
    """The positions 0 … n-1 in batches, longest first, ties in order.

    A batch has at most `size` positions and, padded to its longest, at most `total` units of length; one
    that is longer than `total` alone is a batch of its own. Longest first, so that a batch which does not
    fit in memory fails at the start and not after an hour.

    >>> [batch.tolist() for batch in sorted_batches([1, 9, 5, 5], size=2)]
    [[1, 2], [3, 0]]
    >>> [batch.tolist() for batch in sorted_batches([1, 9, 5, 5], size=4, total=10)]
    [[1], [2, 3], [0]]
    """
    measured = np.asarray(lengths, dtype=np.int64)
    order = np.argsort(-measured, kind="stable")
    start = 0
    while start < len(order):
        longest = int(measured[order[start]])
        room = size if total is None else max(1, min(size, total // max(1, longest)))
        yield order[start : start + room]
        start += room


def encodable(texts: Sequence[str]) -> list[str]:
    """The texts with unpaired surrogates, which no tokenizer can read, replaced by U+FFFD."""
    return [text if text.isascii() else _SURROGATE.sub("\ufffd", text) for text in texts]
