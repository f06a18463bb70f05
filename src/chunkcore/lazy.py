"""`on_first_use`: a package imports each of its modules when the first of the module's names is read."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any


def on_first_use(package: str, rooms: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The `__getattr__` and `__dir__` of a package.

    Args:
        package: its name.
        rooms: a line for each module: its name (after a dot: one of the package, whose rooms are names too), a colon,
            its names; four spaces begin a line that goes on.
    """
    lines = (line.split(":") for line in rooms.replace("\n    ", " ").strip().splitlines())
    homes = {name: module for module, names in lines for name in names.split()}
    own = {module.split(".")[1] for module in homes.values() if module.startswith(".")}

    def get(name: str) -> Any:
        if name in own and name not in homes:
            return import_module(f".{name}", package)
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        found = getattr(import_module(homes[name], package), name)
        setattr(sys.modules[package], name, found)
        return found

    return get, lambda: sorted({*vars(sys.modules[package]), *homes})
