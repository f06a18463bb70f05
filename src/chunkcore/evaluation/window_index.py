"""From a text to the few places where it can stand: hashes of short windows of the texts that are searched."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from chunkcore.evaluation.text_forms import code_points

__all__ = ["WindowIndex"]

_BASE = 0x9E3779B97F4A7C15

Numbers = NDArray[np.int64]


class WindowIndex:
    """The hash of every so many-th window of texts that stand one after the other, with its place.

    Args:
        texts: to be searched.
        window: characters that a hash stands for; a power of two.
        stride: from one indexed window to the next; 16 / `stride` bytes a character are kept.
    """

    def __init__(self, texts: Sequence[str], *, window: int, stride: int) -> None:
        self._window, self._stride = window, stride
        self._bases: list[int] = [0, *np.cumsum([len(text) for text in texts]).tolist()]
        # Copies: a view would keep the hashes of all windows.
        hashes = [_window_hashes(text, window)[::stride].copy() for text in texts]
        places = [base + stride * np.arange(len(each)) for base, each in zip(self._bases, hashes, strict=False)]
        # A stable sort keeps the places of equal hashes in order.
        joined = np.concatenate([*hashes, np.empty(0, dtype=np.uint64)])
        order = np.argsort(joined, kind="stable")
        self._hashes = joined[order]
        self._places = np.concatenate([*places, np.empty(0, dtype=np.int64)])[order]

    def candidates(self, text: str, number: int | None) -> Iterator[tuple[int, int]]:
        """Every text and offset at which `text` may stand whole, in order; none is missed.

        It must be of window + stride - 1 characters or more, as only then it holds an indexed window anyway.
        Wherever it stands, one window of it at each residue of the stride is indexed. Of the windows of
        a residue the rarest is looked up, so that a rule of dashes inside of a text costs nothing.
        """
        first, counts = self._look_up(text)
        found = []
        for residue in range(self._stride):
            rarest = residue + self._stride * int(np.argmin(counts[residue :: self._stride]))
            found.append(self._places[first[rarest] : first[rarest] + counts[rarest]] - rarest)
        places = np.unique(np.concatenate(found))
        low, high = self._range(number)
        for place in places[(places >= low) & (places < high)].tolist():
            owner = bisect_right(self._bases, place) - 1
            yield owner, place - self._bases[owner]

    def hits(self, text: str, number: int | None, limit: int) -> tuple[Numbers, Numbers, Numbers]:
        """Where windows of `text` stand: of each hit the offset in `text`, the text that it hits, the place in that.

        The rarest windows come first; those that would make the hits more than `limit` are left out.
        """
        first, counts = self._look_up(text)
        known = np.flatnonzero(counts)
        known = known[np.argsort(counts[known], kind="stable")]
        known = known[np.cumsum(counts[known]) <= limit]
        offsets = np.repeat(known, counts[known])
        within = np.arange(len(offsets)) - np.repeat(np.cumsum(counts[known]) - counts[known], counts[known])
        places = self._places[first[offsets] + within]
        low, high = self._range(number)
        inside = (places >= low) & (places < high)
        offsets, places = offsets[inside], places[inside]
        bases = np.array(self._bases)
        owners = np.searchsorted(bases, places, side="right") - 1
        return offsets, owners, places - bases[owners]

    def _look_up(self, text: str) -> tuple[Numbers, Numbers]:
        hashes = _window_hashes(text, self._window)
        first = np.searchsorted(self._hashes, hashes, side="left")
        return first, np.searchsorted(self._hashes, hashes, side="right") - first

    def _range(self, number: int | None) -> tuple[int, int]:
        if number is None:
            return 0, self._bases[-1]
        return self._bases[number], self._bases[number + 1]


def _window_hashes(text: str, window: int) -> NDArray[np.uint64]:
    """A polynomial hash, modulo 2**64, of the window that begins at each character; by doubling."""
    hashes = code_points(text).astype(np.uint64) + np.uint64(1)
    width, factor = 1, _BASE
    while width < window:
        if len(hashes) <= width:
            return np.empty(0, dtype=np.uint64)
        hashes = hashes[:-width] * np.uint64(factor) + hashes[width:]
        width, factor = 2 * width, factor * factor % 2**64
    return hashes
