"""``chunkcore segments``: whether strategies cut where the topic changes, and a segmenter trained to."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from chunkcore.cli import options, running
from chunkcore.errors import DataError
from chunkcore.escaping import plain_json

if TYPE_CHECKING:
    from rich.table import Table

    from chunkcore.document import Document
    from chunkcore.evaluation.segmentation import SegmentReport
    from chunkcore.training import Parts

DEFAULT_STRATEGIES = ("recursive:size=200", "breakpoint", "cluster_semantic:size=200")

app = typer.Typer(no_args_is_help=True, rich_markup_mode="rich", help="Score boundaries, and train a segmenter.")


@app.command()
@options.grouped
def score(
    texts: Annotated[Path, typer.Option(metavar="FILE", help="Texts with boundaries, as JSON lines.")],
    costs: options.Models,
    strategy: options.Strategies = None,
    tolerance: Annotated[int, typer.Option(min=0, metavar="N", help="Sentences that a boundary may be off.")] = 0,
    embedder: options.EmbedderName = "all-MiniLM-L6-v2",
    seed: options.Seed = 0,
    resamples: options.Resamples = 10_000,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write each text's scores.")
    ] = None,
) -> None:
    """Score strategies against gold boundaries: do chunks begin where the topic changes?

    A line of --texts is {"id", "text", "boundaries"}: the offsets, in characters, at which sections begin, without the
    first. Prints each measure's mean over the texts with its 95 % interval; Pk and WindowDiff are errors, lower is
    better.

    docs/guides/segments.md explains the measures.

      chunkcore segments score --texts articles.jsonl -s recursive:size=200 -s hierarchical --tolerance 1
    """
    from rich.console import Console

    from chunkcore.evaluation.segmentation import load_segmented, score_baselines, score_segments
    from chunkcore.files import write_text
    from chunkcore.models import CachedEmbedder, get_embedder
    from chunkcore.models.loading import EmbedderCounter
    from chunkcore.report.study import build_chunkers

    prices = costs.prices()
    if output is not None:
        options.check_file(output)
    documents = load_segmented(texts)
    specs = strategy or DEFAULT_STRATEGIES
    model = CachedEmbedder(get_embedder(embedder), costs.embeddings())
    chunkers = build_chunkers(specs, model)
    for spec, chunker in chunkers.items():
        if chunker.token_counter == EmbedderCounter():
            chunkers[spec] = replace(chunker, counter=EmbedderCounter(model))
    if costs.dry_run:
        running.say(*running.estimates(chunkers, documents, prices))
        return
    chunkers = {spec: running.keeping(chunker, costs.answers) for spec, chunker in chunkers.items()}
    reports = []
    with running.reporting(sys.stderr) as progress:
        for number, (spec, chunker) in enumerate(chunkers.items()):
            progress("strategies", number, len(specs))
            reports.append(replace(score_segments(documents, [chunker], tolerance=tolerance)[0], name=spec))
        progress("strategies", len(specs), len(specs))
    reports += score_baselines(documents, tolerance=tolerance)
    Console(highlight=False).print(_score_table(documents, reports, resamples, seed))
    running.say(*running.used(chunkers.values(), prices))
    if output is not None:
        rows = [
            {
                "strategy": report.name,
                "text": text,
                "segments": float(report.segments[number]),
                **{name: float(values[number]) for name, values in report.scores.items()},
            }
            for report in reports
            for number, text in enumerate(report.text_ids)
        ]
        write_text(output, "".join(f"{json.dumps(plain_json(row))}\n" for row in rows))


def _score_table(documents: Sequence[Document], reports: Sequence[SegmentReport], resamples: int, seed: int) -> Table:
    from chunkcore.evaluation.segmentation import SEGMENT_MEASURES

    def cells(report: SegmentReport) -> list[str]:
        bounds = report.intervals(resamples=resamples, seed=seed)
        means = [
            "–" if math.isnan(mean := report.mean(name)) else f"{100 * mean:.1f}\n{100 * low:.0f}–{100 * high:.0f}"
            for name, (low, high) in bounds.items()
        ]
        return [f"{report.segments.mean():.1f}", *means]

    gold = sum(len(each.metadata["boundaries"]) + 1 for each in documents) / len(documents)
    title = f"{len(documents):,} texts of {gold:.1f} segments, in sentences: means in %, 95 % intervals"
    headings = ["Segments", *(_HEADINGS.get(name, name) for name in SEGMENT_MEASURES)]
    return running.strategy_table(title, headings, [(report.name, cells(report)) for report in reports])


_HEADINGS = {"WindowDiff": "Window-\nDiff", "Precision": "Preci-\nsion"}


@app.command()
@options.grouped
def train(
    files: Annotated[list[Path], typer.Argument(metavar="FILES", help="JSON lines of texts.")],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="Where the weights are written.")],
    embedder: options.EmbedderName = "all-MiniLM-L6-v2",
    cache: Annotated[Path | None, typer.Option(metavar="FILE", help="Keeps the sentence vectors.")] = None,
    seed: options.Seed = 0,
    epochs: Annotated[int | None, typer.Option(min=1, metavar="N", help="The most epochs of a network.")] = None,
    members: Annotated[int | None, typer.Option(min=1, metavar="N", help="Networks that are averaged.")] = None,
    hidden: Annotated[int | None, typer.Option(min=1, metavar="N", help="Width of a network's layers.")] = None,
) -> None:
    """Train the segmenter of the strategy hierarchical on texts whose sections are known.

    A line of a file is {"id", "text", "boundaries"}: the offsets at which sections begin, without the first. By their
    ids six tenths of the texts train, two choose the epoch and the threshold, and two test. The table is of the last.

      chunkcore segments train articles.jsonl --output sections.safetensors
    """
    from rich.console import Console
    from rich.table import Table

    from chunkcore.models.loading import get_embedder
    from chunkcore.training import Training, compare_on, save_tagger, train_tagger

    given: dict[str, Any] = {"epochs": epochs, "members": members, "hidden": hidden}
    training = Training(seed=seed, **{name: value for name, value in given.items() if value is not None})
    console, log = Console(soft_wrap=True), Console(stderr=True, soft_wrap=True)
    named = get_embedder(embedder).name.rpartition(":")[2]
    collections = _collections(files, embedder, cache, seed)
    count = sum(len(parts.train) for parts in collections.values())
    log.print(f"{count} {'text' if count == 1 else 'texts'} to train on")
    tagger = train_tagger(
        [text for parts in collections.values() for text in parts.train],
        [text for parts in collections.values() for text in parts.dev],
        training,
        embedder=named,
        progress=lambda member, epoch, loss, dev: log.print(
            f"network {member + 1}, epoch {epoch}: loss {loss:.4f}, on development texts {dev:.4f}"
        ),
    )
    save_tagger(tagger, output)
    table = Table("texts tested on", "segmenter", "Pk", "WindowDiff")
    for name, parts in collections.items():
        for segmenter, scores in compare_on(parts.test, tagger).items():
            table.add_row(f"{name} ({len(parts.test)})", segmenter, f"{scores.pk:.3f}", f"{scores.window_diff:.3f}")
        table.add_section()
    console.print(table)


def _collections(files: Sequence[Path], embedder: str, cache: Path | None, seed: int) -> dict[str, Parts]:
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
