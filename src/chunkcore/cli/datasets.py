"""``chunkcore datasets``: the collection that ships, and whether a collection's evidence stands where it says."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from chunkcore.cli.wording import help_text

if TYPE_CHECKING:
    from chunkcore.evaluation.benchmarks.benchmark import Benchmark

__all__ = ["app"]

_HAS = {"evidence": "", "answers": "; answers, and no evidence", "boundaries": "; sections, and no questions"}

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="List, locate and verify collections of documents and questions.",
)

_VERIFY = help_text(
    """Check every question's evidence against the documents.

Takes the name of a shipped collection, a folder with documents and a questions.jsonl (or --questions), or a public
collection in its own layout. Lists each question that would be left out, with the reason. Exit code 1 when there are
any, 2 when the collection cannot be read.

  chunkcore datasets verify

  chunkcore datasets verify docs/ --questions questions.jsonl

  chunkcore datasets verify scifact/
"""
)

_FETCH = help_text(
    """Fetch a public collection from its own address.

The only command that goes to the network for data, and only when it is asked to. What comes is checked against the
checksum that was published with it. Interrupted, the same command goes on. The last line is the collection's folder.
Its licence is its own: see where it comes from.

  chunkcore datasets fetch scifact --into collections/

  chunkcore compare --docs collections/scifact
"""
)


@app.command(name="list", help="List the collections that ship with the package, and those that can be fetched.")
def list_known() -> None:
    """List the collections that ship with the package, and those that can be fetched."""
    from chunkcore.datasets import list_datasets
    from chunkcore.datasets.fetching import PUBLIC

    for info in list_datasets():
        typer.echo(f"{info.name}  {info.description}")
    for each in PUBLIC.values():
        typer.echo(f"{each.name}  public, of the layout {each.layout}; chunkcore datasets fetch {each.name}")


@app.command(help=_FETCH)
def fetch(
    name: Annotated[str, typer.Argument(help="One of chunkcore datasets list.")],
    into: Annotated[Path, typer.Option(help="The folder that the collection's folder is made in.")] = Path(),
) -> None:
    """Fetch a public collection from its own address."""
    from chunkcore.cli.progress import reporting
    from chunkcore.datasets.fetching import fetch_dataset

    with reporting(sys.stderr) as progress:
        folder = fetch_dataset(name, into, progress=progress)
    typer.echo(folder)


@app.command(help="Print the folder of a shipped collection.")
def path(name: Annotated[str, typer.Argument(help="The collection's name.")] = "lochmere") -> None:
    """Print the folder of a shipped collection."""
    from chunkcore.datasets import dataset_path

    typer.echo(dataset_path(name))


@app.command(help="List the layouts of public collections that are read.")
def layouts() -> None:
    """List the layouts of public collections that are read."""
    from chunkcore.evaluation.benchmarks import known_layouts

    for layout in known_layouts():
        typer.echo(f"{layout.name}  {layout.files}{_HAS[layout.holds]}")


@app.command(help=_VERIFY)
def verify(
    collection: Annotated[
        str, typer.Argument(help="A shipped collection's name, or a folder or file of documents.", metavar="NAME|PATH")
    ] = "lochmere",
    questions: Annotated[Path | None, typer.Option(help="The questions, where they are not in the folder.")] = None,
    layout: Annotated[
        str, typer.Option(help="One of chunkcore datasets layouts, should it not be recognised.")
    ] = "auto",
) -> None:
    """Check every question's evidence against the documents."""
    from chunkcore.escaping import terminal_text

    benchmark = _load(collection, questions, layout)
    for problem in benchmark.problems:
        typer.echo(terminal_text(f"{problem.query_id}: {problem.reason}"))
    spans = sum(len(query.evidence) for query in benchmark.queries)
    good = (
        f"{benchmark.name}: {len(benchmark.documents):,} documents, {len(benchmark.queries):,} questions, "
        f"{spans:,} pieces of evidence where they say"
    )
    if benchmark.without_evidence:
        count = len(benchmark.without_evidence)
        good += f"; {count:,} question{'s' if count > 1 else ''} that only answers can be scored on"
    bad = len(benchmark.problems)
    typer.echo(terminal_text(f"{good}; {bad:,} question{'s' if bad > 1 else ''} with a problem" if bad else good))
    if bad:
        raise typer.Exit(1)


def _load(collection: str, questions: Path | None, layout: str) -> Benchmark:
    from chunkcore.datasets import dataset_path, list_datasets
    from chunkcore.errors import DataError
    from chunkcore.evaluation.benchmarks import load_benchmark

    names = [info.name for info in list_datasets()]
    if collection in names and questions is None:
        return load_benchmark(dataset_path(collection), name=collection)
    if not Path(collection).exists():
        raise DataError(f"{collection!r} is neither a shipped collection ({', '.join(names)}) nor a file or folder")
    return load_benchmark(collection, questions, layout=layout, require_evidence=False)
