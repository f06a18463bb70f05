"""Choose a configuration, and score the choice on questions that did not choose it.

The highest of many means is too high by chance. Folds score every question once with a choice made without it; for
grids, each strategy's best of one half of the questions is compared on the other half.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chunkcore.escaping import plain_json
from chunkcore.evaluation.measures import Depth, Scores
from chunkcore.evaluation.statistics.comparison import enumerated
from chunkcore.evaluation.statistics.resampling import (
    column_means,
    holm,
    mean_intervals,
    randomisation_test,
    resampled_means,
    score_interval,
    student_quantile,
    units_of,
)
from chunkcore.tuning.trials import Goal

Flags = NDArray[np.bool_]

CONFIDENCE = 0.95
_SPLITS = 200  # random halvings that `optimism` averages over


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Quality and retrieved tokens, of shape (queries, configurations); cost, of shape (configurations,).

    All are float64. Quality is NaN where undefined, tokens if the measure uses no ranking.
    """

    quality: Scores
    tokens: Scores
    cost: Scores

    def means(self, questions: Flags | slice = slice(None)) -> tuple[Scores, Scores]:
        """Mean quality and mean tokens of each configuration, over all or some questions."""
        return column_means(self.quality[questions]), column_means(self.tokens[questions])


def choose(quality: Scores, tokens: Scores, cost: Scores, margin: float = 0.0) -> int:
    """The index of the best configuration, by means of shape (configurations,).

    Candidates are within `margin` of the highest quality. Of these: fewest retrieved tokens (rounded), then lowest
    cost, then highest quality, then lowest index. Without a margin: the highest quality.

    >>> means = np.array([0.70, 0.71, 0.69]), np.array([900.0, 1000.0, 400.0]), np.array([1.0, 1.0, 1.0])
    >>> choose(*means), choose(*means, margin=0.02)
    (1, 2)
    """
    level = np.where(np.isnan(quality), -np.inf, quality)
    whole = np.round(np.where(np.isnan(tokens), 0.0, tokens))
    near = level >= level.max() - margin - 1e-12
    order = np.lexsort((np.arange(len(level)), -level, cost, whole, ~near))
    return int(order[0])


# ---- by folds


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Of each fold, the configuration that the others chose, its mean on those, and its mean on the fold's questions.

    `scores`, of shape (queries,), has each question's by the configuration chosen without it.
    """

    picks: tuple[int, ...]
    training: tuple[float, ...]
    scores: Scores
    means: tuple[float, ...]


def hold_out(outcomes: Outcomes, fold_of: NDArray[np.int64], allowed: Flags, margin: float = 0.0) -> HeldOut:
    """Score every question by the configuration chosen without its fold.

    The mean of these scores estimates the choice on new questions, slightly low, as each choice uses fewer questions.
    The mean that a configuration was chosen by is too high: it is the highest of many.

    Args:
        fold_of: each question's fold, shape (queries,).
        allowed: which configurations each fold may choose, shape (folds, configurations): those proposed without its
            scores.
        margin: see `choose`.

    Source: Varma and Simon, BMC Bioinformatics 7:91 (2006); Cawley and Talbot, JMLR 11 (2010).

    >>> quality = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 0.9]])
    >>> found = hold_out(Outcomes(quality, quality, np.ones(2)), np.array([0, 0, 1, 1]), np.ones((2, 2), dtype=bool))
    >>> found.picks, found.training, found.means
    ((1, 0), (0.95, 1.0), (0.0, 0.0))
    """
    scores = np.full(len(fold_of), np.nan)
    picks, training, means = [], [], []
    for fold, may in enumerate(allowed):
        held = fold_of == fold
        columns = np.flatnonzero(may)
        quality, retrieved = outcomes.means(~held)
        pick = int(columns[choose(quality[columns], retrieved[columns], outcomes.cost[columns], margin)])
        scores[held] = outcomes.quality[held, pick]
        picks.append(pick)
        training.append(float(quality[pick]))
        means.append(float(column_means(scores[held][:, None])[0]))
    return HeldOut(tuple(picks), tuple(training), scores, tuple(means))


@dataclass(frozen=True, eq=False)
class Spread:
    """The standard errors of a held-out mean and of its lead over a baseline; `units` were resampled."""

    mean: float
    lead: float
    units: int

    def interval(
        self, value: float, error: float, confidence: float = CONFIDENCE, *, share: bool = False
    ) -> tuple[float, float]:
        """Student's t interval around a value with this standard error; of a `share` a score interval, from 0 to 1."""
        if self.units < 2:
            return float("nan"), float("nan")
        reach = student_quantile((1 + confidence) / 2, self.units - 1)
        if share:
            return score_interval(value, error, reach, self.units)
        return value - reach * error, value + reach * error


def rechosen(
    outcomes: Outcomes,
    baseline: Scores,
    fold_of: NDArray[np.int64],
    allowed: Flags,
    margin: float = 0.0,
    *,
    resamples: int = 2_000,
    seed: int = 0,
    clusters: Sequence[str] | None = None,
) -> Spread:
    """Bootstrap of the held-out mean in which every resample makes its own choices.

    Held-out scores are not independent, because the choices of different folds share questions. If many configurations
    are equally good, an interval from the scores alone is a fifth to a third too narrow, and calls one choice in seven
    better than an equal baseline (simulation: docs/evidence/statistics.md).

    `baseline` has its scores, of shape (queries,), and `clusters` per question the unit it is drawn with, such as its
    document; for the others see `hold_out`.
    """
    defined = ~np.isnan(baseline)

    # Equal seeds draw the same questions each time.
    drawn = partial(resampled_means, resamples=resamples, seed=seed, clusters=clusters)

    total = np.zeros(resamples)
    for fold, may in enumerate(allowed):
        held = fold_of == fold
        columns = np.flatnonzero(may)
        quality = drawn(np.where(held[:, None], np.nan, outcomes.quality[:, columns]))
        retrieved = drawn(np.where(held[:, None], np.nan, outcomes.tokens[:, columns]))
        cost = outcomes.cost[columns]
        picks = [choose(*means, cost, margin) for means in zip(quality, retrieved, strict=True)]
        own = drawn(np.where(held[:, None], outcomes.quality[:, columns], np.nan))[np.arange(resamples), picks]
        share = drawn(np.where(defined, held.astype(np.float64), np.nan)[:, None])[:, 0]
        total += np.where(np.isnan(own), 0.0, own) * np.nan_to_num(share)
    lead = total - drawn(baseline[:, None])[:, 0]
    units = int(units_of(baseline[:, None], clusters)[0])
    return Spread(float(total.std(ddof=1)), float(np.nanstd(lead, ddof=1)), units)


# ---- by halves


def halves(labels: Sequence[object], generator: np.random.Generator) -> Flags:
    """Which questions are in the first half, bool, shape (questions,); questions of one label stay together.

    Labels are drawn until they cover half of the questions; at least one is left. There must be two.

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


def optimism(scores: Scores, labels: Sequence[str], *, splits: int = _SPLITS, seed: int = 0) -> tuple[float, Scores]:
    """How much higher a configuration scores on the questions that chose it than on others, on average.

    Questions are split in halves `splits` times. Each half chooses once and is scored once, so easier halves cancel
    out. Also returns, per configuration, the share of halves that chose it.

    Args:
        scores: float64, shape (questions, configurations); NaN is left out.
        labels: per question; questions of one label stay together.

    Source: the split-half form of Efron's optimism, Journal of the American Statistical Association 78 (1983).

    >>> noise = np.random.default_rng(0).random((40, 50))
    >>> flattered, shares = optimism(noise, list(map(str, range(40))))
    >>> flattered > 0.05, round(float(shares.sum()), 6)
    (True, 1.0)
    """
    generator = np.random.default_rng(seed)
    member = np.unique(np.array(labels, dtype=object), return_inverse=True)[1].tolist()
    first = np.stack([halves(member, generator) for _ in range(splits)])
    one, other = _subset_means(scores, first), _subset_means(scores, ~first)
    choosing, reporting = np.concatenate((one, other)), np.concatenate((other, one))
    best = np.argmax(np.where(np.isnan(choosing), -math.inf, choosing), axis=1)
    shares = np.bincount(best, minlength=scores.shape[1]) / len(best)
    flattered = column_means((choosing - reporting)[np.arange(len(best)), best][:, None])
    return float(flattered[0]), shares


def _subset_means(scores: Scores, chosen: Flags) -> Scores:
    weights = chosen.astype(np.float64)
    known = weights @ ~np.isnan(scores)
    means = np.full(known.shape, np.nan)
    np.divide(weights @ np.nan_to_num(scores), known, out=means, where=known > 0)
    return means


@dataclass(frozen=True, slots=True)
class Choice:
    """A strategy's best of `candidates` configurations by the choosing half of the questions.

    Attributes:
        picked: its mean on the choosing half: too high.
        score: its mean on the other half, with an interval from `low` to `high`; `by_k` at each k.
        optimism: mean excess of the choosing half's score over 200 splits (see `optimism`).
        share: share of the halves of those splits that chose this configuration.
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
    """The lead of a choice (`a`) over another configuration (`b`), on questions that did not choose it.

    Attributes:
        mean: of a - b over the questions, with an interval from `low` to `high`.
        distinct: the data supports a difference.
        p_value: of the randomisation test, Holm-corrected over all pairs; NaN if not tested.
        equivalent: the data supports a difference under two points.
        wins: questions on which a scores higher; `losses`: on which b does.
    """

    a: str
    b: str
    mean: float
    low: float
    high: float
    distinct: bool
    p_value: float = math.nan
    equivalent: bool = False
    wins: int = 0
    losses: int = 0


@dataclass(frozen=True, kw_only=True, eq=False)
class StrategyChoices:
    """Each strategy's best of a grid by one half of the questions, compared on the other half.

    Attributes:
        choices: one per strategy, highest score on the reporting half first; `gaps` of every pair.
        choosing: ids of the questions that chose; `reporting`: of the others.
    """

    goal: Goal
    choices: tuple[Choice, ...]
    gaps: tuple[Gap, ...]
    choosing: tuple[str, ...]
    reporting: tuple[str, ...]

    @classmethod
    def of(
        cls,
        goal: Goal,
        candidates: Mapping[str, Mapping[str, Scores]],
        ids: Sequence[str],
        labels: Sequence[str] | None = None,
        *,
        first: Flags | None = None,
        seed: int = 0,
        resamples: int = 10_000,
    ) -> StrategyChoices:
        """Choose by one half of the questions, and compare on the other.

        Args:
            candidates: by strategy and configuration, scores of shape (questions, depths).
            labels: per question, the unit that stays on one side, such as its document.
            first: which questions choose, bool, shape (questions,); drawn by the seed by default.

        Source: Qu et al. (2024), section 4.1 (the best configuration by the average F1 over k), appendix B (the grids).
        The paper does not say whether the queries that choose and report differ; here they do.
        """
        labels = labels or ids
        first = halves(labels, np.random.default_rng(seed)) if first is None else first
        clusters = [label for label, chose in zip(labels, first.tolist(), strict=True) if not chose]

        bounds = partial(mean_intervals, resamples=resamples, seed=seed, confidence=CONFIDENCE, clusters=clusters)

        found: list[tuple[Choice, Scores]] = []
        for strategy, scored in candidates.items():
            scores = np.stack(list(scored.values()), axis=1)
            means = scores.mean(axis=2)
            picked = column_means(means[first])
            best = int(np.argmax(np.where(np.isnan(picked), -math.inf, picked)))
            later = means[~first][:, [best]]
            low, high = bounds(later, shares=True)  # grids are of shares
            flattered, shares = optimism(means, labels, seed=seed)
            by_k = column_means(scores[~first][:, best]).tolist()
            choice = Choice(
                strategy=strategy,
                configuration=list(scored)[best],
                candidates=len(scored),
                picked=float(picked[best]),
                score=float(column_means(later)[0]),
                low=float(low[0]),
                high=float(high[0]),
                by_k=dict(zip(goal.ks, by_k, strict=False)),  # a measure without a depth has none
                optimism=flattered,
                share=float(shares[best]),
            )
            found.append((choice, later[:, 0]))
        found.sort(key=lambda each: math.inf if math.isnan(each[0].score) else -each[0].score)
        names = np.array(ids, dtype=object)
        return cls(
            goal=goal,
            choices=tuple(choice for choice, _ in found),
            gaps=tuple(_gaps([(choice.strategy, scores) for choice, scores in found], bounds, clusters, seed)),
            choosing=tuple(names[first].tolist()),
            reporting=tuple(names[~first].tolist()),
        )

    @property
    def verdict(self) -> str:
        """What the reporting half supports, in a few sentences."""
        first, *others = self.choices
        share, points = self.goal.suffix, self.goal.points
        low, high, score, picked = map(self.goal.show, (first.low, first.high, first.score, first.picked))
        sentences = [
            f"{first.configuration} has a {self.goal} of {score}{share} ({100 * CONFIDENCE:g} % interval {low} to "
            f"{high}) on {len(self.reporting):,} question{'s' if len(self.reporting) > 1 else ''} that chose nothing."
        ]
        if others:
            gaps = {frozenset((gap.a, gap.b)): gap for gap in self.gaps}
            tied = [each.strategy for each in others if not gaps[frozenset((first.strategy, each.strategy))].distinct]
            sentences.append(
                f"It is statistically tied with the best of {enumerated(tied)}."
                if tied
                else "It is ahead of each other strategy's choice by more than chance explains."
            )
        if first.candidates > 1:
            flattery = f"{self.goal.show(first.optimism)}{points}"
            sentences.append(
                f"It was the best of {first.candidates:,} configurations on the other {len(self.choosing):,}, where it "
                f"has {picked}{share}; such a choice flatters by {flattery} on average."
            )
        return " ".join(sentences)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values, NaN as null."""
        return {
            "measure": self.goal.kind,
            "unit": self.goal.unit,
            "ks": list(map(str, self.goal.ks)),
            "confidence": CONFIDENCE,
            "verdict": self.verdict,
            **plain_json({name: getattr(self, name) for name in ("choices", "gaps", "choosing", "reporting")}),
        }


def _gaps(
    found: Sequence[tuple[str, Scores]],
    bounds: Callable[..., tuple[Scores, Scores]],
    clusters: Sequence[str],
    seed: int,
) -> Iterator[Gap]:
    pairs = list(combinations(found, 2))
    if not pairs:
        return
    apart = np.column_stack([one - other for (_, one), (_, other) in pairs])
    lows, highs = bounds(apart)
    tests = holm(randomisation_test(apart, seed=seed, clusters=clusters))
    for place, ((a, _), (b, _)) in enumerate(pairs):
        low, high, p_value = float(lows[place]), float(highs[place]), float(tests[place])
        yield Gap(
            a,
            b,
            float(column_means(apart[:, [place]])[0]),
            low,
            high,
            distinct=(low > 0 or high < 0) and p_value <= 1 - CONFIDENCE + 1e-12,
            p_value=p_value,
            wins=int(np.count_nonzero(apart[:, place] > 0)),
            losses=int(np.count_nonzero(apart[:, place] < 0)),
        )
