"""What each ranked piece brings that no better one did, and the measures that look at the order."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from chunkcore.evaluation.answers import running
from chunkcore.evaluation.measures import MeasureName
from chunkcore.evaluation.pieces import Numbers
from chunkcore.evaluation.results import Scores
from chunkcore.spans import Ranges

__all__ = ["RANK_MEASURES", "Ranking", "first_cover", "ideal_gain"]

RANK_MEASURES: tuple[MeasureName, ...] = ("HitRate", "MRR", "MAP", "nDCG", "DCG", "ChunkPrecision")


@dataclass(frozen=True, eq=False)
class Ranking:
    """Ranked answers, by query and then by rank, in one unit.

    Attributes:
        query: of each answer, its query's number, shape (answers,).
        rank: of each answer, from 0.
        new: of each answer, the relevant units that no better one of its query held.
        sizes: of each answer, all of its units, repeats included.
        relevant: of each query, its relevant units, shape (queries,).
        ideal: of each query, the most that the sum of nDCG can be.
    """

    query: Numbers
    rank: Numbers
    new: Scores
    sizes: Scores
    relevant: Scores
    ideal: Scores

    def value(self, name: MeasureName) -> Scores:
        """The measure's score of each query; nothing retrieved scores 0, no unit of evidence NaN."""
        # The share of each piece that is what it brings: the gain of papers that score chunks by their density.
        share, discount = _divide(self.new, self.sizes), _discount(self.rank)
        found: dict[str, Callable[[], Scores]] = {
            "HitRate": self._hit_rate,
            "MRR": self._reciprocal_rank,
            "MAP": self._average_precision,
            "nDCG": lambda: _divide(self._sum(self.new * discount), self.ideal),
            "DCG": lambda: self._sum(share * discount),
            "ChunkPrecision": lambda: _divide(self._sum(share), self._sum(np.ones_like(share))),
        }
        return np.where(self.relevant == 0, math.nan, found[name]())

    def _hit_rate(self) -> Scores:
        return (self._sum(self.new) > 0).astype(np.float64)

    def _reciprocal_rank(self) -> Scores:
        best = np.zeros(len(self.relevant))
        brings = self.new > 0
        np.maximum.at(best, self.query[brings], 1 / (self.rank[brings] + 1.0))
        return best

    def _average_precision(self) -> Scores:
        found = running(self.new, self.query) + self.new
        seen = running(self.sizes, self.query) + self.sizes
        return _divide(self._sum(self.new * _divide(found, seen)), self.relevant)

    def _sum(self, values: Scores) -> Scores:
        return np.bincount(self.query, values, minlength=len(self.relevant)).astype(np.float64)


def _discount(rank: Numbers) -> Scores:
    return np.asarray(1 / np.log2(rank + 2.0))


def _divide(above: Scores, below: Scores) -> Scores:
    return np.divide(above, below, out=np.zeros_like(above), where=below > 0)


def ideal_gain(query: Numbers, amounts: Scores, limit: Numbers) -> Scores:
    """The largest discounted gain, whatever the pieces: each relevant document in one of them, the richest first.

    A piece comes from one document. So no ranking brings more by any rank than the documents that hold most.

    Args:
        query: of each relevant document, the query's number.
        amounts: of each relevant document, its relevant units.
        limit: of each query, how many pieces are looked at, shape (queries,).

    >>> ideal_gain(np.array([0, 0]), np.array([1.0, 1.0]), np.array([1])).tolist()
    [1.0]
    """
    order = np.lexsort((-amounts, query))
    query, amounts = query[order], amounts[order]
    rank = running(np.ones_like(query), query)
    kept = rank < limit[query]
    gains = amounts[kept] * _discount(rank[kept])
    return np.bincount(query[kept], gains, minlength=len(limit)).astype(np.float64)


def first_cover(ranges: Ranges, owner: Numbers, owners: int) -> Scores:
    """How many positions each owner is the first to cover; of two, the one of the lower number was first.

    Args:
        ranges: shape (n, 2).
        owner: of each range, shape (n,).
        owners: how many there are.

    Time O(n log n), whatever the ranges overlap: each stretch between two edges is given the lowest owner of
    the blocks of a power of two of stretches that cover it, handed down from the long blocks to the short.

    >>> first_cover(np.array([[0, 4], [2, 6], [0, 9]]), np.array([0, 1, 2]), 3).tolist()
    [4.0, 2.0, 3.0]
    """
    edges, places = np.unique(ranges, return_inverse=True)
    if not len(edges):
        return np.zeros(owners)
    places = places.reshape(ranges.shape)
    counts = places[:, 1] - places[:, 0]
    level = np.frexp(counts.astype(np.float64))[1] - 1
    nobody = owners
    first = np.full(len(edges), nobody, dtype=np.int64)
    for power in range(int(level.max()), -1, -1):
        here = np.flatnonzero((level == power) & (counts > 0))
        np.minimum.at(first, places[here, 0], owner[here])
        np.minimum.at(first, places[here, 1] - 2**power, owner[here])
        if power:
            half = 2 ** (power - 1)
            handed = first.copy()
            handed[half:] = np.minimum(handed[half:], first[:-half])
            first = handed
    lengths = np.append(np.diff(edges), 0)
    return np.bincount(first, lengths, minlength=owners + 1)[:owners].astype(np.float64)
