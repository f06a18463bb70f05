"""The HTML report: one self-contained file; text from the data cannot run."""

from __future__ import annotations

import base64
import hashlib
import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from html import escape
from importlib.resources import files
from itertools import groupby
from typing import Any

from chunkcore.errors import DataError
from chunkcore.escaping import page_text, script_json
from chunkcore.evaluation.benchmarks.benchmark import Evidence, Query
from chunkcore.evaluation.comparison import Comparison, compare
from chunkcore.evaluation.measures import Depth, Unit, budget_of
from chunkcore.evaluation.results import Report, system_name
from chunkcore.files import installed_version
from chunkcore.lazy import needed
from chunkcore.options import split_spec
from chunkcore.report import plots, tables
from chunkcore.report.advice import Advice
from chunkcore.report.missed import missed_by
from chunkcore.report.viewer import viewer
from chunkcore.retrieval.corpus import ChunkedCorpus
from chunkcore.run import RankedList
from chunkcore.study.page import ReportPage, mean
from chunkcore.study.tuning import Tuning
from chunkcore.text import Chunks

# Widths in pixels of a plot's two drawings; the page shows the one that fits.
WIDTHS = (("wide", 860), ("narrow", 326))


def both_widths(draw: Callable[[int], str]) -> dict[str, Any]:
    """A plot's two drawings, by the name of their width."""
    return {kind: markup(draw(width)) for kind, width in WIDTHS}


def policy(style: str, script: str) -> str:
    """The page's content security policy: no connection; only this style and script, by SHA-256."""

    def digest(text: str) -> str:
        return base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")

    sources = f"style-src 'sha256-{digest(style)}'; script-src 'sha256-{digest(script)}'"
    return f"default-src 'none'; {sources}; base-uri 'none'; form-action 'none'"


def assets(*names: str) -> str:
    """Files of this folder, concatenated."""
    return "\n".join(files("chunkcore.report").joinpath(name).read_text("utf-8") for name in names)


def require_jinja2() -> None:
    """Call before expensive work that ends in a page. Raises `MissingExtraError` if jinja2 is not installed."""
    needed("jinja2", "report", "write the HTML report")


@cache
def page_template() -> Any:
    """The page's template. Raises `MissingExtraError` if jinja2 is not installed."""
    require_jinja2()
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    def headings(columns: Sequence[tables.Column[Any]]) -> list[tuple[str, int]]:
        """Groups of neighbouring columns, each with the number it spans."""
        return [
            (group, len(list(members)))
            for group, members in groupby(columns, key=lambda column: column.group)
        ]

    def breakable(name: str) -> Any:
        """A name with line breaks allowed after colons and commas."""
        return markup(
            "<wbr>".join(escape(part) for part in re.split(r"(?<=[:,])", page_text(name)))
        )

    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        # Every value that enters the page is escaped, except our own markup.
        finalize=lambda value: page_text(value) if type(value) is str else value,
        loader=FunctionLoader(assets),
    )
    environment.filters["headings"] = headings
    environment.filters["breakable"] = breakable
    return environment.get_template("page.html.jinja")


def markup(text: str) -> Any:
    """Mark text as HTML that is escaped already."""
    from markupsafe import Markup

    return Markup(text)  # noqa: S704


# ---- the page

STYLES = ("page.css", "viewer.css")
SCRIPTS = ("page.js", "questions.js", "viewer.js")  # one program: each file uses the ones before it

# Longer excerpts are cut, and the page says so; the spans stay complete.
EXCERPT = 1500
EXCERPTS = 3_000_000  # characters of all excerpts; with many questions each gets less


def html_report(page: ReportPage) -> str:
    """The page as a string of HTML. Raises `MissingExtraError`: jinja2 is not installed.

    Its content security policy forbids every connection, and all scripts and styles but its own, named by SHA-256.
    """
    style, script = assets(*STYLES), assets(*SCRIPTS)
    shown = viewer(page)
    axis = tables.cost_axis(page)
    views = [_view(page, k, unit, axis) for unit in page.units for k in page.ks]
    data = questions(page, shown.documents if shown else {}) | {"documents": shown and shown.index}
    advice = Advice.of(page)
    benchmark = page.benchmark
    facts = [("Collection", benchmark.name if benchmark else page.reports[0].benchmark)]
    if benchmark:
        facts.append(("Documents", tables.amount(len(benchmark.documents))))
    facts.append(("Questions", tables.amount(len(page.reports[0].query_ids))))
    facts += [
        ("Systems", tables.amount(len(page.reports))),
        ("Verdict by", str(page.comparison.measure)),
    ]
    return str(
        page_template().render(
            policy=policy(style, script),
            style=markup(style),
            script=markup(script),
            data=markup(script_json(data)),
            packs=[(pack.name, markup(pack.text)) for pack in shown.packs] if shown else [],
            viewer_notes=shown.notes if shown else [],
            page=page,
            version=installed_version(),
            advice=advice,
            missed=missed_by(page, advice.use),
            facts=facts,
            warnings=tables.warnings(page),
            views=views,
            axis=axis,
            costs=tables.cost_table(page),
            means=both_widths(lambda width: _means(page, width)),
            forest=both_widths(lambda width: _forest(page, width)),
            differences=tables.difference_table(page),
            pairs_note=tables.pairs_note(page),
            meanings=_meanings(page, views),
            chunks=tables.chunk_table(page),
            problems=tables.problem_table(page),
            tuning=_tuning(page.tuning) if page.tuning else None,
        )
    )


def _tuning(tuning: Tuning) -> dict[str, Any]:
    plot = both_widths(lambda width: option_plot(tuning, width=width))
    return {"verdict": tuning.verdict, "tables": tables.tuning_tables(tuning), "plot": plot}


def questions(page: ReportPage, documents: Mapping[str, int]) -> dict[str, Any]:
    """The data that the page's script reads first: questions, evidence, and shares found in percent.

    It has no questions if no system has per-depth results. `documents` has the listed ones' numbers in the viewer.
    """
    benchmark = page.benchmark
    ks = [k for k in page.ks if any(k in report.found for report in page.reports)]
    queries = benchmark.queries if benchmark and ks else ()
    longest = min(EXCERPT, EXCERPTS // max(1, sum(len(query.evidence) for query in queries)))
    sources = {document.id: document for document in benchmark.documents} if benchmark else {}
    rows = [{query: row for row, query in enumerate(report.query_ids)} for report in page.reports]

    def evidence(piece: Evidence) -> list[Any]:
        """Document, start, end, excerpt, and the document's number in the viewer (-1: not listed)."""
        span, name = piece.span, piece.document_id
        excerpt = page_text(sources[name].text[span.start : min(span.end, span.start + longest)])
        shown = f"{excerpt} […]" if len(span) > longest else excerpt
        return [page_text(name), span.start, span.end, shown, documents.get(name, -1)]

    def found(query: Query, k: Depth) -> list[list[int | None]]:
        pairs = [
            (report.found.get(k, ()), at.get(query.id))
            for report, at in zip(page.reports, rows, strict=True)
        ]
        return [
            [whole_percent(share) for share in shares[row]]
            if row is not None and row < len(shares)
            else []
            for shares, row in pairs
        ]

    def question(query: Query) -> dict[str, Any]:
        answer = query.metadata.get("answer")
        return {
            "id": page_text(query.id),
            "text": page_text(query.text),
            "collection": page_text(query.collection),
            "answer": page_text(answer) if isinstance(answer, str) else "",
            "evidence": [evidence(piece) for piece in query.evidence],
            "found": [found(query, k) for k in ks],
        }

    return {
        "systems": [page_text(report.name) for report in page.reports],
        "ks": [str(k) for k in ks],
        "questions": [question(query) for query in queries],
    }


def whole_percent(share: float) -> int | None:
    """A share as whole percent; only exact 0 and 1 become 0 and 100. None for NaN.

    >>> whole_percent(0.001), whole_percent(0.999), whole_percent(1.0), whole_percent(math.nan)
    (1, 99, 100, None)
    """
    if math.isnan(share):
        return None
    if share <= 0:
        return 0
    return 100 if share >= 1 else min(99, max(1, round(100 * share)))


def _meanings(page: ReportPage, views: list[dict[str, Any]]) -> list[tuple[str, str]]:
    columns = (column for view in views for column in view["scores"].columns)
    meanings = list(
        dict.fromkeys((column.title, column.meaning) for column in columns if column.meaning)
    )
    if "min" in page.ks:
        meanings.append(
            (
                "k = min",
                "For each question, as many pieces as there are chunks that hold its evidence.",
            )
        )
    if budgets := [str(k) for k in page.ks if budget_of(k) is not None]:
        means = "The best pieces until so many tokens are retrieved; the last one is cut there."
        meanings.append((", ".join(budgets), means))
    return meanings


def _view(page: ReportPage, k: Depth, unit: Unit, axis: tables.CostAxis | None) -> dict[str, Any]:
    """The scores, plots and collections at one k in one unit, which the page's switches select."""
    retrieved = _size_axis(page, k)
    return {
        "k": str(k),
        "unit": unit,
        "against": retrieved.title,
        "shown": k == page.chosen_k and unit == page.comparison.measure.unit,
        "scores": tables.score_table(page, k, unit),
        "collections": tables.collection_table(page, k, unit),
        "plot": both_widths(lambda width: _scatter(page, k, unit, retrieved, width)),
        "cost_plot": axis and both_widths(lambda width: _scatter(page, k, unit, axis, width)),
    }


def _size_axis(page: ReportPage, k: Depth) -> tables.CostAxis:
    """Retrieved tokens; where all retrieve the same budget, the size of chunks, which tells them apart."""
    sizes = tuple(report.chunks.mean if report.chunks else math.nan for report in page.reports)
    if budget_of(k) is not None and any(map(math.isfinite, sizes)):
        return tables.CostAxis("size of chunks", "Mean tokens of a chunk", "tokens a chunk", sizes)
    tokens = tuple(report.mean_tokens(k) for report in page.reports)
    return tables.CostAxis("retrieved tokens", "Tokens retrieved per question", "tokens", tokens)


def _scatter(page: ReportPage, k: Depth, unit: Unit, axis: tables.CostAxis, width: int) -> str:
    measure = (page.measures(k, unit) or [page.comparison.measure])[0]
    points = []
    for (number, report), value in zip(page.systems, axis.values, strict=True):
        low, high = page.interval(report, measure)
        points.append(
            plots.Point(
                number, report.name, value, 100 * mean(report, measure), 100 * low, 100 * high
            )
        )
    return plots.scatter(
        points,
        width=width,
        x_label=axis.label,
        y_label=f"{measure}, %",
        title=f"{measure} against {axis.title}, a point a system",
        x_unit=axis.unit,
    )


def _means(page: ReportPage, width: int) -> str:
    """Every system's mean and interval by the verdict's measure; filled marks may be the best."""
    comparison, measure = page.comparison, page.comparison.measure
    rows, notes = [], []
    for number, report in page.systems:
        value, (low, high) = (
            mean(report, measure),
            comparison.intervals.get(report.name, (math.nan, math.nan)),
        )
        if math.isfinite(value):
            tied = report.name in comparison.tied
            rows.append(plots.Row(number, report.name, 100 * value, 100 * low, 100 * high, tied))
            share = comparison.firsts.get(report.name, 0)
            notes.append(f"first in {100 * share:.0f} %" if share >= 0.005 else "")
    return plots.intervals(
        rows,
        width=width,
        x_label=f"{measure}{', %' if measure.is_share else ' × 100'}",
        title=f"Mean {measure} of every system, with its {page.level} interval",
        notes=notes if len(rows) > 1 else (),
    )


class Drawing(str):
    """An SVG picture that shows itself in a notebook."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"Drawing({len(self):,} characters of SVG)"

    def _repr_html_(self) -> str:
        # An image keeps its styles to itself, and runs nothing.
        return f'<img alt="" src="data:image/svg+xml;base64,{base64.b64encode(self.encode()).decode()}">'


def plot(result: object) -> Drawing:
    """The picture of a comparison, report, tuning, chunked corpus, list of chunks or list of hits, for a notebook.

    Raises `DataError`: another result.
    """
    if isinstance(result, RankedList):
        svg = _places(result)
    elif isinstance(result, ChunkedCorpus | Chunks):
        tokens = [chunk.token_count for chunk in result]
        limit = plots.ticks(0, max(tokens, default=1))[-1]
        svg = plots.histogram(
            tokens, limit=limit, width=560, height=200, title="Tokens of each chunk"
        )
    elif isinstance(result, Tuning):
        svg = option_plot(result, width=860) or _means(
            ReportPage(compare(result.shown, result.measure)), 860
        )
    elif isinstance(result, Comparison | Report):
        svg = _means(ReportPage(compare([result]) if isinstance(result, Report) else result), 860)
    else:
        kind = type(result).__name__
        raise DataError(
            f"there is no plot of a {kind}: give a comparison, report, tuning, chunks or hits"
        )
    css = assets("page.css")  # the page's colours, outside the page
    colours = css.partition("* {")[0] + "".join(
        line for line in css.splitlines() if line.startswith("svg")
    )
    head, end, rest = svg.partition(">")
    return Drawing(f"{head}{end}<style>{colours}</style>{rest}")


def _places(hits: RankedList) -> str:
    """Where in their documents the pieces' parts lie, the better the darker."""
    parts = [part for part in hits.parts if part.spans]
    low, high = (edge((part.score for part in parts), default=0.0) for edge in (min, max))
    rows: dict[str, list[plots.Stretch]] = {}
    for part in parts:
        share = (part.score - low) / (high - low) if high > low else 1.0
        tip = f"{part.score:.4g}: {part.text}"
        rows.setdefault(part.document_id, []).extend(
            plots.Stretch(span.start, span.end, share, tip) for span in part.spans
        )
    return plots.stretches(rows, width=860, title="Where in their documents the pieces lie")


def _forest(page: ReportPage, width: int) -> str:
    top, *others = page.systems
    rows = []
    for number, report in others:
        gap = page.comparison.between(report.name, top.report.name)
        if math.isfinite(gap.mean) and math.isfinite(gap.low):
            rows.append(
                plots.Row(
                    number, report.name, 100 * gap.mean, 100 * gap.low, 100 * gap.high, gap.distinct
                )
            )
    return plots.intervals(
        rows,
        width=width,
        x_label=f"points of {page.comparison.measure} from system 1",
        title=f"Difference of every other system from {top.report.name}, in points of {page.comparison.measure}",
        differences=True,
    )


def option_plot(tuning: Tuning, *, width: int) -> str:
    """The measure against each option of a chunker that varies, a line a retriever and other options; "" if none."""
    tried: dict[tuple[str, str], dict[str, None]] = {}  # by chunker and option, its values in order
    for configuration in tuning.configurations.values():
        chunker, options = split_spec(configuration.chunker)
        for option, value in options.items():
            tried.setdefault((chunker, option), {})[str(value)] = None
    shown = []
    for (chunker, option), values in tried.items():
        lines: dict[str, dict[str, float]] = {}
        for report in tuning.reports:
            system = tuning.configurations[report.name]
            name, chosen = split_spec(system.chunker)
            if name == chunker and option in chosen:
                others = ", ".join(
                    f"{key}={value}" for key, value in chosen.items() if key != option
                )
                line = lines.setdefault(system_name(system.retriever, others), {})
                line[str(chosen[option])] = 100 * report.mean(tuning.measure)
        numbers = all(re.fullmatch(r"[\d.]+", value) for value in values)
        labels = sorted(values, key=float) if numbers else list(values)
        drawn = {
            name: [line.get(value, math.nan) for value in labels] for name, line in lines.items()
        }
        if len(labels) > 1:
            shown.append(plots.Panel(f"{option} of {chunker}", tuple(labels), drawn))
    return plots.panels(
        shown, width=width, title=f"{tuning.measure} in percent against each option that was varied"
    )
