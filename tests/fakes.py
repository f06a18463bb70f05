"""Models that need no weights: ones that behave, and one for each way in which a model can misbehave."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from typing import Any

import numpy as np
from chunkcore.models.base import Embedder, Vectors
from chunkcore.models.llm import Message
from chunkcore.retrieval import ChunkedCorpus, Dense, Hits, Index, RetrievalMethod, TextVectors
from chunkcore.text import Chunk, Document

_WORD = re.compile(r"\w+|[^\w\s]")


@lru_cache(maxsize=100_000)
def _word_vector(word: str, dimensions: int) -> np.ndarray:
    seed = int.from_bytes(blake2b(word.lower().encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")
    return np.random.default_rng(seed).standard_normal(dimensions)


@lru_cache(maxsize=100_000)
def _text_vector(text: str, dimensions: int, max_tokens: int | None) -> np.ndarray:
    words = _WORD.findall(text)[:max_tokens] or [""]
    total = np.sum([_word_vector(word, dimensions) for word in words], axis=0)
    return total / np.linalg.norm(total)


class FakeEmbedder:
    """A hashed bag of words: texts that share words are near each other. It counts its `calls`, keeps their `texts`."""

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
        return _text_vector(text, self.dimensions, self.max_tokens)


def corpus_with(chunks: Sequence[Chunk]) -> ChunkedCorpus:
    """The chunks, of documents that have their texts at their places and white space elsewhere."""
    texts: dict[str, str] = {}
    for chunk in chunks:
        text = texts.get(chunk.document_id, "").ljust(chunk.end)
        own = chunk.text.ljust(chunk.end - chunk.start)[: chunk.end - chunk.start]
        texts[chunk.document_id] = text[: chunk.start] + own + text[chunk.end :]
    return ChunkedCorpus(chunks, [Document(name, text) for name, text in texts.items()])


def index_of(
    chunks: Sequence[Chunk], model: Embedder, method: RetrievalMethod | None = None, documents: Sequence[Document] = ()
) -> Index:
    """The chunks, searched by the model's vectors."""
    corpus = ChunkedCorpus(chunks, documents) if documents else corpus_with(chunks)
    return (method or Dense()).index(corpus, TextVectors(model))


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


class WordsEmbedder(FakeEmbedder):
    """Answers with words."""

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        super().embed_documents(texts)
        return [["no", "idea"] for _ in texts]  # type: ignore[return-value]


BROKEN = (NanEmbedder, WrongShapeEmbedder, WrongCountEmbedder, RaisingEmbedder, EmptyEmbedder, WordsEmbedder)


class FakeLLM:
    """Answers with JSON of the schema, by the messages alone; now and then with something that is no answer."""

    def __init__(self, *, name: str = "fake", broken: float = 0.2, concurrency: int = 2) -> None:
        self.name = name
        self.fingerprint = f"{name}-{broken}"
        self.broken = broken
        self.concurrency = concurrency
        self.asked: list[list[Message]] = []

    def complete(self, messages: Sequence[Message], schema: Mapping[str, Any] | None = None) -> str:
        self.asked.append(list(messages))
        key = json.dumps([self.name, list(messages), schema]).encode("ascii")
        chance = random.Random(blake2b(key, digest_size=8).digest())
        answer = json.dumps(answer_of_schema(schema or {"type": "string"}, chance))
        if chance.random() >= self.broken:
            return chance.choice([answer, f"Sure!\n```json\n{answer}\n```\nAnything else?"])
        return chance.choice(["", "I'm sorry, I can't.", answer[: len(answer) // 2], "[]", "{}", "null", "{" * 2000])


def answer_of_schema(schema: Mapping[str, Any], chance: random.Random) -> Any:
    kind = schema["type"]
    if isinstance(kind, list):
        kind = chance.choice(kind)
    if kind == "null":
        return None
    if kind == "boolean":
        return chance.random() < 0.5
    if kind == "integer":
        return chance.randint(schema["minimum"], schema["maximum"])
    if kind == "string":
        return " ".join(chance.choices(["fox", "naps", "cafe\u0301", "\ud800", "<|endoftext|>", "。"], k=3))
    if kind == "array":
        items = [answer_of_schema(schema["items"], chance) for _ in range(chance.randint(schema.get("minItems", 0), 4))]
        return sorted(items, key=_number_in)
    return {name: answer_of_schema(each, chance) for name, each in schema["properties"].items()}


def _number_in(item: Any) -> float:
    values = item.values() if isinstance(item, dict) else [item]
    return next((float(value) for value in values if isinstance(value, int)), 0.0)


class ScriptedLLM:
    """Gives the answers that it was made with, in order, the last one for ever; an exception is raised."""

    def __init__(self, *answers: Any, name: str = "scripted") -> None:
        self.name = name
        self.fingerprint = name
        self.answers = answers
        self.asked: list[list[Message]] = []
        self.schemas: list[Mapping[str, Any]] = []

    def complete(self, messages: Sequence[Message], schema: Mapping[str, Any] | None = None) -> Any:
        answer = self.answers[min(len(self.asked), len(self.answers) - 1)]
        self.asked.append(list(messages))
        self.schemas.append(schema or {})
        if isinstance(answer, Exception):
            raise answer
        return answer


@dataclass(frozen=True, eq=False)
class Fixed(RetrievalMethod):
    """Always the same chunks in the same order, with falling scores."""

    order: tuple[int, ...]
    kind = "fixed"
    embeds = False

    def build(self, corpus: ChunkedCorpus, vectors: TextVectors | None = None) -> Index:
        return FixedIndex(corpus, self.order)


class FixedIndex(Index):
    def __init__(self, corpus: ChunkedCorpus, order: tuple[int, ...]) -> None:
        super().__init__(corpus)
        self.order = np.array(order, dtype=np.int64)

    def rank(self, queries: Sequence[str], k: int) -> Hits:
        own = self.order[:k]
        return Hits.of([(own, 1 - np.arange(len(own)) / 100)] * len(queries))
