"""The report's plots as SVG text.

matplotlib is large and draws text as outlines, which search and screen readers miss; vega, plotly and bokeh add
megabytes of script to a page. Colours and fonts come from the page's stylesheet by class; numbers on the marks serve
readers without colour. Widths are pixels.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from chunkcore.evaluation.resampling import SHARES, CurvePoint
from chunkcore.plain import page_text

COLOURS = 8  # systems that have a colour; the others have their number alone
_NARROW = 500  # pixels; in a narrower drawing names stand over their intervals
_LETTER = 7.2  # pixels of a letter of a name
_LETTERS = 39  # of a line of a name
_LINE = 16  # pixels from a line of a name to the next
_RADIUS = 9.0  # of the numbered disc


@dataclass(frozen=True, slots=True)
class Row:
    """A mean in percent and its interval, with the system's number and name."""

    number: int
    name: str
    mean: float
    low: float
    high: float
    distinct: bool
    note: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """A system's rising curve: number, name, and points with their bands, in percent."""

    number: int
    name: str
    points: Sequence[CurvePoint]


@dataclass(frozen=True, slots=True)
class Scale:
    """Values from `low` to `high` as pixels from `first` to `last`."""

    low: float
    high: float
    first: float
    last: float

    def __call__(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low or 1.0)  # one tick for equal values
        return self.first + share * (self.last - self.first)


class LogScale(Scale):
    """A scale on which doubled values are equally far apart."""

    __slots__ = ()

    def __call__(self, value: float) -> float:
        share = math.log(value / self.low, self.high / self.low)
        return self.first + share * (self.last - self.first)


def ticks(low: float, high: float, count: int = 5) -> list[float]:
    """About `count` round numbers (1, 2 or 5 times a power of ten) that enclose the range.

    >>> ticks(3, 96), ticks(61.2, 78.9)
    ([0.0, 20.0, 40.0, 60.0, 80.0, 100.0], [60.0, 65.0, 70.0, 75.0, 80.0])
    >>> ticks(40, 40 + 1e-14)  # of sums in another order
    [39.4, 39.6, 39.8, 40.0, 40.2, 40.4, 40.6]
    """
    if not high - low > 1e-6:
        low, high = low - 0.5, high + 0.5
    rough = (high - low) / count
    power = 10.0 ** math.floor(math.log10(rough))
    steps = [power * factor for factor in (1, 2, 5, 10)]
    step = min(steps, key=lambda step: abs(math.log(step / rough)))
    first = math.floor(low / step + 1e-9)
    last = math.ceil(high / step - 1e-9)
    return [round(index * step, 10) for index in range(first, last + 1)]


def curves(lines: Sequence[Line], width: int) -> str:
    """Evidence (percent) against tokens, which double from tick to tick: a line, a band and a disc a system.

    The disc, and in a wide drawing the name, stand at the line's end. Lines across are at the heights of `SHARES`. Of
    more systems than there are colours the first are drawn.
    """
    shown = lines[:COLOURS]
    if not shown:
        return ""
    narrow = width < _NARROW
    height, right, step = 440, width - 300, 1
    if narrow:
        height, right, step = 320, width - 34, 2
    points = [point for line in shown for point in line.points]
    budgets = sorted({point.tokens for point in points})
    lowest = min(point.low for point in points)
    heights = [tick for tick in ticks(lowest, 100) if tick <= 100]
    x = LogScale(budgets[0], max(budgets[-1], 2 * budgets[0]), 46, right)
    y = Scale(heights[0], heights[-1], height - 44, 26)
    parts = _grid(x, y, budgets[::step], heights)
    for share in SHARES:
        mark = y(100 * share)
        parts.append(svg_line(x.first, mark, x.last, mark, "zero"))
    parts.append(svg_text(4, 13, _FOUND, "label"))
    parts.append(svg_text(right, y.first + 38, _RETRIEVED, "label", anchor="end"))
    parts += [_band(line, x, y) for line in shown]
    parts += [_curve(line, x, y) for line in shown]
    last = [y(line.points[-1].share) for line in shown]
    ends = _apart(last, 2 * _RADIUS + 1, y.last, y.first)
    for line, end in zip(shown, ends, strict=True):
        parts.append(_disc(line.number, right + 16, end))
        if not narrow:
            parts.append(svg_text(right + 31, end + 4.5, shorten(line.name, 36), "name"))
    return figure(width, height, f"{_FOUND} against {_RETRIEVED}, a line a system", parts)


_FOUND, _RETRIEVED = "Evidence found, %", "tokens retrieved at most"


def _band(line: Line, x: Scale, y: Scale) -> str:
    upper, lower = [], []
    for point in line.points:
        across = x(point.tokens)
        upper.append(f"{across:.1f},{y(point.high):.1f}")
        lower.append(f"{across:.1f},{y(point.low):.1f}")
    corners = " ".join(upper + lower[::-1])
    return f'<polygon class="band {_tone(line.number)}" points="{corners}"/>'


def _curve(line: Line, x: Scale, y: Scale) -> str:
    """A line, with a mark that says its values at each point."""
    tone = _tone(line.number)
    places = ""
    marks = ""
    for point in line.points:
        across, up = f"{x(point.tokens):.1f}", f"{y(point.share):.1f}"
        places += f" {across},{up}"
        tip = f"{line.number} {line.name}: {point.share:.1f} % in {point.tokens:,.0f} tokens"
        tip += f" (interval {point.low:.1f} to {point.high:.1f})"
        marks += _tipped(tip, f'<circle class="{tone}" cx="{across}" cy="{up}" r="3"/>')
    return f'<polyline class="curve {tone}" points="{places.strip()}"/>{marks}'


def _apart(places: Sequence[float], gap: float, first: float, last: float) -> list[float]:
    """Places at least a gap apart, in their order, from `first` on, and up to `last` where there is room."""
    moved = np.array(places)
    order = np.argsort(moved, kind="stable")
    for index in order:
        moved[index] = max(moved[index], first)
        first = moved[index] + gap
    for index in order[::-1]:
        moved[index] = min(moved[index], last)
        last = moved[index] - gap
    return list(moved)


def intervals(rows: Sequence[Row], *, width: int, x_label: str, title: str) -> str:
    """One line per system: mean and interval in percent, a filled mark if `distinct`.

    Notes stand at the ends of the lines, if the width allows.
    """
    if not rows:
        return ""
    narrow = width < _NARROW
    names = [name_lines(row.name, _LETTERS) for row in rows]
    left, right, step, count = 16, width - 16, 46, 5
    if not narrow:
        longest = max(len(line) for lines in names for line in lines)
        left = max(220, 46 + round(_LETTER * min(longest, _LETTERS)))
        right, step, count = width - 130, 30, 8
    ends = [(row.low, row.mean, row.high) for row in rows]
    values = ticks(np.nanmin(ends), np.nanmax(ends), count)
    x = Scale(values[0], values[-1], left, right)
    bottom = _TOP
    drawn: list[str] = []
    for row, lines in zip(rows, names, strict=True):
        first = bottom + 15
        drawn.append(_disc(row.number, 12, first))
        at = first
        for line in lines:
            drawn.append(svg_text(28, at + 4, shorten(line, _LETTERS), "name"))
            at += _LINE
        bottom += step + at - first - _LINE
        at = bottom - 13 if narrow else first
        drawn.append(_bar(row, x, at))
        if row.note and not narrow:
            drawn.append(svg_text(width - 4, at + 4, row.note, "label", anchor="end"))
    label = svg_text(right, bottom + 36, x_label, "label", anchor="end")
    parts = [*_grid(x, Scale(0, 1, bottom, _TOP), values, []), label, *drawn]
    return figure(width, bottom + 44, title, parts)


_TOP = 8  # pixels over the first row


def _bar(row: Row, x: Scale, at: float) -> str:
    """A row's interval and mean at a height."""
    kind = _tone(row.number)
    kind += " distinct" if row.distinct else " tied"
    tip = f"{row.name}: {row.mean:.1f} %"
    whisker = ""
    if math.isfinite(row.low):
        tip += f" (interval {row.low:.1f} to {row.high:.1f})"
        whisker = svg_line(x(row.low), at, x(row.high), at, f"whisker {kind}")
    place = f'x="{x(row.mean) - 5:.1f}" y="{at - 5:.1f}" width="10" height="10"'
    return _tipped(tip, f'{whisker}<rect class="estimate {kind}" {place}/>')


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


# ---- parts of a drawing


def _grid(x: Scale, y: Scale, columns: Sequence[float], rows: Sequence[float]) -> list[str]:
    """Lines at these values, with their numbers."""
    parts = []
    for value in columns:
        at = x(value)
        parts.append(svg_line(at, y.first, at, y.last, "grid"))
        parts.append(svg_text(at, y.first + 17, _number(value), "tick", anchor="middle"))
    for value in rows:
        at = y(value)
        parts.append(svg_line(x.first, at, x.last, at, "grid"))
        parts.append(svg_text(x.first - 7, at + 4, _number(value), "tick", anchor="end"))
    return parts


def _number(value: float) -> str:
    """Grouped thousands, no trailing zeros, a true minus."""
    return f"{value:,.10g}".replace("-", "\u2212")


def _disc(number: int, x: float, y: float) -> str:
    """A system's disc with its number, wider for two digits."""
    tone = _tone(number)
    half = _RADIUS + 3 * len(str(number)) - 3
    size = f'width="{2 * half:g}" height="{2 * _RADIUS:g}" rx="{_RADIUS:g}"'
    disc = f'<rect class="disc {tone}" x="{x - half:.1f}" y="{y - _RADIUS:.1f}" {size}/>'
    return disc + svg_text(x, y + 4.5, str(number), f"digit {tone}", anchor="middle")


def _tone(number: int) -> str:
    """The class of a system's colour; no two systems have one colour."""
    return f"s{number}" if number <= COLOURS else "s0"


def _tipped(tip: str, mark: str) -> str:
    return f"<g><title>{_safe(tip)}</title>{mark}</g>"


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
