"""`ResumableOutput`: an output file with a journal, so that a killed run resumes."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from io import FileIO
from pathlib import Path
from typing import Any, NamedTuple

from chunkcore.errors import DataError, OptionError
from chunkcore.files import AppendLog
from chunkcore.scale.stream import Step, Tally

PAUSE = 5.0  # seconds between two lines of the journal: a kill loses at most this much work
_FORMAT = "chunkcore chunk 1"
_ADVICE = "begin anew with --fresh, or name another output"


class _Line(NamedTuple):
    """A line of the journal: the tally, and the bytes of output and of errors written so far."""

    tally: Tally
    output: int
    errors: int


class ResumableOutput:
    """Writes lines to a file so that a killed run resumes.

    Lines go to ``NAME.partial``. Every few seconds, after a sync to disk, ``NAME.journal`` records its length. `finish`
    moves the file to its name. The next run after a kill truncates the file to the journal's last whole line. Skipped
    documents are listed in ``NAME.errors.jsonl``, if there are any.

    Args:
        path: the final file.
        identity: inputs and options as plain values; a run with another identity does not resume.
        fresh: start anew and ignore an earlier run.

    Raises:
        OptionError: the earlier run had other options, or another process is writing.
        DataError: the earlier run's files are damaged.
        OSError: the file cannot be written.
    """

    def __init__(self, path: Path, identity: Mapping[str, Any], *, fresh: bool = False) -> None:
        self.path = Path(os.path.realpath(path))  # a link stays; its target is written
        self.partial, self.journal, self.errors = beside(self.path)
        self.tallies: list[Tally] = []  # progress of an earlier run, at several times
        self._identity = dict(identity)
        self._done: _Line | None = None
        self._kept_at = time.monotonic()
        self._files: dict[Path, FileIO] = {}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._log = AppendLog(
            self.journal,
            {"format": _FORMAT, **self._identity},
            what="journal of chunkcore chunk",
            advice=_ADVICE,
            check=self._check,
            fresh=fresh,
        )
        try:
            self._begin(fresh=fresh)
        except BaseException:
            self.close()
            raise
        self._has_kept = bool(self.tallies)

    def _begin(self, *, fresh: bool) -> None:
        if not self.partial.exists():
            self._log.clear()  # the output was moved already; a kill left the journal
        lines = [self._line(number, entry) for number, entry in self._log.entries]
        size = os.fstat(self._open(self.partial).fileno()).st_size
        if size and not fresh and self._log.is_new:
            self._log.close()
            self.journal.unlink()
            raise OptionError(f"{self.partial} is there, and no journal tells whose it is: {_ADVICE}")
        errors = self.errors.stat().st_size if self.errors.exists() else 0
        kept = [line for line in lines if line.output <= size and line.errors <= errors]
        if lines and not kept:
            shorter = self.errors if lines[0].output <= size else self.partial
            raise DataError(f"{shorter} is shorter than {self.journal.name} says it was: {_ADVICE}")
        self.tallies = [line.tally for line in kept]
        if kept:
            self._done = kept[-1]
        else:
            self._log.clear()
        _cut_off(self._files[self.partial], self._done.output if self._done else 0)
        if self.errors.exists():
            _cut_off(self._open(self.errors), self._done.errors if self._done else 0)

    def _line(self, number: int, entry: dict[str, Any]) -> _Line:
        tally = Tally.from_dict(entry.get("tally"))
        sizes = entry.get("output"), entry.get("errors")
        if tally is None or any(type(size) is not int for size in sizes):
            raise DataError(f"{self.journal}, line {number}: damaged: {_ADVICE}")
        return _Line(tally, *sizes)  # type: ignore[arg-type]

    def _check(self, head: dict[str, Any]) -> None:
        changed = [
            f"{name} was {_brief(head.get(name))}, and now it is {_brief(value)}"
            for name, value in self._identity.items()
            if head.get(name) != value
        ]
        if changed:
            raise OptionError(
                f"{self.partial} was left by an earlier run in which {'; '.join(changed)}: go on as before, {_ADVICE}"
            )

    def write(self, step: Step, tally: Tally) -> None:
        """Append a step's lines and failures. `tally` counts everything up to and including this step."""
        self._add(self.partial, b"".join(step.lines))
        if step.failures:
            self._open(self.errors)
            lines = [json.dumps(each.to_dict()).encode("ascii") + b"\n" for each in step.failures]
            self._add(self.errors, b"".join(lines))
        if self._done is None:
            self._kept_at = time.monotonic()  # loading, before the first lines, is no work that could be lost
        self._done = _Line(tally.copy(), self._size(self.partial), self._size(self.errors))
        if time.monotonic() - self._kept_at >= PAUSE:
            self.keep()

    def _open(self, path: Path) -> FileIO:
        if path not in self._files:
            flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0)
            self._files[path] = FileIO(os.open(path, flags, 0o644), "r+")
        return self._files[path]

    def _add(self, path: Path, data: bytes) -> None:
        left = memoryview(data)
        try:
            while left:
                left = left[self._files[path].write(left) or 0 :]
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(path)) from error

    def keep(self) -> None:
        """Sync to disk, then add a line to the journal."""
        if self._done is None:
            return
        for file in self._files.values():
            os.fsync(file.fileno())
        self._log.append({**self._done._asdict(), "tally": asdict(self._done.tally)})
        self._has_kept = True
        self._kept_at = time.monotonic()

    def finish(self) -> None:
        """Move the file to its name, atomically."""
        for file in self._files.values():
            os.fsync(file.fileno())
            file.close()
        self.partial.replace(self.path)
        if self.errors.exists() and not self.errors.stat().st_size:
            self.errors.unlink()
        self._end_journal()

    def leave(self) -> bool:
        """Close early: keep the files if they hold work, and return whether they do."""
        if self._has_kept:
            with suppress(OSError, ValueError, DataError):  # a full disk, say: then what was kept before stays
                self.keep()
            self.close()
            return True
        for path, file in self._files.items():
            file.close()
            path.unlink(missing_ok=True)
        self._end_journal()
        return False

    def _end_journal(self) -> None:
        if os.name == "nt":  # Windows removes no open file
            self._log.close()
        self.journal.unlink(missing_ok=True)  # while it is locked, so that another process opens a new one
        self._log.close()

    def close(self) -> None:
        for file in self._files.values():
            file.close()
        self._log.close()

    def _size(self, path: Path) -> int:
        return self._files[path].tell() if path in self._files else 0


def beside(path: Path) -> list[Path]:
    """The files written beside an output: the partial file, its journal, the errors.

    >>> [each.name for each in beside(Path("out.jsonl"))]
    ['out.jsonl.partial', 'out.jsonl.journal', 'out.jsonl.errors.jsonl']
    """
    return [path.with_name(f"{path.name}.{ending}") for ending in ("partial", "journal", "errors.jsonl")]


def _cut_off(file: FileIO, size: int) -> None:
    file.truncate(size)
    file.seek(size)


def _brief(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 100 else f"{text[:100]}…"
