"""chunkcore's chunkers and index updates as Haystack components."""

from haystack_integrations.components.preprocessors.chunkadapters.children import ChunkcoreChildSplitter
from haystack_integrations.components.preprocessors.chunkadapters.document_splitter import ChunkcoreDocumentSplitter
from haystack_integrations.components.preprocessors.chunkadapters.index_updater import ChunkcoreIndexUpdater
from haystack_integrations.components.preprocessors.chunkadapters.named import (
    ClusterSemanticSplitter,
    LumberSplitter,
    RecursiveSplitter,
    SemanticSplitter,
)

__all__ = [
    "ChunkcoreChildSplitter",
    "ChunkcoreDocumentSplitter",
    "ChunkcoreIndexUpdater",
    "ClusterSemanticSplitter",
    "LumberSplitter",
    "RecursiveSplitter",
    "SemanticSplitter",
]
