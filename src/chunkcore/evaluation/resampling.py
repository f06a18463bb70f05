"""Means, bootstrap intervals over questions (or whole documents), tests, sample sizes; the undominated of some points.

All columns share the same draws, so their differences are paired. NaN (measure undefined) is left out of every mean.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from chunkcore.errors import DataError
from chunkcore.spans import Numbers, Scores

CONFIDENCE = 0.95  # of the intervals of reports and comparisons

# The group that each question is resampled with, such as its document; None: each is alone.
Clusters = Sequence[str] | None

# Questions; the spread of fewer differing scores says nothing about other questions.
FEWEST_UNALIKE = 6


def mean_std(values: Scores | Numbers) -> tuple[float, float, int]:
    """Mean, population standard deviation and count, without NaN; NaN, NaN, 0 if nothing is left."""
    defined = values[~np.isnan(values)]
    if not len(defined):
        return math.nan, math.nan, 0
    return float(defined.mean()), float(defined.std()), len(defined)


def column_means(columns: Scores) -> Scores:
    """Each column's mean without NaN; NaN for an empty column."""
    with np.errstate(invalid="ignore"):
        means: Scores = np.nansum(columns, axis=0) / np.sum(~np.isnan(columns), axis=0)
    return means


def student_quantile(share: float, freedom: int) -> float:
    """The quantile of Student's t distribution.

    Exact for one and two degrees of freedom; else a series with an error under 0.8 % (3 degrees, shares from 0.005 to
    0.995) or 0.01 % (from 8 degrees). The core does not depend on SciPy.

    Source: Abramowitz and Stegun, Handbook of Mathematical Functions (1964), 26.7.5.

    >>> round(student_quantile(0.975, 29), 3)
    2.045
    """
    if freedom == 1:
        return math.tan(math.pi * (share - 0.5))
    if freedom == 2:
        return (2 * share - 1) / math.sqrt(2 * share * (1 - share))
    z = NormalDist().inv_cdf(share)
    terms = (
        z,
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return math.fsum(term / freedom**power for power, term in enumerate(terms))


_BLOCK = 4_000_000  # drawn units or signs held at once, about 100 MB with derived arrays


# Few questions show too little of a skew: docs/evidence/statistics.md has the coverage.
_STEEPER = 2.0


def share_intervals(
    columns: Scores, means: Scores, clusters: Clusters = None
) -> tuple[Scores, Scores]:
    """The 95 % intervals of the means of scores from 0 to 1: the hull of the percentile interval and a score interval.

    The percentile interval is too short on the long side of skewed scores, and empty where all are equal. The score
    interval holds the means whose distance from the sample's is within Student's t of the standard error *at that
    mean*: the error follows mean (1 - mean), as Wilson's does for hits and misses, and rises faster where the
    scores are more skewed than hits and misses. One unit gives 0 to 1.

    Source: Wilson, Probable Inference (1927); Korn and Graubard, Confidence Intervals for Proportions with Small
    Expected Number of Positive Counts (1998), on the effective sample size.

    >>> one = np.ones((30, 1))
    >>> [round(float(end[0]), 3) for end in share_intervals(one, resampled_means(one, resamples=9, seed=0))]
    [0.878, 1.0]
    """
    counts, values = _counts_and_sums(columns, clusters)
    units = np.count_nonzero(counts, axis=0)
    low, high = intervals(means, units, CONFIDENCE)
    low[units == 1], high[units == 1] = 0.0, 1.0
    for column in np.flatnonzero(units > 1).tolist():
        sizes = counts[:, column]
        mean = values[:, column].sum() / sizes.sum()
        apart = (values[:, column] - mean * sizes)[sizes > 0]
        least, most = score_interval(mean, apart * len(apart) / sizes.sum(), CONFIDENCE)
        low[column] = min(low[column], least)
        high[column] = max(high[column], most)
    return np.clip(low, 0, 1), np.clip(high, 0, 1)


def score_interval(
    mean: float,
    apart: Scores,
    confidence: float,
) -> tuple[float, float]:
    """The means from 0 to 1 within Student's t standard errors of `mean`, where the error changes with the mean.

    `apart` is each unit's distance from the mean. The error of a mean of 0 or 1 is unknown; the number of units, drawn
    independently, serves instead.

    >>> [round(end, 3) for end in score_interval(0.9, np.array([0.1] * 27 + [-0.9] * 3), 0.95)]
    [0.732, 0.967]
    """
    units = len(apart)
    squares = float(np.sum(apart**2))
    variance = squares / (units - 1) / units
    largest_variance = mean * (1 - mean)
    share = 1 / units
    if largest_variance > 1e-12:
        share = variance / largest_variance
    slope = share * (1 - 2 * mean)
    if variance > 1e-24:
        # The third central moment of the mean, over its variance.
        skew = float(np.sum(apart**3)) / squares**1.5 * math.sqrt(variance)
        steeper = skew - slope
        if steeper * slope > 0:
            slope += _STEEPER * steeper
    # (x - mean)² = reach² variance(x), with variance(mean + d) = error² + slope d - share d²
    square = student_quantile((1 + confidence) / 2, units - 1) ** 2
    whole = 1 + square * share
    middle = mean + square * slope / (2 * whole)
    reach = math.sqrt((square * slope) ** 2 + 4 * whole * square * variance) / (2 * whole)
    return max(0.0, middle - reach), min(1.0, middle + reach)


def resampled_means(
    columns: Scores,
    resamples: int,
    seed: int,
    clusters: Clusters = None,
) -> Scores:
    """Each column's mean in each resample: float64, shape (resamples, columns); NaN if all drawn values are."""
    counts, sums = _counts_and_sums(columns, clusters)
    means = np.full((resamples, columns.shape[1]), np.nan)
    units = len(sums)
    generator = np.random.default_rng(seed)
    rows = max(1, _BLOCK // max(1, units))
    for first in range(0, resamples, rows):
        some = means[first : first + rows]
        size = len(some), units
        # Each row has numbers of its own, so that one count serves all.
        drawn = generator.integers(0, units, size) + units * np.arange(len(some))[:, None]
        times = np.bincount(drawn.reshape(-1), minlength=drawn.size)
        weights = times.reshape(size).astype(float)
        below = weights @ counts
        np.divide(weights @ sums, below, out=some, where=below > 0)
    return means


def intervals(
    means: Scores,
    units: Numbers,
    confidence: float,
) -> tuple[Scores, Scores]:
    """The percentile interval of each column of resampled means, expanded for its number of units.

    With few units percentiles are too narrow: they use a normal quantile for Student's, and divide the variance by n,
    not n - 1. The tails are shrunk by that factor.

    Source: Efron and Tibshirani, An Introduction to the Bootstrap (1993), sections 13.3 and 8.3; Hesterberg, What
    Teachers Should Know About the Bootstrap, The American Statistician 69 (2015), on the expansion.
    """
    ends = np.full((2, means.shape[1]), np.nan)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # an all-NaN column is NaN, as intended
        for count in np.unique(units).tolist():
            tail = (1 - confidence) / 2
            if count > 1:  # else every resample is the same
                reach = student_quantile(1 - tail, count - 1)
                tail = NormalDist().cdf(-math.sqrt(count / (count - 1)) * reach)
            alike = units == count
            ends[:, alike] = np.nanquantile(means[:, alike], [tail, 1 - tail], axis=0)
    low, high = ends
    return low, high


def cluster_sums(columns: NDArray[np.generic], clusters: Clusters) -> Scores:
    """The columns' sums over each cluster's queries, clusters sorted by name."""
    values = columns.astype(float)
    if clusters is None:
        return values
    _, member = np.unique(np.array(clusters, dtype=object), return_inverse=True)
    sums = np.zeros((int(member.max(initial=-1)) + 1, values.shape[1]))
    np.add.at(sums, member, values)
    return sums


def _counts_and_sums(columns: Scores, clusters: Clusters) -> tuple[Scores, Scores]:
    """Each unit's number of values, and their sum."""
    defined = ~np.isnan(columns)
    return cluster_sums(defined, clusters), cluster_sums(np.nan_to_num(columns), clusters)


def units_of(columns: Scores, clusters: Clusters) -> Numbers:
    """The number of units with a value, for each column."""
    counts = cluster_sums(~np.isnan(columns), clusters)
    return np.asarray(np.count_nonzero(counts, axis=0), np.int64)


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
    clusters: Clusters,
    resamples: int = 2000,
    seed: int = 0,
) -> list[CurvePoint]:
    """A point for each column of shares, a row a question; `clusters` as in `resampled_means`."""
    means = resampled_means(columns, resamples, seed, clusters)
    ends = share_intervals(columns, means, clusters)
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


_EXACT = 12  # units; up to these, all sign patterns are tried


class PValues(NamedTuple):
    """Two-sided p-values, float64, shape (columns,): of a column alone, and corrected for all columns together."""

    alone: Scores
    together: Scores


def randomisation_test(
    differences: Scores,
    flips: int = 10_000,
    seed: int = 0,
    clusters: Clusters = None,
) -> PValues:
    """The p-values of each column's mean under random signs of the differences.

    `alone` is the share of sign patterns whose mean is at least as far from 0 as the observed one: of all 2ⁿ patterns
    for up to 12 units, else of `flips` random patterns and the observed one. `together` is the share of patterns in
    which any column that is no farther from 0, in units of the root of its sum of squares, gets as far as this one: the
    step-down max-statistic, which controls the family-wise error rate. Columns share each pattern, so that the
    correction follows how alike they are, and few units do not make it hopeless. No distribution is assumed.

    `differences` has the shape (queries, columns); NaN counts as no difference, an empty column gives NaN. `clusters`
    is each query's group, such as its document, which shares one sign. Time and memory: flips x queries x columns.

    Source: Smucker, Allan and Carterette, A Comparison of Statistical Significance Tests for Information Retrieval
    Evaluation (CIKM 2007); Phipson and Smyth, Permutation P-values Should Never Be Zero (2010); Westfall and Young,
    Resampling-Based Multiple Testing (1993), algorithm 4.1.

    >>> randomisation_test(np.array([[1.0], [1.0], [0.5], [0.0], [1.0], [1.0], [1.0]])).alone.tolist()
    [0.03125]
    """
    sums = cluster_sums(np.nan_to_num(differences), clusters)
    sums = sums[np.any(sums != 0, axis=1)]
    scale = np.sqrt(np.sum(sums**2, axis=0))
    scale[scale == 0] = 1.0
    sums /= scale
    # Sums that differ only by rounding count as equal.
    observed = np.abs(sums.sum(axis=0)) - 1e-9 * np.abs(sums).sum(axis=0)
    order = np.argsort(observed, kind="stable")
    sums, observed = sums[:, order], observed[order]
    counts = np.zeros((2, len(observed)))  # alone, and together
    patterns = 0
    for signs in _sign_patterns(len(sums), flips, seed, columns=len(observed)):
        apart = np.abs(signs @ sums)
        counts[0] += np.count_nonzero(apart >= observed, axis=0)
        np.maximum.accumulate(apart, axis=1, out=apart)
        counts[1] += np.count_nonzero(apart >= observed, axis=0)
        patterns += len(signs)
    counts[1] = np.maximum.accumulate(counts[1, ::-1])[::-1]
    shares = np.full(counts.shape, math.nan)
    shares[:, order] = counts / patterns
    shares[:, np.isnan(differences).all(axis=0)] = math.nan
    return PValues(*shares)


def _sign_patterns(units: int, flips: int, seed: int, columns: int) -> Iterator[Scores]:
    """Blocks of sign patterns, shape (patterns, units): all for few units, else random ones and the observed one."""
    if units <= _EXACT:
        bits = np.arange(2**units)[:, None] >> np.arange(units) & 1
        yield 1.0 - 2.0 * bits.astype(float)
        return
    yield np.ones((1, units))
    generator = np.random.default_rng(seed)
    rows = max(1, _BLOCK // max(units, columns))
    for first in range(0, flips, rows):
        drawn = generator.integers(0, 2, size=(min(rows, flips - first), units), dtype=np.int8)
        yield 2.0 * drawn.astype(float) - 1.0


SURE = 0.9995  # of the interval at each look: docs/evidence/statistics.md has the errors


def surely_below(differences: Scores, clusters: Clusters) -> bool:
    """Whether the interval of the mean at `SURE` is below 0, by Student's t over the units that are resampled.

    A bootstrap of few documents has no such far ends. NaN is a question that was not asked.

    >>> apart = np.tile([-0.3, 0.1, -0.2], 10)
    >>> surely_below(apart, None), surely_below(apart[:3], None)
    (True, False)
    """
    unalike = np.count_nonzero(np.nan_to_num(differences))
    mean = column_means(differences[:, None])
    counts, sums = _counts_and_sums(differences[:, None] - mean, clusters)
    units = int(np.count_nonzero(counts))
    if unalike < FEWEST_UNALIKE or units < FEWEST_UNALIKE:
        return False
    error = math.sqrt(units / (units - 1) * float(np.sum(sums**2))) / float(counts.sum())
    return bool(mean[0] + student_quantile((1 + SURE) / 2, units - 1) * error < 0)


_FEW_LARGE = 0.25
_POWER = 0.8


def questions_to_show(
    margin: float,
    differences: Scores,
    confidence: float = 0.95,
    clusters: Clusters = None,
) -> tuple[float, float]:
    """The 90 % range of the number of questions that find a paired difference of `margin` in 8 of 10 cases.

    It depends on the spread of the differences alone, not on their mean: the lead of a winner is too high on average,
    and the number goes with its square. `differences` has the shape (queries,); NaN is left out. NaN if fewer than six
    differ, or a few large ones make up most of the spread.

    >>> [round(end) for end in questions_to_show(0.1, np.tile([0.3, -0.3, 0.0], 30))]
    [42, 53]
    """
    unalike = np.count_nonzero(np.nan_to_num(differences))
    if unalike < FEWEST_UNALIKE or not margin:
        return math.nan, math.nan
    columns = differences[:, None]
    both = np.stack(_counts_and_sums(columns - column_means(columns), clusters))[:, :, 0]
    sizes, sums = both[:, both[0] > 0]
    # What a question adds to the variance of the sum, unit by unit, as a share of the most that it can.
    most = float(max(np.max(sizes**2), np.max(sums**2)))
    squares = sums**2 / most
    per_question = len(squares) / float(sizes.sum())
    # So many equal squares spread as much.
    alike = squares.sum() ** 2 / max((squares**2).sum(), 1e-300)
    if alike < _FEW_LARGE * unalike * per_question:
        return math.nan, math.nan
    mean = float(squares.mean())
    low, high = score_interval(mean, squares - mean, 0.9)
    per_share = (_quantiles(confidence) / margin) ** 2 * most * per_question
    return low * per_share, high * per_share


def units_to_show(
    differences: Scores, confidence: float = 0.95, clusters: Clusters = None
) -> float:
    """About how many units (questions, or clusters of them) show a difference like this one in 8 of 10 cases.

    >>> round(units_to_show(np.tile([0.3, -0.1, 0.0], 30)))
    52
    """
    sums = cluster_sums(np.nan_to_num(differences)[:, None], clusters)[:, 0]
    return float((_quantiles(confidence) * sums.std(ddof=1) / sums.mean()) ** 2)


def _quantiles(confidence: float) -> float:
    """Standard errors between 0 and a difference that a test at this confidence shows in 8 of 10 cases."""
    normal = NormalDist()
    return normal.inv_cdf(0.5 + confidence / 2) + normal.inv_cdf(_POWER)


class Powered(NamedTuple):
    """A mean and its 95 % interval.

    Attributes:
        mean: of the labels, corrected by the verdicts.
        low: the interval's lower end.
        high: its upper end.
        worth: how many labels alone would give as short an interval.
    """

    mean: float
    low: float
    high: float
    worth: float


def prediction_powered(
    labels: ArrayLike,
    verdicts: ArrayLike,
    more_verdicts: ArrayLike,
    *,
    documents: Sequence[str] | None = None,
    more_documents: Sequence[str] | None = None,
) -> Powered:
    """The mean of your labels, narrowed by a model's verdicts on more questions of the same kind.

    The verdicts may be wrong, and wrong on one side: how far they are off is measured on the labelled questions. They
    count as much as they help. For two systems on the same questions, give differences of their scores.

    Args:
        labels: your scores, one a question.
        verdicts: the model's scores of the same questions.
        more_verdicts: the model's scores of questions without a label.
        documents: of the labelled questions, where questions share documents: these are then the units.
        more_documents: of the others.

    Raises `DataError`: labels and verdicts are not of the same questions, or there are fewer than three units.

    Source: Angelopoulos, Bates, Fannjiang, Jordan and Zrnic, Prediction-Powered Inference (Science 382, 2023); the
    weight of the verdicts is that of Angelopoulos, Duchi and Zrnic, PPI++ (2023), proposition 2.

    >>> labels = [0, 1, 1, 0, 1, 1, 0, 1, 1, 1]
    >>> powered = prediction_powered(labels, labels, labels * 30)
    >>> round(powered.mean, 2), powered.worth > 100
    (0.7, True)
    """
    known, judged, more = (np.asarray(row, float) for row in (labels, verdicts, more_verdicts))
    if known.shape != judged.shape:
        raise DataError(
            f"labels and verdicts are of the same questions, got {len(known)} and {len(judged)}"
        )
    units = min(
        len(cluster_sums(known[:, None], documents)),
        len(cluster_sums(more[:, None], more_documents)),
    )
    if units < 3:
        raise DataError("three questions (or documents) at least, with labels and without")
    spread_of_more = _variance(more, more, more_documents)
    weight = _variance(known, judged, documents)
    weight /= _variance(judged, judged, documents) + spread_of_more or 1.0
    weight = min(1.0, max(0.0, weight))
    off = known - weight * judged
    mean = float(weight * more.mean() + off.mean())
    variance = weight**2 * spread_of_more + _variance(off, off, documents)
    variance *= (units - 1) / (units - 2)  # the weight is an estimate, too
    reach = student_quantile((1 + CONFIDENCE) / 2, units - 2) * math.sqrt(variance)
    alone = _variance(known, known, documents)
    worth = len(known) * alone / variance if variance else math.inf
    return Powered(mean, mean - reach, mean + reach, worth)


def _variance(one: Scores, other: Scores, documents: Clusters) -> float:
    """The covariance of two columns' means, whose units are the documents."""
    apart = np.column_stack((one - one.mean(), other - other.mean()))
    sums = cluster_sums(apart, documents)
    count = len(sums)
    return float(sums[:, 0] @ sums[:, 1]) / len(one) ** 2 * count / (count - 1)
