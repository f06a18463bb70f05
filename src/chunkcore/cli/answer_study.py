"""What ``chunkcore answer`` prints and writes: a table, what to know before believing it, and every answer."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from chunkcore.files import ANSWERS

if TYPE_CHECKING:
    from rich.table import Table

    from chunkcore.answers import AnswerRun
    from chunkcore.evaluation.benchmarks.benchmark import Benchmark
    from chunkcore.evaluation.measures import Depth, Measure, Scores
    from chunkcore.evaluation.results import Report
    from chunkcore.evaluation.statistics.comparison import Comparison
    from chunkcore.report import ReportPage

__all__ = ["ANSWERS", "AnswerStudy"]

_AT_ONCE = 3  # measures in a table


@dataclass(frozen=True, eq=False)
class AnswerStudy:
    """A comparison of answers, with the answers.

    Attributes:
        study: a comparison of reports that have the measures of answers.
        benchmark: what was asked.
        runs: the answers, in the order of the comparison's reports.
        names: the measures.
        depth: how much of the ranking the model was shown.
    """

    study: ReportPage
    benchmark: Benchmark
    runs: Sequence[AnswerRun]
    names: Sequence[str]
    depth: Depth

    @property
    def comparison(self) -> Comparison:
        return self.study.comparison

    def write(self, folder: Path) -> Path:
        """The files of a report, and ``answers.jsonl``, a strategy's answer to a question a line; the page's path."""
        from chunkcore.files import write_parts
        from chunkcore.report import write_report

        write_parts(folder / ANSWERS, self._lines())
        return write_report(self.study, folder).html

    def tables(self) -> Iterator[Table]:
        """A row a strategy, the best first: each measure with its interval, as many measures as 80 columns hold.

        The first table tells recall and what was retrieved, too.
        """
        for first in range(0, len(self.names), _AT_ONCE):
            yield self._table(self.names[first : first + _AT_ONCE], retrieved=not first)

    def _table(self, names: Sequence[str], *, retrieved: bool) -> Table:
        from rich import box
        from rich.table import Table
        from rich.text import Text

        from chunkcore.escaping import terminal_text
        from chunkcore.evaluation.measures import describe_depth, get_measure
        from chunkcore.report.tables import amount, percent

        level = f"{100 * self.comparison.confidence:g} %"
        title = f"Answers from {describe_depth(self.depth)}: means in %, {level} intervals" if retrieved else None
        table = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left", pad_edge=False)
        table.add_column("Strategy", overflow="fold")
        for heading in (*names, *(("Recall", "Tokens") if retrieved else ())):
            table.add_column(heading, justify="right", no_wrap=True)
        for report in self.study.reports:
            cells = self._cells(report, names)
            if retrieved:
                recall = report.mean(get_measure("Recall", self.depth))
                cells += [percent(recall), amount(report.mean_tokens(self.depth))]
            table.add_row(Text(terminal_text(report.name)), *cells)
        return table

    def _cells(self, report: Report, names: Sequence[str]) -> list[str]:
        import numpy as np

        from chunkcore.evaluation.statistics.resampling import mean_intervals
        from chunkcore.report.tables import percent

        found = self.comparison
        labels = None if found.clusters is None else [found.clusters[query] for query in report.query_ids]
        low, high = mean_intervals(
            np.column_stack([self._values(report, name) for name in names]),
            resamples=found.resamples,
            seed=found.seed,
            confidence=found.confidence,
            clusters=labels,
        )
        means = [report.mean(self._measure(name)) for name in names]
        return [f"{percent(mean)}\n{percent(low[i], 0)}–{percent(high[i], 0)}" for i, mean in enumerate(means)]

    def notes(self) -> Iterator[str]:
        """What must be known before the numbers are believed, a sentence each."""
        from chunkcore.report.tables import warnings

        yield from warnings(self.study)
        for report, run in zip(self.comparison.reports, self.runs, strict=True):
            failures = [found.failure for found in run.answers.values() if found.failure]
            if failures:
                count = f"{len(failures):,} of {len(run.answers):,} questions"
                yield f"{report.name}: {count} have no valid answer and score 0; the first: {failures[0]}"
            empty = sum(not found.text and not found.failure for found in run.answers.values())
            if empty:
                yield f"{report.name}: of {empty:,} questions the model says that the passages do not answer them."
            yield from self._unjudged(report, run)

    def _unjudged(self, report: Report, run: AnswerRun) -> Iterator[str]:
        from chunkcore.answers.scoring import judged

        said = [bool(run.answers[query].text) for query in report.query_ids]
        for name in judged(self.names):
            values = self._values(report, name).tolist()
            unknown = sum(math.isnan(value) and told for value, told in zip(values, said, strict=True))
            if unknown:
                yield f"{report.name}: {name} leaves out {unknown:,} answers that got no valid verdict."

    def _lines(self) -> Iterator[bytes]:
        from chunkcore.answers.scoring import references_of

        for report, run in zip(self.comparison.reports, self.runs, strict=True):
            columns = {name: self._values(report, name) for name in self.names}
            for number, query in enumerate(self.benchmark.queries):
                found = run.answers[query.id]
                row: Mapping[str, object] = {
                    "strategy": report.name,
                    "question_id": query.id,
                    "question": query.text,
                    "answer": found.text,
                    **({} if found.choice is None else {"choice": found.choice}),
                    **({"failure": found.failure} if found.failure else {}),
                    "right": list(references_of(query)),
                    "scores": {name: _nullable(float(values[number])) for name, values in columns.items()},
                    "passages": list(found.passages),
                }
                yield f"{json.dumps(row)}\n".encode("ascii")  # a surrogate in a document is no UTF-8

    def _measure(self, name: str) -> Measure:

        from chunkcore.evaluation.measures import get_measure

        return get_measure(name, self.depth)

    def _values(self, report: Report, name: str) -> Scores:
        return report.values(self._measure(name))


def _nullable(value: float) -> float | None:
    return None if math.isnan(value) else value
