"""What embedding costs: all-MiniLM-L6-v2 with OpenVINO in two precisions and with PyTorch.

    python -m integration_tests.benchmarks.embedding_cost [texts] [--recall]

Chunks of 200 and 50 tokens, drawn evenly from the five corpora of the Chroma report. The backends take turns, in
processor time. With `--recall` also Recall@1000tok of `recursive:size=200` by each precision on Chroma and COVID-QA.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from chunkcore import chunk_corpus, load_benchmark
from chunkcore.cli.options import default_cache
from chunkcore.models import CachedEmbedder, EmbeddingCache, get_embedder
from chunkcore.study.experiment import run_experiment
from integration_tests.benchmarks.chunking_speed import DATA, read_corpora

PRECISIONS = ("openvino", "openvino-bf16")
NAMES = [f"{backend}:all-MiniLM-L6-v2" for backend in (*PRECISIONS, "torch")]


def recall(collection: str, name: str) -> float:
    """Recall@1000tok in percent; the exact vectors from the cache of `chunkcore compare`."""
    embedder = CachedEmbedder(get_embedder(name), EmbeddingCache(default_cache()) if name == NAMES[0] else None)
    benchmark = load_benchmark(DATA / collection)
    (report,) = run_experiment(benchmark, ["recursive:size=200"], embedder, measures=["Recall@1000tok"])
    return 100 * report.mean("Recall@1000tok")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts", type=int, nargs="?", default=400)
    parser.add_argument("--recall", action="store_true")
    options = parser.parse_args()
    for size in (50, 200):
        distinct = list(dict.fromkeys(chunk.text for chunk in chunk_corpus(read_corpora(), f"recursive:size={size}")))
        texts = distinct[:: max(1, len(distinct) // options.texts)][: options.texts]
        seconds: dict[str, list[float]] = {name: [] for name in NAMES}
        vectors = {}
        for _ in range(2):
            for name in NAMES:
                began = time.process_time()
                vectors[name] = get_embedder(name).embed_documents(texts)
                seconds[name].append(time.process_time() - began)
        for name in NAMES:
            cosine = np.min((vectors[NAMES[0]].astype(float) * vectors[name]).sum(axis=1))
            speed = len(texts) / min(seconds[name])
            ratio = min(seconds[NAMES[0]]) / min(seconds[name])
            print(f"{size:3} tokens {name:32} {speed:7.1f} texts a second, {ratio:.2f} x, lowest cosine {cosine:.4f}")
    if options.recall:
        for collection in ("chroma", "covid_qa"):
            print(collection, *(f"{name} {recall(collection, name):.2f}" for name in NAMES[:-1]), flush=True)


if __name__ == "__main__":
    main()
