"""Embedders: the protocol, the backends, and the cache in front of them. Language models: `models.llm`."""

from typing import TYPE_CHECKING

from chunkcore.lazy import on_first_use

if TYPE_CHECKING or on_first_use(__name__):
    from chunkcore.models.base import Embedder as Embedder
    from chunkcore.models.base import TextTokens as TextTokens
    from chunkcore.models.base import TokenCountingEmbedder as TokenCountingEmbedder
    from chunkcore.models.base import TokenEmbedder as TokenEmbedder
    from chunkcore.models.base import Vectors as Vectors
    from chunkcore.models.base import check_vectors as check_vectors
    from chunkcore.models.base import embed as embed
    from chunkcore.models.base import is_symmetric as is_symmetric
    from chunkcore.models.cache import CachedEmbedder as CachedEmbedder
    from chunkcore.models.cache import CacheWarning as CacheWarning
    from chunkcore.models.cache import EmbeddingCache as EmbeddingCache
    from chunkcore.models.late import LateEmbedder as LateEmbedder
    from chunkcore.models.late import get_token_embedder as get_token_embedder
    from chunkcore.models.loading import DEFAULT_MODEL as DEFAULT_MODEL
    from chunkcore.models.loading import embedders as embedders
    from chunkcore.models.loading import get_embedder as get_embedder
