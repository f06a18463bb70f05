"""Pieces of a text as chunks: joined by a splitter's known rules, or placed in the text in order (`Aligned`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple, cast

from chunkadapters.configuration import NamedFunction
from chunkadapters.places import LOCATED, Origin, PlaceKeys, chunk_records
from chunkcore.chunkers import Chunker, Draft, chunkers
from chunkcore.errors import DataError, OptionError
from chunkcore.locating.alignment import Aligner
from chunkcore.options import Bounds
from chunkcore.packing import trim
from chunkcore.run import Retrieved
from chunkcore.spans import merge_touching
from chunkcore.text import Chunk, Document, Span, text_of_spans
from chunkcore.tokens import TokenizedText

# What becomes of pieces that are not in the text.
Unplaced = Literal["mark", "refuse"]
SIMILARITY = 0.8


# ---- Pieces that are placed in the text


class SplitPiece(NamedTuple):
    """A piece that a splitter cut: its metadata, and where it begins, if the splitter counted that."""

    text: str
    metadata: Mapping[str, Any] = {}
    start: int | None = None


def place_pieces(
    text: str,
    pieces: Sequence[SplitPiece],
    *,
    unplaced: Unplaced = "mark",
) -> list[Draft]:
    """The pieces with their places in the text; see `Aligned`. Raises `DataError` for a refused piece.

    Stated starts are taken if the pieces, there, are the whole text without a gap. Of several equally good places the
    first is taken; the span of a piece that is not in the text is the text between its neighbours.
    """
    if not text or not pieces:
        return []
    counted = _counted(text, pieces)
    if counted:
        return counted
    aligner = Aligner([Document("text", text)], similarity=SIMILARITY)
    located = aligner.locate_in_order([piece.text for piece in pieces], document_id="text")
    lost = [piece.text for piece, hit in zip(pieces, located, strict=True) if not hit.spans]
    if lost and unplaced == "refuse":
        raise DataError(
            f"the splitter gave a piece that stands nowhere in its text: {lost[0][:80]!r}; configure it so that it "
            'keeps the text, or mark such pieces by unplaced="mark"'
        )
    between = _gaps(located, len(text))
    return [
        _draft(text, piece, hit, gap)
        for piece, hit, gap in zip(pieces, located, between, strict=True)
    ]


def _counted(text: str, pieces: Sequence[SplitPiece]) -> list[Draft]:
    """The pieces at their stated starts; [] if they are not the whole text there, in order and without a gap."""
    drafts = []
    before = end = 0
    for piece in pieces:
        start = piece.start
        if start is None or not before <= start <= end or not text.startswith(piece.text, start):
            return []
        before, end = start, max(end, start + len(piece.text))
        drafts.append(Draft((Span(start, start + len(piece.text)),), dict(piece.metadata)))
    return drafts if end == len(text) else []


def _gaps(located: Sequence[Retrieved], length: int) -> list[Span]:
    """For each piece, the text between its placed neighbours; at least one character of it."""
    following = [length] * len(located)
    for number in reversed(range(len(located) - 1)):
        later = located[number + 1].spans
        following[number] = later[0].start if later else following[number + 1]
    gaps: list[Span] = []
    begin = 0
    for hit, end in zip(located, following, strict=True):
        first = min(begin, length - 1)
        gap = Span(first, max(first + 1, end))
        gaps.append(gap)
        begin = hit.spans[-1].end if hit.spans else gap.end
    return gaps


def _draft(text: str, piece: SplitPiece, hit: Retrieved, gap: Span) -> Draft:
    spans = hit.spans or (gap,)
    is_verbatim = bool(hit.spans) and spans[0].slice(text) == piece.text
    metadata = dict(piece.metadata)
    if hit.match != "exact":
        metadata[LOCATED] = hit.match
    return Draft(spans, metadata, derived=None if is_verbatim else piece.text)


def placed_records(
    document: Document,
    pieces: Sequence[SplitPiece],
    origin: Origin,
    keys: PlaceKeys,
    unplaced: Unplaced,
) -> Iterator[tuple[Chunk, dict[str, Any]]]:
    """For each piece of a document, the chunk, and the metadata to write beside the splitter's own."""
    drafts = place_pieces(document.text, pieces, unplaced=unplaced)
    chunks = []
    for index, (piece, draft) in enumerate(zip(pieces, drafts, strict=True)):
        is_derived = draft.derived is not None
        chunk = Chunk(
            document.id,
            index,
            draft.spans,
            piece.text,
            0,
            metadata=draft.metadata,
            derived=is_derived,
        )
        chunks.append(chunk)
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
        unplaced: "mark" pieces that are not in the text, or "refuse" them.

    Raises `OptionError`: `split` is not callable; or `DataError`: it returned no texts, or a refused piece.

    >>> Aligned(split=str.splitlines, counter="words").chunk(Document("d", "one\ntwo\none"))[2].spans
    (Span(start=8, end=11),)
    """

    split: Callable[[str], Sequence[str | tuple[Any, ...]]] | str = ""
    unplaced: Unplaced = "mark"

    def validate(self) -> None:
        if not callable(self.split):
            raise OptionError(f"split is a function from a text to its pieces, got {self.split!r}")
        if not isinstance(self.split, NamedFunction):
            object.__setattr__(self, "split", NamedFunction(self.split))

    def sees(self, document: Document) -> bool:
        return False  # the function gets the source

    def cut(self, source: TokenizedText) -> list[Draft]:
        split = cast("Callable[[str], Sequence[str | tuple[Any, ...]]]", self.split)
        pieces = [_as_piece(item) for item in split(source.text)]
        pieces = [piece for piece in pieces if piece.text]
        return place_pieces(source.text, pieces, unplaced=self.unplaced)


def _as_piece(item: str | tuple[Any, ...]) -> SplitPiece:
    is_row = isinstance(item, tuple) and 2 <= len(item) <= 3
    piece = SplitPiece(*item) if is_row else SplitPiece(item)  # type: ignore[arg-type]
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

    bounds: ClassVar[Bounds] = {"size": 1, "overlap": (0, "size")}
    joiner: ClassVar[str] = ""

    def sees(self, document: Document) -> bool:
        return False  # as the splitter does

    def _drafts(
        self, text: str, pieces: Sequence[PieceRange], rows: Iterable[PieceRange], *, strip: bool
    ) -> list[Draft]:
        """The chunks of rows; a row is the index of its first piece and the one after its last."""
        drafts = []
        for first, last in rows:
            draft = _joined(text, pieces[first:last], self.joiner, strip=strip)
            if draft is not None:
                drafts.append(draft)
        return drafts


def _joined(text: str, pieces: Iterable[PieceRange], joiner: str, *, strip: bool) -> Draft | None:
    """A chunk of pieces joined by a string; None if nothing is left of it.

    Pieces separated by exactly the joiner share a span; others have one each. If the original's text differs from the
    text of the spans, it is the chunk's derived text.

    >>> _joined("one, two,, three", [(0, 3), (5, 8)], ", ", strip=True).spans
    (Span(start=0, end=8),)
    >>> _joined("one, two,, three", [(5, 8), (11, 16)], ", ", strip=True).spans
    (Span(start=5, end=8), Span(start=11, end=16))
    """
    ranges: list[PieceRange] = []
    for start, end in pieces:
        if ranges and text[ranges[-1][1] : start] == joiner:
            ranges[-1] = (ranges[-1][0], end)
        else:
            ranges.append((start, end))
    joined = joiner.join([text[start:end] for start, end in ranges])
    if strip:
        joined = joined.strip()
        # Of pieces of white space alone the joiners stay.
        ranges = _trimmed(text, ranges) or [(ranges[0][1], ranges[-1][0])]
    if not joined:
        return None
    spans = tuple(Span(start, end) for start, end in ranges)
    is_source = text_of_spans(text, merge_touching(spans)) == joined
    return Draft(spans, derived=None if is_source else joined)


def _trimmed(text: str, ranges: Iterable[PieceRange]) -> list[PieceRange]:
    """The ranges without white space ones, and without white space at both ends."""
    kept = [(start, end) for start, end in ranges if not text[start:end].isspace()]
    if kept:
        (first_start, first_end), (last_start, last_end) = kept[0], kept[-1]
        kept[0] = (trim(text, first_start, first_end)[0], first_end)
        kept[-1] = (kept[-1][0], trim(text, last_start, last_end)[1])
    return kept
