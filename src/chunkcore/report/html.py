"""The HTML report: one self-contained file; text from the data cannot run. The page, its plots, its viewer's data."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import accumulate, chain, groupby
from typing import Any, NamedTuple, get_args

import numpy as np

from chunkcore.evaluation.benchmarks import Benchmark, Query
from chunkcore.evaluation.measures import Depth, budget_of
from chunkcore.evaluation.resampling import SHARES, CurvePoint
from chunkcore.evaluation.results import Report
from chunkcore.files import installed_version
from chunkcore.lazy import needed
from chunkcore.plain import JsonObject, html_text, page_text, plain, script_json
from chunkcore.report import tables
from chunkcore.report.advice import Advice, missed_by, recall_of
from chunkcore.report.tables import FOUND_BY, whole_percent
from chunkcore.run import MatchKind, Retrieved, Run
from chunkcore.spans import Ranges, union_ranges
from chunkcore.study.comparing import ReportPage
from chunkcore.text import Document, page_marks


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
    measures = [measure for report in page.reports for measure in report.scores]
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
            curves=curves(page),
            means=means(page),
            shares=SHARES,
            meanings={measure.title: measure.meaning for measure in measures},
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


# ---- the plots

# matplotlib is large and draws text as outlines, which search and screen readers miss; vega, plotly and bokeh add
# megabytes of script to a page. Colours and fonts come from the page's stylesheet by class; numbers on the marks serve
# readers without colour.

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


# ---- the viewer: documents, each system's chunks, and the hits of each question


class Pack(NamedTuple):
    """A data element of the page: its id, and base64 text, which is inert in HTML."""

    name: str
    text: str


def packed(name: str, value: Any) -> Pack:
    """`value` as a pack for the page's ``unpack``. Its text must have passed `page_text`; NaN raises ValueError."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    compressed = zlib.compress(text.encode())
    encoded = base64.b64encode(compressed)
    return Pack(name, encoded.decode())


# ---- the documents

TEXT_ROOM = 13_000_000  # characters of the page


class Place(NamedTuple):
    """A range of a document to keep; `rank` is 0 for evidence, else the hit's rank."""

    document: int
    start: int
    end: int
    rank: int = 0


class Excerpts(NamedTuple):
    """The kept text of documents, a pack each (a list of start, text, start, text …), and their ascending numbers."""

    numbers: list[int]
    packs: list[Pack]
    note: str = ""


# What of large documents is kept: evidence and so many hits of a question, and how many characters around.
_DEEPEST = 10
_WINDOWS = ((_DEEPEST, 1000), (_DEEPEST, 100), (3, 100), (0, 500))


def excerpts(
    documents: Sequence[Document], places: Collection[Place], room: int = TEXT_ROOM
) -> Excerpts:
    """Whole documents if they fit into `room` characters of the page, else the widest windows that fit.

    None is carried if not even the evidence fits; the note says so.
    """
    whole = {number: np.array([[0, doc.size]]) for number, doc in enumerate(documents)}
    carried = _fitting(documents, whole, room)
    for deepest, margin in _WINDOWS:
        if carried:
            return carried
        kept = "evidence"
        if deepest:
            kept += f" and what was retrieved at ranks 1 to {deepest}"
        note = f"The documents are too large for one page: it has {kept}, with {margin:,} characters around."
        carried = _fitting(documents, _kept(documents, places, deepest, margin), room, note)
    return carried or Excerpts([], [], "The documents are too large for this page.")


def _kept(
    documents: Sequence[Document], places: Collection[Place], deepest: int, margin: int
) -> dict[int, Ranges]:
    """By document number, in order: the kept ranges of each document with a place."""
    table = np.array(list(places), dtype=np.int64).reshape(-1, len(Place._fields))
    kept = {}
    for number in np.unique(table[:, 0]).tolist():
        is_kept = (table[:, 0] == number) & (table[:, 3] <= deepest)
        wide = table[is_kept, 1:3] + (-margin, margin)
        kept[number] = union_ranges(wide.clip(0, documents[number].size))
    return kept


def _fitting(
    documents: Sequence[Document], kept: Mapping[int, Ranges], room: int, note: str = ""
) -> Excerpts | None:
    """These ranges, packed; None as soon as they take more room."""
    packs: list[Pack] = []
    for number, ranges in kept.items():
        parts = []
        for start, end in ranges.tolist():
            parts += [start, page_text(documents[number].text[start:end])]
        packs.append(packed(f"text-{len(packs)}", parts))
        room -= len(packs[-1].text)
        if room < 0:
            return None
    return Excerpts(list(kept), packs, note)


def _places(benchmark: Benchmark, runs: Sequence[Run | None]) -> set[Place]:
    """The evidence, and the first hits of every question."""
    numbers = {document.id: number for number, document in enumerate(benchmark.documents)}
    places = set()
    for query in benchmark.queries:
        for piece in query.evidence:
            places.add(Place(numbers[piece.document_id], piece.span.start, piece.span.end))
        for run in filter(None, runs):
            hits = run.results.get(query.id, ())
            for rank, hit in enumerate(hits[:_DEEPEST], 1):
                if hit.document_id in numbers:
                    at = numbers[hit.document_id]
                    places |= {Place(at, span.start, span.end, rank) for span in hit.spans}
    return places


# ---- the answers

ANSWER_ROOM = 7_000_000  # characters of the page, all systems together
MATCHES: tuple[MatchKind, ...] = get_args(MatchKind)
TEXT = 400  # characters kept of a text that is not in the documents
POOL = 250_000  # chunks of the listed documents, all systems together, that a browser can draw

# How many hits of each question are kept, and whether chunks that were never retrieved are.
_SHARES = ((50, True), (50, False), (10, False), (3, False))


class PackedAnswers(NamedTuple):
    """The packed hits of each run (None without a run), and a note on what was left out."""

    packs: list[Pack | None]
    note: str = ""


def answers(
    benchmark: Benchmark,
    runs: Sequence[Run | None],
    documents: Mapping[str, int],
    room: int = ANSWER_ROOM,
) -> PackedAnswers:
    """Every run's chunks and hits, as many as fit into `room` characters of the page.

    `documents` has the numbers of the listed ones.
    """
    deepest = chunks = 0
    for kept in filter(None, runs):
        deepest = max(deepest, *map(len, kept.results.values()), 0)
        chunks += len(kept.pool or ())
    for depth, pool in _SHARES:
        if pool and chunks > POOL:
            continue
        packs: list[Pack | None] = [None] * len(runs)
        for number, run in enumerate(runs):
            if run:
                answered = _answered(benchmark, run, documents, depth, pool)
                packs[number] = packed(f"answers-{number}", answered)
        if sum(len(pack.text) for pack in packs if pack) > room:
            continue
        return PackedAnswers(packs, _note(depth, deepest, pool))
    note = "There are too many answers for one page: none is shown."
    return PackedAnswers([None] * len(runs), note)


def _note(depth: int, deepest: int, pool: bool) -> str:
    """What a page does not show."""
    notes = []
    if not pool:
        notes.append("There are too many chunks for one page: only retrieved ones are drawn.")
    if deepest > depth:
        notes.append(f"Of each answer the first {depth} pieces are shown.")
    return " ".join(notes)


def _answered(
    benchmark: Benchmark, run: Run, documents: Mapping[str, int], depth: int, pool: bool
) -> JsonObject:
    """Pieces, and of each question how many it retrieved, and the first ones.

    A piece is its document's number, its number there, start, length, start …, and its text if the document lacks it; a
    retrieved one is the piece's place in the list, score, kind of match, certainty in percent, and the start, length
    and score of each part. Pieces of one place are one, whatever their text.
    """
    pieces: list[list[Any]] = []
    numbers: dict[object, int] = {}
    counts: Counter[str] = Counter()
    chunks = run.pool if pool else None
    # All of the listed documents, the same place again as often as it is there.
    for piece in chunks or ():
        counts[piece.document_id] += 1
        if piece.document_id in documents:
            numbers.setdefault(_place(piece), len(pieces))
            pieces.append(_row(piece, documents, counts[piece.document_id]))
    answered = []
    for query in benchmark.queries:
        hits = run.results.get(query.id, ())
        rows = []
        for piece in hits[:depth]:
            at = numbers.setdefault(_place(piece), len(pieces))
            if at == len(pieces):
                pieces.append(_row(piece, documents, 0))
            listed = piece.document_id in documents
            text = benchmark.document(piece.document_id).text if listed else ""
            pieces[at][3] = pieces[at][3] or _unlike(piece, text)
            how = MATCHES.index(piece.match)
            sure = round(100 * piece.certainty)
            rows.append([at, _rounded(piece.score), how, sure, _scored_parts(piece)])
        answered.append([len(hits), rows])
    return {"pool": chunks is not None, "pieces": pieces, "answers": answered}


def _row(piece: Retrieved, documents: Mapping[str, int], count: int) -> list[Any]:
    document = documents.get(piece.document_id, -1)
    places = []
    if document >= 0:
        for span in piece.spans:
            places += [span.start, len(span)]
    return [document, count, places, ""]


def _place(piece: Retrieved) -> object:
    return (piece.document_id, piece.spans) if piece.spans else piece.text


def _scored_parts(piece: Retrieved) -> list[float]:
    """Start, length and score of each part, one after another."""
    values = []
    for part in piece.parts:
        score = _rounded(part.score) or 0.0
        for span in part.spans:
            values += [span.start, len(span), score]
    return values


def _unlike(piece: Retrieved, document: str) -> str:
    """The retrieved text if it differs from the document's at its spans, else ""."""
    texts = [span.slice(document) for span in piece.spans]
    if document and texts and all(text in piece.text for text in texts):
        return ""
    text = piece.text
    if len(text) > TEXT:
        text = f"{text[:TEXT]} […]"
    return page_text(text)


def _rounded(score: float) -> float | None:
    return float(f"{score:.4g}") if math.isfinite(score) else None


# ---- both


@dataclass(frozen=True)
class Viewer:
    """The viewer's data: `index` is read at once, `packs` are unpacked on demand; `notes` say what was left out."""

    index: JsonObject | None
    packs: Sequence[Pack]
    documents: Mapping[str, int]
    notes: Sequence[str]


def viewer(page: ReportPage) -> Viewer:
    """The viewer's data; nothing without a benchmark."""
    benchmark = page.benchmark
    if not benchmark:
        return Viewer(None, (), {}, ())
    runs = [report.run for report in page.reports]
    carried = excerpts(benchmark.documents, _places(benchmark, runs))
    listed = [benchmark.documents[number] for number in carried.numbers]
    numbers = {document.id: at for at, document in enumerate(listed)}
    packed_answers = answers(benchmark, runs, numbers)
    packs = [*carried.packs, *filter(None, packed_answers.packs)]
    notes = filter(None, [carried.note, packed_answers.note])
    within = {}
    for k in page.ks:
        budget = budget_of(k)
        if budget:
            within[k] = [_within(report, benchmark, budget) for report in page.reports]
    index = {
        "ids": list(numbers),
        "sizes": [document.size for document in listed],
        "pages": {at: _pages(document) for at, document in enumerate(listed) if document.marks},
        "answers": [pack.name if pack else "" for pack in packed_answers.packs],
        "hows": [FOUND_BY[match] for match in MATCHES],
        "within": within,
    }
    return Viewer(index, packs, numbers, list(notes))


def _pages(document: Document) -> list[int]:
    """Start, end and number of each page, one after another."""
    values = []
    for page in page_marks(document.marks):
        values += [page.span.start, page.span.end, page.data["number"]]
    return values


def _within(report: Report, benchmark: Benchmark, budget: int) -> list[int] | None:
    """How many of each question's pieces the budget holds; None where the tokens of chunks are unknown, or too many."""
    run, chunks = report.run, report.chunks
    if not run or run.pool is None or not chunks or chunks.count > POOL:
        return None
    sizes = chunks.tokens.tolist()
    tokens = {_place(piece): size for piece, size in zip(run.pool, sizes, strict=True)}
    counts = []
    for query in benchmark.queries:
        hits = run.results.get(query.id, ())
        before = accumulate((tokens.get(_place(hit), 0) for hit in hits), initial=0)
        held = sum(size < budget for size in before)
        counts.append(min(held, len(hits)))
    return counts
