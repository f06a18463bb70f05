"""Property tests run here with the settings of tests/."""

from __future__ import annotations

import tests.conftest  # noqa: F401
