"""How well segmenters find sections of other lengths than those they learned: held-out texts, with sections cut short.

    python -m integration_tests.benchmarks.segment_lengths ../shared/data/wiki300/documents.jsonl

Sections become runs of about 15, 8 and 4 sentences (log-normal, seeded) from a random place in them.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from chunkcore.cli.options import default_cache
from chunkcore.evaluation.segmentation import load_labelled
from chunkcore.models import CachedEmbedder, EmbeddingCache, get_embedder
from chunkcore.segmenters import TextTiling
from chunkcore.segmenters.tagger import SHIPPED, load_tagger
from chunkcore.training import Labelled, embed_texts, score, split_texts


def shortened(texts: Sequence[Labelled], sentences: int, seed: int) -> list[Labelled]:
    """The texts with sections of about so many sentences."""
    random, found = np.random.default_rng(seed), []
    for text in texts:
        runs = []
        for section in np.split(text.vectors, text.starts):
            length = max(2, int(random.lognormal(np.log(sentences), 0.6)))
            first = random.integers(0, max(1, len(section) - length + 1))
            runs.append(section[first : first + length])
        found.append(Labelled(text.id, np.concatenate(runs), np.cumsum([len(run) for run in runs])[:-1]))
    return found


def main(source: str) -> None:
    model = CachedEmbedder(get_embedder("all-MiniLM-L6-v2"), EmbeddingCache(default_cache()))
    test = split_texts(embed_texts(load_labelled(Path(source)), model), 0).test
    tagger, tiling = load_tagger(SHIPPED), TextTiling()
    kinds = {"whole": test, "15": shortened(test, 15, 6), "8": shortened(test, 8, 5), "4": shortened(test, 4, 7)}
    for kind, texts in kinds.items():
        for name, find in (("tagger", tagger.find), ("texttiling", tiling.find), ("none", lambda _: np.empty(0, int))):
            found = score(texts, lambda text, find=find: find(text.vectors))  # type: ignore[misc]
            segments = np.mean([len(find(text.vectors)) + 1 for text in texts])
            length = np.mean([len(text.vectors) for text in texts])
            print(f"{kind}: {name}, {length:.0f} sentences: Pk {found.pk:.3f}, {segments:.1f} segments")


if __name__ == "__main__":
    main(*sys.argv[1:])
