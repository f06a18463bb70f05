"""What the pages of the frameworks show runs as it stands there, and the names that they tell are there."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = {"langchain": "langchain_text_splitters", "llamaindex": "llama_index", "haystack": "haystack"}


def page_of(framework: str) -> str:
    if find_spec(PACKAGES[framework]) is None:
        pytest.skip(f"{PACKAGES[framework]} is not installed")
    return (ROOT / "docs" / "guides" / f"{framework}.md").read_text(encoding="utf-8")


def run(program: str, folder: Path) -> None:
    environment = os.environ | {"HAYSTACK_TELEMETRY_ENABLED": "False"}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, cwd=folder, env=environment, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("framework", PACKAGES)
def test_a_page_s_program_runs(framework: str, tmp_path: Path) -> None:
    program = "\n".join(re.findall(r"^```python\n(.*?)^```", page_of(framework), flags=re.MULTILINE | re.DOTALL))
    run(program, tmp_path)


def test_the_tutorial_s_program_runs(tmp_path: Path) -> None:
    for package in PACKAGES.values():
        pytest.importorskip(package)
    page = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
    run("\n".join(re.findall(r"^```python\n(.*?)^```", page, flags=re.MULTILINE | re.DOTALL)), tmp_path)


def test_the_page_of_exact_runs_and_the_originals_have_these_faults_still(tmp_path: Path) -> None:
    for package in PACKAGES.values():
        pytest.importorskip(package)
    page = (ROOT / "docs" / "guides" / "exact.md").read_text(encoding="utf-8")
    program = "\n".join(re.findall(r"^```python\n(.*?)^```", page, flags=re.MULTILINE | re.DOTALL))
    # nltk's sentences are where LlamaIndex has them.
    begin = "from llama_index.core.utils import globals_helper\nassert globals_helper.punkt_tokenizer\n"
    run(begin + program, tmp_path)


@pytest.mark.parametrize("framework", PACKAGES)
def test_a_page_tells_every_public_name(framework: str) -> None:
    page = page_of(framework)
    module = importlib.import_module(f"chunkadapters.{framework}")
    common = {"TruncationWarning", "aevaluate_retriever", "arun_retriever", "evaluate_retriever", "run_retriever"}
    untold = [name for name in module.__all__ if name not in page and name not in common | {"chunk_id_func"}]
    assert untold == []
    assert all(getattr(module, name).__doc__ for name in module.__all__)
