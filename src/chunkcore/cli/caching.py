"""Where the command line keeps what models answered, unless told otherwise: the user's cache folder."""

from __future__ import annotations

import os
import sys
from pathlib import Path

__all__ = ["default_cache", "shown"]


def default_cache() -> Path:
    """The file of embeddings and of language models' answers."""
    return _folder() / "cache.sqlite"


def _folder() -> Path:
    """The user's cache folder, as the system defines it."""
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "chunkcore"


def shown(path: Path) -> str:
    """The path as help texts show it: the user's home as ``~``."""
    home = Path.home()
    return str(Path("~") / path.relative_to(home)) if path.is_relative_to(home) else str(path)
