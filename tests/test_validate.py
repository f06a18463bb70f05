"""What is wrong with hand-written questions: each kind found where it is, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import chunkcore.models
import pytest
from chunkcore import Document, MissingExtraError, load_benchmark, load_documents
from chunkcore.cli import main
from chunkcore.cli.options import Data
from chunkcore.datasets import dataset_path
from chunkcore.questions import Finding, validate_benchmark
from chunkcore.questions.validate import KINDS, fix_questions
from hypothesis import given
from hypothesis import strategies as st

from tests.test_generate import Fixed

# Fourteen words, one of them twice.
STORY = Document("story.txt", "The fox of Arbon naps. The dog of Bregenz runs, and then the dog eats.")
GOOD = {"id": "good", "question": "Who sleeps?", "evidence": ["The fox of Arbon naps."]}


def found(*rows: dict, documents=(STORY,), embedder=None) -> list[tuple[str, str, str]]:
    """Kind, place and message of what is wrong, beside the good question."""
    listed = validate_benchmark(list(documents), [GOOD, *rows], size=12, counter="words", embedder=embedder)
    return [(each.kind, each.place, each.message) for each in listed]


def row(*evidence, question: str = "What does it do?", **others) -> dict:
    return {"question": question, "evidence": list(evidence), **others}


def test_a_good_question_has_no_finding():
    assert found() == []
    assert found(row("The dog of Bregenz runs", "and then the")) == []


@pytest.mark.parametrize(
    ("bad", "kind", "message"),
    [
        (row("The cat naps."), "not-found", "the excerpt 'The cat naps.' is not found in 'story.txt'"),
        (row("dog"), "ambiguous", "the excerpt 'dog' occurs 2 times ('story.txt' at 27, 'story.txt' at 61)"),
        (row(), "malformed", "it has no evidence"),
        (row("The fox", id="good"), "repeated-id", "the id was given before, at question 1"),
        ({"question": "Who?", "evidence": 7}, "malformed", "evidence is an excerpt or a list, got int"),
        (row("and then the", question="who SLEEPS"), "duplicate", "the same words as 'good' at question 1"),
        (row("Arbon"), "short", "evidence of 1 token: 'Arbon'"),
        (row(STORY.text), "over-size", "evidence of 15 tokens, over the 12 of a chunk"),
        (
            row("The fox of Arbon naps.", question="The dog of Bregenz runs and then the dog?"),
            "leakage",
            "the question stands in 'story.txt' at 23-64, word for word",
        ),
        (
            row("The dog of Bregenz runs, and", question="Is it so: the dog of BREGENZ  runs and?"),
            "leakage",
            "its evidence stands in the question: 'The dog of Bregenz runs, and'",
        ),
        (row("and then the", question="Is it of Bregenz?", answer="of Bregenz"), "leakage", "its answer stands in the"),
        (row("and then the", question="Is it Bregenz?", answers=["no", "Bregenz!?"]), None, ""),
        (row("and then the", question="Of Bregenzer?", answers=["of Bregenz"]), None, ""),
        (row({"document": "story.txt", "start": 0, "end": 4}, {"start": 4, "end": 22}), "short", "'The '"),
    ],
)
def test_each_kind_is_found_at_its_place_and_alone(bad, kind, message):
    listed = found(bad)
    if kind is None:
        assert listed == []
        return
    ((seen, place, told),) = listed
    assert (seen, place) == (kind, "question 2")
    assert message in told


def test_fix_writes_the_place_of_evidence_that_stands_in_other_words(tmp_path, capsys):
    docs, questions = tmp_path / "docs", tmp_path / "q.jsonl"
    docs.mkdir()
    (docs / "story.txt").write_text(STORY.text)
    near, lost = STORY.text[23:64].replace("runs", "rums"), "Nothing of the kind stands anywhere in here."
    weak = "The dog of Bregenz walks by then the dog x"  # 78 % alike
    rows = [{"id": "q", "question": "Which?", "evidence": [near, lost, weak]}]
    questions.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    main(["questions", "check", str(docs), "--questions", str(questions), "-e", "none", "--fix"])
    assert f"1 excerpt placed in {questions}" in capsys.readouterr().err
    (written,) = map(json.loads, questions.read_text().splitlines())
    place = {"document": "story.txt", "start": 23, "end": 64, "text": STORY.text[23:64]}
    assert written["evidence"] == [place, lost, weak]


LAKE = "The red boat sailed over the lake - early. Rain fell on the old town. Nobody came."
PAGE = "<h1>Lake</h1><p>Tea is <b>hot</b> in the morning.</p>"


@pytest.mark.parametrize(
    ("evidence", "fixed"),
    [
        ("The red boat, sailed over the lake: early", (0, 41)),
        ({"document": "a.txt", "start": 43, "end": 48, "text": "Rain fell on the old town."}, (43, 69)),
        ({"document": "a.txt", "start": 43, "text": "Rain fell on the old town."}, (43, 69)),
        ({"document": "a.html", "start": 16, "end": 49, "text": "Tea is hot in the morning."}, None),
        ("Rain fell on the old town. Zebras vanish beneath purple hills beyond seventeen rivers and valleys.", None),
        ({"document": "a.html", "start": 3, "end": 9, "text": "Rain fell on the old town."}, None),
    ],
)
def test_fix_changes_what_a_benchmark_refuses_and_shortens_nothing(tmp_path, evidence, fixed):
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "a.txt").write_text(LAKE)
    (docs / "a.html").write_text(PAGE)
    documents = load_documents(docs)
    questions = tmp_path / "q.jsonl"
    questions.write_text(json.dumps({"id": "q", "question": "Which?", "evidence": [evidence]}))
    fixes = fix_questions(documents, questions)
    (written,) = json.loads(questions.read_text())["evidence"]
    if fixed is None:
        assert (fixes, written) == ([], evidence)
    else:
        start, end = fixed
        assert written == {"document": "a.txt", "start": start, "end": end, "text": LAKE[start:end]}
        load_benchmark(docs, questions)


MARKED = {"document": "a.html", "start": 16, "end": 49, "text": "Tea is hot in the morning."}
FILES = {
    "a.jsonl": json.dumps({"question": "When?", "evidence": [MARKED]}),
    "b.jsonl": json.dumps({"query": "When?", "contexts": ["Tea is hot in the morning."], "file": "a.html"}),
    "c.jsonl": json.dumps(
        {"question": "When?", "document_id": "a.html", "spans": [[16, 49]], "evidence": MARKED["text"]}
    ),
    "d.csv": 'question,contexts\nWhen?,"[""Tea is hot in the morning.""]"\n',
    "e.tsv": "question\tevidence\nWhen?\tTea is hot in the morning.\n",
}


@pytest.mark.parametrize("name", FILES)
def test_each_file_of_questions_that_a_benchmark_reads_is_checked(name, tmp_path, capfd):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.html").write_text(PAGE)
    (tmp_path / name).write_text(FILES[name])
    given = [str(tmp_path / "docs"), "--questions", str(tmp_path / name)]
    assert len(load_benchmark(given[0], given[2]).queries) == 1
    assert Data(questions=Path(name)).more_questions == f"chunkcore questions label docs/ --output {name[0]}.jsonl"
    assert main(["check", *given, "--no-cache"]) == main(["questions", "check", *given, "--embedder", "none"]) == 0
    assert capfd.readouterr().out == "1 excerpt: 1 there\nnothing is wrong\n"
    (tmp_path / "docs" / "a.html").rename(tmp_path / "docs" / "new.html")
    (tmp_path / "docs" / "copy.html").write_text(PAGE)
    assert main(["check", *given, "--no-cache"]) == 0
    assert f": 1 {'moved' if 'document' in FILES[name] else 'there'}\n" in capfd.readouterr().out


def test_questions_in_nearly_the_same_words_are_found_once_and_only_with_an_embedder():
    angles = {"Who sleeps?": 0, "Who is it that sleeps?": 10, "Who naps?": 25, "Why?": 90}

    asked = ("Who is it that sleeps?", "who sleeps", "Who naps?", "Why?")
    rows = [row("and then the", question=each) for each in asked]
    same = ("duplicate", "question 3", "the same words as 'good' at question 1")
    assert found(*rows) == [same]
    near = found(*rows, embedder=Fixed(angles))
    told = "nearly the same as {} (cosine {}): {}"
    assert near == [
        same,
        ("duplicate", "question 2", told.format("'good' at question 1", "0.98", "'Who sleeps?'")),
        ("duplicate", "question 4", told.format("'q2' at question 2", "0.97", "'Who is it that sleeps?'")),
    ]


@given(text=st.text(min_size=1), question=st.text(), evidence=st.lists(st.text(), max_size=3))
def test_whatever_the_texts_are_every_question_is_good_or_has_a_finding(text, question, evidence):
    listed = validate_benchmark([Document("d", text)], [{"question": question, "evidence": evidence}])
    assert all(isinstance(each, Finding) and each.kind in KINDS for each in listed)
    if not (question.strip() and evidence and all(text.count(each) == 1 and each.strip() for each in evidence)):
        assert any(each.query_id for each in listed)


@pytest.fixture(autouse=True)
def _fake(fake):
    pass


@pytest.fixture
def docs(tmp_path) -> Path:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "story.txt").write_text(STORY.text)
    return tmp_path / "docs"


@pytest.fixture
def questions(tmp_path) -> Path:
    path = tmp_path / "questions.jsonl"
    rows = [GOOD, row("The cat \x1b[31m."), {}, row("dog"), row("dog", question="Who is it?")]
    path.write_text("\n\n".join(json.dumps(each) for each in rows))
    return path


def places(findings: list[dict]) -> list[tuple]:
    return [(each["kind"], int(each["place"].rpartition(" ")[2]), each["query_id"]) for each in findings]


def command(docs: Path, questions: Path, *more: str) -> list[str]:
    given = ["--docs", str(docs), "--questions", str(questions), "--size", "9"]
    return ["questions", "check", *given, *more]


def test_the_command_counts_kinds_and_names_file_and_line(docs, questions, capsys):
    assert main(command(docs, questions)) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("1 malformed: lines that are no JSON or no question")
    assert lines[1].startswith("1 not-found: ")
    assert lines[2].startswith("2 ambiguous: ")
    assert lines[3].startswith(f"{questions}, line 5, 'q3': malformed: the question is a text that is not blank")
    assert lines[4].startswith(f"{questions}, line 3, 'q2': not-found: the excerpt 'The cat \\x1b[31m.' is not found")
    assert lines[5].startswith(f"{questions}, line 7, 'q4': ambiguous: the excerpt 'dog' occurs 2 times")
    assert len(lines) == 7


def test_findings_can_be_ignored_and_read_by_a_program(docs, questions, capsys):
    ignored = [option for kind in ("malformed", "not-found") for option in ("--ignore", kind)]
    assert main(command(docs, questions, *ignored, "--json")) == 1
    findings = json.loads(capsys.readouterr().out)["findings"]
    assert places(findings) == [("ambiguous", 7, "q4"), ("ambiguous", 9, "q5")]
    assert main(command(docs, questions, *ignored, "--ignore", "ambiguous")) == 0
    assert capsys.readouterr().out == "nothing is wrong\n"
    assert main(command(docs, questions, *ignored, "--ignore", "ambiguous", "--json")) == 0
    assert json.loads(capsys.readouterr().out) == {"findings": []}


def test_the_collection_that_ships_is_clean(capsys):
    assert main(["questions", "check", "--docs", str(dataset_path("lochmere")), "--embedder", "none"]) == 0
    assert capsys.readouterr().out == "nothing is wrong\n"


def test_without_a_model_the_rest_is_looked_for_and_that_is_told(docs, questions, capsys, monkeypatch):
    def missing(name):
        raise MissingExtraError.of("openvino", "models", "embed text")

    monkeypatch.setattr(chunkcore.models, "get_embedder", missing)
    assert main(command(docs, questions)) == 1
    told = capsys.readouterr()
    assert "questions in nearly the same words are not looked for: openvino is needed" in told.err
    assert len(told.out.splitlines()) == 7


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--ignore", "odd"], "--ignore is one of malformed, repeated-id, not-found"),
        (["--questions", "none.jsonl"], "none.jsonl is no file"),
        (["--docs", "none"], "none does not exist"),
    ],
)
def test_what_cannot_be_is_one_sentence(docs, questions, capsys, more, message):
    assert main(command(docs, questions, *more)) == 2
    told = capsys.readouterr().err
    assert message in told
    assert told.count("\n") == 1


def test_lines_that_are_no_json_are_findings_and_the_lines_after_them_are_read(docs, tmp_path, capsys):
    path = tmp_path / "hurt.jsonl"
    path.write_text("\n".join([json.dumps(GOOD), '{"question": ', "[1]", "", json.dumps(row("dog", question="Who?"))]))
    assert main(command(docs, path, "--json")) == 1
    findings = json.loads(capsys.readouterr().out)["findings"]
    assert places(findings) == [("malformed", 2, "q2"), ("malformed", 3, "q3"), ("ambiguous", 5, "q4")]
    assert findings[0]["message"].startswith("not JSON (Expecting value, at character ")
    assert findings[1]["message"] == "expected one JSON object a line, {...}, got list '[1]'"
    assert main(command(docs, path)) == 1
    assert f"{path}, line 2, 'q2': malformed: not JSON" in capsys.readouterr().out
