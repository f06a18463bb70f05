"""`Dense`, `Late` and `Sharded`: exact search by the cosine similarity of vectors."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from chunkcore.columns import BLOCK
from chunkcore.errors import OptionError
from chunkcore.models.base import Embedder
from chunkcore.models.late import get_token_embedder
from chunkcore.registry import check_ranges
from chunkcore.retrieval.base import Hits, Index, RetrievalMethod, retrievers
from chunkcore.retrieval.corpus import ChunkedCorpus
from chunkcore.retrieval.search import Mapper, Rows, Shard, top_k_owners, top_k_shards
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

    def index(self, corpus: ChunkedCorpus, vectors: TextVectors | None = None) -> Index:
        vectors = vectors or TextVectors()
        return _ByVectors(corpus, vectors, *vectors.chunks(corpus, cluster_only=self.cluster_only))


@retrievers.register("late")
@dataclass(frozen=True, kw_only=True)
class Late(RetrievalMethod):
    """Exact search by the vectors of late chunking: a chunk's tokens are read with their document (`LateEmbedder`).

    Segments are ignored. Cost: the model reads each document once; about twice its tokens if it exceeds the model's
    limit.
    """

    def check(self, embedder: Embedder) -> None:
        get_token_embedder(embedder)

    def index(self, corpus: ChunkedCorpus, vectors: TextVectors | None = None) -> Index:
        vectors = vectors or TextVectors()
        return _ByVectors(corpus, vectors, *vectors.late(corpus))


class _ByVectors(Index):
    def __init__(self, corpus: ChunkedCorpus, vectors: TextVectors, rows: Rows, owners: Numbers) -> None:
        super().__init__(corpus)
        self._vectors = vectors
        self._rows = rows
        self._owners = owners

    def search(self, queries: Sequence[str], k: int) -> Hits:
        indices, scores = top_k_owners(self._vectors.queries(queries), self._rows, self._owners, k)
        return Hits(indices, scores.astype(np.float64))


@retrievers.register("sharded")
@dataclass(frozen=True, kw_only=True)
class Sharded(RetrievalMethod):
    """What `Dense` finds, in shards that are embedded and searched wherever a mapper sends the work.

    Workers embed each shard and write its vectors to the folder; the tasks of a search read them. The caller holds the
    shards in flight and the best hits of each query.

    Attributes:
        mapper: `map`, a thread or process pool's ``map``, or `RayMap` of `chunkadapters.ray`. A lazy mapper keeps few
            texts in flight.
        folder: where vectors are kept, 4 bytes a number; every worker must see it. None for the system's temporary
            folder.
        size: chunks per shard.

    Raises:
        OptionError: size is under 1; when indexing, the folder is missing, or chunks have segments.

    >>> from types import SimpleNamespace
    >>> from chunkcore.document import Chunk, Span
    >>> ones = lambda texts: np.array([[len(text), 1] for text in texts], dtype=np.float32)
    >>> model = SimpleNamespace(name="m", fingerprint="m", max_tokens=None, embed_documents=ones, embed_queries=ones)
    >>> chunks = [Chunk("d", i, (Span(0, 9),), text, 1) for i, text in enumerate(["a", "aaa", "aaaaaaaaa"])]
    >>> index = Sharded(size=2).index(ChunkedCorpus(chunks), TextVectors(model))
    >>> index.search(["aaaaaaaa"], 2).indices.tolist()
    [[2, 1]]
    """

    mapper: Mapper = field(default=map, compare=False)
    folder: Path | str | None = None
    size: int = BLOCK

    @property
    def name(self) -> str:
        return self.kind

    def validate(self) -> None:
        check_ranges(self, size=1)

    def index(self, corpus: ChunkedCorpus, vectors: TextVectors | None = None) -> Index:
        if self.folder is not None and not Path(self.folder).is_dir():
            raise OptionError(
                f"sharded: the folder {str(self.folder)!r} is not there: make it, where all workers see it"
            )
        if corpus.segmented:
            raise OptionError(
                "sharded: these chunks have segments, which are searched together: take the retriever dense"
            )
        return _ByShards(corpus, vectors or TextVectors(), self)


class _ByShards(Index):
    def __init__(self, corpus: ChunkedCorpus, vectors: TextVectors, options: Sharded) -> None:
        super().__init__(corpus)
        self._vectors = vectors
        self._mapper = options.mapper
        self._folder = tempfile.TemporaryDirectory(prefix="vectors-", dir=options.folder)  # goes with the index
        self._stored = vectors.stored(corpus, self._folder.name, mapper=options.mapper, size=options.size)

    def search(self, queries: Sequence[str], k: int) -> Hits:
        shards = (Shard(each.start, each.load) for each in self._stored)
        found = top_k_shards(self._vectors.queries(queries), shards, k, mapper=self._mapper)
        return Hits(found.indices, found.scores.astype(np.float64))
