"""Small files of public collections' real layouts, written for the tests."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode("utf-8"))
    return path


def jsonl(path: Path, *rows: Any) -> Path:
    return write(path, "".join(json.dumps(row) + "\n" for row in rows))


def chroma(root: Path) -> Path:
    write(root / "corpora" / "cats.md", "A cat purrs. A cat sleeps.")
    references = json.dumps([{"content": "A cat", "start_index": 13, "end_index": 18}]).replace('"', '""')
    write(root / "questions_df.csv", f'question,references,corpus_id\r\nWho sleeps?,"{references}",cats\r\n')
    return root


def own(root: Path) -> Path:
    jsonl(root / "documents.jsonl", {"id": "cat", "text": "A cat purrs."})
    jsonl(root / "questions.jsonl", {"question": "Who?", "evidence": ["A cat"]})
    return root


def beir(root: Path) -> Path:
    jsonl(
        root / "corpus.jsonl",
        {"_id": "MED-10", "title": "Statins", "text": "They lower it.", "metadata": {"url": "http://a"}},
        {"_id": "MED-14", "title": "", "text": "Tea is hot."},
        {"_id": "MED-20", "text": "", "title": ""},
    )
    jsonl(
        root / "queries.jsonl",
        {"_id": "PLAIN-2", "text": "What lowers it?", "metadata": {}},
        {"_id": "PLAIN-3", "text": "Not judged in this split?"},
        {"_id": "PLAIN-4", "text": "Empty?"},
        {"_id": "PLAIN-5", "text": "Unknown?"},
        {"_id": "PLAIN-6", "text": "Nothing relevant?"},
    )
    judged = ["PLAIN-2\tMED-10\t2", "PLAIN-2\tMED-14\t1", "PLAIN-2\tMED-20\t0", "PLAIN-4\tMED-20\t1"]
    judged += ["PLAIN-5\tMED-99\t1", "PLAIN-6\tMED-10\t0", "PLAIN-9\tMED-10\t1"]
    write(root / "qrels" / "test.tsv", "\n".join(["query-id\tcorpus-id\tscore", *judged]) + "\n")
    write(root / "qrels" / "dev.tsv", "query-id\tcorpus-id\tscore\nPLAIN-3\tMED-14\t1\n")
    return root


def squad(root: Path) -> Path:
    first, second = "Foxes nap. Dogs nap.", "Owls hunt."
    answer = {"text": "Foxes", "answer_start": 0}
    article = {
        "title": "Animals",
        "paragraphs": [
            {
                "context": first,
                "qas": [
                    {
                        "id": "a1",
                        "question": "Who naps?",
                        "answers": [answer, answer, {"text": "Dogs", "answer_start": 11}],
                    },
                    {
                        "id": "a2",
                        "question": "Who flies?",
                        "is_impossible": True,
                        "answers": [],
                        "plausible_answers": [answer],
                    },
                    {
                        "id": "a3",
                        "question": "Off by one?",
                        "is_impossible": False,
                        "answers": [{"text": "Dogs", "answer_start": 10}],
                    },
                ],
            },
            {
                "context": second,
                "qas": [{"id": "a4", "question": "Who hunts?", "answers": [{"text": "Owls", "answer_start": 0}]}],
            },
        ],
    }
    write(root / "dev-v2.0.json", json.dumps({"version": "v2.0", "data": [article]}))
    return root


def covid_qa(root: Path) -> Path:
    text = "SHA: 1\n\nMasks help."
    paragraph = {
        "context": text,
        "document_id": 630,
        "qas": [
            {
                "id": 262,
                "question": "What helps?",
                "answers": [{"text": "Masks", "answer_start": 8}],
                "is_impossible": False,
            }
        ],
    }
    write(root / "COVID-QA.json", json.dumps({"data": [{"paragraphs": [paragraph]}]}))
    return root


def legalbench_rag(root: Path) -> Path:
    write(root / "corpus" / "cuad" / "A_Lease.txt", "Line one.\r\nThe rent is 5.\r\n")
    write(root / "corpus" / "maud" / "B.txt", "Merger.")
    tests = [
        {
            "query": "Consider A; what is the rent?",
            "snippets": [{"file_path": "cuad/A_Lease.txt", "span": [10, 24], "answer": "The rent is 5."}],
            "tags": ["cuad"],
        },
        {
            "query": "Wrong offsets?",
            "snippets": [{"file_path": "cuad/A_Lease.txt", "span": [11, 25], "answer": "The rent is 5."}],
        },
        {"query": "Gone?", "snippets": [{"file_path": "cuad/C.txt", "span": [0, 2]}]},
    ]
    write(root / "benchmarks" / "cuad.json", json.dumps({"tests": tests}))
    write(
        root / "benchmarks" / "maud.json",
        json.dumps({"tests": [{"query": "What?", "snippets": [{"file_path": "maud/B.txt", "span": [0, 6]}]}]}),
    )
    return root


def ragbench(root: Path) -> Path:
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow (the extra parquet) is not installed")
    parquet = pytest.importorskip("pyarrow.parquet")
    (root / "covidqa").mkdir(parents=True)
    parquet.write_table(pyarrow.Table.from_pylist(RAGBENCH_ROWS), root / "covidqa" / "test.parquet")
    return root


RAGBENCH_ROWS: list[dict[str, Any]] = [
    {
        "id": "r1", "question": "What helps?", "response": "Masks.", "dataset_name": "covidqa_test",
        "documents": ["Masks help. Masks help. Tea is hot.", "Owls hunt."],
        "documents_sentences": [[["0a", "Masks help."], ["0b", "Masks help."], ["0c", " Tea is hot."]],
                                [["1a", "Owls hunt."]]],
        "all_relevant_sentence_keys": ["0b", "1a"],
    },
    {
        "id": "r2", "question": "Who hunts?", "response": "x", "dataset_name": "covidqa_test",
        "documents": ["Owls hunt."],
        "documents_sentences": [[["0a", "Owls hunt."]]],
        "all_relevant_sentence_keys": [],
    },
    {
        "id": "r3", "question": "Which?", "response": "x", "dataset_name": "covidqa_test",
        "documents": ["Owls hunt."],
        "documents_sentences": [[["0a", "Owls hunt."]]],
        "all_relevant_sentence_keys": ["general"],
    },
    {
        "id": "r4", "question": "Cut otherwise?", "response": "x", "dataset_name": "covidqa_test",
        "documents": ["Dr. Fox naps. [1] Dr. Owl hunts."],
        "documents_sentences": [[["0a", "Dr. Fox naps."], ["0b", "Dr. Owl hunts."]]],
        "all_relevant_sentence_keys": ["0b"],
    },
    {
        "id": "r5", "question": "Which of them?", "response": "x", "dataset_name": "covidqa_test",
        "documents": ["It helps. Not so: It helps."],
        "documents_sentences": [[["0a", "Not so:"], ["0b", "It helps."]]],
        "all_relevant_sentence_keys": ["0b"],
    },
]  # fmt: skip


WRITERS: dict[str, Callable[[Path], Path]] = {
    "chroma": chroma,
    "chunkcore": own,
    "beir": beir,
    "squad": squad,
    "legalbench_rag": legalbench_rag,
    "ragbench": ragbench,
}
