"""What embedding costs: all-MiniLM-L6-v2 with OpenVINO and with PyTorch, on real chunks, and from the cache.

    python -m integration_tests.benchmarks.embedding_cost [texts]

Chunks of 200 tokens (about the report's usual size) and pieces of 50 (what cluster_semantic embeds), drawn
evenly from the five corpora. The backends take turns; loading is timed in a fresh process.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from chunkcore.chunkers.recursive import Recursive
from chunkcore.models import CachedEmbedder, EmbeddingCache, get_embedder

CORPORA = Path(__file__).resolve().parents[2] / "../shared/data/chroma/corpora"
BACKENDS = ("openvino", "torch")
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


def main() -> None:
    if not CORPORA.exists():
        raise SystemExit(f"the five corpora of the report are needed, and not there: {CORPORA}")
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else 400
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
                began = time.perf_counter()
                answers[name] = get_embedder(name).embed_documents(texts)
                seconds[name].append(time.perf_counter() - began)
        for name in names:
            best = min(seconds[name])
            print(f"{name:28} {len(texts) / best:7.1f} texts/s {tokens / best:9.0f} tokens/s")
        print(
            f"openvino : torch {min(seconds[names[1]]) / min(seconds[names[0]]):.2f} x, "
            f"lowest cosine {np.min((answers[names[0]].astype(float) * answers[names[1]]).sum(axis=1)):.7f}"
        )
        with tempfile.TemporaryDirectory() as folder:
            for what in ("cold", "warm"):
                cached = CachedEmbedder(get_embedder(names[0]), EmbeddingCache(Path(folder) / "cache.sqlite"))
                began = time.perf_counter()
                cached.embed_documents(texts)
                print(f"openvino with a {what} cache {len(texts) / (time.perf_counter() - began):9.1f} texts/s")
                cached.cache.close()


if __name__ == "__main__":
    main()
