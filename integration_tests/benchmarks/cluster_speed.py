"""How fast `cluster_semantic` is without its model, against the report's algorithm, and how its memory grows.

    python -m integration_tests.benchmarks.cluster_speed [repeats]

The vectors are given (seeded, 384 dimensions), so no model is timed. The reference is the algorithm of the
report's released code, written anew: the whole matrix of similarities, its mean over the upper triangle, and a
dynamic program that sums each window's sub-matrix; its pieces are counted by tiktoken, one after the other, in
LangChain's recursive splitter, of which the report's is a copy. The report's matrix was of float64; this one is
of float32, which is faster. Both take turns, and what is counted is processor time, which other programs change
little; with OMP_NUM_THREADS=1 it is one core's.
"""

from __future__ import annotations

import resource
import statistics
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np

from chunkcore.chunkers.cluster_semantic import ClusterSemantic, optimal_segmentation
from chunkcore.tokens import get_counter

CORPORA = Path(__file__).resolve().parents[2] / "../shared/data/chroma/corpora"
DIMENSIONS = 384
SEPARATORS = ["\n\n", "\n", ".", "?", "!", " ", ""]
MAX_PIECES = 8


class GivenVectors:
    """Answers at once: rows of one fixed array."""

    name = fingerprint = "given"
    max_tokens = None

    def __init__(self, rows: int) -> None:
        noise = np.random.default_rng(0).standard_normal((rows, DIMENSIONS), dtype=np.float32)
        # Neighbours are alike, as they are in text.
        for distance in range(1, 4):
            noise[distance:] += noise[:-distance] * np.float32(0.6)
        self.rows = noise / np.linalg.norm(noise, axis=1, keepdims=True)

    def embed_documents(self, texts):
        return self.rows[: len(texts)]

    embed_queries = embed_documents


def reference_segmentation(vectors: np.ndarray, most: int) -> list[int]:
    """The report's algorithm: O(n²·d) time, O(n²) memory."""
    matrix = vectors @ vectors.T
    count = len(matrix)
    matrix = matrix - matrix[np.triu_indices(count, k=1)].mean()
    np.fill_diagonal(matrix, 0)
    best, begin = np.zeros(count), np.zeros(count, dtype=int)
    for end in range(count):
        for size in range(1, most + 1):
            first = end - size + 1
            if first < 0:
                break
            worth = np.sum(matrix[first : end + 1, first : end + 1]) + (best[first - 1] if first else 0.0)
            if worth > best[end]:
                best[end], begin[end] = worth, first
    sizes, end = [], count - 1
    while end >= 0:
        sizes.append(end - begin[end] + 1)
        end = begin[end] - 1
    return sizes[::-1]


def reference_pieces(text: str) -> list[str]:
    from langchain_text_splitters import RecursiveCharacterTextSplitter

    encoding = get_counter("cl100k_base").encoding
    splitter = RecursiveCharacterTextSplitter(
        chunk_size=50,
        chunk_overlap=0,
        separators=SEPARATORS,
        length_function=lambda text: len(encoding.encode(text, disallowed_special=())),
    )
    return splitter.split_text(text)


def processor_times(works: list[Callable[[], object]], repeats: int) -> list[float]:
    """The median of each, in seconds, all taking turns."""
    times: list[list[float]] = [[] for _ in works]
    for _ in range(repeats):
        for work, taken in zip(works, times, strict=True):
            began = time.process_time()
            work()
            taken.append(time.process_time() - began)
    return [statistics.median(taken) for taken in times]


def compare_with_the_reference(text: str, repeats: int) -> None:
    pieces = reference_pieces(text)
    model = GivenVectors(len(pieces) + 1000)
    vectors = model.embed_documents(pieces)
    chunker = ClusterSemantic(embedder=model)
    same_pieces = chunker._splitter.split_text(text) == pieces
    same_cuts = optimal_segmentation(vectors, MAX_PIECES).tolist() == reference_segmentation(vectors, MAX_PIECES)
    print(f"\n{len(text) / 1e6:.2f} M characters, {len(pieces)} pieces; the same: {same_pieces}, ", end="")
    print(f"and the same segmentation: {same_cuts}")
    encoding = get_counter("cl100k_base").encoding
    fast, whole, limit, slow, split = processor_times(
        [
            lambda: optimal_segmentation(vectors, MAX_PIECES),
            lambda: chunker.spans(text),
            lambda: encoding.encode_ordinary(text),
            lambda: reference_segmentation(vectors, MAX_PIECES),
            lambda: reference_pieces(text),
        ],
        repeats,
    )
    print(f"segmentation       ours {fast:8.3f} s   reference {slow:8.3f} s   {slow / fast:6.1f} x")
    print(f"with the splitting ours {whole:8.3f} s   reference {split + slow:8.3f} s   {(split + slow) / whole:6.1f} x")
    print(f"one tokenizer pass, which ours holds {limit:8.3f} s")


def growth(text: str) -> None:
    print(
        "   text   pieces   segmentation: time, peak memory   vectors   whole chunker: time, process peak  n × n matrix"
    )
    for megabytes in (1.4, 5, 10, 20):
        long = (text * (int(megabytes * 1e6 / len(text)) + 1))[: int(megabytes * 1e6)]
        # Repeats would be embedded once; numbers make them different texts.
        long = "\n\n".join(f"{i} {part}" for i, part in enumerate(long.split("\n\n")))[: int(megabytes * 1e6)]
        pieces = len(ClusterSemantic(embedder="none")._splitter.spans(long))
        model = GivenVectors(pieces)
        began = time.perf_counter()
        optimal_segmentation(model.rows, MAX_PIECES)
        alone = time.perf_counter() - began
        began = time.perf_counter()
        ClusterSemantic(embedder=model).spans(long)
        whole = time.perf_counter() - began
        tracemalloc.start()
        optimal_segmentation(model.rows, MAX_PIECES)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        # Peaks of the process only grow, and so do the texts: each is that of its own text.
        process = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
        print(
            f"{megabytes:4.1f} MB {pieces:8d} {alone:16.2f} s {peak / 2**20:9.1f} MiB"
            f" {model.rows.nbytes / 2**20:7.0f} MiB {whole:18.2f} s {process:10.0f} MiB"
            f" {pieces**2 * 4 / 2**30:14.1f} GiB",
            flush=True,
        )


def main() -> None:
    if not CORPORA.exists():
        raise SystemExit(f"the five corpora of the report are needed, and not there: {CORPORA}")
    text = "\n\n".join(path.read_text(encoding="utf-8") for path in sorted(CORPORA.glob("*.md")))
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    get_counter("cl100k_base").count("load")
    print(f"threads at the start: {threading.active_count()}; repeats: {repeats}")
    growth(text)
    compare_with_the_reference(text, repeats)


if __name__ == "__main__":
    main()
