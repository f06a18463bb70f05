"""Models: what an embedder is, those that come with the package, and the cache in front of them."""

from chunkcore.models.base import Embedder, TextTokens, TokenCountingEmbedder, TokenEmbedder, Vectors, is_symmetric
from chunkcore.models.cache import CacheWarning, EmbeddingCache
from chunkcore.models.cached import CachedEmbedder
from chunkcore.models.checks import check_vectors, embed
from chunkcore.models.late import LateEmbedder
from chunkcore.models.loading import DEFAULT_MODEL, get_embedder
from chunkcore.models.token_embedder import get_token_embedder

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
    "get_embedder",
    "get_token_embedder",
    "is_symmetric",
]
