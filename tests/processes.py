"""Programs that tests start and stop: none outlives its test, and none is waited for without an end."""

from __future__ import annotations

import subprocess
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

__all__ = ["peak", "started", "wait_for"]


@contextmanager
def started(command: Sequence[str], **options: Any) -> Iterator[subprocess.Popen[Any]]:
    """A process, killed at the end of the block if it still runs."""
    with subprocess.Popen(command, **options) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()


def wait_for(
    condition: Callable[[], object], process: subprocess.Popen[Any] | None = None, seconds: float = 120
) -> None:
    """Return once the condition holds; fail where the process ends first or the time is over."""
    end = time.monotonic() + seconds
    while not condition():
        if process is not None and process.poll() is not None and not condition():
            raise AssertionError(f"the process ended with {process.returncode}: {process.communicate()}")
        assert time.monotonic() < end, f"waited {seconds} seconds in vain"
        time.sleep(0.005)


def peak(run: Callable[[], Any]) -> int:
    """The most bytes that were in memory at once."""
    tracemalloc.start()
    try:
        run()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
