"""chunkcore's embedders where LangChain takes embeddings."""

from __future__ import annotations

from langchain_core.embeddings import Embeddings

from chunkcore.models import Embedder, embed, get_embedder
from chunkcore.models.loading import DEFAULT_MODEL

__all__ = ["ChunkcoreEmbeddings"]


class ChunkcoreEmbeddings(Embeddings):
    """A chunkcore embedder as LangChain's embeddings.

    For the models that chunkcore brings, and to put its cache on disk before any others:
    ``ChunkcoreEmbeddings(CachedEmbedder(as_embedder(OpenAIEmbeddings()), EmbeddingCache("vectors.sqlite")))`` asks
    for each text once, also when a collection is indexed again.

    Args:
        embedder: an embedder or its name.

    Raises:
        OptionError: no such model.

    >>> from langchain_core.embeddings import DeterministicFakeEmbedding
    >>> from chunkadapters.langchain import as_embedder
    >>> len(ChunkcoreEmbeddings(as_embedder(DeterministicFakeEmbedding(size=8))).embed_query("tea"))
    8
    """

    def __init__(self, embedder: Embedder | str = DEFAULT_MODEL) -> None:
        self.embedder = get_embedder(embedder)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        found: list[list[float]] = embed(self.embedder, texts).tolist()
        return found

    def embed_query(self, text: str) -> list[float]:
        found: list[float] = embed(self.embedder, [text], queries=True)[0].tolist()
        return found

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.embedder.name!r})"
