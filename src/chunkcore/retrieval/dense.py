"""`Dense` and `Late`: exact search by the cosine similarity of vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from chunkcore.models.base import Embedder
from chunkcore.models.late import get_token_embedder
from chunkcore.retrieval.base import Hits, Index, RetrievalMethod, retrievers
from chunkcore.retrieval.corpus import ChunkedCorpus
from chunkcore.retrieval.search import Rows, row_lengths, top_k_owners
from chunkcore.retrieval.vectors import TextVectors
from chunkcore.spans import Numbers


@retrievers.register("dense")
@dataclass(frozen=True, kw_only=True)
class Dense(RetrievalMethod):
    """Exact search by cosine similarity.

    A chunk with segments scores as the best of its vectors: its segments' and their mean (Nguyen, Nguyen and Nguyen,
    2025, equation 2).

    Attributes:
        cluster_only: search chunks with segments by their mean vector only.

    Cost: one embedding per chunk and query; a search is O(queries · chunks · dimensions).

    >>> Dense().name, Dense(cluster_only=True).name
    ('dense', 'dense:cluster_only=true')
    """

    cluster_only: bool = False

    def build(self, corpus: ChunkedCorpus, vectors: TextVectors | None = None) -> Index:
        vectors = vectors or TextVectors()
        return VectorIndex(corpus, vectors, *vectors.chunks(corpus, cluster_only=self.cluster_only))


@retrievers.register("late")
@dataclass(frozen=True, kw_only=True)
class Late(RetrievalMethod):
    """Exact search by the vectors of late chunking: a chunk's tokens are read with their document (`LateEmbedder`).

    Segments are ignored. Cost: the model reads each document once; about twice its tokens if it exceeds the model's
    limit.
    """

    def check(self, embedder: Embedder) -> None:
        get_token_embedder(embedder)

    def build(self, corpus: ChunkedCorpus, vectors: TextVectors | None = None) -> Index:
        vectors = vectors or TextVectors()
        return VectorIndex(corpus, vectors, *vectors.late(corpus))


class VectorIndex(Index):
    """Cosine similarity of vectors; several rows may belong to one chunk."""

    def __init__(self, corpus: ChunkedCorpus, vectors: TextVectors, rows: Rows, owners: Numbers) -> None:
        super().__init__(corpus)
        self._vectors = vectors
        self._rows = rows
        self._owners = owners

    def rank(self, queries: Sequence[str], k: int) -> Hits:
        questions = self._vectors.queries(queries)
        indices, scores = top_k_owners(questions, self._rows, self._owners, k, lengths=self._lengths)
        return Hits(indices, scores.astype(np.float64))

    @cached_property
    def _lengths(self) -> NDArray[np.float64] | None:
        return row_lengths(self._rows)
