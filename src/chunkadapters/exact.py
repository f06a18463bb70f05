"""`exact`: your configured splitter, with the same chunk texts and right offsets.

Its pieces are joined by the splitter's known rules, or placed in the text in order (`Aligned`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from itertools import starmap
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, overload

from chunkadapters.configuration import NamedFunction
from chunkadapters.places import LOCATED, Metadata, Origin, PlaceKeys, chunk_records
from chunkcore.chunkers import Chunker, Draft, chunkers
from chunkcore.errors import DataError, OptionError
from chunkcore.locating.alignment import Aligner
from chunkcore.packing import trim
from chunkcore.spans import merge_touching
from chunkcore.text import Chunk, Document, Span, text_of_spans
from chunkcore.tokens import TokenizedText

if TYPE_CHECKING:
    from langchain_text_splitters import TextSplitter
    from llama_index.core.node_parser import NodeParser

    from chunkadapters.langchain import ChunkcoreTextSplitter

__all__ = ["Aligned", "exact", "exact_chunker"]

# What becomes of pieces that are not in the text.
Unplaced = Literal["mark", "refuse"]
SIMILARITY = 0.8


@overload
def exact(splitter: TextSplitter, *, unplaced: Unplaced = "mark") -> ChunkcoreTextSplitter: ...
@overload
def exact(splitter: NodeParser, *, unplaced: Unplaced = "mark") -> NodeParser: ...
@overload
def exact(splitter: Any, *, unplaced: Unplaced = "mark") -> Any: ...


def exact(splitter: Any, *, unplaced: Unplaced = "mark") -> Any:
    """Your splitter with right offsets, as a splitter of the same framework.

    Chunk texts are the original's; the guide (docs/guides/exact.md) lists the few intended differences, and the
    splitters that are rewritten on offsets. Any other splitter is run as it is: its chunks keep their metadata and
    relationships, and get the places where their texts are found in order; a chunk without a certain place has none.

    Args:
        splitter: a LangChain `TextSplitter` (or a splitter from text to documents, such as by headings), a LlamaIndex
            `NodeParser` or a Haystack splitter component.
        unplaced: pieces that are not in the text, such as rewritten HTML: "mark" them (no place; LangChain's
            ``start_index`` is -1; ``derived`` true; ``located`` "unlocated"), or "refuse" with a `DataError`.

    Returns a `ChunkcoreTextSplitter`; a `ChunkcoreNodeParser` or `PlacedNodeParser`; a `ChunkcoreExactSplitter`.
    Raises `OptionError`: no splitter of a known framework, or one that does not split text, such as JSON data.

    >>> from langchain_text_splitters import CharacterTextSplitter
    >>> splitter = exact(CharacterTextSplitter(separator=" ", chunk_size=7, chunk_overlap=0))
    >>> [(row.page_content, row.metadata["start_index"]) for row in splitter.create_documents(["one two one two"])]
    [('one two', 0), ('one two', 8)]
    """
    return _module(splitter).exact(splitter, unplaced)


def exact_chunker(splitter: Any, *, unplaced: Unplaced = "mark") -> Chunker:
    """`exact` as a chunker, for `compare` and for use without a framework.

    >>> from langchain_text_splitters import CharacterTextSplitter
    >>> exact_chunker(CharacterTextSplitter(separator=" ", chunk_size=7, chunk_overlap=0)).split_text("one two three")
    ['one two', 'three']
    """
    module = _module(splitter)
    chunker: Chunker | None = getattr(module.exact(splitter, unplaced), "chunker", None)
    return chunker or Aligned(split=partial(module.pieces, splitter), unplaced=unplaced)


def _module(splitter: Any) -> Any:
    roots = {cls.__module__.partition(".")[0] for cls in type(splitter).__mro__}
    if "langchain_text_splitters" in roots:
        return import_module("chunkadapters.langchain.exact")
    if "llama_index" in roots:
        return import_module("chunkadapters.llamaindex.exact")
    if hasattr(splitter, "__haystack_input__"):
        return import_module("haystack_integrations.components.preprocessors.chunkadapters")
    raise OptionError(
        "expected a configured LangChain TextSplitter, LlamaIndex NodeParser or Haystack splitter component, "
        f"got {type(splitter).__name__}; for a function from a text to its pieces, build chunkadapters.exact.Aligned"
    )


# ---- Pieces that are placed in the text


class SplitPiece(NamedTuple):
    """A piece that a splitter cut: its metadata, and where it begins, if the splitter counted that."""

    text: str
    metadata: Mapping[str, Any] = {}
    start: int | None = None


def place_pieces(
    text: str,
    pieces: Sequence[SplitPiece],
    unplaced: Unplaced,
) -> list[Draft]:
    """The pieces with their places in the text; see `Aligned`. Raises `DataError` for a refused piece.

    Stated starts are taken if the pieces, there, are the whole text without a gap. Of several equally good places the
    first is taken; the span of a piece that is not in the text is the text between its neighbours.
    """
    if not text or not pieces:
        return []
    return _counted(text, pieces) or _sought(text, pieces, unplaced)


def _counted(text: str, pieces: Sequence[SplitPiece]) -> list[Draft]:
    """The pieces at their stated starts; [] if they are not the whole text there, in order and without a gap."""
    drafts = []
    before = reached = 0
    for piece in pieces:
        start = piece.start
        if start is None or not before <= start <= reached:
            return []
        if not text.startswith(piece.text, start):
            return []
        span = Span(start, start + len(piece.text))
        before, reached = start, max(reached, span.end)
        drafts.append(Draft((span,), dict(piece.metadata)))
    return drafts if reached == len(text) else []


def _sought(text: str, pieces: Sequence[SplitPiece], unplaced: Unplaced) -> list[Draft]:
    """The pieces where their texts stand in order."""
    aligner = Aligner([Document("text", text)], similarity=SIMILARITY)
    texts = [piece.text for piece in pieces]
    located = aligner.locate_in_order(texts, document_id="text")
    following = [len(text)]  # where the next placed piece starts, from the last piece to the first
    for hit in reversed(located[1:]):
        start = hit.spans[0].start if hit.spans else following[-1]
        following.append(start)
    drafts = []
    end = 0
    for piece, hit in zip(pieces, located, strict=True):
        spans, next_start = hit.spans, following.pop()
        if not spans:
            if unplaced == "refuse":
                raise DataError(
                    f"the splitter gave a piece that stands nowhere in its text: {piece.text[:80]!r}; configure it so "
                    'that it keeps the text, or mark such pieces by unplaced="mark"'
                )
            begin = min(end, len(text) - 1)
            spans = (Span(begin, max(begin + 1, next_start)),)
        end = spans[-1].end
        derived = None if spans[0].slice(text) == piece.text else piece.text
        metadata = dict(piece.metadata)
        if hit.match != "exact":
            metadata[LOCATED] = hit.match
        drafts.append(Draft(spans, metadata, derived=derived))
    return drafts


def placed_records(
    document: Document,
    pieces: Sequence[SplitPiece],
    origin: Origin,
    keys: PlaceKeys,
    unplaced: Unplaced,
) -> tuple[list[Chunk], list[Metadata]]:
    """The pieces of a document as chunks, and the metadata to write beside the splitter's own."""
    drafts = place_pieces(document.text, pieces, unplaced)
    chunks: list[Chunk] = []
    for piece, draft in zip(pieces, drafts, strict=True):
        is_derived = draft.derived is not None
        place = (document.id, len(chunks), draft.spans)
        chunks.append(Chunk(*place, piece.text, 0, metadata=draft.metadata, derived=is_derived))
    records = chunk_records(document, chunks, origin, {}, keys, set())
    return chunks, [record for _, _, record in records]


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
    cuts_source: ClassVar[bool] = True

    def validate(self) -> None:
        if not callable(self.split):
            raise OptionError(f"split is a function from a text to its pieces, got {self.split!r}")
        if not isinstance(self.split, NamedFunction):
            object.__setattr__(self, "split", NamedFunction(self.split))

    def cut(self, source: TokenizedText) -> list[Draft]:
        split: Any = self.split
        pieces = []
        for item in split(source.text):
            is_row = isinstance(item, tuple) and 2 <= len(item) <= 3
            piece = SplitPiece(*item) if is_row else SplitPiece(item)
            if not isinstance(piece.text, str) or not isinstance(piece.metadata, Mapping):
                raise DataError(
                    f"expected the splitter to give texts, or texts with their metadata, got {type(item).__name__}"
                )
            if piece.text:
                pieces.append(piece)
        return place_pieces(source.text, pieces, self.unplaced)


PieceRange = tuple[int, int]


# ---- Pieces that are joined by known rules


def joined_drafts(
    text: str,
    pieces: Sequence[PieceRange],
    rows: Iterable[PieceRange],
    joiner: str,
    *,
    strip: bool,
) -> list[Draft]:
    """The chunks of rows of pieces; a row is the index of its first piece and the one after its last."""
    drafts = [_joined(text, pieces[first:last], joiner, strip=strip) for first, last in rows]
    return [draft for draft in drafts if draft is not None]


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
        kept = [(start, end) for start, end in ranges if not text[start:end].isspace()]
        if kept:
            kept[0] = (trim(text, *kept[0])[0], kept[0][1])
            kept[-1] = (kept[-1][0], trim(text, *kept[-1])[1])
        # Of pieces of white space alone the joiners stay.
        ranges = kept or [(ranges[0][1], ranges[-1][0])]
    if not joined:
        return None
    spans = tuple(starmap(Span, ranges))
    if text_of_spans(text, merge_touching(spans)) == joined:
        return Draft(spans)
    return Draft(spans, derived=joined)
