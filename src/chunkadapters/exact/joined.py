"""Chunks made of pieces: the text that the original glues from them, and where each stands."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from chunkcore.chunkers.base import Draft, DraftingChunker
from chunkcore.document import Span
from chunkcore.packing import trim

__all__ = ["Joined", "joined"]

Piece = tuple[int, int]


def joined(text: str, pieces: Iterable[Piece], joiner: str, *, strip: bool) -> Draft | None:
    """A chunk of pieces that are joined by a string; None where nothing is left of it.

    Pieces that the joiner itself parts are one span. Of others the chunk has a span each, and its text is theirs,
    joined. Where what the original writes can't be said so, it is the chunk's derived text.

    >>> joined("one, two,, three", [(0, 3), (5, 8)], ", ", strip=True).spans
    (Span(start=0, end=8),)
    >>> joined("one, two,, three", [(5, 8), (11, 16)], ", ", strip=True).spans
    (Span(start=5, end=8), Span(start=11, end=16))
    """
    rows: list[Piece] = []
    for start, end in pieces:
        if rows and text[rows[-1][1] : start] == joiner:
            rows[-1] = (rows[-1][0], end)
        else:
            rows.append((start, end))
    if len(rows) == 1:
        start, end = trim(text, *rows[0]) if strip else rows[0]
        return Draft((Span(start, end),)) if start < end else None
    wanted = joiner.join([text[start:end] for start, end in rows])
    if strip:
        wanted = wanted.strip()
        # Of pieces of white space alone the joiners stay, and stand between them.
        rows = list(_trimmed(text, rows)) or [(rows[0][1], rows[-1][0])]
    if not wanted:
        return None
    spans = tuple(Span(start, end) for start, end in rows)
    return Draft(spans) if joiner.join([span.slice(text) for span in spans]) == wanted else Draft(spans, derived=wanted)


def _trimmed(text: str, rows: list[Piece]) -> Iterator[Piece]:
    """The rows without the white space at the first one's start and the last one's end, nor rows of white space."""
    kept = [row for row in rows if not text[row[0] : row[1]].isspace()]
    for place, (start, end) in enumerate(kept):
        inner = trim(text, start, end)
        yield (inner[0] if place == 0 else start), (inner[1] if place == len(kept) - 1 else end)


@dataclass(frozen=True, kw_only=True)
class Joined(DraftingChunker):
    """A strategy whose chunks are pieces, joined by a string that its options tell."""

    def _join_by(self, joiner: str) -> None:
        """What the pieces of this chunker's chunks are joined by: of a class it is one string for all."""
        object.__setattr__(self, "separator", joiner)
