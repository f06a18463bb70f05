"""`on_first_use`: a framework's module imports each of ours when the first of its names is read."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any


def on_first_use(package: str, rooms: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The `__getattr__` and `__dir__` of a package.

    Args:
        package: its name.
        rooms: a line for each module of ours: its name, a colon, its names; four spaces begin a line that goes on.
    """
    lines = (line.split(":") for line in rooms.replace("\n    ", " ").strip().splitlines())
    homes = {name: module for module, names in lines for name in names.split()}

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        found = getattr(import_module(homes[name]), name)
        setattr(sys.modules[package], name, found)
        return found

    return get, lambda: sorted({*vars(sys.modules[package]), *homes})
