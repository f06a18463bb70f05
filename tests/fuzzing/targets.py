"""What can be tried: `Target`s, which properties become by the decorator `target`."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

__all__ = ["MISSING", "ROOMS", "Target", "load_targets", "target"]

# Where targets are; what a room needs may not be installed.
ROOMS = (
    "tests.fuzzing.of_chunkers",
    "tests.fuzzing.of_boundaries",
    "tests.fuzzing.of_places",
    "tests.fuzzing.of_files",
    "tests.fuzzing.of_hostile_files",
    "tests.fuzzing.of_encoders",
    "integration_tests.fuzzing.of_adapters",
    "integration_tests.fuzzing.of_exact",
)
MISSING: dict[str, str] = {}  # rooms that could not be entered, and why


@dataclass(frozen=True)
class Target:
    """A property that holds for whatever the chunkers make.

    Each of `texts` values of the argument `text` is checked with the other arguments.
    """

    room: str
    name: str
    check: Callable[..., None]
    arguments: dict[str, st.SearchStrategy[Any]]
    share: float = 1.0  # of the generated cases, beside the others'
    texts: int = 1
    guided: bool = False  # coverage is worth following: it reads, and is quick about it


_targets: dict[str, Target] = {}


def target(
    *, share: float = 1.0, texts: int = 1, guided: bool = False, **arguments: st.SearchStrategy[Any]
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Decorator: make a function a target, which is then also what it was."""

    def add(check: Callable[..., None]) -> Callable[..., None]:
        _targets[check.__name__] = Target(check.__module__, check.__name__, check, arguments, share, texts, guided)
        return check

    return add


def load_targets(rooms: tuple[str, ...] = ROOMS) -> dict[str, Target]:
    """All targets of some rooms by name. A room whose packages are not installed is named in `MISSING`."""
    for room in rooms:
        try:
            importlib.import_module(room)
        except ImportError as error:
            MISSING[room] = str(error)
    return {name: each for name, each in _targets.items() if each.room in rooms}
