"""`ReportPage`: a comparison, and everything else that a report shows."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, get_args

from chunkcore.evaluation.benchmarks.benchmark import Benchmark, Evidence
from chunkcore.evaluation.comparison import Comparison
from chunkcore.evaluation.measures import Depth, Measure, Unit, budget_of, known_measures
from chunkcore.evaluation.results import Report
from chunkcore.spans import Numbers
from chunkcore.study.tuning import Tuning
from chunkcore.tokens import TokenCounter

# Coverage of the 95 % interval in 2,000 samples from a system of 90 % recall (found or not): 64 % with 10 questions,
# 86 % with 20, 95 % with 30.
FEW = 30

# Of a system's report, a question and its evidence: the tokens of each chunk that ranks above the first one with it.
Above = Callable[[Report, str, Evidence], Numbers | None]


class Ranked(NamedTuple):
    """A report and its number on the page, from 1."""

    number: int
    report: Report


@dataclass(frozen=True, eq=False)
class ReportPage:
    """The input of a report.

    Attributes:
        comparison: the systems' scores and the verdict.
        benchmark: shows its questions and documents, if given.
        settings: names and values to show.
        written: the date to show; "" for none.
        tuning: a search, to show its folds, configurations and plots.
        stopped: one sentence on what is missing because work was stopped; "" for nothing.
        above: how far down a system ranks evidence, to say why it was missed; None if the system cannot be asked.
        more_questions: the command to run where there are too few questions.
        folder: of the documents, for code to paste.
        counter: of the tokens that the scores count.
    """

    comparison: Comparison
    benchmark: Benchmark | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    written: str = ""
    tuning: Tuning | None = None
    stopped: str = ""
    above: Above | None = None
    more_questions: str = "chunkcore questions label docs/"
    folder: str = "docs/"
    counter: str | TokenCounter = "cl100k_base"

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "above": None}  # asks an index

    @property
    def reports(self) -> tuple[Report, ...]:
        """The best by the verdict's measure first; see `Comparison.ranked`."""
        return self.comparison.ranked

    @cached_property
    def systems(self) -> tuple[Ranked, ...]:
        return tuple(Ranked(number, report) for number, report in enumerate(self.reports, 1))

    @cached_property
    def ks(self) -> tuple[Depth, ...]:
        """The depths of all reports: numbers, then token budgets, then "min"; 5 if there are none."""
        scored = {measure for report in self.reports for measure in report.scores}
        depths = {measure.k for measure in scored if measure.k is not None}

        def order(k: Depth) -> tuple[int, int]:
            if isinstance(k, int):
                return 0, k
            budget = budget_of(k)
            return (2, 0) if budget is None else (1, budget)

        # Every depth's table also shows the scores of whole rankings.
        return tuple(sorted(depths, key=order)) or (5,)

    @cached_property
    def units(self) -> tuple[Unit, ...]:
        """The units of all reports, tokens first."""
        seen = {measure.unit for report in self.reports for measure in report.scores}
        return tuple(unit for unit in get_args(Unit) if unit in seen)

    def measures(self, k: Depth | None, unit: Unit) -> list[Measure]:
        """The columns at a depth, or for whole rankings (None): the usual measures, then all others scored."""
        usual = [kind for kind in known_measures() if kind.usual and unit in kind.units]
        scored = {measure for report in self.reports for measure in report.scores}
        others = [
            measure
            for measure in scored
            if (measure.k, measure.unit) == (k, unit) and not measure.usual
        ]
        columns = [kind(k, unit) for kind in usual if (kind.depth == "none") == (k is None)]
        return [*columns, *sorted(others, key=lambda measure: measure.order)]

    @property
    def chosen_k(self) -> Depth:
        """The depth shown first: the verdict's."""
        chosen = self.comparison.measure.k
        return chosen if chosen is not None else self.ks[0]

    @cached_property
    def collections(self) -> tuple[str, ...]:
        return tuple(sorted({name for report in self.reports for name in report.collections}))

    @property
    def level(self) -> str:
        """The intervals' confidence, in words."""
        return f"{100 * self.comparison.confidence:g} %"

    def interval(self, report: Report, measure: Measure) -> tuple[float, float]:
        """The interval of a report's mean; NaN if a system lacks the measure."""
        ends = self.comparison.intervals_by(measure)
        return ends.get(report.name, (math.nan, math.nan))


def mean(report: Report, measure: Measure) -> float:
    """The report's mean; NaN without the measure."""
    return report.mean(measure) if measure in report.scores else math.nan
