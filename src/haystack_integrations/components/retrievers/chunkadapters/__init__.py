"""Passages as Haystack components."""

from haystack_integrations.components.retrievers.chunkadapters.passages import (
    ChunkcorePassageAssembler,
    ChunkcorePassageRetriever,
)

__all__ = ["ChunkcorePassageAssembler", "ChunkcorePassageRetriever"]
