"""Reading files as they are: UTF-8, no newline changed, and a clear sentence where that cannot be.

Lines and rows are streamed: beside the row that is looked at, nothing of the file is in memory.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from chunkcore.errors import DataError

__all__ = [
    "LONGEST_LINE",
    "NoTextError",
    "csv_rows",
    "decoded",
    "empty",
    "is_binary",
    "json_lines",
    "json_object",
    "not_text",
    "read_json",
    "read_text",
    "text_lines",
    "unreadable",
]

_PDF = b"%PDF-"  # may be free of NULs, which every other common format of images, archives and office files has
_UTF_16_OR_32 = (b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff")
_WHOLE = 512 * 1024**2  # bytes of a JSON file, which can only be read whole, and takes several times as much memory
LONGEST_LINE = 512 * 1024**2  # bytes of one line


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
        raise unreadable(path, error) from error
    if not data:
        raise empty(path)
    return decoded(data, path)


def text_lines(path: Path) -> Iterator[tuple[int, str]]:
    r"""Line number, from 1, and each line with its newline; without byte order mark. Only ``\n`` ends a line.

    Raises:
        DataError: what `read_text` raises; with the line that is not UTF-8.
    """
    try:
        with path.open("rb") as file:
            before, number = 0, 0
            while data := file.readline(LONGEST_LINE + 1):
                number += 1
                if len(data) > LONGEST_LINE:
                    raise DataError(f"{path}, line {number}: over {LONGEST_LINE // 1024**2} MB, which is hardly a line")
                text = decoded(data, path, before=before, line=number)
                yield number, text if before else text.removeprefix("\ufeff")
                before += len(data)
    except OSError as error:
        raise unreadable(path, error) from error
    if not before:
        raise empty(path)


def json_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Line number, from 1, and object of each line that is not blank.

    Raises:
        DataError: a line is no JSON object, or what `text_lines` raises.
    """
    # Only "\n" ends a line: JSON allows U+2028 and U+0085, at which str.splitlines cuts, inside of strings.
    for number, line in text_lines(path):
        if line.strip():
            yield number, json_object(line, f"{path}, line {number}: ")


def json_object(line: str, place: str = "") -> dict[str, Any]:
    """The object that a line is; `place` begins the message where it is none.

    Raises:
        DataError: it is no JSON object.
    """
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{place}not JSON ({_said(error)}); each line is one JSON object") from error
    if not isinstance(found, dict):
        raise DataError(f"{place}expected a JSON object like {{...}}, got {type(found).__name__} {line.strip()[:40]!r}")
    return found


def read_json(path: Path) -> Any:
    """What a JSON file holds.

    Raises:
        DataError: it is no JSON, it is so large that reading it would fill the memory, or what `read_text` raises.
    """
    try:
        size = path.stat().st_size
    except OSError as error:
        raise unreadable(path, error) from error
    if size > _WHOLE:
        raise DataError(
            f"{path} has {size / 1024**2:,.0f} MB; a JSON file is read whole, and may have {_WHOLE // 1024**2} MB: "
            "split it, or write JSON lines"
        )
    text = read_text(path)
    try:
        return json.loads(text.removeprefix("\ufeff"))
    except json.JSONDecodeError as error:
        raise DataError(f"{path}, line {error.lineno}: not JSON ({error.msg})") from error
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: not JSON ({_said(error)})") from error


def csv_rows(path: Path, columns: Collection[str]) -> Iterator[tuple[int, dict[str, str | None]]]:
    """The line it ends on, from 1, and each row of a CSV file with a header; a value that is missing is None.

    Args:
        path: the file.
        columns: those that it must have; others are given, too.

    Raises:
        DataError: a column is missing, a row has more values than there are columns, the file is no CSV, or what
            `text_lines` raises.
    """
    # Lines keep their newlines, as the csv module wants it: a line feed inside of quotes stays what it is.
    reader = csv.reader((line for _, line in text_lines(path)), strict=True)
    try:
        header = next(reader, [])
        missing = [column for column in columns if column not in header]
        if missing:
            raise DataError(
                f"{path} lacks the column {' and '.join(missing)}: expected {', '.join(columns)}, "
                f"got {', '.join(header) or 'none'}"
            )
        for row in reader:
            if not row:
                continue
            if len(row) > len(header):
                raise DataError(
                    f"{path}, line {reader.line_num}: {len(row)} values, but the header names {len(header)} columns: "
                    "put quotes around values with commas"
                )
            yield reader.line_num, dict(zip(header, [*row, *[None] * (len(header) - len(row))], strict=True))
    except csv.Error as error:
        raise DataError(f"{path}, line {reader.line_num}: not CSV ({error})") from error


def decoded(data: bytes, path: Path, *, before: int = 0, line: int = 0) -> str:
    """The text of a file or of one of its lines, before which the file has so many bytes.

    Raises:
        NoTextError: the bytes are binary.
        DataError: they are text in another encoding than UTF-8.
    """
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        number = line or data.count(b"\n", 0, error.start) + 1
        binary = is_binary(data, has_nul=b"\x00" in data)
        raise not_text(path, before + error.start, data[error.start], number, binary=binary) from error


def not_text(path: Path, place: int, byte: int, line: int, *, binary: bool) -> DataError:
    """The error of a file whose byte at a place is none of UTF-8."""
    return (NoTextError if binary else DataError)(
        f"{path} is not UTF-8 text (byte {place} is 0x{byte:02x}){'' if binary else f' on line {line}'}: "
        "convert it, or take it out"
    )


def is_binary(head: bytes, *, has_nul: bool) -> bool:
    """Of a file that is not UTF-8, by its first bytes: whether it is no text in another encoding either."""
    return head.startswith(_PDF) or (has_nul and not head.startswith(_UTF_16_OR_32))


def unreadable(path: Path, error: OSError) -> DataError:
    """The error of a file or folder that the system does not let us read."""
    return DataError(f"{path} cannot be read: {error.strerror or error}")


def empty(path: Path) -> NoTextError:
    """The error of a file in which there is nothing."""
    return NoTextError(f"{path} is empty: fill it or take it out")


def _said(error: Exception) -> str:
    """The error's message; where it tells a line, that is of the line that was read, and says nothing."""
    return f"{error.msg}, at character {error.pos + 1}" if isinstance(error, json.JSONDecodeError) else str(error)
