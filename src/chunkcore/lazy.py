"""Imports that wait: `on_first_use` for a package's modules, `needed` for an optional package."""

from __future__ import annotations

import ast
import sys
from importlib import import_module
from typing import Any

from chunkcore import guesses
from chunkcore.errors import MissingExtraError, shortened


def on_first_use(package: str) -> bool:
    """Make the package's names those of the imports below this call, each imported when it is first read (PEP 562).

        if TYPE_CHECKING or on_first_use(__name__):
            from chunkcore.text import Chunk as Chunk

    A type checker sees the imports; Python runs none of them, since the answer is False. Where there is no source, as
    in a frozen app, the answer is True, and all run at once.
    """
    module = sys.modules[package]
    get_source = getattr(module.__loader__, "get_source", None)
    source = get_source and get_source(package)
    if source is None:
        return True
    imports = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom)]
    homes: dict[str, str] = {}
    for node in imports:
        homes |= {alias.asname: str(node.module) for alias in node.names if alias.asname}

    def get(name: str) -> Any:
        if name not in homes:
            if name in guesses.HOMES:
                raise ImportError(guesses.elsewhere(package, name))
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(homes[name]), name)
        setattr(module, name, value)
        return value

    names = {*vars(module), *homes}
    vars(module).update(__getattr__=get, __dir__=lambda: sorted(names), __all__=sorted(homes))
    return False


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
