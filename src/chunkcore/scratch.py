"""`ScratchFile`: what a long run need not hold in memory, in a file without a name."""

from __future__ import annotations

import os
import tempfile
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager

from chunkcore.errors import DataError

__all__ = ["ScratchFile", "telling_the_folder"]

_AT_ONCE = 2**30  # bytes; systems read no more than 2 GB in one call


@contextmanager
def telling_the_folder() -> Iterator[None]:
    """An error of a file without a name tells where it was."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = f"{tempfile.gettempdir()} (temporary files: TMPDIR names another folder)"
        raise


class ScratchFile:
    """Bytes that are written once, and read from any place. It lies in the temporary folder and goes with this object.

    Threads may read at the same time, and so may processes that were forked, but on Windows, where none are.

    >>> file = ScratchFile()
    >>> file.add(b"fox"), file.add(b"hen")
    (0, 3)
    >>> file.read(2, 3)
    b'xhe'
    """

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115
        weakref.finalize(self, self._file.close)
        self._lock = threading.Lock()
        self._size = 0

    def add(self, data: bytes) -> int:
        """Write behind what is there; where that begins.

        Raises:
            OSError: the disk is full; it names the temporary folder. What was there stays, and nothing is added.
        """
        with self._lock, telling_the_folder():
            begin = self._size
            self._file.seek(begin)
            left = memoryview(data)
            while left:
                left = left[self._file.write(left) or 0 :]
            self._size = begin + len(data)
        return begin

    def read(self, start: int, size: int) -> bytes:
        """So many bytes from a place.

        Raises:
            DataError: they are not all there.
        """
        parts: list[bytes] = []
        at, end = start, start + size
        while at < end and (part := self._part(at, min(end - at, _AT_ONCE))):
            parts.append(part)
            at += len(part)
        if at < end:
            raise DataError(f"a temporary file of {self._size} bytes ends at {at}: something has cut it off")
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _part(self, start: int, size: int) -> bytes:
        """As much of it as the system reads at once."""
        if hasattr(os, "pread"):
            return os.pread(self._file.fileno(), size, start)
        with self._lock:
            self._file.seek(start)
            return self._file.read(size) or b""
