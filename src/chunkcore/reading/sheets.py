"""Workbooks of Excel as tables, by openpyxl."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, time, timedelta
from io import BytesIO
from itertools import groupby, repeat
from typing import Any

from chunkcore.boundaries import one_line
from chunkcore.lazy import needed
from chunkcore.reading import base
from chunkcore.reading.base import listed
from chunkcore.reading.office import Members, Packed, packed, xml_of
from chunkcore.reading.visible import in_cell, in_font
from chunkcore.text import Mark


class Xlsx(Packed):
    """A workbook as Markdown: each sheet a heading and the tables of its values. The extra ``office``.

    Hidden sheets, comments, titles of charts and text boxes are told in notes.
    """

    endings = ("xlsx", "xlsm")
    telling = b"xl/"

    def markdown(self, members: Members, notes: list[str], marks: list[Mark]) -> str:
        openpyxl = needed("openpyxl", "office", "read XLSX")
        texts = ("xl/worksheets/", "xl/sharedStrings")
        for name, content in members.items():
            if name.startswith(texts) and b"<rPr" in content:
                members[name] = _with_fonts(content)
        data = packed(members)
        book = openpyxl.load_workbook(BytesIO(data), read_only=True, data_only=True)
        formulas = None
        if any(b"<f" in content for content in members.values()):
            formulas = openpyxl.load_workbook(BytesIO(data), read_only=True)
        text = ""
        shown: list[str] = []  # the cells that show a formula
        hidden = []
        for sheet in book.worksheets:
            if sheet.sheet_state != "visible":
                hidden.append(sheet.title)
                continue
            base.on_reached(f"sheet {sheet.title[:50]!r}")
            tables = _sheet(_sheet_rows(sheet, formulas and formulas[sheet.title], shown))
            if tables:
                text += f"\n\n## {one_line(sheet.title)}\n\n{tables}"
        if hidden:
            notes.append(f"hidden sheets are left out: {listed(hidden)}")
        if shown:
            advice = "the formula is shown; open it and save it"
            notes.append(f"no program has computed {listed(shown)}: {advice}")
        return text.removeprefix("\n\n")


def _with_fonts(content: bytes) -> bytes:
    """A member with raised and struck parts of texts as `in_font`; openpyxl tells them of shared texts only."""
    etree = needed("lxml.etree", "office", "read XLSX")
    root = xml_of(content)
    for run in root.iter("{*}r"):
        text = run.find("{*}t")
        if text is not None:
            is_raised = run.find("{*}rPr/{*}vertAlign[@val='superscript']") is not None
            strike = run.find("{*}rPr/{*}strike")
            is_struck = strike is not None and strike.get("val", "1") in ("1", "true")
            text.text = in_font(text.text or "", is_raised, is_struck)
    written: bytes = etree.tostring(root)
    return written


def _sheet_rows(sheet: Any, formulas: Any, shown: list[str]) -> Iterator[list[str]]:
    """A sheet's rows; where a value is missing, its formula, whose cell is added to `shown`."""
    others: Iterable[Sequence[object]] = repeat(())
    sheet.reset_dimensions()  # what the file says of them may be false
    if formulas is not None:
        formulas.reset_dimensions()
        others = formulas.iter_rows(values_only=True)
    for row, written in zip(sheet.iter_rows(), others, strict=False):
        cells = list(map(_cell, row))
        for column, (cell, formula) in enumerate(zip(row, written, strict=False)):
            formula = str(getattr(formula, "text", formula))
            # One that is computed to be empty is a text ("str").
            if cell.value is None and cell.data_type != "str" and formula.startswith("="):
                cells[column] = formula
                shown.append(f"{sheet.title}!{cell.coordinate}")
        yield cells


def _cell(cell: Any) -> str:
    if cell.value is None:
        return ""
    text = formatted(cell.value, cell.number_format)
    is_struck = cell.font.strike and "~~" not in text  # its parts may be struck, too
    return in_font(text, cell.font.vertAlign == "superscript", is_struck)


def _sheet(rows: Iterable[list[str]]) -> str:
    """The tables of a sheet, and the titles over them, the first a heading.

    Below an empty row, a row of two or more texts without digits over one with digits begins a table.
    """
    sheet = list(rows)
    left = min((min(_filled(row)) for row in sheet if _filled(row)), default=0)
    sheet = [row[left:] for row in sheet]
    if all(len(_filled(row)) < 2 for row in sheet):
        return table(sheet)
    parts = []
    current: list[list[str]] = []
    for is_filled, group in groupby(sheet, lambda row: bool(_filled(row))):
        if not is_filled:
            continue
        block = list(group)
        columns = list(map(_filled, block))
        left = min(columns)[0]
        wider = (number for number, filled in enumerate(columns) if filled != [left])
        titles = next(wider, len(block))
        # A row of names, over one that is none.
        head = [
            len(_filled(row)) > 1 and not re.search(r"\d", " ".join(row))
            for row in block[titles : titles + 2]
        ]
        if not current or head == [True, False]:
            parts.append(table(current))
            lines = "\n".join(one_line(row[left]) for row in block[:titles])
            parts.append(lines and f"### {lines}")
            current = []
            block = block[titles:]
        current += block
    return "\n\n".join(filter(None, [*parts, table(current)]))


def _filled(row: Sequence[str]) -> list[int]:
    return [column for column, cell in enumerate(row) if cell.strip()]


# What a format shows as it stands; [$€-407] has a locale, too.
_LITERAL = re.compile(r'"([^"]*)"|\\(.)|\[\$([^\]-]*)[^\]]*\]|([ €$£¥])')
_UNSEEN = re.compile(r"\[[A-Za-z]\w{2,}\]|[_*].")  # colours, and the width of a sign


def formatted(value: object, number_format: str) -> str:
    """A cell as its format shows it, but with all its digits: percent, currency and unit, leading zeros, days, hours.

    >>> formatted(0.125, "0%"), formatted(7, "00000"), formatted(1234.5, '#,##0.00 "kg"')
    ('12.5%', '00007', '1234.5 kg')
    >>> formatted(datetime(2024, 3, 5), "dd.mm.yyyy"), formatted(timedelta(hours=30, minutes=5), "[h]:mm")
    ('2024-03-05', '30:05:00')
    """
    if isinstance(value, timedelta):
        minutes, seconds = divmod(round(abs(value).total_seconds()), 60)
        sign = "-" if value < timedelta() else ""
        return f"{sign}{minutes // 60}:{minutes % 60:02}:{seconds:02}"
    if isinstance(value, datetime) and value.time() == time() and "h" not in number_format.lower():
        return value.date().isoformat()
    if not isinstance(value, int | float) or isinstance(value, bool):
        return str(value)
    if isinstance(value, float):
        value = float(f"{value:.15g}")  # as many digits as Excel has
        if value.is_integer() and abs(value) < 1e15:
            value = int(value)
    if number_format == "General" or re.search(r"\[[<>=]", number_format):  # a condition
        return str(value)
    return _number(value, number_format)


def _number(value: float, number_format: str) -> str:
    sections = _UNSEEN.sub("", number_format).replace("General", "0").split(";")
    place = 2 if value == 0 else int(value < 0)  # of the part for zero, or for numbers below it
    form = sections[place] if place < len(sections) else sections[0]
    number = _LITERAL.sub(lambda literal: " " * len(literal[0]), form)  # at its places
    words = "".join(literal[1] or "" for literal in _LITERAL.finditer(form)).strip()
    digits = re.search("[0#?](?:.*[0#?])?", number)
    if digits is None and re.search(r"[^\W\d_]", words):
        return words
    if "%" in number:
        return f"{100 * value:.12g}%"
    if digits is None or number.rstrip().endswith(","):  # "0,": thousands
        return str(value)
    start, end = digits.span()
    before, after = _literals(form[:start]), _literals(form[end:])
    if form is not sections[0]:  # its sign stands before all
        before, after = before.strip("-( "), after.strip("-) ")
    sign = "-" if value < 0 else ""
    return f"{sign}{before}{_placed(abs(value), form[start:end])} {after.strip()}".strip()


def _literals(form: str) -> str:
    return "".join("".join(literal) for literal in _LITERAL.findall(form))


def _placed(value: float, form: str) -> str:
    """The digits of a whole number at their places, as in "000-0000"; of other numbers as they are."""
    digits = str(value)
    form = form.replace("\\", "")
    if not isinstance(value, int) or re.search(r"[^0#?() -]", form):
        return digits
    places = len(re.findall("[0#?]", form))
    if len(digits) < places:
        if re.search("[#?]", form):
            return digits
        digits = digits.zfill(places)
    first = 1 + len(digits) - places
    others = iter(digits[first:])
    text = digits[:first] + re.sub("[0#?]", lambda _: next(others), form[1:])
    return f"({text}" if text.count(")") > text.count("(") else text


def table(rows: Iterable[Sequence[str]]) -> str:
    r"""A Markdown table, the first row its header; no row is filled up, and rows without text are left out.

    >>> table([["Kind", "Heat"], ["black", ""]])
    '| Kind | Heat |\n| --- | --- |\n| black |'
    """
    lines = []
    for row in rows:
        cells = [in_cell(one_line(cell)) for cell in row]
        while cells and not cells[-1]:
            cells.pop()
        if cells:
            lines.append(f"| {' | '.join(cells)} |")
            if len(lines) == 1:
                lines.append(f"|{' --- |' * len(cells)}")
    return "\n".join(lines)
