"""`text_keys` and `KeyedNumbers`: what a run remembers of each of millions of texts, 20 bytes and a number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

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


class KeyedNumbers:
    """A number of each text that was told of, by the text's key. The first that is told stays.

    A million of them take some 30 megabytes, where a `dict` takes 200. One thread at a time may use it.

    >>> lengths = KeyedNumbers(np.int64)
    >>> lengths.add(text_keys(["sky", "oceans"]), np.array([3, 6]))
    >>> [each.tolist() for each in lengths.of(text_keys(["oceans", "sea"]))]
    [[6, 0], [True, False]]
    """

    def __init__(self, dtype: DTypeLike) -> None:
        # Ascending keys and their numbers; and what was added since, without the zeros that NumPy drops at a key's end.
        self._keys, self._values = text_keys([]), np.zeros(0, dtype=dtype)
        self._recent: dict[bytes, Any] = {}

    def of(self, keys: Keys) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """Of each key its number, and whether it is known; 0 where it is not."""
        values = np.zeros(len(keys), dtype=self._values.dtype)
        known = np.zeros(len(keys), dtype=bool)
        if len(self._keys):
            at = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
            known = self._keys[at] == keys
            values[known] = self._values[at[known]]
        if self._recent:
            for place, key in enumerate(keys.tolist()):
                if key in self._recent:
                    values[place], known[place] = self._recent[key], True
        return values, known

    def add(self, keys: Keys, values: NDArray[Any]) -> None:
        """Remember the numbers of those keys that are not known."""
        new = ~self.of(keys)[1]
        for key, value in zip(keys[new].tolist(), values[new].tolist(), strict=True):
            self._recent.setdefault(key, value)
        if len(self._recent) > max(_RECENT, len(self._keys) // 8):
            self._settle()

    @property
    def keys(self) -> Keys:
        """All of them, in ascending order."""
        self._settle()
        return self._keys

    def _settle(self) -> None:
        if not self._recent:
            return
        keys = np.array(list(self._recent), dtype=self._keys.dtype)
        order = np.argsort(keys)
        values = np.array(list(self._recent.values()), dtype=self._values.dtype)[order]
        at = np.searchsorted(self._keys, keys[order])
        self._keys, self._values = np.insert(self._keys, at, keys[order]), np.insert(self._values, at, values)
        self._recent = {}
