"""Intervals of means by resampling questions, or documents with all their questions.

Every column is resampled with the same draws, so that differences of columns are paired.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from chunkcore.evaluation.results import Scores
from chunkcore.evaluation.student import student_quantile

__all__ = ["cluster_sums", "intervals", "mean_intervals", "resampled_means", "units_of"]

_BLOCK = 4_000_000  # drawn units held at once, about 100 MB with what is made of them


def mean_intervals(
    columns: Scores,
    *,
    resamples: int = 10_000,
    seed: int = 0,
    confidence: float = 0.95,
    clusters: Sequence[str] | None = None,
) -> tuple[Scores, Scores]:
    """The expanded percentile interval of each column's mean.

    Args:
        columns: float64, shape (queries, columns); NaN counts neither above nor below the line.
        resamples: how many times the units are drawn again, with replacement.
        seed: equal seeds give equal intervals.
        confidence: how often intervals made so hold the mean of all questions that might have been asked.
        clusters: of each query, what it is drawn together with, such as its document; None draws queries.

    Returns:
        Low and high, float64, shape (columns,); NaN for a column without a number.

    Source: Efron and Tibshirani, An Introduction to the Bootstrap (1993), sections 13.3 and 8.3; Hesterberg, What
    Teachers Should Know About the Bootstrap, The American Statistician 69 (2015), on the expansion.

    >>> low, high = mean_intervals(np.array([[0.0], [1.0], [1.0], [0.0]]), resamples=1000)
    >>> bool(low[0] < 0.5 < high[0])
    True
    """
    means = resampled_means(columns, resamples=resamples, seed=seed, clusters=clusters)
    return intervals(means, units_of(columns, clusters), confidence)


def resampled_means(columns: Scores, *, resamples: int, seed: int, clusters: Sequence[str] | None = None) -> Scores:
    """Each column's mean in each resample: float64, shape (resamples, columns); NaN where all that was drawn is."""
    known = cluster_sums(~np.isnan(columns), clusters)
    values = cluster_sums(np.nan_to_num(columns), clusters)
    means = np.full((resamples, columns.shape[1]), np.nan)
    units = len(values)
    if units:
        generator = np.random.default_rng(seed)
        rows = max(1, _BLOCK // units)
        for first in range(0, resamples, rows):
            drawn = _draw(generator, min(rows, resamples - first), units)
            below = drawn @ known
            np.divide(drawn @ values, below, out=means[first : first + rows], where=below > 0)
    return means


def intervals(means: Scores, units: NDArray[np.int64], confidence: float) -> tuple[Scores, Scores]:
    """Of each column of resampled means the interval, expanded for the number of units that it was drawn from.

    A bootstrap's percentiles are too narrow where there are few units, as if a normal quantile stood for
    Student's, and the variance were divided by n for n - 1. The tails are made smaller by just that.
    """
    low, high = np.full((2, means.shape[1]), np.nan)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a column of NaN alone is NaN, which is what is meant
        for count in np.unique(units).tolist():
            chosen = units == count
            tail = _tail(confidence, count)
            low[chosen], high[chosen] = np.nanquantile(means[:, chosen], [tail, 1 - tail], axis=0)
    return low, high


def _tail(confidence: float, units: int) -> float:
    tail = (1 - confidence) / 2
    if units < 2:
        return tail  # nothing to expand: every resample is the same
    return NormalDist().cdf(-math.sqrt(units / (units - 1)) * student_quantile(1 - tail, units - 1))


def cluster_sums(columns: NDArray[np.generic], clusters: Sequence[str] | None) -> Scores:
    """The columns' sums over each cluster's queries, clusters in the order of their names."""
    values = columns.astype(np.float64)
    if clusters is None:
        return values
    _, member = np.unique(np.array(clusters, dtype=object), return_inverse=True)
    sums = np.zeros((int(member.max(initial=-1)) + 1, values.shape[1]))
    np.add.at(sums, member, values)
    return sums


def units_of(columns: Scores, clusters: Sequence[str] | None) -> NDArray[np.int64]:
    """Of each column, how many units have a number."""
    return np.asarray(np.count_nonzero(cluster_sums(~np.isnan(columns), clusters), axis=0), dtype=np.int64)


def _draw(generator: np.random.Generator, resamples: int, units: int) -> Scores:
    """How many times each resample holds each unit: shape (resamples, units)."""
    drawn = generator.integers(0, units, size=(resamples, units))
    drawn += (np.arange(resamples) * units)[:, None]
    counts = np.bincount(drawn.reshape(-1), minlength=resamples * units)
    return counts.reshape(resamples, units).astype(np.float64)
