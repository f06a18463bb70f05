"""What a chunker and a search cost, as if each ran alone: one observer sees every text that is embedded."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from chunkcore.chunkers.base import Chunker
from chunkcore.chunkers.llm import llms_of
from chunkcore.columns import text_key
from chunkcore.concurrency import Progress
from chunkcore.errors import ModelError
from chunkcore.evaluation.results import ChunkStatistics, Cost
from chunkcore.models.base import TokenCountingEmbedder, Vectors
from chunkcore.models.llm import Usage
from chunkcore.models.loading import CachedEmbedder
from chunkcore.retrieval import ChunkedCorpus
from chunkcore.retrieval.vectors import Rows, TextVectors
from chunkcore.spans import Numbers


@dataclass(eq=False)
class Work:
    """What cutting, or a search, did."""

    seconds: float = 0.0  # of the whole
    embedding: float = 0.0  # seconds in which the chunker's own texts were embedded
    texts: set[bytes] = field(default_factory=set)  # keys of those texts
    waiting: float = 0.0  # seconds in which a search waited for vectors
    late: tuple[float, int] | None = None  # seconds and tokens of late chunking
    chunks: bool = False  # whether a search used the chunks' vectors
    queries: bool = False  # whether a search used the queries' vectors
    usage: Usage = field(default_factory=Usage)  # of the chunker's language models


@dataclass(frozen=True, slots=True)
class _Embedded:
    """What a text took: seconds, and the model's tokens. Seconds are NaN if a cache had its vector."""

    seconds: float
    tokens: int


class Meter(CachedEmbedder):
    """A cached embedder that measures the time and tokens of each text.

    A call's time is split over its new texts by length, so a text costs the same whether or not another chunker
    embedded it before. It uses the model and the cache of `embedder`.
    """

    def __init__(self, embedder: CachedEmbedder) -> None:
        super().__init__(embedder.model, embedder.cache, batch_size=embedder.batch_size)
        self._texts: dict[bytes, _Embedded] = {}
        self._work = Work()
        # One call at a time, so that waiting for another thread does not count as work.
        self._one_call = threading.RLock()

    def _embed(self, texts: Sequence[str], *, queries: bool) -> Vectors:
        with self._one_call:
            began, before = time.perf_counter(), self.embedded
            vectors = super()._embed(texts, queries=queries)
            seconds = time.perf_counter() - began
            by_key = {text_key(text): text for text in texts}
            new = {key: text for key, text in by_key.items() if key not in self._texts}
            if self.embedded - before < len(new):  # the cache had some: this time is not a model's
                seconds = math.nan
            self._record(new, seconds)
            work = self._work
            work.texts |= by_key.keys()
            work.embedding += time.perf_counter() - began
        return vectors

    def _record(self, new: dict[bytes, str], seconds: float) -> None:
        counts = [0] * len(new)
        if new and isinstance(self, TokenCountingEmbedder):
            counts = self.count_tokens(list(new.values())).tolist()
        characters = sum(map(len, new.values())) or 1
        for (key, text), count in zip(new.items(), counts, strict=True):
            self._texts[key] = _Embedded(seconds * len(text) / characters, count)

    @contextmanager
    def measured(self, chunker: Chunker | None = None) -> Iterator[Work]:
        """Measure the block, in all threads; `chunker` is the one that cuts."""
        work = self._work = Work()
        before = _usage(chunker)
        began = time.perf_counter()
        try:
            yield work
        finally:
            work.seconds = time.perf_counter() - began
            work.usage = _usage(chunker) - before
            self._work = Work()

    @contextmanager
    def waiting(self) -> Iterator[Work]:
        """Count the block as waiting for vectors."""
        work = self._work
        began = time.perf_counter()
        try:
            yield work
        finally:
            work.waiting += time.perf_counter() - began

    def cost(
        self,
        cutting: Work,
        searching: Work,
        corpus: ChunkedCorpus,
        queries: Sequence[str],
        source_tokens: int,
    ) -> tuple[Cost, dict[str, float]]:
        """The cost of a chunker and a search, and the seconds of each step: "chunk", "embed", "search".

        A step for which a cache had vectors has no seconds: they would be too few.
        """
        chunks = _keys(corpus) if searching.chunks else set()
        questions = {text_key(text) for text in queries} if searching.queries else set()
        late_seconds, late_tokens = searching.late or (0.0, 0)
        documents = len(corpus.documents) if searching.late else 0
        texts = chunks | cutting.texts
        calls = self._batches(len(cutting.texts)) + self._batches(len(chunks - cutting.texts))
        tokens = self._tokens_read(texts)
        cost = Cost(
            source_tokens=source_tokens,
            embedder_calls=calls + documents,
            embedded_texts=len(texts) + documents,
            embedded_tokens=None if tokens is None else tokens + late_tokens,
            llm_calls=cutting.usage.calls,
            llm_input_tokens=cutting.usage.input_tokens,
            llm_output_tokens=cutting.usage.output_tokens,
        )
        cut_alone = max(cutting.seconds - cutting.embedding, 0.0)
        seconds = {
            "chunk": cut_alone + self._seconds(cutting.texts),
            "embed": self._seconds(chunks) + late_seconds + self._seconds(questions),
            "search": max(searching.seconds - searching.waiting, 0.0),
        }
        return cost, {step: value for step, value in seconds.items() if not math.isnan(value)}

    def statistics(
        self, searching: Work, corpus: ChunkedCorpus, lengths: Numbers
    ) -> ChunkStatistics:
        """The chunks' `lengths`, and what the model cuts off of the chunks that a search embeds."""
        if not searching.chunks or self.max_tokens is None:
            return ChunkStatistics(lengths)
        read = (self._texts[key].tokens for key in _keys(corpus) if key in self._texts)
        lost = [tokens - self.max_tokens for tokens in read if tokens > self.max_tokens]
        return ChunkStatistics(lengths, len(lost), sum(lost))

    def _seconds(self, keys: Iterable[bytes]) -> float:
        return math.fsum(self._texts[key].seconds for key in keys if key in self._texts)

    def _tokens_read(self, keys: Collection[bytes]) -> int | None:
        """The tokens that the model reads of distinct texts; None if it does not say."""
        if not keys:
            return 0  # without loading a model
        if not isinstance(self, TokenCountingEmbedder):
            return None
        counts = [self._texts[key].tokens for key in keys if key in self._texts]
        if self.max_tokens is None:
            return sum(counts)
        return sum(min(count, self.max_tokens) for count in counts)

    def _batches(self, texts: int) -> int:
        return -(-texts // self.batch_size)


def _keys(corpus: ChunkedCorpus) -> set[bytes]:
    return set(map(text_key, corpus.embedded_texts))


def _usage(chunker: Chunker | None) -> Usage:
    total = Usage()
    for llm in llms_of(chunker) if chunker else ():
        total += getattr(llm, "usage", Usage())
    return total


class MeteredVectors(TextVectors):
    """Vectors by a `Meter`, which records what a search uses."""

    def __init__(
        self,
        meter: Meter,
        corpora: Sequence[ChunkedCorpus],
        questions: Sequence[str],
        *,
        progress: Progress | None = None,
    ) -> None:
        super().__init__(meter, corpora, progress=progress)
        self.meter = meter
        self._places = {text: place for place, text in enumerate(dict.fromkeys(questions))}
        self._late: tuple[float, int] | None = None

    def chunks(self, corpus: ChunkedCorpus, *, cluster_only: bool = False) -> tuple[Rows, Numbers]:
        with self.meter.waiting() as work:
            work.chunks = True
            return super().chunks(corpus, cluster_only=cluster_only)

    def late(self, corpus: ChunkedCorpus) -> tuple[Rows, Numbers]:
        with self.meter.waiting() as work:
            began = time.perf_counter()
            vectors = super().late(corpus)
            if self._late is None:
                seconds = time.perf_counter() - began
                texts = [document.text for document in corpus.documents]
                self._late = (seconds, sum(map(self.late_embedder.tokens_read, texts)))
            work.late = self._late
        return vectors

    def queries(self, texts: Sequence[str]) -> Vectors:
        with self.meter.waiting() as work:
            work.queries = True
            if not self._places.keys() >= set(texts):
                return super().queries(texts)
            try:
                whole = super().queries([*self._places])  # at once, also for a part of them
            except ModelError:  # one of them may fail alone
                return super().queries(texts)
            return whole[[self._places[text] for text in texts]]
