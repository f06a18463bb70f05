"""Percentile intervals of means by resampling queries: every column is resampled with the same queries."""

from __future__ import annotations

import warnings

import numpy as np

from chunkcore.evaluation.results import Scores

__all__ = ["mean_intervals"]

_BLOCK = 4_000_000  # drawn queries held at once, about 100 MB with what is made of them


def mean_intervals(
    columns: Scores, *, resamples: int = 10_000, seed: int = 0, confidence: float = 0.95
) -> tuple[Scores, Scores]:
    """The bootstrap's percentile interval of each column's mean.

    Args:
        columns: float64, shape (queries, columns); NaN counts neither above nor below the line.
        resamples: how many times the queries are drawn again, with replacement.
        seed: equal seeds give equal intervals.
        confidence: the share of the resampled means that lies inside.

    Returns:
        Low and high, float64, shape (columns,); NaN for a column without a number.

    Source: Efron and Tibshirani, An Introduction to the Bootstrap (1993), section 13.3.

    >>> low, high = mean_intervals(np.array([[0.0], [1.0], [1.0], [0.0]]), resamples=1000)
    >>> bool(low[0] < 0.5 < high[0])
    True
    """
    known = ~np.isnan(columns)
    values = np.where(known, columns, 0.0)
    complete = bool(known.all())
    means = np.full((resamples, columns.shape[1]), np.nan)
    queries = len(columns)
    if queries:
        generator = np.random.default_rng(seed)
        rows = max(1, _BLOCK // queries)
        for first in range(0, resamples, rows):
            drawn = _draw(generator, min(rows, resamples - first), queries)
            below = np.full(values.shape[1], float(queries)) if complete else drawn @ known.astype(np.float64)
            np.divide(drawn @ values, below, out=means[first : first + rows], where=below > 0)
    tail = (1 - confidence) / 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a column of NaN alone is NaN, which is what is meant
        low, high = np.nanquantile(means, [tail, 1 - tail], axis=0)
    return low, high


def _draw(generator: np.random.Generator, resamples: int, queries: int) -> Scores:
    """How many times each resample holds each query: shape (resamples, queries)."""
    drawn = generator.integers(0, queries, size=(resamples, queries))
    drawn += (np.arange(resamples) * queries)[:, None]
    counts = np.bincount(drawn.reshape(-1), minlength=resamples * queries)
    return counts.reshape(resamples, queries).astype(np.float64)
