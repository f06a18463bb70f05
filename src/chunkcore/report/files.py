"""Writing a file so that nobody ever reads half of it."""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

__all__ = ["write_parts", "write_text"]


def write_text(path: Path, text: str) -> Path:
    """`write_parts` of one text, as UTF-8."""
    return write_parts(path, [text.encode("utf-8")])


def write_parts(path: Path, parts: Iterable[bytes]) -> Path:
    """Write `parts` one after another, first beside `path` and then moved over it; folders are made.

    A reader finds the old file or the new one. When anything fails, in the writing or in whatever makes
    the parts, the old one stays and nothing is left behind. A symbolic link stays, and the file that it leads
    to is written. What is no regular file, such as ``/dev/null`` or a named pipe, is written to as it is.

    Raises:
        OSError: the folder cannot be written to, or the disk is full; it names the file.
    """
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    # Asked of the path as given: where /dev/stdout leads to a pipe, the resolved path names nothing.
    if path.exists() and not path.is_file():
        with path.open("wb") as file:
            file.writelines(parts)
    else:
        _replace(Path(os.path.realpath(path)), parts)
    return path


def _replace(path: Path, parts: Iterable[bytes]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name[:100]}.{secrets.token_hex(4)}.part")
    try:
        with unfinished.open("xb") as file:
            file.writelines(parts)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
    except BaseException as error:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename in (None, str(unfinished)):
            error.filename = str(path)  # of a full disk none is told, and nobody knows the other one
        raise
