"""The report as data: two CSV tables and a JSON file that can be read back."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from chunkcore.errors import DataError
from chunkcore.escaping import csv_cell, markdown_cell
from chunkcore.evaluation.measures import Measure, describe_depth
from chunkcore.evaluation.results import Report
from chunkcore.report.study import Study
from chunkcore.report.tables import (
    GROUPS,
    Cell,
    Table,
    choice_table,
    chunk_table,
    collection_score_tables,
    collection_table,
    configuration_table,
    cost_table,
    cross_table,
    difference_table,
    gap_table,
    located_table,
    measure_table,
    pairs_note,
    problem_table,
    score_table,
    warnings,
)

__all__ = ["json_report", "markdown_report", "markdown_table", "question_csv", "read_reports", "score_csv"]


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


FORMAT = "chunkcore report 1"


def score_csv(study: Study) -> str:
    """One row a strategy, collection ("" for all) and measure: mean, standard deviation, questions, interval.

    Shares are 0 to 1. The interval is that of the mean by the verdict's measure, over all.
    """
    header = ("strategy", "collection", "measure", "k", "unit", "mean", "std", "questions", "low", "high")
    rows = [row for report in study.reports for measure in report.scores for row in _scores(study, report, measure)]
    return _csv(header, rows)


def _scores(study: Study, report: Report, measure: Measure) -> Iterable[tuple[Any, ...]]:
    whole = (report.mean(measure), report.std(measure), int(np.isfinite(report.values(measure)).sum()))
    named = study.collections != ("",)
    groups = {"": whole} | {name: row for name, row in report.by_collection(measure).items() if named and name}
    for collection, (mean, std, count) in groups.items():
        known = measure == study.comparison.measure and not collection
        low, high = study.comparison.intervals[report.name] if known else (math.nan, math.nan)
        depth = "" if measure.k is None else measure.k
        yield report.name, collection, str(measure), depth, measure.unit, mean, std, count, low, high


def question_csv(study: Study) -> str:
    """One row a strategy and question: every measure, and the tokens retrieved at each k."""
    texts = {query.id: query.text for query in study.benchmark.queries} if study.benchmark else {}
    measures = list(dict.fromkeys(measure for report in study.reports for measure in report.scores))
    header = ["strategy", "question_id", "collection", "question", *map(str, measures)]
    header += [f"tokens@{k}" for k in study.ks]
    rows = []
    for report in study.reports:
        columns = [report.scores.get(measure) for measure in measures]
        columns += [report.retrieved_tokens.get(k) for k in study.ks]
        for index, (query, collection) in enumerate(zip(report.query_ids, report.collections, strict=True)):
            values = [math.nan if column is None else float(column[index]) for column in columns]
            rows.append((report.name, query, collection, texts.get(query, ""), *values))
    return _csv(header, rows)


def _csv(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\r\n")
    writer.writerow([csv_cell(title) for title in header])
    writer.writerows([_plain(value) for value in row] for row in rows)
    return buffer.getvalue()


def _plain(value: Any) -> Any:
    """Text made safe, numbers with six digits, NaN as an empty cell."""
    if isinstance(value, str):
        return csv_cell(value)
    if isinstance(value, float):
        return f"{value:.6g}" if math.isfinite(value) else ""
    return value


def json_report(study: Study) -> str:
    """Everything as JSON. `read_reports` gives the reports back, so that they can be compared again."""
    found = study.comparison
    data = {
        "format": FORMAT,
        "benchmark": study.benchmark.name if study.benchmark else study.reports[0].benchmark,
        "written": study.written,
        "settings": dict(study.settings),
        "verdict": {
            "measure": str(found.measure),
            "text": found.verdict,
            "best": found.best,
            "tied": list(found.tied),
            "questions_needed": found.questions_needed,
            "resamples": found.resamples,
            "seed": found.seed,
            "confidence": found.confidence,
            "margin": found.margin,
            "firsts": {name: float(share) for name, share in found.firsts.items()},
            "resampled": "questions" if found.clusters is None else "documents",
            "intervals": {name: list(map(_number, interval)) for name, interval in found.intervals.items()},
            "differences": [
                {
                    "a": each.a,
                    "b": each.b,
                    "mean": _number(each.mean),
                    "low": _number(each.low),
                    "high": _number(each.high),
                    "distinct": bool(each.distinct),
                    "p_value": _number(each.p_value),
                    "adjusted_p": _number(each.adjusted_p),
                    "equivalent": bool(each.equivalent),
                    "effect": _number(each.effect),
                    "wins": each.wins,
                    "losses": each.losses,
                }
                for each in found.differences
            ],
        },
        "problems": [
            {"question": problem.query_id, "reason": problem.reason}
            for problem in (study.benchmark.problems if study.benchmark else ())
        ],
        "reports": [report.to_dict() for report in study.reports],
    }
    return json.dumps(data, ensure_ascii=True, allow_nan=False) + "\n"


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def read_reports(path: Path | str) -> list[Report]:
    """The reports that `json_report` wrote, best first.

    Raises:
        DataError: the file is no such report.
        OSError: it cannot be read.
    """
    try:
        data = json.loads(Path(path).read_text("utf-8"))
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path} is no JSON ({error}); expected the report.json that a comparison wrote") from error
    if not isinstance(data, dict) or data.get("format") != FORMAT or not isinstance(data.get("reports"), list):
        raise DataError(f'{path} is no report: expected an object whose "format" is "{FORMAT}"')
    return [Report.from_dict(each) for each in data["reports"]]
