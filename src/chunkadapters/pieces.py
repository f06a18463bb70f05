"""Pieces of a text as chunks: joined by a splitter's known rules, or placed in the text in order (`Aligned`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

from chunkadapters.configuration import NamedFunction
from chunkadapters.places import LOCATED, Origin, PlaceKeys, chunk_records
from chunkcore.chunkers import Chunker, Draft, chunkers
from chunkcore.errors import DataError, OptionError
from chunkcore.locating.alignment import Aligner
from chunkcore.packing import trim
from chunkcore.spans import merge_touching
from chunkcore.text import Chunk, Document, Span, text_of_spans
from chunkcore.tokens import TokenizedText

# What becomes of pieces that are not in the text.
Unplaced = Literal["mark", "refuse"]
SIMILARITY = 0.8


# ---- Pieces that are placed in the text


class Piece(NamedTuple):
    """A piece of a text: its metadata, and where it begins, if the splitter counted that."""

    text: str
    metadata: Mapping[str, Any] = {}
    start: int | None = None


def place_pieces(
    text: str,
    pieces: Sequence[Piece],
    *,
    unplaced: Unplaced = "mark",
    similarity: float | None = SIMILARITY,
) -> list[Draft]:
    """Each piece with its place in the text; see `Aligned`. Raises `DataError` for a refused piece.

    Stated starts are taken if the pieces, there, are the whole text without a gap. Of several equally good places the
    first is taken; the span of a piece that is not in the text is the text between its neighbours.
    """
    if not text or not pieces:
        return []
    starts = [piece.start for piece in pieces if piece.start is not None]
    if len(starts) == len(pieces) and _cover(text, pieces, starts):
        rows = zip(pieces, starts, strict=True)
        return [
            Draft((Span(start, start + len(piece.text)),), dict(piece.metadata))
            for piece, start in rows
        ]
    aligner = Aligner([Document("text", text)], similarity=similarity)
    hits = aligner.locate_in_order([piece.text for piece in pieces], document_id="text")
    drafts: list[Draft] = []
    for number, (piece, hit) in enumerate(zip(pieces, hits, strict=True)):
        spans = hit.spans
        if not spans and unplaced == "refuse":
            raise DataError(
                f"the splitter gave a piece that stands nowhere in its text: {piece.text[:80]!r}; configure it "
                'so that it keeps the text, or mark such pieces by unplaced="mark"'
            )
        if not spans:
            begin = min(
                max((draft.spans[-1].end for draft in drafts[-1:]), default=0), len(text) - 1
            )
            end = next(
                (later.spans[0].start for later in hits[number + 1 :] if later.spans), len(text)
            )
            spans = (Span(begin, max(begin + 1, end)),)
        is_verbatim = bool(hit.spans) and spans[0].slice(text) == piece.text
        located = {} if hit.match == "exact" else {LOCATED: hit.match}
        drafts.append(
            Draft(spans, {**piece.metadata, **located}, derived=None if is_verbatim else piece.text)
        )
    return drafts


def _cover(text: str, pieces: Sequence[Piece], starts: Sequence[int]) -> bool:
    """Whether the pieces, at these starts, are the whole text, in order and without a gap."""
    before = end = 0
    for piece, start in zip(pieces, starts, strict=True):
        if not before <= start <= end or not text.startswith(piece.text, start):
            return False
        before, end = start, max(end, start + len(piece.text))
    return end == len(text)


def placed_records(
    document: Document, pieces: Sequence[Piece], origin: Origin, keys: PlaceKeys, unplaced: Unplaced
) -> Iterator[tuple[Chunk, dict[str, Any]]]:
    """For each piece of a document, the chunk, and the metadata to write beside the splitter's own."""
    drafts = place_pieces(document.text, pieces, unplaced=unplaced)
    chunks = [
        Chunk(
            document.id,
            i,
            draft.spans,
            piece.text,
            0,
            metadata=draft.metadata,
            derived=draft.derived is not None,
        )
        for i, (piece, draft) in enumerate(zip(pieces, drafts, strict=True))
    ]
    records = chunk_records(document, chunks, origin, {}, keys, set())
    return zip(chunks, (record for _, _, record in records), strict=True)


@chunkers.register("aligned")
@dataclass(frozen=True, kw_only=True)
class Aligned(Chunker):
    r"""The pieces that a function cuts a text into, with their places in it.

    Pieces are found by `Aligner.locate_in_order`: verbatim, up to white space, by letters and digits, by similarity;
    repeated text by its neighbours. An altered piece keeps the function's text and is `derived`. Metadata ``located``
    states how a piece was found, unless it occurs verbatim and once. Adapters write no place for a piece that is
    "ambiguous" (it has several equally good places) or "unlocated" (it is not in the text, and `derived`).

    Cost: the function's own, and an index of each document, about 7 bytes per character.

    Attributes:
        split: from a text to its pieces in order, each a text, a text and its metadata, or these and its start.
        similarity: see `Aligner`.
        unplaced: "mark" pieces that are not in the text, or "refuse" them.

    Raises `OptionError`: `split` is not callable; or `DataError`: it returned no texts, or a refused piece.

    >>> Aligned(split=str.splitlines, counter="words").chunk(Document("d", "one\ntwo\none"))[2].spans
    (Span(start=8, end=11),)
    """

    split: Callable[[str], Sequence[str | tuple[Any, ...]]] | str = ""
    similarity: float | None = SIMILARITY
    unplaced: Unplaced = "mark"

    def validate(self) -> None:
        if not callable(self.split):
            raise OptionError(f"split is a function from a text to its pieces, got {self.split!r}")
        if not isinstance(self.split, NamedFunction):
            object.__setattr__(self, "split", NamedFunction(self.split))

    def cut(self, source: TokenizedText) -> list[Draft]:
        pieces = [piece for piece in map(_as_piece, self.split(source.text)) if piece.text]  # type: ignore[operator]  # `validate` checked it
        return place_pieces(source.text, pieces, unplaced=self.unplaced, similarity=self.similarity)


def _as_piece(item: Any) -> Piece:
    piece = Piece(*item) if isinstance(item, tuple) and 2 <= len(item) <= 3 else Piece(item)
    if not isinstance(piece.text, str) or not isinstance(piece.metadata, Mapping):
        raise DataError(
            f"expected the splitter to give texts, or texts with their metadata, got {type(item).__name__}"
        )
    return piece


PieceRange = tuple[int, int]


# ---- Pieces that are joined by known rules


@dataclass(frozen=True, kw_only=True)
class Joined(Chunker):
    """A chunker that joins pieces by its `joiner`, as the splitter does whose rules it has."""

    joiner: ClassVar[str] = ""

    def _drafts(
        self, text: str, pieces: Sequence[PieceRange], rows: Iterable[PieceRange], *, strip: bool
    ) -> list[Draft]:
        """The chunks of rows; a row is the index of its first piece and the one after its last."""
        drafts = (
            _joined(text, pieces[first:last], self.joiner, strip=strip) for first, last in rows
        )
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
    is_source = text_of_spans(text, merge_touching(spans)) == joined
    return Draft(spans, derived=None if is_source else joined)


def _trimmed(text: str, rows: list[PieceRange]) -> Iterator[PieceRange]:
    """The rows without white space ones, and without white space at both ends."""
    kept = [row for row in rows if not text[row[0] : row[1]].isspace()]
    for place, (start, end) in enumerate(kept):
        inner = trim(text, start, end)
        yield (inner[0] if place == 0 else start), (inner[1] if place == len(kept) - 1 else end)
