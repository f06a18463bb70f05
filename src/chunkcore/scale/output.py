"""`ResumableOutput`: a file that is written beside its name with a journal, and goes on where a kill left it."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict
from io import FileIO
from pathlib import Path
from typing import Any, NamedTuple

from chunkcore.errors import DataError, OptionError
from chunkcore.scale.stream import Failure, Step, Tally

__all__ = ["ResumableOutput", "beside", "error_lines"]

try:
    import fcntl
except ImportError:  # Windows: two runs at one output are not told there
    fcntl = None  # type: ignore[assignment]


_FORMAT = "chunkcore chunk 1"
_BEGINNING = json.dumps({"format": _FORMAT}).encode("ascii")[:-1]  # of the journal
PAUSE = 5.0  # seconds between two lines of the journal: what a kill can cost


class _Line(NamedTuple):
    """A line of the journal: what was done, and how many bytes of output and of errors that were."""

    tally: Tally
    output: int
    errors: int


class ResumableOutput:
    """Lines on their way into a file.

    They are written to ``NAME.partial``, and every few seconds, when they are on the disk, ``NAME.journal`` is told
    how far that is. `finish` moves the file over its name. A run that was killed leaves both, and the next one cuts
    off what came after the journal's last whole line. What was left out for an error is written to
    ``NAME.errors.jsonl``, which is there only if there is something in it.

    Args:
        path: the file that is to be.
        identity: what the lines follow from, by name: a run of anything else is not gone on with. Plain values.
        fresh: begin anew, whatever was left.

    Raises:
        OptionError: what was left is of other options, or another process is at work on it.
        DataError: what was left is damaged.
        OSError: it cannot be written.
    """

    def __init__(self, path: Path, identity: Mapping[str, Any], *, fresh: bool = False) -> None:
        self.path = Path(os.path.realpath(path))  # a link stays, and the file that it leads to is written
        self.partial, self.journal, self.errors = beside(self.path)
        self.tallies: list[Tally] = []  # what an earlier run had done, at several times
        self._has_kept = False
        self._identity = dict(identity)
        self._done: _Line | None = None
        self._told = time.monotonic()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._journal = _opened(self.journal)
        self._files: dict[Path, FileIO] = {}
        try:
            _lock(self._journal, self.journal)
            self._begin(fresh=fresh)
        except BaseException:
            self.close()
            raise

    def _begin(self, *, fresh: bool) -> None:
        lines = [] if fresh else self._lines()
        if not self.partial.exists():
            lines = []  # it was moved over its name already, and the journal outlived a kill
        self._files[self.partial] = _opened(self.partial)
        size = os.fstat(self._files[self.partial].fileno()).st_size
        if size and not fresh and not self._journal.tell():
            raise OptionError(f"{self.partial} is there, and no journal tells whose it is: {_ADVICE}")
        told = self.errors.stat().st_size if self.errors.exists() else 0
        kept = [line for line in lines if line.output <= size and line.errors <= told]
        if lines and not kept:
            shorter = self.errors if lines[0].output <= size else self.partial
            raise DataError(f"{shorter} is shorter than {self.journal.name} says it was: {_ADVICE}")
        self.tallies = [line.tally for line in kept]
        self._has_kept = bool(kept)
        output, errors = (kept[-1].output, kept[-1].errors) if kept else (0, 0)
        _cut_off(self._files[self.partial], output)
        if self.errors.exists():
            self._files[self.errors] = _opened(self.errors)
            _cut_off(self._files[self.errors], errors)
        if kept:
            self._done = kept[-1]
        else:
            _cut_off(self._journal, 0)
            _append(self._journal, {"format": _FORMAT, **self._identity})

    def write(self, step: Step, tally: Tally) -> None:
        """Add lines, and what was left out among them; the tally is of all up to them.

        Raises:
            OSError: the disk is full, or another reason not to write.
        """
        self._add(self.partial, b"".join(step.lines))
        if step.failures:
            if self.errors not in self._files:
                self._files[self.errors] = _opened(self.errors)
            self._add(self.errors, error_lines(step.failures))
        if self._done is None:
            self._told = time.monotonic()  # what was loaded before the first lines is no work that could be lost
        self._done = _Line(tally.copy(), self._size(self.partial), self._size(self.errors))
        if time.monotonic() - self._told >= PAUSE:
            self.keep()

    def _add(self, path: Path, data: bytes) -> None:
        try:
            _write(self._files[path], data)
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(path)) from error

    def keep(self) -> None:
        """See what was written on the disk, and tell the journal."""
        if self._done is None:
            return
        for file in self._files.values():
            os.fsync(file.fileno())
        _append(self._journal, {**self._done._asdict(), "tally": asdict(self._done.tally)})
        self._has_kept = True
        self._told = time.monotonic()

    def finish(self) -> None:
        """Move the file over its name; a reader finds the old one or the new one.

        Raises:
            OSError: it cannot be moved.
        """
        for file in self._files.values():
            os.fsync(file.fileno())
            file.close()
        self.partial.replace(self.path)
        if self.errors.exists() and not self.errors.stat().st_size:
            self.errors.unlink()
        self._end_journal()

    def leave(self) -> bool:
        """End before the end: keep what is worth it, and return whether that is anything."""
        if self._has_kept:
            with suppress(OSError, ValueError):  # a full disk, say, or closed files: then what was kept before is
                self.keep()
            self.close()
            return True
        for path, file in self._files.items():
            file.close()
            path.unlink(missing_ok=True)
        self._end_journal()
        return False

    def _end_journal(self) -> None:
        if fcntl is None:  # Windows removes no file that is open
            self._journal.close()
        self.journal.unlink(missing_ok=True)  # while it is locked: whoever opens it now finds another one
        self._journal.close()

    def close(self) -> None:
        """Let go of the files."""
        for file in (*self._files.values(), self._journal):
            file.close()

    def _size(self, path: Path) -> int:
        return self._files[path].tell() if path in self._files else 0

    def _lines(self) -> list[_Line]:
        """What the journal tells, but for its head; nothing where it was never begun."""
        self._journal.seek(0)
        lines = self._journal.read().splitlines(keepends=True)
        if not lines or (not lines[0].endswith(b"\n") and _BEGINNING.startswith(lines[0][: len(_BEGINNING)])):
            return []
        self._check(_read(lines[0]))
        found = [line for line in map(_line_of, lines[1:]) if line]
        if not all(map(_line_of, lines[1:-1])):  # only the last can have been under way
            raise DataError(f"{self.journal} is damaged: {_ADVICE}")
        _cut_off(self._journal, sum(map(len, lines[: len(found) + 1])))
        return found

    def _check(self, head: dict[str, Any] | None) -> None:
        if head is None or head.get("format") != _FORMAT:
            raise OptionError(f"{self.journal} is there, and is no journal of chunkcore chunk: name another output")
        changed = [
            f"{name} was {_brief(head.get(name))}, and now it is {_brief(value)}"
            for name, value in self._identity.items()
            if head.get(name) != value
        ]
        if changed:
            raise OptionError(
                f"{self.partial} was left by an earlier run in which {'; '.join(changed)}: go on as before, {_ADVICE}"
            )


_ADVICE = "begin anew with --fresh, or name another output"


def beside(path: Path) -> list[Path]:
    """What is written beside an output while it is made: itself, its journal, and what is left out.

    >>> [each.name for each in beside(Path("out.jsonl"))]
    ['out.jsonl.partial', 'out.jsonl.journal', 'out.jsonl.errors.jsonl']
    """
    return [path.with_name(f"{path.name}.{ending}") for ending in ("partial", "journal", "errors.jsonl")]


def error_lines(failures: Iterable[Failure]) -> bytes:
    """What was left out, as JSON lines."""
    return b"".join(json.dumps(each.to_dict()).encode("ascii") + b"\n" for each in failures)


def _opened(path: Path) -> FileIO:
    return FileIO(os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o644), "r+")


def _write(file: FileIO, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[file.write(left) or 0 :]


def _append(file: FileIO, entry: Mapping[str, Any]) -> None:
    end = file.tell()
    try:
        _write(file, json.dumps(entry).encode("ascii") + b"\n")
        os.fsync(file.fileno())
    except OSError:
        with suppress(OSError):  # half a line would damage the next one
            _cut_off(file, end)
        raise


def _cut_off(file: FileIO, size: int) -> None:
    file.truncate(size)
    file.seek(size)


def _read(line: bytes) -> dict[str, Any] | None:
    """A line of the journal; None where it is not whole."""
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return entry if isinstance(entry, dict) and line.endswith(b"\n") else None


def _line_of(data: bytes) -> _Line | None:
    entry = _read(data)
    if entry is None or not {"tally", "output", "errors"} <= entry.keys():
        return None
    tally = Tally.from_dict(entry["tally"])
    sizes = entry["output"], entry["errors"]
    return None if tally is None or any(type(size) is not int for size in sizes) else _Line(tally, *sizes)


def _brief(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 100 else f"{text[:100]}…"


def _lock(file: FileIO, path: Path) -> None:
    if fcntl is None:
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise OptionError(f"another process is at work on {path}: wait for it, or name another output") from None
    except OSError:  # a file system without locks
        return
    if not os.fstat(file.fileno()).st_nlink:
        raise OptionError(f"another process has just ended its work on {path}: start again")
