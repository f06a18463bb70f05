"""Embedders: the protocol, the backends, and the cache in front of them. Language models: `models.llm`."""

from chunkcore.models.base import (
    Embedder,
    TextTokens,
    TokenCountingEmbedder,
    TokenEmbedder,
    Vectors,
    check_vectors,
    embed,
    is_symmetric,
)
from chunkcore.models.cache import CachedEmbedder, CacheWarning, EmbeddingCache
from chunkcore.models.late import LateEmbedder, get_token_embedder
from chunkcore.models.loading import DEFAULT_MODEL, embedders, get_embedder

__all__ = [
    "DEFAULT_MODEL",
    "CacheWarning",
    "CachedEmbedder",
    "Embedder",
    "EmbeddingCache",
    "LateEmbedder",
    "TextTokens",
    "TokenCountingEmbedder",
    "TokenEmbedder",
    "Vectors",
    "check_vectors",
    "embed",
    "embedders",
    "get_embedder",
    "get_token_embedder",
    "is_symmetric",
]
