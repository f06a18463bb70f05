"""A sweep as a page, as Markdown and as JSON: one file each that needs nothing else."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from chunkcore.evaluation.measures import MeasureName
from chunkcore.evaluation.sweep import SHOWN, Sweep
from chunkcore.outputs import SWEEP_NAMES
from chunkcore.report.files import write_text
from chunkcore.report.markdown import markdown_table
from chunkcore.report.rendering import WIDTHS, assets, markup, package_version, policy, sentences, template
from chunkcore.report.sweep_plots import panels, plot_title, sweep_svg
from chunkcore.report.sweep_tables import choice_table, configuration_table, gap_table
from chunkcore.report.text import markdown_cell

__all__ = ["SWEEP_NAMES", "sweep_html", "sweep_markdown", "sweep_section", "write_sweep"]


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
    wanted: list[MeasureName | None] = [None, *dict.fromkeys([*SHOWN, sweep.measure])]
    return [
        (
            plot_title(sweep, measure),
            {kind: markup(sweep_svg(sweep, measure, width=width)) for kind, width in WIDTHS},
        )
        for measure in wanted
    ]
