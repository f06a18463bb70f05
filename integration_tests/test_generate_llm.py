"""Questions by a real model."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest
from chunkcore import Document, get_llm, load_dataset
from chunkcore.datasets import dataset_path
from chunkcore.models.llm import CachedLLM, LLMCache
from chunkcore.questions import Generated, GenerationOptions, generate_benchmark

from integration_tests.small_llm import MODEL, is_installed, served

pytestmark = pytest.mark.skipif(find_spec("openai") is None, reason="the package openai is not installed")


@pytest.mark.slow
@pytest.mark.skipif(not is_installed(), reason="the small language model is not installed")
def test_a_real_model_writes_questions_or_rejections_and_pays_for_none_twice(tmp_path: Path) -> None:
    """A base model copies little without a slip: every question that it writes is right or told to be wrong."""
    manual = (dataset_path("lochmere") / "documents" / "manual.md").read_text(encoding="utf-8")
    reference = load_dataset("lochmere").documents[0]
    documents = [Document("manual.md", manual[:2_500]), Document(reference.id, reference.text[:2_500])]
    options = GenerationOptions(questions=1, sample_size=300, retries=0, patience=1, concurrency=1)
    with served() as url:
        llm = get_llm(f"openai:{MODEL}@{url}#max_tokens=60&timeout=300&tries=1&concurrency=1")
        llm = CachedLLM(llm, LLMCache(tmp_path / "answers.sqlite"))
        made = generate_benchmark(documents, llm, options)
        calls = llm.usage.calls
        again = generate_benchmark(documents, llm, options)
        assert calls == made.usage.calls
        assert again.usage.kept_answers == len(made.rows) + sum(bool(each.question) for each in made.rejections)
    assert (again.rows, again.rejections) == (made.rows, made.rejections)
    assert calls == len(made.rows) + len(made.rejections) > 0
    assert_that_all_is_right(made, {document.id: document.text for document in documents})


def assert_that_all_is_right(made: Generated, texts: dict[str, str]) -> None:
    for row in made.rows:
        for each in row["evidence"]:
            assert texts[row["document_id"]][each["start"] : each["end"]] == each["text"]
    assert all(each.reason for each in made.rejections)
