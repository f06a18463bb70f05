"""`CompactChunks`: the chunks of a strategy as numbers, 40 bytes each, where a `Chunk` takes a kilobyte."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from chunkcore.document import Chunk, Document, Span

__all__ = ["CompactChunks"]


class CompactChunks(Sequence[Chunk]):
    """Chunks of documents that are in memory anyway, each made anew when it is asked for.

    Kept are places and token counts, and what a strategy tells beside them: context, metadata, segments. A chunk that
    is no slice of its document (several spans, a text of its own) is held as it is.

    Args:
        documents: those that the chunks are of.

    >>> fox = Document("fox.txt", "The quick fox naps.")
    >>> chunks = CompactChunks([fox])
    >>> chunks.append(Chunk("fox.txt", 0, (Span(4, 9),), "quick", 1))
    >>> len(chunks), chunks[0].text
    (1, 'quick')
    """

    def __init__(self, documents: Sequence[Document]) -> None:
        self._documents = documents
        self._numbers = {document.id: number for number, document in enumerate(documents)}
        self._document = array("q")
        self._index = array("q")
        self._start = array("q")
        self._end = array("q")
        self._tokens = array("q")
        self._fingerprint: str | None = None
        self._told: dict[int, tuple[str, Mapping[str, Any], tuple[tuple[Span, ...], ...]]] = {}
        self._whole: dict[int, Chunk] = {}

    def append(self, chunk: Chunk) -> None:
        """Keep a chunk behind the others."""
        if self._fingerprint is None:
            self._fingerprint = chunk.fingerprint
        number = self._numbers.get(chunk.document_id, -1)
        span = chunk.spans[0]
        for column, value in (
            (self._document, number),
            (self._index, chunk.index),
            (self._start, span.start),
            (self._end, span.end),
            (self._tokens, chunk.token_count),
        ):
            column.append(value)
        place = len(self._start) - 1
        if chunk.context or chunk.metadata or chunk.segments:
            self._told[place] = chunk.context, chunk.metadata, chunk.segments
        if number < 0 or self._made(place) != chunk:
            self._told.pop(place, None)
            self._whole[place] = chunk

    @property
    def token_counts(self) -> NDArray[np.int64]:
        """Of each chunk, in its chunker's unit."""
        return np.array(self._tokens, dtype=np.int64)

    def __len__(self) -> int:
        return len(self._start)

    def __iter__(self) -> Iterator[Chunk]:
        return map(self.__getitem__, range(len(self)))

    @overload
    def __getitem__(self, place: int) -> Chunk: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Chunk]: ...
    def __getitem__(self, place: int | slice) -> Chunk | Sequence[Chunk]:
        if isinstance(place, slice):
            return [self[number] for number in range(*place.indices(len(self)))]
        number = range(len(self))[place]
        return self._whole[number] if number in self._whole else self._made(number)

    def _made(self, number: int) -> Chunk:
        """The chunk that its numbers tell."""
        document = self._documents[self._document[number]]
        span = Span(self._start[number], self._end[number])
        context, metadata, segments = self._told.get(number) or ("", {}, ())
        return Chunk(
            document.id,
            self._index[number],
            (span,),
            span.slice(document.text),
            self._tokens[number],
            context,
            metadata,
            self._fingerprint or "",
            segments,
        )
