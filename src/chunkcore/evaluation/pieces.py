"""Retrieved pieces as arrays, and which of a pool hold a query's evidence."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from chunkcore.errors import DataError
from chunkcore.evaluation.run import Retrieved
from chunkcore.evaluation.units import CharacterAxis
from chunkcore.spans import Ranges

__all__ = ["Numbers", "Pieces", "expand", "flatten", "meeting_pairs"]

Numbers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Pieces:
    """Pieces, each with any number of spans.

    Attributes:
        count: how many pieces.
        owner: of each span, the piece that it belongs to; ascending.
        characters: of each span, its range on the character axis.
        texts: by piece, the text of those that stand nowhere in the documents.
        documents: of each piece, its document's number; one that no document has where it is not known,
            the same for pieces that name the same unknown document.
    """

    count: int
    owner: Numbers
    characters: Ranges
    texts: dict[int, str]
    documents: Numbers

    @classmethod
    def of(cls, retrieved: Iterable[Retrieved], axis: CharacterAxis, source: str) -> Pieces:
        """The pieces, in order.

        Raises:
            DataError: a span ends after its document, or a piece is of no known document and has no text.
        """
        rows = array("q")
        texts: dict[int, str] = {}
        documents = array("q")
        unknown: dict[str, int] = {}
        for number, piece in enumerate(retrieved):
            document = axis.numbers.get(piece.document_id)
            if document is not None:
                documents.append(document)
            elif piece.document_id:
                documents.append(unknown.setdefault(piece.document_id, len(axis.numbers) + len(unknown)))
            else:
                documents.append(-1 - number)
            if document is not None and piece.spans:
                for span in piece.spans:
                    rows.extend((number, document, span.start, span.end))
            elif piece.text or not piece.spans:
                texts[number] = piece.text
            else:
                raise DataError(
                    f"{source}: piece {number} is of the document {piece.document_id!r}, which the benchmark does not "
                    "have, and has no text that could be counted: give it one, or the document"
                )
        table = np.frombuffer(rows, dtype=np.int64).reshape(-1, 4)
        _check(table, axis, source)
        characters = table[:, 2:] + axis.bases[table[:, 1], None]
        return cls(len(documents), table[:, 0], characters, texts, np.frombuffer(documents, dtype=np.int64))

    def spans_of(self, pieces: Numbers) -> tuple[Numbers, Numbers]:
        """Of some pieces (one may come several times) all spans: the place in `pieces`, and the span."""
        first = np.searchsorted(self.owner, pieces, side="left")
        counts = np.searchsorted(self.owner, pieces, side="right") - first
        return expand(first, counts)


def _check(table: Numbers, axis: CharacterAxis, source: str) -> None:
    outside = np.flatnonzero(table[:, 3] > axis.sizes[table[:, 1]])
    if len(outside):
        number, document, _, end = table[outside[0]].tolist()
        raise DataError(
            f"{source}: a span of piece {number} ends at {end}, its document {list(axis.numbers)[document]!r} at "
            f"{axis.sizes[document]}: spans are code points of the benchmark's own text"
        )


def meeting_pairs(spans: Ranges, windows: Ranges) -> tuple[Numbers, Numbers]:
    """Every window and span that share a position, as two int64 arrays of their numbers.

    Spans may overlap and be of any length: those of like length (within a factor of two) are looked up
    together, so the work grows with the answer and not with the longest span.

    >>> windows, spans = meeting_pairs(np.array([[0, 5], [3, 9], [9, 12]]), np.array([[4, 9]]))
    >>> spans.tolist()
    [0, 1]
    """
    found = [np.empty((2, 0), dtype=np.int64)]
    magnitudes = np.frexp((spans[:, 1] - spans[:, 0]).astype(np.float64))[1]
    for magnitude in np.unique(magnitudes).tolist():
        members = np.flatnonzero(magnitudes == magnitude)
        members = members[np.argsort(spans[members, 0], kind="stable")]
        starts = spans[members, 0]
        # Lengths are under 2**magnitude: what begins earlier than that before a window ends before it.
        first = np.searchsorted(starts, windows[:, 0] - 2**magnitude, side="right")
        after = np.searchsorted(starts, windows[:, 1], side="left")
        window, place = expand(first, np.maximum(after - first, 0))
        span = members[place]
        meets = spans[span, 1] > windows[window, 0]
        found.append(np.stack((window[meets], span[meets])))
    window, span = np.concatenate(found, axis=1)
    return window, span


def expand(first: Numbers, counts: Numbers) -> tuple[Numbers, Numbers]:
    """For each row i the numbers first[i] ... first[i] + counts[i] - 1, beside i."""
    row = np.repeat(np.arange(len(first), dtype=np.int64), counts)
    within = np.arange(len(row), dtype=np.int64) - np.repeat(np.cumsum(counts) - counts, counts)
    return row, first[row] + within


def flatten(results: Sequence[Sequence[Retrieved]]) -> tuple[list[Retrieved], Numbers, Numbers]:
    """All pieces of all queries, with the query and the rank of each."""
    sizes = np.array([len(each) for each in results], dtype=np.int64)
    query, rank = expand(np.zeros(len(sizes), dtype=np.int64), sizes)
    return [piece for each in results for piece in each], query, rank
