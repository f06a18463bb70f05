"""`CachedEmbedder`: an embedder that is never asked for the same text twice."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chunkcore.errors import ModelError, OptionError
from chunkcore.models.base import Embedder, TokenCountingEmbedder, Vectors, is_symmetric
from chunkcore.models.batching import distinct, sorted_batches
from chunkcore.models.cache import EmbeddingCache, text_key
from chunkcore.models.checks import embed

__all__ = ["CachedEmbedder"]


class CachedEmbedder:
    """Asks the cache first, then the model for each distinct text that is missing, longest first.

    Every batch is kept as soon as it is there, so a run that was interrupted goes on where it stopped.
    Documents and queries are told apart only where the model does. It has the model's name and fingerprint.

    Args:
        embedder: the model.
        cache: None for a new one in memory.
        batch_size: texts that the model is given at once.
        progress: called after each batch with the texts embedded and those to be embedded in this call.
        timeout: seconds after which a batch that the model has not answered is asked for once more, and then a
            `ModelError`; None waits for ever, as is right for a model in this process. Services hang.

    Attributes:
        embedded: how many texts the model was asked for.

    Raises:
        OptionError: batch_size is under 1, or timeout is no time.
    """

    def __init__(
        self,
        embedder: Embedder,
        cache: EmbeddingCache | None = None,
        *,
        batch_size: int = 256,
        progress: Callable[[int, int], None] | None = None,
        timeout: float | None = None,
    ) -> None:
        if batch_size < 1:
            raise OptionError(f"batch_size is at least 1, got {batch_size}")
        if timeout is not None and not 0 < timeout < float("inf"):
            raise OptionError(f"timeout is over 0 seconds, or None to wait for ever, got {timeout}")
        self.embedder = embedder
        self.cache = EmbeddingCache() if cache is None else cache
        self.batch_size = batch_size
        self.progress = progress
        self.timeout = timeout
        self.name = embedder.name
        self.max_tokens = embedder.max_tokens
        self.symmetric = is_symmetric(embedder)
        self.embedded = 0
        # Two threads that ask for one text: the second finds what the first one stored.
        self._lock = threading.RLock()
        if isinstance(embedder, TokenCountingEmbedder):
            self.count_tokens: Callable[[Sequence[str]], NDArray[np.int64]] = embedder.count_tokens

    def __reduce__(self) -> tuple[Any, ...]:
        # Progress is told in the process that asked for it.
        return partial(type(self), batch_size=self.batch_size, timeout=self.timeout), (self.embedder, self.cache)

    @property
    def fingerprint(self) -> str:
        """The model's own: the cache changes nothing."""
        return self.embedder.fingerprint

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """One row a text: float32, shape (len(texts), dimensions).

        Raises:
            ModelError: the model failed, or answered with something that is no answer, twice.
        """
        return self._embed(texts, queries=False)

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """One row a query: float32, shape (len(texts), dimensions).

        Raises:
            ModelError: the model failed, or answered with something that is no answer, twice.
        """
        return self._embed(texts, queries=True)

    def _embed(self, texts: Sequence[str], *, queries: bool) -> Vectors:
        role = "" if self.symmetric else "query" if queries else "document"
        asked, places = distinct(texts)
        keys = [text_key(text, role) for text in asked]
        with self._lock:
            vectors = self._distinct(keys, asked, queries)
        return vectors if len(asked) == len(texts) else vectors[places]

    def _distinct(self, keys: list[bytes], texts: list[str], queries: bool) -> Vectors:
        found, vectors = self.cache.fetch(self.fingerprint, keys)
        missing = np.flatnonzero(~found)
        done = 0
        for batch in sorted_batches([len(texts[i]) for i in missing], size=self.batch_size):
            rows = missing[batch]
            answer = embed(self.embedder, [texts[i] for i in rows], queries=queries, timeout=self.timeout)
            if vectors.shape[1] == 0:
                vectors = np.zeros((len(keys), answer.shape[1]), dtype=np.float32)
            if answer.shape[1] != vectors.shape[1]:
                raise ModelError(
                    f"the model {self.name!r} answered with {answer.shape[1]} dimensions, and with "
                    f"{vectors.shape[1]} before; expected the same for every text"
                )
            self.cache.store(self.fingerprint, [keys[i] for i in rows], answer)
            vectors[rows] = answer
            done += len(rows)
            self.embedded += len(rows)
            if self.progress is not None:
                self.progress(done, len(missing))
        return vectors
