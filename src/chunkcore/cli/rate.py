"""How far a stream is, and how fast: a line that changes in a terminal, a line now and then in a log."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from chunkcore.scale import Tally

__all__ = ["Rate", "rate", "told"]

_PAUSE = 30.0  # seconds between two lines of a log
_SHORT = 30.0  # seconds; what takes less is not summed up in a log
_MB = 1_000_000


class Rate:
    """What `rate` yields: called with the tally after each step, and once more at the end."""

    def __init__(
        self, stream: TextIO, total: Callable[[], int | None], clock: Callable[[], float], shown: Any = None
    ) -> None:
        self._stream = stream
        self._shown = shown
        self._clock = clock
        self._began = self._written = clock()
        self._before: int | None = None  # bytes that an earlier run had read
        self._total: int | None = None
        # Counting a million files takes a while, in which chunks are already cut.
        threading.Thread(target=lambda: self._count(total), daemon=True).start()

    def start(self, tally: Tally) -> None:
        """Begin with what an earlier run has done."""
        self._before = tally.read

    def __call__(self, tally: Tally) -> None:
        now = self._clock()
        if self._shown is not None:
            if now - self._written >= 0.1:
                self._written = now
                self._shown.update(self._line(tally))
        elif now - self._written >= _PAUSE:
            self._written = now
            self._say(self._line(tally))

    def end(self, tally: Tally) -> None:
        """Sum up, where that is of interest."""
        took = self._clock() - self._began
        if self._shown is not None or took >= _SHORT:
            self._say(f"{told(tally)}, in {_clock(took)} ({self._speed(tally) / _MB:,.1f} MB/s)")

    def _count(self, total: Callable[[], int | None]) -> None:
        self._total = total()

    def _speed(self, tally: Tally) -> float:
        return (tally.read - (self._before or 0)) / max(1e-9, self._clock() - self._began)

    def _line(self, tally: Tally) -> str:
        speed = self._speed(tally)
        line = f"{told(tally)}, {speed / _MB:,.1f} MB/s"
        if self._total and speed and tally.read <= self._total:
            share, left = tally.read / self._total, (self._total - tally.read) / speed
            line += f", {share:.0%} of {self._total / _MB:,.0f} MB, about {_clock(left)} left"
        return line

    def _say(self, line: str) -> None:
        self._stream.write(f"{line}\n")
        self._stream.flush()


@contextmanager
def rate(
    stream: TextIO,
    total: Callable[[], int | None],
    *,
    quiet: bool = False,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[Rate | None]:
    """Show what is told while the block runs; nothing where that is wanted.

    Args:
        stream: where; standard error.
        total: how many bytes there are to read, or None where nobody can know; asked in a thread of its own.
        quiet: show nothing, and yield None.
        clock: in seconds.
    """
    if quiet:
        yield None
    elif stream.isatty():
        from rich.console import Console
        from rich.status import Status

        with Status("", console=Console(file=stream)) as status:
            yield Rate(stream, total, clock, status)
    else:
        yield Rate(stream, total, clock)


def told(tally: Tally) -> str:
    """What is done, in words."""
    parts = [
        _several(tally.documents, "document"),
        _several(tally.chunks, "chunk"),
        f"{tally.read / _MB:,.1f} MB read",
    ]
    if tally.skipped:
        parts.insert(1, f"{tally.skipped:,} skipped")
    return ", ".join(parts)


def _several(number: int, name: str) -> str:
    return f"{number:,} {name}{'' if number == 1 else 's'}"


def _clock(seconds: float) -> str:
    """Hours, minutes and seconds.

    >>> _clock(3725.4)
    '1:02:05'
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
