"""How often `passages` says that nothing is relevant: the figures of docs/guides/retrievers.md.

    python -m integration_tests.benchmarks.nothing_relevant --shared ../shared

Of each collection, documents up to 300,000 characters and 60 questions are drawn with a fixed seed: its own questions,
for which it should say so never, and those of the ten others. Some of these are on its topic: of three collections of
contracts and policies, and of two of medicine.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from chunkcore.cli.options import default_cache
from chunkcore.models import CachedEmbedder, EmbeddingCache, get_embedder
from chunkcore.retrieval import TextVectors, chunk_corpus
from chunkcore.retrieval.passages import Passages
from integration_tests.benchmarks.passages_table import CHOSEN, COLLECTIONS, UNITS, benchmark_of


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--shared", type=Path, required=True)
    parser.add_argument("--cache", type=Path, default=default_cache())
    options = parser.parse_args(arguments)
    vectors = TextVectors(CachedEmbedder(get_embedder("all-MiniLM-L6-v2"), EmbeddingCache(options.cache)))
    benchmarks = {name: benchmark_of(name, options.shared, 60, 300_000) for name in COLLECTIONS}
    print("| collection | its own questions | of the ten others |\n|---|--:|--:|")
    for name, benchmark in benchmarks.items():
        index = Passages().index(chunk_corpus(benchmark.documents, UNITS), vectors)
        own, others = [0, 0], [0, 0]
        for source, other in benchmarks.items():
            counts = own if source == name else others
            for query in other.queries:
                counts[0] += not index.is_related(query.text)
                counts[1] += 1
        label = COLLECTIONS[name] + ", unseen" * (name not in CHOSEN)
        shares = (f"{100 * said / count:.1f} of {count}" for said, count in (own, others))
        print(f"| {label} | {' | '.join(shares)} |", flush=True)


if __name__ == "__main__":
    main()
