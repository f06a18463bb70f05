"""Merging overlapping hits, as a Haystack component."""

from haystack_integrations.components.rankers.chunkadapters.merge_overlaps import ChunkcoreMergeOverlaps

__all__ = ["ChunkcoreMergeOverlaps"]
