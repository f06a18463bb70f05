"""Progress on standard error: bars in a terminal, a line now and then in a log."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from chunkcore.concurrency import Progress as Report

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

__all__ = ["Report", "reporting"]

_PAUSE = 5.0  # seconds between two lines of a log about the same step


@contextmanager
def reporting(stream: TextIO) -> Iterator[Report]:
    """Show what is reported while the block runs."""
    if not stream.isatty():
        yield _Log(stream)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    name = TextColumn("{task.description:<10}", markup=False)
    with Progress(
        name, BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), console=Console(file=stream), transient=False
    ) as progress:
        yield _Bars(progress)


class _Bars:
    """One bar a step."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._tasks: dict[str, TaskID] = {}

    def __call__(self, step: str, done: int, total: int) -> None:
        if step not in self._tasks:
            self._tasks[step] = self._progress.add_task(_harmless(step), total=total)
        self._progress.update(self._tasks[step], completed=done, total=total)


class _Log:
    """A line when a step begins, when it ends, and every few seconds between."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._written: dict[str, float] = {}

    def __call__(self, step: str, done: int, total: int) -> None:
        now = time.monotonic()
        last = self._written.get(step)
        if last is None or done >= total or now - last >= _PAUSE:
            self._written[step] = now
            self._stream.write(f"{_harmless(step)}: {done:,} of {total:,}\n")
            self._stream.flush()


def _harmless(step: str) -> str:
    from chunkcore.escaping import terminal_text

    return terminal_text(step)
