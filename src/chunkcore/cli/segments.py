"""``chunkcore segments``: whether chunkers cut where the topic changes."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from chunkcore.cli import options, running
from chunkcore.escaping import terminal_text
from chunkcore.plain import plain

if TYPE_CHECKING:
    from rich.table import Table

    from chunkcore.evaluation.segmentation import SegmentReport
    from chunkcore.text import Document

DEFAULT_CHUNKERS = ("recursive:size=200", "breakpoint", "cluster_semantic:size=200")

app = typer.Typer(
    no_args_is_help=True, rich_markup_mode="rich", help="Score boundaries against known sections."
)


@app.command()
@options.grouped
def score(
    texts: Annotated[Path, options.value("FILE", "Texts with boundaries, as JSON lines.")],
    costs: options.Models,
    specs: options.ChunkerSpecs = None,
    embedder: options.EmbedderName = "all-MiniLM-L6-v2",
    output: Annotated[
        Path | None,
        options.value("FILE", "Write each text's scores.", "--output", "-o"),
    ] = None,
) -> None:
    """Score chunkers against gold boundaries: do chunks begin where the topic changes?

    A line of --texts is {"id", "text", "boundaries"}: the offsets, in characters, at which sections begin, without the
    first. Prints each measure's mean over the texts with its 95 % interval; Pk and WindowDiff are errors, lower is
    better.

    Example: chunkcore segments score --texts articles.jsonl -s recursive:size=200 -s hierarchical
    """
    from rich.console import Console

    from chunkcore.evaluation.segmentation import load_segmented, score_baselines, score_segments
    from chunkcore.study.comparing import build_chunkers
    from chunkcore.study.experiment import with_run_embedder

    prices, kept = costs.prices(), running.KeptAnswers(costs.kept)
    if output is not None:
        options.check_file(output)
    documents = load_segmented(texts)
    model = costs.embedder(embedder)
    chunkers = build_chunkers(specs or DEFAULT_CHUNKERS, model)
    chunkers = {spec: with_run_embedder(chunker, model) for spec, chunker in chunkers.items()}
    if costs.dry_run:
        running.say(*running.estimates(chunkers, documents, prices))
        return
    reports = []
    with running.reporting(sys.stderr) as progress:
        for number, (spec, chunker) in enumerate(chunkers.items(), 1):
            (report,) = score_segments(documents, [kept(chunker)])
            reports.append(replace(report, name=spec))
            progress("chunkers", number, len(chunkers))
    reports += score_baselines(documents)
    if output is not None:
        _write(reports, output)
    Console(highlight=False).print(_score_table(documents, reports))
    running.say(*kept.used(prices))


def _write(reports: Sequence[SegmentReport], output: Path) -> None:
    from chunkcore.files import write_text

    rows = [
        {
            "chunker": report.name,
            "text": text,
            "segments": float(report.segments[number]),
            **{name: float(values[number]) for name, values in report.scores.items()},
        }
        for report in reports
        for number, text in enumerate(report.text_ids)
    ]
    write_text(output, "".join(f"{json.dumps(plain(row))}\n" for row in rows))


def _score_table(documents: Sequence[Document], reports: Sequence[SegmentReport]) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from chunkcore.evaluation.segmentation import SEGMENT_MEASURES

    gold = sum(len(document.metadata["boundaries"]) + 1 for document in documents) / len(documents)
    title = (
        f"{len(documents):,} texts of {gold:.1f} segments, in sentences: means in %, 95 % intervals"
    )
    table = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left", pad_edge=False)
    table.add_column("Chunker", overflow="fold")
    for heading in ("Segments", *SEGMENT_MEASURES):
        table.add_column(heading, justify="right", no_wrap=True)
    for report in reports:
        means = [
            _percent(report.mean(name), *interval) for name, interval in report.intervals().items()
        ]
        table.add_row(Text(terminal_text(report.name)), f"{report.segments.mean():.1f}", *means)
    return table


def _percent(mean: float, low: float, high: float) -> str:
    return "–" if math.isnan(mean) else f"{100 * mean:.1f}\n{100 * low:.0f}–{100 * high:.0f}"
