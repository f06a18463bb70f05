"""Embedders: the protocol, the backends, and the cache in front of them. Language models: `models.llm`."""

from typing import TYPE_CHECKING

from chunkcore.lazy import on_first_use

if TYPE_CHECKING:
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
    from chunkcore.models.cache import (
        CacheWarning as CacheWarning,
        EmbeddingCache as EmbeddingCache,
    )
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

on_first_use(
    __name__,
    {
        "chunkcore.models.base": (
            "Embedder TextTokens TokenCountingEmbedder TokenEmbedder Vectors check_vectors "
            "embed is_symmetric"
        ),
        "chunkcore.models.cache": "CacheWarning EmbeddingCache",
        "chunkcore.models.late": "LateEmbedder get_token_embedder",
        "chunkcore.models.loading": "DEFAULT_MODEL CachedEmbedder embedders get_embedder",
    },
)
