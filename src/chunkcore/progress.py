"""How work tells how far it is."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["Progress"]

# Called with a step's name, what is done of it, and how much there is.
Progress = Callable[[str, int, int], None]
