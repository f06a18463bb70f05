"""A pytest plugin: the splitters that LangChain's tests configure are answered by `exact`.

PEERS_MODE tells by what: "original" (themselves), "drop_in", or "pared", which is the drop-in without the metadata
and ids that it adds; so a test that passes there and not with "drop_in" fails by these additions alone.
PEERS_RECORD names the file to which each test's outcome goes, as JSON.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any

import langchain_text_splitters as peer
import pytest
from chunkadapters.exact import exact
from langchain_core.documents import Document

MODE = os.environ.get("PEERS_MODE", "original")
METHODS = ("split_text", "create_documents", "split_documents", "transform_documents")
ADDED = ("end_index", "source_id", "spans", "derived", "located", "white_space")

outcomes: dict[str, dict[str, Any]] = {}
answered_by: set[str] = set()
_inside = False


@contextmanager
def inside() -> Iterator[None]:
    """What a drop-in asks of the original meanwhile is the original's to answer."""
    global _inside
    _inside = True
    try:
        yield
    finally:
        _inside = False


def answered(original: Callable[..., Any], name: str) -> Callable[..., Any]:
    @wraps(original)
    def method(self: Any, *arguments: Any, **named: Any) -> Any:
        if _inside:
            return original(self, *arguments, **named)
        with inside():
            drop_in = exact(self)
            answered_by.add(type(drop_in.chunker).__name__.lstrip("_"))
            if name == "split_text" and not isinstance(self, peer.TextSplitter):  # it gives documents
                found = drop_in.create_documents([*arguments, *named.values()])
            else:
                found = getattr(drop_in, name)(*arguments, **named)
            if MODE == "pared":
                starts = getattr(self, "_add_start_index", False)
                return [each if isinstance(each, str) else pared(each, keeps_start=starts) for each in found]
            return found

    return method


def pared(document: Document, *, keeps_start: bool) -> Document:
    """The document with the metadata that the original would have written, by name."""
    added = ADDED if keeps_start else (*ADDED, "start_index")
    kept = {key: value for key, value in document.metadata.items() if key not in added}
    return Document(page_content=document.page_content, metadata=kept)


def substitute() -> None:
    """In every splitter of the package, but the one of JSON data, which has no text to cut."""
    waiting = [each for each in vars(peer).values() if isinstance(each, type) and hasattr(each, "split_text")]
    for cls in {base for each in waiting for base in each.__mro__}:
        if cls.__module__.startswith(f"{peer.__name__}.") and not hasattr(cls, "split_json"):
            for name in METHODS:
                if name in vars(cls):
                    setattr(cls, name, answered(vars(cls)[name], name))


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "requires: packages that a test needs")
    config.addinivalue_line("markers", "compile: LangChain's own")
    if MODE != "original":
        substitute()


def pytest_runtest_setup() -> None:
    answered_by.clear()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == "call" or report.outcome != "passed":
        said = {"answered_by": sorted(answered_by), "said": _first_line(report)}
        outcomes[report.nodeid] = {"outcome": report.outcome, **said}


def _first_line(report: pytest.TestReport) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    return str(crash.message).partition("\n")[0][:200] if crash else ""


def pytest_sessionfinish() -> None:
    Path(os.environ["PEERS_RECORD"]).write_text(json.dumps(outcomes), encoding="utf-8")
