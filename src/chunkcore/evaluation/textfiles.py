"""Reading files as they are: UTF-8, no newline changed, and a clear sentence where that cannot be."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from chunkcore.errors import DataError

__all__ = ["json_lines", "read_text"]


def read_text(path: Path) -> str:
    """The file's text, with its newlines and, if it has one, its byte order mark.

    Offsets into this text are offsets into the file decoded as UTF-8; nothing is translated.

    Raises:
        DataError: the file cannot be read, is empty, or is not UTF-8.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from error
    if not data:
        raise DataError(f"{path} is empty: fill it or take it out")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path} is not UTF-8 text (byte {error.start} is 0x{data[error.start]:02x}): convert it, or take it out"
        ) from error


def json_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Line number, from 1, and object of each line that is not blank.

    Raises:
        DataError: a line is no JSON object, or what `read_text` raises.
    """
    # Only "\n" ends a line: JSON allows U+2028 and U+0085, at which str.splitlines cuts, inside of strings.
    for number, line in enumerate(read_text(path).removeprefix("\ufeff").split("\n"), start=1):
        if not line.strip():
            continue
        try:
            found = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise DataError(f"{path}, line {number}: not JSON ({error}); each line is one JSON object") from error
        if not isinstance(found, dict):
            raise DataError(
                f"{path}, line {number}: expected a JSON object like {{...}}, got {type(found).__name__} {line[:40]!r}"
            )
        yield number, found
