"""What the report's plots show, and where it stands in percent of their width and height; the template draws them.

matplotlib is large and draws text as outlines, which search and screen readers miss; vega, plotly and bokeh add
megabytes of script to a page. Colours and fonts come from the page's stylesheet by class; numbers on the marks serve
readers without colour.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np

from chunkcore.evaluation.resampling import CurvePoint
from chunkcore.study.comparing import ReportPage

COLOURS = 8  # systems that have a colour; the others have their number alone
_APART = 5.2  # percent of the height, from a disc at a line's end to the next


class Axis(NamedTuple):
    """The values at the ticks of an axis, from its first end to its last; on one by doublings, doubled values are
    equally far apart.
    """

    values: Sequence[float]
    by_doublings: bool = False

    def place(self, value: float) -> float:
        """Where a value stands, in percent."""
        first, last = self.values[0], self.values[-1]
        if self.by_doublings:
            first, last, value = map(math.log, (first, last, value))
        return round(100 * (value - first) / (last - first), 2)


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


def means(page: ReportPage) -> Axis | None:
    """The axis of the systems' means and intervals, in percent; None where no system has a mean."""
    comparison = page.comparison
    ends: list[float] = []
    for report in comparison.standing:
        ends += report.mean(comparison.measure), *comparison.intervals[report.name]
    if not ends:
        return None
    return Axis(ticks(100 * np.nanmin(ends), 100 * np.nanmax(ends), 8))


class Curve(NamedTuple):
    """A system's rising line, and the height of its disc at the line's end."""

    number: int
    name: str
    points: Sequence[CurvePoint]
    end: float


class Curves(NamedTuple):
    """Evidence in percent against tokens, a line a system."""

    tokens: Axis
    found: Axis
    lines: list[Curve]


def curves(page: ReportPage) -> Curves | None:
    """The systems' curves; None without one. Of more systems than there are colours the first are drawn."""
    curves = page.comparison.curves
    systems = [system for system in page.systems if system[1].name in curves][:COLOURS]
    if not systems:
        return None
    rows = [curves[report.name] for _, report in systems]
    points = list(chain.from_iterable(rows))
    budgets = sorted({point.tokens for point in points})
    if len(budgets) == 1:
        budgets.append(2 * budgets[0])
    lowest = min(point.low for point in points)
    heights = [tick for tick in ticks(100 * lowest, 100) if tick <= 100]
    found = Axis(heights[::-1])
    ends = _apart([found.place(100 * row[-1].share) for row in rows])
    lines = [
        Curve(number, report.name, row, end)
        for (number, report), row, end in zip(systems, rows, ends, strict=True)
    ]
    return Curves(Axis(budgets, by_doublings=True), found, lines)


def _apart(places: Sequence[float]) -> list[float]:
    """Places from 0 to 100, in their order, with room for a disc between them."""
    moved, first, last = np.array(places), 0.0, 100.0
    order = np.argsort(moved, kind="stable")
    for index in order:
        moved[index] = max(moved[index], first)
        first = moved[index] + _APART
    for index in order[::-1]:
        moved[index] = min(moved[index], last)
        last = moved[index] - _APART
    return [round(place, 2) for place in moved.tolist()]
