"""Property tests run here with the settings of tests/."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import tests.conftest  # noqa: F401

from integration_tests.browser import CHROMIUM, Browser, browser


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """One browser for all tests of a process."""
    if not CHROMIUM.exists():
        pytest.skip("Debian's chromium is not installed")
    with browser() as opened:
        yield opened


@pytest.fixture
def tab(chromium: Browser) -> Browser:
    """The browser with a blank page of a laptop's size."""
    chromium.media("")
    chromium.go_to("about:blank")
    chromium.size(1280, 900)
    chromium.errors.clear()
    chromium.requests.clear()
    return chromium
