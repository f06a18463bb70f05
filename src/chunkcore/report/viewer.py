"""The data of the page's viewer: documents, each system's chunks, and the hits of each question."""

from __future__ import annotations

import base64
import json
import math
import zlib
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, NamedTuple, get_args

import numpy as np

from chunkcore.evaluation.benchmarks import Benchmark
from chunkcore.evaluation.measures import budget_of
from chunkcore.evaluation.results import Report
from chunkcore.plain import JsonObject, page_text
from chunkcore.report.tables import FOUND_BY
from chunkcore.run import MatchKind, Retrieved, Run
from chunkcore.spans import Ranges, union_ranges
from chunkcore.study.comparing import ReportPage
from chunkcore.text import Document, page_marks


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
        packs = [
            packed(f"answers-{number}", _answered(benchmark, run, documents, depth, pool))
            if run
            else None
            for number, run in enumerate(runs)
        ]
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
