"""`plan_update`: what of an index stays, goes and comes when a document has changed."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from chunkcore.chunkers.base import Chunker
from chunkcore.document import Chunk, Document, Span
from chunkcore.errors import DataError

__all__ = ["KeptChunk", "UpdatePlan", "plan_update"]

_Content = tuple[str, tuple[tuple[tuple[int, int, int], ...], ...]]


class KeptChunk(NamedTuple):
    """A chunk of the new document whose content an old one has: the old one's vectors are its own.

    Attributes:
        old: as it is indexed.
        new: as it is now, perhaps at another place, with another index, id or metadata.
    """

    old: Chunk
    new: Chunk


@dataclass(frozen=True, slots=True)
class UpdatePlan:
    """What to do with an index so that it holds the new document's chunks and nothing else of the document.

    Attributes:
        stay: pairs of an old and a new chunk of the same content, in the new document's order.
        go: old chunks whose content is no longer there, or not so many times, in the old document's order.
        come: new chunks that no old one stands for, in the new document's order.
    """

    stay: tuple[KeptChunk, ...]
    go: tuple[Chunk, ...]
    come: tuple[Chunk, ...]

    @property
    def moved(self) -> tuple[KeptChunk, ...]:
        """Those that stay but not as they were: write what `new` says over what `old` said, and keep the vectors."""
        return tuple(kept for kept in self.stay if kept.old != kept.new)

    @property
    def to_embed(self) -> tuple[Chunk, ...]:
        """One chunk of `come` for each content that is new: a model needs to see no others.

        The other chunks of `come` share their content with one of these or with one that stays: see
        `Chunk.content_hash`. A chunk whose text is known but whose `segments` are new is embedded, for the segments.
        """
        known = {_content(kept.new) for kept in self.stay}
        new = {content: chunk for chunk in reversed(self.come) if (content := _content(chunk)) not in known}
        return tuple(reversed(new.values()))


def plan_update(old_chunks: Iterable[Chunk], new_document: Document, chunker: Chunker) -> UpdatePlan:
    """Tell what of a document's chunks can be kept now that its text has changed.

    Chunks are matched by content, `Chunk.content_hash`: as many equal ones stay as the old and the new document both
    have, those first that stand where they stood, then in order. The vectors of a chunk with `segments` are its
    segments' too, so these must be alike as well. It is right for every strategy, whatever the strategy makes of the
    change; how much stays depends on how far a change reaches: to the next separator or sentence
    (`recursive`, `sentence`), to the end of the text (`fixed_token`), or everywhere where a threshold is taken from
    the whole text. A strategy that embeds sentences asks its model for all of the new text's: give it a
    `CachedEmbedder`, and the model sees the new ones only.

    Not for vectors that depend on what stands around a chunk (late chunking): those of chunks that stay change, too.

    Args:
        old_chunks: all of the document that are indexed, in any order.
        new_document: the text as it is now, under the same id.
        chunker: mostly the one that made the old ones; another is compared with just as well.

    Cost: one run of the chunker, then time and memory linear in the number of chunks.

    Raises:
        DataError: an old chunk is of another document; and whatever the chunker raises.

    >>> from chunkcore import Document, Recursive
    >>> chunker = Recursive(size=15, counter="characters")
    >>> old = chunker.chunk(Document("story.txt", "The fox naps. The dog naps."))
    >>> plan = plan_update(old, Document("story.txt", "A cat purrs. The fox naps. The dog sits."), chunker)
    >>> [(kept.new.text, kept.old.start, kept.new.start) for kept in plan.stay]
    [('The fox naps.', 0, 13)]
    >>> [chunk.text for chunk in plan.go], [chunk.text for chunk in plan.come]
    (['The dog naps.'], ['A cat purrs.', 'The dog sits.'])
    """
    new = chunker.chunk(new_document)
    old = sorted(_checked(old_chunks, new_document.id), key=lambda chunk: chunk.index)
    partners = _partners(old, new)
    gone = set(range(len(old))) - set(partners.values())
    return UpdatePlan(
        tuple(KeptChunk(old[partners[place]], chunk) for place, chunk in enumerate(new) if place in partners),
        tuple(old[place] for place in sorted(gone)),
        tuple(chunk for place, chunk in enumerate(new) if place not in partners),
    )


def _checked(chunks: Iterable[Chunk], document_id: str) -> Iterable[Chunk]:
    for chunk in chunks:
        if not isinstance(chunk, Chunk):
            raise DataError(f"old_chunks are chunkcore Chunks, got {type(chunk).__name__}")
        if chunk.document_id != document_id:
            raise DataError(
                f"old_chunks are those of {document_id!r}, got one of {chunk.document_id!r}: plan each document apart"
            )
        yield chunk


def _partners(old: Sequence[Chunk], new: Sequence[Chunk]) -> dict[int, int]:
    """For the place of each new chunk that an old one stands for, the old one's place."""
    contents = [_content(chunk) for chunk in new]
    waiting: defaultdict[_Content, deque[int]] = defaultdict(deque)
    unmoved: defaultdict[tuple[_Content, tuple[Span, ...]], deque[int]] = defaultdict(deque)
    for place, chunk in enumerate(old):
        content = _content(chunk)
        waiting[content].append(place)
        unmoved[content, chunk.spans].append(place)
    partners: dict[int, int] = {}
    for place, chunk in enumerate(new):
        if here := unmoved[contents[place], chunk.spans]:
            partners[place] = here.popleft()
    taken = set(partners.values())
    for place, content in enumerate(contents):
        if place in partners:
            continue
        candidates = waiting[content]
        while candidates and candidates[0] in taken:
            candidates.popleft()
        if candidates:
            partners[place] = candidates.popleft()
    return partners


def _content(chunk: Chunk) -> _Content:
    """What a chunk's vectors depend on: its content, and what of that its segments are, wherever the chunk stands."""
    return chunk.content_hash, tuple(_inside(chunk, segment) for segment in chunk.segments)


def _inside(chunk: Chunk, segment: tuple[Span, ...]) -> tuple[tuple[int, int, int], ...]:
    """Each of the segment's spans as the number of the chunk's span that it begins in, and its ends in that one."""
    spans = sorted(chunk.spans)
    starts = [span.start for span in spans]
    numbers = [max(0, bisect_right(starts, part.start) - 1) for part in segment]
    return tuple(
        (number, part.start - starts[number], part.end - starts[number])
        for number, part in zip(numbers, segment, strict=True)
    )
