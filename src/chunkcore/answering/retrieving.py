"""`retrieve`: what each strategy's chunks retrieve for every question, also for those that have no evidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from chunkcore.chunkers.base import Chunker
from chunkcore.document import Span
from chunkcore.errors import DataError
from chunkcore.evaluation.benchmark import Benchmark, Evidence
from chunkcore.evaluation.experiment import run_chunkers
from chunkcore.evaluation.measures import Depth
from chunkcore.evaluation.results import Report
from chunkcore.models.base import Embedder

__all__ = ["answerable", "retrieve"]


def answerable(benchmark: Benchmark) -> Benchmark:
    """The benchmark with its `without_evidence` among its queries, so that all can be asked.

    Each has one character of a document for evidence, which means nothing: only its answers can be scored.

    Raises:
        DataError: there is a query without evidence, and no document that has a text.
    """
    if not benchmark.without_evidence:
        return benchmark
    document = next((each for each in benchmark.documents if each.text), None)
    if document is None:
        raise DataError(f"{benchmark.name!r} has no document with a text: there is nothing to answer from")
    placeholder = (Evidence(document.id, Span(0, 1)),)
    asked = [replace(query, evidence=placeholder) for query in benchmark.without_evidence]
    return replace(benchmark, queries=[*benchmark.queries, *asked], without_evidence=())


def retrieve(
    benchmark: Benchmark, chunkers: Sequence[Chunker], embedder: Embedder | str, k: Depth, **options: Any
) -> list[Report]:
    """The reports of `run_chunkers` on `answerable(benchmark)` at one depth, each with its `Report.run`.

    Scores of queries without evidence are NaN.

    Args:
        benchmark: documents and queries.
        chunkers: the strategies.
        embedder: of chunks and queries, or the name of one.
        k: how much is retrieved.
        options: others of `run_chunkers`.

    Raises:
        DataError, OptionError, ModelError: as `run_chunkers`.
    """
    asked = answerable(benchmark)
    reports = run_chunkers(asked, chunkers, embedder, ks=(k,), **options)
    known = np.arange(len(asked.queries)) < len(benchmark.queries)
    return [
        replace(report, scores={each: np.where(known, row, np.nan) for each, row in report.scores.items()})
        for report in reports
    ]
