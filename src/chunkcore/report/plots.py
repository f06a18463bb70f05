"""The report's plots as SVG text.

matplotlib is large and draws text as outlines, which search and screen readers miss; vega, plotly and bokeh add
megabytes of script to a page. Colours and fonts come from the page's stylesheet by class; numbers on the marks serve
readers without colour. Widths are pixels.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import NamedTuple

import numpy as np

from chunkcore.escaping import page_text
from chunkcore.evaluation.curve import CurvePoint
from chunkcore.evaluation.resampling import pareto_front

COLOURS = 8  # systems that have a colour; the others have their number alone
_LETTER = 7.2  # pixels of a letter of a name
_LINE = 16  # pixels from a line of a name to the next
_WIDE_NAME, _NARROW_NAME = 46, 39  # letters of a line of a name
_RADIUS = 9.0  # of the numbered disc


@dataclass(frozen=True, slots=True)
class Point:
    """A system in the plane: number, name, position and vertical interval."""

    number: int
    name: str
    x: float
    y: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Row:
    """A mean or a difference and its interval, with the system's number and name."""

    number: int
    name: str
    mean: float
    low: float
    high: float
    distinct: bool


@dataclass(frozen=True, slots=True)
class Scale:
    """Values from `low` to `high` as pixels from `first` to `last`."""

    low: float
    high: float
    first: float
    last: float

    def __call__(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low or 1.0)
        return self.first + share * (self.last - self.first)


def ticks(low: float, high: float, count: int = 5) -> list[float]:
    """About `count` round numbers (1, 2 or 5 times a power of ten) that enclose the range.

    >>> ticks(3, 96), ticks(61.2, 78.9)
    ([0.0, 20.0, 40.0, 60.0, 80.0, 100.0], [60.0, 65.0, 70.0, 75.0, 80.0])
    """
    if not high > low:
        low, high = low - 0.5, high + 0.5
    rough = (high - low) / count
    power = 10.0 ** math.floor(math.log10(rough))
    steps = [power * factor for factor in (1, 2, 5, 10)]
    step = min(steps, key=lambda step: abs(math.log(step / rough)))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(index * step, 10) for index in range(first, last + 1)]


def number(value: float) -> str:
    """A tick's label: grouped thousands, no trailing zeros, a true minus."""
    text = f"{value:,.10g}"
    if float(value).is_integer():
        text = f"{value:,.0f}"
    return text.replace("-", "\u2212")


def scatter(
    points: Sequence[Point],
    *,
    width: int,
    x_label: str,
    y_label: str,
    title: str,
    x_unit: str = "tokens",
) -> str:
    """`y` (percent) against `x`: a numbered disc a point, with its vertical interval.

    A line joins the Pareto front (more `y`, less `x`). Points of one `x` stand beside each other.
    """
    shown = [point for point in points if math.isfinite(point.x) and math.isfinite(point.y)]
    if not shown:
        return ""
    height = min(440, max(320, round(width * 0.58)))
    ends = [end for point in shown for end in (point.low, point.y, point.high)]
    low, high = np.nanmin(ends), np.nanmax(ends)
    # No room above 100 % or below 0, unless a measure goes there.
    y_ticks = [tick for tick in ticks(low - 1, high + 1) if min(low, 0) <= tick <= max(high, 100)]
    x_ticks = ticks(0, max(point.x for point in shown) * 1.04, 6 if width > 500 else 4)
    x = Scale(x_ticks[0], x_ticks[-1], 46, width - 16)
    y = Scale(y_ticks[0], y_ticks[-1], height - 44, 26)
    places = _apart([x(point.x) for point in shown], 2 * _RADIUS + 1, x.first, x.last)
    front = pareto_front([(point.x, point.y) for point in shown])
    joined = dict.fromkeys(f"{places[index]:.1f},{y(shown[index].y):.1f}" for index in front)
    parts = [*_axes(x, y, x_ticks, y_ticks), svg_text(4, 13, y_label, "label")]
    parts.append(svg_text(x.last, y.first + 38, x_label, "label", anchor="end"))
    parts.append(f'<polyline class="frontier" points="{" ".join(joined)}"/>')
    for point, at in zip(shown, places, strict=True):
        parts.append(_mark(point, at, y, x_unit))
    return figure(width, height, title, parts)


@dataclass(frozen=True, slots=True)
class Line:
    """A system's rising curve: number, name, and points with their bands, in percent."""

    number: int
    name: str
    points: Sequence[CurvePoint]


def curves(
    lines: Sequence[Line], *, width: int, x_label: str, y_label: str, marked: Sequence[float]
) -> str:
    """`y` (percent) against tokens, which double from tick to tick: a line, a band and a disc a system.

    The disc, and in a wide drawing the name, stand at the line's end. Lines across are at the `marked` heights. Of more
    systems than there are colours the first are drawn.
    """
    shown = lines[:COLOURS]
    if not shown:
        return ""
    narrow = width < 500
    height, margin, step = 440, 300, 1
    if narrow:
        height, margin, step = 320, 34, 2
    right = width - margin
    points = [point for line in shown for point in line.points]
    budgets = sorted({point.tokens for point in points})
    least, most = budgets[0], max(budgets[-1], 2 * budgets[0])
    across = Scale(math.log(least), math.log(most), 46, right)
    low = min(point.low for point in points)
    y_ticks = [tick for tick in ticks(low, 100) if tick <= 100]
    y = Scale(y_ticks[0], y_ticks[-1], height - 44, 26)
    parts = _axes(Scale(0, 1, 46, right), y, [], y_ticks)
    for tokens in budgets[::step]:
        place = across(math.log(tokens))
        parts.append(svg_line(place, y.first, place, y.first + 5, "axis"))
        parts.append(svg_text(place, y.first + 19, number(tokens), "tick", anchor="middle"))
    parts += [svg_line(46, y(height_), right, y(height_), "zero") for height_ in marked]
    parts.append(svg_text(4, 13, y_label, "label"))
    parts.append(svg_text(right, y.first + 38, x_label, "label", anchor="end"))
    ends = _apart([y(line.points[-1].share) for line in shown], 2 * _RADIUS + 1, y.last, y.first)
    drawn = [_curve(line, across, y) for line in shown]
    parts += [band for band, _ in drawn] + [line for _, line in drawn]
    for line, end in zip(shown, ends, strict=True):
        parts.append(_disc(line.number, right + 16, end))
        if not narrow:
            parts.append(svg_text(right + 31, end + 4.5, shorten(line.name, 36), "name"))
    return figure(width, height, f"{y_label} against {x_label}, a line a system", parts)


def _curve(line: Line, across: Scale, y: Scale) -> tuple[str, str]:
    """A line's band, and the line with a mark at each point."""
    tone = _tone(line.number)
    upper, middle, lower, marks = [], [], [], ""
    for point in line.points:
        x = across(math.log(point.tokens))
        upper.append(f"{x:.1f},{y(point.high):.1f}")
        middle.append(f"{x:.1f},{y(point.share):.1f}")
        lower.append(f"{x:.1f},{y(point.low):.1f}")
        tip = f"{line.number} {line.name}: {point.share:.1f} % in {point.tokens:,.0f} tokens"
        tip += f" (interval {point.low:.1f} to {point.high:.1f})"
        mark = f'<circle class="{tone}" cx="{x:.1f}" cy="{y(point.share):.1f}" r="3"/>'
        marks += f"<g><title>{_safe(tip)}</title>{mark}</g>"
    band = f'<polygon class="band {tone}" points="{" ".join([*upper, *reversed(lower)])}"/>'
    return band, f'<polyline class="curve {tone}" points="{" ".join(middle)}"/>{marks}'


def _apart(places: Sequence[float], gap: float, first: float, last: float) -> list[float]:
    """Places at least a gap apart, each as near to its own as that allows, from `first` to `last`."""
    order = sorted(range(len(places)), key=lambda index: places[index])
    moved = list(places)
    above = first - gap
    for index in order:
        moved[index] = max(places[index], above + gap)
        above = moved[index]
    below = last + gap
    for index in reversed(order):
        moved[index] = min(moved[index], below - gap)
        below = moved[index]
    return moved


def _axes(x: Scale, y: Scale, x_ticks: Sequence[float], y_ticks: Sequence[float]) -> list[str]:
    parts = []
    for tick in y_ticks:
        parts.append(svg_line(x.first, y(tick), x.last, y(tick), "grid"))
        parts.append(svg_text(x.first - 7, y(tick) + 4, number(tick), "tick", anchor="end"))
    for tick in x_ticks:
        parts.append(svg_line(x(tick), y.first, x(tick), y.first + 5, "axis"))
        parts.append(svg_text(x(tick), y.first + 19, number(tick), "tick", anchor="middle"))
    parts.append(svg_line(x.first, y.first, x.last, y.first, "axis"))
    return parts


def _mark(point: Point, at: float, y: Scale, x_unit: str) -> str:
    amount = f"{point.x:.3g}"
    if point.x >= 100 or point.x == 0:
        amount = f"{point.x:,.0f}"
    tip = f"{point.number} {point.name}: {point.y:.1f} % at {amount} {x_unit}"
    tone, whisker = _tone(point.number), ""
    if math.isfinite(point.low) and math.isfinite(point.high):
        tip += f" (interval {point.low:.1f} to {point.high:.1f})"
        low, high = y(point.low), y(point.high)
        whisker = svg_line(at, low, at, high, f"whisker {tone}")
        for end in (low, high):
            whisker += svg_line(at - 4, end, at + 4, end, f"whisker {tone}")
    return f"<g><title>{_safe(tip)}</title>{whisker}{_disc(point.number, at, y(point.y))}</g>"


def _disc(number: int, x: float, y: float) -> str:
    """A system's disc with its number."""
    tone = _tone(number)
    circle = f'<circle class="dot {tone}" cx="{x:.1f}" cy="{y:.1f}" r="{_RADIUS:g}"/>'
    return circle + svg_text(x, y + 4.5, str(number), f"digit {tone}", anchor="middle")


def intervals(
    rows: Sequence[Row],
    *,
    width: int,
    x_label: str,
    title: str,
    differences: bool = False,
    notes: Sequence[str] = (),
) -> str:
    """One line per system: mean and interval in percent, a filled mark if `distinct`.

    `differences` are in points, with a line at zero; `notes` stand at the ends of the lines, if the width allows.
    """
    if not rows:
        return ""
    narrow = width < 500
    limit = _NARROW_NAME if narrow else _WIDE_NAME
    names = [[shorten(line, limit) for line in name_lines(row.name, limit)] for row in rows]
    left, right = 16, width - 16
    if not narrow:
        longest = max(len(line) for lines in names for line in lines)
        left = max(220, 46 + round(_LETTER * longest))
        right = width - (130 if notes else 16)
    x, x_ticks = _value_scale(rows, left, right, differences=differences)
    bottom = _TOP
    drawn = []
    for place, (row, lines) in enumerate(zip(rows, names, strict=True)):
        above, more = bottom, _LINE * (len(lines) - 1)
        bottom += (46 if narrow else 30) + more
        middle = (above + bottom) / 2
        first = middle - more / 2
        if narrow:  # the name stands over its interval
            first, middle = above + 15, bottom - 13
        drawn.append(_named(row, lines, first))
        drawn.append(_bar(row, x, middle, differences=differences))
        if notes and not narrow:
            drawn.append(svg_text(width - 4, middle + 4, notes[place], "label", anchor="end"))
    label = svg_text(right, bottom + 36, x_label, "label", anchor="end")
    zero = 0.0 if differences else math.nan
    parts = [*_verticals(x, x_ticks, bottom, zero), label, *drawn]
    return figure(width, round(bottom) + 44, title, parts)


def _value_scale(
    rows: Sequence[Row], left: float, right: float, *, differences: bool
) -> tuple[Scale, list[float]]:
    """The scale of the rows' values, and its ticks: fewer in a narrow drawing."""
    ends = [end for row in rows for end in (row.low, row.high, row.mean)]
    if differences:
        ends.append(0.0)
    x_ticks = ticks(np.nanmin(ends), np.nanmax(ends), 8 if left > 100 else 5)
    return Scale(x_ticks[0], x_ticks[-1], left, right), x_ticks


_TOP = 8  # pixels over the first row


def _verticals(x: Scale, x_ticks: Sequence[float], bottom: float, zero: float) -> list[str]:
    """A line a tick, down to its number."""
    parts = []
    for tick in x_ticks:
        kind = "zero" if tick == zero else "grid"
        parts.append(svg_line(x(tick), _TOP, x(tick), bottom, kind))
        parts.append(svg_text(x(tick), bottom + 17, number(tick), "tick", anchor="middle"))
    return parts


def name_lines(name: str, length: int) -> list[str]:
    """A system's name in lines of `length` letters where it can be broken: before its retriever, after commas.

    >>> name_lines("cluster_semantic:size=200,piece_size=50 · passages", 40)
    ['cluster_semantic:size=200,piece_size=50', '· passages']
    """
    lines = [""]
    for part in re.split(r"(?<=,)| (?=· )", name):
        gap = " " if part.startswith("·") else ""
        if lines[-1] and len(lines[-1] + gap + part) > length:
            lines.append(part)
        else:
            lines[-1] += gap + part
    return lines


def _named(row: Row, lines: Sequence[str], first: float) -> str:
    """A row's disc, and its name from the height `first` on."""
    half = _RADIUS + 3 * (len(str(row.number)) - 1)  # wider for two digits
    tone = _tone(row.number)
    parts = [
        f'<rect class="disc {tone}" x="{12 - half:.1f}" y="{first - _RADIUS:.1f}" width="{2 * half:g}" '
        f'height="{2 * _RADIUS:g}" rx="{_RADIUS:g}"/>',
        svg_text(12, first + 4.5, str(row.number), f"digit {tone}", anchor="middle"),
    ]
    for place, line in enumerate(lines):
        parts.append(svg_text(28, first + 4 + _LINE * place, line, "name"))
    return "".join(parts)


def _bar(row: Row, x: Scale, middle: float, *, differences: bool) -> str:
    """A row's interval and mean at the height `middle`."""
    values = (row.mean, row.low, row.high)
    if differences:
        unit = " points"
        mean, low, high = map(signed, values)
    else:
        unit = " %"
        mean, low, high = map("{:.1f}".format, values)
    tip = f"{row.name}: {mean}{unit}"
    state = "distinct" if row.distinct else "tied"
    kind = f"{_tone(row.number)} {state}"
    whisker = ""
    if math.isfinite(row.low):
        tip += f" (interval {low} to {high})"
        whisker = svg_line(x(row.low), middle, x(row.high), middle, f"whisker {kind}")
    left = x(row.mean) - 5
    square = f'<rect class="estimate {kind}" x="{left:.1f}" y="{middle - 5:.1f}" width="10" height="10"/>'
    return f"<g><title>{_safe(tip)}</title>{whisker}{square}</g>"


def histogram(
    values: Sequence[int], *, limit: float, width: int = 250, height: int = 92, title: str
) -> str:
    """Counts of the values in 40 bins from 0 to `limit`, with a line at the median."""
    counts, edges = np.histogram(values, bins=40, range=(0, limit))
    x = Scale(0, limit, 6, width - 6)
    y = Scale(0, float(counts.max(initial=1)), height - 20, 6)
    bars = ""
    for place in np.flatnonzero(counts).tolist():
        left, right = x(edges[place]), x(edges[place + 1]) - 0.6
        bars += f"M{left:.1f} {y.first:.1f}V{y(counts[place]):.1f}H{right:.1f}V{y.first:.1f}Z"
    axis = svg_line(x.first, y.first, x.last, y.first, "axis")
    parts = [f'<path class="bars" d="{bars}"/>', axis]
    if len(values):
        middle = x(float(np.median(values)))
        parts.append(svg_line(middle, y.first + 3, middle, y.last - 3, "median"))
    for tick, anchor in ((0.0, "start"), (limit / 2, "middle"), (limit, "end")):
        parts.append(svg_text(x(tick), height - 5, number(tick), "tick", anchor=anchor))
    return figure(width, height, title, parts)


class Stretch(NamedTuple):
    """A part of a text: its start and end, how strong it is drawn, 0 to 1, and what it says."""

    start: int
    end: int
    strength: float
    tip: str


def stretches(rows: Mapping[str, Sequence[Stretch]], *, width: int, title: str) -> str:
    """A line a document with its stretches, by characters; the axis ends where the last one does."""
    edges = ticks(0, max((part.end for parts in rows.values() for part in parts), default=1))
    step, height = 26, 26 * len(rows) + 50
    x, y = Scale(0, edges[-1], 240, width - 40), Scale(0, 1, height - 46, 4)
    drawn = _axes(x, y, edges, [])
    drawn.append(svg_text(x.last, y.first + 38, "characters", "label", anchor="end"))
    for row, (name, parts) in enumerate(rows.items()):
        middle = step * (row + 0.5) + 4
        drawn.append(svg_text(4, middle + 4, shorten(name, 30), "name"))
        drawn.append(svg_line(x.first, middle, x.last, middle, "grid"))
        for part in parts:
            left = x(part.start)
            length = max(2.0, x(part.end) - left)
            place = f'x="{left:.1f}" y="{middle - 8:.1f}" height="16" width="{length:.1f}"'
            style = f"opacity:{0.25 + 0.7 * part.strength:.2f}"
            tip = f"<title>{_safe(shorten(part.tip, 300))}</title>"
            drawn.append(f'<rect class="bars" {place} style="{style}">{tip}</rect>')
    return figure(width, height, title, drawn)


def signed(value: float) -> str:
    """A difference in points, always with its sign.

    >>> signed(1.26), signed(-0.04)
    ('+1.3', '0.0')
    """
    text = f"{value:+.1f}".replace("-", "\u2212")
    return "0.0" if text in ("+0.0", "\u22120.0") else text


def shorten(text: str, length: int) -> str:
    """`text` without its middle if longer than `length`: systems' names differ at their ends.

    >>> shorten("recursive:size=400,overlap=200", 20)
    'recursive:…erlap=200'
    """
    if len(text) <= length:
        return text
    return f"{text[: length // 2]}…{text[-((length - 1) // 2) :]}"


def _tone(index: int) -> str:
    """The class of a system's colour; no two systems have one colour."""
    return f"s{index}" if index <= COLOURS else "s0"


def svg_line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    """A line; `kind` is its class in the stylesheet."""
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def svg_text(x: float, y: float, text: str, kind: str, *, anchor: str = "start") -> str:
    """A text, escaped."""
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f'<text class="{kind}" {place}>{_safe(text)}</text>'


def _safe(text: str) -> str:
    return escape(page_text(text))


def figure(width: int, height: int, title: str, parts: Sequence[str]) -> str:
    """The whole drawing; the title is for screen readers."""
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" role="img" {size} aria-label="{_safe(title)}">'
    return f"{head}{''.join(parts)}</svg>"
