"""`TextVectors`: vectors of chunks and queries; each distinct text is embedded once for all retrieval methods."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chunkcore.columns import LazySequence, blocks, concatenate, text_keys
from chunkcore.concurrency import Progress
from chunkcore.document import Chunk
from chunkcore.errors import ModelError
from chunkcore.models.base import Embedder, Vectors, embed
from chunkcore.models.cache import CachedEmbedder
from chunkcore.models.late import LateEmbedder
from chunkcore.models.loading import DEFAULT_MODEL, get_embedder
from chunkcore.retrieval.corpus import ChunkedCorpus
from chunkcore.retrieval.search import Rows, SelectedRows, select_rows
from chunkcore.spans import Numbers

_MEMORY = 256 * 2**20  # bytes of vectors; larger arrays go to a temporary file


class TextVectors:
    """The vectors of corpora and queries by one embedder, computed when first needed.

    The given corpora are embedded together: each distinct text once, in blocks, longest text first. Any other corpus is
    embedded alone.

    Args:
        embedder: an embedder, or a name, loaded when needed.
        corpora: embedded together.
        progress: called with a step ("embed" or "queries"), the count done, and the total.

    >>> from types import SimpleNamespace
    >>> from chunkcore.document import Span
    >>> ones = lambda texts: np.array([[len(text), 1] for text in texts], dtype=np.float32)
    >>> model = SimpleNamespace(name="m", fingerprint="m", max_tokens=None, embed_documents=ones, embed_queries=ones)
    >>> corpus = ChunkedCorpus([Chunk("d", 0, (Span(0, 3),), "fox", 1), Chunk("d", 1, (Span(4, 8),), "crow", 1)])
    >>> rows, owners = TextVectors(model).chunks(corpus)
    >>> rows[:].tolist(), owners.tolist()
    ([[3.0, 1.0], [4.0, 1.0]], [0, 1])
    """

    def __init__(
        self,
        embedder: Embedder | str = DEFAULT_MODEL,
        corpora: Sequence[ChunkedCorpus] = (),
        *,
        progress: Progress | None = None,
    ) -> None:
        self._embedder = embedder
        self._corpora = corpora
        self._progress = progress
        self._alone: list[TextVectors] = []  # one per other corpus
        self._queries: tuple[tuple[str, ...], Vectors] | None = None

    @property
    def embedder(self) -> Embedder:
        return get_embedder(self._embedder)

    @cached_property
    def late_embedder(self) -> LateEmbedder:
        """The embedder of whole documents. Raises `OptionError` if the model gives no contextual token vectors."""
        return LateEmbedder(self.embedder)

    def chunks(self, corpus: ChunkedCorpus, *, cluster_only: bool = False) -> tuple[Rows, Numbers]:
        """The rows to search, and each row's chunk, ascending; see `chunk_vectors`. Raises `ModelError`: the model
        failed twice.
        """
        return chunk_vectors(self.texts(corpus), corpus.owners, cluster_only=cluster_only)

    def texts(self, corpus: ChunkedCorpus) -> Rows:
        """One row for each of the corpus's `embedded_texts`. Raises `ModelError`: the model failed twice."""
        place, holder = self._holder(corpus)
        return SelectedRows(holder._matrix, holder._distinct.rows[place])

    def norms(self, retriever: str, corpus: ChunkedCorpus) -> Mapping[str, NDArray[Any]]:
        """What an index of this retriever's name measured on the vectors, a column a chunk; empty if nothing."""
        return {}

    def late(self, corpus: ChunkedCorpus) -> tuple[Rows, Numbers]:
        """One row per chunk, the mean of its tokens' vectors in its document; and 0, 1, 2, ...

        Raises:
            OptionError: the model gives no contextual token vectors.
            DataError: the corpus lacks a chunk's document.
            ModelError: the model failed twice.
        """
        place, holder = self._holder(corpus)
        vectors, rows = holder._late_rows
        return vectors[rows[place]], np.arange(len(corpus), dtype=np.int64)

    def queries(self, texts: Sequence[str]) -> Vectors:
        """One row per query; repeated queries are not embedded again. Raises `ModelError`: the model failed twice."""
        questions = tuple(texts)
        if self._queries is None or self._queries[0] != questions:
            self._watch("queries", 0, len(questions))
            self._queries = questions, self._embed(texts, queries=True)
        return self._queries[1]

    def _holder(self, corpus: ChunkedCorpus) -> tuple[int, TextVectors]:
        for place, known_corpus in enumerate(self._corpora):
            if known_corpus is corpus:
                return place, self
        for alone in self._alone:
            if alone._corpora[0] is corpus:
                return 0, alone
        self._alone.append(TextVectors(self.embedder, [corpus], progress=self._progress))
        return 0, self._alone[-1]

    @cached_property
    def _distinct(self) -> DistinctTexts:
        return DistinctTexts([corpus.embedded_texts for corpus in self._corpora])

    @cached_property
    def _matrix(self) -> Vectors:
        texts = self._distinct.texts
        return concatenate(self._embedded(texts), np.float32, memory_bytes=_MEMORY, expected=len(texts))

    def _embedded(self, texts: Sequence[str]) -> Iterator[Vectors]:
        done = dimensions = 0
        for some in blocks(texts):
            self._watch("embed", done, len(texts))
            vectors = self._embed(list(some))
            if done and vectors.shape[1] != dimensions:
                raise ModelError(f"vectors of {dimensions} dimensions, then {vectors.shape[1]}: expected the same")
            dimensions = vectors.shape[1]
            done += len(some)
            self._tell("embed", done, len(texts))
            yield vectors

    @cached_property
    def _late_rows(self) -> tuple[Vectors, list[list[int]]]:
        places: dict[object, int] = {}
        distinct: list[Chunk] = []
        rows: list[list[int]] = [[] for _ in self._corpora]
        for places_here, corpus in zip(rows, self._corpora, strict=True):
            for chunk in corpus:
                places_here.append(places.setdefault((chunk.document_id, chunk.spans), len(distinct)))
                if places_here[-1] == len(distinct):
                    distinct.append(chunk)
        documents = self._corpora[0].documents
        tell = partial(self._tell, "embed")
        return self.late_embedder.embed_chunks(documents, distinct, progress=tell), rows

    def _embed(self, texts: Sequence[str], *, queries: bool = False) -> Vectors:
        model = self.embedder
        if isinstance(model, CachedEmbedder):  # it checks and retries by itself
            return model.embed_queries(texts) if queries else model.embed_documents(texts)
        return embed(model, texts, queries=queries)

    def _tell(self, step: str, done: int, total: int) -> None:
        if self._progress is not None:
            self._progress(step, done, total)

    def _watch(self, step: str, before: int, total: int) -> None:
        model, tell = self.embedder, self._progress
        if isinstance(model, CachedEmbedder) and tell is not None:
            model.progress = lambda done, _: tell(step, before + done, total)


class SelectedVectors(TextVectors):
    """The vectors of a selection of a corpus (`ChunkedCorpus.selected`), read from those of the whole.

    `norms` are those that an index of the whole measured, by `TextVectors.norms`.
    """

    def __init__(self, vectors: TextVectors, norms: Mapping[str, NDArray[Any]]) -> None:
        super().__init__()
        self._vectors = vectors
        self._norms = norms

    @property
    def embedder(self) -> Embedder:
        return self._vectors.embedder

    def texts(self, corpus: ChunkedCorpus) -> Rows:
        if corpus.parent is None:
            return self._vectors.texts(corpus)
        inside = np.flatnonzero(np.isin(corpus.parent.owners, corpus.places))
        return select_rows(self._vectors.texts(corpus.parent), inside)

    def late(self, corpus: ChunkedCorpus) -> tuple[Rows, Numbers]:
        if corpus.parent is None:
            return self._vectors.late(corpus)
        rows, _ = self._vectors.late(corpus.parent)
        return select_rows(rows, corpus.places), np.arange(len(corpus), dtype=np.int64)

    def norms(self, retriever: str, corpus: ChunkedCorpus) -> Mapping[str, NDArray[Any]]:
        return {} if corpus.parent is None else {name: array[:, corpus.places] for name, array in self._norms.items()}

    def queries(self, texts: Sequence[str]) -> Vectors:
        return self._vectors.queries(texts)


class DistinctTexts:
    """The distinct texts of several sequences, in order of first occurrence.

    Attributes:
        texts: the distinct texts, read from the sequences when needed.
        rows: for each sequence, each text's place in `texts`.

    >>> found = DistinctTexts([["a", "b"], ["c", "b", "a"]])
    >>> list(found.texts), [rows.tolist() for rows in found.rows]
    (['a', 'b', 'c'], [[0, 1], [2, 1, 0]])
    """

    def __init__(self, given: Sequence[Sequence[str]]) -> None:
        keys = np.concatenate([text_keys([]), *map(text_keys, given)])
        bases = np.cumsum([0, *map(len, given)])
        _, first, which = np.unique(keys, return_index=True, return_inverse=True)
        order = np.argsort(first)
        row = np.empty_like(order)
        row[order] = np.arange(len(order))
        self.rows: list[Numbers] = np.split(row[which], bases[1:-1])
        firsts = first[order]
        owners = np.searchsorted(bases, firsts, side="right") - 1
        places = firsts - bases[owners]
        self.texts = LazySequence(lambda number: given[owners[number]][int(places[number])], range(len(order)))


def chunk_vectors(vectors: Rows, owners: Numbers, *, cluster_only: bool = False) -> tuple[Rows, Numbers]:
    """The rows to search and each row's chunk: every text's row, and the mean row of chunks with several texts.

    `owners` is each vector's chunk, ascending. With `cluster_only`, chunks of several texts have their mean only (the
    paper's "cluster only" rows).

    Source: Nguyen, Nguyen and Nguyen, "Enhancing Retrieval Augmented Generation with Hierarchical Text Segmentation
    Chunking" (2025), section 3.1.

    >>> rows, owners = chunk_vectors(np.array([[0, 2], [2, 0], [5, 5]], dtype=np.float32), np.array([0, 0, 1]))
    >>> rows.tolist(), owners.tolist()
    ([[0.0, 2.0], [2.0, 0.0], [1.0, 1.0], [5.0, 5.0]], [0, 0, 0, 1])
    """
    firsts = np.flatnonzero(np.diff(owners, prepend=-1))
    if len(firsts) == len(owners):
        return vectors, owners
    counts = np.diff(firsts, append=len(owners))
    held = np.asarray(vectors)
    means = np.add.reduceat(held.astype(np.float64), firsts, axis=0) / counts[:, None]
    several = counts > 1
    kept = np.repeat(~several, counts) if cluster_only else np.ones(len(owners), dtype=np.bool_)
    rows = np.concatenate((held[kept], means[several].astype(np.float32)))
    chunk_of_row = np.concatenate((owners[kept], owners[firsts][several]))
    order = np.argsort(chunk_of_row, kind="stable")
    return rows[order], chunk_of_row[order]
