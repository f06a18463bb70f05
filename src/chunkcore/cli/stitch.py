"""``chunkcore stitch``: short documents and their questions in, long documents and the same questions out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from chunkcore.cli import flags
from chunkcore.cli.inputs import check_folder, read_benchmark
from chunkcore.cli.wording import help_text

__all__ = ["HELP", "stitch"]

HELP = help_text(
    """Join short documents, shuffled, into long ones of about 100 sentences, so that there is something to cut.

Without --docs the small collection that ships with the package is used. Writes documents.jsonl and questions.jsonl
into the output folder, which compare and sweep read as --docs. Each stitched document lists its originals in its
metadata, so that [part] can be counted: the original documents that a chunk comes from. The evidence of every
question is moved along, and is the same text as before.

  chunkcore stitch --docs abstracts/ --questions questions.jsonl --sentences 100 --seed 0 -o stitched

  chunkcore sweep --docs stitched --unit part

Qu et al. (2024), "Is Semantic Chunking Worth the Computational Cost?", appendix C; see docs/protocols.md.
"""
)


def stitch(
    docs: flags.Docs = None,
    questions: flags.Questions = None,
    dataset: flags.Dataset = "lochmere",
    layout: flags.Layout = "auto",
    sentences: Annotated[int, typer.Option(min=1, help="How many sentences a document has, about.")] = 100,
    seed: Annotated[int, typer.Option(min=0, help="Of the shuffling.")] = 0,
    output: flags.OutputFolder = Path("stitched"),
) -> None:
    """Join short documents, shuffled, into long ones of about 100 sentences."""
    from chunkcore.escaping import terminal_text
    from chunkcore.evaluation.benchmarks.benchmark import parts_of
    from chunkcore.evaluation.benchmarks.stitching import stitch as stitched
    from chunkcore.evaluation.benchmarks.stitching import write_benchmark

    _check_output(output, docs, questions)
    check_folder(output)
    benchmark = read_benchmark(docs, questions, dataset, output, layout)
    long = stitched(benchmark, sentences=sentences, seed=seed)
    write_benchmark(long, output)
    for problem in benchmark.problems:
        typer.echo(terminal_text(f"left out: {problem.query_id}: {problem.reason}"), err=True)
    parts = sum(len(parts_of(each)) for each in long.documents)
    said = f"{parts:,} documents in {len(long.documents):,}, {len(long.queries):,} questions"
    if long.without_evidence:
        said += f", {len(long.without_evidence):,} without evidence"
    if benchmark.problems:
        said += f"; {len(benchmark.problems):,} left out"
    typer.echo(said)
    typer.echo(terminal_text(str(output)))


def _check_output(output: Path, docs: Path | None, questions: Path | None) -> None:
    """Keep what is read from being replaced by what is written.

    Raises:
        OptionError: the output is, or is in, the folder of the documents or that of the questions' file.
    """
    from chunkcore.errors import OptionError
    from chunkcore.evaluation.benchmarks.stitching import BENCHMARK_NAMES

    given = [path.resolve() for path in (docs, questions) if path is not None]
    written = [(output / name).resolve() for name in BENCHMARK_NAMES]
    for file in written:
        if any(file == path or path in file.parents for path in given):
            raise OptionError(f"--output {output} is where the documents or questions are: name another folder")
