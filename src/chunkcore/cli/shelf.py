"""What is there: ``chunkcore list`` of names, ``chunkcore datasets`` and ``chunkcore cache``."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from importlib import import_module
from inspect import cleandoc
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from chunkcore import guesses
from chunkcore.cli import options, running
from chunkcore.errors import DataError, OptionError, echo, suggestion
from chunkcore.options import shown_default

if TYPE_CHECKING:
    from chunkcore.models.cache import Cache

# The module of each registry.
_REGISTRIES = {
    "chunkers": "chunkcore.chunkers",
    "retrievers": "chunkcore.retrieval.base",
    "stages": "chunkcore.retrieval.stage",
    "measures": "chunkcore.evaluation.measures",
    "counters": "chunkcore.tokens.counters",
    "embedders": "chunkcore.models.loading",
    "llms": "chunkcore.models.llm.endpoint",
    "layouts": "chunkcore.evaluation.benchmarks.layout",
}


def _kinds(incomplete: str) -> list[str]:
    return [kind for kind in _REGISTRIES if kind.startswith(incomplete)]


@options.grouped
def list_names(
    kind: Annotated[
        str,
        typer.Argument(metavar="KIND", autocompletion=_kinds, help=f"{', '.join(_REGISTRIES)}."),
    ] = "",
) -> None:
    """List what has a name, with its options and defaults.

    A name is written with its options as name:option=value,option=value. What installed packages add is listed, too.

    Example: chunkcore list chunkers
    """
    from rich.console import Console
    from rich.text import Text

    if not kind:
        running.say(*(f"chunkcore list {name}" for name in _REGISTRIES))
        return
    kind = guesses.KINDS.get(kind, kind)
    if kind not in _REGISTRIES:
        expected = f"expected one of {', '.join(_REGISTRIES)}{suggestion(kind, _REGISTRIES)}"
        raise OptionError(f"unknown kind {echo(kind)}: {expected}")
    import_module(_REGISTRIES[kind].rpartition(".")[0])  # whose modules register what they hold
    console = Console(soft_wrap=True)
    for name, thing in getattr(import_module(_REGISTRIES[kind]), kind).items():
        title = cleandoc(thing.__doc__ or "").partition("\n")[0]
        console.print(Text(name, style="bold"), Text(title))
        for option in fields(thing) if is_dataclass(thing) else ():
            console.print(Text(f"  {option.name} = {shown_default(option)}"))


# ---- collections

datasets = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="List and verify collections of documents and questions.",
)


@datasets.command(name="list")
@options.grouped
def list_shipped() -> None:
    """List the collections that ship with the package, and their folders."""
    from chunkcore.datasets import DATASETS, dataset_path

    for name, description in DATASETS.items():
        running.say(f"{name}  {description}", f"  {dataset_path(name)}")


@datasets.command()
@options.grouped
def verify(
    collection: Annotated[
        str,
        typer.Argument(
            help="A shipped collection's name, or a folder or file of documents.",
            metavar="NAME|PATH",
        ),
    ] = "lochmere",
    questions: options.Questions = None,
    layout: options.Layout = "auto",
) -> None:
    """Check every question's evidence against the documents.

    Takes a shipped collection, a folder with documents and a questions.jsonl, or a public collection in its own layout.
    Lists each question that would be left out, with the reason; then the exit code is 1.

    Example: chunkcore datasets verify docs/ --questions questions.jsonl
    """
    from chunkcore.datasets import DATASETS, dataset_path
    from chunkcore.evaluation.benchmarks import load_benchmark

    if collection in DATASETS and questions is None:
        benchmark = load_benchmark(dataset_path(collection), name=collection)
    elif Path(collection).exists():
        benchmark = load_benchmark(collection, questions, layout=layout, require_evidence=False)
    else:
        shipped = ", ".join(DATASETS)
        raise DataError(
            f"{echo(collection)} is neither a shipped collection ({shipped}) nor a file or folder"
        )
    running.say(*(f"{problem.query_id}: {problem.reason}" for problem in benchmark.problems))
    pieces = sum(len(query.evidence) for query in benchmark.queries)
    counts = [(len(benchmark.documents), "document"), (len(benchmark.queries), "question")]
    sentence = f"{benchmark.name}: {', '.join(running.several(*count) for count in counts)}, "
    sentence += f"{pieces:,} pieces of evidence where they say"
    if benchmark.without_evidence:
        count = running.several(len(benchmark.without_evidence), "question")
        sentence += f"; {count} that only answers can be scored on"
    if benchmark.problems:
        sentence += f"; {running.several(len(benchmark.problems), 'question')} with a problem"
    running.say(sentence)
    if benchmark.problems:
        raise typer.Exit(1)


# ---- the cache of vectors and of language models' answers

cache = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="Measure or clear the cache of models.",
)
File = Annotated[Path | None, options.value("FILE", "Default: the user's cache.", "--cache")]


@cache.command()
@options.grouped
def size(file: File = None) -> None:
    """Say what the cache holds."""
    running.say(_described(_opened(file)))


@cache.command()
@options.grouped
def clear(file: File = None) -> None:
    """Remove every entry. The exit code is 1 if some are still there."""
    opened = _opened(file)
    running.say(f"{opened.clear():,} entries removed", _described(opened))
    contents = opened.size()
    if contents.vectors or contents.answers:
        raise typer.Exit(1)


def _opened(path: Path | None) -> Cache:
    from chunkcore.models.cache import Cache

    return Cache(path or options.default_cache())


def _described(opened: Cache) -> str:
    contents = opened.size()
    return f"{opened.path}: {contents.bytes / 1e6:,.1f} MB, {contents.vectors:,} vectors, {contents.answers:,} answers"
