"""Passages behind a retriever, as a Haystack component."""

from haystack_integrations.components.rankers.chunkadapters.passage_ranker import ChunkcorePassageRanker

__all__ = ["ChunkcorePassageRanker"]
