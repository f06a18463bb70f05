"""`write_report`: the report as a page, Markdown, two CSV tables, and JSON that can be read back; `print_report`."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from textwrap import indent, wrap
from typing import TYPE_CHECKING, Any

import numpy as np

from chunkcore.errors import DataError, OptionError
from chunkcore.evaluation.benchmarks import Benchmark
from chunkcore.evaluation.comparison import Comparison, compare
from chunkcore.evaluation.results import Report
from chunkcore.files import check_no_link, open_file, read_json, write_files, write_text
from chunkcore.plain import csv_cell, digest, markdown_cell, plain, terminal_block, terminal_text
from chunkcore.reading.opening import REPORT_NAMES, written_names
from chunkcore.report.advice import Advice
from chunkcore.report.html import contents, html_report, template
from chunkcore.report.tables import Cell, Table, score_table, warnings
from chunkcore.study.comparing import ReportPage

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text


def markdown_report(page: ReportPage) -> str:
    """The verdict, and every table of the HTML page at every k and in every unit.

    Raises `MissingExtraError`: jinja2 is not installed.
    """
    rendered = template("report.md.jinja", markdown_cell).render(contents(page))
    return f"{rendered.strip()}\n"


FORMAT = "chunkcore report 2"


def question_csv(page: ReportPage) -> str:
    """One row per system and question: every measure, and the tokens retrieved at each k.

    Shares are from 0 to 1; NaN is an empty cell.
    """
    queries = page.benchmark.queries if page.benchmark else ()
    texts = {query.id: query.text for query in queries}
    measures = list(dict.fromkeys(measure for report in page.reports for measure in report.scores))
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    header = ["system", "question_id", "collection", "question", *map(str, measures)]
    header += [f"tokens@{k}" for k in page.ks]
    writer.writerow(map(csv_cell, header))
    for report in page.reports:
        empty = np.full(len(report.query_ids), math.nan)
        columns = [report.scores.get(measure, empty) for measure in measures]
        columns += [report.retrieved_tokens.get(k, empty) for k in page.ks]
        rows = zip(report.query_ids, report.collections, *columns, strict=True)
        for query, collection, *values in rows:
            names = map(csv_cell, (report.name, query, collection, texts.get(query, "")))
            shown = [f"{value:.6g}" if math.isfinite(value) else "" for value in values]
            writer.writerow([*names, *shown])
    return buffer.getvalue()


def json_report(page: ReportPage) -> str:
    """Everything as JSON; `read_reports` restores the reports for another comparison."""
    comparison, advice = page.comparison, Advice.of(page)
    names = "best tied baseline questions_needed resamples seed margin firsts intervals curves"
    problems = page.benchmark.problems if page.benchmark else ()
    data = {
        "format": FORMAT,
        "benchmark": page.name,
        "written": page.written,
        "settings": page.settings,
        "verdict": {
            "measure": str(comparison.measure),
            "text": comparison.verdict,
            "advice": {**advice._asdict(), "lines": dict(advice.lines)},
            "resampled": f"{comparison.by}s",
            **{name: getattr(comparison, name) for name in names.split()},
            "differences": comparison.differences,
        },
        "tuning": page.tuning and page.tuning.to_dict(),
        "problems": [{"question": one.query_id, "reason": one.reason} for one in problems],
    }
    reports = [report.to_dict() for report in page.reports]
    checked = {"checksum": reports_checksum(reports), "reports": reports}
    text = json.dumps(plain(data) | checked, allow_nan=False)
    return f"{text}\n"


def read_reports(path: Path | str) -> list[Report]:
    """The reports that `json_report` wrote, best first. Raises `DataError`: an unreadable file, or no such report."""
    data = read_json(Path(path))
    is_report = isinstance(data, dict) and data.get("format") == FORMAT
    if not is_report or not isinstance(data.get("reports"), list):
        raise DataError(f'{path} is no report: expected an object whose "format" is "{FORMAT}"')
    if data.get("checksum") != reports_checksum(data["reports"]):
        raise DataError(
            f"{path}: its reports are not what was written: the file was damaged or edited; compare again"
        )
    return [Report.from_dict(report) for report in data["reports"]]


def reports_checksum(reports: Sequence[Mapping[str, Any]]) -> str:
    """32 hexadecimal digits of reports as plain JSON values."""
    return digest(json.dumps(reports, sort_keys=True).encode())


def write_report(
    result: ReportPage | Comparison | Sequence[Report],
    folder: Path | str,
    *,
    benchmark: Benchmark | None = None,
) -> Path:
    """Write ``report.html``, ``report.md``, ``report.json`` and ``questions.csv``, each atomically; returns the first.

    A path that ends in ``.html``, ``.md`` or ``.json`` is written as that one file, and returned.

    Args:
        result: a comparison, reports to compare, or a page with everything to show.
        folder: created if missing; or one file.
        benchmark: shows its questions, documents and chunks on the page.

    Raises:
        MissingExtraError: jinja2 is not installed.
        DataError: no report, or reports that cannot be compared; see `compare`.
        OptionError: a file of the folder that is in no report would be replaced.
        OSError: the folder cannot be written to.

    >>> import numpy as np, tempfile
    >>> from chunkcore.evaluation.measures import get_measure
    >>> reports = [Report(name, "toy", ("q",), ("",), {get_measure("Recall@5"): np.ones(1)}) for name in ("a", "b")]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_report(reports, folder).name
    'report.html'
    """
    if not isinstance(result, ReportPage | Comparison):
        result = compare(result)
    page = result if isinstance(result, ReportPage) else ReportPage(result, benchmark)
    place = Path(folder)
    single = f"report{place.suffix}"
    if single in _FILES and not place.is_dir():
        return write_text(place, _FILES[single](page))
    check_replaced(place)
    write_files({place / name: [render(page).encode()] for name, render in _FILES.items()})
    return place / "report.html"


def check_replaced(folder: Path) -> None:
    """Check that a report would replace nothing but a report, and no link."""
    check_no_link(*[folder / name for name in REPORT_NAMES])
    there = {name for name in REPORT_NAMES if (folder / name).exists()}
    ours = set(written_names(there))
    with suppress(OSError), open_file(folder / "report.json") as file:
        if FORMAT[:-1].encode() in file.read(40):  # kept alone, as a baseline
            ours = there
    for name in there - ours:
        raise OptionError(
            f"{folder / name} would be replaced, and is in no report that chunkcore wrote: name another folder"
        )


# Excel reads a CSV file as UTF-8 only if it begins with a byte order mark.
_FILES: dict[str, Callable[[ReportPage], str]] = {
    "report.md": markdown_report,
    "report.json": json_report,
    "questions.csv": lambda page: f"\ufeff{question_csv(page)}",
    "report.html": html_report,
}


# ---- the terminal

_NAME = 30  # columns for a name
_WIDE = 96  # columns of a terminal that has room for more than scores


def print_report(page: ReportPage, console: Console) -> None:
    """Print what to do, the next command, the code to paste, the scores at the verdict's k, warnings and verdict."""
    from rich.table import Table as RichTable
    from rich.text import Text

    measure, advice = page.comparison.measure, Advice.of(page)
    block = RichTable.grid(padding=(0, 2))
    style = "bold"
    for label, text in advice.lines:
        block.add_row(Text(label, style="bold"), Text(terminal_text(text), style=style))
        style = ""
    console.print(block)
    blocks = [("", advice.command), *advice.pasted.items()]
    for title, text in blocks[:2]:
        if text:  # the page has the other blocks
            heading = f"\n{title}:\n" if title else ""
            console.print(Text(heading))
            code = indent(terminal_block(text), "    ")
            console.print(Text(code), soft_wrap=True)
    console.print()
    scores = score_table(page, page.chosen_k, measure.unit)
    console.print(_terminal_table(scores, console.width))
    note = f"% of {measure.unit}s; 95 % interval of the mean by {measure}"
    console.print(Text(note), style="dim")
    for warning in warnings(page):
        console.print(Text(f"! {terminal_text(warning)}"), style="yellow")
    console.print(Text(f"\n{terminal_text(page.comparison.verdict)}"), style="dim")


def _terminal_table(table: Table, width: int) -> RichTable:
    """The columns that a choice is made by; in a narrow terminal names and scores. Long names are folded."""
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    shown = RichTable(
        title=Text(table.title), box=box.SIMPLE_HEAD, title_justify="left", pad_edge=False
    )
    columns = [column for column in table.columns if column.short]
    if width < _WIDE:
        columns = [column for column in columns if column.kind == "text" or column.meaning]
    least = min(_NAME, 3 + max(len(row[0].text) for row in table.rows))  # a number and a whole name
    for column in columns:
        if column.kind == "number":
            shown.add_column(column.short, justify="right", no_wrap=True)
        else:
            shown.add_column(column.short, overflow="fold", max_width=_NAME, min_width=least)
            least = 0
    for row in Table(table.title, columns).rows:
        shown.add_row(*map(_text, row))
    return shown


def _text(cell: Cell) -> Text:
    from rich.text import Text

    shown = terminal_text(cell.text)
    if cell.number:
        # Long names are broken after commas.
        lines = wrap(shown.replace(",", ", "), _NAME - 3, break_on_hyphens=False)
        shown = f"{cell.number:<3}" + "\n   ".join(lines).replace(", ", ",")
    style = "bold" if cell.strong else ""
    text = Text(shown, style=style)
    for detail in cell.details:
        text.append(f"\n{terminal_text(detail)}", style="dim not bold")
    return text
