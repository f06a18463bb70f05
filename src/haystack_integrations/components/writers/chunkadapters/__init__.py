"""What writes an index that is made again."""

from haystack_integrations.components.writers.chunkadapters.index_writer import ChunkcoreIndexWriter

__all__ = ["ChunkcoreIndexWriter"]
