"""`TextVectors`: vectors of chunks and queries; each distinct text is embedded once for all retrieval methods."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from chunkcore.columns import BLOCK, LazySequence, blocks, concatenate, text_keys
from chunkcore.concurrency import Progress
from chunkcore.document import Chunk
from chunkcore.errors import DataError, ModelError
from chunkcore.models.base import Embedder, TokenCountingEmbedder, Vectors, embed
from chunkcore.models.cache import CachedEmbedder
from chunkcore.models.late import LateEmbedder
from chunkcore.models.loading import DEFAULT_MODEL, get_embedder
from chunkcore.retrieval.corpus import ChunkedCorpus
from chunkcore.retrieval.search import Mapper, Rows, SelectedRows
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

    @property
    def worker_embedder(self) -> Embedder:
        return self.embedder

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
        """What an index of this retriever's name measured on the corpus's vectors and saved; empty if nothing."""
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
        asked = tuple(texts)
        if self._queries is None or self._queries[0] != asked:
            self._watch("queries", 0, len(asked))
            self._queries = asked, self._embed(texts, queries=True)
        return self._queries[1]

    def stored(
        self, corpus: ChunkedCorpus, folder: Path | str, *, mapper: Mapper = map, size: int = BLOCK
    ) -> list[StoredVectors]:
        """The chunks' vectors in files of the folder, `size` chunks each, in the chunks' order.

        `mapper` runs the embedding; every worker must see the folder. Chunks must not have segments.

        Raises:
            DataError: a file is missing, or workers have different models or do not see the folder.
            ModelError: the model failed twice.
        """
        starts = range(0, len(corpus), size)
        items = ((start, list(some)) for start, some in zip(starts, blocks(corpus.embedded_texts, size)))  # noqa: B905
        found: list[StoredVectors] = []
        for each in mapper(partial(_store, embedder=self.worker_embedder, folder=str(folder)), items):
            found.append(each)
            self._tell("embed", sum(each.size for each in found), len(corpus))
        found.sort(key=lambda each: each.start)
        if [each.start for each in found] != list(starts):
            raise DataError(f"{len(starts)} shards were to be embedded and {len(found)} came back: expected each once")
        widths = sorted({each.dimensions for each in found})
        if len(widths) > 1:
            raise DataError(f"shards have vectors of {widths} dimensions: expected the same model everywhere")
        return found

    def _holder(self, corpus: ChunkedCorpus) -> tuple[int, TextVectors]:
        for place, each in enumerate(self._corpora):
            if each is corpus:
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
        for own, corpus in zip(rows, self._corpora, strict=True):
            for chunk in corpus:
                own.append(places.setdefault((chunk.document_id, chunk.spans), len(distinct)))
                if own[-1] == len(distinct):
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
    whose = np.concatenate((owners[kept], owners[firsts][several]))
    order = np.argsort(whose, kind="stable")
    return rows[order], whose[order]


class StoredVectors(NamedTuple):
    """Consecutive chunks' vectors in a file of float32 rows.

    `start` is the first chunk's number, `size` how many chunks; `token_counts` are in the model's tokens, if it says.
    """

    start: int
    size: int
    dimensions: int
    path: str
    token_counts: NDArray[np.int32] | None

    def load(self) -> Vectors:
        """The vectors, in memory. Raises `DataError`: the file is missing or was changed."""
        try:
            numbers = np.fromfile(self.path, dtype="<f4")
        except FileNotFoundError as error:
            raise unseen(self.path) from error
        if len(numbers) != self.size * self.dimensions:
            held = len(numbers) // max(self.dimensions, 1)
            raise DataError(f"{self.path} holds {held} vectors, {self.size} were written: it has been changed")
        return numbers.astype(np.float32, copy=False).reshape(self.size, self.dimensions)


def _store(item: tuple[int, Sequence[str]], *, embedder: Embedder, folder: str) -> StoredVectors:
    start, texts = item
    path = Path(folder, f"{start}.f32")
    dimensions = 0
    counts = []
    try:
        file = path.open("wb")
    except FileNotFoundError as error:
        raise unseen(str(path)) from error
    with file:
        for some in blocks(texts):
            vectors = embed(embedder, some)
            dimensions = dimensions or vectors.shape[1]
            if vectors.shape[1] != dimensions:
                raise DataError(f"the model answered with {vectors.shape[1]} dimensions, and {dimensions} before")
            file.write(np.ascontiguousarray(vectors, dtype="<f4").data)
            if isinstance(embedder, TokenCountingEmbedder):
                counts.append(embedder.count_tokens(some).astype(np.int32))
    return StoredVectors(start, len(texts), dimensions, str(path), np.concatenate(counts) if counts else None)


def unseen(path: str) -> DataError:
    """The error of a worker without the folder."""
    return DataError(f"a worker does not find {path}: give sharded a folder that every worker sees")
