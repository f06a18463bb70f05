"""`text_keys` and `KeyedNumbers`: what a run remembers of each of millions of texts, 20 bytes and a number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from chunkcore.models.cache import text_key

__all__ = ["KeyedNumbers", "Keys", "text_keys"]

Keys = NDArray[np.bytes_]  # 20 bytes each

_RECENT = 2**16  # keys that are kept apart, so that adding a few does not move all the others


def text_keys(texts: Sequence[str]) -> Keys:
    """`text_key` of each text, shape (len(texts),).

    >>> keys = text_keys(["sky", "sea", "sky"])
    >>> keys.shape, bool(keys[0] == keys[2]), bool(keys[0] == keys[1])
    ((3,), True, False)
    """
    return np.fromiter(map(text_key, texts), dtype="S20", count=len(texts))


class _Table(NamedTuple):
    """Distinct keys in ascending order, and their numbers."""

    keys: Keys
    values: NDArray[Any]

    def find(self, keys: Keys) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """Of each key its number, and whether it is here; 0 where it is not."""
        if not len(self.keys):
            return np.zeros(len(keys), dtype=self.values.dtype), np.zeros(len(keys), dtype=bool)
        at = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        known = self.keys[at] == keys
        return np.where(known, self.values[at], 0), known

    def joined(self, other: _Table) -> _Table:
        """Both; they share no key."""
        at = np.searchsorted(self.keys, other.keys)
        return _Table(np.insert(self.keys, at, other.keys), np.insert(self.values, at, other.values))


class KeyedNumbers:
    """A number of each text that was told of, by the text's key. The first that is told stays.

    A million of them take some 30 megabytes, where a `dict` takes 200.

    >>> lengths = KeyedNumbers(np.int64)
    >>> lengths.add(text_keys(["sky", "oceans"]), np.array([3, 6]))
    >>> [each.tolist() for each in lengths.of(text_keys(["oceans", "sea"]))]
    [[6, 0], [True, False]]
    """

    def __init__(self, dtype: DTypeLike) -> None:
        self._none = _Table(text_keys([]), np.zeros(0, dtype=dtype))
        self._all, self._recent = self._none, self._none

    def of(self, keys: Keys) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """Of each key its number, and whether it is known; 0 where it is not."""
        values, known = self._all.find(keys)
        others, recent = self._recent.find(keys)
        return np.where(recent, others, values), known | recent

    def add(self, keys: Keys, values: NDArray[Any]) -> None:
        """Remember the numbers of those keys that are not known."""
        distinct, first = np.unique(keys, return_index=True)
        new = ~self.of(distinct)[1]
        self._recent = self._recent.joined(_Table(distinct[new], values[first[new]]))
        if len(self._recent.keys) > max(_RECENT, len(self._all.keys) // 8):
            self._settle()

    @property
    def keys(self) -> Keys:
        """All of them, in ascending order."""
        self._settle()
        return self._all.keys

    def _settle(self) -> None:
        self._all, self._recent = self._all.joined(self._recent), self._none
