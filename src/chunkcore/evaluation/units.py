"""The units of all documents, numbered one after the other, so that arrays can hold any span."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from chunkcore.document import Document
from chunkcore.evaluation.parts import parts_of
from chunkcore.evaluation.sorted_numbers import SortedNumbers
from chunkcore.spans import Ranges, as_ranges

__all__ = ["Axis", "CharacterAxis", "Coverage", "DocumentAxis", "PartAxis", "StartAxis"]

Numbers = NDArray[np.int64]


class Axis(Protocol):
    """Units numbered from 0, and which of them a range of characters holds."""

    @property
    def size(self) -> int: ...

    def ranges(self, characters: Ranges) -> Ranges: ...


class CharacterAxis:
    """Every document's characters, one document after the other, with a gap of one between two.

    The gap keeps the end of a document from touching the beginning of the next.
    """

    def __init__(self, documents: Sequence[Document]) -> None:
        self.numbers = {document.id: number for number, document in enumerate(documents)}
        self.sizes = np.array([document.size for document in documents], dtype=np.int64)
        self.bases = np.cumsum(self.sizes + 1) - self.sizes - 1
        self.size = int((self.sizes + 1).sum())

    def ranges(self, characters: Ranges) -> Ranges:
        """The characters themselves."""
        return characters

    def documents(self, characters: Ranges) -> Numbers:
        """The number of each range's document."""
        return np.searchsorted(self.bases, characters[:, 0], side="right") - 1


class StartAxis:
    """Every document's tokens or sentences, numbered one document after the other.

    A unit is known by where it begins, and belongs to the range in which it does.
    """

    def __init__(
        self, characters: CharacterAxis, documents: Sequence[Document], starts: Callable[[str], Numbers]
    ) -> None:
        # 200 million tokens are 0.8 GB in 32 bits.
        self._begins = SortedNumbers(np.dtype("u4" if characters.size < 2**32 else "u8"))
        for base, document in zip(characters.bases.tolist(), documents, strict=True):
            self._begins.append(base + starts(document.text))
        self._characters = characters
        self.size = len(self._begins)

    def ranges(self, characters: Ranges) -> Ranges:
        """Of each range of the character axis the units that begin in it.

        A range inside of one unit, in which none begins, is that unit: whoever retrieves a part of a
        token pays for it, and evidence of a few letters is never evidence of nothing.
        """
        first = self._begins.first_from(characters[:, 0])
        after = self._begins.first_from(characters[:, 1])
        least = self._begins.first_from(self._characters.bases[self._characters.documents(characters)])
        return np.column_stack((np.where(first == after, np.maximum(first - 1, least), first), after))

    def begin(self, units: Numbers) -> Numbers:
        """The character at which each of some units begins."""
        return self._begins.at(units)


class DocumentAxis:
    """The documents themselves: a range of the character axis is the one in which it stands."""

    def __init__(self, characters: CharacterAxis) -> None:
        self._characters = characters
        self.size = len(characters.sizes)

    def ranges(self, characters: Ranges) -> Ranges:
        """Of each range its document, as a range of one."""
        document = self._characters.documents(characters)
        return np.column_stack((document, document + 1))


class PartAxis:
    """The originals of stitched documents (`parts_of`): a range holds those that it shares a character with."""

    def __init__(self, characters: CharacterAxis, documents: Sequence[Document]) -> None:
        found = [as_ranges(part.span for part in parts_of(document)) for document in documents]
        bases = characters.bases.tolist()
        moved = [base + each for base, each in zip(bases, found, strict=True)]
        self._parts: Ranges = np.concatenate([np.empty((0, 2), dtype=np.int64), *moved])
        self.size = len(self._parts)

    def ranges(self, characters: Ranges) -> Ranges:
        """Of each range the parts that it shares a character with; none between two of them."""
        first = np.searchsorted(self._parts[:, 1], characters[:, 0], side="right")
        after = np.searchsorted(self._parts[:, 0], characters[:, 1], side="left")
        return np.column_stack((first, np.maximum(first, after)))


class Coverage:
    """Positions that sorted, disjoint ranges cover, ready to be asked how many lie in other ranges."""

    def __init__(self, union: Ranges) -> None:
        lengths = union[:, 1] - union[:, 0]
        self._edges = union.reshape(-1)
        # Covered positions before each edge; between two edges the count grows, or stands still.
        self._before = np.column_stack((np.cumsum(lengths) - lengths, np.cumsum(lengths))).reshape(-1)

    def lengths(self, ranges: Ranges) -> Numbers:
        """How many covered positions lie in each range, int64."""
        return self._up_to(ranges[:, 1]) - self._up_to(ranges[:, 0])

    def _up_to(self, positions: Numbers) -> Numbers:
        if not len(self._edges):
            return np.zeros(len(positions), dtype=np.int64)
        edge = np.searchsorted(self._edges, positions, side="right") - 1
        inside = edge % 2 == 0  # also true of no edge but -1, which is odd
        known = np.maximum(edge, 0)
        grown = np.where(inside, positions - self._edges[known], 0)
        return np.where(edge < 0, 0, self._before[known] + grown)
