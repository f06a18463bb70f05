"""The HTML report: one file that needs nothing else, and in which no text from the data can do anything."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from chunkcore.document import Document
from chunkcore.escaping import page_text, script_json
from chunkcore.evaluation.benchmarks.benchmark import Evidence, Query
from chunkcore.evaluation.measures import Depth, Unit, budget_of, known_measures
from chunkcore.report import plots
from chunkcore.report.rendering import (
    WIDTHS,
    assets,
    markup,
    package_version,
    policy,
    require_jinja2,
    sentences,
    template,
)
from chunkcore.report.study import Study, mean
from chunkcore.report.sweep import sweep_section
from chunkcore.report.tables import (
    CostAxis,
    amount,
    chunk_table,
    collection_score_tables,
    collection_table,
    cost_axis,
    cost_table,
    cross_table,
    difference,
    difference_table,
    located_table,
    measure_table,
    pairs_note,
    problem_table,
    score_table,
    warnings,
)
from chunkcore.report.viewer import viewer

__all__ = ["html_report", "questions", "require_jinja2", "whole_percent"]

# Longer excerpts are cut in the page, which says so; the spans still tell the whole.
EXCERPT = 1500
EXCERPTS = 3_000_000  # characters, all together: of very many questions each has less


def questions(study: Study, documents: Mapping[str, int]) -> dict[str, Any]:
    """The block that the page's script reads first: every question, its evidence, and the shares found, in percent.

    Args:
        study: where no system tells what it found at any k, there are no questions.
        documents: the number of each document that the viewer lists.
    """
    benchmark = study.benchmark
    ks = [k for k in study.ks if any(k in report.found for report in study.reports)]
    asked = benchmark.queries if benchmark and ks else ()
    longest = min(EXCERPT, EXCERPTS // max(1, sum(len(query.evidence) for query in asked)))
    shown = _Shown(benchmark.documents if benchmark else (), documents, longest)
    places = [{query: row for row, query in enumerate(report.query_ids)} for report in study.reports]

    def found(query: Query, k: Depth) -> list[list[int | None]]:
        pairs = zip(study.reports, places, strict=True)
        return [_shares(report.found.get(k, ()), place.get(query.id)) for report, place in pairs]

    return {
        "systems": [page_text(report.name) for report in study.reports],
        "ks": [str(k) for k in ks],
        "questions": [shown.question(query) | {"found": [found(query, k) for k in ks]} for query in asked],
    }


class _Shown:
    """How a question and its evidence are shown."""

    def __init__(self, documents: Sequence[Document], numbers: Mapping[str, int], longest: int) -> None:
        self._documents = {document.id: document for document in documents}
        self._numbers = numbers
        self._longest = longest

    def question(self, query: Query) -> dict[str, Any]:
        answer = query.metadata.get("answer")
        return {
            "id": page_text(query.id),
            "text": page_text(query.text),
            "collection": page_text(query.collection),
            "answer": page_text(answer) if isinstance(answer, str) else "",
            "evidence": [self._evidence(each) for each in query.evidence],
        }

    def _evidence(self, each: Evidence) -> list[Any]:
        """Document, start, end, excerpt, and the document's number in the viewer (-1: it is not listed there)."""
        excerpt = self._documents[each.document_id].text[
            each.span.start : min(each.span.end, each.span.start + self._longest)
        ]
        more = " […]" if len(each.span) > self._longest else ""
        place = (page_text(each.document_id), each.span.start, each.span.end)
        return [*place, f"{page_text(excerpt)}{more}", self._numbers.get(each.document_id, -1)]


def _shares(rows: tuple[tuple[float, ...], ...], row: int | None) -> list[int | None]:
    return [] if row is None or row >= len(rows) else [whole_percent(share) for share in rows[row]]


def whole_percent(share: float) -> int | None:
    """A share as whole percent in which 0 means nothing and 100 means all; None where it is not known.

    >>> whole_percent(0.001), whole_percent(0.999), whole_percent(1.0), whole_percent(math.nan)
    (1, 99, 100, None)
    """
    if math.isnan(share):
        return None
    if share <= 0:
        return 0
    return 100 if share >= 1 else min(99, max(1, round(100 * share)))


STYLES = ("page.css", "viewer.css")
SCRIPTS = ("page.js", "questions.js", "viewer.js")  # one program: each uses what the ones before it define


def html_report(study: Study) -> str:
    """The page as a string of HTML.

    Its policy (a meta tag) forbids every connection and every script and style but its own, which it
    names by their SHA-256.

    Raises:
        MissingExtraError: jinja2 is not installed.
    """
    style, script = assets(*STYLES), assets(*SCRIPTS)
    shown = viewer(study)
    axis = cost_axis(study)
    data = questions(study, shown.documents if shown else {}) | {"documents": shown and shown.index}
    return str(
        template("page.html.jinja").render(
            policy=policy(style, script),
            style=markup(style),
            script=markup(script),
            data=markup(script_json(data)),
            packs=[(pack.name, markup(pack.text)) for pack in shown.packs] if shown else [],
            viewer_notes=shown.notes if shown else [],
            study=study,
            version=package_version(),
            lead_and_rest=sentences(study.comparison.verdict),
            facts=_facts(study),
            warnings=warnings(study),
            views=[_view(study, k, unit, axis) for unit in study.units for k in study.ks],
            axis=axis,
            costs=cost_table(study),
            cross=cross_table(study),
            means={kind: markup(_means(study, width)) for kind, width in WIDTHS},
            forest={kind: markup(_forest(study, width)) for kind, width in WIDTHS},
            differences=difference_table(study),
            pairs_note=pairs_note(study),
            measures=measure_table(study),
            meanings=_meanings(study),
            chunks=chunk_table(study),
            histograms=_histograms(study),
            problems=problem_table(study),
            located=located_table(study),
            sweep=sweep_section(study.sweep) if study.sweep else None,
        )
    )


def _meanings(study: Study) -> list[tuple[str, str]]:
    """What the measures and depths beside the usual ones mean."""
    used = {measure.kind for report in study.reports for measure in report.scores}
    found = [(each.kind, each.meaning) for each in known_measures() if each.kind in used and not each.usual]
    budgets = [k for k in study.ks if budget_of(k) is not None]
    if budgets:
        means = "The best pieces until so many tokens are retrieved; the last one is cut there."
        found.append((", ".join(map(str, budgets)), means))
    return found


def _view(study: Study, k: Depth, unit: Unit, axis: CostAxis | None) -> dict[str, Any]:
    """What the switches change: the scores, the plots and the collections at one k in one unit."""
    return {
        "k": str(k),
        "unit": unit,
        "shown": k == study.chosen_k and unit == study.comparison.measure.unit,
        "scores": score_table(study, k, unit),
        "collections": collection_table(study, k, unit),
        "collection_scores": collection_score_tables(study, k, unit),
        "plot": {kind: markup(_scatter(study, k, unit, _tokens(study, k), width)) for kind, width in WIDTHS},
        "cost_plot": axis and {kind: markup(_scatter(study, k, unit, axis, width)) for kind, width in WIDTHS},
    }


def _scatter(study: Study, k: Depth, unit: Unit, axis: CostAxis, width: int) -> str:
    measure = (study.ranked(k, unit) or [study.comparison.measure])[0]
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
            "plot": markup(
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
