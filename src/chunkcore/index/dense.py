"""`DenseIndex`: chunks and their vectors, searched exactly."""

from __future__ import annotations

from collections.abc import Sequence

from numpy.typing import ArrayLike

from chunkcore.document import Chunk
from chunkcore.errors import DataError
from chunkcore.evaluation.run import Retrieved
from chunkcore.index.search import Indices, top_k
from chunkcore.models.base import Embedder, Vectors
from chunkcore.models.checks import check_vectors, embed

__all__ = ["DenseIndex"]


class DenseIndex:
    """A `Retriever` over chunks, by cosine similarity, exact.

    Args:
        chunks: what is found.
        vectors: one row a chunk, shape (len(chunks), dimensions).
        embedder: embeds the queries.

    Raises:
        ModelError: there is not one vector a chunk, or a vector holds NaN or infinity.
        DataError: something among the chunks is no `Chunk`.
    """

    def __init__(self, chunks: Sequence[Chunk], vectors: Vectors, embedder: Embedder) -> None:
        for chunk in chunks:
            if not isinstance(chunk, Chunk):
                raise DataError(f"an index holds chunkcore Chunks, got {type(chunk).__name__}")
        self.chunks = chunks
        self.embedder = embedder
        self.vectors = check_vectors(vectors, len(chunks), model=embedder.name) if len(chunks) else vectors

    @classmethod
    def build(cls, chunks: Sequence[Chunk], embedder: Embedder) -> DenseIndex:
        """Embed the chunks' texts and index them.

        A chunk's context, where there is one, is embedded before its text.

        Raises:
            ModelError: the model failed, or answered with something that is no answer, twice.
        """
        return cls(chunks, embed(embedder, [chunk.embedded_text for chunk in chunks]), embedder)

    def search(self, query_vectors: ArrayLike, k: int) -> tuple[Indices, Vectors]:
        """Indices into `chunks` and similarities, best first: each of shape (queries, min(k, len(chunks)))."""
        return top_k(query_vectors, self.vectors, k)

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


def _retrieved(chunk: Chunk, score: float) -> Retrieved:
    return Retrieved(chunk.document_id, chunk.spans, score, chunk.text, "spans")
