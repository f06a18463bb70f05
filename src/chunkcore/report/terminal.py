"""The report in a terminal: the scores and the verdict. Needs rich, which comes with the command line."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from chunkcore.escaping import terminal_text
from chunkcore.report.study import Study
from chunkcore.report.tables import Cell, Table, score_table, warnings

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text

__all__ = ["print_study"]

# Titles as a terminal has room for them, in the table's order. The rest stands in the written report.
_TITLES = {
    "Strategy": "Strategy",
    "Recall": "Recall",
    "Precision": "Precision",
    "IoU": "IoU",
    "F1": "F1",
    "HitRate": "HitRate",
    "MRR": "MRR",
    "MAP": "MAP",
    "nDCG": "nDCG",
    "DCG × 100": "DCG × 100",
    "ChunkPrecision": "Chunk-\nPrecision",
    "PrecisionΩ": "PrecisionΩ",
    "Tokens retrieved": "Tokens per\nquestion",
    "Number": "Chunks",
    "Mean tokens": "Tokens\nper chunk",
    "Embedded": "Tokens\nembedded",
    "Per million": "Money per\nmillion",
}
# What goes first where even that is too wide, unless the verdict is about it.
_LEAST = (
    *("ChunkPrecision", "DCG × 100", "MAP", "MRR", "HitRate", "nDCG"),
    *("F1", "PrecisionΩ", "Embedded", "Mean tokens", "Number", "Precision", "IoU", "Per million"),
)
_HEADINGS = {"PrecisionOmega": "PrecisionΩ", "DCG": "DCG × 100"}
_NAME = 27  # columns for a strategy's name


def print_study(study: Study, console: Console) -> None:
    """Print the scores at the verdict's k, then warnings, then the verdict."""
    from rich.text import Text

    unit = study.comparison.measure.unit
    console.print(_fitting(score_table(study, study.chosen_k, unit), console.width, study.comparison.measure.kind))
    console.print(
        Text(
            f"% of {unit}s, mean ± standard deviation; {study.level} interval of the mean by {study.comparison.measure}"
        ),
        style="dim",
    )
    for warning in warnings(study):
        console.print(Text(f"! {terminal_text(warning)}"), style="yellow")
    console.print()
    console.print(Text(terminal_text(study.comparison.verdict)), style="bold")


def _fitting(table: Table, width: int, needed: str) -> RichTable:
    """The table with as many of its columns as fit, that of the measure `needed` among them."""
    needed = _HEADINGS.get(needed, needed)
    kept = [title for title in _TITLES if any(column.title == title for column in table.columns)]
    for title in ("", *_LEAST):
        kept = [each for each in kept if each != title or each == needed]
        indexes = [index for index, column in enumerate(table.columns) if column.title in kept]
        if _NAME + 2 + sum(_width(table, index) + 2 for index in indexes[1:]) <= width:
            break
    return _rich(table, indexes)


def _width(table: Table, index: int) -> int:
    lines = _TITLES[table.columns[index].title].split("\n")
    for row in table.rows:
        lines += [row[index].text, *row[index].details]
    return max(map(len, lines))


def _rich(table: Table, indexes: list[int]) -> RichTable:
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    made = RichTable(title=Text(table.title), box=box.SIMPLE_HEAD, title_justify="left", pad_edge=False)
    for index in indexes:
        column = table.columns[index]
        right = column.kind == "number"
        made.add_column(Text(_TITLES[column.title]), justify="right" if right else "left", no_wrap=True)
    for row in table.rows:
        made.add_row(*(_text(row[index]) for index in indexes))
    return made


def _text(cell: Cell) -> Text:
    from rich.text import Text

    if cell.number:
        lines = _wrapped(terminal_text(cell.text), _NAME - 3)
        return Text(f"{cell.number:<3}" + "\n   ".join(lines))
    made = Text(terminal_text(cell.text), style="bold" if cell.strong else "")
    for detail in cell.details:
        made.append(f"\n{terminal_text(detail)}", style="dim not bold")
    return made


def _wrapped(name: str, width: int) -> list[str]:
    """A strategy's name in lines of at most `width`, broken after a colon or a comma where that helps.

    >>> _wrapped("cluster_semantic:max_size=400,overlap=0", 20)
    ['cluster_semantic:', 'max_size=400,', 'overlap=0']
    """
    lines = [""]
    for part in re.split(r"(?<=[:,])", name):
        if len(lines[-1]) + len(part) > width and lines[-1]:
            lines.append("")
        lines[-1] += part
    return [line[at : at + width] for line in lines for at in range(0, max(len(line), 1), width)]
