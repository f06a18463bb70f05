"""`plan_update`: which chunks of an index to keep, delete and add after a document changed."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from chunkcore.chunkers.base import Chunker, get_chunker
from chunkcore.errors import DataError, check_type
from chunkcore.spans import shifted
from chunkcore.text import Chunk, Document


class KeptChunk(NamedTuple):
    """A new chunk with the content of an indexed (`old`) one, whose vectors it keeps."""

    old: Chunk
    new: Chunk


@dataclass(frozen=True, slots=True)
class UpdatePlan:
    """The changes that bring an index to the new document's chunks.

    Attributes:
        kept: old and new chunks of equal content, in the new document's order.
        removed: old chunks to delete, in the old document's order.
        added: new chunks to add, in the new document's order.
    """

    kept: tuple[KeptChunk, ...]
    removed: tuple[Chunk, ...]
    added: tuple[Chunk, ...]

    @property
    def moved(self) -> tuple[KeptChunk, ...]:
        """Chunks that stay but changed place or metadata: overwrite `old` with `new`, keep the vectors."""
        return tuple(kept for kept in self.kept if kept.old != kept.new)


def plan_update(
    old_chunks: Iterable[Chunk], new_document: Document, chunker: Chunker | str
) -> UpdatePlan:
    """Plan the update of an index after a document's text changed.

    Chunks are matched by content (`Chunk.content_hash` and segments), first at their old place, then in order. How much
    stays depends on the chunker: changes reach the next separator (`recursive`, `sentence`), the end of the text
    (`fixed_token`), or all of it (thresholds taken from the whole text). Not for late chunking: there the vectors of
    kept chunks change too.

    `old_chunks` are all indexed ones of the document, in any order; `chunker` is usually the one that made them.

    Cost: one run of the chunker, then linear time and memory. Raises `DataError` for a chunk of another document.

    >>> from chunkcore import Document
    >>> from chunkcore.chunkers import Recursive
    >>> chunker = Recursive(size=15, counter="characters")
    >>> old = chunker.chunk(Document("story.txt", "The fox naps. The dog naps."))
    >>> plan = plan_update(old, Document("story.txt", "A cat purrs. The fox naps. The dog sits."), chunker)
    >>> [(kept.new.text, kept.old.start, kept.new.start) for kept in plan.kept]
    [('The fox naps.', 0, 13)]
    """
    check_type("old_chunks", old_chunks, Iterable, "several Chunks")
    chunker = get_chunker(chunker)
    new = chunker.chunk(new_document)
    indexed = list(old_chunks)
    for chunk in indexed:
        if not isinstance(chunk, Chunk):
            raise DataError(f"old_chunks are chunkcore Chunks, got {type(chunk).__name__}")
        if chunk.document_id != new_document.id:
            one, other = new_document.id, chunk.document_id
            raise DataError(
                f"old_chunks are those of {one!r}, got one of {other!r}: plan each document apart"
            )
    old = sorted(indexed, key=lambda chunk: chunk.index)
    partners = _partners(old, new)
    gone = set(range(len(old))) - set(partners.values())
    return UpdatePlan(
        tuple(
            KeptChunk(old[partners[place]], chunk)
            for place, chunk in enumerate(new)
            if place in partners
        ),
        tuple(old[place] for place in sorted(gone)),
        tuple(chunk for place, chunk in enumerate(new) if place not in partners),
    )


def _partners(old: Sequence[Chunk], new: Sequence[Chunk]) -> dict[int, int]:
    """The place of the old chunk of equal content by that of the new one: at the same spans, then any."""
    before, after = dict(enumerate(map(_content, old))), dict(enumerate(map(_content, new)))
    partners = _equal(
        {place: (content, old[place].spans) for place, content in before.items()},
        {place: (content, new[place].spans) for place, content in after.items()},
    )
    for place, other in partners.items():
        del after[place], before[other]
    return partners | _equal(before, after)


def _equal(old: Mapping[int, Hashable], new: Mapping[int, Hashable]) -> dict[int, int]:
    """Places of equal things in order, each once."""
    waiting: defaultdict[Hashable, deque[int]] = defaultdict(deque)
    for place, thing in old.items():
        waiting[thing].append(place)
    return {place: waiting[thing].popleft() for place, thing in new.items() if waiting[thing]}


def _content(chunk: Chunk) -> Hashable:
    """What a chunk's vectors are made of: its text, and the places of its segments in it."""
    return chunk.content_hash, tuple(shifted(segment, -chunk.start) for segment in chunk.segments)
