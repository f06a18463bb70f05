"""`HNSW`: approximate search by cosine similarity, for corpora too large for exact search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from chunkcore.columns import BLOCK
from chunkcore.lazy import needed
from chunkcore.models.base import Embedder, Vectors
from chunkcore.registry import check_ranges
from chunkcore.retrieval.base import Hits, Index, RetrievalMethod, SearchRecall, retrievers
from chunkcore.retrieval.corpus import ChunkedCorpus
from chunkcore.retrieval.search import Best, cosines, first_of_each, top_k, unit
from chunkcore.retrieval.vectors import TextVectors
from chunkcore.spans import Numbers

Precision = Literal["f32", "f16", "i8"]

# For all queries together: one chunk with very many segments makes every query's list long.
_PROPOSED = 4_000_000
_SCORED = 20_000  # vectors; each is copied a few times as float64


@retrievers.register("hnsw")
@dataclass(frozen=True, kw_only=True)
class HNSW(RetrievalMethod):
    """Approximate search in a hierarchical navigable small-world graph (Malkov and Yashunin, TPAMI 2020), by usearch.

    The graph proposes chunks; each is then scored exactly, as in `Dense`. Some queries, evenly spaced, are also
    searched exactly: `Index.recall` is the share found. A chunk with segments scores as the best of its vectors.

    Attributes:
        m: neighbours that a vector is linked to; the paper's M.
        build: how many candidates are compared to find them; the paper's efConstruction.
        depth: how many candidates a search compares, at least twice as many as it returns; the paper's ef.
        precision: of the numbers in the graph.
        checked: questions that are also searched exactly.
        threads: that build the graph. One thread builds the same graph in every run; more are faster.

    Cost: one embedding per chunk and query. Building is O(chunks · log(chunks)), as long as thousands of exact queries.
    A search is O(log(chunks)); with segments it scores 2 · k times the most segments of a
    chunk. Memory: the vectors in `precision`, and about 8 · m bytes a vector.

    Raises:
        OptionError: an option is out of range.
        MissingExtraError: usearch is not installed.

    >>> HNSW(depth=200).name
    'hnsw:depth=200'
    """

    m: int = 16
    build: int = 128
    depth: int = 100
    precision: Precision = "f16"
    checked: int = 100
    threads: int = 1

    def validate(self) -> None:
        check_ranges(self, m=(2, 1_000), build=(1, 100_000), depth=(1, 100_000), checked=1, threads=(1, 1_000))

    def check(self, embedder: Embedder) -> None:
        _usearch()

    def index(self, corpus: ChunkedCorpus, vectors: TextVectors | None = None) -> Index:
        return _ByGraph(corpus, vectors or TextVectors(), self)


class _ByGraph(Index):
    def __init__(self, corpus: ChunkedCorpus, source: TextVectors, options: HNSW) -> None:
        super().__init__(corpus)
        self._source = source
        self._vectors, self._owners = vectors, owners = source.chunks(corpus)
        self._options = options
        # One chunk may fill as many places as it has vectors.
        self._widest = int(np.bincount(owners).max(initial=1))
        self._graph = _usearch().Index(
            ndim=max(vectors.shape[1], 1),
            metric="ip",  # on unit vectors; zero vectors stay at 0
            dtype=options.precision,
            connectivity=options.m,
            expansion_add=options.build,
            expansion_search=options.depth,
        )
        for start in range(0, len(vectors), BLOCK):
            block = unit(vectors[start : start + BLOCK])
            self._graph.add(np.arange(start, start + len(block)), block, threads=options.threads)

    def search(self, queries: Sequence[str], k: int) -> Hits:
        asked = self._source.queries(queries)
        k = min(k, int(self._owners[-1]) + 1) if len(self._owners) else 0
        if not k or not len(asked):
            return Hits(np.empty((len(asked), k), dtype=np.int64), np.empty((len(asked), k)))
        found = self._found(asked, k)
        some = np.unique(np.linspace(0, len(asked) - 1, min(self._options.checked, len(asked))).astype(np.int64))
        exact = top_k(asked[some], self._vectors, min(k * self._widest, len(self._vectors))).indices
        wanted = self._chunks(asked[some], exact, k)
        shares = [np.isin(own, other).mean() for own, other in zip(wanted.indices, found.indices[some], strict=True)]
        self.recall = SearchRecall(float(np.mean(shares)), len(some), k)
        return Hits(found.indices, found.scores.astype(np.float64))

    def _found(self, queries: Vectors, k: int) -> Best:
        # Twice as many: lower precision reorders close scores.
        deep = min(2 * k * self._widest, len(self._vectors))
        some = max(1, _PROPOSED // deep)
        found = Best.none(len(queries), k)
        for start in range(0, len(queries), some):
            own = queries[start : start + some]
            part = self._chunks(own, self._proposed(own, deep), k)
            found.indices[start : start + some], found.scores[start : start + some] = part
        return found

    def _proposed(self, queries: Vectors, deep: int) -> Numbers:
        answers = self._graph.search(unit(queries), deep, threads=self._options.threads)
        rows = np.atleast_2d(np.asarray(answers.keys)).astype(np.int64)
        if len(queries) > 1:
            rows[np.arange(deep) >= np.asarray(answers.counts)[:, None]] = -1
        return rows

    def _chunks(self, queries: Vectors, rows: Numbers, k: int) -> Best:
        best = Best.none(len(queries), k)
        some = max(1, min(256, _SCORED // max(rows.shape[1], 1)))
        for start in range(0, len(queries), some):
            own = rows[start : start + some]
            query, place = np.nonzero(own >= 0)
            row = own[query, place]
            scores = np.full(own.shape, -np.inf, dtype=np.float32)
            scores[query, place] = cosines(queries[start + query], self._vectors[row])
            owners = np.where(own >= 0, self._owners[own], -1)
            order = np.lexsort((owners, -scores), axis=1)
            owners, scores = np.take_along_axis(owners, order, axis=1), np.take_along_axis(scores, order, axis=1)
            first = first_of_each(owners) & (owners >= 0)
            rank = first.cumsum(axis=1) - 1
            query, place = np.nonzero(first & (rank < k))
            best.indices[start + query, rank[query, place]] = owners[query, place]
            best.scores[start + query, rank[query, place]] = scores[query, place]
        return best


def _usearch() -> Any:
    return needed("usearch.index", "ann", "search approximately")
