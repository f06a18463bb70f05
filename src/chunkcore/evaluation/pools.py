"""The pools of an experiment: each distinct text of all strategies is embedded once, when the first search asks."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import NamedTuple

import numpy as np

from chunkcore.document import Chunk, Document, Span
from chunkcore.evaluation.metering import MeteredEmbedder
from chunkcore.index.multi_vector import chunk_vectors
from chunkcore.index.search import Indices
from chunkcore.models.base import Vectors
from chunkcore.models.late import LateEmbedder
from chunkcore.progress import Progress
from chunkcore.retrieval.pool import Pool

__all__ = ["Asked", "RunPool", "Shared"]


class Asked:
    """What a search asked its pool for, and the seconds until it was answered."""

    def __init__(self) -> None:
        self.chunks = False
        self.late = False
        self.queries = False
        self.seconds = 0.0


class Late(NamedTuple):
    """The vectors of each strategy's chunks, and what reading the documents took."""

    vectors: list[Vectors]
    seconds: float
    tokens: int


class Shared:
    """What all strategies of a run have in common: the documents, the embedder, and the vectors.

    Args:
        chunks: of each strategy.
        documents: the benchmark's.
        metered: the run's embedder.
        report: told of "embed" and "queries".
    """

    def __init__(
        self,
        chunks: Sequence[Sequence[Chunk]],
        documents: Sequence[Document],
        metered: MeteredEmbedder,
        report: Progress,
    ) -> None:
        self.documents = documents
        self.metered = metered
        self._report = report
        self.pools = [RunPool(own, number, self) for number, own in enumerate(chunks)]
        self._queries: tuple[tuple[str, ...], Vectors] | None = None

    @cached_property
    def rows(self) -> dict[str, int]:
        """The row of each distinct text."""
        rows: dict[str, int] = {}
        for pool in self.pools:
            for text in pool.embedded_texts:
                rows.setdefault(text, len(rows))
        return rows

    @cached_property
    def vectors(self) -> Vectors:
        """The rows, from one call of the model."""
        self._watch("embed")
        vectors = self.metered.embed_documents(list(self.rows))
        self._report("embed", len(self.rows), len(self.rows))
        return vectors

    @cached_property
    def late(self) -> Late:
        """Late chunking: all strategies' chunks from one reading of each document."""
        reader = LateEmbedder(self.metered)
        places: dict[tuple[str, tuple[Span, ...]], int] = {}
        distinct: list[Chunk] = []
        rows = []
        for pool in self.pools:
            for chunk in pool.chunks:
                if places.setdefault((chunk.document_id, chunk.spans), len(distinct)) == len(distinct):
                    distinct.append(chunk)
            rows.append([places[chunk.document_id, chunk.spans] for chunk in pool.chunks])
        began = time.perf_counter()
        vectors = reader.embed_chunks(self.documents, distinct, progress=lambda *done: self._report("embed", *done))
        seconds = time.perf_counter() - began
        tokens = sum(reader.tokens_read(document.text) for document in self.documents)
        return Late([vectors[own] for own in rows], seconds, tokens)

    def query_vectors(self, queries: Sequence[str]) -> Vectors:
        """One row a query; the same queries are embedded once."""
        asked = tuple(queries)
        if self._queries is None or self._queries[0] != asked:
            self._watch("queries")
            self._queries = asked, self.metered.embed_queries(queries)
        return self._queries[1]

    def _watch(self, step: str) -> None:
        self.metered.embedder.progress = lambda done, total: self._report(step, done, total)


class RunPool(Pool):
    """One strategy's chunks, with the vectors that the run shares, and a note of what is asked for."""

    def __init__(self, chunks: Sequence[Chunk], number: int, shared: Shared) -> None:
        super().__init__(chunks, documents=shared.documents, embedder=shared.metered)
        self._number = number
        self._shared = shared
        self._asked = Asked()

    @contextmanager
    def noted(self) -> Iterator[Asked]:
        """Note what is asked for in the block."""
        self._asked = Asked()
        yield self._asked

    def vectors(self, *, cluster_only: bool = False) -> tuple[Vectors, Indices]:
        self._asked.chunks = True
        own = self._timed(lambda: self._shared.vectors[[self._shared.rows[text] for text in self.embedded_texts]])
        return chunk_vectors(own, self.owners, cluster_only=cluster_only)

    def late_vectors(self) -> tuple[Vectors, Indices]:
        self._asked.late = True
        own = self._timed(lambda: self._shared.late.vectors[self._number])
        return own, np.arange(len(self.chunks), dtype=np.int64)

    def query_vectors(self, queries: Sequence[str]) -> Vectors:
        self._asked.queries = True
        return self._timed(lambda: self._shared.query_vectors(queries))

    def _timed(self, ask: Callable[[], Vectors]) -> Vectors:
        began = time.perf_counter()
        answer = ask()
        self._asked.seconds += time.perf_counter() - began
        return answer
