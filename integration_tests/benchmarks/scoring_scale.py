"""Seconds to score 10,000 queries, each answered with 100 spans, by every measure.

    python -m integration_tests.benchmarks.scoring_scale [--queries 10000] [--pieces 100]

500 documents of 20,000 characters, cut every 400 characters with 100 of overlap; each query has evidence in one to
three places, and is answered with neighbours of it and with chunks from anywhere, in an order drawn with a fixed seed.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Sequence

import numpy as np

from chunkcore.document import Document, Span
from chunkcore.evaluation.benchmarks.benchmark import Benchmark, Evidence, Query
from chunkcore.evaluation.measures import Measure, get_measure, measures_at
from chunkcore.evaluation.scoring import Scorer
from chunkcore.run import Retrieved, Run

LENGTH, SIZE, STEP = 20_000, 400, 300
ORDER = ("HitRate@5", "MRR@10", "MAP@100", "nDCG@10", "DCG@5", "ChunkPrecision@5")
USUAL = measures_at((5, 10, "min", "4096tok"), ("token", "character"))
GROUPS: dict[str, list[Measure]] = {
    "Recall, Precision, IoU, F1 of tokens at 5": measures_at((5,), ("token",)),
    "the usual 34, of tokens and characters, at 5, 10, min and 4,096 tokens": USUAL,
    "six measures of order, of tokens": [get_measure(name) for name in ORDER],
    "the same and F1@5 of sentences": [get_measure(f"{name}[sentence]") for name in (*ORDER, "F1@5")],
    "the same but the last, and F1@5, of documents": [
        get_measure(f"{name}[document]") for name in (*ORDER[:-1], "F1@5")
    ],
}


def drawn(queries: int, pieces: int) -> tuple[Benchmark, Run]:
    draw = np.random.default_rng(0)
    words = np.array(["valve", "pump", "under", "lid.", "red", "the", "keys.", "outside", "caretaker", "A"])
    texts = [" ".join(draw.choice(words, LENGTH // 5)).ljust(LENGTH)[:LENGTH] for _ in range(500)]
    documents = [Document(f"d{number}", text) for number, text in enumerate(texts)]
    pool = [
        Retrieved(document.id, (Span(start, min(start + SIZE, LENGTH)),))
        for document in documents
        for start in range(0, LENGTH, STEP)
    ]
    each = len(range(0, LENGTH, STEP))
    asked, results = [], {}
    for number in range(queries):
        places = [(int(draw.integers(500)), int(draw.integers(LENGTH - 200))) for _ in range(draw.integers(1, 4))]
        evidence = tuple(Evidence(f"d{document}", Span(start, start + 150)) for document, start in places)
        asked.append(Query(f"q{number}", "?", evidence))
        near = [
            min(document * each + start // STEP + step, len(pool) - 1) for document, start in places for step in (0, 1)
        ]
        found = np.concatenate((near, draw.integers(0, len(pool), pieces)))[:pieces]
        results[f"q{number}"] = [pool[i] for i in draw.permutation(found).tolist()]
    return Benchmark("drawn", documents, asked), Run("drawn", results, pool)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=int, default=10_000)
    parser.add_argument("--pieces", type=int, default=100)
    options = parser.parse_args(arguments)
    benchmark, run = drawn(options.queries, options.pieces)
    began = time.perf_counter()
    scorer = Scorer(benchmark)
    for unit in ("token", "sentence"):
        scorer.relevance(unit)
    print(f"tokens and sentences of {500 * LENGTH:,} characters: {time.perf_counter() - began:.1f} s")
    print(f"\n| {options.queries:,} queries × {options.pieces} spans | seconds |\n|---|--:|")
    for name, measures in GROUPS.items():
        began = time.perf_counter()
        scorer.score(run, measures)
        print(f"| {name} | {time.perf_counter() - began:.1f} |", flush=True)
    print(f"\nmost memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.1f} GB, the run included")


if __name__ == "__main__":
    main()
