"""The frameworks' tests that our drop-ins fail because their documents have ids and places besides."""

from __future__ import annotations

import json
from pathlib import Path

__all__ = ["KNOWN"]

KNOWN: dict[str, list[str]] = json.loads(Path(__file__).with_name("known.json").read_text(encoding="utf-8"))
