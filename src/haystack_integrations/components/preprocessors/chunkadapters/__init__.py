"""chunkcore's chunkers as a Haystack component."""

from .document_splitter import ChunkcoreDocumentSplitter

__all__ = ["ChunkcoreDocumentSplitter"]
