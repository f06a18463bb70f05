"""The HTML report: one file that needs nothing else, and in which no text from the data can do anything."""

from __future__ import annotations

import base64
import hashlib
import math
import re
from collections.abc import Sequence
from functools import lru_cache
from html import escape
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from itertools import groupby
from typing import Any

from chunkcore.errors import MissingExtraError
from chunkcore.evaluation.measures import Depth, Measure, Unit, budget_of
from chunkcore.report import plots
from chunkcore.report.cost_tables import CostAxis, cost_axis, cost_table
from chunkcore.report.cross_table import cross_table
from chunkcore.report.notes import located_table, warnings
from chunkcore.report.questions import questions
from chunkcore.report.study import Study, mean
from chunkcore.report.tables import (
    Column,
    amount,
    chunk_table,
    collection_score_tables,
    collection_table,
    difference,
    difference_table,
    measure_table,
    pairs_note,
    problem_table,
    score_table,
)
from chunkcore.report.text import page_text, script_json
from chunkcore.report.viewer import viewer

__all__ = ["html_report", "require_jinja2"]

STYLES = ("page.css", "viewer.css")
SCRIPTS = ("page.js", "questions.js", "viewer.js")  # one program: each uses what the ones before it define
WIDTHS = (("wide", 860), ("narrow", 360))


def html_report(study: Study) -> str:
    """The page as a string of HTML.

    Its policy (a meta tag) forbids every connection and every script and style but its own, which it
    names by their SHA-256.

    Raises:
        MissingExtraError: jinja2 is not installed.
    """
    require_jinja2()
    style, script = _assets(STYLES), _assets(SCRIPTS)
    shown = viewer(study)
    axis = cost_axis(study)
    data = questions(study, shown.documents if shown else {}) | {"documents": shown and shown.index}
    return str(
        _template().render(
            policy=_policy(style, script),
            style=_markup(style),
            script=_markup(script),
            data=_markup(script_json(data)),
            packs=[(pack.name, _markup(pack.text)) for pack in shown.packs] if shown else [],
            viewer_notes=shown.notes if shown else [],
            study=study,
            version=_version(),
            lead_and_rest=_sentences(study.comparison.verdict),
            facts=_facts(study),
            warnings=warnings(study),
            views=[_view(study, k, unit, axis) for unit in study.units for k in study.ks],
            axis=axis,
            costs=cost_table(study),
            cross=cross_table(study),
            means={kind: _markup(_means(study, width)) for kind, width in WIDTHS},
            forest={kind: _markup(_forest(study, width)) for kind, width in WIDTHS},
            differences=difference_table(study),
            pairs_note=pairs_note(study),
            measures=measure_table(study),
            meanings=_meanings(study),
            chunks=chunk_table(study),
            histograms=_histograms(study),
            problems=problem_table(study),
            located=located_table(study),
        )
    )


MEANINGS: dict[str, str] = {
    "HitRate": "The share of questions for which any evidence was retrieved.",
    "MRR": "One over the rank of the first piece with evidence.",
    "MAP": "The precision down to where each part of the evidence comes up, on average; what never does counts 0.",
    "nDCG": "The evidence that each piece adds, worth less the further down, over the most that is possible.",
    "DCG": "The share of each piece that is evidence, worth less the further down, summed: shown times 100.",
    "ChunkPrecision": "The share of a piece that is evidence, the mean over the pieces.",
}


def _meanings(study: Study) -> list[tuple[str, str]]:
    """What the measures and depths beside the usual ones mean."""
    used = {measure.name for report in study.reports for measure in report.scores}
    found: list[tuple[str, str]] = [(name, meaning) for name, meaning in MEANINGS.items() if name in used]
    budgets = [k for k in study.ks if budget_of(k) is not None]
    if budgets:
        means = "The best pieces until so many tokens are retrieved; the last one is cut there."
        found.append((", ".join(map(str, budgets)), means))
    return found


def _policy(style: str, script: str) -> str:
    def digest(text: str) -> str:
        return base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")

    return (
        f"default-src 'none'; style-src 'sha256-{digest(style)}'; script-src 'sha256-{digest(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _view(study: Study, k: Depth, unit: Unit, axis: CostAxis | None) -> dict[str, Any]:
    """What the switches change: the scores, the plots and the collections at one k in one unit."""
    return {
        "k": str(k),
        "unit": unit,
        "shown": k == study.chosen_k and unit == study.comparison.measure.unit,
        "scores": score_table(study, k, unit),
        "collections": collection_table(study, k, unit),
        "collection_scores": collection_score_tables(study, k, unit),
        "plot": {kind: _markup(_scatter(study, k, unit, _tokens(study, k), width)) for kind, width in WIDTHS},
        "cost_plot": axis and {kind: _markup(_scatter(study, k, unit, axis, width)) for kind, width in WIDTHS},
    }


def _scatter(study: Study, k: Depth, unit: Unit, axis: CostAxis, width: int) -> str:
    measure = Measure("Recall", k, unit)
    intervals = study.intervals(measure)
    points = []
    for number, (report, value) in enumerate(zip(study.reports, axis.values, strict=True), 1):
        low, high = intervals.get(report.name, (math.nan, math.nan))
        points.append(plots.Point(number, report.name, value, 100 * mean(report, measure), 100 * low, 100 * high))
    return plots.scatter(
        points,
        width=width,
        x_label=axis.label,
        y_label=f"{measure}, %",
        title=f"{measure} against {axis.title}, a point a strategy",
        x_unit=axis.unit,
    )


def _tokens(study: Study, k: Depth) -> CostAxis:
    values = tuple(report.mean_tokens(k) for report in study.reports)
    return CostAxis("retrieved tokens", "Tokens retrieved per question", "tokens", values)


def _means(study: Study, width: int) -> str:
    """Every system's mean and interval by the verdict's measure; filled marks are those that may be the best."""
    found = study.comparison
    rows, notes = [], []
    for number, report in enumerate(study.reports, 1):
        value, (low, high) = mean(report, found.measure), found.intervals.get(report.name, (math.nan, math.nan))
        if math.isfinite(value):
            rows.append(plots.Row(number, report.name, 100 * value, 100 * low, 100 * high, report.name in found.tied))
            notes.append(f"first in {100 * found.firsts[report.name]:.0f} %" if report.name in found.firsts else "")
    return plots.means(
        rows,
        width=width,
        x_label=f"{found.measure}{', %' if found.measure.is_share else ' × 100'}",
        title=f"Mean {found.measure} of every strategy, with its {study.level} interval",
        notes=notes if len(rows) > 1 else (),
    )


def _forest(study: Study, width: int) -> str:
    pairs = {(found.a, found.b): found for found in study.comparison.differences}
    top, *others = study.reports
    rows = []
    for number, report in enumerate(others, 2):
        found = difference(pairs, report.name, top.name)
        if found is not None and math.isfinite(found.mean) and math.isfinite(found.low):
            values = (100 * found.mean, 100 * found.low, 100 * found.high)
            rows.append(plots.Row(number, report.name, *values, found.distinct))
    return plots.forest(
        rows,
        width=width,
        x_label=f"points of {study.comparison.measure} from strategy 1",
        title=f"Difference of every other strategy from {top.name}, in points of {study.comparison.measure}",
    )


def _histograms(study: Study) -> list[dict[str, Any]]:
    known = [(number, report) for number, report in enumerate(study.reports, 1) if report.chunks is not None]
    limit = plots.ticks(0, max([each.chunks.maximum for _, each in known if each.chunks] + [1]))[-1]
    return [
        {
            "number": number,
            "name": report.name,
            "count": amount(report.chunks.count),
            "median": amount(report.chunks.median),
            "maximum": amount(report.chunks.maximum),
            "plot": _markup(
                plots.histogram(
                    report.chunks.tokens.tolist(), limit=limit, title=f"Chunk lengths of {report.name}, in tokens"
                )
            ),
        }
        for number, report in known
        if report.chunks
    ]


def _facts(study: Study) -> list[tuple[str, str]]:
    benchmark = study.benchmark
    facts = [("Collection", benchmark.name if benchmark else study.reports[0].benchmark)]
    if benchmark:
        facts.append(("Documents", amount(len(benchmark.documents))))
    facts.append(("Questions", amount(len(study.reports[0].query_ids))))
    return [*facts, ("Strategies", amount(len(study.reports))), ("Verdict by", str(study.comparison.measure))]


def _sentences(text: str) -> tuple[str, str]:
    """The first sentence, and the rest."""
    first, *rest = re.split(r"(?<=\.)\s+(?=[A-Z])", text, maxsplit=1)
    return first, rest[0] if rest else ""


def _version() -> str:
    """The installed package's."""
    try:
        return version("chunkadapters")
    except PackageNotFoundError:
        return "of a source tree"


def _asset(name: str) -> str:
    return files("chunkcore.report").joinpath(name).read_text("utf-8")


def _assets(names: Sequence[str]) -> str:
    return "\n".join(map(_asset, names))


def require_jinja2() -> None:
    """Tell before any work is done whether the page can be made.

    Raises:
        MissingExtraError: jinja2 is not installed.
    """
    try:
        import jinja2  # noqa: F401
    except ImportError as error:
        raise MissingExtraError.of("jinja2", "report", "write the HTML report") from error


@lru_cache(maxsize=1)
def _template() -> Any:
    from jinja2 import Environment, StrictUndefined

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, finalize=_finalize
    )
    environment.filters["headings"] = _headings
    environment.filters["breakable"] = _breakable
    return environment.from_string(_asset("page.html.jinja"))


def _headings(columns: Sequence[Column]) -> list[tuple[str, int]]:
    """Each group of neighbouring columns, with how many it spans."""
    return [(group, len(list(members))) for group, members in groupby(columns, key=lambda column: column.group)]


def _breakable(name: str) -> Any:
    """A name that may be broken after a colon or a comma."""
    return _markup("<wbr>".join(escape(part) for part in re.split(r"(?<=[:,])", page_text(name))))


def _finalize(value: Any) -> Any:
    """Every value on its way into the page; what is marked as markup was made here."""
    return page_text(value) if type(value) is str else value


def _markup(text: str) -> Any:
    """Text that is HTML already: ours, escaped where it was made."""
    from markupsafe import Markup

    return Markup(text)  # noqa: S704
