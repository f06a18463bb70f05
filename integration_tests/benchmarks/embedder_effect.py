"""How far the embedder moves recall, beside how far the strategy does: the second table of docs/evidence/retrievers.md.

    python -m integration_tests.benchmarks.embedder_effect --docs ../shared/data/chroma

The default model with all of its 384 dimensions, and with the first 96 and 24 alone: it was not trained to be read so,
and stands here for weaker models. Embeddings are kept where `chunkcore compare` keeps them.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from chunkcore import compare, get_chunker, load_benchmark, load_dataset, run_experiment
from chunkcore.cli.options import default_cache
from chunkcore.evaluation.measures import measures_at
from chunkcore.models import CachedEmbedder, EmbeddingCache, get_embedder
from chunkcore.models.base import Vectors
from numpy.typing import NDArray

MEASURE = "Recall@1000tok"
DIMENSIONS = (384, 96, 24)
STRATEGIES = ("recursive:size=100", "recursive:size=200", "fixed_token:size=200", "cluster_semantic:size=200")


class Truncated:
    """A model's first dimensions."""

    def __init__(self, embedder: CachedEmbedder, dimensions: int) -> None:
        self.embedder = embedder
        self.dimensions = dimensions
        self.name = f"{dimensions} dimensions"
        self.fingerprint = f"{embedder.fingerprint}:{dimensions}"
        self.max_tokens = embedder.max_tokens
        self.symmetric = embedder.symmetric

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        return self.embedder.embed_documents(texts)[:, : self.dimensions]

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        return self.embedder.embed_queries(texts)[:, : self.dimensions]

    def count_tokens(self, texts: Sequence[str]) -> NDArray[np.int64]:
        return self.embedder.count_tokens(texts)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--docs", type=Path, help="a collection's folder; the shipped one by default")
    options = parser.parse_args(arguments)
    benchmark = load_benchmark(options.docs) if options.docs else load_dataset("lochmere")
    model = CachedEmbedder(get_embedder(), EmbeddingCache(default_cache()))
    reports = run_experiment(
        benchmark,
        {spec: get_chunker(spec) for spec in STRATEGIES},
        [Truncated(model, value) for value in DIMENSIONS],
        measures=measures_at(["1000tok"]),
    )
    comparison = compare(reports, MEASURE)
    means = {report.name: 100 * report.mean(MEASURE) for report in reports}
    names = [f"{value} dimensions" for value in DIMENSIONS]
    print(f"| {MEASURE}, {len(benchmark.queries)} questions | {' | '.join(names)} |\n|---|{'--:|' * len(names)}")
    for spec in STRATEGIES:
        cells = [f"{spec} · {name}" for name in names]
        shown = [f"{means[cell]:.1f} ({_interval(comparison.intervals[cell])})" for cell in cells]
        print(f"| `{spec}` | {' | '.join(shown)} |")
    table = np.array([[means[f"{spec} · {name}"] for name in names] for spec in STRATEGIES])
    print(f"\nThe same strategy, best and worst model: {_gaps(table)} points apart.")
    print(f"The same model, best and worst strategy: {_gaps(table.T)} points apart.")


def _interval(interval: tuple[float, float]) -> str:
    return " to ".join(f"{100 * value:.1f}" for value in interval)


def _gaps(rows: NDArray[np.float64]) -> str:
    return ", ".join(f"{value:.1f}" for value in rows.max(axis=1) - rows.min(axis=1))


if __name__ == "__main__":
    main()
