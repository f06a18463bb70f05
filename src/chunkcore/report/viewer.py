"""The data of the page's viewer: documents, each system's chunks, and the hits of each question."""

from __future__ import annotations

import base64
import json
import math
import zlib
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np

from chunkcore.concurrency import batches_of
from chunkcore.document import Document, Span
from chunkcore.escaping import page_text
from chunkcore.evaluation.benchmarks.benchmark import Benchmark
from chunkcore.evaluation.measures import budget_of
from chunkcore.evaluation.results import Report
from chunkcore.report.page import ReportPage
from chunkcore.report.tables import FOUND_BY
from chunkcore.run import MatchKind, Retrieved, Run
from chunkcore.spans import Ranges, union_ranges


@dataclass(frozen=True, slots=True)
class Pack:
    """A data element of the page: its id, and base64 text, which is inert in HTML."""

    name: str
    text: str


def packed(name: str, value: Any) -> Pack:
    """`value` as a pack for the page's ``unpack``. Its text must have passed `page_text`; NaN raises ValueError.

    >>> pack = packed("numbers", [1, 2, 3])
    >>> zlib.decompress(base64.b64decode(pack.text))
    b'[1,2,3]'
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Pack(name, base64.b64encode(zlib.compress(text.encode("utf-8"), 6)).decode("ascii"))


TEXT_ROOM = 13_000_000  # characters of the page
SHELF = 200_000  # characters of text unpacked together
SAMPLE = 20, 50_000  # documents, and characters of each, sampled to estimate the packed size


@dataclass(frozen=True, slots=True)
class Place:
    """A range of a document to keep; `rank` is 0 for evidence, else the hit's rank."""

    document: int
    start: int
    end: int
    rank: int = 0


@dataclass(frozen=True)
class Excerpts:
    """The kept text of documents: the numbers of the listed ones, ascending, and of each the ranges that are kept.

    A shelf packs a list of documents, each a list of start, text, start, text …; `firsts` has the index in `numbers` of
    each shelf's first document.
    """

    numbers: list[int]
    ranges: list[Ranges]
    shelves: list[Pack]
    firsts: list[int]
    note: str = ""


@dataclass(frozen=True, slots=True)
class _Windows:
    deepest: int
    margin: int
    longest: int | None = None

    def note(self) -> str:
        kept = "the questions’ evidence"
        if self.longest is not None:
            kept = f"the first {self.longest:,} characters of each question’s evidence"
        if self.deepest:
            kept += f" and what was retrieved at ranks 1 to {self.deepest}"
        around = f", with {self.margin:,} characters around" if self.margin else ""
        return f"The documents are too large for one page: it carries {kept}{around}."


_WINDOWS = (
    *(_Windows(10, 1000), _Windows(10, 200), _Windows(10, 0), _Windows(5, 0), _Windows(3, 0), _Windows(1, 0)),
    *(_Windows(0, 500), _Windows(0, 100, 1000)),
)


def excerpts(documents: Sequence[Document], places: Sequence[Place], room: int = TEXT_ROOM) -> Excerpts:
    """Whole documents if they fit into `room` characters of the page, else the widest windows that fit.

    As a last resort the text is cut off; the note says so.
    """
    count, size = SAMPLE
    texts = [page_text(document.text[:size]) for document in documents[:: 1 + len(documents) // count]]
    density = len(packed("", texts).text) / max(1, sum(map(len, texts)))
    whole = {at: np.array([[0, document.size]], dtype=np.int64) for at, document in enumerate(documents)}
    if (found := _fitting(documents, whole, room, density)) is not None:
        return found
    for windows in _WINDOWS:
        kept = _kept(documents, places, windows)
        if (found := _fitting(documents, kept, room, density, windows.note())) is not None:
            return found
    return _first(documents, _kept(documents, places, _WINDOWS[-1]), room)


def _kept(documents: Sequence[Document], places: Iterable[Place], windows: _Windows) -> dict[int, Ranges]:
    """By document number, in order: the kept ranges of each document with a place."""
    found: dict[int, list[tuple[int, int]]] = {}
    for place in places:
        within = found.setdefault(place.document, [])
        if place.rank <= windows.deepest:
            end = place.end if windows.longest is None else min(place.end, place.start + windows.longest)
            size = documents[place.document].size
            within.append((max(0, place.start - windows.margin), min(size, end + windows.margin)))
    return {
        number: union_ranges(np.array(ranges, dtype=np.int64).reshape(-1, 2))
        for number, ranges in sorted(found.items())
    }


def _fitting(
    documents: Sequence[Document], kept: Mapping[int, Ranges], room: int, density: float, note: str = ""
) -> Excerpts | None:
    """These ranges, packed; None if they take more room."""
    listed, ranges = list(kept), list(kept.values())
    # Packing takes a second per ten million characters, so far too large inputs are not tried.
    if 0.8 * density * sum(int((each[:, 1] - each[:, 0]).sum()) for each in ranges) > room:
        return None
    shelves: list[Pack] = []
    firsts: list[int] = []
    used = at = 0
    parts = (_parts(documents[number].text, each) for number, each in kept.items())
    for shelf in batches_of(parts, lambda each: sum(len(part) for part in each if isinstance(part, str)), SHELF):
        shelves.append(packed(f"texts-{len(shelves)}", shelf))
        firsts.append(at)
        at += len(shelf)
        used += len(shelves[-1].text)
        if used > room:
            return None
    return Excerpts(listed, ranges, shelves, firsts, note)


def _first(documents: Sequence[Document], kept: Mapping[int, Ranges], room: int) -> Excerpts:
    """As much of the smallest windows as surely fits: at most 4 bytes a character, a third more in base64."""
    left = room // 6
    cut: dict[int, Ranges] = {}
    for number, ranges in kept.items():
        within = ranges[np.cumsum(ranges[:, 1] - ranges[:, 0]) <= left]
        cut[number] = within
        left -= int((within[:, 1] - within[:, 0]).sum())
    note = f"{_WINDOWS[-1].note()} Even so, not every document had room."
    found = _fitting(documents, cut, room, 0.0, note)
    return found or Excerpts([], [], [], [], "The documents are too large for this page.")


def _parts(text: str, ranges: Ranges) -> list[int | str]:
    parts: list[int | str] = []
    for start, end in ranges.tolist():
        parts += [start, page_text(text[start:end])]
    return parts


_Place = tuple[str, tuple[Span, ...]]

ANSWER_ROOM = 7_000_000  # characters of the page, all systems together
HOWS: tuple[MatchKind, ...] = get_args(MatchKind)
TEXT = 400  # characters kept of a text that is not in the documents
POOL = 250_000  # chunks of the listed documents, all systems together, that a browser can draw


@dataclass(frozen=True)
class PackedAnswers:
    """The packed hits of each run (None without a run), and a note on what was left out."""

    packs: list[Pack | None]
    note: str = ""


@dataclass(frozen=True, slots=True)
class _Share:
    """How many hits per question are kept, and whether never-retrieved chunks are."""

    depth: int
    pool: bool

    def note(self, *, deeper: bool) -> str:
        sentences = []
        if not self.pool:
            sentences.append("There are too many chunks for one page: those that were never retrieved are not drawn.")
        if deeper:
            sentences.append(f"Of each answer the first {self.depth} pieces are shown.")
        return " ".join(sentences)


_SHARES = (_Share(50, True), _Share(50, False), _Share(10, False), _Share(3, False))


def answers(
    benchmark: Benchmark, runs: Sequence[Run | None], documents: Mapping[str, int], room: int = ANSWER_ROOM
) -> PackedAnswers:
    """Every run's chunks and hits, as many as fit into `room` characters of the page.

    `documents` has the numbers of the listed ones.
    """
    deepest = max((len(found) for run in runs if run for found in run.results.values()), default=0)
    pools = [run.pool for run in runs if run and run.pool is not None]
    too_many = (
        sum(map(len, pools)) > POOL and sum(piece.document_id in documents for pool in pools for piece in pool) > POOL
    )
    for share in _SHARES[1:] if too_many else _SHARES:
        packs, left = [], room
        for number, run in enumerate(runs):
            pack = packed(f"answers-{number}", _columns(benchmark, run, documents, share)) if run else None
            packs.append(pack)
            left -= len(pack.text) if pack else 0
            if left < 0:
                break
        else:
            return PackedAnswers(packs, share.note(deeper=deepest > share.depth))
    return PackedAnswers([None] * len(runs), "There are too many answers for one page: none is shown.")


def _columns(benchmark: Benchmark, run: Run, documents: Mapping[str, int], share: _Share) -> dict[str, Any]:
    pieces = _PieceRows(documents)
    if run.pool is not None and share.pool:
        pieces.add_pool(run.pool)
    elif run.pool is not None:
        pieces.number_pool(run.pool, {_place(piece) for each in run.results.values() for piece in each[: share.depth]})
    sources = {document.id: document for document in benchmark.documents}
    results = [run.results.get(query.id, ()) for query in benchmark.queries]
    hits = [piece for each in results for piece in each[: share.depth]]  # of all questions, one after another
    numbers = [pieces.number(piece, sources) for piece in hits]
    found, kept = [len(each) for each in results], [min(len(each), share.depth) for each in results]
    hows, sure = [HOWS.index(piece.match) for piece in hits], [round(100 * piece.certainty) for piece in hits]
    columns = {
        "kept": kept,
        "found": [] if found == kept else found,
        "piece": numbers,
        "score": [_rounded(piece.score) for piece in hits],
        "how": hows if any(hows) else [],  # empty if each was located by its spans
        "sure": [] if all(each == 100 for each in sure) else sure,
        "parts": [[number, _parts_of(piece)] for number, piece in enumerate(hits) if piece.parts],
    }
    return {"pool": run.pool is not None and share.pool, "pieces": pieces.columns(), "hits": columns}


class _PieceRows:
    """Distinct pieces in order of appearance: the pool first."""

    def __init__(self, documents: Mapping[str, int]) -> None:
        self._documents = documents
        self._known: dict[Any, int] = {}
        self._hidden: dict[Any, int] = {}  # chunks of the pool not retrieved yet, and their numbers
        self._rows: list[tuple[str, tuple[Span, ...], int]] = []  # document, spans and number of each
        self._texts: dict[int, str] = {}

    def add_pool(self, pool: Sequence[Retrieved]) -> None:
        """Add the chunks of the listed documents, numbered from 1 in each."""
        for piece, number in self._numbered(pool):
            self._add(piece, number)

    def number_pool(self, pool: Sequence[Retrieved], places: Container[_Place]) -> None:
        """Number only the chunks at some places; there may be millions of others."""
        for piece, number in self._numbered(pool):
            if _place(piece) in places:
                self._hidden[_key(piece)] = number
                self._hidden.setdefault(_place(piece), number)

    def _numbered(self, pool: Sequence[Retrieved]) -> Iterator[tuple[Retrieved, int]]:
        counts: Counter[str] = Counter()
        for piece in pool:
            counts[piece.document_id] += 1
            if piece.document_id in self._documents:
                yield piece, counts[piece.document_id]

    def number(self, piece: Retrieved, documents: Mapping[str, Document]) -> int:
        """The piece's row; its text is kept if the listed documents lack it."""
        key = _key(piece)
        at = self._known.get(key)
        if at is None and key[1]:
            at = self._known.get(_place(piece))  # the same place; systems send different text along
        if at is None:
            at = self._add(piece, self._hidden.get(key, self._hidden.get(_place(piece), 0)))
        if at not in self._texts:
            listed = piece.document_id in self._documents
            if text := _own_text(piece, documents[piece.document_id].text if listed else ""):
                self._texts[at] = text
        return at

    def _add(self, piece: Retrieved, number: int) -> int:
        at = len(self._rows)
        self._rows.append((piece.document_id, piece.spans, number))
        self._known[_key(piece)] = at
        self._known.setdefault(_place(piece), at)
        return at

    def columns(self) -> dict[str, Any]:
        """Differences between consecutive rows, which pack well."""
        placed = [spans if document in self._documents else () for document, spans, _ in self._rows]
        spans = [span for found in placed for span in found]
        counts = [len(found) for found in placed]
        return {
            "document": _steps(self._documents.get(document, -1) for document, _, _ in self._rows),
            "number": _steps(number for _, _, number in self._rows),
            "spans": [] if all(count == 1 for count in counts) else counts,
            "start": _steps(span.start for span in spans),
            "length": [span.end - span.start for span in spans],
            "text": [[at, text] for at, text in self._texts.items()],
        }


def _parts_of(passage: Retrieved) -> list[float]:
    """Start, length and score of each part, one after another."""
    return [
        value
        for part in passage.parts
        for span in part.spans
        for value in (span.start, span.end - span.start, _rounded(part.score) or 0.0)
    ]


def _key(piece: Retrieved) -> tuple[str, tuple[Span, ...], int]:
    return *_place(piece), hash(piece.text)  # the text itself would stay in memory


def _place(piece: Retrieved) -> _Place:
    return piece.document_id, piece.spans


def _own_text(piece: Retrieved, document: str) -> str:
    """The retrieved text if it differs from the document's at its spans, else ""."""
    if not piece.text:
        return ""
    if document and piece.spans and all(span.slice(document) in piece.text for span in piece.spans):
        return ""
    return page_text(piece.text if len(piece.text) <= TEXT else f"{piece.text[:TEXT]} […]")


def _rounded(score: float) -> float | None:
    return float(f"{score:.4g}") if math.isfinite(score) else None


def _steps(values: Iterable[int]) -> list[int]:
    """The first value, then the differences.

    >>> _steps([3, 4, 4, 9])
    [3, 1, 0, 5]
    """
    return [int(step) for step in np.diff(np.fromiter(values, dtype=np.int64), prepend=0)]


# Deeper hits do not justify carrying a document's text.
_DEEPEST = 10


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
    found = answers(benchmark, runs, numbers)
    index = {
        "ids": [page_text(document.id) for document in listed],
        "sizes": [document.size for document in listed],
        "pages": {str(at): _pages(document) for at, document in enumerate(listed) if document.marks},
        "shelves": carried.firsts,
        "answers": [pack.name if pack else "" for pack in found.packs],
        "hows": [FOUND_BY[how] for how in HOWS],
        "within": {
            str(k): [_within_budget(report, benchmark, budget) for report in page.reports]
            for k in page.ks
            if (budget := budget_of(k)) is not None
        },
    }
    packs = [*carried.shelves, *(pack for pack in found.packs if pack)]
    return Viewer(index, packs, numbers, [note for note in (carried.note, found.note) if note])


def _pages(document: Document) -> list[int]:
    """Start, end and number of each page, one after another."""
    return [
        value
        for mark in document.marks
        if mark.kind == "page" and type(mark.data.get("number")) is int
        for value in (mark.span.start, mark.span.end, mark.data["number"])
    ]


def _within_budget(report: Report, benchmark: Benchmark, budget: int) -> list[int] | None:
    """How many of each question's pieces the budget holds; None where the tokens of chunks are unknown, or too many."""
    run, chunks = report.run, report.chunks
    if run is None or run.pool is None or chunks is None or chunks.count != len(run.pool) or chunks.count > POOL:
        return None
    tokens = dict(zip(map(_place, run.pool), chunks.tokens.tolist(), strict=True))
    found = []
    for query in benchmark.queries:
        sizes = [tokens.get(_place(piece), 0) for piece in run.results.get(query.id, ())]
        before = np.cumsum([0, *sizes])[:-1]
        found.append(int(np.count_nonzero(before < budget)))
    return found


def _places(benchmark: Benchmark, runs: Sequence[Run | None]) -> list[Place]:
    number = {document.id: at for at, document in enumerate(benchmark.documents)}
    found = dict.fromkeys(
        Place(number[each.document_id], each.span.start, each.span.end)
        for query in benchmark.queries
        for each in query.evidence
    )
    for run in runs:
        for pieces in run.results.values() if run else ():
            for rank, piece in enumerate(pieces[:_DEEPEST], 1):
                if (at := number.get(piece.document_id)) is not None:
                    for span in piece.spans:
                        found[Place(at, span.start, span.end, rank)] = None
    return list(found)
