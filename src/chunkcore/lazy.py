"""Imports that wait: `on_first_use` for a package's modules, `needed` for an optional package."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from chunkcore import guesses
from chunkcore.errors import MissingExtraError, shortened, suggestion


def on_first_use(package: str, homes: Mapping[str, str]) -> None:
    """Import a package's names when they are first read (PEP 562); `homes` has the names of each module.

    A type checker sees the same imports under ``if TYPE_CHECKING``; a test compares the two.
    """
    module = sys.modules[package]
    home_of = {name: home for home, names in homes.items() for name in names.split()}

    def get(name: str) -> object:
        if name in home_of:
            value = getattr(import_module(home_of[name]), name)
            setattr(module, name, value)
            return value
        if name in guesses.HOMES:
            raise ImportError(guesses.elsewhere(package, name))
        hint = suggestion(name, home_of)
        raise AttributeError(f"module {package!r} has no attribute {name!r}{hint}")

    names = sorted({*vars(module), *home_of})
    vars(module).update(__getattr__=get, __dir__=lambda: names, __all__=sorted(home_of))


def needed(module: str, extra: str, purpose: str, package: str = "") -> Any:
    """A module of an optional package, imported now.

    Raises `MissingExtraError`: the package is not installed, or cannot be imported, as without a package that it needs.
    The error says why, and which extra brings the package; `package` is its name there, by default the module's.

    >>> needed("dodo", "report", "write a page")
    Traceback (most recent call last):
    chunkcore.errors.MissingExtraError: dodo is needed to write a page, and it is not installed: pip install ...
    """
    try:
        return import_module(module)
    except ImportError as error:
        name = package or module.partition(".")[0]
        if isinstance(error, ModuleNotFoundError) and f"{module}.".startswith(f"{error.name}."):
            raise MissingExtraError.of(name, extra, purpose) from error
        problem = f"its import failed ({shortened(' '.join(str(error).split()))})"
        raise MissingExtraError.of(name, extra, purpose, problem) from error
