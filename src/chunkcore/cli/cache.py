"""``chunkcore cache``: how large the cache of vectors and of language models' answers is; make it smaller."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from chunkcore.cli import options, running
from chunkcore.errors import OptionError, echo

if TYPE_CHECKING:
    from chunkcore.models.cache import Cache

app = typer.Typer(no_args_is_help=True, rich_markup_mode="rich", help="Measure, prune or clear the cache of models.")

File = Annotated[Path | None, typer.Option("--cache", metavar="FILE", help="Default: the user's cache.")]
_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9}


@app.command()
@options.grouped
def size(cache: File = None) -> None:
    """Say what the cache holds."""
    running.say(_described(_opened(cache)))


@app.command()
@options.grouped
def prune(
    to: Annotated[str, typer.Argument(metavar="SIZE", help="Such as 500MB or 2GB.")],
    cache: File = None,
) -> None:
    """Remove the entries that were not used for the longest time, until the file has about this size.

    chunkcore cache prune 500MB
    """
    kept = _opened(cache)
    running.say(f"{kept.prune(_bytes_of(to)):,} entries removed", _described(kept))


@app.command()
@options.grouped
def clear(cache: File = None) -> None:
    """Remove every entry."""
    kept = _opened(cache)
    running.say(f"{kept.clear():,} entries removed", _described(kept))


def _opened(path: Path | None) -> Cache:
    from chunkcore.models.cache import Cache

    return Cache(path or options.default_cache())


def _described(cache: Cache) -> str:
    held = cache.size()
    return f"{cache.path}: {held.bytes / 1e6:,.1f} MB, {held.vectors:,} vectors, {held.answers:,} answers"


def _bytes_of(text: str) -> int:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMG]?B?)", text.strip(), re.IGNORECASE)
    unit = _UNITS.get(match[2].upper().rstrip("B") + "B" if match[2] else "") if match else None
    if match is None or unit is None:
        raise OptionError(f"SIZE is a number and B, KB, MB or GB, such as 500MB; got {echo(text)}")
    return int(float(match[1]) * unit)
