"""An embedder that remembers what each text cost, so that strategies which share texts can each be billed."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from chunkcore.models.base import TokenCountingEmbedder, Vectors
from chunkcore.models.cached import CachedEmbedder

__all__ = ["Bill", "MeteredEmbedder"]


class Bill:
    """What was asked of a `MeteredEmbedder` for a while.

    Attributes:
        texts: the distinct ones.
        calls: how many batches they were, had none been embedded before.
        seconds: the time that they took then.
    """

    def __init__(self) -> None:
        self.texts: set[str] = set()
        self.calls = 0
        self.seconds = 0.0


class MeteredEmbedder:
    """A `CachedEmbedder` that times itself.

    The time of a call is split among the texts that it embedded or found in the cache for the first time,
    by their length in characters. What a strategy's texts cost is then the same whether another strategy
    had asked for them before or not.

    >>> import numpy as np
    >>> from types import SimpleNamespace
    >>> ones = lambda texts: np.ones((len(texts), 2), dtype=np.float32)
    >>> model = SimpleNamespace(name="m", fingerprint="m", max_tokens=None, embed_documents=ones, embed_queries=ones)
    >>> metered = MeteredEmbedder(CachedEmbedder(model))
    >>> metered.embed_documents(["a", "b"]).shape, metered.cost(["a"]) == metered.cost(["b"]) > 0
    ((2, 2), True)
    """

    def __init__(self, embedder: CachedEmbedder) -> None:
        self.embedder = embedder
        self.name = embedder.name
        self.fingerprint = embedder.fingerprint
        self.max_tokens = embedder.max_tokens
        self.symmetric = embedder.symmetric
        self._costs: dict[str, float] = {}
        self._tokens: dict[str, int] = {}
        self._bill = Bill()
        # One call at a time, so that waiting for another thread's call is not counted as work.
        self._lock = threading.RLock()

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """One row a text: float32, shape (len(texts), dimensions)."""
        return self._timed(self.embedder.embed_documents, texts)

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """One row a query: float32, shape (len(texts), dimensions)."""
        return self._timed(self.embedder.embed_queries, texts)

    def batches(self, texts: int) -> int:
        """How many batches so many distinct texts are."""
        return -(-texts // self.embedder.batch_size)

    def tokens(self, texts: Iterable[str]) -> dict[str, int] | None:
        """How long each text is to the model; None where it can't say. Each is counted once."""
        if not isinstance(self.embedder, TokenCountingEmbedder):
            return None
        new = [text for text in dict.fromkeys(texts) if text not in self._tokens]
        if new:
            self._tokens.update(zip(new, self.embedder.count_tokens(new).tolist(), strict=True))
        return self._tokens

    def tokens_read(self, texts: Iterable[str]) -> int | None:
        """How many tokens the model reads of these texts together; None where it can't say."""
        distinct = set(texts)
        known = self.tokens(distinct)
        if known is None:
            return None
        most = math.inf if self.max_tokens is None else self.max_tokens
        return int(sum(min(known[text], most) for text in distinct))

    def cost(self, texts: Iterable[str]) -> float:
        """Seconds that the distinct ones among these texts took."""
        return sum(self._costs.get(text, 0.0) for text in set(texts))

    @contextmanager
    def billed(self) -> Iterator[Bill]:
        """Note what is asked for in the block, by whichever thread."""
        bill = self._bill = Bill()
        try:
            yield bill
        finally:
            self._bill = Bill()

    def _timed(self, embed: Callable[[Sequence[str]], Vectors], texts: Sequence[str]) -> Vectors:
        with self._lock:
            began = time.perf_counter()
            vectors = embed(texts)
            seconds = time.perf_counter() - began
            self._bill.calls += self.batches(len(set(texts) - self._bill.texts))
            self._bill.texts.update(texts)
            self._bill.seconds += seconds
            new = [text for text in dict.fromkeys(texts) if text not in self._costs]
            characters = sum(map(len, new)) or 1
            self._costs.update((text, seconds * len(text) / characters) for text in new)
        return vectors
