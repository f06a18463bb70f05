"""What an approximate search finds of what exact search finds, and what both take.

    python -m integration_tests.benchmarks.approximate_search [--shared ../shared] [--cached 50000]

Real vectors: the chunks of the Chroma report's five corpora, cut in several ways, by all-MiniLM-L6-v2, and its 472
questions. Then the same questions among so many of all vectors that the cache of embeddings holds of that model,
whatever they were made for: chunks, pieces and sentences of everything that was ever compared here. One core.
"""

from __future__ import annotations

import argparse
import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import numpy as np

from chunkcore.chunkers import get_chunker
from chunkcore.cli.options import default_cache
from chunkcore.document import Chunk, Span
from chunkcore.evaluation.benchmarks import load_benchmark
from chunkcore.models import CachedEmbedder, EmbeddingCache, get_embedder
from chunkcore.models.base import Vectors
from chunkcore.retrieval import HNSW, ChunkedCorpus, TextVectors, get_retriever
from chunkcore.retrieval.search import top_k

SPECS = ("recursive:size=200", "fixed_token:size=200", "recursive:size=400,overlap=200", "recursive:size=400")
SETTINGS = ("hnsw:depth=10", "hnsw", "hnsw:depth=400", "hnsw:precision=i8")
K = 10


class Given(TextVectors):
    """Vectors that are there."""

    def __init__(self, vectors: Vectors, asked: Vectors) -> None:
        super().__init__()
        self._rows, self._asked = vectors, asked

    def chunks(self, corpus: ChunkedCorpus, *, cluster_only: bool = False) -> tuple[Vectors, np.ndarray]:
        return self._rows, np.arange(len(self._rows))

    def queries(self, texts: Sequence[str]) -> Vectors:
        return self._asked


def table(name: str, vectors: Vectors, asked: Vectors) -> None:
    began = time.process_time()
    top_k(asked, vectors, K)
    print(f"\n{name}: {len(vectors):,} vectors, {len(asked)} questions\n")
    print("| search | seconds to build | ms a question | recall of the best 10 |\n|---|--:|--:|--:|")
    print(f"| exact | 0 | {1000 * (time.process_time() - began) / len(asked):.2f} | 100 |", flush=True)
    for spec in SETTINGS:
        method = get_retriever(f"{spec}{',' if ':' in spec else ':'}checked={len(asked)}")
        assert isinstance(method, HNSW)
        began = time.process_time()
        index = method.index(ChunkedCorpus(), Given(vectors, asked))
        built = time.process_time() - began
        began = time.process_time()
        rows = index._proposed(asked, K)  # type: ignore[attr-defined]
        index._chunks(asked, rows, K)  # type: ignore[attr-defined]
        each = 1000 * (time.process_time() - began) / len(asked)
        index.search([""] * len(asked), K)
        print(f"| `{spec}` | {built:.1f} | {each:.2f} | {100 * index.recall.share:.1f} |", flush=True)


def cached(model: str, count: int) -> Vectors:
    """Vectors of the cache, in the order of their texts' hashes: a sample of those that are there."""
    with closing(sqlite3.connect(default_cache())) as connection:
        found = connection.execute(
            "SELECT vector FROM vectors JOIN models ON id = model WHERE fingerprint = ? ORDER BY key LIMIT ?",
            (model, count),
        ).fetchall()
    return np.stack([np.frombuffer(blob, dtype="<f4") for (blob,) in found])


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shared", type=Path, default=Path("../shared"))
    parser.add_argument("--cached", type=int, default=50_000)
    options = parser.parse_args(arguments)
    benchmark = load_benchmark(options.shared / "data" / "chroma")
    model = CachedEmbedder(get_embedder("all-MiniLM-L6-v2"), EmbeddingCache(default_cache()))
    chunks: dict[tuple[str, tuple[Span, ...]], Chunk] = {}
    for spec in SPECS:
        for chunk in get_chunker(spec).chunk_many(benchmark.documents):
            chunks[chunk.document_id, chunk.spans] = chunk
    vectors = model.embed_documents([chunk.embedded_text for chunk in chunks.values()])
    asked = model.embed_queries([query.text for query in benchmark.queries])
    table("real", vectors, asked)
    table("cached", cached(model.fingerprint, options.cached), asked)


if __name__ == "__main__":
    main()
