"""Reports: the page, Markdown, CSV and JSON of one comparison.

study.py          what a report is made of
tables.py         its tables, as plain cells          notes.py       what to know before believing them
cost_tables.py    what each system cost               cross_table.py chunkers beside what searched them
plots.py          its plots, as SVG                   sweep_*.py     a sweep's tables, plots and page
page.py           HTML                                rendering.py   what every page is rendered with
questions.py      the page's list of questions        viewer.py      what its viewer draws:
excerpts.py       how much of the documents           answers.py     what was cut and retrieved
packs.py          packed                              text.py        foreign text made harmless
markdown.py       Markdown                            terminal.py    a terminal
records.py        CSV and JSON                        files.py       writing without halves
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from chunkcore.files import REPORT_NAMES, write_text
from chunkcore.report.page import html_report
from chunkcore.report.records import json_report, markdown_report, question_csv, read_reports, score_csv
from chunkcore.report.study import Study

__all__ = [
    "REPORT_NAMES",
    "ReportFiles",
    "Study",
    "html_report",
    "json_report",
    "markdown_report",
    "question_csv",
    "read_reports",
    "score_csv",
    "write_reports",
]


@dataclass(frozen=True, slots=True)
class ReportFiles:
    """Where the parts of a report were written."""

    html: Path
    markdown: Path
    json: Path
    scores: Path
    questions: Path


def write_reports(folder: Path | str, study: Study) -> ReportFiles:
    """Write ``report.html``, ``report.md``, ``report.json``, ``scores.csv`` and ``questions.csv``.

    Everything is rendered before anything is written, and each file replaces its predecessor whole.

    Raises:
        MissingExtraError: jinja2 is not installed.
        OSError: the folder cannot be written to.
    """
    texts = {
        "report.md": markdown_report(study),
        "report.json": json_report(study),
        # Excel takes a CSV file for UTF-8 only where it begins with a byte order mark.
        "scores.csv": f"\ufeff{score_csv(study)}",
        "questions.csv": f"\ufeff{question_csv(study)}",
        "report.html": html_report(study),
    }
    written = {name: write_text(Path(folder) / name, text) for name, text in texts.items()}
    return ReportFiles(
        html=written["report.html"],
        markdown=written["report.md"],
        json=written["report.json"],
        scores=written["scores.csv"],
        questions=written["questions.csv"],
    )
