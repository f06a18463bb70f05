"""Sequences of which not all need be there at once: `Mapped`, seen through a function, and `blocks`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Generic, TypeVar, overload

__all__ = ["BLOCK", "Mapped", "blocks"]

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
