"""chunkcore's chunkers as a Haystack component."""

from haystack_integrations.components.preprocessors.chunkadapters.document_splitter import ChunkcoreDocumentSplitter

__all__ = ["ChunkcoreDocumentSplitter"]
