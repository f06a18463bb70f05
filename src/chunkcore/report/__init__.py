"""Reports of a comparison (HTML, Markdown, CSV, JSON, terminal), and of a tuning search.

page.py: `ReportPage`, the input of every report. tables.py, plots.py, viewer.py: its parts. html.py, rendering.py,
records.py, terminal.py: its formats. tuning.py: the report of a search.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from chunkcore.evaluation.benchmarks.benchmark import Benchmark
from chunkcore.evaluation.measures import Measure
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
    """Paths of the files of a report."""

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
    """Write ``report.html``, ``report.md``, ``report.json``, ``scores.csv`` and ``questions.csv``, each atomically.

    Args:
        found: a comparison, reports to compare, or a page with everything to show.
        folder: created if missing.
        benchmark: shows its questions, documents and chunks on the page.
        measure: for the verdict on reports; see `compare`.

    Raises:
        MissingExtraError: jinja2 is not installed.
        DataError: no report, or reports that cannot be compared; see `compare`.
        OSError: the folder cannot be written to.

    >>> import numpy as np, tempfile
    >>> from chunkcore.evaluation.measures import get_measure
    >>> reports = [Report(name, "toy", ("q",), ("",), {get_measure("Recall@5"): np.ones(1)}) for name in ("a", "b")]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_report(reports, folder).html.name
    'report.html'
    """
    if not isinstance(found, ReportPage | Comparison):
        found = compare(found, measure)
    page = found if isinstance(found, ReportPage) else ReportPage(found, benchmark, settings or {})
    texts = {
        "markdown": ("report.md", markdown_report(page)),
        "json": ("report.json", json_report(page)),
        # Excel reads a CSV file as UTF-8 only if it begins with a byte order mark.
        "scores": ("scores.csv", f"\ufeff{score_csv(page)}"),
        "questions": ("questions.csv", f"\ufeff{question_csv(page)}"),
        "html": ("report.html", html_report(page)),
    }
    return ReportFiles(**{kind: write_text(Path(folder) / name, text) for kind, (name, text) in texts.items()})
