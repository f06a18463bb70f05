"""Reports of a comparison or a tuning search: HTML, Markdown, CSV, JSON, terminal.

`ReportPage` (study/comparing.py) is the input of every report. tables.py, plots.py, viewer.py: its parts. html.py,
records.py: its formats. advice.py: what it says first.
"""

from typing import TYPE_CHECKING

from chunkcore.lazy import on_first_use

if TYPE_CHECKING:
    from chunkcore.report.html import html_report as html_report
    from chunkcore.report.advice import snippets as snippets
    from chunkcore.report.records import (
        json_report as json_report,
        markdown_report as markdown_report,
        question_csv as question_csv,
        read_reports as read_reports,
        write_report as write_report,
    )
    from chunkcore.study.comparing import ReportPage as ReportPage

on_first_use(
    __name__,
    {
        "chunkcore.report.html": "html_report",
        "chunkcore.report.advice": "snippets",
        "chunkcore.report.records": (
            "json_report markdown_report question_csv read_reports write_report"
        ),
        "chunkcore.study.comparing": "ReportPage",
    },
)
