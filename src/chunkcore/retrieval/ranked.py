"""`Ranked`: what a search found for many queries, as two arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Ranked"]

Indices = NDArray[np.int64]
Scores = NDArray[np.float64]


class Ranked(NamedTuple):
    """The best of each query, best first.

    Attributes:
        indices: into what was searched, each once a query; -1 after the last where a query has fewer than others:
            int64, shape (queries, at most k).
        scores: higher is better, nowhere rising in a row: float64, the same shape; -inf beside -1.
    """

    indices: Indices
    scores: Scores

    @classmethod
    def of(cls, rows: Sequence[tuple[Indices, Scores]]) -> Ranked:
        """Rows of different lengths, side by side.

        >>> Ranked.of([(np.array([2, 0]), np.array([0.5, 0.1])), (np.array([1]), np.array([0.3]))]).indices.tolist()
        [[2, 0], [1, -1]]
        """
        width = max((len(indices) for indices, _ in rows), default=0)
        found = cls(np.full((len(rows), width), -1, dtype=np.int64), np.full((len(rows), width), -np.inf))
        for row, (indices, scores) in enumerate(rows):
            found.indices[row, : len(indices)] = indices
            found.scores[row, : len(scores)] = scores
        return found

    @property
    def counts(self) -> Indices:
        """How many each query has."""
        return np.asarray((self.indices >= 0).sum(axis=1), dtype=np.int64)

    def row(self, number: int) -> tuple[Indices, Scores]:
        """One query's indices and scores."""
        count = int((self.indices[number] >= 0).sum())
        return self.indices[number, :count], self.scores[number, :count]

    def best(self, k: int) -> Ranked:
        """The best k of each query."""
        return Ranked(self.indices[:, :k], self.scores[:, :k])

    def then(self, more: Ranked) -> Ranked:
        """What this found, and after it what else `more` found, in its order.

        The scores of those are lowered to the last before them, so that sorting by score keeps the order.

        >>> first = Ranked(np.array([[3]]), np.array([[0.2]]))
        >>> first.then(Ranked(np.array([[1, 3, 0]]), np.array([[0.9, 0.2, 0.1]])))
        Ranked(indices=array([[3, 1, 0]]), scores=array([[0.2, 0.2, 0.1]]))
        """
        rows = []
        for number in range(len(self.indices)):
            indices, scores = self.row(number)
            others, values = more.row(number)
            new = ~np.isin(others, indices)
            together = np.concatenate((scores, values[new]))
            rows.append((np.concatenate((indices, others[new])), np.minimum.accumulate(together)))
        return Ranked.of(rows)
