"""`SortedNumbers`: ascending whole numbers, in a file where they are many, searched a block at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, TypeVar, overload

import numpy as np
from numpy.typing import DTypeLike, NDArray

from chunkcore.files import ScratchFile
from chunkcore.models.cache import text_key

__all__ = ["BLOCK", "KeyedNumbers", "Keys", "Mapped", "SortedNumbers", "blocks", "text_keys"]

BLOCK = 16_384  # texts; enough that sorting them by length pays, few enough to be held with their vectors

T = TypeVar("T")
R = TypeVar("R", covariant=True)


class Mapped(Sequence[R], Generic[T, R]):
    """What the function makes of each item, made anew whenever it is asked for.

    >>> squares = Mapped(lambda number: number * number, range(1_000_000))
    >>> squares[999], len(squares), list(squares[1:4])
    (998001, 1000000, [1, 4, 9])
    """

    def __init__(self, function: Callable[[T], R], items: Sequence[T]) -> None:
        self._function = function
        self._items = items

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[R]:
        return map(self._function, self._items)

    @overload
    def __getitem__(self, place: int) -> R: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[R]: ...
    def __getitem__(self, place: int | slice) -> R | Sequence[R]:
        if isinstance(place, slice):
            return Mapped(self._function, self._items[place])
        return self._function(self._items[place])


def blocks(items: Sequence[T], size: int = BLOCK) -> Iterator[Sequence[T]]:
    """Neighbouring items, so many at once; of none, one empty block.

    >>> [list(some) for some in blocks(range(5), 2)]
    [[0, 1], [2, 3], [4]]
    """
    for start in range(0, max(len(items), 1), size):
        yield items[start : start + size]


Numbers = NDArray[np.int64]

_BLOCK = 2**20  # numbers


class SortedNumbers:
    """Ascending numbers that are appended, and then looked up many at a time.

    Each lookup reads every block that it concerns once, in order.

    Args:
        dtype: how each is kept; it holds the largest.
        memory_bytes: what stays in memory; blocks past it stand in a temporary file.
        block: numbers that are read together.

    >>> numbers = SortedNumbers(np.dtype("u4"), block=2)
    >>> numbers.append(np.array([3, 5, 5])), numbers.append(np.array([9]))
    (None, None)
    >>> numbers.first_from(np.array([0, 5, 6, 10])).tolist(), numbers.at(np.array([3, 0])).tolist()
    ([0, 1, 3, 4], [9, 3])
    """

    def __init__(
        self, dtype: np.dtype[np.unsignedinteger], *, memory_bytes: int = 64 * 2**20, block: int = _BLOCK
    ) -> None:
        self._dtype = dtype
        self._size = block
        self._room = memory_bytes // (block * dtype.itemsize)  # blocks that stay in memory
        self._blocks: list[NDArray[np.unsignedinteger] | int] = []  # each whole, or where it begins in the file
        self._file: ScratchFile | None = None
        self._last = bytearray()  # the block that is not full
        self._firsts: list[int] = []  # of each block
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def append(self, numbers: Numbers) -> None:
        """Keep numbers behind the others; none is under the last of them.

        Raises:
            OSError: the disk is full.
        """
        begin = -self._count % self._size  # where the next block does
        self._firsts += numbers[begin :: self._size].tolist()
        self._count += len(numbers)
        self._last += numbers.astype(self._dtype).tobytes()
        whole = self._size * self._dtype.itemsize
        while len(self._last) >= whole:
            self._keep(bytes(self._last[:whole]))
            del self._last[:whole]

    def _keep(self, block: bytes) -> None:
        if len(self._blocks) < self._room:
            self._blocks.append(np.frombuffer(block, dtype=self._dtype))
        else:
            self._file = self._file or ScratchFile()
            self._blocks.append(self._file.add(block))

    def first_from(self, values: Numbers) -> Numbers:
        """Of each value the place of the first number that is not under it, int64; the count where there is none."""
        # The last block that begins under the value has it, or the next one begins with it.
        blocks = np.searchsorted(np.array(self._firsts, dtype=np.int64), values, side="left") - 1
        found = self._by_block(blocks, values, np.searchsorted)
        return np.where(blocks < 0, 0, found + np.maximum(blocks, 0) * self._size)

    def at(self, places: Numbers) -> Numbers:
        """The numbers at some places, int64.

        Raises:
            IndexError: there is no such place.
        """
        if len(places) and not 0 <= places.min() <= places.max() < self._count:
            raise IndexError(f"there are {self._count} numbers, and none at {places.min()} or {places.max()}")
        blocks = places // self._size
        return self._by_block(blocks, places - blocks * self._size, lambda numbers, asked: numbers[asked])

    def _by_block(
        self, blocks: Numbers, asked: Numbers, answer: Callable[[NDArray[Any], Numbers], NDArray[Any]]
    ) -> Numbers:
        """What each block answers to those that ask it; 0 for those that ask none (-1)."""
        found = np.zeros(len(blocks), dtype=np.int64)
        order = np.argsort(blocks, kind="stable")
        ends = np.searchsorted(blocks[order], np.arange(-1, len(self._firsts)), side="right")
        for block, (start, end) in enumerate(zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)):
            if start < end:
                own = order[start:end]
                found[own] = answer(self._read(block), asked[own])
        return found

    def _read(self, block: int) -> NDArray[np.unsignedinteger]:
        if block == len(self._blocks):
            return np.frombuffer(bytes(self._last), dtype=self._dtype)
        kept = self._blocks[block]
        if not isinstance(kept, int):
            return kept
        assert self._file is not None
        return np.frombuffer(self._file.read(kept, self._size * self._dtype.itemsize), dtype=self._dtype)


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
