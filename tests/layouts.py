"""Small files of public collections' real layouts, written for the tests."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any


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


WRITERS: dict[str, Callable[[Path], Path]] = {
    "chroma": chroma,
    "chunkcore": own,
    "beir": beir,
    "squad": squad,
    "legalbench_rag": legalbench_rag,
}
