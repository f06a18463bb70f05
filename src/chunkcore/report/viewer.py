"""The data of the page's viewer: documents, each system's chunks, and the hits of each question."""

from __future__ import annotations

import base64
import json
import math
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np

from chunkcore.concurrency import batches_of
from chunkcore.escaping import page_text
from chunkcore.evaluation.benchmarks.benchmark import Benchmark
from chunkcore.evaluation.measures import budget_of
from chunkcore.evaluation.results import Report
from chunkcore.report.tables import FOUND_BY
from chunkcore.run import MatchKind, Retrieved, Run
from chunkcore.spans import Ranges, union_ranges
from chunkcore.study.comparing import ReportPage
from chunkcore.text import Document, Span, page_marks


@dataclass(frozen=True, slots=True)
class Pack:
    """A data element of the page: its id, and base64 text, which is inert in HTML."""

    name: str
    text: str


def packed(name: str, value: Any) -> Pack:
    """`value` as a pack for the page's ``unpack``. Its text must have passed `page_text`; NaN raises ValueError."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Pack(name, base64.b64encode(zlib.compress(text.encode("utf-8"), 6)).decode("ascii"))


TEXT_ROOM = 13_000_000  # characters of the page
SHELF = 200_000  # characters of text unpacked together


@dataclass(frozen=True, slots=True)
class Place:
    """A range of a document to keep; `rank` is 0 for evidence, else the hit's rank."""

    document: int
    start: int
    end: int
    rank: int = 0


@dataclass(frozen=True)
class Excerpts:
    """The kept text of documents: the numbers of the listed ones, ascending.

    A shelf packs a list of documents, each a list of start, text, start, text …; `firsts` are the shelves' first ones.
    """

    numbers: list[int]
    shelves: list[Pack]
    firsts: list[int]
    note: str = ""


@dataclass(frozen=True, slots=True)
class _Windows:
    """What of a large document is kept: evidence and the `deepest` hits, with a margin around."""

    deepest: int
    margin: int

    def note(self) -> str:
        kept = "evidence"
        if self.deepest:
            kept += f" and what was retrieved at ranks 1 to {self.deepest}"
        return f"The documents are too large for one page: it has {kept}, with {self.margin:,} characters around."


_WINDOWS = (_Windows(10, 1000), _Windows(10, 100), _Windows(3, 100), _Windows(0, 500))


def excerpts(
    documents: Sequence[Document], places: Sequence[Place], room: int = TEXT_ROOM
) -> Excerpts:
    """Whole documents if they fit into `room` characters of the page, else the widest windows that fit.

    None is carried if not even the evidence fits; the note says so.
    """
    whole = {}
    for number, document in enumerate(documents):
        whole[number] = np.array([[0, document.size]], dtype=np.int64)
    carried = _fitting(documents, whole, room)
    for windows in _WINDOWS:
        if carried is None:
            carried = _fitting(documents, _kept(documents, places, windows), room, windows.note())
    return carried or Excerpts([], [], [], "The documents are too large for this page.")


def _kept(
    documents: Sequence[Document], places: Iterable[Place], windows: _Windows
) -> dict[int, Ranges]:
    """By document number, in order: the kept ranges of each document with a place."""
    kept: dict[int, list[tuple[int, int]]] = {}
    for place in places:
        ranges = kept.setdefault(place.document, [])
        if place.rank <= windows.deepest:
            start = max(0, place.start - windows.margin)
            end = min(documents[place.document].size, place.end + windows.margin)
            ranges.append((start, end))
    joined = {}
    for number, ranges in sorted(kept.items()):
        joined[number] = union_ranges(np.array(ranges, dtype=np.int64).reshape(-1, 2))
    return joined


def _fitting(
    documents: Sequence[Document], kept: Mapping[int, Ranges], room: int, note: str = ""
) -> Excerpts | None:
    """These ranges, packed; None as soon as they take more room."""
    shelves: list[Pack] = []
    firsts: list[int] = []
    listed = 0
    parts = (_parts(documents[number].text, ranges) for number, ranges in kept.items())
    for shelf in batches_of(parts, _size, SHELF):
        shelves.append(packed(f"texts-{len(shelves)}", shelf))
        firsts.append(listed)
        listed += len(shelf)
        room -= len(shelves[-1].text)
        if room < 0:
            return None
    return Excerpts(list(kept), shelves, firsts, note)


def _size(row: Sequence[int | str]) -> int:
    return sum(len(part) for part in row if isinstance(part, str))


def _parts(text: str, ranges: Ranges) -> list[int | str]:
    parts: list[int | str] = []
    for start, end in ranges.tolist():
        parts += [start, page_text(text[start:end])]
    return parts


ANSWER_ROOM = 7_000_000  # characters of the page, all systems together
MATCHES: tuple[MatchKind, ...] = get_args(MatchKind)
TEXT = 400  # characters kept of a text that is not in the documents
POOL = 250_000  # chunks of the listed documents, all systems together, that a browser can draw


@dataclass(frozen=True)
class PackedAnswers:
    """The packed hits of each run (None without a run), and a note on what was left out."""

    packs: list[Pack | None]
    note: str = ""


# How many hits of each question are kept, and whether chunks that were never retrieved are.
_SHARES = ((50, True), (50, False), (10, False), (3, False))


def answers(
    benchmark: Benchmark,
    runs: Sequence[Run | None],
    documents: Mapping[str, int],
    room: int = ANSWER_ROOM,
) -> PackedAnswers:
    """Every run's chunks and hits, as many as fit into `room` characters of the page.

    `documents` has the numbers of the listed ones.
    """
    made = [run for run in runs if run]
    deepest = max((len(hits) for run in made for hits in run.results.values()), default=0)
    chunks = sum(len(run.pool or ()) for run in made)
    for depth, pool in _SHARES:
        if pool and chunks > POOL:
            continue
        packs = _packs(benchmark, runs, documents, (depth, pool, room))
        if packs is None:
            continue
        notes = []
        if not pool:
            notes.append("There are too many chunks for one page: only retrieved ones are drawn.")
        if deepest > depth:
            notes.append(f"Of each answer the first {depth} pieces are shown.")
        return PackedAnswers(packs, " ".join(notes))
    nothing: list[Pack | None] = [None] * len(runs)
    return PackedAnswers(nothing, "There are too many answers for one page: none is shown.")


def _packs(
    benchmark: Benchmark,
    runs: Sequence[Run | None],
    documents: Mapping[str, int],
    share: tuple[int, bool, int],
) -> list[Pack | None] | None:
    """Each run, packed to a depth, with or without its pool; None if they take more room."""
    depth, pool, room = share
    packs: list[Pack | None] = []
    for number, run in enumerate(runs):
        pack = None
        if run:
            pack = packed(f"answers-{number}", _columns(benchmark, run, documents, depth, pool))
            room -= len(pack.text)
        packs.append(pack)
        if room < 0:
            return None
    return packs


def _columns(
    benchmark: Benchmark, run: Run, documents: Mapping[str, int], depth: int, pool: bool
) -> dict[str, Any]:
    pieces = _PieceRows(documents)
    chunks = run.pool if pool else None
    pieces.add_pool(chunks or ())
    sources = {document.id: document.text for document in benchmark.documents}
    results = [run.results.get(query.id, ()) for query in benchmark.queries]
    hits = [piece for row in results for piece in row[:depth]]  # one question after another
    columns = {
        "kept": [min(len(row), depth) for row in results],
        "found": list(map(len, results)),
        "piece": [pieces.number(piece, sources) for piece in hits],
        "score": [_rounded(piece.score) for piece in hits],
        "how": [MATCHES.index(piece.match) for piece in hits],
        "sure": [round(100 * piece.certainty) for piece in hits],
        "parts": [[number, _parts_of(piece)] for number, piece in enumerate(hits) if piece.parts],
    }
    return {"pool": chunks is not None, "pieces": pieces.columns(), "hits": columns}


class _PieceRows:
    """Distinct pieces in order of appearance: the pool first. Pieces of one place are one, whatever their text."""

    def __init__(self, documents: Mapping[str, int]) -> None:
        self._documents = documents
        self._numbers: dict[object, int] = {}
        self._rows: list[tuple[int, tuple[Span, ...], int]] = []  # document, spans, chunk number
        self._texts: dict[int, str] = {}

    def add_pool(self, pool: Sequence[Retrieved]) -> None:
        """Add the chunks of the listed documents, numbered from 1 in each."""
        counts: Counter[str] = Counter()
        for piece in pool:
            counts[piece.document_id] += 1
            if piece.document_id in self._documents:
                self._numbers.setdefault(_place(piece), len(self._rows))
                self._add(piece, counts[piece.document_id])

    def number(self, piece: Retrieved, sources: Mapping[str, str]) -> int:
        """The piece's row; its text is kept if the listed documents lack it."""
        key = _place(piece) if piece.spans else hash(piece.text)
        at = self._numbers.setdefault(key, len(self._rows))
        if at == len(self._rows):
            self._add(piece, 0)
        if at not in self._texts:
            is_listed = piece.document_id in self._documents
            text = _unlike(piece, sources[piece.document_id] if is_listed else "")
            if text:
                self._texts[at] = text
        return at

    def _add(self, piece: Retrieved, number: int) -> None:
        document = self._documents.get(piece.document_id, -1)
        self._rows.append((document, () if document < 0 else piece.spans, number))

    def columns(self) -> dict[str, Any]:
        """Differences between consecutive rows, which pack well."""
        spans = [span for _, row, _ in self._rows for span in row]
        return {
            "document": _steps(document for document, _, _ in self._rows),
            "number": _steps(number for _, _, number in self._rows),
            "spans": [len(row) for _, row, _ in self._rows],
            "start": _steps(span.start for span in spans),
            "length": [span.end - span.start for span in spans],
            "text": list(self._texts.items()),
        }


def _parts_of(passage: Retrieved) -> list[float]:
    """Start, length and score of each part, one after another."""
    values: list[float] = []
    for part in passage.parts:
        score = _rounded(part.score) or 0.0
        for span in part.spans:
            values += [span.start, span.end - span.start, score]
    return values


def _place(piece: Retrieved) -> tuple[str, tuple[Span, ...]]:
    return piece.document_id, piece.spans


def _unlike(piece: Retrieved, document: str) -> str:
    """The retrieved text if it differs from the document's at its spans, else ""."""
    if not piece.text:
        return ""
    texts = [span.slice(document) for span in piece.spans]
    if document and texts and all(text in piece.text for text in texts):
        return ""
    if len(piece.text) <= TEXT:
        return page_text(piece.text)
    return page_text(f"{piece.text[:TEXT]} […]")


def _rounded(score: float) -> float | None:
    return float(f"{score:.4g}") if math.isfinite(score) else None


def _steps(values: Iterable[int]) -> list[int]:
    """The first value, then the differences."""
    return [int(step) for step in np.diff(np.fromiter(values, dtype=np.int64), prepend=0)]


@dataclass(frozen=True)
class Viewer:
    """The viewer's data: `index` is read at once, `packs` are unpacked on demand; `notes` say what was left out."""

    index: dict[str, Any]
    packs: list[Pack]
    documents: Mapping[str, int]
    notes: list[str]


def viewer(page: ReportPage) -> Viewer | None:
    """The viewer's data; None without a benchmark."""
    benchmark = page.benchmark
    if benchmark is None:
        return None
    runs = [report.run for report in page.reports]
    carried = excerpts(benchmark.documents, _places(benchmark, runs))
    listed = [benchmark.documents[number] for number in carried.numbers]
    numbers = {document.id: at for at, document in enumerate(listed)}
    packed_answers = answers(benchmark, runs, numbers)
    pages = {str(at): _pages(document) for at, document in enumerate(listed) if document.marks}
    within = {}
    for k in page.ks:
        budget = budget_of(k)
        if budget is not None:
            within[str(k)] = [_within(report, benchmark, budget) for report in page.reports]
    index = {
        "ids": [page_text(document.id) for document in listed],
        "sizes": [document.size for document in listed],
        "pages": pages,
        "shelves": carried.firsts,
        "answers": [pack.name if pack else "" for pack in packed_answers.packs],
        "hows": [FOUND_BY[match] for match in MATCHES],
        "within": within,
    }
    packs = [*carried.shelves, *filter(None, packed_answers.packs)]
    return Viewer(index, packs, numbers, list(filter(None, (carried.note, packed_answers.note))))


def _pages(document: Document) -> list[int]:
    """Start, end and number of each page, one after another."""
    pages = page_marks(document.marks)
    values: list[int] = []
    for page in pages:
        values += [page.span.start, page.span.end, page.data["number"]]
    return values


def _within(report: Report, benchmark: Benchmark, budget: int) -> list[int] | None:
    """How many of each question's pieces the budget holds; None where the tokens of chunks are unknown, or too many."""
    run, chunks = report.run, report.chunks
    if run is None or run.pool is None or chunks is None:
        return None
    if chunks.count != len(run.pool) or chunks.count > POOL:
        return None
    tokens = dict(zip(map(_place, run.pool), chunks.tokens.tolist(), strict=True))
    counts = []
    for query in benchmark.queries:
        sizes = [tokens.get(_place(piece), 0) for piece in run.results.get(query.id, ())]
        before = np.cumsum([0, *sizes])[:-1]
        counts.append(int(np.count_nonzero(before < budget)))
    return counts


def _places(benchmark: Benchmark, runs: Sequence[Run | None]) -> list[Place]:
    """The evidence, and the first hits of every question."""
    numbers = {document.id: number for number, document in enumerate(benchmark.documents)}
    places: dict[Place, None] = {}
    for query in benchmark.queries:
        for piece in query.evidence:
            span = piece.span
            places[Place(numbers[piece.document_id], span.start, span.end)] = None
    for run in filter(None, runs):
        for hits in run.results.values():
            for rank, hit in enumerate(hits[: _WINDOWS[0].deepest], 1):
                for span in hit.spans if hit.document_id in numbers else ():
                    at = numbers[hit.document_id]
                    places[Place(at, span.start, span.end, rank)] = None
    return list(places)
