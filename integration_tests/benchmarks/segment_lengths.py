r"""How well segmenters find sections, by kind and length of text: the held-out texts of each file.

    python -m integration_tests.benchmarks.segment_lengths \
        ../shared/data/wiki300/documents.jsonl enwiki.jsonl papers.jsonl

Each text comes whole, and with its sections cut to runs of about 15, 8, 4 and 2 sentences (`shortened`). A stitched
text joins 2 to 12 such runs of some 8 sentences from any of the texts.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from chunkcore.cli.options import default_cache
from chunkcore.evaluation.segmentation import load_labelled
from chunkcore.models import CachedEmbedder, EmbeddingCache, get_embedder
from chunkcore.segmenters import TextTiling
from chunkcore.segmenters.tagger import SHIPPED, load_tagger
from chunkcore.spans import Numbers
from chunkcore.training import Labelled, embed_texts, score, shortened, split_texts

_BANDS = {"under 20": (0, 20), "20 to 50": (20, 51), "over 50": (51, 10**9)}


def stitched(texts: Sequence[Labelled], count: int) -> list[Labelled]:
    """Texts of sections from all texts, in random order."""
    random, found = np.random.default_rng(9), []
    runs = [run for text in shortened(texts, 8, 9) for run in np.split(text.rows, text.starts)]
    for number in range(count):
        chosen = [runs[place] for place in random.integers(len(runs), size=random.integers(2, 13))]
        found.append(
            Labelled(f"stitched-{number}", np.concatenate(chosen), np.cumsum([len(run) for run in chosen])[:-1])
        )
    return found


def even(text: Labelled) -> Numbers:
    """As many boundaries as the text has, evenly spaced."""
    return np.unique(np.linspace(0, len(text.rows), len(text.starts) + 2)[1:-1].astype(int).clip(1))


def table(texts: Sequence[Labelled], label: str) -> list[str]:
    tagger, tiling = load_tagger(SHIPPED), TextTiling()
    segmenters: dict[str, Callable[[Labelled], Numbers]] = {
        "tagger": lambda text: tagger.find(text.rows),
        "texttiling": lambda text: tiling.find(text.vectors),
        "even": even,
        "none": lambda text: np.empty(0, dtype=np.int64),
    }
    cells = [label, str(len(texts)), f"{np.mean([len(text.rows) for text in texts]):.0f}"]
    cells.append(f"{np.mean([len(text.starts) for text in texts]):.1f}")
    for name, find in segmenters.items():
        found = score(texts, find)
        cells.append(f"{found.pk:.3f} / {found.window_diff:.3f}")
        if name in ("tagger", "texttiling"):
            cells[-1] += f" ({np.mean([len(find(text)) for text in texts]):.1f})"
    return ["| " + " | ".join(cells) + " |"]


def main(files: Sequence[str]) -> None:
    model = CachedEmbedder(get_embedder("all-MiniLM-L6-v2"), EmbeddingCache(default_cache()))
    kinds = {}
    for file in map(Path, files):
        texts = embed_texts(load_labelled(file), model)
        kinds[f"{file.parent.name}/{file.stem}"] = split_texts(texts, 0).test
    report(kinds)


def report(kinds: dict[str, list[Labelled]]) -> None:
    """Print the tables of the held-out texts by kind."""
    print("| texts | count | sentences | boundaries | tagger: Pk / WindowDiff (found) | texttiling | even | none |")
    print("|---|--:|--:|--:|---|---|---|---|")
    pooled = [text for texts in kinds.values() for text in texts]
    for kind, texts in kinds.items():
        print(*table(texts, f"{kind}, whole"), sep="\n")
        for mean, seed in ((15, 6), (8, 5), (4, 7)):
            print(*table(shortened(texts, mean, seed), f"{kind}, sections of some {mean}"), sep="\n")
    every = [text for mean in (15, 8, 4, 2) for text in shortened(pooled, mean, mean)] + pooled
    for kind, texts in {"all lengths": every, "stitched": stitched(pooled, 300)}.items():
        for band, (least, most) in _BANDS.items():
            print(*table([text for text in texts if least <= len(text.rows) < most], f"{kind}, {band}"), sep="\n")


if __name__ == "__main__":
    main(sys.argv[1:])
