"""What is there: ``chunkcore list`` of names and ``chunkcore cache``."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from importlib import import_module
from inspect import cleandoc
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from chunkcore import guesses
from chunkcore.cli import options, running
from chunkcore.errors import OptionError, echo, suggestion
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
