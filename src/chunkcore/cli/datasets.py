"""``chunkcore datasets``: collections of documents and questions: listed, verified and stitched."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from chunkcore.cli import options, running
from chunkcore.errors import DataError, OptionError, echo

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="List, verify and stitch collections of documents and questions.",
)


@app.command(name="list")
@options.grouped
def list_known() -> None:
    """List the collections that ship with the package."""
    from chunkcore.datasets import list_datasets

    for info in list_datasets():
        typer.echo(f"{info.name}  {info.description}")


@app.command()
@options.grouped
def path(name: Annotated[str, typer.Argument(help="The collection's name.")] = "lochmere") -> None:
    """Print the folder of a shipped collection."""
    from chunkcore.datasets import dataset_path

    typer.echo(dataset_path(name))


@app.command()
@options.grouped
def layouts() -> None:
    """List the layouts of public collections that are read."""
    from chunkcore.evaluation.benchmarks import known_layouts

    for layout in known_layouts():
        typer.echo(f"{layout.name}  {layout.files}")


@app.command()
@options.grouped
def verify(
    collection: Annotated[
        str, typer.Argument(help="A shipped collection's name, or a folder or file of documents.", metavar="NAME|PATH")
    ] = "lochmere",
    questions: options.Questions = None,
    layout: options.Layout = "auto",
) -> None:
    """Check every question's evidence against the documents.

    Takes a shipped collection, a folder with documents and a questions.jsonl, or a public collection in its own layout.
    Lists each question that would be left out, with the reason; then the exit code is 1.

      chunkcore datasets verify docs/ --questions questions.jsonl
    """
    from chunkcore.datasets import dataset_path, list_datasets
    from chunkcore.evaluation.benchmarks import load_benchmark

    names = [info.name for info in list_datasets()]
    if collection in names and questions is None:
        benchmark = load_benchmark(dataset_path(collection), name=collection)
    elif Path(collection).exists():
        benchmark = load_benchmark(collection, questions, layout=layout, require_evidence=False)
    else:
        known = ", ".join(names)
        raise DataError(f"{echo(collection)} is neither a shipped collection ({known}) nor a file or folder")
    for problem in benchmark.problems:
        running.say(f"{problem.query_id}: {problem.reason}")
    spans = sum(len(query.evidence) for query in benchmark.queries)
    good = (
        f"{benchmark.name}: {len(benchmark.documents):,} documents, {len(benchmark.queries):,} questions, "
        f"{spans:,} pieces of evidence where they say"
    )
    if benchmark.without_evidence:
        count = len(benchmark.without_evidence)
        good += f"; {count:,} question{'s' if count > 1 else ''} that only answers can be scored on"
    bad = len(benchmark.problems)
    running.say(f"{good}; {bad:,} question{'s' if bad > 1 else ''} with a problem" if bad else good)
    if bad:
        raise typer.Exit(1)


@app.command()
@options.grouped
def stitch(
    data: options.Data,
    sentences: Annotated[int, typer.Option(min=1, metavar="N", help="About how many a document gets.")] = 100,
    seed: options.Seed = 0,
    output: options.Output = Path("stitched"),
) -> None:
    """Join short documents, shuffled, into long ones, so that there is something to cut.

    Writes documents.jsonl and questions.jsonl; evidence moves along with its text. Each stitched document lists its
    originals, which the unit [part] counts. Qu et al. (2024), appendix C; see docs/evidence/protocols.md.

      chunkcore datasets stitch abstracts/ --questions questions.jsonl --sentences 100 -o stitched
    """
    from chunkcore.evaluation.benchmarks.benchmark import parts_of, write_benchmark
    from chunkcore.evaluation.benchmarks.benchmark import stitch as stitched
    from chunkcore.evaluation.benchmarks.documents import BENCHMARK_NAMES

    given = [path.resolve() for path in (data.folder, data.questions) if path is not None]
    for file in ((output / name).resolve() for name in BENCHMARK_NAMES):
        if any(file == path or path in file.parents for path in given):
            raise OptionError(f"--output {output} is where the documents or questions are: name another folder")
    options.check_folder(output)
    benchmark = data.benchmark(output)
    long = stitched(benchmark, sentences=sentences, seed=seed)
    write_benchmark(long, output)
    for problem in benchmark.problems:
        running.say(f"left out: {problem.query_id}: {problem.reason}", err=True)
    parts = sum(len(parts_of(each)) for each in long.documents)
    summary = f"{parts:,} documents in {len(long.documents):,}, {len(long.queries):,} questions"
    if long.without_evidence:
        summary += f", {len(long.without_evidence):,} without evidence"
    if benchmark.problems:
        summary += f"; {len(benchmark.problems):,} left out"
    running.say(summary)
    running.say(str(output))
