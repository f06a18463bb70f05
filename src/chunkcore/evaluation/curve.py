"""Evidence against tokens: how much a system finds within each budget, and the budget that a share takes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from chunkcore.evaluation.resampling import column_means, resampled_means, share_intervals
from chunkcore.spans import Scores

BUDGETS = (250, 500, 1000, 2000, 4000, 8000)
SHARES = (0.8, 0.9)  # of the evidence, whose budgets are said


class CurvePoint(NamedTuple):
    """The share that is found in so many tokens, and its band."""

    tokens: float
    share: float
    low: float
    high: float


def curve_points(
    tokens: Sequence[float],
    columns: Scores,
    *,
    clusters: Sequence[str] | None,
    resamples: int = 2000,
    seed: int = 0,
    confidence: float = 0.95,
) -> list[CurvePoint]:
    """A point for each column of shares, a row a question; `clusters` as in `resampled_means`."""
    means = resampled_means(columns, resamples=resamples, seed=seed, clusters=clusters)
    ends = share_intervals(columns, means, confidence, clusters)
    rows = np.column_stack((tokens, column_means(columns), *ends))
    return [CurvePoint(*row) for row in rows.tolist()]


def budgets_up_to(tokens: float) -> list[int]:
    """The budgets, up to the first that holds so many tokens: a larger one would show no more.

    >>> budgets_up_to(400)
    [250, 500]
    """
    below = [budget for budget in BUDGETS if budget < tokens]
    return list(BUDGETS[: len(below) + 1])


def tokens_for(share: float, points: Sequence[CurvePoint]) -> float:
    """The budget in which this share is found: between two points, along the logarithm of the tokens.

    NaN if no point has that share; the first point's tokens if it has.

    >>> line = [CurvePoint(1000, 0.7, 0.6, 0.8), CurvePoint(2000, 0.9, 0.8, 1.0)]
    >>> round(tokens_for(0.8, line)), tokens_for(0.6, line), tokens_for(0.95, line)
    (1414, 1000, nan)
    """
    if points and points[0].share >= share:
        return points[0].tokens
    for before, after in pairwise(points):
        if before.share < share <= after.share:
            way = (share - before.share) / (after.share - before.share)
            return before.tokens * math.pow(after.tokens / before.tokens, way)
    return math.nan
