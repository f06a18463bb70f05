"""Chunkers beside what searched their chunks: the effect of one stands next to the effect of the other."""

from __future__ import annotations

from chunkcore.report.study import Study, mean
from chunkcore.report.tables import MISSING, Cell, Column, Table, interval_text, percent

__all__ = ["cross_table"]

# Between a strategy's name and what it was searched with; see `run_chunkers`.
JOINT = " · "


def cross_table(study: Study) -> Table | None:
    """A row a strategy, a column a retriever or embedder: the mean by the verdict's measure, and its interval.

    None where the names tell no two ways of searching that share two strategies (Qu, Tu and Bao 2024, appendix E.2,
    lay out chunkers and embedders so).
    """
    places = {report.name.partition(JOINT)[::2]: report for report in study.reports}
    rows = list(dict.fromkeys(strategy for strategy, _ in places))
    ways = list(dict.fromkeys(way for _, way in places))
    if len(rows) < 2 or len(ways) < 2 or len(places) < 4 or len(places) <= max(len(rows), len(ways)):
        return None
    numbers = {report.name: number for number, report in enumerate(study.reports, 1)}
    measure = study.comparison.measure

    def cell(strategy: str, way: str) -> Cell:
        report = places.get((strategy, way))
        if report is None:
            return Cell(MISSING)
        interval = interval_text(*study.comparison.intervals[report.name])
        details = (interval,) if interval else ()
        return Cell(percent(mean(report, measure)), details, report.name in study.comparison.tied, numbers[report.name])

    columns = (Column("Strategy", kind="text"), *(Column(way or "(not named)", "Searched by", "text") for way in ways))
    cells = tuple((Cell(strategy), *(cell(strategy, way) for way in ways)) for strategy in rows)
    return Table(f"{measure} by strategy and search", columns, cells)
