"""Each strategy's best configuration by one half of the questions, and how they compare on the other."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from chunkcore.evaluation.bootstrap import mean_intervals
from chunkcore.evaluation.measures import Depth
from chunkcore.evaluation.randomisation import holm, randomisation_test
from chunkcore.evaluation.results import Scores
from chunkcore.evaluation.selection import best_column, column_means, optimism

__all__ = ["Candidates", "Choice", "Chooser", "Gap"]

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
