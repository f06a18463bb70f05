"""Could the systems have changed places? The paired randomisation test, and Holm's correction for many pairs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from chunkcore.evaluation.bootstrap import cluster_sums
from chunkcore.evaluation.results import Scores

__all__ = ["holm", "randomisation_test"]

_BLOCK = 4_000_000  # signs held at once
_EXACT = 12  # units up to which every combination of signs is tried


def randomisation_test(
    differences: Scores, *, flips: int = 10_000, seed: int = 0, clusters: Sequence[str] | None = None
) -> Scores:
    """Of each column the two-sided p-value of its mean, where each difference might as well have had the other sign.

    If two systems are equally good, it is a coin's fall which of them got which of a question's two scores. The
    p-value is the share of all such falls whose mean is as far from 0 as the one that was seen, or farther: of all
    2ⁿ where there are up to 12 units, else of `flips` drawn ones and the one that was seen. It assumes no
    distribution, and questions on which both score the same count for nothing.

    Args:
        differences: float64, shape (queries, columns); NaN counts as no difference.
        flips: how many falls are drawn; no p-value is under 1 / (flips + 1).
        seed: equal seeds give equal p-values.
        clusters: of each query, what it changes its sign together with, such as its document.

    Returns:
        Float64, shape (columns,); NaN for a column without a number. Time and memory: flips x queries x columns.

    Source: Smucker, Allan and Carterette, A Comparison of Statistical Significance Tests for Information Retrieval
    Evaluation (CIKM 2007); Phipson and Smyth, Permutation P-values Should Never Be Zero (2010).

    >>> randomisation_test(np.array([[1.0], [1.0], [0.5], [0.0], [1.0], [1.0], [1.0]])).tolist()
    [0.03125]
    """
    sums = cluster_sums(np.nan_to_num(differences), clusters)
    sums = sums[np.any(sums != 0, axis=1)]
    units = len(sums)
    # Sums that are equal but for rounding are as far from 0 as each other.
    bar = np.abs(sums.sum(axis=0)) - 1e-9 * np.abs(sums).sum(axis=0)
    if units <= _EXACT:
        signs = 1.0 - 2.0 * (np.arange(2**units)[:, None] >> np.arange(units) & 1)
        p = np.mean(np.abs(signs @ sums) >= bar, axis=0)
    else:
        p = (1 + _count(sums, bar, flips, np.random.default_rng(seed))) / (1 + flips)
    return np.where(np.isnan(differences).all(axis=0), np.nan, p)


def _count(sums: Scores, bar: Scores, flips: int, generator: np.random.Generator) -> NDArray[np.int64]:
    count = np.zeros(sums.shape[1], dtype=np.int64)
    rows = max(1, _BLOCK // max(sums.shape))
    for first in range(0, flips, rows):
        signs = generator.integers(0, 2, size=(min(rows, flips - first), len(sums)), dtype=np.int8)
        count += np.count_nonzero(np.abs((2.0 * signs - 1.0) @ sums) >= bar, axis=0)
    return count


def holm(p_values: Scores) -> Scores:
    """P-values adjusted so that among all that are at most 0.05 there is a false one in at most 5 % of cases.

    Source: Holm, A Simple Sequentially Rejective Multiple Test Procedure (1979). NaN stays and counts for nothing.

    >>> holm(np.array([0.01, 0.04, 0.03])).tolist()
    [0.03, 0.06, 0.06]
    """
    adjusted = np.full(len(p_values), np.nan)
    known = np.flatnonzero(~np.isnan(p_values))
    order = known[np.argsort(p_values[known], kind="stable")]
    steps = p_values[order] * np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(1, np.maximum.accumulate(steps))
    return adjusted
