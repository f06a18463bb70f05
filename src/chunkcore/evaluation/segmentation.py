"""How far one segmentation of a text is from another.

Pk and WindowDiff look through a window and are errors: lower is better. Boundary precision, recall, F1 and boundary
similarity look at the boundaries themselves: higher is better.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from chunkcore.errors import DataError

__all__ = ["BoundaryScores", "boundary_scores", "boundary_similarity", "pk", "window_diff", "window_size"]


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


class BoundaryScores(NamedTuple):
    """Of boundaries, 0 to 1."""

    precision: float
    recall: float
    f1: float


def boundary_scores(
    reference: Iterable[int], hypothesis: Iterable[int], count: int, tolerance: int = 0
) -> BoundaryScores:
    """How many of the boundaries found are right, and how many of the right ones are found.

    A boundary is right where one of the reference's is at most `tolerance` units away that no other boundary is
    right by: as many pairs are made as can be.

    Args:
        reference: the units that begin a segment, after the first unit: sentences or characters. Any order.
        hypothesis: likewise.
        count: how many units there are.
        tolerance: in units.

    Returns:
        Precision is 0 where nothing was found and something was to be found, recall 1 where nothing was to be found;
        all are 1 where neither side has a boundary.

    Raises:
        DataError: a unit is not in ``1 .. count - 1``, or the tolerance is under 0.

    O(n log n) in the boundaries.

    >>> boundary_scores([10, 20], [11, 12, 30], count=40, tolerance=1)
    BoundaryScores(precision=0.3333333333333333, recall=0.5, f1=0.4)
    """
    if tolerance < 0:
        raise DataError(f"the tolerance is at least 0 units, got {tolerance}")
    right, found = _sorted(reference, count), _sorted(hypothesis, count)
    if not right and not found:
        return BoundaryScores(1.0, 1.0, 1.0)
    pairs = _pairs(right, found, tolerance)
    precision = pairs / len(found) if found else 0.0
    recall = pairs / len(right) if right else 1.0
    return BoundaryScores(precision, recall, 2 * pairs / (len(right) + len(found)))


def boundary_similarity(reference: Iterable[int], hypothesis: Iterable[int], count: int, near: int = 1) -> float:
    """The share of boundaries that agree, where a near miss counts in part (B: Fournier, 2013, section 4).

    One minus the edits that turn one into the other, over edits and agreements. A boundary that only one side has
    costs 1; two that are d units apart, d at most `near`, are one that was moved, and cost d / (near + 1). The nearest
    are paired first, then the leftmost.

    Args:
        reference: the units that begin a segment, after the first unit: sentences or characters. Any order.
        hypothesis: likewise.
        count: how many units there are.
        near: how far a boundary may have been moved; 1, the paper's, says that one next to the right one is half right.

    Returns:
        0 to 1; 1 where neither side has a boundary.

    Raises:
        DataError: a unit is not in ``1 .. count - 1``, or `near` is under 0.

    Time O(n log n) in the pairs of boundaries that are near.

    >>> boundary_similarity([10, 20], [11, 20, 30], count=40)  # moved by one, right, too many
    0.5
    """
    if near < 0:
        raise DataError(f"near is at least 0 units, got {near}")
    right, found = set(_sorted(reference, count)), set(_sorted(hypothesis, count))
    agreed = len(right & found)
    moved = _moved(right - found, found - right, near)
    edits = len(right ^ found) - len(moved)  # a move stands for two
    if not agreed + edits:
        return 1.0
    saved = sum(1 - distance / (near + 1) for distance in moved)
    return (agreed + saved) / (agreed + edits)


def _sorted(starts: Iterable[int], count: int) -> list[int]:
    found = sorted({int(start) for start in starts})
    if found and not 0 < found[0] <= found[-1] < count:
        wrong = found[0] if found[0] < 1 else found[-1]
        raise DataError(f"segments of {count} units begin at 1 to {count - 1} (0 is left out), got {wrong}")
    return found


def _pairs(right: list[int], found: list[int], tolerance: int) -> int:
    """The most pairs, each of its own two boundaries: on a line, the first that fits is always as good as any."""
    pairs = place = 0
    for start in right:
        while place < len(found) and found[place] < start - tolerance:
            place += 1
        if place < len(found) and found[place] <= start + tolerance:
            pairs += 1
            place += 1
    return pairs


def _moved(missing: set[int], added: set[int], near: int) -> list[int]:
    """How far boundaries were moved, each missing and each added one in one move at most."""
    others = np.array(sorted(added), dtype=np.int64)
    candidates = []
    for start in missing:
        first, last = np.searchsorted(others, [start - near, start + near + 1]).tolist()
        candidates += [(abs(start - other), min(start, other), start, other) for other in others[first:last].tolist()]
    moved = []
    for distance, _, start, other in sorted(candidates):
        if start in missing and other in added:
            missing.remove(start)
            added.remove(other)
            moved.append(distance)
    return moved


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
