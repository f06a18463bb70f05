"""Recall of the Chroma report's strategies by exact search and by an approximate index such as theirs.

    pip install chroma-hnswlib
    python -m integration_tests.benchmarks.chroma_approximate --shared ../shared

The report's code searches an HNSW graph (M = 16, built with 100 candidates). Its outcome depends on how many
candidates a search keeps and on the seed of the graph, so both are varied. Chunks stand where they are, or, as
in the released code, at the first occurrence of their text. The embeddings are those of `chroma_table`'s cache.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from chunkcore.chunkers import get_chunker
from chunkcore.cli.options import default_cache
from chunkcore.evaluation.benchmarks import load_benchmark
from chunkcore.evaluation.benchmarks.benchmark import Benchmark
from chunkcore.evaluation.scoring import Scorer
from chunkcore.models import CachedEmbedder, EmbeddingCache, get_embedder
from chunkcore.models.base import Vectors
from chunkcore.retrieval.search import top_k
from chunkcore.run import Retrieved, Run
from integration_tests.benchmarks.chroma_table import STRATEGIES, first_occurrence, read_reference

KS = (5, 10)
CANDIDATES = (50, 100)
SEEDS = (100, 101, 102)

Indices = NDArray[np.int64]


def approximate(queries: Vectors, vectors: Vectors, candidates: int, seed: int) -> Indices:
    import hnswlib  # type: ignore[import-not-found]

    graph = hnswlib.Index(space="l2", dim=vectors.shape[1])
    graph.init_index(max_elements=len(vectors), ef_construction=100, M=16, random_seed=seed)
    graph.set_num_threads(1)  # in the order of the rows, so that a seed tells the outcome
    graph.add_items(vectors, np.arange(len(vectors)))
    graph.set_ef(candidates)
    return np.asarray(graph.knn_query(queries, k=max(KS))[0], dtype=np.int64)


def searches(queries: Vectors, vectors: Vectors) -> Iterator[tuple[str, list[Indices]]]:
    yield "exact", [top_k(queries, vectors, max(KS))[0]]
    for candidates in CANDIDATES:
        yield f"HNSW {candidates}", [approximate(queries, vectors, candidates, seed) for seed in SEEDS]


def recall(benchmark: Benchmark, scorer: Scorer, pool: Sequence[Retrieved], found: Indices, k: int) -> float:
    results = {
        query.id: [pool[i] for i in row[:k]] for query, row in zip(benchmark.queries, found.tolist(), strict=True)
    }
    measure = f"Recall@{k}[character]"
    return 100 * scorer.score(Run("r", results, pool), [measure]).mean(measure)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shared", type=Path, required=True, help="the folder with data/chroma and reference/")
    parser.add_argument("--cache", type=Path, default=default_cache(), help="the file that keeps embeddings")
    options = parser.parse_args(arguments)
    benchmark = load_benchmark(options.shared / "data/chroma")
    published = read_reference(options.shared / "reference/chroma_report_all_corpora.csv")
    rerun = read_reference(options.shared / "reference/chroma_released_code_rerun.csv")
    embedder = CachedEmbedder(get_embedder(), EmbeddingCache(options.cache))
    texts = {document.id: document.text for document in benchmark.documents}
    queries = embedder.embed_queries([query.text for query in benchmark.queries])
    scorer = Scorer(benchmark)
    names = ["exact", *(f"HNSW {candidates}" for candidates in CANDIDATES)]
    heads = [*names, *(f"{name}, first occurrence" for name in names)]
    print(f"| strategy | k | report | released code | {' | '.join(heads)} |")
    print(f"|---|--:|--:|--:|{'--:|' * len(heads)}")
    for key, spec in STRATEGIES.items():
        chunker = get_chunker(spec)
        if "embedder" in chunker.option_names():
            chunker = replace(chunker, embedder=embedder)  # type: ignore[call-arg]
        chunks = [*chunker.chunk_many(benchmark.documents)]
        pools = [
            [Retrieved(chunk.document_id, chunk.spans) for chunk in chunks],
            [first_occurrence(chunk, texts[chunk.document_id]) for chunk in chunks],
        ]
        runs = dict(searches(queries, embedder.embed_documents([chunk.text for chunk in chunks])))
        for k in KS:
            cells = []
            for pool in pools:
                for name in names:
                    values = [recall(benchmark, scorer, pool, found, k) for found in runs[name]]
                    low, high = f"{min(values):.2f}", f"{max(values):.2f}"
                    cells.append(low if low == high else f"{low}–{high}")
            theirs = f"{published[key, k]['recall']:.1f} | {rerun[key, k]['recall']:.2f}"
            print(f"| {key[0]} {key[1]}/{key[2]} | {k} | {theirs} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
