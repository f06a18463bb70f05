"""Being stopped: Ctrl-C and SIGTERM end a command with what it has; a second one ends it at once."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

from chunkcore.cli.stopping import StoppedError

__all__ = ["StopSignals", "going_on", "told_when_stopped"]

_WAITING = b"\nchunkcore: stopping; what is under way is waited for and kept. Stop it again to end at once\n"


class StopSignals:
    """While it is entered, the first signal is a `KeyboardInterrupt`, whichever it is; a second one ends the process.

    Calls to a model that are under way are paid for, so they are waited for, which can take as long as a time-out.
    Whoever does not want to wait stops the process again, which is as safe as a kill.

    Attributes:
        code: the exit code of a process that was stopped: 128 and the signal's number.
    """

    def __init__(self) -> None:
        self.code = 128 + signal.SIGINT
        self._stopped = False
        self._before: dict[signal.Signals, object] = {}

    def __enter__(self) -> StopSignals:
        # What somebody else has set stays: shells ignore SIGINT for what runs in the background.
        usual = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
        if threading.current_thread() is threading.main_thread():
            self._before = {each: usual[each] for each in usual if signal.getsignal(each) == usual[each]}
        for each in self._before:
            signal.signal(each, self._stop)
        return self

    def __exit__(self, *_: object) -> None:
        for each, handler in self._before.items():
            signal.signal(each, handler)  # type: ignore[arg-type]

    def _stop(self, number: int, _: FrameType | None) -> None:
        self.code = 128 + number
        if self._stopped:
            os._exit(self.code)
        self._stopped = True
        with suppress(OSError):  # nobody may be there to read it
            os.write(2, _WAITING)
        raise KeyboardInterrupt


def going_on(*kept: Path | None) -> str:
    """How to go on after a stop, given the files in which models' answers are kept."""
    files = " and ".join(str(each) for each in dict.fromkeys(kept) if each is not None)
    if not files:
        return "nothing was kept, and the same command begins anew"
    return f"what models answered is kept in {files}: the same command goes on with it"


@contextmanager
def told_when_stopped(sentence: str) -> Iterator[None]:
    """See that whoever stops the block is told this.

    Raises:
        StoppedError: in place of the `KeyboardInterrupt`.
    """
    try:
        yield
    except KeyboardInterrupt as error:
        raise StoppedError(f"stopped before the end; {sentence}") from error
