"""Splitters whose rules are known, on offsets: pieces, joined to chunks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from chunkcore.chunkers import Chunker, Draft
from chunkcore.document import Span
from chunkcore.errors import OptionError
from chunkcore.packing import trim

PieceRange = tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class Joined(Chunker):
    """A strategy that joins pieces by its `separator`."""

    separator: ClassVar[str] = ""

    def _drafts(
        self, text: str, pieces: Sequence[PieceRange], rows: Iterable[PieceRange], *, strip: bool = False
    ) -> list[Draft]:
        """The chunks of rows; a row is the index of its first piece and the one after its last."""
        drafts = (_joined(text, pieces[first:last], self.separator, strip=strip) for first, last in rows)
        return [draft for draft in drafts if draft]


def check_sizes(size: int, overlap: int) -> None:
    """Raise `OptionError` unless size >= 1 and 0 <= overlap <= size."""
    if size < 1 or not 0 <= overlap <= size:
        raise OptionError(f"size is at least 1 and overlap 0 to size, got {size} and {overlap}")


def _joined(text: str, pieces: Iterable[PieceRange], joiner: str, *, strip: bool) -> Draft | None:
    """A chunk of pieces joined by a string; None if nothing is left of it.

    Pieces separated by exactly the joiner share a span; others have one each. If the original's text differs from the
    joined spans, it is the chunk's derived text.

    >>> _joined("one, two,, three", [(0, 3), (5, 8)], ", ", strip=True).spans
    (Span(start=0, end=8),)
    >>> _joined("one, two,, three", [(5, 8), (11, 16)], ", ", strip=True).spans
    (Span(start=5, end=8), Span(start=11, end=16))
    """
    rows: list[PieceRange] = []
    for start, end in pieces:
        if rows and text[rows[-1][1] : start] == joiner:
            rows[-1] = (rows[-1][0], end)
        else:
            rows.append((start, end))
    if len(rows) == 1:
        start, end = trim(text, *rows[0]) if strip else rows[0]
        return Draft((Span(start, end),)) if start < end else None
    joined = joiner.join([text[start:end] for start, end in rows])
    if strip:
        joined = joined.strip()
        # Of pieces of white space alone the joiners stay.
        rows = list(_trimmed(text, rows)) or [(rows[0][1], rows[-1][0])]
    if not joined:
        return None
    spans = tuple(Span(start, end) for start, end in rows)
    return Draft(spans) if joiner.join([span.slice(text) for span in spans]) == joined else Draft(spans, derived=joined)


def _trimmed(text: str, rows: list[PieceRange]) -> Iterator[PieceRange]:
    """The rows without white space ones, and without white space at both ends."""
    kept = [row for row in rows if not text[row[0] : row[1]].isspace()]
    for place, (start, end) in enumerate(kept):
        inner = trim(text, start, end)
        yield (inner[0] if place == 0 else start), (inner[1] if place == len(kept) - 1 else end)
