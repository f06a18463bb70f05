"""``chunkcore strategies``: what ``--strategy`` can name."""

from __future__ import annotations

import dataclasses
import inspect
import warnings
from typing import TYPE_CHECKING, Any

from chunkcore.cli.wording import help_text
from chunkcore.errors import OptionError

if TYPE_CHECKING:
    from chunkcore.chunkers.base import Chunker

__all__ = ["HELP", "strategies"]

HELP = help_text(
    """List the strategies with their options and defaults.

A strategy is written as its name, or as name:option=value,option=value. Those that installed packages offer (entry
points of the group chunkcore.strategies) are listed with ours.
"""
)


def strategies() -> None:
    """List the strategies with their options and defaults."""
    from rich.console import Console
    from rich.text import Text

    from chunkcore.chunkers import strategies as registered

    _load_plugins()
    console = Console(soft_wrap=True)
    for name, cls in registered().items():
        console.print(Text(name, style="bold"), Text(_first_line(cls)))
        for option, default in _options(cls):
            console.print(Text(f"  {option} = {default}"))


def _load_plugins() -> None:
    """Register what installed packages offer; one that cannot be loaded is told, and the others are listed."""
    from chunkcore.chunkers.base import find_strategy
    from chunkcore.registry import plugin_names

    for name in plugin_names():
        try:
            find_strategy(name)
        except OptionError as error:
            warnings.warn(str(error), stacklevel=2)


def _first_line(cls: type[Chunker]) -> str:
    return inspect.cleandoc(cls.__doc__ or "").split("\n", 1)[0]


def _options(cls: type[Chunker]) -> list[tuple[str, str]]:
    return [(each.name, _shown(each)) for each in dataclasses.fields(cls)]


def _shown(option: dataclasses.Field[Any]) -> str:
    if option.default is not dataclasses.MISSING:
        value = option.default
    elif option.default_factory is not dataclasses.MISSING:
        value = option.default_factory()
    else:
        return "(must be given)"
    return repr(getattr(value, "name", value))
