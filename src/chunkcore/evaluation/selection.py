"""Choosing on one half of the questions and reporting on the other, and how much the first flatters."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from chunkcore.evaluation.results import Scores

__all__ = ["best_column", "column_means", "halves", "optimism"]


def halves(labels: Sequence[object], generator: np.random.Generator) -> NDArray[np.bool_]:
    """Which questions are of the first half; those with one label stay together.

    Labels are taken in a drawn order until they have half of the questions or more; at least one is left.

    Args:
        labels: of each question, two different ones at least.
        generator: draws the order.

    Returns:
        Bool, shape (questions,).

    >>> int(halves(list("abcdef"), np.random.default_rng(0)).sum())
    3
    """
    names, member = np.unique(np.array(labels, dtype=object), return_inverse=True)
    sizes = np.bincount(member)
    order = generator.permutation(len(names))
    before = np.cumsum(sizes[order]) - sizes[order]
    taken = 2 * before < len(labels)
    taken[-1] = False
    return np.isin(member, order[taken])


def column_means(scores: Scores) -> Scores:
    """Each column's mean over its numbers; NaN for a column without any."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of a column without numbers, whose mean is NaN
        return np.asarray(np.nanmean(scores, axis=0), dtype=np.float64)


def best_column(means: Scores) -> int:
    """The highest; of equal ones the first. NaN is lowest."""
    return int(np.argmax(np.where(np.isnan(means), -math.inf, means)))


def optimism(scores: Scores, labels: Sequence[str], *, splits: int = 200, seed: int = 0) -> tuple[float, Scores]:
    """By how much a configuration's score on the questions that chose it is over its score on others, on average.

    Questions are split in halves `splits` times. Of each split either half chooses once and is reported on once, so
    that a half of easier questions counts for nothing.

    Args:
        scores: float64, shape (questions, configurations); NaN counts for nothing.
        labels: of each question, what stays together.
        splits: how many.
        seed: of the splits.

    Returns:
        The mean difference, and of each configuration the share of halves that chose it.

    Source: the split-half form of the optimism of Efron, Estimating the Error Rate of a Prediction Rule, Journal of the
    American Statistical Association 78 (1983).

    >>> noise = np.random.default_rng(0).random((40, 50))
    >>> flattered, shares = optimism(noise, list(map(str, range(40))))
    >>> flattered > 0.05, round(float(shares.sum()), 6)
    (True, 1.0)
    """
    generator = np.random.default_rng(seed)
    member = np.unique(np.array(labels, dtype=object), return_inverse=True)[1].tolist()
    first = np.stack([halves(member, generator) for _ in range(splits)])
    one, other = _means(scores, first), _means(scores, ~first)
    choosing, reporting = np.concatenate((one, other)), np.concatenate((other, one))
    best = np.argmax(np.where(np.isnan(choosing), -math.inf, choosing), axis=1)
    shares = np.bincount(best, minlength=scores.shape[1]) / len(best)
    flattered = column_means((choosing - reporting)[np.arange(len(best)), best][:, None])
    return float(flattered[0]), shares


def _means(scores: Scores, chosen: NDArray[np.bool_]) -> Scores:
    """Each configuration's mean over each choice of questions: shape (choices, configurations)."""
    weights = chosen.astype(np.float64)
    known = weights @ ~np.isnan(scores)
    means = np.full(known.shape, np.nan)
    np.divide(weights @ np.nan_to_num(scores), known, out=means, where=known > 0)
    return means
