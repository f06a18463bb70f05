"""Reports: the page, Markdown, CSV and JSON of a comparison, and the page of a search over options.

page.py        `ReportPage`: what a report is made of
tables.py      its tables: columns that describe themselves
plots.py       its plots, as SVG
viewer.py      the documents, chunks and answers that the page's viewer draws
html.py        the page                       rendering.py   what every page is rendered with
records.py     Markdown, CSV and JSON         terminal.py    a terminal
tuning.py      the tables, plots, page and files of a search
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from chunkcore.evaluation.benchmarks.benchmark import Benchmark
from chunkcore.evaluation.measures import Measure, get_measure
from chunkcore.evaluation.results import Report
from chunkcore.evaluation.statistics.comparison import Comparison, compare
from chunkcore.files import REPORT_NAMES, write_text
from chunkcore.report.html import html_report
from chunkcore.report.page import ReportPage
from chunkcore.report.records import json_report, markdown_report, question_csv, read_reports, score_csv
from chunkcore.report.tuning import TuningFiles, write_tuning

__all__ = [
    "REPORT_NAMES",
    "ReportFiles",
    "ReportPage",
    "TuningFiles",
    "html_report",
    "json_report",
    "markdown_report",
    "question_csv",
    "read_reports",
    "score_csv",
    "write_report",
    "write_tuning",
]


@dataclass(frozen=True, slots=True)
class ReportFiles:
    """Where the parts of a report were written."""

    html: Path
    markdown: Path
    json: Path
    scores: Path
    questions: Path


def write_report(
    found: ReportPage | Comparison | Sequence[Report],
    folder: Path | str,
    *,
    benchmark: Benchmark | None = None,
    measure: Measure | str = "",
    settings: Mapping[str, str] | None = None,
) -> ReportFiles:
    """Write ``report.html``, ``report.md``, ``report.json``, ``scores.csv`` and ``questions.csv``.

    Everything is rendered before anything is written, and each file replaces its predecessor whole.

    Args:
        found: a comparison; or the reports to compare; or a page with all that is to be shown.
        folder: made where there is none.
        benchmark: what was scored: the page then shows its questions, documents and chunks.
        measure: what the verdict of reports is about; Recall@5, or the first that they have, by default.
        settings: how the report was made, as names and values to show.

    Raises:
        MissingExtraError: jinja2 is not installed.
        DataError: no report, or reports that cannot be compared; see `compare`.
        OSError: the folder cannot be written to.

    >>> import numpy as np, tempfile
    >>> reports = [Report(name, "toy", ("q",), ("",), {get_measure("Recall@5"): np.ones(1)}) for name in ("a", "b")]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_report(reports, folder).html.name
    'report.html'
    """
    if not isinstance(found, ReportPage | Comparison):
        found = compare(found, get_measure(measure) if measure else _first_measure(found))
    page = found if isinstance(found, ReportPage) else ReportPage(found, benchmark, settings or {})
    texts = {
        "report.md": markdown_report(page),
        "report.json": json_report(page),
        # Excel takes a CSV file for UTF-8 only where it begins with a byte order mark.
        "scores.csv": f"\ufeff{score_csv(page)}",
        "questions.csv": f"\ufeff{question_csv(page)}",
        "report.html": html_report(page),
    }
    written = {name: write_text(Path(folder) / name, text) for name, text in texts.items()}
    return ReportFiles(
        html=written["report.html"],
        markdown=written["report.md"],
        json=written["report.json"],
        scores=written["scores.csv"],
        questions=written["questions.csv"],
    )


def _first_measure(reports: Sequence[Report]) -> Measure:
    usual = get_measure("Recall@5")
    scored = reports[0].scores if reports else {}
    return usual if usual in scored or not scored else next(iter(scored))
