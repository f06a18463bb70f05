"""``chunkcore score-segments``: whether strategies cut where the topic changes."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from chunkcore.cli import flags
from chunkcore.cli.building import build_chunkers
from chunkcore.cli.caching import default_cache
from chunkcore.cli.inputs import check_file
from chunkcore.cli.progress import reporting
from chunkcore.cli.spending import estimates, keeping, read_prices, used
from chunkcore.cli.wording import help_text

if TYPE_CHECKING:
    from rich.table import Table

    from chunkcore.chunkers.base import Chunker
    from chunkcore.document import Document
    from chunkcore.evaluation.segmentation import SegmentReport, SegmentUnit
    from chunkcore.models import Embedder

__all__ = ["DEFAULT_STRATEGIES", "HELP", "score_segments"]

DEFAULT_STRATEGIES = ("recursive:size=200", "breakpoint", "cluster_semantic:max_size=200")

HELP = help_text(
    f"""Score strategies against gold boundaries: do chunks begin where the topic changes?

--texts is a file with a text a line, {{"id", "text", "boundaries"}}: the offsets, in characters, at which sections
begin, but for the first; "sentences", pairs of offsets, may be given, too. Wiki-727k, WIKI-50, Choi and QMSum are read
as they are distributed.

Prints, for each strategy and for three ways to cut blindly, the mean over texts and its 95 % interval: Pk and
WindowDiff are errors, lower is better; of precision, recall and F1 of boundaries and of B, boundary similarity,
higher is better. docs/segmentation.md explains them.

Unless --strategy is given, scores {", ".join(DEFAULT_STRATEGIES)}.

  chunkcore score-segments --texts articles.jsonl -s recursive:size=200 -s hierarchical --tolerance 1

  chunkcore score-segments --texts articles.jsonl --unit character --tolerance 50 --output scores.jsonl
"""
)


def score_segments(
    texts: Annotated[Path, typer.Option(help="Texts with their boundaries: JSON lines, or a public collection.")],
    strategy: flags.Strategies = None,
    layout: Annotated[str, typer.Option(help="The collection's layout, where it is not to be found out.")] = "auto",
    unit: Annotated[str, typer.Option(help="What boundaries are counted in: sentence or character.")] = "sentence",
    tolerance: Annotated[int, typer.Option(min=0, help="Units that a boundary may be off and still be right.")] = 0,
    embedder: Annotated[str, typer.Option(help="Of the strategies that embed.")] = "all-MiniLM-L6-v2",
    cache: flags.EmbeddingFile = None,
    no_cache: flags.NoCache = False,
    dry_run: flags.DryRun = False,
    input_price: flags.InputPrice = None,
    output_price: flags.OutputPrice = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the bootstrap and of random boundaries.")] = 0,
    resamples: flags.Resamples = 10_000,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="A file for each text's scores.")] = None,
) -> None:
    """Score strategies against gold boundaries: do chunks begin where the topic changes?"""
    from rich.console import Console

    from chunkcore.escaping import terminal_text
    from chunkcore.evaluation.benchmarks import load_segmented
    from chunkcore.evaluation.segmentation import SegmentOptions, score_baselines
    from chunkcore.evaluation.segmentation import score_segments as score
    from chunkcore.files import write_text

    options = SegmentOptions(unit=cast("SegmentUnit", unit), tolerance=tolerance)
    prices = read_prices(input_price, output_price)
    if output is not None:
        check_file(output)
    documents = load_segmented(texts, layout=layout)
    specs = [each.strip() for each in strategy or DEFAULT_STRATEGIES]
    store = None if no_cache else cache or default_cache()
    chunkers = _chunkers(specs, embedder, store, private=cache is None)
    if dry_run:
        for line in estimates(dict(zip(specs, chunkers, strict=True)), documents, prices):
            typer.echo(terminal_text(line))
        return
    chunkers = [keeping(chunker, None if no_cache else default_cache()) for chunker in chunkers]
    reports = []
    with reporting(sys.stderr) as progress:
        for number, (spec, chunker) in enumerate(zip(specs, chunkers, strict=True)):
            progress("strategies", number, len(specs))
            reports.append(_named(score(documents, [chunker], options)[0], spec))
        progress("strategies", len(specs), len(specs))
    reports += score_baselines(documents, options, seed=seed)
    Console(highlight=False).print(_table(documents, reports, options.unit, resamples, seed))
    for line in used(chunkers, prices):
        typer.echo(terminal_text(line))
    if output is not None:
        write_text(output, _lines(reports))


def _chunkers(specs: Sequence[str], embedder: str, store: Path | None, *, private: bool) -> list[Chunker]:
    """The strategies, over one embedder that keeps its vectors."""
    from chunkcore.models import CachedEmbedder, EmbeddingCache, get_embedder
    from chunkcore.models.loading import EmbedderCounter

    model: Embedder = CachedEmbedder(get_embedder(embedder), EmbeddingCache(store, private=private))
    return [
        replace(chunker, counter=EmbedderCounter(model)) if chunker.token_counter == EmbedderCounter() else chunker
        for chunker in build_chunkers(specs, model)
    ]


def _named(report: SegmentReport, spec: str) -> SegmentReport:
    return replace(report, name=spec)


def _lines(reports: Sequence[SegmentReport]) -> str:
    """A JSON object for each strategy and text."""
    rows = [
        {
            "strategy": report.name,
            "text": text,
            "segments": float(report.segments[number]),
            **{name: None if math.isnan(values[number]) else float(values[number]) for name, values in scores},
        }
        for report in reports
        for scores in [list(report.scores.items())]
        for number, text in enumerate(report.text_ids)
    ]
    return "".join(f"{json.dumps(row)}\n" for row in rows)


def _table(
    documents: Sequence[Document], reports: Sequence[SegmentReport], unit: SegmentUnit, resamples: int, seed: int
) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from chunkcore.escaping import terminal_text
    from chunkcore.evaluation.segmentation import SEGMENT_MEASURES

    gold = sum(len(each.metadata["boundaries"]) + 1 for each in documents) / len(documents)
    title = f"{len(documents):,} texts of {gold:.1f} segments, in {unit}s: means in %, 95 % intervals"
    table = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left", pad_edge=False)
    table.add_column("Strategy", overflow="fold")
    for heading in ("Segments", *map(_heading, SEGMENT_MEASURES)):
        table.add_column(heading, justify="right", no_wrap=True)
    for report in reports:
        bounds = report.intervals(resamples=resamples, seed=seed)
        cells = [_cell(report.mean(name), *bounds[name]) for name in SEGMENT_MEASURES]
        table.add_row(Text(terminal_text(report.name)), f"{report.segments.mean():.1f}", *cells)
    return table


def _heading(measure: str) -> str:
    return {"WindowDiff": "Window-\nDiff", "Precision": "Preci-\nsion"}.get(measure, measure)


def _cell(mean: float, low: float, high: float) -> str:
    if math.isnan(mean):
        return "–"
    return f"{100 * mean:.1f}\n{100 * low:.0f}–{100 * high:.0f}"
