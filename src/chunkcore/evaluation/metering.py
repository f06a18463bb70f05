"""An embedder that remembers what each text cost, so that strategies which share texts can each be billed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from chunkcore.evaluation.keyed import KeyedNumbers, Keys, text_keys
from chunkcore.models.base import TokenCountingEmbedder, Vectors
from chunkcore.models.cached import CachedEmbedder

__all__ = ["Bill", "MeteredEmbedder"]


class Bill:
    """What was asked of a `MeteredEmbedder` for a while.

    Attributes:
        calls: how many batches the distinct texts were, had none been embedded before.
        seconds: the time that they took then.
    """

    def __init__(self) -> None:
        self._texts = KeyedNumbers(np.bool_)
        self.calls = 0
        self.seconds = 0.0

    @property
    def texts(self) -> Keys:
        """The keys of the distinct texts, in ascending order."""
        return self._texts.keys

    def add(self, keys: Keys) -> int:
        """Note distinct texts; how many of them are new to this bill."""
        new = int(np.count_nonzero(~self._texts.of(keys)[1]))
        self._texts.add(keys, np.ones(len(keys), dtype=np.bool_))
        return new


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
        self._costs = KeyedNumbers(np.float64)
        self._tokens = KeyedNumbers(np.int64)
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
        keys = text_keys(texts)
        with self._lock:
            unknown = np.flatnonzero(~self._tokens.of(keys)[1])
            if len(unknown):
                firsts = np.sort(unknown[np.unique(keys[unknown], return_index=True)[1]])
                self.note_tokens(keys[firsts], self.embedder.count_tokens([texts[i] for i in firsts.tolist()]))
            return self._tokens.of(keys)[0]

    def note_tokens(self, keys: Keys, counts: NDArray[np.integer]) -> None:
        """How long texts are, where somebody else has counted."""
        with self._lock:
            self._tokens.add(keys, counts)

    def token_counts(self, keys: Keys) -> NDArray[np.int64] | None:
        """How long each text is that was counted, by its key, int64; None where the model can't say.

        Raises:
            LookupError: one of them was not.
        """
        if not isinstance(self.embedder, TokenCountingEmbedder):
            return None
        counts, known = self._tokens.of(keys)
        if not known.all():
            raise LookupError(f"{np.count_nonzero(~known):,} of {len(keys):,} texts were never counted")
        return counts

    def tokens_read(self, keys: Keys) -> int | None:
        """How many tokens the model reads of distinct texts that it embedded; None where it can't say."""
        counts = self.token_counts(keys)
        if counts is None or self.max_tokens is None:
            return None if counts is None else int(counts.sum())
        return int(np.minimum(counts, self.max_tokens).sum())

    def cost(self, texts: Sequence[str] | Keys) -> float:
        """Seconds that the distinct ones among these texts, or keys of texts, took."""
        keys = texts if isinstance(texts, np.ndarray) else text_keys(texts)
        return float(self._costs.of(np.unique(keys))[0].sum())

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
            keys, first = np.unique(text_keys(texts), return_index=True)
            lengths = np.array([len(texts[i]) for i in first.tolist()], dtype=np.float64)
            new = ~self._costs.of(keys)[1]
            self._costs.add(keys[new], seconds * lengths[new] / (lengths[new].sum() or 1))
            self.tokens(texts)
            self._bill.calls += self.batches(self._bill.add(keys))
            self._bill.seconds += time.perf_counter() - began
        return vectors
