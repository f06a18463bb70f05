"""How much of the documents the page carries: all, or windows around what somebody may want to see."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from chunkcore.document import Document
from chunkcore.report.packs import Pack, packed
from chunkcore.report.text import page_text
from chunkcore.spans import Ranges, union_ranges

__all__ = ["Excerpts", "Place", "excerpts"]

ROOM = 13_000_000  # characters of the page
SHELF = 200_000  # characters of text that are unpacked together
SAMPLE = 20, 50_000  # documents, and characters of each, that tell how well text packs


@dataclass(frozen=True, slots=True)
class Place:
    """A stretch of a document that is worth carrying.

    Attributes:
        document: its number.
        rank: 0 of evidence, else the rank at which it was retrieved.
    """

    document: int
    start: int
    end: int
    rank: int = 0


@dataclass(frozen=True)
class Excerpts:
    """What is carried.

    Attributes:
        numbers: of the documents that are listed, ascending.
        ranges: of each listed document, what is carried of it.
        shelves: the packs. Each is a list of documents, a document a list of start, text, start, text …
        firsts: the place in `numbers` of each shelf's first document.
        note: what was left out; "" where nothing was.
    """

    numbers: list[int]
    ranges: list[Ranges]
    shelves: list[Pack]
    firsts: list[int]
    note: str = ""


@dataclass(frozen=True, slots=True)
class _Windows:
    """Which places are kept, and how many characters around them."""

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


_LADDER = (
    *(_Windows(10, 1000), _Windows(10, 200), _Windows(10, 0), _Windows(5, 0), _Windows(3, 0), _Windows(1, 0)),
    *(_Windows(0, 500), _Windows(0, 100, 1000)),
)


def excerpts(documents: Sequence[Document], places: Sequence[Place], room: int = ROOM) -> Excerpts:
    """The documents whole where they fit into `room` characters of the page, else the widest windows that do.

    What fits in no other way is cut off, and the note says so.
    """
    density = _density(documents)
    whole = {at: np.array([[0, document.size]], dtype=np.int64) for at, document in enumerate(documents)}
    if (found := _fitting(documents, whole, room, density)) is not None:
        return found
    for windows in _LADDER:
        kept = _kept(documents, places, windows)
        if (found := _fitting(documents, kept, room, density, windows.note())) is not None:
            return found
    return _first(documents, _kept(documents, places, _LADDER[-1]), room)


def _kept(documents: Sequence[Document], places: Iterable[Place], windows: _Windows) -> dict[int, Ranges]:
    """By the number of each document that has a place, in order: what is kept of it."""
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


def _density(documents: Sequence[Document]) -> float:
    """About how many characters of the page a character of text takes."""
    count, size = SAMPLE
    texts = [page_text(document.text[:size]) for document in documents[:: 1 + len(documents) // count]]
    return len(packed("", texts).text) / max(1, sum(map(len, texts)))


def _fitting(
    documents: Sequence[Document], kept: Mapping[int, Ranges], room: int, density: float, note: str = ""
) -> Excerpts | None:
    """These ranges of these documents, packed; None where that takes more room."""
    listed, ranges = list(kept), list(kept.values())
    # Packing takes a second for some ten million characters: what is far too much is not tried.
    if 0.8 * density * sum(int((each[:, 1] - each[:, 0]).sum()) for each in ranges) > room:
        return None
    shelves: list[Pack] = []
    firsts: list[int] = []
    used = at = 0
    while at < len(listed):
        first, size, shelf = at, 0, []
        while at < len(listed) and size < SHELF:
            parts = _parts(documents[listed[at]].text, ranges[at])
            size += sum(len(part) for part in parts if isinstance(part, str))
            shelf.append(parts)
            at += 1
        shelves.append(packed(f"texts-{len(shelves)}", shelf))
        firsts.append(first)
        used += len(shelves[-1].text)
        if used > room:
            return None
    return Excerpts(listed, ranges, shelves, firsts, note)


def _first(documents: Sequence[Document], kept: Mapping[int, Ranges], room: int) -> Excerpts:
    """As much of the last rung as is sure to fit: 4 bytes a character at most, a third more in base64."""
    left = room // 6
    cut: dict[int, Ranges] = {}
    for number, ranges in kept.items():
        within = ranges[np.cumsum(ranges[:, 1] - ranges[:, 0]) <= left]
        cut[number] = within
        left -= int((within[:, 1] - within[:, 0]).sum())
    note = f"{_LADDER[-1].note()} Even so, not every document had room."
    found = _fitting(documents, cut, room, 0.0, note)
    return found or Excerpts([], [], [], [], "The documents are too large for this page.")


def _parts(text: str, ranges: Ranges) -> list[int | str]:
    parts: list[int | str] = []
    for start, end in ranges.tolist():
        parts += [start, page_text(text[start:end])]
    return parts
