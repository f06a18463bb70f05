"""`StoppedError`: an interruption after which a command can say how to go on."""

from __future__ import annotations

__all__ = ["StoppedError"]


class StoppedError(Exception):
    """The user stopped the command; the message says what is kept. The exit code is 130."""
