"""Table 2 of the Dual Semantic Chunker's paper beside ours, with all-MiniLM-L6-v2 in place of stsb-mpnet-base-v2.

    python -m integration_tests.benchmarks.dsc_table --shared ../shared

Five corpora, 472 questions, exact search, k = 5, at most 100 tokens a chunk as there. Nothing is cached, so that
the time is that of cutting with its embeddings. What the paper leaves open is read so:

- DCG: the gain at rank i is the share of the chunk's tokens that are relevant, over log2(i + 1)
  (docs/reference/measures.md).
- "F1": their results file holds the IoU under that name, so both are given.
- Kamradt: the Chroma report's modified chunker with its mean-size search, 100 tokens the target.
- Dual Semantic: sentences by our default splitter, or by spaCy's small English pipeline, as there, where installed.
"""

from __future__ import annotations

import argparse
import csv
import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path

from chunkcore import Report, get_chunker, load_benchmark, run_experiment
from chunkcore.evaluation.measures import measures_at
from integration_tests.benchmarks.collections_table import watch

MEASURES = ("DCG@5", "IoU@5", "F1@5", "Precision@5", "Recall@5")
# The table's name and our strategy; a row of ours that the table lacks has its own name.
STRATEGIES = {
    "Fixed": "fixed_token:size=100",
    "Recursive": "recursive:size=100",
    "Kamradt": "kamradt_modified:size=100,goal=mean,piece_size=50,buffer=3",
    "Cluster": "cluster_semantic:size=100",
    "DSC": "dual_semantic:k=3.0,d=10,size=100,size_of=text,splitter=default",
    "DSC, spaCy": "dual_semantic:k=3.0,d=10,size=100,size_of=text,splitter=spacy:en_core_web_sm",
}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shared", type=Path, required=True, help="the folder with data/chroma and reference/")
    options = parser.parse_args(arguments)
    with (options.shared / "reference/dsc_table2.csv").open(encoding="utf-8", newline="") as file:
        theirs = {row["chunker"]: row for row in csv.DictReader(file)}
    chosen = dict(STRATEGIES)
    if importlib.util.find_spec("en_core_web_sm") is None:
        print('en_core_web_sm is not installed: no row "DSC, spaCy"', file=sys.stderr)
        del chosen["DSC, spaCy"]
    benchmark = load_benchmark(options.shared / "data/chroma")
    chunkers, measures = list(map(get_chunker, chosen.values())), [*measures_at([5]), *MEASURES]
    reports = run_experiment(benchmark, chunkers, measures=measures, progress=watch)
    columns = ["DCG", "IoU@5", "F1@5", "P@5", "R@5", "seconds to cut", "mean tokens"]
    print(f"| chunker | whose | {' | '.join(columns)} |\n|---|---|{'--:|' * len(columns)}")
    for name, row in theirs.items():
        cells = [row["dcg"], row["f1"], "–", row["precision_at_5"], row["recall_at_5"], row["time_s"]]
        print(f"| {name} | paper | {' | '.join(cells)} | {row['mean_tokens']} |")
        for ours, report in zip(chosen, reports, strict=True):
            if ours.partition(",")[0] == name:
                print(f"| {ours} | ours | {' | '.join(values(report))} |")


def values(report: Report) -> list[str]:
    assert report.chunks is not None
    cells = [f"{report.mean(measure):.3f}" for measure in MEASURES]
    return [*cells, f"{report.seconds['chunk']:.1f}", f"{report.chunks.mean:.1f}"]


if __name__ == "__main__":
    main()
