"""A saved index as a Haystack retriever."""

from haystack_integrations.components.retrievers.chunkadapters.index_retriever import ChunkcoreIndexRetriever

__all__ = ["ChunkcoreIndexRetriever"]
