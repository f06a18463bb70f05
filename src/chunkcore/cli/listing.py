"""``chunkcore list``: what strategies, retrievers, measures and the like can be named, and their options."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated

import typer

from chunkcore.cli import options
from chunkcore.errors import OptionError, echo

# The module of each registry.
_REGISTRIES = {
    "strategies": "chunkcore.chunkers",
    "retrievers": "chunkcore.retrieval.base",
    "stages": "chunkcore.retrieval.stage",
    "measures": "chunkcore.evaluation.measures.base",
    "counters": "chunkcore.tokens.counters",
    "embedders": "chunkcore.models.loading",
    "llms": "chunkcore.models.llm.endpoint",
    "segmenters": "chunkcore.segmenters.base",
    "layouts": "chunkcore.evaluation.benchmarks.layout",
}


def _kinds(incomplete: str) -> list[str]:
    return [kind for kind in _REGISTRIES if kind.startswith(incomplete)]


@options.grouped
def list_names(
    kind: Annotated[str, typer.Argument(metavar="KIND", autocompletion=_kinds, help=f"{', '.join(_REGISTRIES)}.")] = "",
) -> None:
    """List what has a name, with its options and defaults.

    A name is written with its options as name:option=value,option=value. What installed packages add is listed, too.

      chunkcore list strategies
    """
    from rich.console import Console
    from rich.text import Text

    from chunkcore.errors import suggestion

    if not kind:
        for each in _REGISTRIES:
            typer.echo(f"chunkcore list {each}")
        return
    kind = {"chunkers": "strategies", "models": "embedders"}.get(kind, kind)
    if kind not in _REGISTRIES:
        known = ", ".join(_REGISTRIES)
        raise OptionError(f"unknown kind {echo(kind)}: expected one of {known}{suggestion(kind, _REGISTRIES)}")
    import_module(_REGISTRIES[kind].rpartition(".")[0])  # whose modules register what they hold
    console = Console(soft_wrap=True)
    for found in getattr(import_module(_REGISTRIES[kind]), kind).describe():
        console.print(Text(found.name, style="bold"), Text(found.title))
        for option in found.options:
            console.print(Text(f"  {option.name} = {option.shown_default}"))
