"""Reading files as they are: UTF-8, no newline changed, and a clear sentence where that cannot be."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from chunkcore.errors import DataError

__all__ = ["NoTextError", "json_lines", "read_text"]

_PDF = b"%PDF-"  # may be free of NULs, which every other common format of images, archives and office files has
_UTF_16_OR_32 = (b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff")


class NoTextError(DataError):
    """A file that holds no text at all, in any encoding: it is empty, or an image, an archive, a PDF."""


def read_text(path: Path) -> str:
    """The file's text, with its newlines and, if it has one, its byte order mark.

    Offsets into this text are offsets into the file decoded as UTF-8; nothing is translated.

    Raises:
        NoTextError: the file is empty or binary.
        DataError: the file cannot be read, or is text in another encoding than UTF-8.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from error
    if not data:
        raise NoTextError(f"{path} is empty: fill it or take it out")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        kind = NoTextError if _is_binary(data) else DataError
        raise kind(
            f"{path} is not UTF-8 text (byte {error.start} is 0x{data[error.start]:02x}): convert it, or take it out"
        ) from error


def _is_binary(data: bytes) -> bool:
    """Of bytes that are not UTF-8: whether they are no text in another encoding either."""
    return data.startswith(_PDF) or (b"\x00" in data and not data.startswith(_UTF_16_OR_32))


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
