"""Reports of a comparison or a tuning search: HTML, Markdown, CSV, JSON, terminal.

`ReportPage` (study/page.py) is the input of every report. tables.py, plots.py, viewer.py: its parts. html.py,
records.py: its formats. advice.py: what it says first. pasting.py: code to paste.
"""

from typing import TYPE_CHECKING

from chunkcore.lazy import on_first_use

if TYPE_CHECKING or on_first_use(__name__):
    from chunkcore.report.html import html_report as html_report
    from chunkcore.report.html import plot as plot
    from chunkcore.report.pasting import snippets as snippets
    from chunkcore.report.records import ReportFiles as ReportFiles
    from chunkcore.report.records import json_report as json_report
    from chunkcore.report.records import markdown_report as markdown_report
    from chunkcore.report.records import question_csv as question_csv
    from chunkcore.report.records import read_reports as read_reports
    from chunkcore.report.records import score_csv as score_csv
    from chunkcore.report.records import write_report as write_report
    from chunkcore.study.page import ReportPage as ReportPage
