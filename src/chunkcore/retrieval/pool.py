"""`Pool`: the chunks that are searched, with the vectors of whoever asks for them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from chunkcore.document import Chunk, Document
from chunkcore.errors import DataError
from chunkcore.evaluation.approximation import SearchRecall
from chunkcore.index.multi_vector import chunk_vectors, searched_texts
from chunkcore.index.search import Indices, Rows
from chunkcore.lazy import Mapped
from chunkcore.models.base import Embedder, Vectors
from chunkcore.models.checks import embed
from chunkcore.models.late import LateEmbedder
from chunkcore.models.loading import DEFAULT_MODEL, get_embedder

__all__ = ["Pool"]


class Pool:
    """Chunks, and what a search may need to know of them. Nothing is embedded before it is asked for.

    Args:
        chunks: what is found.
        documents: those that the chunks were cut from; only late chunking reads them.
        embedder: of chunks and queries, or the name of one. It is not loaded before it is needed.

    Raises:
        DataError: something among the chunks is no `Chunk`, or a segment lies outside its chunk.
    """

    def __init__(
        self, chunks: Sequence[Chunk], *, documents: Sequence[Document] = (), embedder: Embedder | str = DEFAULT_MODEL
    ) -> None:
        self.chunks = chunks
        self.documents = documents
        self._embedder = embedder
        self.embedded_texts, self.owners = _searched_texts(chunks)

    @property
    def embedder(self) -> Embedder:
        """Of chunks and queries."""
        return get_embedder(self._embedder)

    @property
    def texts(self) -> Sequence[str]:
        """Of each chunk its context, where it has one, and its text: what searches by words read."""
        return Mapped(attrgetter("embedded_text"), self.chunks)

    def vectors(self, *, cluster_only: bool = False) -> tuple[Rows, Indices]:
        """The rows that are searched, and which chunk each is of, ascending; see `chunk_vectors`.

        Raises:
            ModelError: the model failed, or answered with something that is no answer, twice.
        """
        return chunk_vectors(self._vectors, self.owners, cluster_only=cluster_only)

    @cached_property
    def _vectors(self) -> Vectors:
        return embed(self.embedder, self.embedded_texts)

    def late_vectors(self) -> tuple[Rows, Indices]:
        """One row a chunk, the mean of its tokens as they were read with their document; and 0, 1, 2, ...

        Raises:
            OptionError: the model has no token vectors with context.
            DataError: a chunk's document is not among the documents.
            ModelError: the model failed, or answered with something that is no answer, twice.
        """
        return self._late, np.arange(len(self.chunks), dtype=np.int64)

    @cached_property
    def _late(self) -> Vectors:
        return LateEmbedder(self.embedder).embed_chunks(self.documents, self.chunks)

    @property
    def portable_embedder(self) -> Embedder:
        """The embedder as it can be sent to another process."""
        return self.embedder

    def note_progress(self, done: int, total: int) -> None:
        """A search that has the chunks embedded elsewhere tells here how far that is; a run shows it."""

    def note_embedding(self, seconds: float, tokens: NDArray[np.integer] | None = None) -> None:
        """A search that has the chunks embedded elsewhere tells here that it did; a run counts it as its cost.

        Args:
            seconds: what it took.
            tokens: of each of the `embedded_texts`, as the embedder counts; None: they are counted here.

        Raises:
            DataError: in a run, these are more or fewer than the texts.
        """

    def note_search(self, recall: SearchRecall) -> None:
        """A search that is approximate tells here what it found of what there was; a run puts it into its report."""

    def query_vectors(self, queries: Sequence[str]) -> Vectors:
        """One row a query.

        Raises:
            ModelError: the model failed, or answered with something that is no answer, twice.
        """
        return embed(self.embedder, queries, queries=True)


def _searched_texts(chunks: Sequence[Chunk]) -> tuple[Sequence[str], Indices]:
    """`searched_texts`, made when they are asked for where each chunk has one."""
    segmented = False
    for chunk in chunks:
        if not isinstance(chunk, Chunk):
            raise DataError(f"an index holds chunkcore Chunks, got {type(chunk).__name__}")
        segmented = segmented or bool(chunk.segments)
    if segmented:
        return searched_texts(chunks)
    return Mapped(attrgetter("embedded_text"), chunks), np.arange(len(chunks), dtype=np.int64)
