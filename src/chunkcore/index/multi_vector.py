"""`MultiVectorIndex`: chunks that are found by their segments, or as a whole."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from chunkcore.document import Chunk, Span
from chunkcore.errors import DataError, ModelError, OptionError
from chunkcore.evaluation.run import Retrieved
from chunkcore.index.search import Indices, Rows, as_rows, top_k
from chunkcore.models.base import Embedder, Vectors
from chunkcore.models.checks import check_vectors, embed

__all__ = ["MultiVectorIndex", "chunk_vectors", "first_of_each", "searched_texts", "top_k_owners"]


class MultiVectorIndex:
    """A `Retriever` over chunks of several vectors, by cosine similarity, exact.

    Nguyen, Nguyen and Nguyen, "Enhancing Retrieval Augmented Generation with Hierarchical Text Segmentation Chunking"
    (2025), section 3.1: each segment of a chunk has a vector, and the chunk one more, their mean; a chunk's score is
    the highest that one of them has (equation 2). A chunk without segments has the one vector of its text, so that
    any chunker's chunks can be searched.

    Args:
        chunks: what is found.
        vectors: one row a text of `searched_texts(chunks)`, in its order.
        embedder: embeds the queries.
        cluster_only: search by the chunks' own vectors alone, as the paper's "cluster only" rows do.

    Raises:
        ModelError: there is not one vector a text, or a vector holds NaN or infinity.
        DataError: something among the chunks is no `Chunk`, or a segment lies outside its chunk.
    """

    def __init__(
        self, chunks: Sequence[Chunk], vectors: Vectors, embedder: Embedder, *, cluster_only: bool = False
    ) -> None:
        texts, owners = searched_texts(chunks)
        self.chunks = chunks
        self.embedder = embedder
        checked = check_vectors(vectors, len(texts), model=embedder.name) if texts else vectors
        self.vectors, self.owners = chunk_vectors(checked, owners, cluster_only=cluster_only)

    @classmethod
    def build(cls, chunks: Sequence[Chunk], embedder: Embedder, *, cluster_only: bool = False) -> MultiVectorIndex:
        """Embed the chunks' segments, in one call of the model, and index them.

        A chunk's context, where there is one, is embedded before each of its segments.

        Raises:
            ModelError: the model failed, or answered with something that is no answer, twice.
            DataError: see the class.
        """
        texts, _ = searched_texts(chunks)
        return cls(chunks, embed(embedder, texts), embedder, cluster_only=cluster_only)

    def search(self, query_vectors: ArrayLike, k: int) -> tuple[Indices, Vectors]:
        """Indices into `chunks` and scores, best first: each of shape (queries, min(k, len(chunks)))."""
        return top_k_owners(query_vectors, self.vectors, self.owners, k)

    def retrieve(self, query: str, k: int) -> list[Retrieved]:
        """The best `k` chunks, best first."""
        return self.retrieve_many([query], k)[0]

    def retrieve_many(self, queries: Sequence[str], k: int) -> list[list[Retrieved]]:
        """The best `k` chunks of each query, from one call of the model."""
        indices, scores = self.search(embed(self.embedder, queries, queries=True), k)
        return [
            [_retrieved(self.chunks[i], score) for i, score in zip(found, values, strict=True)]
            for found, values in zip(indices.tolist(), scores.tolist(), strict=True)
        ]


def searched_texts(chunks: Sequence[Chunk]) -> tuple[list[str], Indices]:
    """What is embedded of chunks: each one's segments, or its text where it has none; and whose each text is.

    Raises:
        DataError: something is no `Chunk`, or a segment lies outside its chunk.

    >>> chunk = Chunk("d", 0, (Span(10, 24),), "One is. Two is", 4, segments=((Span(10, 17),), (Span(18, 24),)))
    >>> searched_texts([chunk])
    (['One is.', 'Two is'], array([0, 0]))
    """
    texts: list[str] = []
    owners: list[int] = []
    for number, chunk in enumerate(chunks):
        if not isinstance(chunk, Chunk):
            raise DataError(f"an index holds chunkcore Chunks, got {type(chunk).__name__}")
        own = _segment_texts(chunk) if chunk.segments and not chunk.derived else [chunk.embedded_text]
        texts += own
        owners += [number] * len(own)
    return texts, np.array(owners, dtype=np.int64)


def chunk_vectors(vectors: Rows, owners: Indices, *, cluster_only: bool = False) -> tuple[Rows, Indices]:
    """The rows that are searched, and whose each is: those given, and for each owner of several one more, their mean.

    Args:
        vectors: one row a text.
        owners: whose each row is, ascending.
        cluster_only: of owners of several, the means alone.

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


def top_k_owners(queries: ArrayLike, vectors: ArrayLike | Rows, owners: ArrayLike, k: int) -> tuple[Indices, Vectors]:
    """The `k` owners that are nearest to each query by the best of their vectors, best first: `top_k` by owner.

    Of equal ones the lower number comes first. The search takes more vectors, doubling their number, for the queries
    whose best ones have fewer than k owners.

    Args:
        queries: shape (q, d).
        vectors: shape (n, d).
        owners: whose each vector is, shape (n,), ascending; every number from 0 up to the last has one at least.
        k: how many owners are wanted; where there are fewer, there are as many.

    Returns:
        Owners (int64) and cosine similarities (float32), each of shape (q, min(k, owners)).

    Raises:
        OptionError: k is under 1.
        ModelError: the arrays are not two-dimensional, of different widths, or hold NaN or infinity, or there is
            not one owner a vector.

    >>> owners, scores = top_k_owners([[1.0, 0.0]], [[1.0, 0.0], [2.0, 0.0], [0.0, 1.0]], [0, 0, 1], 2)
    >>> owners.tolist(), scores.tolist()
    ([[0, 1]], [[1.0, 0.0]])
    """
    if k < 1:
        raise OptionError(f"k is at least 1, got {k}")
    whose = np.asarray(owners, dtype=np.int64)
    rows, left = as_rows(vectors), np.asarray(queries)
    if len(whose) != len(rows):
        raise ModelError(f"there are {len(rows)} vectors and {len(whose)} owners: expected one owner a vector")
    count = int(whose[-1]) + 1 if len(whose) else 0
    if count == len(rows):
        return top_k(left, rows, k)
    wanted = min(k, count)
    found = np.zeros((len(left), wanted), dtype=np.int64)
    values = np.zeros((len(left), wanted), dtype=np.float32)
    open_ = np.arange(len(left))
    deep = wanted
    while len(open_):
        deep = min(2 * deep, len(rows))
        indices, scores = top_k(left[open_], rows, deep)
        first = first_of_each(whose[indices])
        enough = first.sum(axis=1) >= wanted
        rank = first.cumsum(axis=1)
        taken = first & (rank <= wanted) & enough[:, None]
        found[open_[enough]] = whose[indices][taken].reshape(-1, wanted)
        values[open_[enough]] = scores[taken].reshape(-1, wanted)
        open_ = open_[~enough]
    return found, values


def first_of_each(rows: Indices) -> NDArray[np.bool_]:
    """Where in its row each number stands for the first time."""
    order = np.argsort(rows, axis=1, kind="stable")
    ordered = np.take_along_axis(rows, order, axis=1)
    new = np.ones(rows.shape, dtype=np.bool_)
    new[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    first = np.empty_like(new)
    np.put_along_axis(first, order, new, axis=1)
    return first


def _segment_texts(chunk: Chunk) -> list[str]:
    """The segments' texts, with the chunk's context before each, where it has one."""
    spans = chunk.spans
    gaps = len(spans) - 1
    rest = len(chunk.text) - sum(map(len, spans))
    separator = chunk.text[len(spans[0]) : len(spans[0]) + rest // gaps] if gaps else ""
    offsets, place = [], 0
    for span in spans:
        offsets.append(place - span.start)
        place += len(span) + len(separator)
    before = f"{chunk.context}\n" if chunk.context else ""
    return [before + separator.join(_slice(chunk, offsets, part) for part in parts) for parts in chunk.segments]


def _slice(chunk: Chunk, offsets: list[int], part: Span) -> str:
    for span, offset in zip(chunk.spans, offsets, strict=True):
        if span.start <= part.start and part.end <= span.end:
            return chunk.text[part.start + offset : part.end + offset]
    raise DataError(
        f"chunk {chunk.index} of {chunk.document_id!r} has a segment at {part} outside its spans {chunk.spans}"
    )


def _retrieved(chunk: Chunk, score: float) -> Retrieved:
    return Retrieved(chunk.document_id, chunk.spans, score, chunk.text, "spans")
