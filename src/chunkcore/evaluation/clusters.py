"""Which questions belong together: those about one document are alike, and no independent witnesses of others."""

from __future__ import annotations

from chunkcore.evaluation.benchmark import Benchmark

__all__ = ["question_documents"]


def question_documents(benchmark: Benchmark) -> dict[str, str]:
    """By query id the document of the query's first evidence: the `clusters` of `compare`.

    >>> from chunkcore.datasets import load_dataset
    >>> len(set(question_documents(load_dataset("lochmere")).values()))
    12
    """
    return {query.id: query.evidence[0].document_id for query in benchmark.queries}
