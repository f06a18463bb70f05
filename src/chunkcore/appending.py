"""Files that only grow: whole lines are added, each on disk before work goes on, and never half of one."""

from __future__ import annotations

import os
from contextlib import suppress
from io import FileIO

__all__ = ["append_lines"]


def append_lines(file: FileIO, lines: bytes, end: int | None = None) -> int:
    """Write whole lines at the end of an unbuffered file and see them on the disk: all of them, or none.

    Args:
        file: open for writing.
        lines: each with its end.
        end: where they begin; None for where the file ends.

    Returns:
        Where the file ends now.

    Raises:
        OSError: they cannot be written. What was there stays, and nothing is added, as after Ctrl-C.
    """
    begin = file.seek(0, os.SEEK_END) if end is None else end
    try:
        left = memoryview(lines)
        while left:
            left = left[file.write(left) or 0 :]
        os.fsync(file.fileno())
    except BaseException:  # Ctrl-C among them
        with suppress(OSError):  # half a line would damage the next one
            file.truncate(begin)
            file.seek(begin)
        raise
    return begin + len(lines)
