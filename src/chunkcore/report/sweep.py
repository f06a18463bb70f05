"""A sweep's plots: a measure against each option that was varied, a line a k, for each set of the other options.

They are the plots of figures 2 to 5 of Qu et al. (2024). Values stand at even distances, whatever they are, since most
grids grow by factors and some hold words. Colours and fonts come from the page's stylesheet; a disc at the end of each
line says which it is.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from pathlib import Path

from chunkcore.chunkers.configuration import Configuration, Grid
from chunkcore.escaping import markdown_cell
from chunkcore.files import SWEEP_NAMES, write_text
from chunkcore.report.plots import _axes, _figure, _line, _safe, _Scale, _text, shorten, ticks
from chunkcore.report.records import markdown_table
from chunkcore.report.rendering import WIDTHS, assets, markup, package_version, policy, sentences, template
from chunkcore.report.tables import choice_table, configuration_table, gap_table
from chunkcore.tuning.grid import SHOWN, Sweep

__all__ = [
    "SWEEP_NAMES",
    "Panel",
    "panels",
    "plot_title",
    "sweep_html",
    "sweep_markdown",
    "sweep_section",
    "sweep_svg",
    "write_sweep",
]

_LEAST = 250  # pixels that a panel is wide, at least
_HEIGHT = 210
_TITLE = 46  # above a row of panels
_DISC = 8.5


@dataclass(frozen=True, slots=True)
class Panel:
    """One option's values, the others of its grid fixed.

    Attributes:
        grid: the grid.
        option: what is on the horizontal axis.
        fixed: the values of the grid's other options.
        configurations: one a value of the option, in its order.
    """

    grid: Grid
    option: str
    fixed: Mapping[str, str]
    configurations: tuple[Configuration, ...]


def panels(sweep: Sweep) -> list[Panel]:
    """Every option of every grid that has several values, for each combination of the grid's other options."""
    return [panel for grid in sweep.grids for option in grid.options for panel in _panels(grid, option)]


def _panels(grid: Grid, option: str) -> Iterator[Panel]:
    others = {name: values for name, values in grid.options.items() if name != option}
    for chosen in product(*others.values()):
        fixed = dict(zip(others, chosen, strict=True))
        along = tuple(each for each in grid.configurations if fixed.items() <= each.values.items())
        yield Panel(grid, option, fixed, along)


def sweep_svg(sweep: Sweep, measure: str | None = None, *, width: int) -> str:
    """All panels of a sweep as one drawing; "" where no option has several values.

    Args:
        sweep: what to draw.
        measure: Recall, Precision, F1 or what choices were made by, a line a k. None draws Recall, Precision and F1,
            each averaged over all k, as the paper does.
        width: in pixels.
    """
    found = panels(sweep)
    if not found:
        return ""
    columns = max(1, width // _LEAST)
    size = width / columns
    lines = [_lines(sweep, panel, measure) for panel in found]
    top = ticks(0, max([1.0, *(value for each in lines for line in each for value in line.values if value == value)]))
    parts: list[str] = []
    at = 0.0
    for option_panels in _rows(found):
        heading = f"{option_panels[0][1].option} of {option_panels[0][1].grid.spec}"
        parts.append(_text(4, at + 20, shorten(heading, int(width / 7.5)), "name"))
        for place, (number, panel) in enumerate(option_panels):
            row, column = divmod(place, columns)
            shift = (column * size, at + _TITLE - 18 + row * _HEIGHT)
            drawn = _draw(panel, lines[number], size, top)
            parts.append(f'<g transform="translate({shift[0]:.1f} {shift[1]:.1f})">{drawn}</g>')
        at += _TITLE - 18 + _HEIGHT * math.ceil(len(option_panels) / columns)
    return _figure(width, round(at), f"{plot_title(sweep, measure)}, against each option that was varied", parts)


def plot_title(sweep: Sweep, measure: str | None) -> str:
    """What `sweep_svg` draws, in words."""
    unit = "" if sweep.unit == "token" else f" of {sweep.unit}s"
    if measure:
        return f"{measure}{unit} in percent, a line a k"
    return f"Recall (R), precision (P) and F1 (F){unit} in percent, averaged over k"


def _rows(found: Sequence[Panel]) -> list[list[tuple[int, Panel]]]:
    """Panels of one grid and option together, each with its number."""
    rows: dict[tuple[str, str], list[tuple[int, Panel]]] = {}
    for number, panel in enumerate(found):
        rows.setdefault((panel.grid.spec, panel.option), []).append((number, panel))
    return list(rows.values())


@dataclass(frozen=True, slots=True)
class _Drawn:
    """A line: the letters in its disc, its tone, its name, and its values in percent."""

    letters: str
    tone: int
    name: str
    values: tuple[float, ...]


def _lines(sweep: Sweep, panel: Panel, measure: str | None) -> list[_Drawn]:
    specs = [each.spec for each in panel.configurations]
    if measure is None:
        return [
            _Drawn(name[0], number, name, tuple(100 * sweep.mean(spec, name) for spec in specs))
            for number, name in enumerate(SHOWN, start=1)
        ]
    return [
        _Drawn(str(k), number, f"k = {k}", tuple(100 * sweep.mean(spec, measure, k) for spec in specs))
        for number, k in enumerate(sweep.ks, start=1)
    ]


def _draw(panel: Panel, lines: Sequence[_Drawn], size: float, top: Sequence[float]) -> str:
    labels = [each.values[panel.option] for each in panel.configurations]
    y = _Scale(top[0], top[-1], _HEIGHT - 46, 40)
    left, right = 40.0, size - 40
    step = (right - left - 16) / max(1, len(labels) - 1)
    places = [left + 8 + step * number for number in range(len(labels))]
    parts = _axes(_Scale(0, 1, left, right), y, [], top, panel.option, "")
    fixed = ", ".join(f"{name}={value}" for name, value in panel.fixed.items())
    parts.append(_text(4, 24, shorten(fixed, int(size / 7)), "label"))
    room = max(2, int(step / 7))
    parts += [
        _text(x, _HEIGHT - 27, shorten(value, room) if len(labels) > 1 else value, "tick", anchor="middle")
        for x, value in zip(places, labels, strict=True)
    ]
    for line in lines:
        parts.append(_polyline(line, places, labels, y, panel.option))
    parts += _discs(lines, right + 16, y)
    return "".join(parts)


def _polyline(line: _Drawn, places: Sequence[float], labels: Sequence[str], y: _Scale, option: str) -> str:
    tone = f"s{(line.tone - 1) % 8 + 1}"
    known = [(x, y(value)) for x, value in zip(places, line.values, strict=True)]
    parts = [
        _line(*start, *end, f"whisker {tone}")
        for start, end in pairwise(known)
        if math.isfinite(start[1]) and math.isfinite(end[1])
    ]
    for (x, height), value, label in zip(known, line.values, labels, strict=True):
        if math.isfinite(height):
            tip = _safe(f"{line.name}: {value:.1f} % at {option}={label}")
            place = f'cx="{x:.1f}" cy="{height:.1f}"'
            parts.append(f'<circle class="dot {tone}" {place} r="3.2"><title>{tip}</title></circle>')
    return "".join(parts)


def _discs(lines: Sequence[_Drawn], x: float, y: _Scale) -> list[str]:
    """A disc at the end of each line, moved up or down where it would cover another's."""
    ends = [(y(next((value for value in reversed(line.values) if math.isfinite(value)), 0.0)), line) for line in lines]
    parts, last = [], math.inf
    for height, line in sorted(ends, key=lambda each: -each[0]):
        last = min(height, last - 2 * _DISC - 1)
        tone = f"s{(line.tone - 1) % 8 + 1}"
        parts.append(
            f'<circle class="disc {tone}" cx="{x:.1f}" cy="{last:.1f}" r="{_DISC}"/>'
            f"{_text(x, last + 3.8, shorten(line.letters, 3), 'digit', anchor='middle')}"
        )
    return parts


def write_sweep(folder: Path | str, sweep: Sweep, settings: Mapping[str, str]) -> Path:
    """Write ``sweep.md``, ``sweep.json`` and ``sweep.html``, and return the last one's path.

    Raises:
        MissingExtraError: jinja2 is not installed.
        OSError: the folder cannot be written to.
    """
    told = sweep.to_dict() | {"settings": dict(settings)}
    texts = (
        sweep_markdown(sweep, settings),
        json.dumps(told, ensure_ascii=True, allow_nan=False),
        sweep_html(sweep, settings),
    )
    files = [write_text(Path(folder) / name, text) for name, text in zip(SWEEP_NAMES, texts, strict=True)]
    return files[-1]


def sweep_markdown(sweep: Sweep, settings: Mapping[str, str]) -> str:
    """The verdict and the tables."""
    tables = [table for table in (choice_table(sweep), gap_table(sweep), configuration_table(sweep)) if table]
    parts = [f"# A sweep on {markdown_cell(sweep.benchmark)}", markdown_cell(sweep.verdict)]
    for table in tables:
        parts += [f"## {markdown_cell(table.title)}", markdown_table(table)]
    parts.append("## How this was made")
    parts.append("\n".join(f"- {markdown_cell(name)}: {markdown_cell(value)}" for name, value in settings.items()))
    return "\n\n".join(parts) + "\n"


def sweep_html(sweep: Sweep, settings: Mapping[str, str]) -> str:
    """The page: no script, no connection, and no text from the data that could do anything.

    Raises:
        MissingExtraError: jinja2 is not installed.
    """
    style = assets("page.css")
    lead, rest = sentences(sweep.verdict)
    page = template("sweep.html.jinja")
    return str(
        page.render(
            policy=policy(style),
            style=markup(style),
            version=package_version(),
            lead=lead,
            rest=rest,
            settings=settings,
            shown=sweep_section(sweep),
        )
    )


def sweep_section(sweep: Sweep) -> dict[str, object]:
    """What is shown of a sweep: on its own page, and in a comparison's."""
    return {
        "sweep": sweep,
        "level": f"{100 * sweep.confidence:g} %",
        "choices": choice_table(sweep),
        "gaps": gap_table(sweep),
        "plots": _plots(sweep),
        "configurations": configuration_table(sweep),
    }


def _plots(sweep: Sweep) -> list[tuple[str, dict[str, object]]]:
    """All measures together, then each with a line a k; none where nothing was varied."""
    if not panels(sweep):
        return []
    wanted: list[str | None] = [None, *dict.fromkeys([*SHOWN, sweep.measure])]
    return [
        (
            plot_title(sweep, measure),
            {kind: markup(sweep_svg(sweep, measure, width=width)) for kind, width in WIDTHS},
        )
        for measure in wanted
    ]
