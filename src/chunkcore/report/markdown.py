"""The report as Markdown: verdict, tables, settings."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from chunkcore.evaluation.measures import describe_depth
from chunkcore.report.cost_tables import GROUPS, cost_table
from chunkcore.report.cross_table import cross_table
from chunkcore.report.notes import located_table, warnings
from chunkcore.report.study import Study
from chunkcore.report.sweep_tables import choice_table, configuration_table, gap_table
from chunkcore.report.tables import (
    Cell,
    Table,
    chunk_table,
    collection_score_tables,
    collection_table,
    difference_table,
    measure_table,
    pairs_note,
    problem_table,
    score_table,
)
from chunkcore.report.text import markdown_cell

__all__ = ["markdown_report", "markdown_table"]


def markdown_report(study: Study) -> str:
    """The verdict, then every table of the HTML page, at every k and in every unit."""
    name = study.benchmark.name if study.benchmark else study.reports[0].benchmark
    parts = [f"# Chunking strategies on {markdown_cell(name)}", markdown_cell(study.comparison.verdict)]
    parts += [f"> {markdown_cell(text)}" for text in warnings(study)]
    for unit in study.units:
        for k in study.ks:
            title = f"## Scores at {describe_depth(k)}, {unit}s"
            parts += [title, markdown_table(score_table(study, k, unit))]
            parts += _titled(collection_table(study, k, unit), level=3)
            for each in collection_score_tables(study, k, unit):
                parts += _titled(replace(each, title=f"{each.title}, {unit}s"), level=4)
    parts += _titled(cost_table(study), "For one strategy, as if it were alone. Seconds are this run's.")
    parts += _titled(cross_table(study), "Bold are the highest and those that the questions can't tell from it.")
    parts += _titled(difference_table(study), f"Row minus column, in points; {pairs_note(study)}.")
    parts += _titled(measure_table(study))
    swept = study.sweep
    sweeps = (choice_table(swept), gap_table(swept), configuration_table(swept)) if swept else ()
    for table in (*sweeps, chunk_table(study), problem_table(study), located_table(study)):
        parts += _titled(table)
    parts += ["## How this was made", "\n".join(_settings(study))]
    return "\n\n".join(parts) + "\n"


def _titled(table: Table | None, note: str = "", *, level: int = 2) -> list[str]:
    if table is None:
        return []
    return [f"{'#' * level} {markdown_cell(table.title)}", *([note] if note else []), markdown_table(table)]


def markdown_table(table: Table) -> str:
    """A table in the pipe syntax; pipes and HTML inside cells are escaped."""
    titles = [
        f"{column.group}: {column.title}" if column.group in ("Chunks", "Cost", *GROUPS) else column.title
        for column in table.columns
    ]
    rules = ["---:" if column.kind == "number" else "---" for column in table.columns]
    lines = [_line(map(markdown_cell, titles)), _line(rules)]
    lines += [_line(map(_cell, row)) for row in table.rows]
    return "\n".join(lines)


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(cell: Cell) -> str:
    text = markdown_cell(cell.text)
    if cell.strong:
        text = f"**{text}**"
    if cell.number:
        text = f"{cell.number}. {text}"
    if not cell.details:
        return text
    first, *rest = (markdown_cell(detail) for detail in cell.details)
    return f"{text} {first}{''.join(f' ({each})' for each in rest)}"


def _settings(study: Study) -> list[str]:
    shown = {
        "Date": study.written,
        "Seed": str(study.comparison.seed),
        "Resamples": str(study.comparison.resamples),
        "k = min counts": f"chunks {study.reports[0].min_rule} evidence",
        **study.settings,
    }
    return [f"- {markdown_cell(name)}: {markdown_cell(value)}" for name, value in shown.items() if value]
