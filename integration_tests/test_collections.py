"""Real collections: their counts, and the same questions again from the layouts that they were distributed in."""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from chunkcore.evaluation.benchmarks import load_benchmark, load_segmented
from chunkcore.evaluation.benchmarks.benchmark import Benchmark
from chunkcore.evaluation.segmentation import load_labelled
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


def test_the_layout_of_qmsum(tmp_path: Path) -> None:
    """Turns, questions and topics of 41 meetings (three have topics that overlap, whose turns are not told)."""
    asked = defaultdict(list)
    for row in rows("qmsum", "questions"):
        asked[row["document_id"]].append(row)
    kept = [row for row in rows("qmsum", "documents") if not row["overlapping"]]
    expected = {}
    for row in kept:
        text, turns = row["text"].removesuffix("\n"), row["turns"]
        ends = [*(start - 1 for start in turns[1:]), len(text)]
        said = [text[start:end].partition(": ") for start, end in zip(turns, ends, strict=True)]

        def turn(start: int, end: int, turns: list[int] = turns) -> list[str]:
            return [str(bisect_right(turns, start) - 1), str(bisect_left(turns, end) - 1)]

        begins = [*row["boundaries"], len(text) + 1]
        topics = [turn(start, end - 1) for start, end in pairwise(begins)]
        meeting = {
            "topic_list": [{"topic": "x", "relevant_text_span": [pair]} for pair in topics],
            "general_query_list": [{"query": "Summarize the whole meeting.", "answer": "x"}],
            "specific_query_list": [
                {
                    "query": each["question"],
                    "answer": each["answers"][0],
                    "relevant_text_span": [turn(*span) for span in each["spans"]],
                }
                for each in asked[row["id"]]
            ],
            "meeting_transcripts": [{"speaker": who, "content": content} for who, _, content in said],
        }
        write(tmp_path / f"{row['id']}.json", json.dumps(meeting))
        for number, each in enumerate(asked[row["id"]], start=1):
            places = {(row["id"], start, end) for start, end in each["spans"]}
            expected[f"{row['id']}-specific-{number}"] = places
    loaded = load_benchmark(tmp_path)
    assert (len(loaded.documents), len(loaded.queries), len(loaded.without_evidence)) == (41, len(expected), 41)
    assert spans(loaded) == expected
    assert {each.id: each.text for each in loaded.documents} == {
        row["id"]: row["text"].removesuffix("\n") for row in kept
    }
    found = {each.id: each.metadata["boundaries"] for each in load_segmented(tmp_path)}
    assert found == {row["id"]: row["boundaries"] for row in kept}


def test_the_layout_of_evidence_inference(tmp_path: Path) -> None:
    documents = rows("evidence_inference", "documents")
    questions = rows("evidence_inference", "questions")
    for row in documents:
        write(tmp_path / "txt_files" / f"{row['id']}.txt", row["text"])

    def table(name: str, *lines: list[object]) -> None:
        quoted = (",".join('"' + str(each).replace('"', '""') + '"' for each in line) for line in lines)
        write(tmp_path / name, "\r\n".join(quoted) + "\r\n")

    table(
        "prompts_merged.csv",
        ["PromptID", "PMCID", "Outcome", "Intervention", "Comparator"],
        *([row["id"], row["document_id"].removeprefix("PMC"), "a", "b", "c"] for row in questions),
    )
    columns = ["PromptID", "PMCID", "Valid Label", "Valid Reasoning", "Label", "Annotations"]
    table(
        "annotations_merged.csv",
        [*columns, "Evidence Start", "Evidence End"],
        *(
            [row["id"], row["document_id"].removeprefix("PMC"), 1, 1, "x", text, *span]
            for row in questions
            for text, span in zip(row["evidence"], row["spans"], strict=True)
        ),
    )
    loaded = load_benchmark(tmp_path)
    assert (len(loaded.documents), len(loaded.queries), loaded.problems) == (94, 260, ())
    assert spans(loaded) == spans(load_benchmark(shared("data/evidence_inference")))


def test_the_layout_of_wiki727k(tmp_path: Path) -> None:
    """116 articles as files of sentences; the same sentences begin sections."""
    for row in rows("wiki300", "documents"):
        starts, lines = set(row["boundaries"]), ["========,1,preface."]
        for start, end in row["sentences"]:
            lines += ["========,2,Section."] if start in starts else []
            lines.append(row["text"][start:end])
        write(tmp_path / "test" / row["id"], "\n".join(lines) + "\n")
    here = {text.id.removeprefix("test/"): text for text in load_labelled(tmp_path)}
    there = {text.id: text for text in load_labelled(shared("data/wiki300/documents.jsonl"))}
    assert set(here) == set(there)
    for name, text in there.items():
        assert here[name].starts.tolist() == text.starts.tolist()
        assert [each.strip() for each in text.sentences] == list(here[name].sentences)


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
