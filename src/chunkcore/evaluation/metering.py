"""An embedder that remembers what each text cost, so that strategies which share texts can each be billed."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from chunkcore.models.base import TokenCountingEmbedder, Vectors
from chunkcore.models.cache import text_key
from chunkcore.models.cached import CachedEmbedder

__all__ = ["Bill", "MeteredEmbedder"]


class Bill:
    """What was asked of a `MeteredEmbedder` for a while.

    Attributes:
        texts: the keys (`text_key`) of the distinct ones.
        calls: how many batches they were, had none been embedded before.
        seconds: the time that they took then.
    """

    def __init__(self) -> None:
        self.texts: set[bytes] = set()
        self.calls = 0
        self.seconds = 0.0


class MeteredEmbedder:
    """A `CachedEmbedder` that times itself.

    The time of a call is split among the texts that it embedded or found in the cache for the first time,
    by their length in characters. What a strategy's texts cost is then the same whether another strategy
    had asked for them before or not. Texts are remembered by their keys: a million of them are a gigabyte.

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
        self._costs: dict[bytes, float] = {}
        self._tokens: dict[bytes, int] = {}
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

    def tokens(self, texts: Sequence[str]) -> NDArray[np.int64] | None:
        """How long each text is to the model, int64; None where it can't say. Each is counted once."""
        if not isinstance(self.embedder, TokenCountingEmbedder):
            return None
        keys = list(map(text_key, texts))
        new = {key: text for key, text in zip(keys, texts, strict=True) if key not in self._tokens}
        if new:
            self._tokens.update(zip(new, self.embedder.count_tokens(list(new.values())).tolist(), strict=True))
        return np.fromiter((self._tokens[key] for key in keys), dtype=np.int64, count=len(keys))

    def tokens_read(self, keys: Iterable[bytes]) -> int | None:
        """How many tokens the model reads together of texts that it embedded; None where it can't say."""
        if not isinstance(self.embedder, TokenCountingEmbedder):
            return None
        most = math.inf if self.max_tokens is None else self.max_tokens
        return int(sum(min(self._tokens[key], most) for key in set(keys)))

    def cost(self, texts: Iterable[str | bytes]) -> float:
        """Seconds that the distinct ones among these texts, or keys of texts, took."""
        keys = {text if isinstance(text, bytes) else text_key(text) for text in texts}
        return sum(self._costs.get(key, 0.0) for key in keys)

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
            lengths = {text_key(text): len(text) for text in texts}
            new = [key for key in lengths if key not in self._costs]
            characters = sum(lengths[key] for key in new) or 1
            self._costs.update((key, seconds * lengths[key] / characters) for key in new)
            self.tokens(texts)
            self._bill.calls += self.batches(len(lengths.keys() - self._bill.texts))
            self._bill.texts.update(lengths)
            self._bill.seconds += time.perf_counter() - began
        return vectors
