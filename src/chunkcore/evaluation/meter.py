"""`Meter`: the model calls and times of strategies and searches. Shared work counts in each."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chunkcore.chunkers.base import Chunker
from chunkcore.chunkers.llm import LLMChunker
from chunkcore.columns import BLOCK, KeyedNumbers, Keys, blocks, text_keys
from chunkcore.concurrency import Progress
from chunkcore.evaluation.results import ChunkStatistics, Cost
from chunkcore.models.base import TokenCountingEmbedder, Vectors
from chunkcore.models.cache import CachedEmbedder
from chunkcore.models.llm import Usage, get_llm
from chunkcore.retrieval.corpus import ChunkedCorpus
from chunkcore.retrieval.search import Mapper, Rows
from chunkcore.retrieval.vectors import StoredVectors, TextVectors
from chunkcore.spans import Numbers
from chunkcore.tokens import TokenCounter


@dataclass(eq=False)
class Spent:
    """The cost of cutting, or of a search.

    Attributes:
        embedding: seconds of embedding a strategy's own texts.
        waiting: seconds that a search waited for vectors.
        elsewhere: the part of `waiting` in which workers embedded chunks.
        late: seconds and tokens of late chunking; None if unused.
        chunks: whether a search used the chunks' vectors.
        queries: whether it used the queries' vectors.
        calls: batches of the strategy's distinct texts.
    """

    seconds: float = 0.0
    embedding: float = 0.0
    waiting: float = 0.0
    elsewhere: float = 0.0
    late: tuple[float, int] | None = None
    chunks: bool = False
    queries: bool = False
    calls: int = 0
    usage: Usage = field(default_factory=Usage)
    _texts: KeyedNumbers = field(default_factory=lambda: KeyedNumbers(np.bool_))

    @property
    def texts(self) -> Keys:
        """The keys of the distinct texts embedded by the strategy, ascending."""
        return self._texts.keys

    def add(self, keys: Keys) -> int:
        new = int(np.count_nonzero(~self._texts.of(keys)[1]))
        self._texts.add(keys, np.ones(len(keys), dtype=np.bool_))
        return new


class Meter(CachedEmbedder):
    """A cached embedder that measures the time and tokens of each text.

    A call's time is split over its new texts by length, so a text costs the same whether or not another strategy
    embedded it before. `embedder` lends its model and its cache, and keeps its own `progress`.

    >>> from types import SimpleNamespace
    >>> ones = lambda texts: np.ones((len(texts), 2), dtype=np.float32)
    >>> model = SimpleNamespace(name="m", fingerprint="m", max_tokens=None, embed_documents=ones, embed_queries=ones)
    >>> meter = Meter(CachedEmbedder(model))
    >>> meter.embed_documents(["a", "b"]).shape, meter.seconds_of(["a"]) == meter.seconds_of(["b"]) > 0
    ((2, 2), True)
    """

    def __init__(self, embedder: CachedEmbedder) -> None:
        self.plain = CachedEmbedder(
            embedder.embedder, embedder.cache, batch_size=embedder.batch_size, timeout=embedder.timeout
        )
        super().__init__(embedder.embedder, embedder.cache, batch_size=embedder.batch_size, timeout=embedder.timeout)
        self._seconds = KeyedNumbers(np.float64)
        self._tokens = KeyedNumbers(np.int64)
        self._spent = Spent()
        # One call at a time, so that waiting for another thread does not count as work.
        self._one_call = threading.RLock()

    def __reduce__(self) -> tuple[Any, ...]:
        return self.plain.__reduce__()  # other processes do not measure

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        return self._timed(super().embed_documents, texts)

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        return self._timed(super().embed_queries, texts)

    def _timed(self, embed: Callable[[Sequence[str]], Vectors], texts: Sequence[str]) -> Vectors:
        with self._one_call:
            began = time.perf_counter()
            vectors = embed(texts)
            seconds = time.perf_counter() - began
            keys, first = np.unique(text_keys(texts), return_index=True)
            lengths = np.array([len(texts[i]) for i in first.tolist()], dtype=np.float64)
            new = ~self._seconds.of(keys)[1]
            self._seconds.add(keys[new], seconds * lengths[new] / (lengths[new].sum() or 1))
            self.count(texts)
            self._spent.calls += self._batches(self._spent.add(keys))
            self._spent.embedding += time.perf_counter() - began
        return vectors

    @contextmanager
    def measured(self, chunker: Chunker | None = None) -> Iterator[Spent]:
        """Measure the block, in all threads; `chunker` is its strategy."""
        spent = self._spent = Spent()
        before = _usage(chunker)
        began = time.perf_counter()
        try:
            yield spent
        finally:
            spent.seconds = time.perf_counter() - began
            now = _usage(chunker)
            spent.usage = Usage(**{each.name: getattr(now, each.name) - getattr(before, each.name) for each in _USAGE})
            self._spent = Spent()

    @contextmanager
    def waiting(self) -> Iterator[Spent]:
        spent = self._spent
        began = time.perf_counter()
        try:
            yield spent
        finally:
            spent.waiting += time.perf_counter() - began

    def count(self, texts: Sequence[str], counts: NDArray[np.integer] | None = None) -> None:
        """Store the texts' lengths in the model's tokens, if known; `counts` comes from a worker."""
        if not isinstance(self, TokenCountingEmbedder):
            return
        keys = text_keys(texts)
        with self._one_call:
            if counts is None:
                unknown = np.flatnonzero(~self._tokens.of(keys)[1])
                if not len(unknown):
                    return
                firsts = np.sort(unknown[np.unique(keys[unknown], return_index=True)[1]])
                keys, counts = keys[firsts], self.count_tokens([texts[i] for i in firsts.tolist()])
            self._tokens.add(keys, counts)

    def token_counts(self, keys: Keys) -> NDArray[np.int64] | None:
        """The texts' lengths in the model's tokens, by key: int64; None if the model does not say."""
        return self._tokens.of(keys)[0] if isinstance(self, TokenCountingEmbedder) else None

    def tokens_read(self, keys: Keys) -> int | None:
        """The tokens that the model reads of distinct texts; None if it does not say."""
        counts = self.token_counts(keys)
        if counts is None or self.max_tokens is None:
            return None if counts is None else int(counts.sum())
        return int(np.minimum(counts, self.max_tokens).sum())

    def seconds_of(self, texts: Sequence[str] | Keys) -> float:
        keys = texts if isinstance(texts, np.ndarray) else text_keys(texts)
        return float(self._seconds.of(np.unique(keys))[0].sum())

    def _batches(self, texts: int) -> int:
        return -(-texts // self.batch_size)

    def cost(
        self, cutting: Spent, searching: Spent, corpus: ChunkedCorpus, queries: Sequence[str], source_tokens: int
    ) -> tuple[Cost, dict[str, float]]:
        """The cost of a strategy and a search, and the seconds of each step: "chunk", "embed", "search"."""
        own = _keys(corpus) if searching.chunks else text_keys([])
        asked = text_keys(queries if searching.queries else [])
        late_seconds, late_tokens = searching.late or (0.0, 0)
        documents = len(corpus.documents) if searching.late else 0
        texts = np.union1d(own, cutting.texts)
        tokens = self.tokens_read(texts)
        elsewhere = searching.elsewhere + late_seconds
        cost = Cost(
            source_tokens=source_tokens,
            embedder_calls=cutting.calls
            + self._batches(len(np.setdiff1d(own, cutting.texts, assume_unique=True)))
            + documents,
            embedded_texts=len(texts) + documents,
            embedded_tokens=None if tokens is None else tokens + late_tokens,
            query_texts=len(np.unique(asked)),
            query_tokens=self.tokens_read(np.unique(asked)),
            llm_calls=cutting.usage.calls,
            llm_kept_answers=cutting.usage.kept_answers,
            llm_input_tokens=cutting.usage.input_tokens,
            llm_output_tokens=cutting.usage.output_tokens,
            llm_cached_tokens=cutting.usage.cached_tokens,
            seconds=self.seconds_of(texts) + self.seconds_of(asked) + elsewhere,
        )
        return cost, {
            "chunk": max(cutting.seconds - cutting.embedding, 0.0) + self.seconds_of(cutting.texts),
            "embed": self.seconds_of(own) + elsewhere + self.seconds_of(asked),
            "search": max(searching.seconds - searching.waiting, 0.0),
        }

    def statistics(
        self, searching: Spent, corpus: ChunkedCorpus, chunker: Chunker, counter: TokenCounter
    ) -> ChunkStatistics:
        """The chunks' lengths in the counter's unit, and what the model truncates."""
        if chunker.token_counter == counter:
            lengths = corpus.token_counts
        else:
            lengths = np.concatenate([counter.count_many([chunk.text for chunk in some]) for some in blocks(corpus)])
        known = self.token_counts(_keys(corpus) if searching.chunks else text_keys([]))
        if known is None or self.max_tokens is None:
            return ChunkStatistics(lengths)
        over = known - self.max_tokens
        return ChunkStatistics(lengths, int((over > 0).sum()), int(np.maximum(over, 0).sum()))


_USAGE = fields(Usage)


def _keys(corpus: ChunkedCorpus) -> Keys:
    return np.unique(text_keys(corpus.embedded_texts))


def _usage(chunker: Chunker | None) -> Usage:
    models = {}
    left = [] if chunker is None else [chunker]
    while left:
        each = left.pop()
        left += [inner for name in each.option_names() if isinstance(inner := getattr(each, name), Chunker)]
        if isinstance(each, LLMChunker):
            llm = get_llm(each.llm)
            models[id(llm)] = llm
    return sum((getattr(llm, "usage", Usage()) for llm in models.values()), Usage())


class MeteredVectors(TextVectors):
    """Vectors by a `Meter`, which records what a search uses."""

    def __init__(self, meter: Meter, corpora: Sequence[ChunkedCorpus], *, progress: Progress | None = None) -> None:
        super().__init__(meter, corpora, progress=progress)
        self._meter = meter
        self._late: tuple[float, int] | None = None

    @property
    def worker_embedder(self) -> CachedEmbedder:
        return self._meter.plain

    def chunks(self, corpus: ChunkedCorpus, *, cluster_only: bool = False) -> tuple[Rows, Numbers]:
        with self._meter.waiting() as spent:
            spent.chunks = True
            return super().chunks(corpus, cluster_only=cluster_only)

    def late(self, corpus: ChunkedCorpus) -> tuple[Rows, Numbers]:
        with self._meter.waiting() as spent:
            began = time.perf_counter()
            found = super().late(corpus)
            if self._late is None:
                seconds = time.perf_counter() - began
                self._late = seconds, sum(self.late_embedder.tokens_read(each.text) for each in corpus.documents)
            spent.late = self._late
        return found

    def queries(self, texts: Sequence[str]) -> Vectors:
        with self._meter.waiting() as spent:
            spent.queries = True
            return super().queries(texts)

    def stored(
        self, corpus: ChunkedCorpus, folder: Path | str, *, mapper: Mapper = map, size: int = BLOCK
    ) -> list[StoredVectors]:
        with self._meter.waiting() as spent:
            spent.chunks = True
            began = time.perf_counter()
            found = super().stored(corpus, folder, mapper=mapper, size=size)
            spent.elsewhere += time.perf_counter() - began
            for each in found:
                self._meter.count(corpus.embedded_texts[each.start : each.start + each.size], each.token_counts)
        return found
