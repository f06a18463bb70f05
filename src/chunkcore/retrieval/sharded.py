"""`Sharded`: exact search whose vectors are made and searched wherever a mapper sends the work."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from chunkcore.columns import BLOCK, blocks
from chunkcore.errors import DataError, OptionError
from chunkcore.models.base import Embedder, TokenCountingEmbedder, embed
from chunkcore.retrieval.base import Hits, Pool
from chunkcore.retrieval.search import Mapper, Shard, VectorFile, top_k_shards

__all__ = ["Sharded"]


@dataclass(frozen=True, kw_only=True)
class Sharded:
    """A `RetrievalMethod` that finds what `Dense` finds, in shards that never stand in the memory of whoever asks.

    Each shard's texts go to `mapper` to be embedded; the vectors stay in a file of the folder, which the tasks of a
    search read. What comes back is numbers: whoever asks holds the texts and answers of the shards that are under way,
    and the best of each query.

    Attributes:
        mapper: does a function for each item: `map`, that of a pool of threads or processes, or `RayMap` of
            `chunkadapters.ray`. One that takes its items as it needs them keeps few texts under way.
        folder: where vectors are kept while they are searched, 4 bytes a number; every worker sees it. The system's
            temporary folder by default.
        size: chunks a shard.

    Raises:
        OptionError: size is under 1, or, when indexing, the folder is none; or chunks have segments.

    >>> from types import SimpleNamespace
    >>> from chunkcore.document import Chunk, Span
    >>> ones = lambda texts: np.array([[len(text), 1] for text in texts], dtype=np.float32)
    >>> model = SimpleNamespace(name="m", fingerprint="m", max_tokens=None, embed_documents=ones, embed_queries=ones)
    >>> chunks = [Chunk("d", i, (Span(0, 9),), text, 1) for i, text in enumerate(["a", "aaa", "aaaaaaaaa"])]
    >>> Sharded(size=2).index(Pool(chunks, embedder=model)).search(["aaaaaaaa"], 2).indices.tolist()
    [[2, 1]]
    """

    mapper: Mapper = field(default=map, compare=False)
    folder: Path | str | None = None
    size: int = BLOCK

    name = "sharded"
    embeds = True

    def __post_init__(self) -> None:
        if type(self.size) is not int or self.size < 1:
            raise OptionError(f"sharded: size is at least 1, got {self.size!r}")

    def index(self, pool: Pool) -> _ByShards:
        """Have the chunks embedded, shard by shard."""
        if self.folder is not None and not Path(self.folder).is_dir():
            raise OptionError(
                f"sharded: the folder {str(self.folder)!r} is not there: make it, where all workers see it"
            )
        if any(chunk.segments for chunk in pool.chunks):
            raise OptionError(
                "sharded: these chunks have segments, which are searched together: take the retriever dense"
            )
        return _ByShards(pool, self.mapper, tempfile.TemporaryDirectory(prefix="vectors-", dir=self.folder), self.size)


class _Kept(NamedTuple):
    """A shard's vectors in a file."""

    start: int
    size: int
    dimensions: int
    path: str

    def load(self) -> VectorFile:
        try:
            rows = VectorFile(self.path, self.dimensions)
        except FileNotFoundError as error:
            raise _unseen(self.path) from error
        if len(rows) != self.size:
            raise DataError(f"{self.path} holds {len(rows)} vectors, {self.size} were written: it has been changed")
        return rows


class _ByShards:
    def __init__(self, pool: Pool, mapper: Mapper, folder: tempfile.TemporaryDirectory[str], size: int) -> None:
        began = time.perf_counter()
        self._pool = pool
        self._mapper = mapper
        self._folder = folder  # goes with this object
        starts = range(0, len(pool.chunks), size)
        items = ((start, list(some)) for start, some in zip(starts, blocks(pool.embedded_texts, size)))  # noqa: B905
        made = partial(_embed, embedder=pool.portable_embedder, folder=folder.name)
        self._kept: list[_Kept] = []
        tokens: dict[int, NDArray[np.int32] | None] = {}
        done = 0
        for kept, counts in mapper(made, items):
            self._kept.append(kept)
            tokens[kept.start] = counts
            done += kept.size
            pool.note_progress(done, len(pool.chunks))
        self._kept.sort()
        if [kept.start for kept in self._kept] != list(starts):
            raise DataError(
                f"{len(starts)} shards were to be embedded and {len(self._kept)} came back: expected each once"
            )
        widths = {kept.dimensions for kept in self._kept}
        if len(widths) > 1:
            raise DataError(f"shards have vectors of {sorted(widths)} dimensions: expected the same model everywhere")
        told = [each for start in starts if (each := tokens[start]) is not None]
        counted = {"tokens": np.concatenate(told)} if told and len(told) == len(starts) else {}
        pool.note_embedding(time.perf_counter() - began, **counted)

    def search(self, queries: Sequence[str], k: int) -> Hits:
        shards = (Shard(kept.start, kept.load) for kept in self._kept)
        found = top_k_shards(self._pool.query_vectors(queries), shards, k, mapper=self._mapper)
        return Hits(found.indices, found.scores.astype(np.float64))


def _embed(
    item: tuple[int, Sequence[str]], *, embedder: Embedder, folder: str
) -> tuple[_Kept, NDArray[np.int32] | None]:
    """Embed a shard's texts where this runs; tell where the vectors are, and how long the texts are to the model."""
    start, texts = item
    path = Path(folder, f"{start}.f32")
    dimensions = 0
    counts = []
    try:
        kept = path.open("wb")
    except FileNotFoundError as error:
        raise _unseen(str(path)) from error
    with kept as file:
        for some in blocks(texts):
            vectors = embed(embedder, some)
            dimensions = dimensions or vectors.shape[1]
            if vectors.shape[1] != dimensions:
                raise DataError(f"the model answered with {vectors.shape[1]} dimensions, and {dimensions} before")
            file.write(np.ascontiguousarray(vectors, dtype="<f4").data)
            if isinstance(embedder, TokenCountingEmbedder):
                counts.append(embedder.count_tokens(some).astype(np.int32))
    return _Kept(start, len(texts), dimensions, str(path)), np.concatenate(counts) if counts else None


def _unseen(path: str) -> DataError:
    return DataError(f"{path} is not to be found where the work is done: give sharded a folder that every worker sees")
