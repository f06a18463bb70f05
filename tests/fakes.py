"""Embedders that need no model: one that behaves, and one for each way in which a model can misbehave."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b

import numpy as np

from chunkcore.models.base import Vectors

_WORD = re.compile(r"\w+|[^\w\s]")


@lru_cache(maxsize=100_000)
def _word_vector(word: str, dimensions: int) -> np.ndarray:
    seed = int.from_bytes(blake2b(word.lower().encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")
    return np.random.default_rng(seed).standard_normal(dimensions)


class FakeEmbedder:
    """A hashed bag of words: texts that share words are near each other. Deterministic, normalised.

    Attributes:
        calls: how many times it was asked.
        texts: every text that it was given, in order.
    """

    def __init__(self, dimensions: int = 32, *, name: str = "fake", max_tokens: int | None = None) -> None:
        self.name = name
        self.fingerprint = f"{name}-{dimensions}"
        self.max_tokens = max_tokens
        self.dimensions = dimensions
        self.calls = 0
        self.texts: list[str] = []

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        self.calls += 1
        self.texts.extend(texts)
        vectors = np.zeros((len(texts), self.dimensions))
        for row, text in enumerate(texts):
            vectors[row] = self._vector(text)
        return vectors.astype(np.float32)

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        return self.embed_documents(texts)

    def count_tokens(self, texts: Sequence[str]) -> np.ndarray:
        """Words and punctuation marks, and two for the tokens that a model puts around a text."""
        return np.array([len(_WORD.findall(text)) + 2 for text in texts], dtype=np.int64)

    def _vector(self, text: str) -> np.ndarray:
        words = _WORD.findall(text)[: self.max_tokens] or [""]
        total = np.sum([_word_vector(word, self.dimensions) for word in words], axis=0)
        return total / np.linalg.norm(total)


class NanEmbedder(FakeEmbedder):
    """One number of the last row is no number."""

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        vectors = super().embed_documents(texts)
        vectors[-1:, 0] = np.nan
        return vectors


class WrongShapeEmbedder(FakeEmbedder):
    """One vector in all, not one a text."""

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        return super().embed_documents(texts).reshape(-1)


class WrongCountEmbedder(FakeEmbedder):
    """The last text is left out."""

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        return super().embed_documents(texts)[:-1]


class ChangingEmbedder(FakeEmbedder):
    """Each call answers with one dimension more."""

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        vectors = super().embed_documents(texts)
        self.dimensions += 1
        return vectors


class RaisingEmbedder(FakeEmbedder):
    """Raises, from its `allowed`-th call on."""

    def __init__(self, dimensions: int = 32, *, allowed: int = 0) -> None:
        super().__init__(dimensions)
        self.allowed = allowed

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        if self.calls >= self.allowed:
            raise ConnectionError("the model's server hung up")
        return super().embed_documents(texts)


class EmptyEmbedder(FakeEmbedder):
    """Answers with nothing at all."""

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        super().embed_documents(texts)
        return np.empty((0, 0), dtype=np.float32)


class ListEmbedder(FakeEmbedder):
    """Answers with lists of numbers, as servers do: right but for the type."""

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        return super().embed_documents(texts).tolist()  # type: ignore[return-value]


class WordsEmbedder(FakeEmbedder):
    """Answers with words."""

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        super().embed_documents(texts)
        return [["no", "idea"] for _ in texts]  # type: ignore[return-value]


BROKEN = (
    NanEmbedder,
    WrongShapeEmbedder,
    WrongCountEmbedder,
    RaisingEmbedder,
    EmptyEmbedder,
    WordsEmbedder,
)
