"""What ``chunkcore compare`` is held to: ``--require`` and ``--baseline``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from chunkcore.evaluation.measures import Depth, Measure
    from chunkcore.evaluation.results import Report
    from chunkcore.evaluation.statistics.gate import Check, Requirement

__all__ = ["Gate", "read_gate"]


@dataclass(frozen=True)
class Gate:
    """What is required of every strategy, and an earlier comparison whose quality it should keep.

    Attributes:
        requirements: each holds for each strategy.
        earlier: the earlier reports; None where there is nothing to keep up with.
    """

    requirements: tuple[Requirement, ...]
    earlier: Sequence[Report] | None

    @property
    def ks(self) -> list[Depth]:
        """How deep they look, so that a report can show everything else there, too."""
        return [measure.k for measure in self.measures if measure.k is not None]

    @property
    def measures(self) -> list[Measure]:
        """What has to be scored for it."""
        return [requirement.measure for requirement in self.requirements]

    def check_names(self, names: Sequence[str]) -> None:
        """Find out before the long work whether there is anything to compare these strategies with.

        Raises:
            DataError: the baseline has none of them; one alone is compared with one alone, whatever their names.
        """
        from chunkcore.errors import DataError

        if self.earlier is None or len(names) == len(self.earlier) == 1:
            return
        before = [report.name for report in self.earlier]
        if not set(before) & set(names):
            raise DataError(
                f"the baseline has none of the strategies: it has {', '.join(before)}; compared are {', '.join(names)}"
            )

    def checks(self, reports: Sequence[Report], verdict_by: Measure, *, resamples: int, seed: int) -> list[Check]:
        """Every requirement of every strategy, then every strategy against its earlier self."""
        from chunkcore.evaluation.statistics.gate import check_baseline, check_requirement

        found = [
            check_requirement(report, requirement, resamples=resamples, seed=seed)
            for requirement in self.requirements
            for report in reports
        ]
        for report, earlier in self._pairs(reports):
            measures = [each for each in dict.fromkeys([verdict_by, *self.measures]) if each in earlier.scores]
            # The verdict's measure is needed: where it was not scored before, the error says so.
            for measure in measures if verdict_by in earlier.scores else [verdict_by]:
                found.append(check_baseline(report, earlier, measure, resamples=resamples, seed=seed))  # noqa: PERF401
        return found

    def _pairs(self, reports: Sequence[Report]) -> Iterator[tuple[Report, Report]]:
        """Strategies of one name; or the only one now and the only one before, whatever they are called.

        Raises:
            DataError: no strategy is in both.
        """
        self.check_names([report.name for report in reports])
        if self.earlier is None:
            return
        if len(reports) == len(self.earlier) == 1:
            yield reports[0], self.earlier[0]
            return
        before = {report.name: report for report in self.earlier}
        yield from ((report, before[report.name]) for report in reports if report.name in before)


def read_gate(required: Sequence[str], baseline: Path | None) -> Gate:
    """The gate of the command line, read before the long work.

    Raises:
        OptionError: a requirement is malformed.
        DataError: the baseline is no report.
        OSError: it cannot be read.
    """
    from chunkcore.evaluation.statistics.gate import parse_requirement
    from chunkcore.report import read_reports

    return Gate(tuple(map(parse_requirement, required)), read_reports(baseline) if baseline is not None else None)
