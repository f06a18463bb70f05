"""How many chunks stay when text is appended: `python -m integration_tests.benchmarks.appended_text` prints a table.

Three corpora of the Chroma report, cut after a sentence about half way, at three quarters and at nine tenths, and
then whole again. `cluster_semantic` takes the mean of each text, or that of the shorter one, frozen. Embeddings are
kept where the command line keeps its own; `make golden` has made nearly all of them.
"""

from __future__ import annotations

from chunkcore import Chunker, ClusterSemantic, Document, Recursive, get_embedder
from chunkcore.cli.options import default_cache
from chunkcore.models import CachedEmbedder, EmbeddingCache
from chunkcore.update import plan_update
from integration_tests.golden import text_of


def line(chunker: Chunker, before: Document, after: Document) -> str:
    """Chunks before, those that go, and how many before the first of these."""
    old = chunker.chunk(before)
    gone = plan_update(old, after, chunker).go
    return f"{len(gone)} of {len(old)}, from no. {gone[0].index + 1}" if gone else f"0 of {len(old)}"


def main() -> None:
    model = CachedEmbedder(get_embedder(), EmbeddingCache(default_cache()))
    free = ClusterSemantic(max_size=200, embedder=model)
    print("| corpus | first | `cluster_semantic` | with a frozen mean | `recursive` |\n|---|--:|--:|--:|--:|")
    for corpus in ("state_of_the_union", "wikitexts", "chatlogs"):
        text = text_of({"corpus": corpus})
        for share in (0.5, 0.75, 0.9):
            before = Document("d", text[: text.rindex(". ", 0, int(len(text) * share)) + 1])
            cells = [
                line(chunker, before, Document("d", text))
                for chunker in (free, free.freeze_mean([before]), Recursive(size=200))
            ]
            print(f"| {corpus} | {share:.0%} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
