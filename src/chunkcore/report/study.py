"""`Study`: a comparison with everything else that a report tells about it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, get_args

from chunkcore.evaluation.benchmarks.benchmark import Benchmark
from chunkcore.evaluation.measures import Depth, Measure, Unit, budget_of, get_measure, known_measures
from chunkcore.evaluation.results import Report
from chunkcore.evaluation.statistics.comparison import Comparison, compare

if TYPE_CHECKING:  # what runs a sweep is not needed to show a comparison
    from chunkcore.tuning.grid import Sweep

__all__ = ["RANKED", "Study"]

# The measures that look at a ranking, in the order in which tables show them.
RANKED: tuple[str, ...] = ("Recall", "Precision", "IoU", "F1")


@dataclass(frozen=True, eq=False)
class Study:
    """What a report is made of.

    Attributes:
        comparison: the systems' scores and the verdict.
        benchmark: what they were scored on; its questions and excerpts are shown where it is given.
        settings: how it was made, as names and values to show.
        written: the date, as it should be shown; "" shows none.
        sweep: of the strategies' options, whose plots and choices are shown too.
        stopped: where the work was stopped before its end, a sentence on what is missing.
    """

    comparison: Comparison
    benchmark: Benchmark | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    written: str = ""
    sweep: Sweep | None = None
    stopped: str = ""

    @cached_property
    def reports(self) -> tuple[Report, ...]:
        """Best first by the verdict's measure; equal ones in the order in which they were given."""
        measure = self.comparison.measure
        sign = 1 if measure.higher_is_better else -1
        return tuple(sorted(self.comparison.reports, key=lambda report: -_finite(sign * mean(report, measure))))

    @cached_property
    def ks(self) -> tuple[Depth, ...]:
        """The depths that any report has: numbers, then budgets of tokens, then "min"; 5 where none has any."""
        seen = {measure.k for report in self.reports for measure in report.scores if measure.k is not None}
        return tuple(sorted(seen, key=_order)) or (5,)  # scores of whole rankings stand in every depth's table

    @cached_property
    def units(self) -> tuple[Unit, ...]:
        """The units that any report has, tokens first."""
        seen = {measure.unit for report in self.reports for measure in report.scores}
        return tuple(unit for unit in get_args(Unit) if unit in seen)

    def ranked(self, k: Depth, unit: Unit) -> list[Measure]:
        """The measures of a table at this depth: those of `RANKED`, whether or not a report has them, and the others.

        Answers have the others alone.
        """
        return [get_measure(name, k, unit) for name in (*(() if unit == "answer" else RANKED), *self.others(k, unit))]

    def others(self, k: Depth | None, unit: Unit) -> tuple[str, ...]:
        """What else any report was scored by at this depth: not those of `RANKED`, nor PrecisionOmega."""
        usual = (*RANKED, "PrecisionOmega")
        seen = {
            measure.kind
            for report in self.reports
            for measure in report.scores
            if (measure.k, measure.unit) == (k, unit)
        }
        return tuple(each.kind for each in known_measures() if each.kind in seen and each.kind not in usual)

    @property
    def chosen_k(self) -> Depth:
        """The depth that is shown first: the verdict's."""
        chosen = self.comparison.measure.k
        return chosen if chosen is not None else self.ks[0]

    @cached_property
    def collections(self) -> tuple[str, ...]:
        return tuple(sorted({name for report in self.reports for name in report.collections}))

    @property
    def level(self) -> str:
        """The intervals' confidence, in words."""
        return f"{100 * self.comparison.confidence:g} %"

    def intervals(self, measure: Measure) -> Mapping[str, tuple[float, float]]:
        """The interval of each system's mean, by name; empty where a system lacks the measure."""
        found = self.comparison_by(measure)
        return found.intervals if found else {}

    def comparison_by(self, measure: Measure) -> Comparison | None:
        """The same comparison by another measure; None where a system lacks it."""
        if measure == self.comparison.measure:
            return self.comparison
        if any(measure not in report.scores for report in self.reports):
            return None
        if measure not in self._known:
            self._known[measure] = self._compare(measure)
        return self._known[measure]

    def _compare(self, measure: Measure) -> Comparison:
        given = self.comparison
        return compare(
            given.reports,
            measure,
            resamples=given.resamples,
            seed=given.seed,
            confidence=given.confidence,
            margin=given.margin,
            check=given.check,
            clusters=given.clusters,
        )

    @cached_property
    def _known(self) -> dict[Measure, Comparison]:
        return {}


def mean(report: Report, measure: Measure) -> float:
    """The report's mean, NaN where it lacks the measure."""
    return report.mean(measure) if measure in report.scores else math.nan


def std(report: Report, measure: Measure) -> float:
    """The report's standard deviation, NaN where it lacks the measure."""
    return report.std(measure) if measure in report.scores else math.nan


def _order(k: Depth) -> tuple[int, int]:
    budget = budget_of(k)
    return (0, k) if isinstance(k, int) else (2, 0) if budget is None else (1, budget)


def _finite(value: float) -> float:
    return value if math.isfinite(value) else -math.inf
