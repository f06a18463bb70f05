"""`chunk_corpus`: documents and a chunker to a `ChunkedCorpus`, the chunks of an index."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache, partial
from itertools import chain, takewhile
from typing import Any

import numpy as np

from chunkcore.chunkers.base import Chunker, get_chunker
from chunkcore.columns import LazyItems, LazySequence, places_of
from chunkcore.errors import DataError, echo
from chunkcore.options import suggesting
from chunkcore.plain import Frame
from chunkcore.retrieval.lexicon import Postings, may_part_words, with_whole_words
from chunkcore.run import PieceColumns, Retrieved
from chunkcore.spans import Flags, Numbers, Ranges
from chunkcore.text import (
    Chunk,
    Document,
    Span,
    check_document,
    chunk_columns,
    text_of_spans,
)


class ChunkedCorpus(LazyItems[Chunk], Frame):
    """Chunks as columns, with their documents; `Chunk` objects are made on each read.

    A chunk is five numbers. One that is more than a slice of its document (with a context, metadata, segments, of
    several spans or a derived text) is held whole.

    Args:
        chunks: in the order of their numbers.
        documents: the sources of the chunks.
        chunker: that cut the documents, or its spec, where more documents are to be added later.

    Attributes:
        fingerprint: of the chunker of the first chunk; None without chunks.
        columns: the document's number, index, start, end and tokens of each chunk: int64, shape (5, chunks).
        special: by place, the chunks that are more than one slice of their document.
        made_postings: those of the chunks' texts that were made, by form of words; see `postings`.
        number_of: each document's number, by its id.
        parent: of a selection, the corpus that it was selected from.
        places: of a selection, its chunks' numbers in `parent`.

    Raises `DataError`: an item is not a `Chunk`, or its document is missing or shorter.

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
        chunker: Chunker | str | None = None,
    ) -> None:
        self.documents = documents
        self.number_of = check_documents(documents)
        self._chunker = chunker
        self.fingerprint: str | None = None
        self.special: dict[int, Chunk] = {}
        self.made_postings: dict[str, Postings] = {}
        self.parent: ChunkedCorpus | None = None
        self.places: Numbers = np.zeros(0, np.int64)
        rows = []
        for place, chunk in enumerate(chunks):
            if not isinstance(chunk, Chunk):
                raise DataError(f"an index holds chunkcore Chunks, got {type(chunk).__name__}")
            if self.fingerprint is None:
                self.fingerprint = chunk.fingerprint
            number = self.number_of.get(chunk.document_id)
            if number is None or len(documents[number].text) < chunk.end:
                raise DataError(
                    f"chunk {chunk.index} of {echo(chunk.document_id)} needs its document: give the text that was cut"
                )
            span = chunk.spans[0]
            row = (number, chunk.index, span.start, span.end, chunk.token_count)
            if self._slice(*row) != chunk:
                self.special[place] = chunk
            rows.append(row)
        self.columns: Numbers = np.array(rows, np.int64).reshape(-1, 5).T

    @classmethod
    def of_columns(
        cls,
        documents: Sequence[Document],
        columns: Numbers,
        *,
        special: dict[int, Chunk],
        fingerprint: str | None,
        chunker: Chunker | str | None,
    ) -> ChunkedCorpus:
        """Chunks without `Chunk` objects, such as a saved index has."""
        corpus = cls((), documents, chunker=chunker)
        corpus.columns, corpus.special, corpus.fingerprint = columns, special, fingerprint
        return corpus

    @classmethod
    def joined(
        cls, corpus: ChunkedCorpus, kept: Flags, added: ChunkedCorpus
    ) -> tuple[ChunkedCorpus, Numbers]:
        """The chunks of a corpus's `kept` documents (one truth value each) and those of `added`; postings stay.

        A document that is added stands where the one of its id stood, or after all. With the new number of each chunk
        of both, int64; -1 where it is left out.
        """
        size = len(corpus.documents)
        instead = [corpus.number_of.get(name, size) for name in added.number_of]
        keys = np.array([*range(size), *instead], np.int64)
        stays = np.append(kept, np.ones(len(instead), bool))
        documents = np.argsort(keys, kind="stable")
        documents = documents[stays[documents]]
        columns = np.concatenate((corpus.columns, added.columns), axis=1)
        columns[0, len(corpus) :] += size
        chunks = np.argsort(keys[columns[0]], kind="stable")
        chunks = chunks[stays[columns[0, chunks]]]
        places = places_of(chunks, columns.shape[1])
        columns[0] = places_of(documents, len(keys))[columns[0]]
        both = [*corpus.documents, *added.documents]
        first = corpus
        if len(added) and len(chunks) == len(added):
            first = added
        of_corpus, of_added = np.split(places, [len(corpus)])
        special = added.special
        if added.fingerprint != first.fingerprint:  # that of all chunks that are not held whole
            special = dict(enumerate(added))
        joined = cls.of_columns(
            [both[number] for number in documents.tolist()],
            columns[:, chunks],
            special=_moved(corpus.special, of_corpus) | _moved(special, of_added),
            fingerprint=first.fingerprint,
            chunker=first._chunker,
        )
        for form, words in corpus.made_postings.items():
            parts = (words, of_corpus), (added.postings(form), of_added)
            joined.made_postings[form] = Postings.joined(parts, len(chunks))
        return joined, places

    @cached_property
    def chunker(self) -> Chunker | None:
        """That cut the documents; None if the corpus was made of chunks."""
        return None if self._chunker is None else get_chunker(self._chunker)

    def selected(self, chunks: Numbers) -> ChunkedCorpus:
        """These chunks, by ascending number, as a corpus; words and documents are shared.

        >>> corpus = chunk_corpus([Document("a", "a fox"), Document("b", "a crow")], "sentence")
        >>> [chunk.text for chunk in corpus.selected(np.array([1]))]
        ['a crow']
        """
        part = ChunkedCorpus.of_columns(
            self.documents,
            self.columns[:, chunks],
            special=_moved(self.special, places_of(chunks, len(self))),
            fingerprint=self.fingerprint,
            chunker=self._chunker,
        )
        part.parent, part.places = self, chunks
        return part

    def __repr__(self) -> str:
        return f"ChunkedCorpus({len(self):,} chunks of {len(self.documents):,} documents)"

    def tidy(self) -> dict[str, Sequence[Any]]:
        """See `Chunks`."""
        return chunk_columns(self)

    def __len__(self) -> int:
        return len(self.columns[0])

    def item(self, place: int) -> Chunk:
        if place in self.special:
            return self.special[place]
        return self._slice(*self.columns[:, place].tolist())

    def _slice(self, number: int, index: int, start: int, end: int, tokens: int) -> Chunk:
        document = self.documents[number]
        text, spans = document.text[start:end], (Span(start, end),)
        return Chunk(document.id, index, spans, text, tokens, fingerprint=self.fingerprint or "")

    def _embedded_text(self, place: int) -> str:
        if place in self.special:
            return self.special[place].embedded_text
        number, _, start, end, _ = self.columns[:, place].tolist()
        text: str = self.documents[number].text[start:end]
        return text

    @cached_property
    def sources(self) -> dict[str, Document]:
        """The documents by id."""
        return {document.id: document for document in self.documents}

    @property
    def token_counts(self) -> Numbers:
        """Tokens of each chunk in its chunker's unit: int64, shape (chunks,)."""
        return self.columns[4, :]

    @property
    def document_numbers(self) -> Numbers:
        """Each chunk's document: its place in `documents`: int64."""
        return self.columns[0, :]

    @cached_property
    def repeating(self) -> Mapping[int, int]:
        """The chunks that begin with a table's header, which the chunk before has too: how many spans that has."""
        counts = {}
        for place, chunk in self.special.items():
            if not place or len(chunk.spans) < 2 or chunk.derived:
                continue
            before = self[place - 1]
            if before.document_id == chunk.document_id:
                shared = list(takewhile(partial(_is_in, before.spans), chunk.spans[:-1]))
                if shared:
                    counts[place] = len(shared)
        return counts

    @property
    def extents(self) -> Ranges:
        """Each chunk's first and last place in its document, without what is `repeating`: int64, shape (chunks, 2)."""
        extents = self.columns[[2, 3]].T
        for place, chunk in self.special.items():
            start = chunk.spans[self.repeating.get(place, 0)].start
            extents[place] = start, chunk.end
        return extents

    @property
    def texts(self) -> Sequence[str]:
        """Each chunk's context and text, as they are embedded."""
        return LazySequence(self._embedded_text, range(len(self)))

    @property
    def lexical_texts(self) -> Sequence[str]:
        """Each chunk's context and text, as lexical search reads them: `with_whole_words`."""
        if not any(map(may_part_words, self.documents)):
            return self.texts
        tagless = lru_cache(maxsize=1)(lambda number: with_whole_words(self.documents[number]))

        def read(place: int) -> str:
            chunk = self[place]
            number = int(self.columns[0, place])
            if len(chunk.spans) > 1 or chunk.derived:
                source = self.documents[number]
                text = with_whole_words(replace(source, text=chunk.text, marks=()))
            else:
                text = tagless(number)[chunk.start : chunk.end]
            return replace(chunk, text=text).embedded_text

        return LazySequence(read, range(len(self)))

    def postings(self, form: str) -> Postings:
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
        document, starts, ends = self.columns[[0, 2, 3]]
        for place, chunk in self.special.items():
            if len(chunk.spans) > 1 or chunk.derived:
                document[place] = -1
        return PieceColumns(self._piece, list(self.number_of), document, starts, ends)

    def _piece(self, place: int) -> Retrieved:
        chunk = self[place]
        return Retrieved(chunk.document_id, chunk.spans, 0.0, chunk.text, id=chunk.id)

    @property
    def embedded_texts(self) -> Sequence[str]:
        """The texts to embed: each chunk's `segment_texts`. Raises `DataError`: a segment lies outside its chunk."""
        return self._segments[0]

    @property
    def owners(self) -> Numbers:
        """The chunk of each of the `embedded_texts`: int64, ascending."""
        return self._segments[1]

    @cached_property
    def _segments(self) -> tuple[Sequence[str], Numbers]:
        if not any(chunk.segments for chunk in self.special.values()):
            return self.texts, np.arange(len(self), dtype=np.int64)
        texts = []
        counts = []
        for chunk in self:
            parts = segment_texts(chunk, self.sources[chunk.document_id].text)
            texts += parts
            counts.append(len(parts))
        return texts, np.repeat(np.arange(len(self), dtype=np.int64), counts)


def _is_in(spans: Sequence[Span], part: Span) -> bool:
    return any(span.start <= part.start and part.end <= span.end for span in spans)


def _moved(special: Mapping[int, Chunk], places: Numbers) -> dict[int, Chunk]:
    """Chunks by their new places; without those that have none."""
    moved = {int(places[number]): chunk for number, chunk in special.items()}
    moved.pop(-1, None)
    return moved


def check_documents(documents: Sequence[Document]) -> dict[str, int]:
    """Each document's number by its id. Raises `DataError`: one is no document, or two share an id."""
    numbers: dict[str, int] = {}
    for number, document in enumerate(documents):
        check_document(document)
        if numbers.setdefault(document.id, number) < number:
            raise DataError(
                f"two documents have the id {echo(document.id)}: make ids unique, such as by their folder"
            )
    return numbers


@suggesting
def chunk_corpus(
    documents: Iterable[Document],
    chunker: Chunker | str,
    *,
    workers: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> ChunkedCorpus:
    """The chunks of all documents, by a chunker or a spec of one, in `workers` threads.

    By default there is one per core for chunkers that ask models, or whose tokens are counted ahead, and else one: of
    other chunkers Python runs one at a time.

    `progress` is called with the number of documents that are done.

    Raises `OptionError`: `workers` is under 1.

    >>> from chunkcore.chunkers import FixedToken
    >>> [chunk.text for chunk in chunk_corpus([Document("d", "a b c")], FixedToken(size=2, counter="words"))]
    ['a b ', 'c']
    """
    chunker = get_chunker(chunker)
    if not isinstance(documents, Sequence):
        documents = list(documents)
    if workers is None:
        workers = 1
        if chunker.tokens_only or not {"embedder", "llm"}.isdisjoint(chunker.option_names()):
            workers = os.cpu_count() or 1
    corpus = ChunkedCorpus((), documents, chunker=chunker)
    first = 0
    columns = [corpus.columns]
    for number, chunks in enumerate(chunker.chunks_per_document(documents, workers=workers)):
        if number and progress is not None:
            progress(number)
        for place, chunk in chunks.special.items():
            corpus.special[first + place] = chunk
        count = len(chunks.counts)
        first += count
        place_in_corpus = np.full(count, number), np.arange(count)
        columns.append(np.vstack((*place_in_corpus, chunks.ranges.T, chunks.counts)))
    corpus.columns = np.concatenate(columns, axis=1)
    if first:
        corpus.fingerprint = chunker.fingerprint
    return corpus


def segment_texts(chunk: Chunk, source: str) -> list[str]:
    """A chunk's texts to embed: its segments, or its text if it has none or is derived; each after its context.

    `source` is the text of the chunk's document. Raises `DataError`: a segment lies outside its chunk.

    >>> segments = ((Span(0, 7),), (Span(8, 14),))
    >>> segment_texts(Chunk("d", 0, (Span(0, 14),), "One is. Two is", 4, segments=segments), "One is. Two is")
    ['One is.', 'Two is']
    """
    if not chunk.segments or chunk.derived:
        return [chunk.embedded_text]
    for part in chain.from_iterable(chunk.segments):
        if not _is_in(chunk.spans, part):
            raise DataError(
                f"chunk {chunk.index} of {chunk.document_id!r} has a segment at {part} outside its spans {chunk.spans}"
            )
    before = f"{chunk.context}\n" if chunk.context else ""
    return [before + text_of_spans(source, parts) for parts in chunk.segments]
