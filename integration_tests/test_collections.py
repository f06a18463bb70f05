"""Real collections: their counts, and the same questions again from the layouts that they were distributed in."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from chunkcore.evaluation.benchmarks import load_benchmark
from chunkcore.evaluation.benchmarks.benchmark import Benchmark
from chunkcore.evaluation.segmentation import load_labelled, load_segmented
from tests.conftest import shared
from tests.layouts import jsonl, write


def rows(name: str, kind: str) -> list[dict[str, Any]]:
    file = shared(f"data/{name}/{kind}.jsonl")
    return [json.loads(line) for line in file.read_text("utf-8").split("\n") if line.strip()]


def spans(benchmark: Benchmark) -> dict[str, set[tuple[str, int, int]]]:
    return {
        query.id: {(each.document_id, each.span.start, each.span.end) for each in query.evidence}
        for query in benchmark.queries
    }


@pytest.mark.parametrize(
    ("name", "texts", "sections"), [("wiki300", 116, 745), ("qmsum", 44, 188), ("fairytaleqa", 57, 816)]
)
def test_texts_whose_sections_are_known(name: str, texts: int, sections: int) -> None:
    documents = load_segmented(shared(f"data/{name}"))
    assert (len(documents), sum(len(each.metadata["boundaries"]) for each in documents)) == (texts, sections)
    assert len(load_labelled(shared(f"data/{name}/documents.jsonl"))) == texts


@pytest.mark.parametrize(
    ("name", "layout", "articles", "questions", "places"),
    [("cuad", "cuad", 64, 611, 1070), ("covid_qa", "squad", 46, 597, 597)],
)
def test_the_layout_of_squad(
    tmp_path: Path, name: str, layout: str, articles: int, questions: int, places: int
) -> None:
    asked = defaultdict(list)
    for row in rows(name, "questions"):
        answers = [
            {"text": text, "answer_start": start}
            for text, (start, _) in zip(row["evidence"], row["spans"], strict=True)
        ]
        asked[row["document_id"]].append({"id": row["id"], "question": row["question"], "answers": answers})
    data = [
        {"title": row["id"], "paragraphs": [{"context": row["text"], "qas": asked[row["id"]]}]}
        for row in rows(name, "documents")
    ]
    write(tmp_path / "data.json", json.dumps({"version": "1", "data": data}))
    loaded = load_benchmark(tmp_path, layout=layout)
    assert (len(loaded.documents), len(loaded.queries), loaded.problems) == (articles, questions, ())
    assert spans(loaded) == spans(load_benchmark(shared(f"data/{name}")))
    assert sum(len(query.evidence) for query in loaded.queries) == places


def test_the_layout_of_beir(tmp_path: Path) -> None:
    """Stories as passages, questions as queries: the evidence is the whole story."""
    documents, questions = rows("fairytaleqa", "documents"), rows("fairytaleqa", "questions")
    jsonl(tmp_path / "corpus.jsonl", *({"_id": row["id"], "title": "", "text": row["text"]} for row in documents))
    jsonl(tmp_path / "queries.jsonl", *({"_id": row["id"], "text": row["question"]} for row in questions))
    judged = [f"{row['id']}\t{row['document_id']}\t1" for row in questions]
    write(tmp_path / "qrels" / "test.tsv", "\n".join(["query-id\tcorpus-id\tscore", *judged]) + "\n")
    loaded = load_benchmark(tmp_path)
    assert (len(loaded.documents), len(loaded.queries), loaded.problems) == (57, 2273, ())
    sizes = {row["id"]: len(row["text"]) for row in documents}
    assert spans(loaded) == {row["id"]: {(row["document_id"], 0, sizes[row["document_id"]])} for row in questions}
