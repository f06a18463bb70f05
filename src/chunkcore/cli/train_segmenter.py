"""``chunkcore train-segmenter``: weights for `Tagger` from texts whose sections are known."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from chunkcore.cli.wording import help_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from chunkcore.segmenters.tagger import Tagger
    from chunkcore.training import Parts

__all__ = ["HELP", "train_segmenter"]

HELP = help_text(
    """Train the segmenter of the strategy hierarchical on texts whose sections are known.

A file holds a text a line, {"id", "text", "boundaries"}: the offsets, in characters, at which sections begin, but
for the first; "sentences", pairs of offsets, may be given, too. Texts are parted by their ids: six tenths to train
on, two to choose the best epoch and the threshold by, and two to test on. The table at the end is of the last,
file by file, with an unsupervised segmenter that is tuned on the others.

  chunkcore train-segmenter articles.jsonl --output sections.safetensors

  chunkcore chunk manual.md --strategy hierarchical:segmenter=tagger:sections.safetensors
"""
)


def train_segmenter(
    files: Annotated[
        list[Path],
        typer.Argument(help="JSON lines of texts with their sections, or public collections.", metavar="FILES"),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Where the weights are written.")],
    embedder: Annotated[str, typer.Option(help="The model whose sentence vectors are read.")] = "all-MiniLM-L6-v2",
    cache: Annotated[Path | None, typer.Option(help="A file that keeps the vectors.")] = None,
    checkpoint: Annotated[Path | None, typer.Option(help="A file to go on from, if training is interrupted.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of all that is drawn, and of the texts' parts.")] = 0,
    epochs: Annotated[int | None, typer.Option(min=1, help="At most so many a network.")] = None,
    members: Annotated[int | None, typer.Option(min=1, help="Networks whose answers are averaged.")] = None,
    hidden: Annotated[int | None, typer.Option(min=1, help="Width of a network's layers.")] = None,
) -> None:
    """Train the segmenter of the strategy hierarchical on texts whose sections are known."""
    from rich.console import Console

    from chunkcore.models.loading import get_embedder
    from chunkcore.training import Training, save_tagger, train_tagger

    given: dict[str, Any] = {"epochs": epochs, "members": members, "hidden": hidden}
    training = Training(seed=seed, **{name: value for name, value in given.items() if value is not None})
    console, log = Console(soft_wrap=True), Console(stderr=True, soft_wrap=True)
    name = get_embedder(embedder).name.rpartition(":")[2]
    collections = _collections(files, embedder, cache, seed)
    count = sum(len(parts.train) for parts in collections.values())
    log.print(f"{count} {'text' if count == 1 else 'texts'} to train on")
    tagger = train_tagger(
        [text for parts in collections.values() for text in parts.train],
        [text for parts in collections.values() for text in parts.dev],
        training,
        embedder=name,
        checkpoint=checkpoint,
        progress=lambda member, epoch, loss, dev: log.print(
            f"network {member + 1}, epoch {epoch}: loss {loss:.4f}, on development texts {dev:.4f}"
        ),
    )
    save_tagger(tagger, output)
    console.print(_table(tagger, collections, seed))


def _collections(files: Sequence[Path], embedder: str, cache: Path | None, seed: int) -> dict[str, Parts]:
    """By file the parts of its texts, embedded."""
    from chunkcore.errors import DataError
    from chunkcore.evaluation.segmentation import load_labelled
    from chunkcore.models.cache import CachedEmbedder, EmbeddingCache
    from chunkcore.models.loading import get_embedder
    from chunkcore.training import embed_texts, split_texts

    names = [file.parent.name if file.stem == "documents" else file.stem for file in files]
    if len(set(names)) < len(names):
        raise DataError(f"two files have one name ({', '.join(names)}): give each file once, under a name of its own")
    model = CachedEmbedder(get_embedder(embedder), EmbeddingCache(cache))
    return {
        name: split_texts(embed_texts(load_labelled(file), model), seed)
        for name, file in zip(names, files, strict=True)
    }


def _table(tagger: Tagger, collections: dict[str, Parts], seed: int) -> Table:
    """Pk and WindowDiff on the test texts of each file."""
    from rich.table import Table

    from chunkcore.training import compare_on

    table = Table("texts tested on", "segmenter", "Pk", "WindowDiff")
    for name, parts in collections.items():
        for segmenter, scores in compare_on(parts, tagger, seed).items():
            table.add_row(f"{name} ({len(parts.test)})", segmenter, f"{scores.pk:.3f}", f"{scores.window_diff:.3f}")
        table.add_section()
    return table
