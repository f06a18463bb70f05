"""The tests of the frameworks that our drop-ins fail, each with its reason; docs/evidence/golden.md says more."""

from __future__ import annotations

import json
from pathlib import Path

__all__ = ["ADDED", "KNOWN", "NO_PLACE"]

# Both reasons are checked: by the test without the additions, and by what it failed with.
ADDED = "on purpose: the documents have an id, and metadata that say where they stand"
NO_PLACE = "on purpose: what the original wrote stands nowhere in the HTML"

_REASONS = {"added": ADDED, "no place": NO_PLACE}

KNOWN: dict[str, dict[str, str]] = {
    framework: {test: _REASONS[reason] for reason, tests in reasons.items() for test in tests}
    for framework, reasons in json.loads(Path(__file__).with_name("known.json").read_text(encoding="utf-8")).items()
}
