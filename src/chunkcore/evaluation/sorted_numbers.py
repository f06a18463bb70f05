"""`SortedNumbers`: ascending whole numbers, in a file where they are many, searched a block at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chunkcore.scratch import ScratchFile

__all__ = ["SortedNumbers"]

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
