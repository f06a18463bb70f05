"""`passages` beside the other retrievers, over chunks of many sizes, at equal retrieved tokens.

    python -m integration_tests.benchmarks.passages_table --shared ../shared [--only chroma] [--passages passages:dense]

The collections are whole; of CUAD the first 25 contracts, of QMSum the first 17 meetings. Questions of CUAD, Evidence
Inference and FairytaleQA do not name their document: its title stands before them. Recall is in percent of the
evidence's tokens, at 250, 500, 1,000 and 2,000 retrieved tokens. Each row of `passages` is compared, budget by budget,
with the best row of the others at this budget; intervals are of 10,000 paired resamples of questions.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from chunkcore.chunkers import get_chunker
from chunkcore.cli.options import default_cache
from chunkcore.datasets import load_dataset
from chunkcore.evaluation.benchmarks import load_benchmark
from chunkcore.evaluation.benchmarks.benchmark import Benchmark
from chunkcore.evaluation.experiment import run_experiment
from chunkcore.evaluation.results import Report
from chunkcore.evaluation.scoring import Scorer
from chunkcore.evaluation.statistics.resampling import mean_intervals
from chunkcore.models import CachedEmbedder, EmbeddingCache, get_embedder
from integration_tests.benchmarks.collections_table import describe, title, watch

COLLECTIONS = ("lochmere", "chroma", "covid_qa", "cuad", "evidence_inference", "qmsum", "fairytaleqa")
UNNAMED = ("cuad", "evidence_inference", "fairytaleqa")
FIRST = {"cuad": 25, "qmsum": 17}  # documents
BUDGETS = (250, 500, 1000, 2000)
UNITS = "sentence:size=50"
PASSAGES = (
    "passages",
    "passages:words=whole",
    "passages:dense",
    "passages:lexical",
    "passages:hits=50",
    "passages:hits=200",
)
CHUNKERS = (UNITS, "recursive:size=50", "recursive:size=100", "recursive:size=200", "recursive:size=400")
RETRIEVERS = (
    "dense",
    "bm25",
    "bm25:words=first5",
    "hybrid:fusion=ranks",
    "hybrid",
    'hybrid:dense,"bm25:words=first5"',
)


def benchmark_of(name: str, shared: Path) -> Benchmark:
    if name == "lochmere":
        return load_dataset(name)
    whole = load_benchmark(shared / "data" / name)
    documents = whole.documents[: FIRST.get(name)]
    titles = {document.id: title(document) for document in documents}
    queries = [
        replace(query, text=f"{titles[query.evidence[0].document_id]}: {query.text}") if name in UNNAMED else query
        for query in whole.queries
        if all(evidence.document_id in titles for evidence in query.evidence)
    ]
    return Benchmark(name, documents, queries)


def rows(passages: Sequence[Report], others: Sequence[Report]) -> Iterator[str]:
    measures = [f"Recall@{budget}tok" for budget in BUDGETS]
    yield "| chunks · retriever | " + " | ".join(f"{budget:,}" for budget in BUDGETS) + " | search, s |"
    yield "|---|" + "--:|" * (len(BUDGETS) + 1)
    best = [max(others, key=lambda each: each.mean(measure)) for measure in measures] if others else []
    for report in [*passages, *others]:
        cells = []
        for place, measure in enumerate(measures):
            cell = f"{100 * report.mean(measure):.1f}"
            if best and report in passages:
                less = report.values(measure) - best[place].values(measure)
                low, high = mean_intervals(less[~np.isnan(less)][:, None])
                cell += f" ({100 * np.nanmean(less):+.1f} [{100 * low[0]:+.1f}, {100 * high[0]:+.1f}])"
            elif best and report is best[place]:
                cell = f"**{cell}**"
            cells.append(cell)
        yield f"| {report.name} | {' | '.join(cells)} | {report.seconds.get('search', 0.0):.1f} |"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shared", type=Path, required=True, help="the folder with data/")
    parser.add_argument("--only", action="append", choices=COLLECTIONS, help="this collection; may be repeated")
    parser.add_argument("--units", default=UNITS, help="the strategy of the units")
    parser.add_argument("--passages", action="append", help="a row over the units; may be repeated")
    parser.add_argument("--chunker", action="append", help="a strategy of the other rows; may be repeated")
    parser.add_argument("--retriever", action="append", help="a retriever of the other rows; may be repeated")
    parser.add_argument("--alone", action="store_true", help="no other rows")
    parser.add_argument("--cache", type=Path, default=default_cache(), help="the file that keeps embeddings")
    options = parser.parse_args(arguments)
    embedder = CachedEmbedder(get_embedder(), EmbeddingCache(options.cache))
    measures = [f"Recall@{budget}tok" for budget in BUDGETS]
    for collection in options.only or COLLECTIONS:
        began = time.perf_counter()
        scorer = Scorer(benchmark_of(collection, options.shared))
        own, others = (
            [
                replace(report, name=f"{name} · {retriever}", run=None)
                for retriever in retrievers
                for name, report in zip(
                    chunkers,
                    run_experiment(
                        scorer,
                        [get_chunker(chunker) for chunker in chunkers],
                        embedder,
                        retrievers=[retriever],
                        measures=measures,
                        progress=watch,
                    ),
                    strict=True,
                )
            ]
            for chunkers, retrievers in (
                ([options.units], options.passages or PASSAGES),
                (options.chunker or CHUNKERS, () if options.alone else options.retriever or RETRIEVERS),
            )
        )
        print(f"\n### {collection}: {describe(scorer.benchmark)}\n")
        print("\n".join(rows(own, others)), flush=True)
        print(f"{collection}: {time.perf_counter() - began:.0f} s", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
