"""``chunkcore strategies``: what ``--strategy`` can name."""

from __future__ import annotations

from chunkcore.cli.wording import help_text

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

    console = Console(soft_wrap=True)
    for each in registered.describe():
        console.print(Text(each.name, style="bold"), Text(each.title))
        for option in each.options:
            console.print(Text(f"  {option.name} = {option.shown_default}"))
