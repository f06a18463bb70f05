"""The report as data: two CSV tables and a JSON file that can be read back."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from chunkcore.errors import DataError
from chunkcore.evaluation.measures import Measure
from chunkcore.evaluation.results import Report
from chunkcore.report.study import Study
from chunkcore.report.text import csv_cell

__all__ = ["json_report", "question_csv", "read_reports", "score_csv"]

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
