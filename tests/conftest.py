"""Where the shared collections are, when they are there."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings

SHARED = Path(__file__).resolve().parents[1].parent / "shared"

settings.register_profile("quick", max_examples=60, deadline=None)
settings.register_profile("long", max_examples=2000, deadline=None)
settings.load_profile("quick")


def shared(path: str) -> Path:
    """A file or folder of the shared collections; the test is skipped where they are absent."""
    found = SHARED / path
    if not found.exists():
        pytest.skip(f"the shared collection {path} is not on this machine")
    return found
