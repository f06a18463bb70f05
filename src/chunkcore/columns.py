"""Data as columns: lazy sequences, keys of texts, arrays in temporary files."""

from __future__ import annotations

import mmap
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import eq
from typing import Any, Generic, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from chunkcore.plain import text_key

BLOCK = 16_384  # texts; enough that sorting by length pays, few enough to hold with their vectors

T = TypeVar("T")
R = TypeVar("R", covariant=True)
Keys = NDArray[np.bytes_]  # 20 bytes each


class LazyItems(Sequence[R], ABC):
    """A sequence whose items are made on each read, by `item`; equal to any sequence of equal items."""

    @abstractmethod
    def item(self, place: int) -> R:
        """The item at a place from 0 to ``len(self) - 1``."""

    def __iter__(self) -> Iterator[R]:
        return map(self.item, range(len(self)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence):
            return NotImplemented
        return len(self) == len(other) and all(map(eq, self, other))

    __hash__ = None  # type: ignore[assignment]  # as a list

    @overload
    def __getitem__(self, place: int) -> R: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[R]: ...
    def __getitem__(self, place: int | slice) -> R | Sequence[R]:
        places = range(len(self))[place]
        if isinstance(places, range):
            return LazySequence(self.item, places)
        return self.item(places)


class LazySequence(LazyItems[R], Generic[T, R]):
    """The function of each item, computed on each read.

    >>> squares = LazySequence(lambda number: number * number, range(1_000_000))
    >>> squares[999], len(squares), list(squares[1:4])
    (998001, 1000000, [1, 4, 9])
    """

    def __init__(
        self,
        function: Callable[[T], R],
        items: Sequence[T],
    ) -> None:
        self._function = function
        self._items = items

    def __len__(self) -> int:
        return len(self._items)

    def item(self, place: int) -> R:
        return self._function(self._items[place])


def blocks(
    items: Sequence[T],
    size: int = BLOCK,
) -> Iterator[Sequence[T]]:
    """Consecutive blocks of `size` items; one empty block for no items."""
    for start in range(0, max(len(items), 1), size):
        yield items[start : start + size]


def concatenate(parts: Iterable[NDArray[Any]], memory_bytes: int) -> NDArray[np.float32]:
    """Join one or more arrays as float32: in memory up to `memory_bytes`, else mapped from a temporary file that lives
    as long as the array.

    Raises `OSError`: the disk is full; the error names the temporary folder.

    >>> concatenate([np.array([[3, 5]]), np.array([[9, 2]])], memory_bytes=4).tolist()
    [[3.0, 5.0], [9.0, 2.0]]
    """
    held = []
    rows = size = 0
    file: Any = None
    for part in parts:
        held.append(np.ascontiguousarray(part, np.float32))
        rows += len(part)
        size += held[-1].nbytes
        if file is None and size > memory_bytes:
            file = tempfile.TemporaryFile()  # noqa: SIM115
        if file is not None:
            try:
                for item in held:
                    file.write(item.data)
                file.flush()
            except OSError as error:
                folder = f"{tempfile.gettempdir()} (temporary files: TMPDIR names another folder)"
                error.filename = error.filename or folder
                raise
            held.clear()
    if file is None:
        return np.concatenate(held)
    with file:
        return np.asarray(np.memmap(file, np.float32, mode="r", shape=(rows, *part.shape[1:])))


def release(array: NDArray[Any]) -> None:
    """Drop a mapped array's pages from memory. Linux would count them as the process's own; reads reload them."""
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    if isinstance(base, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        base.madvise(mmap.MADV_DONTNEED)


def places_of(numbers: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """The place of each of `size` numbers among some of them; -1 for one that is not there.

    >>> places_of(np.array([2, 0]), 4).tolist()
    [1, -1, 0, -1]
    """
    places = np.full(size, -1, np.int64)
    places[numbers] = np.arange(len(numbers))
    return places


def text_keys(texts: Iterable[str]) -> Keys:
    """`text_key` of each text, shape (texts,)."""
    return np.fromiter(map(text_key, texts), "S20")


def distinct(texts: Sequence[str]) -> tuple[list[str], NDArray[np.int64]]:
    """The distinct texts in order of first appearance, and the place of each text among them.

    >>> found, places = distinct(["b", "a", "b"])
    >>> found, places.tolist()
    (['b', 'a'], [0, 1, 0])
    """
    place = {text: row for row, text in enumerate(dict.fromkeys(texts))}
    return list(place), np.array([place[text] for text in texts], np.int64)
