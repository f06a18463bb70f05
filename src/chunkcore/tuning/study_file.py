"""`StudyFile`: the trials of a search, a line each, so that a search that was stopped goes on where it was.

Plain JSON lines, because what has to be kept are the scores of every question, and because what is proposed next
follows from them and the seed alone: no state of a sampler has to be kept, and nothing is ever unpickled.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from io import FileIO
from pathlib import Path
from typing import Any

from chunkcore.appending import append_lines
from chunkcore.errors import DataError, OptionError
from chunkcore.evaluation.textfiles import json_lines

__all__ = ["StudyFile"]

_FORMAT = "chunkcore-study-1"


class StudyFile:
    """A file of trials that only grows. A line that a kill left unfinished is dropped.

    Args:
        path: the file, begun where there is none.
        identity: what the trials are of: a study of anything else is refused. Names and plain values.

    Raises:
        DataError: the file is of another search, no such file, or cannot be written.
        OptionError: another process is at work on it.
        OSError: it cannot be opened.
    """

    def __init__(self, path: Path | str, identity: Mapping[str, Any]) -> None:
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._file = self.path.open("ab", buffering=0)
        try:
            _lock(self._file, self.path)
            self._drop_unfinished()
            if not self.path.stat().st_size:
                self.append({"format": _FORMAT, "identity": dict(identity)})
            self._lines = list(json_lines(self.path))
            self._check(identity)
        except BaseException:
            self._file.close()
            raise

    def read(self, take: Callable[[dict[str, Any]], None]) -> None:
        """Call `take` with each trial, in order.

        Raises:
            DataError: what `take` raised, with the line.
        """
        for number, data in self._lines[1:]:
            try:
                take(data)
            except DataError as error:
                raise DataError(f"{self.path}, line {number}: {error}; {_ADVICE}") from error

    def append(self, data: Mapping[str, Any]) -> None:
        """Add a line, and see it on the disk.

        Raises:
            DataError: it cannot be written; what is there stays.
        """
        line = json.dumps(data, ensure_ascii=True, allow_nan=False).encode("ascii") + b"\n"
        try:
            append_lines(self._file, line)
        except OSError as error:
            raise DataError(
                f"{self.path} cannot be written ({error.strerror or error}): what was tried before is kept, and the "
                "same command goes on with it"
            ) from error

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

    def __enter__(self) -> StudyFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _drop_unfinished(self) -> None:
        data = self.path.read_bytes()
        whole = data.rfind(b"\n") + 1
        # A file that is not ours is left as it is; of ours only the first line can have been cut off without an end.
        ours = data.startswith(b'{"format": "' + _FORMAT.encode()) or _HEAD.startswith(data)
        if whole < len(data) and ours:
            self._file.truncate(whole)

    def _check(self, identity: Mapping[str, Any]) -> None:
        head = self._lines[0][1] if self._lines else {}
        known = head.get("identity")
        if head.get("format") != _FORMAT or not isinstance(known, dict):
            raise DataError(f"{self.path} is no study that chunkcore tune wrote; {_ADVICE}")
        for name, value in identity.items():
            if known.get(name) != value:
                was = f"{name} {known.get(name)!r}, and now it is {value!r}" if name in _SHOWN else f"another {name}"
                raise DataError(f"{self.path} was begun with {was}: go on as before, or {_ADVICE}")


_HEAD = b'{"format": "chunkcore-study-1", "identity": {'
_ADVICE = "give another folder for the output, or take the file away to begin anew"
_SHOWN = ("measure", "counter", "retriever", "seed", "folds", "by", "baseline")


def _lock(file: FileIO, path: Path) -> None:
    """Keep other processes from the same study, where the system can."""
    try:
        import fcntl
    except ImportError:  # not on Windows
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise OptionError(
            f"another process is at work on {path}: wait for it, or give another folder for the output"
        ) from None
    except OSError:  # a file system without locks
        return
