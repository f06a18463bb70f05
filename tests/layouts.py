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


def qasper(root: Path) -> Path:
    def answer(**told: Any) -> dict[str, Any]:
        usual = {
            "unanswerable": False,
            "extractive_spans": [],
            "yes_no": None,
            "free_form_answer": "",
            "evidence": [],
            "highlighted_evidence": [],
        }
        return {"answer": {**usual, **told}, "annotation_id": "x", "worker_id": "y"}

    paper = {
        "title": "On Foxes",
        "abstract": "We watch foxes.",
        "full_text": [
            {"section_name": "Introduction", "paragraphs": ["Foxes nap. They nap a lot.", "Same words."]},
            {
                "section_name": "Method ::: Watching",
                "paragraphs": ["", "We sat. We watched.", "Same words."],
            },
            {"section_name": None, "paragraphs": ["The end."]},
        ],
        "figures_and_tables": [{"file": "1-Table1-1.png", "caption": "Table 1: Naps by day."}],
        "qas": [
            {
                "question": "What do foxes do?",
                "question_id": "q-nap",
                "answers": [
                    answer(
                        extractive_spans=["nap", "a lot"],
                        evidence=["Foxes nap. They nap a lot."],
                        highlighted_evidence=["They nap a lot."],
                    ),
                    answer(
                        free_form_answer="They nap.",
                        evidence=["We sat. We watched."],
                        highlighted_evidence=["We watched."],
                    ),
                ],
            },
            {
                "question": "How often?",
                "question_id": "q-table",
                "answers": [
                    answer(
                        yes_no=True,
                        evidence=["FLOAT SELECTED: Table 1: Naps by day."],
                        highlighted_evidence=["FLOAT SELECTED: Table 1: Naps by day."],
                    )
                ],
            },
            {
                "question": "Which words?",
                "question_id": "q-twice",
                "answers": [answer(yes_no=False, evidence=["Same words."], highlighted_evidence=["Same words."])],
            },
            {
                "question": "Gone?",
                "question_id": "q-gone",
                "answers": [
                    answer(free_form_answer="x", evidence=["Not in the paper."], highlighted_evidence=["Not in it."])
                ],
            },
            {
                "question": "Another table?",
                "question_id": "q-float",
                "answers": [
                    answer(
                        free_form_answer="x",
                        evidence=["FLOAT SELECTED: Table 9: Other."],
                        highlighted_evidence=["FLOAT SELECTED: Table 9: Other."],
                    )
                ],
            },
            {"question": "Why?", "question_id": "q-none", "answers": [answer(unanswerable=True)]},
        ],
    }
    write(root / "qasper-dev-v0.3.json", json.dumps({"1909.00694": paper}))
    return root


def quality(root: Path) -> Path:
    told = {
        "article_id": "52845",
        "batch_num": "23",
        "writer_id": "1",
        "source": "Gutenberg",
        "title": "The Girl",
        "author": "D. Smith",
        "topic": "Science fiction",
        "url": "http://a",
        "license": "free",
        "year": 1950,
    }
    question = {
        "question": "Who left?",
        "options": ["He", "She", "They", "None"],
        "writer_label": 2,
        "gold_label": 2,
        "validation": [],
        "speed_validation": [],
        "difficult": 1,
        "question_unique_id": "52845_75VB1ISR_1",
    }
    article = "<html>\nThe girl left.\n</html>"
    unanswered = {key: value for key, value in question.items() if key not in ("gold_label", "question_unique_id")}
    jsonl(
        root / "QuALITY.v1.0.1.dev",
        {**told, "set_unique_id": "52845_75VB1ISR", "article": article, "questions": [question]},
        {**told, "set_unique_id": "52845_ABC", "article": article, "questions": [unanswered]},
    )
    return root


def narrativeqa(root: Path) -> Path:
    header = "document_id,set,kind,story_url,story_file_size,wiki_url,wiki_title,story_word_count,story_start,story_end"
    write(
        root / "documents.csv",
        f"{header}\nab12,train,gutenberg,http://s,9,http://w,Foxes,3,The,end.\n"
        "cd34,test,movie,http://s,9,http://w,Owls,3,INT.,out.\n",
    )
    write(
        root / "qaps.csv",
        "document_id,set,question,answer1,answer2,question_tokenized,answer1_tokenized,"
        "answer2_tokenized\nab12,train,Who naps?,The fox,A fox,Who naps ?,The fox,A fox\n"
        "cd34,test,Who hunts?,The owl,,Who hunts ?,The owl,\n",
    )
    write(
        root / "third_party/wikipedia/summaries.csv",
        "document_id,set,summary,summary_tokenized\n"
        'ab12,train,"A fox, who naps.",A fox\ncd34,test,An owl hunts.,An owl\n',
    )
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


def evidence_inference(root: Path) -> Path:
    folder = root / "annotations"
    write(folder / "txt_files" / "PMC77.txt", "TITLE:\nTrial\nPain fell. It fell.\nIt fell.\n")
    write(
        folder / "prompts_merged.csv",
        "PromptID,PMCID,Outcome,Intervention,Comparator\n"
        '1,77,pain,"aspirin, daily",placebo\n2,77,pain,tea,water\n3,77,sleep,tea,water\n4,99,pain,tea,water\n',
    )
    header = (
        "UserID,PromptID,PMCID,Valid Label,Valid Reasoning,Label,Annotations,Label Code,In Abstract,"
        "Evidence Start,Evidence End"
    )
    rows = [
        "0,1,77,1,1,significantly decreased,Pain fell.,-1,1,13,23",
        "3,1,77,1,1,significantly decreased,It fell.,-1,1,33,41",
        "3,1,77,0,1,no significant difference,Trial,-1,1,7,12",
        "0,2,77,1,1,significantly decreased,Pain fell.,-1,1,14,24",
        "0,3,77,1,1,no significant difference,It fell.,-1,1,-1,-1",
        "0,4,99,1,1,no significant difference,x,-1,1,0,1",
    ]
    write(folder / "annotations_merged.csv", "\n".join([header, *rows]) + "\n")
    return root


def qmsum(root: Path) -> Path:
    turns = [("A", "Hello ."), ("B", "Budget ?"), ("A", "Five ."), ("B", "Bye .")]
    meeting = {
        "topic_list": [
            {"topic": "Hello", "relevant_text_span": [["0", "0"]]},
            {"topic": "Money", "relevant_text_span": [["1", "2"]]},
        ],
        "general_query_list": [{"query": "Summarize the whole meeting.", "answer": "Money."}],
        "specific_query_list": [
            {"query": "How much?", "answer": "Five.", "relevant_text_span": [["1", "2"]]},
            {"query": "Greetings?", "answer": "Two.", "relevant_text_span": [["0", "0"], ["3", "3"]]},
            {"query": "Later?", "answer": "No.", "relevant_text_span": [["3", "9"]]},
        ],
        "meeting_transcripts": [{"speaker": who, "content": said} for who, said in turns],
    }
    write(root / "ES1.json", json.dumps(meeting))
    return root


def ragbench(root: Path) -> Path:
    jsonl(root / "covidqa" / "test.jsonl", *RAGBENCH_ROWS)
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


def wiki727k(root: Path) -> Path:
    text = (
        "========,1,preface.\nFoxes are animals.\nThey nap.\n========,2,Habits.\n========,3,Sleep.\nFoxes sleep.\n"
        "***LIST***.\n========,2,Names.\nFox.\n========,2,See also.\n"
    )
    write(root / "test" / "00" / "0" / "12345", text)
    return root


def choi(root: Path) -> Path:
    write(root / "3-5" / "0.ref", "==========\nFirst one . \nFirst two . \n==========\nSecond one . \n==========\n")
    return root


WRITERS: dict[str, Callable[[Path], Path]] = {
    "chroma": chroma,
    "chunkcore": own,
    "beir": beir,
    "squad": squad,
    "covid_qa": covid_qa,
    "qasper": qasper,
    "quality": quality,
    "narrativeqa": narrativeqa,
    "legalbench_rag": legalbench_rag,
    "evidence_inference": evidence_inference,
    "qmsum": qmsum,
    "ragbench": ragbench,
    "wiki727k": wiki727k,
    "choi": choi,
}
