"""Reports in a terminal."""

from __future__ import annotations

import re
from textwrap import indent
from typing import Any

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from chunkcore.escaping import terminal_text
from chunkcore.report.advice import Advice
from chunkcore.report.page import ReportPage
from chunkcore.report.tables import Cell, Column, Table, score_table, warnings

_NAME = 27  # columns for a strategy's name


def print_report(page: ReportPage, console: Console) -> None:
    """Print what to do, the scores at the verdict's k, the warnings and the verdict."""
    measure = page.comparison.measure
    print_advice(Advice.of(page), console)
    table = score_table(page, page.chosen_k, measure.unit)
    console.print(_laid_out(table, _fitting(table, console.width), fold=False))
    console.print(
        Text(f"% of {measure.unit}s; {page.level} interval of the mean by {measure}"),
        style="dim",
    )
    for warning in warnings(page):
        console.print(Text(f"! {terminal_text(warning)}"), style="yellow")
    console.print()
    verdict = page.tuning.verdict if page.tuning else page.comparison.verdict
    console.print(Text(terminal_text(verdict)), style="dim")


def print_advice(advice: Advice, console: Console) -> None:
    """Print the lines, the next command, and the code to paste."""
    block = RichTable.grid(padding=(0, 2))
    for number, (label, text) in enumerate(advice.lines):
        block.add_row(Text(label, style="bold"), Text(terminal_text(text), style="" if number else "bold"))
    console.print(block)
    first = dict(list(advice.pasted.items())[:1])  # the page has the others
    for title, text in {"": advice.command, **first}.items():
        if text:
            console.print(Text(f"\n{title}:\n" if title else ""))
            # White space stays, what could steer a terminal does not.
            code = "".join(each if each.isprintable() or each == "\n" else ascii(each)[1:-1] for each in text)
            console.print(Text(indent(code, "    ")), soft_wrap=True)
    console.print()


def _fitting(table: Table[Any], width: int) -> list[Column[Any]]:
    """The columns that fit; the highest priority is dropped first."""

    def width_of(column: Column[Any]) -> int:
        cells = [column.cell(row) for row in table.items]
        lines = [*column.short.split("\n"), *(line for cell in cells for line in (cell.text, *cell.details))]
        return max(map(len, lines))

    kept = [column for column in table.columns if column.short]
    lines = [line for row in table.items for line in _named(kept[0].cell(row)).plain.split("\n")]
    names = max([_NAME, *map(cell_len, lines)])
    for column in sorted(kept, key=lambda column: -column.priority):
        if names + 4 + sum(width_of(each) + 2 for each in kept[1:]) <= width or not column.priority:
            break
        kept.remove(column)
    return kept


def _laid_out(table: Table[Any], columns: list[Column[Any]], width: int = _NAME, *, fold: bool = True) -> RichTable:
    """The table with some of its columns; the first has names in lines of at most this width."""
    made = RichTable(title=Text(table.title), box=box.SIMPLE_HEAD, title_justify="left", pad_edge=False)
    for column in columns:
        right = column.kind == "number"
        made.add_column(
            Text(column.short or column.title),
            justify="right" if right else "left",
            no_wrap=right or not fold,
            overflow="fold" if fold else "ellipsis",
        )
    for row in table.items:
        first, *others = (column.cell(row) for column in columns)
        made.add_row(_named(first, width), *map(_text, others))
    return made


def _text(cell: Cell) -> Text:
    made = Text(terminal_text(cell.text), style="bold" if cell.strong else "")
    for detail in cell.details:
        made.append(f"\n{terminal_text(detail)}", style="dim not bold")
    return made


def _named(cell: Cell, width: int = _NAME) -> Text:
    """A name on lines below each other, after its number."""
    number = f"{cell.number:<3}" if cell.number else ""
    lines = f"\n{' ' * len(number)}".join(_wrapped(terminal_text(cell.text), width - len(number)))
    return Text(number + lines, style="bold" if cell.strong else "")


def _wrapped(name: str, width: int) -> list[str]:
    """A strategy's name in lines of at most `width`, broken after a colon or a comma if possible.

    >>> _wrapped("cluster_semantic:size=400,overlap=0", 17)
    ['cluster_semantic:', 'size=400,', 'overlap=0']
    """
    lines = [""]
    for part in re.split(r"(?<=[:,])", name):
        if len(lines[-1]) + len(part) > width and lines[-1]:
            lines.append("")
        lines[-1] += part
    return [line[at : at + width] for line in lines for at in range(0, max(len(line), 1), width)]
