"""Lines of result files."""

from __future__ import annotations

import os
from pathlib import Path


def keep_result(*values: object) -> None:
    """Add a line of CSV to the file that the environment variable ``RESULTS`` names; without it, do nothing."""
    if name := os.environ.get("RESULTS"):
        with Path(name).open("a", encoding="utf-8") as file:
            file.write(",".join(map(str, values)) + "\n")
