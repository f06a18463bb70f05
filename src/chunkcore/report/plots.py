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
from itertools import accumulate, pairwise
from typing import NamedTuple

import numpy as np

from chunkcore.escaping import page_text
from chunkcore.evaluation.resampling import pareto_front

_LETTER = 7.2  # pixels of a letter of a name
_LINE = 16  # pixels from a line of a name to the next
_WIDE_NAME, _NARROW_NAME = 46, 39  # letters of a line of a name
_RADIUS = 9.0  # of the numbered disc
_DOT = 4.0


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
    """A difference and its interval, with the other system's number and name."""

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
    step = min(
        (power * factor for factor in (1, 2, 5, 10)), key=lambda step: abs(math.log(step / rough))
    )
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(index * step, 10) for index in range(first, last + 1)]


def number(value: float) -> str:
    """A tick's label: grouped thousands, no trailing zeros, a true minus."""
    text = f"{value:,.0f}" if float(value).is_integer() else f"{value:,.10g}"
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
    """`y` (percent) against `x`: each point with its vertical interval and a numbered disc.

    A line joins the Pareto front (more `y`, less `x`).
    """
    shown = [point for point in points if math.isfinite(point.x) and math.isfinite(point.y)]
    if not shown:
        return ""
    height = min(440, max(320, round(width * 0.58)))
    x_ticks = ticks(0, max(point.x for point in shown) * 1.04, 6 if width > 500 else 4)
    low = min(point.low if math.isfinite(point.low) else point.y for point in shown)
    high = max(point.high if math.isfinite(point.high) else point.y for point in shown)
    # No room above 100 % or below 0, unless a measure goes there.
    y_ticks = [
        tick
        for tick in ticks(low - 1, high + 1)
        if (tick >= 0 or low < 0) and (tick <= 100 or high > 100)
    ]
    x = Scale(x_ticks[0], x_ticks[-1], 46, width - 16)
    y = Scale(y_ticks[0], y_ticks[-1], height - 44, 26)
    front = pareto_front([(point.x, point.y) for point in shown])
    joined = dict.fromkeys(f"{x(shown[index].x):.1f},{y(shown[index].y):.1f}" for index in front)
    parts = [*_axes(x, y, x_ticks, y_ticks, x_label, y_label)]
    parts.append(f'<polyline class="frontier" points="{" ".join(joined)}"/>')
    for point in shown:
        if math.isfinite(point.low) and math.isfinite(point.high):
            at, ends, kind = (
                x(point.x),
                (y(point.low), y(point.high)),
                f"whisker {_tone(point.number)}",
            )
            parts.append(svg_line(at, ends[0], at, ends[1], kind))
            parts += [svg_line(at - 4, end, at + 4, end, kind) for end in ends]
    radius = _RADIUS + 3 * (max(point.number for point in shown) > 9)
    discs = _places([(x(point.x), y(point.y)) for point in shown], width, height, radius)
    parts += [_mark(point, x, y, disc, x_unit) for point, disc in zip(shown, discs, strict=True)]
    return figure(width, height, title, parts)


def _axes(
    x: Scale,
    y: Scale,
    x_ticks: Sequence[float],
    y_ticks: Sequence[float],
    x_label: str,
    y_label: str,
) -> list[str]:
    parts = []
    for tick in y_ticks:
        parts.append(svg_line(x.first, y(tick), x.last, y(tick), "grid"))
        parts.append(svg_text(x.first - 7, y(tick) + 4, number(tick), "tick", anchor="end"))
    for tick in x_ticks:
        parts.append(svg_line(x(tick), y.first, x(tick), y.first + 5, "axis"))
        parts.append(svg_text(x(tick), y.first + 19, number(tick), "tick", anchor="middle"))
    parts.append(svg_line(x.first, y.first, x.last, y.first, "axis"))
    parts.append(svg_text(x.last, y.first + 38, x_label, "label", anchor="end"))
    parts.append(svg_text(4, 13, y_label, "label"))
    return parts


def _mark(point: Point, x: Scale, y: Scale, disc: tuple[float, float], x_unit: str) -> str:
    at = (x(point.x), y(point.y))
    amount = f"{point.x:,.0f}" if point.x >= 100 or point.x == 0 else f"{point.x:.3g}"
    tip = f"{point.number} {point.name}: {point.y:.1f} % at {amount} {x_unit}"
    if math.isfinite(point.low):
        tip += f" (interval {point.low:.1f} to {point.high:.1f})"
    return (
        f"<g><title>{_safe(tip)}</title>{svg_line(*at, *disc, 'leader')}"
        f'<circle class="dot {_tone(point.number)}" cx="{at[0]:.1f}" cy="{at[1]:.1f}" r="{_DOT:g}"/>'
        f"{_disc(point.number, *disc)}</g>"
    )


def _places(
    marks: Sequence[tuple[float, float]], width: float, height: float, radius: float = _RADIUS
) -> list[tuple[float, float]]:
    """The disc of each mark: the nearest place that touches no mark and no earlier disc."""
    placed: list[tuple[float, float]] = []
    directions = [math.radians(angle) for angle in (-25, 205, 25, 155, -60, 240, 60, 120, -90, 90)]
    for at in marks:
        tries = [
            (at[0] + reach * math.cos(angle), at[1] + reach * math.sin(angle))
            for reach in (17, 24, 32, 42, 54, 68)
            for angle in directions
        ]
        inside = [
            place
            for place in tries
            if 46 + radius < place[0] < width - radius and 24 < place[1] < height - 54
        ] or tries
        blocked = [(mark, radius + _DOT + 1) for mark in marks] + [
            (disc, 2 * radius + 1) for disc in placed
        ]
        free = (
            place
            for place in inside
            if all(math.dist(place, other) > gap for other, gap in blocked)
        )
        placed.append(next(free, inside[0]))
    return placed


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
    least, top = (46 if narrow else 30), 8
    tops = [
        top,
        *(top + end for end in accumulate(least + _LINE * (len(lines) - 1) for lines in names)),
    ]
    longest = max(len(line) for lines in names for line in lines)
    left = 16 if narrow else max(220, 46 + round(_LETTER * longest))
    right = width - (16 if narrow or not notes else 130)
    bottom = tops[-1]
    ends = [end for row in rows for end in (row.low, row.high, row.mean) if math.isfinite(end)]
    zero = [0.0] if differences else []
    x_ticks = ticks(min(ends + zero), max(ends + zero), 5 if narrow else 8)
    x = Scale(x_ticks[0], x_ticks[-1], left, right)
    parts = [
        svg_line(x(tick), top, x(tick), bottom, "zero" if differences and tick == 0 else "grid")
        for tick in x_ticks
    ]
    parts += [
        svg_text(x(tick), bottom + 17, number(tick), "tick", anchor="middle") for tick in x_ticks
    ]
    parts.append(svg_text(right, bottom + 36, x_label, "label", anchor="end"))
    for row, lines, (above, below), note in zip(
        rows, names, pairwise(tops), notes or [""] * len(rows), strict=True
    ):
        middle = below - 13 if narrow else (above + below) / 2
        first = above + 15 if narrow else middle - _LINE * (len(lines) - 1) / 2
        parts.append(_bar(row, x, lines, first, middle, differences=differences))
        if note and not narrow:
            parts.append(svg_text(width - 4, middle + 4, note, "label", anchor="end"))
    return figure(width, round(bottom) + 44, title, parts)


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


def _bar(
    row: Row, x: Scale, lines: Sequence[str], first: float, middle: float, *, differences: bool
) -> str:
    """A row's disc, its name from the height `first` on, and its interval at the height `middle`."""
    value, low, high = (
        signed(end) if differences else f"{end:.1f}" for end in (row.mean, row.low, row.high)
    )
    interval = f" (interval {low} to {high})" if math.isfinite(row.low) else ""
    tip = f"{row.name}: {value}{' points' if differences else ' %'}{interval}"
    kind = f"{_tone(row.number)} {'distinct' if row.distinct else 'tied'}"
    whisker = (
        svg_line(x(row.low), middle, x(row.high), middle, f"whisker {kind}")
        if math.isfinite(row.low)
        else ""
    )
    name = "".join(
        svg_text(28, first + 4 + _LINE * place, line, "name") for place, line in enumerate(lines)
    )
    return (
        f"<g><title>{_safe(tip)}</title>{_disc(row.number, 12, first)}{name}{whisker}"
        f'<rect class="estimate {kind}" x="{x(row.mean) - 5:.1f}" y="{middle - 5:.1f}" width="10" height="10"/></g>'
    )


def histogram(
    values: Sequence[int], *, limit: float, width: int = 250, height: int = 92, title: str
) -> str:
    """Counts of the values in 40 bins from 0 to `limit`, with a line at the median."""
    counts, edges = np.histogram(values, bins=40, range=(0, limit))
    x = Scale(0, limit, 6, width - 6)
    y = Scale(0, float(counts.max(initial=1)), height - 20, 6)
    bars = "".join(
        f"M{x(left):.1f} {y.first:.1f}V{y(count):.1f}H{x(right) - 0.6:.1f}V{y.first:.1f}Z"
        for count, left, right in zip(
            counts.tolist(), edges[:-1].tolist(), edges[1:].tolist(), strict=True
        )
        if count
    )
    parts = [
        f'<path class="bars" d="{bars}"/>',
        svg_line(x.first, y.first, x.last, y.first, "axis"),
    ]
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
    drawn = _axes(x, y, edges, [], "characters", "")
    for row, (name, parts) in enumerate(rows.items()):
        middle = step * (row + 0.5) + 4
        drawn += [
            svg_text(4, middle + 4, shorten(name, 30), "name"),
            svg_line(x.first, middle, x.last, middle, "grid"),
        ]
        drawn += [
            f'<rect class="bars" x="{x(part.start):.1f}" y="{middle - 8:.1f}" height="16" '
            f'width="{max(2.0, x(part.end) - x(part.start)):.1f}" style="opacity:{0.25 + 0.7 * part.strength:.2f}">'
            f"<title>{_safe(shorten(part.tip, 300))}</title></rect>"
            for part in parts
        ]
    return figure(width, height, title, drawn)


@dataclass(frozen=True, slots=True)
class Panel:
    """An option on the horizontal axis: its values, and by name the lines over them, in percent."""

    title: str
    labels: tuple[str, ...]
    lines: Mapping[str, Sequence[float]]


_PANEL = 250  # pixels: the least width of a panel


def panels(shown: Sequence[Panel], *, width: int, title: str) -> str:
    """Lines against each option, panels side by side; "" without panels.

    Values are evenly spaced: most grids grow by factors, and some hold words (figures 2 to 5 of Qu et al., 2024).
    """
    columns = max(1, width // _PANEL)
    size = width / columns
    limit = int((size - 36) / _LETTER)
    legends = [[name_lines(name, limit) for name in panel.lines] for panel in shown]
    plain = max(210, 90 + 19 * max(map(len, legends), default=0))  # the discs have room
    height = plain + max(
        (sum(4 + _LINE * len(lines) for lines in legend) for legend in legends), default=0
    )
    values = [
        value
        for panel in shown
        for line in panel.lines.values()
        for value in line
        if math.isfinite(value)
    ]
    scale = [
        tick
        for tick in ticks(min(values, default=0) - 1, max(values, default=0) + 1)
        if 0 <= tick <= 100
    ]
    parts = [
        f'<g transform="translate({place % columns * size:.1f} {place // columns * height})">'
        f"{_panel(panel, legends[place], size, plain, scale)}</g>"
        for place, panel in enumerate(shown)
    ]
    return figure(width, height * math.ceil(len(shown) / columns), title, parts) if shown else ""


def _panel(
    panel: Panel,
    legend: Sequence[Sequence[str]],
    size: float,
    height: float,
    scale: Sequence[float],
) -> str:
    top = 34
    x, y = (
        Scale(0, max(1, len(panel.labels) - 1), 48, size - 48),
        Scale(scale[0], scale[-1], height - 46, top),
    )
    parts = [*_axes(Scale(0, 1, 40, size - 40), y, [], scale, "", "")]
    parts.append(svg_text(4, 18, shorten(panel.title, int(size / _LETTER)), "name"))
    room = max(2, int((size - 96) / max(1, len(panel.labels) - 1) / 7))
    for place, label in enumerate(panel.labels):
        parts.append(svg_text(x(place), height - 27, shorten(label, room), "tick", anchor="middle"))
    below = height - 2
    for number, ((name, line), lines) in enumerate(
        zip(panel.lines.items(), legend, strict=True), 1
    ):
        known = [
            (x(place), y(value), place) for place, value in enumerate(line) if math.isfinite(value)
        ]
        parts += [
            svg_line(*start[:2], *end[:2], f"whisker {_tone(number)}")
            for start, end in pairwise(known)
        ]
        for across, up, place in known:
            tip = _safe(f"{name}: {line[place]:.1f} % at {panel.labels[place]}")
            dot = f'<circle class="dot {_tone(number)}" cx="{across:.1f}" cy="{up:.1f}" r="3.2">'
            parts.append(f"{dot}<title>{tip}</title></circle>")
        parts.append(_disc(number, 14, below))
        parts += [
            svg_text(30, below + 4 + _LINE * row, text, "label") for row, text in enumerate(lines)
        ]
        below += 4 + _LINE * len(lines)
    # A disc at the end of each line, moved up if it would cover another, and down again if that is over the panel.
    ends = [
        (y(line[-1]), number)
        for number, line in enumerate(panel.lines.values(), 1)
        if math.isfinite(line[-1])
    ]
    last, gap = math.inf, 2 * _RADIUS
    for place, (up, number) in enumerate(sorted(ends, reverse=True), 1):
        last = min(up, last - gap)
        parts.append(_disc(number, size - 24, max(last, top + gap * (len(ends) - place))))
    return "".join(parts)


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
    return text if len(text) <= length else f"{text[: length // 2]}…{text[-((length - 1) // 2) :]}"


def _tone(index: int) -> str:
    return f"s{(index - 1) % 8 + 1}"


def _disc(number: int, x: float, y: float) -> str:
    half = _RADIUS + 3 * (len(str(number)) - 1)  # wider for two digits
    return (
        f'<rect class="disc {_tone(number)}" x="{x - half:.1f}" y="{y - _RADIUS:.1f}" width="{2 * half:g}" '
        f'height="{2 * _RADIUS:g}" rx="{_RADIUS:g}"/>{svg_text(x, y + 4.5, str(number), "digit", anchor="middle")}'
    )


def svg_line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    """A line; `kind` is its class in the stylesheet."""
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def svg_text(x: float, y: float, text: str, kind: str, *, anchor: str = "start") -> str:
    """A text, escaped."""
    return (
        f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{_safe(text)}</text>'
    )


def _safe(text: str) -> str:
    return escape(page_text(text))


def figure(width: int, height: int, title: str, parts: Sequence[str]) -> str:
    """The whole drawing; the title is for screen readers."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" aria-label="{_safe(title)}">{"".join(parts)}</svg>'
    )
