"""The programs of docs/guides/recipes.md run, each in a process of its own, and the page shows their lines."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from chunkcore import get_counter

from integration_tests.stores.conftest import postgres  # noqa: F401 - a fixture

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "integration_tests" / "examples"
PAGE = ROOT / "docs" / "guides" / "recipes.md"
ANSWER = "The buoy keeps up to 90 days of samples in its own memory"


def run(recipe: str, folder: Path, *arguments: str, **environment: str) -> list[str]:
    """The lines that a recipe prints."""
    done = subprocess.run(
        [sys.executable, EXAMPLES / f"{recipe}_recipe.py", *arguments],
        capture_output=True,
        cwd=folder,
        encoding="utf-8",
        env=os.environ | {"PYTHONIOENCODING": "utf-8"} | environment,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip().splitlines()


def test_an_agent_s_tool_answers_with_passages(tmp_path: Path) -> None:
    pytest.importorskip("langgraph", reason="langgraph is not installed")
    printed = "\n".join(run("langgraph", tmp_path))
    assert re.findall(r"^(human|ai|tool): ", printed, flags=re.MULTILINE) == ["human", "ai", "tool", "ai"]
    assert ANSWER in printed


@pytest.mark.parametrize("framework", ["langgraph", "haystack"])
def test_a_question_without_an_answer_is_asked_back(framework: str, tmp_path: Path) -> None:
    pytest.importorskip(framework, reason=f"{framework} is not installed")
    printed = run("enough", tmp_path, framework)
    assert ANSWER in "\n".join(printed)
    assert printed[-1].startswith("That is not in the documents. What do you mean by: ")


STORES = {"chroma": ["langchain_chroma"], "lancedb": ["lancedb", "langchain_community"]}
STORES |= {"pgvector": ["langchain_postgres"], "qdrant": ["langchain_qdrant"]}


@pytest.mark.parametrize(("store", "packages"), STORES.items())
def test_passages_stand_behind_a_store(store, packages, tmp_path, request):
    for package in packages:
        pytest.importorskip(package, reason=f"{package} is not installed")
    environment = {}
    if store == "pgvector":
        url = request.getfixturevalue("postgres")
        environment["POSTGRES"] = url.replace("postgresql://", "postgresql+psycopg://", 1)
    passages = run("stores", tmp_path, store, **environment)  # the program asserts that they are exact spans
    assert passages
    assert sum(map(get_counter("cl100k_base").count, passages)) < 1000 + 30 * len(passages)  # names and offsets, too


def test_only_a_changed_document_is_embedded_again(tmp_path: Path) -> None:
    pytest.importorskip("llama_index.core", reason="llama-index-core is not installed")
    first, unchanged, changed = (
        [int(number) for number in re.findall(r"\d+", line)] for line in run("upserts", tmp_path)
    )
    assert first[0] == first[1] > 100
    assert unchanged == [0, first[1]]
    assert 0 < changed[0] < first[0] / 5
    assert abs(changed[1] - first[1]) <= 1  # stale nodes are deleted


def test_a_pipeline_is_read_from_its_yaml_file(tmp_path: Path) -> None:
    pytest.importorskip("haystack", reason="haystack-ai is not installed")
    assert any(ANSWER in line for line in run("yaml", tmp_path))


def test_a_test_set_of_ragas_becomes_a_benchmark_and_answers_its_records(tmp_path: Path) -> None:
    counts, *lines = run("ragas", tmp_path)
    assert counts == "76 of 90 questions have their evidence"
    assert "occurs 2 times" in lines[0]
    record = json.loads("\n".join(line for line in lines if not line.startswith("left out")))
    assert sorted(record) == ["reference", "reference_contexts", "retrieved_contexts", "user_input"]
    assert 1 <= len(record["retrieved_contexts"]) <= 5


def test_scores_become_the_platforms_records(tmp_path: Path) -> None:
    pytest.importorskip("langchain_core", reason="langchain-core is not installed")
    (record, *_) = map(json.loads, run("tracing", tmp_path))
    assert record["span"]["openinference.span.kind"] == "RETRIEVER"
    assert json.loads(record["span"]["retrieval.documents.0.document.metadata"])["source"] == "faq.md"
    for langsmith, langfuse, phoenix in zip(record["langsmith"], record["langfuse"], record["phoenix"], strict=True):
        assert 0 <= langsmith["score"] == langfuse["value"] == phoenix["result"]["score"] <= 1
        assert langsmith["key"] == langfuse["name"] == phoenix["name"]


def test_the_page_shows_lines_of_the_programs() -> None:
    page = PAGE.read_text(encoding="utf-8")
    shown = r"`integration_tests/examples/(\w+\.py)`.*?^```python\n(.*?)^```"
    for name, block in re.findall(shown, page, flags=re.MULTILINE | re.DOTALL):
        program = "".join((EXAMPLES / name).read_text(encoding="utf-8").split())
        assert [line for line in block.splitlines() if "".join(line.split()) not in program] == []
    assert {path.name for path in EXAMPLES.glob("*_recipe.py")} <= set(re.findall(r"\w+_recipe\.py", page))
