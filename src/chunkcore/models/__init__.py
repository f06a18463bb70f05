"""Embedders: the protocol, the backends, and the cache in front of them. Language models: `models.llm`."""

from chunkcore.models.base import (
    Embedder as Embedder,
    TextTokens as TextTokens,
    TokenCountingEmbedder as TokenCountingEmbedder,
    TokenEmbedder as TokenEmbedder,
    Vectors as Vectors,
    check_vectors as check_vectors,
    embed as embed,
    is_symmetric as is_symmetric,
)
from chunkcore.models.cache import CacheWarning as CacheWarning, EmbeddingCache as EmbeddingCache
from chunkcore.models.late import (
    LateEmbedder as LateEmbedder,
    get_token_embedder as get_token_embedder,
)
from chunkcore.models.loading import (
    DEFAULT_MODEL as DEFAULT_MODEL,
    CachedEmbedder as CachedEmbedder,
    embedders as embedders,
    get_embedder as get_embedder,
)
