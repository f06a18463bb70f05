"""Span measures as a Haystack evaluator."""

from haystack_integrations.components.evaluators.chunkadapters.span_evaluator import ChunkcoreSpanEvaluator

__all__ = ["ChunkcoreSpanEvaluator"]
