"""The collection that ships: every span is verified here, and it is what its description says."""

from __future__ import annotations

import json
import shutil

import pytest
from chunkcore import datasets as module
from chunkcore.datasets import DATASETS, dataset_path, load_dataset
from chunkcore.errors import DataError, OptionError


@pytest.fixture(scope="module")
def lines() -> list[dict]:
    text = (dataset_path("lochmere") / "questions.jsonl").read_text("utf-8")
    return [json.loads(line) for line in text.splitlines()]


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    files = (dataset_path("lochmere") / "documents").iterdir()
    return {file.name: file.read_bytes().decode("utf-8") for file in files}


def test_the_loaded_spans_are_those_of_the_file(lines):
    loaded = {query.id: query for query in load_dataset("lochmere").queries}
    assert len(loaded) == len(lines) == 90
    for line in lines:
        spans = [(each["document"], each["start"], each["end"]) for each in line["evidence"]]
        assert [(e.document_id, e.span.start, e.span.end) for e in loaded[line["id"]].evidence] == spans
        assert loaded[line["id"]].metadata["answer"] == line["answer"]


def test_it_is_as_large_and_as_varied_as_promised(lines, texts):
    assert 8 <= len(texts) <= 12
    assert sum(len(text.encode()) for text in texts.values()) >= 120_000
    assert len(lines) >= 80
    assert sum(len(line["evidence"]) > 1 for line in lines) >= 5
    twice = [line for line in lines if any(texts[e["document"]].count(e["text"]) > 1 for e in line["evidence"])]
    assert len(twice) >= 3, "some evidence sentences occur twice"
    asked = {each["document"] for line in lines for each in line["evidence"]}
    assert asked == set(texts)


def test_every_listed_collection_loads_by_its_name():
    for name, description in DATASETS.items():
        loaded = load_dataset(name)
        assert loaded.name == name
        assert f"{len(loaded.documents)} invented documents" in description
        assert f"{len(loaded.queries)} questions" in description


@pytest.mark.parametrize("call", [dataset_path, load_dataset])
def test_an_unknown_name_is_answered_with_the_known_ones(call):
    with pytest.raises(OptionError, match="no collection 'loch' ships, only lochmere"):
        call("loch")


def test_a_damaged_collection_names_the_first_question_that_no_longer_fits(tmp_path, monkeypatch):
    shutil.copytree(dataset_path("lochmere"), tmp_path / "lochmere")
    faq = tmp_path / "lochmere" / "documents" / "faq.md"
    faq.write_text("!" + faq.read_text("utf-8"), "utf-8")
    monkeypatch.setattr(module, "__file__", str(tmp_path / "__init__.py"))
    with pytest.raises(DataError, match=r"not as it was shipped: \d+ of its questions .*'faq-01' first.*install"):
        load_dataset("lochmere")
