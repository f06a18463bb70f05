"""The console script ``chunkcore``. Ctrl-C ends it in one line from its first import on.

It stands outside of `chunkcore`, whose import is what takes the time.
"""

from __future__ import annotations

import sys


def main() -> int:
    """Run the command line and return its exit code."""
    try:
        from chunkcore.cli import main as run
    except KeyboardInterrupt:
        print("chunkcore: stopped before it began", file=sys.stderr)  # noqa: T201
        return 130
    return run()
