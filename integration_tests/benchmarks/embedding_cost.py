"""What embedding costs: all-MiniLM-L6-v2 with OpenVINO in three precisions and with PyTorch, and from the cache.

    python -m integration_tests.benchmarks.embedding_cost [texts] [--recall]

Chunks of 200 tokens (about the report's usual size) and pieces of 50 (what cluster_semantic embeds), drawn
evenly from the five corpora. The backends take turns, in processor time; loading is timed in a fresh process. With
`--recall` also Recall@1000tok of `recursive:size=200` by each precision on the collections of the report and COVID-QA.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from chunkcore.chunkers.recursive import Recursive
from chunkcore.cli.options import default_cache
from chunkcore.evaluation.benchmarks import load_benchmark
from chunkcore.evaluation.experiment import run_experiment
from chunkcore.models import CachedEmbedder, EmbeddingCache, get_embedder

DATA = Path(__file__).resolve().parents[2] / "../shared/data"
CORPORA = DATA / "chroma/corpora"
PRECISIONS = ("openvino", "openvino-bf16", "openvino-int8")
BACKENDS = (*PRECISIONS, "torch")
SEPARATORS = ("\n\n", "\n", ".", "?", "!", " ", "")
LOADING = """
import sys, time
began = time.perf_counter()
from chunkcore.models import get_embedder
model = get_embedder(sys.argv[1])
model.embed_documents(["one text"])
print(time.perf_counter() - began)
"""


def chunk_texts(size: int, wanted: int) -> list[str]:
    chunker = Recursive(size=size, separators=SEPARATORS)
    texts = [text for path in sorted(CORPORA.glob("*.md")) for text in chunker.split_text(path.read_text("utf-8"))]
    distinct = list(dict.fromkeys(texts))
    return distinct[:: max(1, len(distinct) // wanted)][:wanted]


def loading_time(name: str) -> float:
    done = subprocess.run([sys.executable, "-c", LOADING, name], capture_output=True, text=True, check=True)
    return float(done.stdout)


def recall(collection: str, precision: str) -> float:
    """Recall@1000tok in percent; the exact vectors from the cache of `chunkcore compare`."""
    cache = EmbeddingCache(default_cache()) if precision == "openvino" else None
    embedder = CachedEmbedder(get_embedder(f"{precision}:all-MiniLM-L6-v2"), cache)
    (report,) = run_experiment(
        load_benchmark(DATA / collection), [Recursive(size=200)], embedder, measures=["Recall@1000tok"]
    )
    return 100 * report.mean("Recall@1000tok")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts", type=int, nargs="?", default=400)
    parser.add_argument("--recall", action="store_true")
    options = parser.parse_args()
    if not CORPORA.exists():
        raise SystemExit(f"the five corpora of the report are needed, and not there: {CORPORA}")
    wanted = options.texts
    names = [f"{backend}:all-MiniLM-L6-v2" for backend in BACKENDS]
    for name in names:
        print(f"{name:28} from import to the first vector {loading_time(name):5.1f} s")
    for size in (50, 200):
        texts = chunk_texts(size, wanted)
        tokens = int(get_embedder(names[0]).count_tokens(texts).sum())
        print(
            f"\n{len(texts)} chunks of at most {size} tokens, {tokens / len(texts):.0f} of the model's own in the mean"
        )
        seconds: dict[str, list[float]] = {name: [] for name in names}
        answers = {}
        for _ in range(2):
            for name in names:
                began = time.process_time()
                answers[name] = get_embedder(name).embed_documents(texts)
                seconds[name].append(time.process_time() - began)
        for name in names:
            best = min(seconds[name])
            print(
                f"{name:32} {len(texts) / best:7.1f} texts and {tokens / best:7.0f} tokens a processor second, "
                f"{min(seconds[names[0]]) / best:.2f} x openvino, lowest cosine to it "
                f"{np.min((answers[names[0]].astype(float) * answers[name]).sum(axis=1)):.7f}"
            )
        with tempfile.TemporaryDirectory() as folder:
            for what in ("cold", "warm"):
                cached = CachedEmbedder(get_embedder(names[0]), EmbeddingCache(Path(folder) / "cache.sqlite"))
                began = time.perf_counter()
                cached.embed_documents(texts)
                print(f"openvino with a {what} cache {len(texts) / (time.perf_counter() - began):9.1f} texts/s")
    if options.recall:
        for collection in ("chroma", "covid_qa"):
            found = ", ".join(f"{each} {recall(collection, each):.2f}" for each in PRECISIONS)
            print(f"Recall@1000tok on {collection}: {found}", flush=True)


if __name__ == "__main__":
    main()
