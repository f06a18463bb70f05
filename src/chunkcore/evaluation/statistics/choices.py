"""Each strategy's best configuration by one half of the questions, and how they compare on the other."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from chunkcore.errors import DataError, OptionError
from chunkcore.evaluation.measures import Depth, Scores
from chunkcore.evaluation.statistics.resampling import holm, mean_intervals, randomisation_test

__all__ = [
    "Candidates",
    "Choice",
    "Chooser",
    "Gap",
    "best_column",
    "column_means",
    "halves",
    "optimism",
    "pareto_front",
]

Numbers = NDArray[np.float64]


def pareto_front(points: ArrayLike, *, better: Sequence[str] = ("low", "high")) -> list[int]:
    """The points that no other point beats: none is as good in every coordinate and better in one.

    Points that are equal don't beat each other. A point with a coordinate that is no finite number is not on the
    front, and beats nothing.

    Args:
        points: shape (n, coordinates); by default pairs of a price and a quality, such as retrieved tokens and recall.
        better: of each coordinate, whether the "low" or the "high" is better.

    Returns:
        Positions in `points`, by the first coordinate from good to bad, then by the next; equal points in their order.

    Raises:
        OptionError: `better` holds another word.
        DataError: the points are no matrix of numbers with as many columns as `better` has words.

    Time O(n² · coordinates), memory O(n · coordinates).

    >>> pareto_front([(800, 0.75), (400, 0.75), (200, 0.5), (300, 0.4)])
    [2, 1]
    """
    signs = np.array([_sign(each) for each in better])
    rows = _matrix(points, len(signs)) * signs
    known = np.flatnonzero(np.isfinite(rows).all(axis=1))
    rows = rows[known]
    kept = np.array([not _beaten(row, rows) for row in rows], dtype=np.bool_)
    front = known[kept]
    order = np.lexsort(rows[kept].T[::-1])
    return [int(each) for each in front[order]]


def _beaten(row: Numbers, rows: Numbers) -> bool:
    """Whether one of the rows, lower being better, is nowhere above this one and somewhere below."""
    return bool(((rows <= row).all(axis=1) & (rows < row).any(axis=1)).any())


def _sign(word: str) -> float:
    if word not in ("low", "high"):
        raise OptionError(f'better is "low" or "high" for each coordinate, got {word!r}')
    return 1.0 if word == "low" else -1.0


def _matrix(points: ArrayLike, width: int) -> Numbers:
    try:
        rows = np.asarray(points, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"points are rows of {width} numbers ({error})") from error
    if rows.size == 0:
        return np.empty((0, width))
    if rows.ndim != 2 or rows.shape[1] != width:
        raise DataError(f"points are rows of {width} numbers, got an array of shape {rows.shape}")
    return rows


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


_SPLITS = 200


@dataclass(frozen=True, eq=False)
class Candidates:
    """A strategy's configurations, and their scores: float64, shape (questions, configurations, depths)."""

    strategy: str
    configurations: tuple[str, ...]
    scores: Scores

    @property
    def means(self) -> Scores:
        """Over the depths: shape (questions, configurations)."""
        return np.asarray(self.scores.mean(axis=2))


@dataclass(frozen=True, slots=True)
class Choice:
    """A strategy's best configuration by the choosing half of the questions.

    Attributes:
        strategy: the strategy's name.
        configuration: the one that was chosen.
        candidates: how many there were to choose from.
        picked: its mean score on the half that chose it, which flatters it.
        score: its mean score on the other half.
        low: where the interval of `score` begins.
        high: where it ends.
        by_k: at each k, the mean on the other half.
        optimism: by how much choosing flatters, averaged over 200 splits (see `selection.optimism`).
        share: of the halves of those splits, how many chose this configuration.
    """

    strategy: str
    configuration: str
    candidates: int
    picked: float
    score: float
    low: float
    high: float
    by_k: Mapping[Depth, float]
    optimism: float
    share: float


@dataclass(frozen=True, slots=True)
class Gap:
    """How far two strategies' choices are apart on the reporting half.

    Attributes:
        a: the first strategy.
        b: the second.
        mean: of a - b over the questions.
        low: where its interval begins.
        high: where it ends.
        p_value: of the randomisation test, corrected for all pairs by Holm's method.
        distinct: whether the interval leaves 0 out and the corrected p-value is small enough.
    """

    a: str
    b: str
    mean: float
    low: float
    high: float
    p_value: float
    distinct: bool


@dataclass(frozen=True, kw_only=True, eq=False)
class Chooser:
    """Chooses on some questions, and reports on the others.

    Attributes:
        labels: of each question, what it is resampled together with.
        first: which questions choose: bool, shape (questions,).
        depths: what the last axis of scores stands for.
        seed: of the resamples, the tests and the splits of `Choice.optimism`.
        resamples: of the bootstrap.
        confidence: of intervals and tests.
    """

    labels: Sequence[str]
    first: NDArray[np.bool_]
    depths: Sequence[Depth]
    seed: int = 0
    resamples: int = 10_000
    confidence: float = 0.95

    def choices(self, candidates: Sequence[Candidates]) -> tuple[Choice, ...]:
        """One a strategy, the highest score on the reporting half first."""
        found = [self._choice(each) for each in candidates]
        return tuple(sorted(found, key=lambda choice: math.inf if math.isnan(choice.score) else -choice.score))

    def _choice(self, candidates: Candidates) -> Choice:
        picked = column_means(candidates.means[self.first])
        best = best_column(picked)
        later = candidates.means[~self.first][:, [best]]
        low, high = self._intervals(later)
        by_k = column_means(candidates.scores[~self.first][:, best])
        flattered, shares = optimism(candidates.means, self.labels, splits=_SPLITS, seed=self.seed)
        return Choice(
            strategy=candidates.strategy,
            configuration=candidates.configurations[best],
            candidates=len(candidates.configurations),
            picked=float(picked[best]),
            score=float(column_means(later)[0]),
            low=float(low[0]),
            high=float(high[0]),
            by_k=dict(zip(self.depths, by_k.tolist(), strict=True)),
            optimism=flattered,
            share=float(shares[best]),
        )

    def gaps(self, candidates: Sequence[Candidates], choices: Sequence[Choice]) -> tuple[Gap, ...]:
        """Of every pair of choices, in their order."""
        by_name = {each.strategy: each for each in candidates}
        columns = [self._later(by_name[each.strategy], each) for each in choices]
        pairs = list(combinations(range(len(choices)), 2))
        if not pairs:
            return ()
        apart = np.column_stack([columns[a] - columns[b] for a, b in pairs])
        lows, highs = self._intervals(apart)
        tests = holm(randomisation_test(apart, seed=self.seed, clusters=self._reporting))
        means = column_means(apart)
        return tuple(
            Gap(
                choices[a].strategy,
                choices[b].strategy,
                float(means[number]),
                float(lows[number]),
                float(highs[number]),
                float(tests[number]),
                bool((lows[number] > 0 or highs[number] < 0) and tests[number] <= 1 - self.confidence + 1e-12),
            )
            for number, (a, b) in enumerate(pairs)
        )

    def _later(self, candidates: Candidates, choice: Choice) -> Scores:
        at = candidates.configurations.index(choice.configuration)
        return np.asarray(candidates.means[~self.first][:, at])

    def _intervals(self, columns: Scores) -> tuple[Scores, Scores]:
        return mean_intervals(
            columns,
            resamples=self.resamples,
            seed=self.seed,
            confidence=self.confidence,
            clusters=self._reporting,
        )

    @property
    def _reporting(self) -> list[str]:
        return [each for each, chose in zip(self.labels, self.first.tolist(), strict=True) if not chose]
