"""`chunk_corpus`: documents and a chunker to a `ChunkedCorpus`, the chunks of an index."""

from __future__ import annotations

import os
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from itertools import chain
from operator import attrgetter
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from chunkcore.chunkers.base import Chunker, get_chunker
from chunkcore.columns import LazySequence
from chunkcore.errors import DataError, check_type, echo
from chunkcore.frames import Frame
from chunkcore.options import named_options
from chunkcore.retrieval.lexicon import Postings, has_tags, without_tags
from chunkcore.run import PieceColumns, Retrieved
from chunkcore.spans import Numbers, Ranges, shifted
from chunkcore.text import (
    Chunk,
    Document,
    Span,
    check_document,
    chunk_columns,
    text_of_spans,
)


def repeated_id(name: str) -> DataError:
    """What is raised for documents that share an id."""
    return DataError(
        f"two documents have the id {echo(name)}: make ids unique, such as by their folder"
    )


class ChunkedCorpus(Sequence[Chunk], Frame):
    """Chunks as columns, with their documents; `Chunk` objects are made on each read.

    A chunk is five numbers. One that is more than a slice of a given document (with a context, metadata, segments, of
    several spans or a derived text) is held whole.

    Args:
        chunks: in the order of their numbers.
        documents: the sources; only late chunking reads all of their texts.
        chunker: that cut the documents, or a function that loads it, where more documents are to be added later.

    Attributes:
        fingerprint: of the chunker of the first chunk; None without chunks.
        special: by place, the chunks that are more than one slice of their document.
        segmented: whether chunks have segments.
        made_postings: those of the chunks' texts that were made, by form of words; see `postings`.
        parent: of a selection, the corpus that it was selected from.
        places: of a selection, its chunks' numbers in `parent`.

    Raises `DataError`: an item is not a `Chunk`.

    >>> fox = Document("fox.txt", "The quick fox naps.")
    >>> corpus = ChunkedCorpus([Chunk("fox.txt", 0, (Span(4, 9),), "quick", 1)], [fox])
    >>> len(corpus), corpus[0].text
    (1, 'quick')
    """

    def __init__(
        self,
        chunks: Iterable[Chunk] = (),
        documents: Sequence[Document] = (),
        *,
        chunker: Chunker | Callable[[], Chunker] | None = None,
    ) -> None:
        check_type("chunks", chunks, Iterable, "several Chunks")
        check_type("documents", documents, Sequence, "a list of Documents")
        for document in documents:
            check_document(document)
        self.documents = documents
        self._numbers = {document.id: number for number, document in enumerate(documents)}
        if len(self._numbers) < len(documents):
            twice = next(
                document.id
                for number, document in enumerate(documents)
                if self._numbers[document.id] > number
            )
            raise repeated_id(twice)
        self._columns = tuple(array("q") for _ in range(5))  # document, index, start, end, tokens
        self.fingerprint: str | None = None
        self._chunker = chunker
        self.special: dict[int, Chunk] = {}
        self.segmented: bool = False
        self.made_postings: dict[str, Postings] = {}
        self.parent: ChunkedCorpus | None = None
        self.places: Numbers = np.zeros(0, dtype=np.int64)
        for chunk in chunks:
            self._append(chunk)

    @classmethod
    def of_columns(
        cls,
        documents: Sequence[Document],
        columns: NDArray[np.int64],
        *,
        special: Mapping[int, Chunk] | None = None,
        postings: Mapping[str, Postings] | None = None,
        fingerprint: str | None = None,
        chunker: Chunker | Callable[[], Chunker] | None = None,
    ) -> ChunkedCorpus:
        """Chunks without `Chunk` objects, such as a saved index has; `columns` as `columns()` gives them."""
        corpus = cls((), documents, chunker=chunker)
        corpus._columns = tuple(
            array("q", np.ascontiguousarray(column).tobytes()) for column in columns
        )
        corpus.made_postings = dict(postings or {})
        corpus.fingerprint = fingerprint
        corpus.special = dict(special or {})
        corpus.segmented = any(chunk.segments for chunk in corpus.special.values())
        return corpus

    @classmethod
    def joined(
        cls, corpus: ChunkedCorpus, kept: NDArray[np.bool_], added: ChunkedCorpus
    ) -> ChunkedCorpus:
        """The chunks of a corpus's `kept` documents (one truth value each), then those of `added`; postings stay."""
        rows = corpus.rows_of(kept)
        columns, more = corpus.columns()[:, rows], added.columns()
        renumbered = np.append(np.cumsum(kept) - 1, -1)  # the last for chunks of no document
        columns[0] = renumbered[columns[0]]
        more[0] += int(kept.sum())
        places = {int(row): place for place, row in enumerate(rows.tolist())}
        special = {
            places[place]: chunk for place, chunk in corpus.special.items() if place in places
        }
        special |= {len(rows) + place: chunk for place, chunk in added.special.items()}
        numbers = np.full(len(corpus), -1, dtype=np.int64)
        numbers[rows] = np.arange(len(rows))
        new = np.arange(len(added), dtype=np.int64) + len(rows)
        size = len(rows) + len(added)
        postings = {
            form: Postings.joined([(before, numbers), (added.postings(form), new)], size)
            for form, before in corpus.made_postings.items()
        }
        documents = [
            document
            for document, stays in zip(corpus.documents, kept.tolist(), strict=True)
            if stays
        ]
        return cls.of_columns(
            [*documents, *added.documents],
            np.concatenate((columns, more), axis=1),
            special=special,
            postings=postings,
            fingerprint=corpus.fingerprint or added.fingerprint,
            chunker=corpus._chunker,
        )

    @property
    def chunker(self) -> Chunker | None:
        """That cut the documents; None if the corpus was made of chunks."""
        if self._chunker is not None and not isinstance(self._chunker, Chunker):
            self._chunker = self._chunker()
        return self._chunker

    def rows_of(self, kept: NDArray[np.bool_]) -> Numbers:
        """The chunks of the `kept` documents, one truth value each, and those of no document here: int64, ascending."""
        return np.flatnonzero(np.append(kept, True)[self.columns()[0]])

    def columns(self) -> NDArray[np.int64]:
        """The document's number (-1: none here), index, start, end and tokens of each chunk: shape (5, chunks)."""
        return np.array(self._columns, dtype=np.int64).reshape(5, -1)

    def selected(self, chunks: Numbers) -> ChunkedCorpus:
        """These chunks, by ascending number, as a corpus; words and documents are shared.

        >>> corpus = chunk_corpus([Document("a", "a fox"), Document("b", "a crow")], "sentence")
        >>> [chunk.text for chunk in corpus.selected(np.array([1]))]
        ['a crow']
        """
        places = chunks.tolist() if self.special else ()
        special = {
            number: self.special[place]
            for number, place in enumerate(places)
            if place in self.special
        }
        columns = self.columns()[:, chunks]
        part = ChunkedCorpus.of_columns(
            self.documents,
            columns,
            special=special,
            fingerprint=self.fingerprint,
            chunker=self._chunker,
        )
        part.parent, part.places = self, chunks
        return part

    @cached_property
    def described(self) -> tuple[list[str], list[Mapping[str, Any]]]:
        """Each document's id, and its metadata, by document number; a document that is not given has none."""
        names = [document.id for document in self.documents]
        metadata = [document.metadata for document in self.documents]
        for place in sorted(self.special):
            if self.document_numbers[place] == len(names):
                names.append(self.special[place].document_id)
                metadata.append({})
        return names, metadata

    def __repr__(self) -> str:
        return f"ChunkedCorpus({len(self):,} chunks of {len(self.documents):,} documents)"

    def tidy(self) -> dict[str, Sequence[Any]]:
        """See `Chunks`."""
        return chunk_columns(self)

    def _append(self, chunk: Chunk) -> None:
        if not isinstance(chunk, Chunk):
            raise DataError(f"an index holds chunkcore Chunks, got {type(chunk).__name__}")
        if self.fingerprint is None:
            self.fingerprint = chunk.fingerprint
        place = len(self)
        number = self._numbers.get(chunk.document_id, -1)
        values = number, chunk.index, chunk.spans[0].start, chunk.spans[0].end, chunk.token_count
        for column, value in zip(self._columns, values, strict=True):
            column.append(value)
        self.segmented |= bool(chunk.segments)
        if number < 0 or self._made(place) != chunk:
            self.special[place] = chunk

    def __len__(self) -> int:
        return len(self._columns[0])

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
        return self.special[number] if number in self.special else self._made(number)

    def _made(self, place: int) -> Chunk:
        number, index, start, end, tokens = (column[place] for column in self._columns)
        document = self.documents[number]
        text, spans = document.text[start:end], (Span(start, end),)
        return Chunk(document.id, index, spans, text, tokens, fingerprint=self.fingerprint or "")

    def document(self, document_id: str) -> Document | None:
        """The document of this id; None if there is none."""
        number = self._numbers.get(document_id)
        return None if number is None else self.documents[number]

    @property
    def token_counts(self) -> Numbers:
        """Tokens of each chunk in its chunker's unit: int64, shape (chunks,)."""
        return np.array(self._columns[4], dtype=np.int64)

    @cached_property
    def document_numbers(self) -> Numbers:
        """Each chunk's document: its place in `documents`, or a number from ``len(documents)`` on: int64."""
        numbers = np.array(self._columns[0], dtype=np.int64)
        others: dict[str, int] = {}
        for place in np.flatnonzero(numbers < 0).tolist():
            numbers[place] = len(self.documents) + others.setdefault(
                self[place].document_id, len(others)
            )
        return numbers

    @cached_property
    def repeating(self) -> frozenset[int]:
        """The chunks whose first span the chunk before has, too: a table's header, before rows that are their own."""
        places = set()
        for place, chunk in self.special.items():
            if place and len(chunk.spans) == 2 and self[place - 1].document_id == chunk.document_id:
                before, header = self[place - 1].spans[0], chunk.spans[0]
                if before.start <= header.start and header.end <= before.end:
                    places.add(place)
        return frozenset(places)

    @property
    def extents(self) -> Ranges:
        """Each chunk's first and last place in its document, without what is `repeating`: int64, shape (chunks, 2)."""
        extents = self.columns()[[2, 3]].T
        for place, chunk in self.special.items():
            extents[place] = (
                chunk.spans[1].start if place in self.repeating else chunk.start,
                chunk.end,
            )
        return extents

    @property
    def texts(self) -> Sequence[str]:
        """Each chunk's context and text, as they are embedded."""
        return LazySequence(attrgetter("embedded_text"), self)

    @property
    def lexical_texts(self) -> Sequence[str]:
        """Each chunk's context and text, as lexical search reads them: of HTML documents without tags."""
        if not any(map(has_tags, self._numbers)):
            return self.texts
        tagless = lru_cache(maxsize=1)(lambda number: without_tags(self.documents[number]))

        def read(place: int) -> str:
            chunk = self[place]
            number = self._columns[0][place]
            if number < 0 or len(chunk.spans) > 1 or chunk.derived:
                text = without_tags(Document(chunk.document_id, chunk.text))
            else:
                text = tagless(number)[chunk.start : chunk.end]
            return replace(chunk, text=text).embedded_text

        return LazySequence(read, range(len(self)))

    def postings(self, form: str = "whole") -> Postings:
        """Which chunks have which words, as `word_keys` of this form; made once."""
        if form not in self.made_postings:
            if self.parent is None:
                self.made_postings[form] = Postings.of(self.lexical_texts, form)
            else:
                self.made_postings[form] = self.parent.postings(form).selected(self.places)
        return self.made_postings[form]

    @cached_property
    def retrieved(self) -> Sequence[Retrieved]:
        """Each chunk as a piece: a `Run`'s pool."""
        names = dict(zip(self._numbers.values(), self._numbers, strict=True))
        document, starts, ends = self.columns()[[0, 2, 3]]
        document[
            [
                place
                for place, chunk in self.special.items()
                if len(chunk.spans) > 1 or chunk.derived
            ]
        ] = -1
        ids = [names.get(number, "") for number in range(len(self.documents))]
        return PieceColumns(self._piece, ids, document, starts, ends)

    def _piece(self, place: int) -> Retrieved:
        chunk = self[place]
        return Retrieved(chunk.document_id, chunk.spans, 0.0, chunk.text, id=chunk.id)

    @property
    def embedded_texts(self) -> Sequence[str]:
        """The texts to embed: each chunk's `segment_texts`. Raises `DataError`: a segment lies outside its chunk."""
        return self._segments[0] if self.segmented else self.texts

    @property
    def owners(self) -> Numbers:
        """The chunk of each of the `embedded_texts`: int64, ascending."""
        return self._segments[1] if self.segmented else np.arange(len(self), dtype=np.int64)

    @cached_property
    def _segments(self) -> tuple[list[str], Numbers]:
        texts = []
        for chunk in self:
            document = self.document(chunk.document_id)
            texts.append(segment_texts(chunk, document.text if document else None))
        return [text for parts in texts for text in parts], np.repeat(
            np.arange(len(texts)), [*map(len, texts)]
        )


@named_options()
def chunk_corpus(
    documents: Sequence[Document],
    chunker: Chunker | str,
    *,
    workers: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> ChunkedCorpus:
    """The chunks of all documents, by a chunker or a spec of one, in `workers` threads (default: one per core).

    Raises `OptionError`: `workers` is under 1.

    >>> from chunkcore.chunkers import FixedToken
    >>> [chunk.text for chunk in chunk_corpus([Document("d", "a b c")], FixedToken(size=2, counter="words"))]
    ['a b ', 'c']
    """
    chunker = get_chunker(chunker)
    if isinstance(documents, Document | str) or not isinstance(documents, Iterable):
        raise DataError(
            f"chunk_corpus takes a list of Documents, such as benchmark.documents; got {type(documents).__name__}"
        )
    documents = documents if isinstance(documents, Sequence) else list(documents)
    threads = (os.cpu_count() or 1) if workers is None else workers
    chunks = chunker.chunk_many(documents, workers=threads)
    cut = chunks if progress is None else _with_progress(chunks, documents, progress)
    return ChunkedCorpus(cut, documents, chunker=chunker)


def _with_progress(
    chunks: Iterable[Chunk], documents: Sequence[Document], progress: Callable[[int], None]
) -> Iterator[Chunk]:
    done = {document.id: number for number, document in enumerate(documents)}
    last = 0
    for chunk in chunks:
        if done[chunk.document_id] > last:
            last = done[chunk.document_id]
            progress(last)
        yield chunk


def segment_texts(chunk: Chunk, source: str | None = None) -> list[str]:
    """A chunk's texts to embed: its segments, or its text if it has none or is derived; each after its context.

    `source` is the text of the chunk's document; a chunk of one span does without.

    Raises `DataError`: a segment lies outside its chunk, or the segments of several spans come without a source.

    >>> segment_texts(Chunk("d", 0, (Span(10, 24),), "One is. Two is", 4, segments=((Span(10, 17),), (Span(18, 24),))))
    ['One is.', 'Two is']
    """
    if not chunk.segments or chunk.derived:
        return [chunk.embedded_text]
    for part in chain.from_iterable(chunk.segments):
        if not any(span.start <= part.start and part.end <= span.end for span in chunk.spans):
            raise DataError(
                f"chunk {chunk.index} of {chunk.document_id!r} has a segment at {part} outside its spans {chunk.spans}"
            )
    shift = 0
    if source is None:
        if len(chunk.spans) > 1:
            raise DataError(
                f"chunk {chunk.index} of {chunk.document_id!r} has segments in several spans: give its document, too"
            )
        source, shift = chunk.text, -chunk.start
    before = f"{chunk.context}\n" if chunk.context else ""
    return [before + text_of_spans(source, shifted(parts, shift)) for parts in chunk.segments]
