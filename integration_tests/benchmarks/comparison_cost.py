"""What comparing the Chroma report's eight strategies costs, next to embedding their chunks and the questions alone.

    python -m integration_tests.benchmarks.comparison_cost --shared ../shared [--all]

On the three smaller of its five corpora (state_of_the_union, wikitexts, chatlogs: 276 of 472 questions), or on all
with --all. Three runs, one after the other, each with the model loaded beforehand: embedding the distinct chunks and
questions alone; the whole comparison with no embedding known; the same with all of them known.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from time import perf_counter

from chunkcore import Benchmark, compare, get_chunker, get_embedder, load_benchmark, run_experiment
from chunkcore.models import CachedEmbedder, EmbeddingCache
from integration_tests.benchmarks.chroma_table import STRATEGIES

SMALL = ("state_of_the_union", "wikitexts", "chatlogs")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shared", type=Path, required=True)
    parser.add_argument("--all", action="store_true")
    arguments = parser.parse_args()
    benchmark = load_benchmark(arguments.shared / "data" / "chroma")
    if not arguments.all:
        benchmark = _part(benchmark)
    embedder = get_embedder("all-MiniLM-L6-v2")
    embedder.embed_queries(["load the model"])
    chunkers = [get_chunker(spec) for spec in STRATEGIES.values()]

    with tempfile.TemporaryDirectory() as folder:
        known = Path(folder) / "embeddings.sqlite"
        cold = _compare(benchmark, chunkers, CachedEmbedder(embedder, EmbeddingCache(known)))
        warm = _compare(benchmark, chunkers, CachedEmbedder(embedder, EmbeddingCache(known)))
        shared = CachedEmbedder(embedder, EmbeddingCache(known))
        texts = {
            chunk.text for chunker in chunkers for chunk in _sharing(chunker, shared).chunk_many(benchmark.documents)
        }
    started = perf_counter()
    embedder.embed_documents(sorted(texts))
    embedder.embed_queries([query.text for query in benchmark.queries])
    alone = perf_counter() - started
    print(f"{embedder.name}, {len(texts)} distinct chunks, {len(benchmark.queries)} questions")
    print(f"embedding them alone {alone:7.1f} s")
    print(f"comparison, cold     {cold:7.1f} s   {cold / alone:.2f} x   wanted at most 1.3 x")
    print(f"comparison, warm     {warm:7.1f} s              wanted on all five corpora: under 15 s")


def _part(benchmark: Benchmark) -> Benchmark:
    documents = [each for each in benchmark.documents if any(name in each.id for name in SMALL)]
    kept = {each.id for each in documents}
    queries = [each for each in benchmark.queries if all(at.document_id in kept for at in each.evidence)]
    return Benchmark(benchmark.name, documents, queries)


def _sharing(chunker, embedder):  # type: ignore[no-untyped-def]
    from dataclasses import replace

    return replace(chunker, embedder=embedder) if "embedder" in chunker.option_names() else chunker


def _compare(benchmark: Benchmark, chunkers, embedder) -> float:  # type: ignore[no-untyped-def]
    started = perf_counter()
    compare(run_experiment(benchmark, chunkers, embedder))
    return perf_counter() - started


if __name__ == "__main__":
    main()
