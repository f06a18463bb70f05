"""Every strategy that needs no LLM, on five collections, read at equal retrieved tokens.

    python -m integration_tests.benchmarks.collections_table --shared ../shared [--characters 300000] [--only cuad]

lochmere ships with the package and is taken whole; of the others as many documents as come to about so many
characters, in an order drawn with a fixed seed, with all of their questions. Chunks of all documents of a
collection are searched. Questions of CUAD and Evidence Inference do not name their document: its title stands
before them.

Recall at equal tokens is Recall@1000tok: the best chunks up to 1,000 tokens, the last one cut there. Intervals are of
10,000 paired resamples of questions.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from chunkcore import Benchmark, Document, Report, load_benchmark, load_dataset, run_experiment
from chunkcore.chunkers import chunkers, get_chunker
from chunkcore.cli.options import default_cache
from chunkcore.evaluation.measures import measures_at
from chunkcore.models import CachedEmbedder, EmbeddingCache, get_embedder
from tests.results import mean_intervals

COLLECTIONS = ("lochmere", "chroma", "cuad", "evidence_inference", "covid_qa")
REFERENCE = "recursive"
EVEN = "Recall@1000tok"
# Sizes about alike, where a strategy has one; names that are not registered are left out.
STRATEGIES = {
    "recursive": "recursive:size=200",
    "recursive, overlap": "recursive:size=200,overlap=100",
    "recursive, smaller": "recursive:size=100",
    "recursive, smallest": "recursive:size=50",
    "fixed_token": "fixed_token:size=200",
    "sentence": "sentence:size=200",
    "sentence, smallest": "sentence:size=50",
    "fixed_sentences": "fixed_sentences:sentences=6",
    "markdown": "markdown:size=200",
    "auto": "auto:size=200",
    "breakpoint": "breakpoint:size=200",
    "kamradt": "kamradt",
    "kamradt_modified": "kamradt_modified:size=200",
    "dual_semantic": "dual_semantic:size=100,size_of=text",
    "cluster_semantic": "cluster_semantic:size=200",
    "single_linkage": "single_linkage",
    "dbscan": "dbscan",
    "hierarchical": "hierarchical",
}


def benchmark_of(name: str, shared: Path, characters: int | None = None, *, titled: bool = True) -> Benchmark:
    """The collection, or about so many characters of its documents; `titled`: titles before questions without one."""
    if name == "lochmere":
        return load_dataset(name)
    whole = load_benchmark(shared / "data" / name)
    documents = whole.documents if characters is None else list(sampled(whole.documents, characters))
    titles = {document.id: title(document) for document in documents}
    queries = [
        replace(query, text=f"{titles[query.evidence[0].document_id]}: {query.text}")
        if titled and name in UNNAMED
        else query
        for query in whole.queries
        if all(evidence.document_id in titles for evidence in query.evidence)
    ]
    return Benchmark(name, documents, queries)


UNNAMED = ("cuad", "evidence_inference", "fairytaleqa")


def title(document: Document) -> str:
    """The document's own title, else its first line that is more than a label."""
    stated = document.metadata.get("title")
    lines = (line.strip() for line in document.text.splitlines())
    return str(stated) if stated else next((line for line in lines if len(line) > 10), "")


def sampled(documents: Sequence[Document], characters: int) -> Iterator[Document]:
    order = sorted(documents, key=lambda document: document.id)
    random.Random(0).shuffle(order)
    taken = 0
    for document in order:
        if taken + len(document.text) > characters:
            continue
        taken += len(document.text)
        yield document


def rows(reports: dict[str, Report]) -> Iterator[str]:
    yield (f"| strategy | chunks | mean tokens | cut off | Recall@5 | tokens@5 | IoU@5 | {EVEN} | less {REFERENCE}'s |")
    yield "|---|--:|--:|--:|--:|--:|--:|--:|--:|"
    base = reports[REFERENCE].values(EVEN)
    for name, report in reports.items():
        even = report.values(EVEN)
        columns = np.column_stack([report.values("Recall@5"), report.values("IoU@5"), even, even - base])
        low, high = mean_intervals(columns)
        mean = columns.mean(axis=0)
        assert report.chunks is not None
        chunks = report.chunks
        cells = [f"{100 * m:.1f} [{100 * a:.1f}, {100 * b:.1f}]" for m, a, b in zip(mean, low, high, strict=True)]
        difference = "–" if name == REFERENCE else f"{100 * mean[3]:+.1f} [{100 * low[3]:+.1f}, {100 * high[3]:+.1f}]"
        if name != REFERENCE and low[3] * high[3] > 0:
            difference = f"**{difference}**"
        yield (
            f"| {name} | {chunks.count:,} | {chunks.mean:.0f} | {chunks.truncated / max(1, chunks.count):.0%} "
            f"| {cells[0]} | {report.mean_tokens(5):,.0f} | {100 * mean[1]:.1f} | {cells[2]} | {difference} |"
        )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shared", type=Path, required=True, help="the folder with data/")
    parser.add_argument("--characters", type=int, default=300_000, help="about how many of each collection")
    parser.add_argument("--only", action="append", choices=COLLECTIONS, help="this collection; may be repeated")
    parser.add_argument("--cache", type=Path, default=default_cache(), help="the file that keeps embeddings")
    options = parser.parse_args(arguments)
    chosen = {name: spec for name, spec in STRATEGIES.items() if spec.partition(":")[0] in chunkers}
    for collection in options.only or COLLECTIONS:
        benchmark = benchmark_of(collection, options.shared, options.characters)
        began = time.perf_counter()
        reports = run_experiment(
            benchmark,
            [get_chunker(spec) for spec in chosen.values()],
            CachedEmbedder(get_embedder(), EmbeddingCache(options.cache)),
            measures=[*measures_at([5]), EVEN],
            progress=watch,
        )
        print(f"\n### {collection}: {describe(benchmark)}\n")
        print("\n".join(rows(dict(zip(chosen, reports, strict=True)))), flush=True)
        print(f"{collection}: {time.perf_counter() - began:.0f} s", file=sys.stderr, flush=True)


def describe(benchmark: Benchmark) -> str:
    characters = sum(len(document.text) for document in benchmark.documents)
    return f"{len(benchmark.documents)} documents, {characters:,} characters, {len(benchmark.queries)} questions"


def watch(step: str, done: int, total: int) -> None:
    if done == total:
        print(f"  {step}: {total:,}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
