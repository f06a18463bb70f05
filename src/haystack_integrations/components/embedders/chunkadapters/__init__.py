"""chunkcore's embedders as Haystack components."""

from haystack_integrations.components.embedders.chunkadapters.embedders import (
    ChunkcoreDocumentEmbedder,
    ChunkcoreTextEmbedder,
)
from haystack_integrations.components.embedders.chunkadapters.late_embedder import ChunkcoreLateEmbedder

__all__ = ["ChunkcoreDocumentEmbedder", "ChunkcoreLateEmbedder", "ChunkcoreTextEmbedder"]
