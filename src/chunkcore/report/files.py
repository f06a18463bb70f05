"""Writing a file so that nobody ever reads half of it."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

__all__ = ["write_text"]


def write_text(path: Path, text: str) -> Path:
    """Write `text` as UTF-8, first beside `path` and then moved over it; folders are made.

    A reader finds the old file or the new one. When anything fails the old one stays and nothing is left behind.

    Raises:
        OSError: the folder cannot be written to.
    """
    data = text.encode("utf-8")
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir():
        raise IsADirectoryError(21, "is a folder, a file was expected", str(path))
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with part.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    return path
