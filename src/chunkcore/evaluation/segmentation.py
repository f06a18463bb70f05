"""How far one segmentation of a text is from another: Pk and WindowDiff, lower is better."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from chunkcore.errors import DataError

__all__ = ["pk", "window_diff", "window_size"]


def pk(reference: Iterable[int], hypothesis: Iterable[int], count: int, window: int | None = None) -> float:
    """How often the two disagree whether units that are a window apart are in one segment (Beeferman et al., 1999).

    Args:
        reference: the units that begin a segment, after the first unit: sentences, mostly. Any order.
        hypothesis: likewise.
        count: how many units there are.
        window: how far apart, in units; None for `window_size`.

    Returns:
        0 (they agree everywhere) to 1; 0 where fewer units are than one window takes.

    Raises:
        DataError: a unit is not in ``1 .. count - 1``, or the window is under 1.

    O(count) time and memory. Of the four pairs two apart here, one lies in one segment in the reference alone:

    >>> pk([3], [2], count=6, window=2)
    0.5
    """
    first, second, window = _prepared(reference, hypothesis, count, window)
    return _share((first[window:] == first[:-window]) != (second[window:] == second[:-window]))


def window_diff(reference: Iterable[int], hypothesis: Iterable[int], count: int, window: int | None = None) -> float:
    """How often the two have not as many boundaries as each other in a window (Pevzner and Hearst, 2002).

    Unlike `pk` it sees boundaries that are near each other. Arguments and errors are those of `pk`.

    >>> window_diff([3], [3, 4], count=6, window=3), pk([3], [3, 4], count=6, window=3)
    (0.6666666666666666, 0.0)
    """
    first, second, window = _prepared(reference, hypothesis, count, window)
    return _share(first[window:] - first[:-window] != second[window:] - second[:-window])


def window_size(reference: Iterable[int], count: int) -> int:
    """Half the mean length of the reference's segments, rounded to even, at least 1: what both papers set.

    >>> window_size([10], count=20)
    5
    """
    return max(1, round(count / (2 * (len(set(reference)) + 1))))


def _prepared(
    reference: Iterable[int], hypothesis: Iterable[int], count: int, window: int | None
) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """The number of each unit's segment in both, and the window."""
    known = list(reference)
    if window is None:
        window = window_size(known, count)
    if window < 1:
        raise DataError(f"the window is at least 1 unit, got {window}")
    return _segments(known, count), _segments(hypothesis, count), window


def _segments(starts: Iterable[int], count: int) -> NDArray[np.int64]:
    begins = np.zeros(max(0, count), dtype=np.int64)
    for start in starts:
        if not 0 < start < count:
            raise DataError(f"segments of {count} units begin at 1 to {count - 1} (0 is left out), got {start}")
        begins[start] = 1
    return begins.cumsum()


def _share(differs: NDArray[np.bool_]) -> float:
    return float(differs.mean()) if len(differs) else 0.0
