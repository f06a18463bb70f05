"""`Tuning`: what a search found, and what the choice is worth."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from chunkcore.errors import DataError
from chunkcore.evaluation.benchmark import Benchmark
from chunkcore.evaluation.clusters import question_documents
from chunkcore.evaluation.comparison import Difference
from chunkcore.evaluation.measures import Measure, as_measure
from chunkcore.evaluation.results import Report, Scores
from chunkcore.tuning.held_out import HeldOut, Outcomes, Spread, choose, hold_out, pareto, rechosen
from chunkcore.tuning.options import TuneOptions
from chunkcore.tuning.trial import Trial

__all__ = ["Fold", "Stopped", "Tuning", "conclude"]

Stopped = Literal["", "time", "interrupted", "exhausted"]

FORMAT = "chunkcore-tune-1"
CHOICE = "the tuned choice"  # its scores are the held-out ones
_MATTERS = 0.02  # two points, as `compare` has it; of a measure that is no share the same number
_FEWEST_UNALIKE = 6  # questions; where fewer score unalike, their spread says nothing about those not asked
_RESAMPLES = 2_000  # enough for a standard error; each makes every choice anew


@dataclass(frozen=True, kw_only=True)
class Fold:
    """What was chosen without some questions.

    Attributes:
        spec: the configuration that all other questions chose.
        training: its mean on those.
        held_out: its mean on the fold's own questions.
        questions: how many these are.
        candidates: how many configurations it was chosen from.
    """

    spec: str
    training: float
    held_out: float
    questions: int
    candidates: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Tuning:
    """What a search found.

    Attributes:
        options: how it was searched.
        benchmark: the benchmark's name.
        embedder: the embedder's name.
        trials: all that were tried, in order; those that failed have a reason.
        baseline: the configuration that the choice is compared with.
        winner: the configuration to take.
        front: the configurations that no other one beats in quality, retrieved tokens and cost at once, the best first.
        folds: what was chosen without each part of the questions.
        held_out_report: the scores of all questions, each by the configuration that was chosen without it.
        interval: of their mean, at 95 %; see `rechosen`.
        difference: of the same scores from the baseline's; `distinct` where its 95 % interval leaves 0 out.
        stopped: why there are fewer trials than were asked for: "time", "interrupted" or "exhausted" (the space);
            "" where there are not.
    """

    options: TuneOptions
    benchmark: str
    embedder: str
    trials: tuple[Trial, ...]
    baseline: Trial
    winner: Trial
    front: tuple[Trial, ...]
    folds: tuple[Fold, ...]
    held_out_report: Report
    interval: tuple[float, float]
    difference: Difference
    stopped: Stopped = ""

    @property
    def measure(self) -> Measure:
        return as_measure(self.options.measure)

    @property
    def picked(self) -> float:
        """The winner's mean over the questions that chose it: too high, as it is the highest of many."""
        return self.winner.quality

    @property
    def held_out(self) -> float:
        """The mean over all questions, each scored by the configuration that was chosen without it."""
        return self.held_out_report.mean(self.measure)

    @property
    def optimism(self) -> float:
        """By how much the picked score is over the held-out one."""
        return self.picked - self.held_out

    @property
    def failed(self) -> tuple[Trial, ...]:
        """The trials without scores."""
        return tuple(trial for trial in self.trials if trial.failure)

    @property
    def rule(self) -> str:
        """How the winner is chosen, in words."""
        if not self.options.margin:
            return f"the highest mean {self.measure}; of equal ones the fewest retrieved tokens, then the lowest cost"
        given = f"{100 * self.options.margin:g} points" if self.measure.is_share else f"{self.options.margin:g}"
        return (
            f"of the configurations whose mean {self.measure} is within {given} of the highest, the one with the "
            "fewest retrieved tokens, then with the lowest cost"
        )

    @property
    def verdict(self) -> str:
        """What the search may claim, in two sentences."""
        low, high = (self._score(each) for each in self.interval)
        share, points = (" %", " points") if self.measure.is_share else ("", "")
        asked = int(np.count_nonzero(~np.isnan(self.held_out_report.values(self.measure))))
        opening = (
            f"On questions that had no part in choosing it the choice has a {self.measure} of "
            f"{self._score(self.held_out)}{share} (95 % interval {low} to {high}; {asked:,} questions)."
        )
        lead = self.difference
        if not lead.wins and not lead.losses:
            return f"{opening} {lead.b} scores the same on every question."
        way = "ahead of" if lead.mean >= 0 else "behind"
        low, high = (self._score(each) for each in (lead.low, lead.high))
        unalike = f"higher on {lead.wins:,} questions, lower on {lead.losses:,}"
        told = (
            "more than chance explains"
            if lead.distinct
            else "no difference can be told from chance"
            + (f", and one of {self._score(_MATTERS)}{points} or more is ruled out" if lead.equivalent else "")
        )
        return (
            f"{opening} It is {self._score(abs(lead.mean))}{points} {way} {lead.b} "
            f"(95 % interval of the difference {low} to {high}; {unalike}): {told}."
        )

    def _score(self, value: float) -> str:
        written = f"{100 * value:.1f}" if self.measure.is_share else f"{value:.3f}"
        return written.removeprefix("-") if not float(written) else written

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain JSON values, NaN as null; per-question scores are in the study's file."""
        low, high = self.interval
        difference = self.difference
        return {
            "format": FORMAT,
            "benchmark": self.benchmark,
            "questions": len(self.held_out_report.query_ids),
            "embedder": self.embedder,
            "measure": str(self.measure),
            "counter": self.options.counter if isinstance(self.options.counter, str) else self.options.counter.name,
            "retriever": self.options.retriever,
            "seed": self.options.seed,
            "by": self.options.by,
            "trials_wanted": self.options.trials,
            "stopped": self.stopped,
            "rule": self.rule,
            "winner": {
                **_told(self.winner),
                "picked": _number(self.picked),
                "held_out": _number(self.held_out),
                "low": _number(low),
                "high": _number(high),
                "optimism": _number(self.optimism),
            },
            "baseline": _told(self.baseline),
            "difference": {
                "mean": _number(difference.mean),
                "low": _number(difference.low),
                "high": _number(difference.high),
                "distinct": difference.distinct,
                "equivalent": difference.equivalent,
                "wins": difference.wins,
                "losses": difference.losses,
            },
            "verdict": self.verdict,
            "folds": [
                {
                    "spec": fold.spec,
                    "training": _number(fold.training),
                    "held_out": _number(fold.held_out),
                    "questions": fold.questions,
                    "candidates": fold.candidates,
                }
                for fold in self.folds
            ],
            "front": [_told(trial) for trial in self.front],
            "trials": [_told(trial) for trial in self.trials],
        }


def conclude(
    trials: Sequence[Trial],
    benchmark: Benchmark,
    fold_of: NDArray[np.int64],
    options: TuneOptions,
    embedder: str,
    stopped: Stopped,
) -> Tuning:
    """Choose, hold out and compare.

    Args:
        trials: all that were run, the baseline among them, by their numbers.
        benchmark: the questions.
        fold_of: each question's fold.
        options: see `TuneOptions`.
        embedder: its name.
        stopped: see `Tuning`.

    Raises:
        DataError: no configuration could be run.
    """
    baseline = next(trial for trial in trials if trial.number < 0)
    tried = [trial for trial in trials if trial.number >= 0]
    done = [trial for trial in tried if not trial.failure]
    if not done:
        raise DataError(_nothing(tried))
    outcomes = Outcomes(
        np.column_stack([trial.scores for trial in done]),
        np.column_stack([trial.tokens for trial in done]),
        np.array([float(trial.cost) for trial in done]),
    )
    allowed = np.array(
        [[trial.fold is None or trial.fold == fold for trial in done] for fold in range(options.folds)], dtype=np.bool_
    )
    if not allowed.any(axis=1).all():
        raise DataError("too few configurations could be run to choose without some questions: try more of them")
    held = hold_out(outcomes, fold_of, allowed, options.margin)
    quality, tokens = outcomes.means()
    front = [done[place] for place in np.flatnonzero(pareto(quality, tokens, outcomes.cost))]
    documents = question_documents(benchmark)
    spread = rechosen(
        outcomes,
        baseline.scores,
        fold_of,
        allowed,
        options.margin,
        resamples=min(options.resamples, _RESAMPLES),
        seed=options.seed,
        clusters=[documents[query.id] for query in benchmark.queries] if options.by == "document" else None,
    )
    report = _report(benchmark, as_measure(options.measure), held)
    return Tuning(
        options=options,
        benchmark=benchmark.name,
        embedder=embedder,
        trials=tuple(tried),
        baseline=baseline,
        winner=done[choose(quality, tokens, outcomes.cost, options.margin)],
        front=tuple(sorted(front, key=lambda trial: (-trial.quality, trial.mean_tokens, trial.cost))),
        folds=tuple(
            Fold(
                spec=done[pick].spec,
                training=training,
                held_out=mean,
                questions=int(np.count_nonzero(fold_of == fold)),
                candidates=len({trial.spec for trial, may in zip(done, allowed[fold], strict=True) if may}),
            )
            for fold, (pick, training, mean) in enumerate(zip(held.picks, held.training, held.means, strict=True))
        ),
        held_out_report=report,
        interval=spread.interval(report.mean(as_measure(options.measure)), spread.mean),
        difference=_difference(held.scores, baseline, as_measure(options.measure), spread),
        stopped=stopped,
    )


def _report(benchmark: Benchmark, measure: Measure, held: HeldOut) -> Report:
    ids, collections = zip(*((query.id, query.collection) for query in benchmark.queries), strict=True)
    depths = {} if measure.k is None else {measure.k: held.tokens}
    return Report(CHOICE, benchmark.name, ids, collections, {measure: held.scores}, depths)


def _difference(scores: Scores, baseline: Trial, measure: Measure, spread: Spread) -> Difference:
    apart = scores - baseline.scores
    known = apart[~np.isnan(apart)]
    mean = float(known.mean()) if len(known) else math.nan
    low, high = spread.interval(mean, spread.lead)
    narrow, wide = spread.interval(mean, spread.lead, 0.9)  # two one-sided tests at 5 %
    wins, losses = int(np.count_nonzero(known > 0)), int(np.count_nonzero(known < 0))
    return Difference(
        CHOICE,
        baseline.spec,
        measure,
        mean,
        low,
        high,
        distinct=(low > 0 or high < 0) and wins + losses >= _FEWEST_UNALIKE,
        equivalent=narrow > -_MATTERS and wide < _MATTERS and wins + losses >= _FEWEST_UNALIKE,
        wins=wins,
        losses=losses,
    )


def _nothing(tried: Sequence[Trial]) -> str:
    if not tried:
        return "the time was over before any configuration was tried: give it more"
    return (
        f"none of the {len(tried)} configurations could be run; the first, {tried[0].spec}, failed: {tried[0].failure}"
    )


def _told(trial: Trial) -> dict[str, Any]:
    """A trial without what stands in the study's file."""
    found: dict[str, Any] = {
        "number": trial.number,
        "spec": trial.spec,
        "origin": trial.origin,
        "mean": _number(trial.quality),
        "retrieved_tokens": _number(trial.mean_tokens),
        "embedded_tokens": trial.embedded,
        "llm_tokens": trial.asked,
        "chunks": trial.chunks,
        "seconds": round(trial.seconds, 3),
    }
    return found | ({"failure": trial.failure} if trial.failure else {})


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
