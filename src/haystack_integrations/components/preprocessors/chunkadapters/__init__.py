"""chunkcore's chunkers as a Haystack component, and what of an index they change."""

from haystack_integrations.components.preprocessors.chunkadapters.children import ChunkcoreChildSplitter
from haystack_integrations.components.preprocessors.chunkadapters.document_splitter import (
    ChunkcoreDocumentSplitter,
    ClusterSemanticSplitter,
    LumberSplitter,
    RecursiveSplitter,
    SemanticSplitter,
)
from haystack_integrations.components.preprocessors.chunkadapters.index_updater import ChunkcoreIndexUpdater

__all__ = [
    "ChunkcoreChildSplitter",
    "ChunkcoreDocumentSplitter",
    "ChunkcoreIndexUpdater",
    "ClusterSemanticSplitter",
    "LumberSplitter",
    "RecursiveSplitter",
    "SemanticSplitter",
]
