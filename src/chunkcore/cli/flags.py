"""Options that commands share word for word. What means something of its own stands with its command."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = [
    "Counter",
    "Dataset",
    "Docs",
    "DryRun",
    "EmbeddingFile",
    "InputPrice",
    "Layout",
    "Margin",
    "MinimumRule",
    "NoCache",
    "OutputFolder",
    "OutputPrice",
    "Questions",
    "ResampledBy",
    "Resamples",
    "Seed",
    "Strategies",
]

# What is read.
Docs = Annotated[Path | None, typer.Option(help="A folder of text files, a file, or a documents.jsonl.")]
Questions = Annotated[Path | None, typer.Option(help="A questions.jsonl, or a CSV of the Chroma layout.")]
Layout = Annotated[str, typer.Option(help="A public collection's, should it not be recognised (datasets layouts).")]
Dataset = Annotated[str, typer.Option(help="The shipped collection to use without --docs.")]
Strategies = Annotated[
    list[str] | None, typer.Option("--strategy", "-s", help="name:option=value,...; give it once a strategy.")
]

# How it is scored.
Counter = Annotated[str, typer.Option(help="The tokens that scores count.")]
MinimumRule = Annotated[str, typer.Option(help="Chunks that k = min counts: holding evidence, or also touching it.")]
Margin = Annotated[
    float, typer.Option(min=0, help="The least difference that matters, in points; smaller ones count as equal.")
]
ResampledBy = Annotated[
    str,
    typer.Option(
        help="What is resampled: question, for other questions about these documents, or document, for others."
    ),
]
Seed = Annotated[int, typer.Option(min=0, help="Of the bootstrap.")]
Resamples = Annotated[int, typer.Option(min=100, help="Of the bootstrap.")]

# What is kept, and what it costs.
EmbeddingFile = Annotated[Path | None, typer.Option(help="The file that keeps embeddings.")]
NoCache = Annotated[bool, typer.Option("--no-cache", help="Keep no embeddings, and no answers.")]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Tell what language models would be asked, and what it costs, and end.")
]
InputPrice = Annotated[
    float | None, typer.Option(help="Of a million tokens that a language model reads, in any currency.")
]
OutputPrice = Annotated[float | None, typer.Option(help="Of a million tokens that one writes.")]
OutputFolder = Annotated[Path, typer.Option("--output", "-o", help="The folder to write into.")]
