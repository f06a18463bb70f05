"""The HTML report: one self-contained file; text from the data cannot run."""

from __future__ import annotations

import base64
import hashlib
import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from itertools import groupby
from typing import Any

from chunkcore.evaluation.benchmarks import Benchmark, Query
from chunkcore.evaluation.measures import Depth, budget_of
from chunkcore.evaluation.resampling import SHARES
from chunkcore.evaluation.results import Report
from chunkcore.files import installed_version
from chunkcore.lazy import needed
from chunkcore.plain import JsonObject, html_text, page_text, plain, script_json
from chunkcore.report import plots, tables
from chunkcore.report.advice import Advice, missed_by, recall_of
from chunkcore.report.tables import whole_percent
from chunkcore.report.viewer import viewer
from chunkcore.study.comparing import ReportPage


def policy(style: str, script: str) -> str:
    """The page's content security policy: no connection; only this style and script, by SHA-256."""

    def digest(text: str) -> str:
        hashed = hashlib.sha256(text.encode()).digest()
        return base64.b64encode(hashed).decode()

    sources = f"style-src 'sha256-{digest(style)}'; script-src 'sha256-{digest(script)}'"
    return f"default-src 'none'; {sources}; base-uri 'none'; form-action 'none'"


def assets(*names: str) -> str:
    """Files of this folder, concatenated."""
    folder = files("chunkcore.report")
    return "\n".join(folder.joinpath(name).read_text("utf-8") for name in names)


def require_jinja2() -> None:
    """Call before expensive work that ends in a page. Raises `MissingExtraError` if jinja2 is not installed."""
    needed("jinja2", "report", "write the HTML report")


@cache
def template(name: str, escape: Callable[[str], str]) -> Any:
    """A template of this folder; each text that enters it is escaped, except our own markup.

    Raises `MissingExtraError` if jinja2 is not installed.
    """
    require_jinja2()
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: markup(escape(value)) if type(value) is str else value,
        loader=FunctionLoader(assets),
    )
    environment.filters |= {
        "headings": _headings,
        "breakable": _breakable,
        "fenced": _fenced,
        "whole_percent": whole_percent,
    }
    return environment.get_template(name)


def _headings(columns: Sequence[tables.Column]) -> list[tuple[str, int]]:
    """Groups of neighbouring columns, each with the number it spans."""
    groups = groupby(column.group for column in columns)
    return [(group, len(list(members))) for group, members in groups]


def _breakable(name: str) -> Any:
    """A name with line breaks allowed after colons and commas."""
    return markup("<wbr>".join(map(html_text, re.split(r"(?<=[:,])", name))))


def _fenced(text: str) -> Any:
    """Code for Markdown."""
    fence = "```"
    while fence in text:
        fence += "`"
    return markup(f"{fence}\n{text}\n{fence}")


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
    data = plain(
        questions(page, shown.documents) | {"documents": shown.index},
        lambda value: page_text(value) if isinstance(value, str) else value,
    )
    return str(
        template("page.html.jinja", html_text).render(
            **contents(page),
            policy=policy(style, script),
            style=markup(style),
            script=markup(script),
            data=markup(script_json(data)),
            packs=[(pack.name, markup(pack.text)) for pack in shown.packs],
            viewer_notes=shown.notes,
            version=installed_version(),
            curves=plots.curves(page),
            means=plots.means(page),
            shares=SHARES,
            meanings=_meanings(page),
        )
    )


def contents(page: ReportPage) -> JsonObject:
    """What the page and Markdown show alike."""
    views = [(k, unit) for unit in page.units for k in page.ks]
    advice = Advice.of(page)
    return {
        "page": page,
        "advice": advice,
        "missed": missed_by(page, advice.use),
        "warnings": tables.warnings(page),
        "views": [(*view, tables.score_table(page, *view)) for view in views],
        "differences": tables.difference_table(page),
        "collections": tables.collection_table(page),
        "problems": tables.problem_table(page),
        "tuning_tables": tables.tuning_tables(page.tuning),
    }


def questions(page: ReportPage, documents: Mapping[str, int]) -> JsonObject:
    """The data that the page's script reads first: questions, evidence, and shares found in percent.

    It has no questions if no system has per-depth results. `documents` has the listed ones' numbers in the viewer.
    """
    benchmark, reports = page.benchmark, page.reports
    ks = [k for k in page.ks if any(k in report.found for report in reports)]
    rows = []
    if benchmark and ks:
        numbers = {query: number for number, query in enumerate(reports[0].query_ids)}
        pieces = sum(len(query.evidence) for query in benchmark.queries)
        longest = min(EXCERPT, EXCERPTS // max(1, pieces))
        for query in benchmark.queries:
            answer = query.metadata.get("answer")
            row = {
                "id": query.id,
                "text": query.text,
                "collection": query.collection,
                "answer": answer if isinstance(answer, str) else "",
                "evidence": _evidence(benchmark, query, documents, longest),
                "found": [_found(reports, k, numbers.get(query.id)) for k in ks],
            }
            rows.append(row)
    systems = [report.name for report in reports]
    return {"systems": systems, "ks": list(map(str, ks)), "questions": rows}


def _evidence(
    benchmark: Benchmark, query: Query, documents: Mapping[str, int], longest: int
) -> list[list[Any]]:
    """Document, start, end and excerpt of each piece, and the document's number in the viewer."""
    evidence = []
    for piece in query.evidence:
        name, span = piece.document_id, piece.span
        excerpt = span.slice(benchmark.document(name).text)
        if len(excerpt) > longest:
            excerpt = f"{excerpt[:longest]} […]"
        evidence.append([name, span.start, span.end, excerpt, documents.get(name, -1)])
    return evidence


def _found(reports: Sequence[Report], k: Depth, number: int | None) -> list[list[int | None]]:
    """Of each system, the share found of a question's evidence and of each piece of it, in percent."""
    found = []
    for report in reports:
        shares = [math.nan]
        if number is not None and k in report.found:
            shares = [recall_of(report, k, number), *report.found[k][number]]
        found.append(list(map(whole_percent, shares)))
    return found


def _meanings(page: ReportPage) -> dict[str, str]:
    """What the columns and depths mean."""
    measures = [measure for report in page.reports for measure in report.scores]
    meanings = {measure.title: measure.meaning for measure in measures}
    if "min" in page.ks:
        most = "For each question, as many pieces as there are chunks that hold its evidence."
        meanings["k = min"] = most
    budgets = ", ".join(str(k) for k in page.ks if budget_of(k))
    if budgets:
        best = "The best pieces until so many tokens are retrieved; the last one is cut there."
        meanings[budgets] = best
    return meanings
