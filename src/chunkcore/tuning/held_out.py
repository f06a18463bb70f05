"""Choosing a configuration, and what the choice is worth on questions that had no part in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from chunkcore.evaluation.bootstrap import resampled_means, units_of
from chunkcore.evaluation.results import Scores
from chunkcore.evaluation.student import student_quantile

__all__ = ["HeldOut", "Outcomes", "Spread", "choose", "hold_out", "pareto", "rechosen"]

Flags = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Outcomes:
    """What came of some configurations.

    Attributes:
        quality: float64, shape (queries, configurations), higher is better; NaN where it is undefined.
        tokens: retrieved tokens, likewise; all NaN where the measure looks at no ranking.
        cost: float64, shape (configurations,).
    """

    quality: Scores
    tokens: Scores
    cost: Scores

    def means(self, questions: Flags | None = None) -> tuple[Scores, Scores]:
        """Mean quality and mean tokens of each configuration, over some of the questions."""
        chosen = slice(None) if questions is None else questions
        return _means(self.quality[chosen]), _means(self.tokens[chosen])


@dataclass(frozen=True, eq=False)
class HeldOut:
    """What choosing is worth.

    Attributes:
        scores: of each question by the configuration that was chosen without it: float64, shape (queries,).
        tokens: retrieved tokens, likewise.
        picks: of each fold, the configuration that the questions of the other folds chose.
        training: of each fold, the mean by which it was chosen.
        means: of each fold, its mean on the fold's own questions.
    """

    scores: Scores
    tokens: Scores
    picks: tuple[int, ...]
    training: tuple[float, ...]
    means: tuple[float, ...]


def choose(quality: Scores, tokens: Scores, cost: Scores, margin: float = 0.0) -> int:
    """The place of the configuration to take, of means of shape (configurations,).

    Of those whose quality is within `margin` of the highest: the one with the fewest retrieved tokens (to a whole
    one), then with the lowest cost, then with the highest quality, then the one that came first. Without a
    margin, that is the highest quality.

    >>> means = np.array([0.70, 0.71, 0.69]), np.array([900.0, 1000.0, 400.0]), np.array([1.0, 1.0, 1.0])
    >>> choose(*means), choose(*means, margin=0.02)
    (1, 2)
    """
    level = np.where(np.isnan(quality), -np.inf, quality)
    whole = np.round(np.where(np.isnan(tokens), 0.0, tokens))
    near = level >= level.max() - margin - 1e-12
    order = np.lexsort((np.arange(len(level)), -level, cost, whole, ~near))
    return int(order[0])


def hold_out(outcomes: Outcomes, fold_of: NDArray[np.int64], allowed: Flags, margin: float = 0.0) -> HeldOut:
    """Score every question by the configuration that is chosen without its fold.

    Args:
        outcomes: of all configurations on all questions.
        fold_of: each question's fold, shape (queries,).
        allowed: which configurations may be chosen for which fold, shape (folds, configurations): those that
            nobody proposed who had seen the fold's scores.
        margin: see `choose`.

    Returns:
        Scores whose mean is, but for the fewer questions that each choice was made from, what may be expected of
        the choice on new questions. The mean by which a configuration was chosen is higher, as it is the highest of
        many.

    Source: Varma and Simon, Bias in error estimation when using cross-validation for model selection, BMC
    Bioinformatics 7:91 (2006); Cawley and Talbot, On over-fitting in model selection, JMLR 11 (2010).

    >>> quality = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 0.9]])
    >>> found = hold_out(Outcomes(quality, quality, np.ones(2)), np.array([0, 0, 1, 1]), np.ones((2, 2), dtype=bool))
    >>> found.picks, found.training, found.means
    ((1, 0), (0.95, 1.0), (0.0, 0.0))
    """
    scores = np.full(len(fold_of), np.nan)
    tokens = np.full(len(fold_of), np.nan)
    picks, training, means = [], [], []
    for fold, may in enumerate(allowed):
        held = fold_of == fold
        columns = np.flatnonzero(may)
        quality, retrieved = outcomes.means(~held)
        pick = int(columns[choose(quality[columns], retrieved[columns], outcomes.cost[columns], margin)])
        scores[held], tokens[held] = outcomes.quality[held, pick], outcomes.tokens[held, pick]
        picks.append(pick)
        training.append(float(quality[pick]))
        means.append(float(_means(scores[held][:, None])[0]))
    return HeldOut(scores, tokens, tuple(picks), tuple(training), tuple(means))


@dataclass(frozen=True, eq=False)
class Spread:
    """How far the held-out mean, and its lead over a baseline, might have come out elsewhere with other questions.

    Attributes:
        mean: the standard error of the held-out mean.
        lead: that of its difference from the baseline's mean.
        units: how many questions, or documents, were resampled.
    """

    mean: float
    lead: float
    units: int

    def interval(self, value: float, error: float, confidence: float = 0.95) -> tuple[float, float]:
        """Student's interval around a value that has this standard error."""
        if self.units < 2:
            return float("nan"), float("nan")
        reach = student_quantile((1 + confidence) / 2, self.units - 1) * error
        return value - reach, value + reach


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
    """The bootstrap of the held-out mean in which every resample makes its own choices.

    The choices of different folds lean on each other's questions, so that held-out scores are no independent
    witnesses: where many configurations are equally good, an interval from the scores alone is a fifth to a third too
    narrow, and calls one choice in seven better than an equal baseline (docs/tuning.md has the simulation). Here the
    questions of each resample choose anew.

    Args:
        outcomes: see `hold_out`.
        baseline: its scores, shape (queries,).
        fold_of: see `hold_out`.
        allowed: see `hold_out`.
        margin: see `choose`.
        resamples: of the questions.
        seed: equal seeds give equal spreads.
        clusters: of each question, what it is drawn together with, such as its document.
    """
    defined = ~np.isnan(baseline)

    def drawn(columns: Scores) -> Scores:
        # Equal seeds draw the same questions each time.
        return resampled_means(columns, resamples=resamples, seed=seed, clusters=clusters)

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


def pareto(quality: Scores, tokens: Scores, cost: Scores) -> Flags:
    """Which configurations no other one is at least as good as in all three, and better in one.

    Of configurations that are equal in all three the first stands for them.

    >>> pareto(np.array([0.7, 0.8, 0.6, 0.8]), np.array([9.0, 9, 5, 9]), np.array([1.0, 2, 1, 3])).tolist()
    [True, True, True, False]
    """
    low = np.where(np.isnan(quality), -np.inf, quality)
    table = np.column_stack((-low, np.where(np.isnan(tokens), 0.0, tokens), cost))
    found = np.ones(len(table), dtype=np.bool_)
    for place, row in enumerate(table):
        no_worse = (table <= row).all(axis=1)
        better = no_worse & (table < row).any(axis=1)
        equal = no_worse & ~better
        found[place] = not better.any() and not equal[:place].any()
    return found


def _means(columns: Scores) -> Scores:
    """Of each column over what is not NaN; NaN where nothing is."""
    known = ~np.isnan(columns)
    counts = known.sum(axis=0)
    sums = np.where(known, columns, 0.0).sum(axis=0)
    means: Scores = np.divide(sums, counts, out=np.full(columns.shape[1], np.nan), where=counts > 0)
    return means
