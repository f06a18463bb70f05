"""Which of several places each piece of a document stands at, told by the order of the pieces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from chunkcore.document import Span
from chunkcore.spans import Ranges, as_ranges

__all__ = ["Choice", "choose_in_order"]

_BACKWARDS = 10**12  # what a piece costs that does not begin after the one before it: more than any gaps


@dataclass(frozen=True, slots=True)
class Choice:
    """The place that was chosen of a piece's, and how many would have fitted as well (itself included)."""

    index: int
    equals: int


def choose_in_order(places: Sequence[Sequence[Span]], lengths: Sequence[int]) -> list[Choice | None]:
    """The places that make the sequence most even: by dynamic programming over all of them.

    Each piece begins after the one before it, as long as there is such a place. A gap costs as many characters as it
    differs from the usual one: the median between neighbours that stand at one place only (0 where there
    are none; less than 0 where pieces overlap).

    Args:
        places: of each piece; none where it was not found.
        lengths: of each piece, in characters: what the gap grows by where it was not found.

    Returns:
        The choice for each piece; None where it has no place. Time and memory grow with the product of
        the numbers of places of neighbours.

    >>> row = [Span(0, 9), Span(20, 29), Span(40, 49)]
    >>> choose_in_order([[Span(12, 19)], row, [Span(30, 39)]], [7, 9, 9])[1]
    Choice(index=1, equals=1)
    """
    known = [number for number, each in enumerate(places) if each]
    ranges = [as_ranges(places[number]) for number in known]
    gap = _usual_gap(places)
    jumps = [gap + sum(lengths[lost] + gap for lost in range(a + 1, b)) for a, b in pairwise(known)]
    until = [np.zeros(len(each), dtype=np.int64) for each in ranges]
    after = [np.zeros(len(each), dtype=np.int64) for each in ranges]
    origin = []
    for step, jump in enumerate(jumps):
        costs = until[step][:, None] + _costs(ranges[step], ranges[step + 1], jump)
        origin.append(costs.argmin(axis=0))
        until[step + 1] = costs.min(axis=0)
    for step, jump in reversed(list(enumerate(jumps))):
        after[step] = (_costs(ranges[step], ranges[step + 1], jump) + after[step + 1][None, :]).min(axis=1)
    chosen: list[Choice | None] = [None] * len(places)
    place = int(until[-1].argmin()) if known else 0
    for step in reversed(range(len(known))):
        total = until[step] + after[step]
        chosen[known[step]] = Choice(place, int(np.count_nonzero(total == total.min())))
        if step:
            place = int(origin[step - 1][place])
    return chosen


def _usual_gap(places: Sequence[Sequence[Span]]) -> int:
    gaps = [b[0].start - a[0].end for a, b in pairwise(places) if len(a) == len(b) == 1]
    return int(np.median(gaps)) if gaps else 0


def _costs(before: Ranges, after: Ranges, jump: int) -> Ranges:
    """What each place of a piece costs after each place of the one before it."""
    uneven: Ranges = np.abs(after[None, :, 0] - before[:, None, 1] - jump)
    return uneven + np.where(after[None, :, 0] > before[:, None, 0], 0, _BACKWARDS)
