"""chunkcore's chunkers and index updates as Haystack components."""

from haystack_integrations.components.preprocessors.chunkadapters.document_splitter import ChunkcoreDocumentSplitter
from haystack_integrations.components.preprocessors.chunkadapters.exact_splitter import ChunkcoreExactSplitter
from haystack_integrations.components.preprocessors.chunkadapters.index_updater import ChunkcoreIndexUpdater

__all__ = [
    "ChunkcoreDocumentSplitter",
    "ChunkcoreExactSplitter",
    "ChunkcoreIndexUpdater",
]
