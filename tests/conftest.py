"""Where the shared collections are, when they are there."""

from __future__ import annotations

import gc
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import getproxies

import chunkcore.models
import pytest
from hypothesis import HealthCheck, settings

from tests.fake_llm_server import FakeServer, running
from tests.fakes import FakeEmbedder

if getproxies():  # which lead out, and not to the tests' own servers
    for name in ("no_proxy", "NO_PROXY"):
        os.environ[name] = ",".join(filter(None, (os.environ.get(name), "127.0.0.1", "localhost")))

# A process that a test starts imports from here, and never from the folder in which it runs.
os.environ["PYTHONSAFEPATH"] = "1"
_path = (str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH"))
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, _path))

# What is printed is compared: as in no terminal, and on no service that typer writes colours on.
for name in ("COLUMNS", "LINES", "FORCE_COLOR", "NO_COLOR", "CLICOLOR_FORCE", "PY_COLORS", "GITHUB_ACTIONS"):
    os.environ.pop(name, None)

SHARED = Path(__file__).resolve().parents[1].parent / "shared"

# The same examples in every run; `make fuzz` is where new ones are drawn.
untimed = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("suite", max_examples=25, derandomize=True, **untimed)
settings.load_profile("suite")


# Modules with tests of many seconds. They begin first: a process that has nothing left then takes short ones.
LONG = (
    "test_answers_real test_chroma_parity test_framework_pages test_late_real test_llm_local "
    "test_notebooks test_real_model test_report_browser test_stopping test_tune_real"
)


def pytest_collection() -> None:
    """What is imported stays: the collector need not search it, now or at each of its rounds later."""
    gc.disable()


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long modules first. A simulation of minutes has more time than another test."""
    items.sort(key=lambda item: item.path.stem not in LONG.split())
    for item in items:
        if item.get_closest_marker("slow") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(1800))


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeEmbedder:
    """A model without weights, in place of any that a command is asked for, and a cache of the test's own."""
    embedder = FakeEmbedder()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def named(spec: object) -> object:
        return embedder if isinstance(spec, str) else spec

    monkeypatch.setattr(chunkcore.models, "get_embedder", named)
    monkeypatch.setattr("chunkcore.models.loading.get_embedder", named)
    return embedder


@pytest.fixture
def deep_json(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python's JSON gives up on what has the word DEEP, as it does on lists that nest without end."""
    decode = json.JSONDecoder.raw_decode

    def raw_decode(decoder: json.JSONDecoder, text: str, idx: int = 0) -> Any:
        if "DEEP" in text:
            raise RecursionError
        return decode(decoder, text, idx)

    monkeypatch.setattr(json.JSONDecoder, "raw_decode", raw_decode)


@pytest.fixture
def server() -> Iterator[FakeServer]:
    """A language model's endpoint that nobody has asked anything yet."""
    with running() as found:
        yield found


def shared(path: str) -> Path:
    """A file or folder of the shared collections; the test is skipped where they are absent."""
    found = SHARED / path
    if not found.exists():
        pytest.skip(f"the shared collection {path} is not on this machine")
    return found
