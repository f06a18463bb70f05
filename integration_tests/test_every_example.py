"""The programs of the pages run as they stand there, on a part of the collection that ships: it takes seconds."""

from __future__ import annotations

import doctest
import io
import runpy
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import chunkcore
import pytest
from chunkcore import Benchmark, get_chunker, load_dataset, run_experiment
from chunkcore.chunkers import chunkers
from chunkcore.models import loading
from tests.fakes import FakeEmbedder
from tests.pages import RUN, blocks

from integration_tests.golden import needs_model


def part(documents: int, characters: int) -> Benchmark:
    """The beginnings of some documents, and the questions about them."""
    whole = load_dataset("lochmere")
    kept = {each.id: replace(each, text=each.text[:characters], marks=()) for each in whole.documents[:documents]}
    asked = [
        query
        for query in whole.queries
        if all(each.document_id in kept and each.span.end <= characters for each in query.evidence)
    ]
    return Benchmark("lochmere", list(kept.values()), asked)


def marked(page: str) -> Any:
    return pytest.param(page, marks=[needs_model] if "model" in RUN[page] else [])


@pytest.mark.parametrize("page", [marked(page) for page in RUN])
def test_a_page_s_programs_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    benchmark = part(1, 2500) if "model" in RUN[page] else part(5, 15_000)
    monkeypatch.setattr(chunkcore, "load_dataset", lambda _: benchmark)
    embedders: dict[str, Any] = {}
    if "any model" in RUN[page]:  # no number of its is told
        monkeypatch.setattr(loading, "loaded_models", {})
        embedders = dict.fromkeys(loading.embedders, lambda _: FakeEmbedder())
    given: dict[str, Any] = {}
    if "reports" in RUN[page]:
        cut_by = [get_chunker(f"recursive:size={size}") for size in (50, 200)]
        given = {"benchmark": benchmark, "reports": list(run_experiment(benchmark, cut_by, retrievers=["bm25"]))}
    with patch.dict(chunkers.entries), patch.dict(loading.embedders.entries, embedders):
        _check_page(page, given)


def _check_page(page: str, given: dict[str, Any]) -> None:
    programs = [block.text for block in blocks(page) if block.language == "python"]
    told = [block.text for block in blocks(page) if block.language == "text"]
    dialogue = [program for program in programs if program.startswith(">>>")]
    if dialogue:
        assert dialogue == programs
        test = doctest.DocTestParser().get_doctest("".join(programs), given, page, page, 0)
        assert doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS).run(test).failed == 0
        return
    printed = run("".join(programs), given)
    assert not told or printed == told[0], "what the page says that it prints"


def run(program: str, given: dict[str, Any]) -> str:
    """What a program prints."""
    Path("program.py").write_text(program, encoding="utf-8")
    with redirect_stdout(io.StringIO()) as printed:
        runpy.run_path("program.py", init_globals=given)
    return printed.getvalue()
