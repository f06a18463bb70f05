"""Slides of PowerPoint, by python-pptx, with what it leaves out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from io import BytesIO
from typing import TYPE_CHECKING, Any

from chunkcore.boundaries import one_line
from chunkcore.lazy import needed
from chunkcore.reading.base import listed
from chunkcore.reading.office import (
    COMPATIBLE,
    MATH,
    Members,
    Packed,
    mend_equation,
    packed,
    text_of,
    xml_of,
)
from chunkcore.reading.sheets import formatted, table
from chunkcore.reading.visible import in_font
from chunkcore.text import Mark, Span

if TYPE_CHECKING:
    from lxml.etree import _Element

_TYPES = "[Content_Types].xml"
_OTHER_KIND = re.compile(rb"\b(?:slideshow|template)(?=\.(?:main|macroEnabled))")
_A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_MATH = "{http://schemas.microsoft.com/office/drawing/2010/main}m"


class Pptx(Packed):
    """Slides as Markdown, with notes; each is a ``page`` (``number``) and a ``section``. The extra ``office``."""

    endings = ("pptx", "pptm", "ppsx", "ppsm", "potx")
    telling = b"ppt/"

    def markdown(self, members: Members, notes: list[str], marks: list[Mark]) -> str:
        pptx = needed("pptx", "office", "read PPTX", "python-pptx")
        # python-pptx opens no shows and templates, which differ in this word.
        members[_TYPES] = _OTHER_KIND.sub(b"presentation", members[_TYPES])
        slides = pptx.Presentation(BytesIO(packed(members))).slides
        text = ""
        hidden = []
        for number, slide in enumerate(slides, start=1):
            if slide.element.get("show") in ("0", "false"):
                hidden.append(number)
                continue
            piece = _slide(slide)
            if piece:
                text += "\n\n" if text else ""
                span = Span(len(text), len(text) + len(piece))
                text += piece
                marks += [Mark("page", span, {"number": number}), Mark("section", span)]
        if hidden:
            notes.append(f"hidden slides are left out: {listed(hidden)}")
        return text


def _slide(slide: Any) -> str:
    _mend_slide(slide.element)
    blocks = list(_shapes(slide.shapes, slide.shapes.title))
    frame = slide.notes_slide.notes_text_frame if slide.has_notes_slide else None
    if frame and frame.text.strip():
        blocks.append(f"\n### Notes:\n{frame.text}")
    return re.sub(r"\n{3,}", "\n\n", "\n".join(blocks).replace("\v", "\n")).strip()


def _mend_slide(root: _Element) -> None:
    """Write as plain text what python-pptx leaves out: the newer of two forms, equations, raised and struck text."""
    for forms in list(root.iter(f"{COMPATIBLE}AlternateContent")):
        for child in reversed(forms[0]):
            forms.addnext(child)
    for math in list(root.iter(_MATH)):
        run = math.makeelement(f"{_A}r")
        letters = run.makeelement(f"{_A}t")
        letters.text = " ".join(
            f"${mend_equation(equation)}$" for equation in math.iter(f"{MATH}oMath")
        )
        run.append(letters)
        math.addprevious(run)
    for run in root.iter(f"{_A}r"):
        properties, text = run.find(f"{_A}rPr"), run.find(f"{_A}t")
        if properties is not None and text is not None:
            is_raised = properties.get("baseline", "-")[0] not in "-0"
            is_struck = properties.get("strike", "noStrike") != "noStrike"
            text.text = in_font(text.text or "", is_raised, is_struck)


def _shapes(shapes: Iterable[Any], title: Any) -> Iterator[str]:
    """What the shapes show but the slide's number, from top to bottom; a line end stands around a block of its own."""
    unseen = "@hidden='1' or @hidden='true'"
    number = "./*[1]/p:nvPr/p:ph[@type='sldNum']"
    for shape in sorted(shapes, key=_top_left):
        if shape.element.xpath(f"./*[1]/p:cNvPr[{unseen}] | {number}"):
            continue
        if hasattr(shape, "shapes"):
            yield from _shapes(shape.shapes, title)
        elif shape.has_chart:
            yield f"\n{_chart(xml_of(shape.chart_part.blob))}\n"
        elif shape.has_table:
            rows = ([cell.text for cell in row.cells] for row in shape.table.rows)
            yield f"\n{table(rows)}\n"
        elif shape.has_text_frame:
            text = shape.text_frame.text
            is_title = shape == title and text.strip()
            yield f"# {one_line(text)}" if is_title else text
        else:
            for label in shape.element.xpath("./p:nvPicPr/p:cNvPr/@descr"):
                shown = one_line(re.sub(r"[][]", " ", label))
                picture = re.sub(r"\W", "", shape.name)
                yield f"\n![{shown}]({picture}.jpg)\n"


def _top_left(shape: Any) -> tuple[int, int]:
    outside = -(2**63)  # as are those without a place
    top = outside if shape.top is None else shape.top
    return top, outside if shape.left is None else shape.left


_CHART = "{http://schemas.openxmlformats.org/drawingml/2006/chart}"


def _chart(root: _Element) -> str:
    """A chart as a heading with its title and those of its axes, and the table of its data."""
    titles = ("### Chart", *map(text_of, root.iter(f"{_CHART}title")))
    heading = ": ".join(filter(None, titles))
    names = ["Category"]
    rows: dict[tuple[int, str], dict[int, str]] = {}  # by place and category; values by column
    for column, series in enumerate(root.iter(f"{_CHART}ser"), start=1):
        names.append("".join(value.text or "" for value in series.iterfind("{*}tx//{*}v")))
        categories = _points(series, "cat", "xVal")
        for place, value in _points(series, "val", "yVal").items():
            rows.setdefault((place, categories.get(place, "")), {})[column] = value
    lines = [names]
    for place, category in sorted(rows):
        values = rows[place, category]
        lines.append([category, *(values.get(column, "") for column in range(1, len(names)))])
    return f"{heading}\n\n{table(lines)}".strip()


def _points(series: _Element, *names: str) -> dict[int, str]:
    """The points of a series that stand in one of these elements, by their places, each after its groups."""
    points: dict[int, str] = {}
    for name in names:
        for level in dict.fromkeys(series.iterfind(f"{_CHART}{name}//{_CHART}pt/..")):
            form = level.findtext(f"{_CHART}formatCode")
            values = {
                int(point.get("idx", "0")): _shown(point.findtext(f"{_CHART}v") or "", form)
                for point in level.iterfind(f"{_CHART}pt")
            }
            group = ""  # goes on where none begins
            for place in sorted(points):
                group = values.get(place, group)
                values[place] = f"{group} {points[place]}"
            points = values
    return points


def _shown(value: str, number_format: str | None) -> str:
    """A point as its format, which texts have not, shows it."""
    if number_format is None:
        return value
    is_date_format = needed("openpyxl.styles.numbers", "office", "read PPTX").is_date_format
    from_excel = needed("openpyxl.utils.datetime", "office", "read PPTX").from_excel
    with suppress(ValueError, OverflowError):
        number: Any = float(value)
        if is_date_format(number_format):
            number = from_excel(number)
        return formatted(number, number_format)
    return value
