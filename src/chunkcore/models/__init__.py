"""Models: what an embedder is, those that come with the package, and the cache in front of them."""

from chunkcore.models.base import Embedder, TokenCountingEmbedder, Vectors, is_symmetric
from chunkcore.models.cache import CacheWarning, EmbeddingCache
from chunkcore.models.cached import CachedEmbedder
from chunkcore.models.checks import check_vectors, embed
from chunkcore.models.loading import DEFAULT_MODEL, get_embedder

__all__ = [
    "DEFAULT_MODEL",
    "CacheWarning",
    "CachedEmbedder",
    "Embedder",
    "EmbeddingCache",
    "TokenCountingEmbedder",
    "Vectors",
    "check_vectors",
    "embed",
    "get_embedder",
    "is_symmetric",
]
