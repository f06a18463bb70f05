"""Seconds to score 10,000 queries, each answered with 100 spans, by every measure.

    python -m integration_tests.benchmarks.scoring_scale [--queries 10000] [--pieces 100]

500 documents of 20,000 characters, cut every 400 characters with 100 of overlap; each query has evidence in one to
three places, and is answered with neighbours of it and with chunks from anywhere, in an order drawn with a fixed seed.
As objects, a `Retrieved` of its own for each answer, and as columns, as an index and `read_run` give them.
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
from chunkcore.run import PieceColumns, RankedPieces, Retrieved, Run

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


def drawn(queries: int, pieces: int) -> tuple[Benchmark, Run, Run]:
    """The benchmark, and the same run of objects and of columns."""
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
    asked, numbers = [], []
    for number in range(queries):
        places = [(int(draw.integers(500)), int(draw.integers(LENGTH - 200))) for _ in range(draw.integers(1, 4))]
        evidence = tuple(Evidence(f"d{document}", Span(start, start + 150)) for document, start in places)
        asked.append(Query(f"q{number}", "?", evidence))
        near = [
            min(document * each + start // STEP + step, len(pool) - 1) for document, start in places for step in (0, 1)
        ]
        found = np.concatenate((near, draw.integers(0, len(pool), pieces)))[:pieces]
        numbers.append(draw.permutation(found))
    results = {f"q{i}": [pool[at].with_score(0.0) for at in own.tolist()] for i, own in enumerate(numbers)}
    columns = PieceColumns(
        pool.__getitem__,
        [document.id for document in documents],
        np.repeat(np.arange(len(documents)), each),
        np.array([piece.spans[0].start for piece in pool]),
        np.array([piece.spans[0].end for piece in pool]),
    )
    counts = np.array([len(own) for own in numbers])
    ranked = dict(
        zip(results, RankedPieces(columns, counts, np.concatenate(numbers), np.zeros(counts.sum())), strict=True)
    )
    return Benchmark("drawn", documents, asked), Run("drawn", results, pool), Run("drawn", ranked, columns)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=int, default=10_000)
    parser.add_argument("--pieces", type=int, default=100)
    options = parser.parse_args(arguments)
    benchmark, objects, columns = drawn(options.queries, options.pieces)
    began = time.perf_counter()
    scorer = Scorer(benchmark)
    for unit in ("token", "sentence"):
        scorer.relevance(unit)
    print(f"tokens and sentences of {500 * LENGTH:,} characters: {time.perf_counter() - began:.1f} s")
    print(f"\nProcessor seconds\n\n| {options.queries:,} queries × {options.pieces} spans | objects | columns |")
    print("|---|--:|--:|")
    for name, measures in GROUPS.items():
        seconds = []
        for run in (objects, columns):
            began = time.process_time()
            scorer.score(run, measures)
            seconds.append(time.process_time() - began)
        print(f"| {name} | {seconds[0]:.2f} | {seconds[1]:.2f} |", flush=True)
    print(f"\nmost memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.1f} GB, the runs included")


if __name__ == "__main__":
    main()
