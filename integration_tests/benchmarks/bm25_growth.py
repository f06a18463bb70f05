"""Time and memory of BM25 over many chunks: the figures of docs/guides/retrievers.md.

    python -m integration_tests.benchmarks.bm25_growth 10000
    python -m integration_tests.benchmarks.bm25_growth 100000

Chunks of 150 words, drawn from 50,000 by Zipf's law; questions of 8 of them. One number of chunks a process, as the
peak is the process's.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Sequence

import numpy as np

from chunkcore.document import Chunk, Span
from chunkcore.retrieval import BM25, ChunkedCorpus

WORDS, VOCABULARY = 150, 50_000


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("chunks", type=int)
    count = parser.parse_args(arguments).chunks
    chance = np.random.default_rng(0)
    words = np.minimum(chance.zipf(1.2, size=(count, WORDS)), VOCABULARY)
    texts = (" ".join(f"word{number}" for number in row) for row in words.tolist())
    corpus = ChunkedCorpus(Chunk("d", i, (Span(i, i + 1),), text, WORDS) for i, text in enumerate(texts))
    before, began = peak(), time.process_time()
    index = BM25().index(corpus)
    indexed, after = time.process_time() - began, peak()
    queries = [" ".join(f"word{number}" for number in chance.choice(words.ravel(), 8)) for _ in range(200)]
    began = time.process_time()
    index.search(queries, 100)
    searched = (time.process_time() - began) / len(queries)
    print(
        f"{count:,} chunks: indexed in {indexed:.1f} CPU seconds and {after - before:.0f} MB; "
        f"{1000 * searched:.2f} ms a question"
    )


def peak() -> float:
    """The most memory that this process has had, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()
