"""`TextVectors`: the vectors of chunks and questions, each distinct text embedded once for all retrieval methods."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from chunkcore.columns import BLOCK, Mapped, blocks, concatenate, text_keys
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

__all__ = ["DistinctTexts", "StoredVectors", "TextVectors", "chunk_vectors"]

_MEMORY = 256 * 2**20  # bytes of vectors; more of them stand in a temporary file


class TextVectors:
    """The vectors of corpora and questions by one embedder. Nothing is embedded before it is asked for.

    The corpora given here are embedded together when the first one's vectors are asked for: each distinct text once,
    in blocks, the longest text of a block first. Any other corpus is embedded by itself when it is asked for.

    Args:
        embedder: of chunks and queries, or the name of one; loaded when it is needed.
        corpora: what is embedded together.
        progress: called with a step ("embed" or "queries"), what is done, and of how much.

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
        self._alone: list[TextVectors] = []  # of other corpora, each by itself
        self._queries: tuple[tuple[str, ...], Vectors] | None = None

    @property
    def embedder(self) -> Embedder:
        """Of chunks and queries."""
        return get_embedder(self._embedder)

    @property
    def worker_embedder(self) -> Embedder:
        """The embedder as it is sent to other processes."""
        return self.embedder

    @cached_property
    def late_embedder(self) -> LateEmbedder:
        """The embedder as one that reads whole documents.

        Raises:
            OptionError: the model has no token vectors with context.
        """
        return LateEmbedder(self.embedder)

    def chunks(self, corpus: ChunkedCorpus, *, cluster_only: bool = False) -> tuple[Rows, Numbers]:
        """The rows that are searched, and the chunk that each is of, ascending; see `chunk_vectors`.

        Raises:
            ModelError: the model failed, or answered with something that is no answer, twice.
        """
        place, holder = self._holder(corpus)
        rows = SelectedRows(holder._matrix, holder._distinct.rows[place])
        return chunk_vectors(rows, corpus.owners, cluster_only=cluster_only)

    def late(self, corpus: ChunkedCorpus) -> tuple[Rows, Numbers]:
        """One row a chunk, the mean of its tokens as they were read with their document; and 0, 1, 2, ...

        Raises:
            OptionError: the model has no token vectors with context.
            DataError: a chunk's document is not among the corpus's documents.
            ModelError: the model failed, or answered with something that is no answer, twice.
        """
        place, holder = self._holder(corpus)
        vectors, rows = holder._late_rows
        return vectors[rows[place]], np.arange(len(corpus), dtype=np.int64)

    def queries(self, texts: Sequence[str]) -> Vectors:
        """One row a question. The same questions are not embedded again.

        Raises:
            ModelError: the model failed, or answered with something that is no answer, twice.
        """
        asked = tuple(texts)
        if self._queries is None or self._queries[0] != asked:
            self._watch("queries", 0, len(asked))
            self._queries = asked, self._embed(texts, queries=True)
        return self._queries[1]

    def stored(
        self, corpus: ChunkedCorpus, folder: Path | str, *, mapper: Mapper = map, size: int = BLOCK
    ) -> list[StoredVectors]:
        """The chunks' vectors in files of the folder, written where `mapper` runs the work; in the chunks' order.

        Args:
            corpus: chunks without segments.
            folder: every worker sees it.
            mapper: calls a function for each item.
            size: chunks a file.

        Raises:
            DataError: a file did not come back, or workers have different models, or do not see the folder.
            ModelError: the model failed, or answered with something that is no answer, twice.
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
        """What embeds the corpus, and the corpus's place there."""
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
        """A row for each distinct text."""
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
        """A row for each distinct place of a chunk; and of each corpus, its chunks' rows."""
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
        if isinstance(model, CachedEmbedder):  # it checks the answers itself, and asks twice
            return model.embed_queries(texts) if queries else model.embed_documents(texts)
        return embed(model, texts, queries=queries)

    def _tell(self, step: str, done: int, total: int) -> None:
        if self._progress is not None:
            self._progress(step, done, total)

    def _watch(self, step: str, before: int, total: int) -> None:
        """Tell of each batch of the call that comes next."""
        model, tell = self.embedder, self._progress
        if isinstance(model, CachedEmbedder) and tell is not None:
            model.progress = lambda done, _: tell(step, before + done, total)


class DistinctTexts:
    """The distinct texts of several sequences, in the order in which they come first.

    Attributes:
        texts: the distinct texts, read from the sequences when they are asked for.
        rows: of each sequence, the place of each of its texts among them.

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
        self.texts = Mapped(lambda number: given[owners[number]][int(places[number])], range(len(order)))


def chunk_vectors(vectors: Rows, owners: Numbers, *, cluster_only: bool = False) -> tuple[Rows, Numbers]:
    """The rows that are searched, and the chunk that each is of: each text's, and for a chunk of several, their mean.

    Nguyen, Nguyen and Nguyen, "Enhancing Retrieval Augmented Generation with Hierarchical Text Segmentation Chunking"
    (2025), section 3.1: each segment of a chunk has a vector, and the chunk one more, their mean.

    Args:
        vectors: one row a text.
        owners: the chunk that each is of, ascending.
        cluster_only: of chunks of several texts, the means alone, as in the paper's "cluster only" rows.

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
    """Neighbouring chunks' vectors in a file.

    Attributes:
        start: the first chunk's number.
        size: how many chunks.
        dimensions: of the vectors.
        path: the file: float32 numbers, row after row.
        token_counts: how long each text is to the model; None where the model does not say.
    """

    start: int
    size: int
    dimensions: int
    path: str
    token_counts: NDArray[np.int32] | None

    def load(self) -> Vectors:
        """The vectors, in memory.

        Raises:
            DataError: the file is not there, or was changed.
        """
        try:
            numbers = np.fromfile(self.path, dtype="<f4")
        except FileNotFoundError as error:
            raise _unseen(self.path) from error
        if len(numbers) != self.size * self.dimensions:
            held = len(numbers) // max(self.dimensions, 1)
            raise DataError(f"{self.path} holds {held} vectors, {self.size} were written: it has been changed")
        return numbers.astype(np.float32, copy=False).reshape(self.size, self.dimensions)


def _store(item: tuple[int, Sequence[str]], *, embedder: Embedder, folder: str) -> StoredVectors:
    """Embed a shard's texts where this runs."""
    start, texts = item
    path = Path(folder, f"{start}.f32")
    dimensions = 0
    counts = []
    try:
        file = path.open("wb")
    except FileNotFoundError as error:
        raise _unseen(str(path)) from error
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


def _unseen(path: str) -> DataError:
    return DataError(f"a worker does not find {path}: give sharded a folder that every worker sees")
