"""`Dense` and `Late`: chunks by the cosine similarity of vectors, exact."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from chunkcore.models.base import Embedder
from chunkcore.models.late import get_token_embedder
from chunkcore.retrieval.base import Hits, Pool, Search, retrievers
from chunkcore.retrieval.search import Indices, Rows, top_k_owners

__all__ = ["Dense", "Late"]


@retrievers.register("dense")
@dataclass(frozen=True, kw_only=True)
class Dense(Search):
    """Exact search by cosine similarity. A chunk with segments is found by the best of them (see `MultiVectorIndex`).

    Attributes:
        cluster_only: chunks that have segments are searched by the mean of their segments' vectors alone.

    Cost: each chunk and each query is embedded once; a search is O(queries · chunks · dimensions).

    >>> Dense().name, Dense(cluster_only=True).name
    ('dense', 'dense:cluster_only=true')
    """

    cluster_only: bool = False

    def index(self, pool: Pool) -> _ByVectors:
        return _ByVectors(pool, *pool.vectors(cluster_only=self.cluster_only))


@retrievers.register("late")
@dataclass(frozen=True, kw_only=True)
class Late(Search):
    """Exact search by the vectors of late chunking: a chunk's tokens are read with their document (`LateEmbedder`).

    Such a chunk has no vectors of its segments. Cost: each document is read once, about twice its tokens where it is
    longer than the model reads.
    """

    def check(self, embedder: Embedder) -> None:
        get_token_embedder(embedder)

    def index(self, pool: Pool) -> _ByVectors:
        return _ByVectors(pool, *pool.late_vectors())


@dataclass(frozen=True)
class _ByVectors:
    pool: Pool
    vectors: Rows
    owners: Indices

    def search(self, queries: Sequence[str], k: int) -> Hits:
        indices, scores = top_k_owners(self.pool.query_vectors(queries), self.vectors, self.owners, k)
        return Hits(indices, scores.astype(np.float64))
