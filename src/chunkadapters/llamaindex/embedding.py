"""chunkcore's embedders where LlamaIndex takes an embedding model."""

from __future__ import annotations

import asyncio
from typing import Any

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.bridge.pydantic import PrivateAttr

from chunkcore.models import Embedder, embed, get_embedder
from chunkcore.models.loading import DEFAULT_MODEL

__all__ = ["ChunkcoreEmbedding"]


class ChunkcoreEmbedding(BaseEmbedding):
    """A chunkcore embedder as LlamaIndex's embedding model.

    For the models that chunkcore brings, and to put its cache on disk before any others:
    ``ChunkcoreEmbedding(CachedEmbedder(as_embedder(OpenAIEmbedding()), EmbeddingCache("vectors.sqlite")))`` asks for
    each text once, also when a document is ingested again.

    Args:
        embedder: an embedder or its name. A configuration holds its name.
        options: what LlamaIndex's class takes: ``embed_batch_size``, ``callback_manager``.

    Raises:
        OptionError: (a ValueError) no such model.

    >>> from llama_index.core import MockEmbedding
    >>> from chunkadapters.llamaindex import as_embedder
    >>> ChunkcoreEmbedding(as_embedder(MockEmbedding(embed_dim=2))).get_text_embedding("tea")
    [0.5, 0.5]
    """

    _embedder: Embedder = PrivateAttr()

    def __init__(self, embedder: Embedder | str = DEFAULT_MODEL, **options: Any) -> None:
        found = get_embedder(options.pop("model_name", None) or embedder)
        super().__init__(model_name=found.name, **{"embed_batch_size": 256, **options})
        self._embedder = found

    @classmethod
    def class_name(cls) -> str:
        return "ChunkcoreEmbedding"

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embeddings([text])[0]

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        found: list[list[float]] = embed(self._embedder, texts).tolist()
        return found

    def _get_query_embedding(self, query: str) -> list[float]:
        found: list[float] = embed(self._embedder, [query], queries=True)[0].tolist()
        return found

    async def _aget_text_embedding(self, text: str) -> list[float]:
        return await asyncio.to_thread(self._get_text_embedding, text)

    async def _aget_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return await asyncio.to_thread(self._get_text_embeddings, texts)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return await asyncio.to_thread(self._get_query_embedding, query)
