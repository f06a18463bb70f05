"""What commands print: no text of somebody else's steers the terminal, and no cell begins a formula."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import pytest
from chunkcore.cli import main
from chunkcore.cli.options import reporting
from chunkcore.plain import csv_cell
from chunkcore.report.records import markdown_report, question_csv

from tests.fakes import FakeEmbedder
from tests.report_data import study

# Colours, a title, a link, a cursor's place, the same by C1 controls, an override, a return that overwrites, a bell.
STEER = "a\x1b[31m\x1b]0;b\x07\x1b]8;;https:127\x1b\\c\x1b]8;;\x07\x1b[2J\x9b31m\x9d0;d\x9c\u202ee\u2066f\rg\x08\x7f"
CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f]")


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / f"docs {STEER}"
    folder.mkdir()
    text = "\n\n".join(f"The fox naps for the time {n} under the lid {STEER}.\n\nThe dog runs." for n in range(9))
    (folder / f"fox {STEER}.md").write_text(text, "utf-8")
    (folder / f"picture {STEER}.png").write_bytes(b"\x89PNG\x00\xff")
    return folder


@pytest.fixture
def questions(docs: Path, tmp_path: Path) -> Path:
    asked = {f"q{n}": [f"for the time {n} under the lid {STEER}"] for n in range(3)}
    asked |= {"lost": [f"nowhere {STEER} at all"], "none": []}
    rows = [{"id": f"{n} {STEER}", "question": f"Who {STEER} {n}?", "evidence": asked[n]} for n in asked]
    path = tmp_path / f"questions {STEER}.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), "utf-8")
    return path


@pytest.fixture(autouse=True)
def _fake(fake: FakeEmbedder) -> None:
    """No command needs weights."""


def spec(option: str) -> str:
    return f"recursive:size=50,separators=[{json.dumps(STEER)}],{option}"


OUT = ["-o", "{out}/report"]
COMMANDS = {
    "chunk": ["chunk", "{docs}", "-o", "{out}/chunks.jsonl"],
    "search": ["search", "{docs}", "fox", "--no-cache"],
    "no such option": ["chunk", "{docs}", "--chunker", f"recursive:{STEER}=1"],
    "a pattern": ["chunk", "{docs}", "--chunker", f'recursive:regex=true,separators=["({STEER}"]'.replace("\\", "")],
    "no such command": [STEER],
    "a number": ["compare", "--seed", STEER],
    "compare": ["compare", "-r", "dense", "{given}", "-s", spec("overlap=0"), "-s", spec("overlap=9"), *OUT],
    "save runs": ["compare", "{given}", "-s", spec("overlap=0"), "--save-runs", "{out}/runs", *OUT],
    "grids": ["tune", "{given}", "-s", f"recursive:size={{20,50}},separators=[{json.dumps(STEER)}]", "-o", "{out}/s"],
    "validate": ["questions", "check", "{given}", "--embedder", "none"],
    "score": ["score", "{given}", "{docs}/none.jsonl", "-o", "{out}/scored"],
    "a model": ["compare", "-r", "dense", "{given}", "--embedder", STEER, "-o", "{out}/report"],
    "no model": ["questions", "generate", "--docs", "{docs}", "--llm", f"openai:{STEER}@http://{STEER}"],
}

DONE = ("chunk", "search", "compare", "save runs", "grids")
CODES = {**dict.fromkeys(DONE, 0), "validate": 1}


@pytest.mark.parametrize("name", list(COMMANDS))
@pytest.mark.filterwarnings("always")
def test_no_command_prints_what_steers(name, docs, questions, tmp_path, capfd):
    arguments: list[str] = []
    for each in COMMANDS[name]:
        if each == "{given}":
            arguments += ["--docs", str(docs), "--questions", str(questions)]
        else:
            arguments.append(
                each.replace("{docs}", str(docs))
                .replace("{questions}", str(questions))
                .replace("{out}", str(tmp_path / "out"))
            )
    if name in ("compare", "save runs", "grids"):
        arguments += ["--no-cache", "--resamples", "100"]
    code = main(arguments)
    out, err = capfd.readouterr()
    assert code == CODES.get(name, 2), err
    assert "Traceback" not in err
    assert [line for line in (out + err).split("\n") if CONTROLS.search(line)] == []
    assert out + err


def test_a_search_as_json_steers_no_terminal(docs: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["search", str(docs), "fox", "--no-cache", "--json"]) == 0
    lines = capfd.readouterr().out.split("\n")
    assert json.loads(lines[0])["document_id"] == f"fox {STEER}.md"
    assert not any(re.search("[\x00-\x1f\x7f-\x9f]", line) for line in lines)


def test_progress_steers_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    progress = reporting()
    progress(f"[bold]{STEER}[/nothing]", 1, 2)
    progress("embed", 0, 9)
    progress("embed", 3, 9)
    log = capsys.readouterr().err
    assert not CONTROLS.search(log)
    assert "[bold]a␛[31m" in log
    assert re.search(": 1 of 2\nembed: 0 of 9 texts.*\nembed: 3 of 9, about 0 s left", log)


FORMULAS = (
    *("=1+1", "+1", "-1", "@A1", "\t=1", "\r=1", "\n=1", " \u3000=1", "\u2009+1", "\u200e=1", "\u2060@a"),
    *("\uff1d1", "  =1", "\ufeff=1"),
)


@pytest.mark.parametrize("text", FORMULAS)
def test_no_cell_begins_a_formula_whatever_stands_before_it(text: str) -> None:
    assert csv_cell(text).startswith("'")


def test_no_cell_begins_a_formula_where_semicolons_or_tabs_part_cells() -> None:
    bad = "a;=1\t=1"
    made = study(names=(f"{bad} 1", f"{bad} 2"), texts=(bad,), collections=(bad, "b"))
    text = question_csv(made)
    assert "a;'=1" in text
    for separator in ",;\t":
        for row in csv.reader(io.StringIO(text, newline=""), delimiter=separator):
            assert not any(re.match(r"\s*[=+@]|-[^0-9]", cell.lstrip('"')) for cell in row), row


def test_a_markdown_table_keeps_its_cells_and_its_reader_runs_nothing() -> None:
    bad = "a|b\n| c <img src=x onerror=run()> [d](javascript:run()) ![e](http://127.0.0.1) `f` \x1b[31m"
    text = markdown_report(study(names=(f"{bad} 1", f"{bad} 2"), texts=(bad,), collections=(bad, "b")))
    assert "<img" not in text
    assert "\x1b" not in text
    assert not re.search(r"(?<!\\)\]\(", text)
    tables = [line for line in text.split("\n") if line.startswith("|")]
    widths = [len(re.findall(r"(?<!\\)\|", line)) for line in tables]
    assert all(width == widths[number - 1] for number, width in enumerate(widths) if "---" in tables[number])
