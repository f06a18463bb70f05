"""What a chunker and a search cost: time, tokens and money, as if each ran alone.

One observer counts: `Meter` around the embedder sees each text that is embedded, `MeteredVectors` which vectors a
search used, and language models count their own calls. `run_experiment` puts the sums into each report.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

import numpy as np

from chunkcore.chunkers.base import Chunker
from chunkcore.chunkers.llm import llms_of
from chunkcore.columns import text_key
from chunkcore.concurrency import Progress
from chunkcore.errors import echo
from chunkcore.evaluation.resampling import mean_std
from chunkcore.models.base import TokenCountingEmbedder, Vectors
from chunkcore.models.cache import CachedEmbedder
from chunkcore.models.llm import Prices, Usage
from chunkcore.options import check_number
from chunkcore.retrieval import ChunkedCorpus
from chunkcore.retrieval.vectors import Rows, TextVectors
from chunkcore.spans import Numbers

_MILLION = 1_000_000


@dataclass(frozen=True, kw_only=True)
class ModelPrices:
    """What models cost, in any currency.

    Attributes:
        embedding: the price of a million tokens that the embedder reads; None if unknown.
        llm: the prices of the language models; None if unknown.

    Raises `OptionError`: the price is negative or not finite.
    """

    embedding: float | None = None
    llm: Prices | None = None

    def __post_init__(self) -> None:
        if self.embedding is not None:
            check_number("the price of a million tokens (embedding)", self.embedding, whole=False)


@dataclass(frozen=True, kw_only=True)
class Cost:
    """The model cost of indexing a benchmark's documents, for one chunker and one retriever, as if alone.

    Cached texts count too; a text that a chunker embeds twice counts once. A chunker that embeds each sentence to find
    boundaries pays the model a second time (Qu, Tu and Bao 2024, section 5).

    Attributes:
        source_tokens: tokens of all documents, by the counter that scores.
        embedder_calls: batches sent to the embedder.
        embedded_texts: distinct chunks (or their segments), and the chunker's own texts for finding boundaries.
        embedded_tokens: what the embedder reads of these texts; None if it does not say.
        llm_calls: of the chunker's language models, retries included; answers from a cache are not counted.
        llm_input_tokens: of the calls; `llm_cached_tokens` are those in the endpoint's cache.
        money: for the documents, without queries, in the prices' currency; None if a price is unknown.

    >>> cost = Cost(source_tokens=2_000_000, embedded_texts=9, embedded_tokens=3_000_000)
    >>> priced = cost.priced(ModelPrices(embedding=0.02))
    >>> priced.money, round(priced.money_per_million, 3), cost.tokens_ratio
    (0.06, 0.03, 1.5)
    """

    source_tokens: int = 0
    embedder_calls: int = 0
    embedded_texts: int = 0
    embedded_tokens: int | None = None
    llm_calls: int = 0
    llm_input_tokens: int = 0
    llm_output_tokens: int = 0
    llm_cached_tokens: int = 0
    money: float | None = None

    def priced(self, prices: ModelPrices) -> Cost:
        """The cost with `money`, if all models that were used have prices."""
        money = 0.0
        if prices == ModelPrices():
            return self
        if self.embedded_texts:
            if prices.embedding is None or self.embedded_tokens is None:
                return self
            money += prices.embedding * self.embedded_tokens / _MILLION
        if self.llm_calls:
            if prices.llm is None:
                return self
            used = Usage(
                input_tokens=self.llm_input_tokens,
                cached_tokens=self.llm_cached_tokens,
                output_tokens=self.llm_output_tokens,
            )
            money += used.cost(prices.llm)
        return replace(self, money=money)

    @property
    def money_per_million(self) -> float:
        """Money per million source tokens; NaN without prices or tokens."""
        return math.nan if self.money is None else self.money * _MILLION / (self.source_tokens or math.nan)

    @property
    def tokens_ratio(self) -> float:
        """Embedded tokens per source token; NaN if unknown."""
        return math.nan if self.embedded_tokens is None else self.embedded_tokens / (self.source_tokens or math.nan)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Cost:
        """The inverse of `to_dict`; unknown keys are ignored. Raises `TypeError` or `ValueError` for a non-number."""
        values = {column.name: data[column.name] for column in fields(cls) if column.name in data}
        for value in values.values():
            if isinstance(value, bool) or not (value is None or isinstance(value, int | float)):
                raise TypeError(f"a cost is a number, got {echo(value)}")
            if value is not None and not 0 <= value < math.inf:
                raise ValueError(f"a cost is at least 0, got {echo(value)}")
        return cls(**values)


@dataclass(frozen=True, eq=False)
class ChunkStatistics:
    """The chunks' lengths.

    Attributes:
        tokens: of each chunk, int64, shape (chunks,).
        truncated: distinct chunk texts over the embedder's limit; 0 if unknown.
        tokens_lost: the embedder's tokens cut off of them.

    >>> lengths = ChunkStatistics(np.array([2, 4]))
    >>> lengths.count, lengths.mean, lengths.maximum
    (2, 3.0, 4)
    """

    tokens: Numbers
    truncated: int = 0
    tokens_lost: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "tokens", np.asarray(self.tokens, dtype=np.int64))

    @property
    def count(self) -> int:
        return len(self.tokens)

    @property
    def mean(self) -> float:
        return mean_std(self.tokens)[0]

    @property
    def std(self) -> float:
        return mean_std(self.tokens)[1]

    @property
    def median(self) -> float:
        return float(np.median(self.tokens)) if self.count else math.nan

    @property
    def minimum(self) -> int:
        return int(self.tokens.min()) if self.count else 0

    @property
    def maximum(self) -> int:
        return int(self.tokens.max(initial=0))


@dataclass(eq=False)
class Work:
    """What cutting, or a search, did.

    Attributes:
        seconds: of the whole.
        embedding: seconds in which the chunker's own texts were embedded; `texts` are their keys, `calls` the batches.
        waiting: seconds in which a search waited for vectors.
        late: seconds and tokens of late chunking.
        chunks: whether a search used the chunks' vectors.
        queries: whether a search used the queries' vectors.
        usage: of the chunker's language models.
    """

    seconds: float = 0.0
    embedding: float = 0.0
    texts: set[bytes] = field(default_factory=set)
    calls: int = 0
    waiting: float = 0.0
    late: tuple[float, int] | None = None
    chunks: bool = False
    queries: bool = False
    usage: Usage = field(default_factory=Usage)


class Meter(CachedEmbedder):
    """A cached embedder that measures the time and tokens of each text.

    A call's time is split over its new texts by length, so a text costs the same whether or not another chunker
    embedded it before. `embedder` lends its model and its cache.

    >>> from types import SimpleNamespace
    >>> ones = lambda texts: np.ones((len(texts), 2), dtype=np.float32)
    >>> model = SimpleNamespace(name="m", fingerprint="m", max_tokens=None, embed_documents=ones, embed_queries=ones)
    >>> meter = Meter(CachedEmbedder(model))
    >>> meter.embed_documents(["a", "b"]).shape, meter.seconds_of(["a"]) == meter.seconds_of(["b"]) > 0
    ((2, 2), True)
    """

    def __init__(self, embedder: CachedEmbedder) -> None:
        super().__init__(embedder.embedder, embedder.cache, batch_size=embedder.batch_size)
        self._texts: dict[bytes, tuple[float, int]] = {}  # seconds and tokens of each text
        self._work = Work()
        # One call at a time, so that waiting for another thread does not count as work.
        self._one_call = threading.RLock()

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        return self._timed(super().embed_documents, texts)

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        return self._timed(super().embed_queries, texts)

    def _timed(self, embed: Callable[[Sequence[str]], Vectors], texts: Sequence[str]) -> Vectors:
        with self._one_call:
            began = time.perf_counter()
            vectors = embed(texts)
            seconds = time.perf_counter() - began
            by_key = {text_key(text): text for text in texts}
            new = {key: text for key, text in by_key.items() if key not in self._texts}
            counts = [0] * len(new)
            if new and isinstance(self, TokenCountingEmbedder):
                counts = self.count_tokens(list(new.values())).tolist()
            rate = seconds / (sum(map(len, new.values())) or 1)
            self._texts |= {key: (rate * len(new[key]), count) for key, count in zip(new, counts, strict=True)}
            self._work.calls += self._batches(len(by_key.keys() - self._work.texts))
            self._work.texts |= by_key.keys()
            self._work.embedding += time.perf_counter() - began
        return vectors

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

    def seconds_of(self, texts: Iterable[str]) -> float:
        """The seconds of embedding the distinct texts; 0 for one that was not embedded."""
        return self._seconds({text_key(text) for text in texts})

    def cost(
        self, cutting: Work, searching: Work, corpus: ChunkedCorpus, queries: Sequence[str], source_tokens: int
    ) -> tuple[Cost, dict[str, float]]:
        """The cost of a chunker and a search, and the seconds of each step: "chunk", "embed", "search"."""
        chunks = _keys(corpus) if searching.chunks else set()
        questions = {text_key(text) for text in queries} if searching.queries else set()
        late_seconds, late_tokens = searching.late or (0.0, 0)
        documents = len(corpus.documents) if searching.late else 0
        texts = chunks | cutting.texts
        tokens = self._tokens_read(texts)
        cost = Cost(
            source_tokens=source_tokens,
            embedder_calls=cutting.calls + self._batches(len(chunks - cutting.texts)) + documents,
            embedded_texts=len(texts) + documents,
            embedded_tokens=None if tokens is None else tokens + late_tokens,
            llm_calls=cutting.usage.calls,
            llm_input_tokens=cutting.usage.input_tokens,
            llm_output_tokens=cutting.usage.output_tokens,
            llm_cached_tokens=cutting.usage.cached_tokens,
        )
        return cost, {
            "chunk": max(cutting.seconds - cutting.embedding, 0.0) + self._seconds(cutting.texts),
            "embed": self._seconds(chunks) + late_seconds + self._seconds(questions),
            "search": max(searching.seconds - searching.waiting, 0.0),
        }

    def statistics(self, searching: Work, corpus: ChunkedCorpus, lengths: Numbers) -> ChunkStatistics:
        """The chunks' `lengths`, and what the model cuts off of the chunks that a search embeds."""
        if not searching.chunks or self.max_tokens is None:
            return ChunkStatistics(lengths)
        over = (self._texts.get(key, (0.0, 0))[1] - self.max_tokens for key in _keys(corpus))
        lost = [tokens for tokens in over if tokens > 0]
        return ChunkStatistics(lengths, len(lost), sum(lost))

    def _seconds(self, keys: Iterable[bytes]) -> float:
        return math.fsum(self._texts[key][0] for key in keys if key in self._texts)

    def _tokens_read(self, keys: Collection[bytes]) -> int | None:
        """The tokens that the model reads of distinct texts; None if it does not say."""
        if not keys:
            return 0  # without loading a model
        if not isinstance(self, TokenCountingEmbedder):
            return None
        most = math.inf if self.max_tokens is None else self.max_tokens
        return int(sum(min(self._texts[key][1], most) for key in keys if key in self._texts))

    def _batches(self, texts: int) -> int:
        return -(-texts // self.batch_size)


def _keys(corpus: ChunkedCorpus) -> set[bytes]:
    return set(map(text_key, corpus.embedded_texts))


def _usage(chunker: Chunker | None) -> Usage:
    return sum((getattr(llm, "usage", Usage()) for llm in (llms_of(chunker) if chunker else ())), Usage())


class MeteredVectors(TextVectors):
    """Vectors by a `Meter`, which records what a search uses."""

    def __init__(self, meter: Meter, corpora: Sequence[ChunkedCorpus], *, progress: Progress | None = None) -> None:
        super().__init__(meter, corpora, progress=progress)
        self._meter = meter
        self._late: tuple[float, int] | None = None

    def chunks(self, corpus: ChunkedCorpus, *, cluster_only: bool = False) -> tuple[Rows, Numbers]:
        with self._meter.waiting() as work:
            work.chunks = True
            return super().chunks(corpus, cluster_only=cluster_only)

    def late(self, corpus: ChunkedCorpus) -> tuple[Rows, Numbers]:
        with self._meter.waiting() as work:
            began = time.perf_counter()
            vectors = super().late(corpus)
            if self._late is None:
                seconds = time.perf_counter() - began
                self._late = seconds, sum(map(self.late_embedder.tokens_read, (d.text for d in corpus.documents)))
            work.late = self._late
        return vectors

    def queries(self, texts: Sequence[str]) -> Vectors:
        with self._meter.waiting() as work:
            work.queries = True
            return super().queries(texts)
