"""Writing updates of an index, as a Haystack component."""

from haystack_integrations.components.writers.chunkadapters.index_writer import ChunkcoreIndexWriter

__all__ = ["ChunkcoreIndexWriter"]
