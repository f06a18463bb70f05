"""What language models take is told before and after, and nothing is asked for twice."""

from __future__ import annotations

import json
import re
from importlib.util import find_spec
from pathlib import Path

import pytest
from chunkcore.cli import main
from chunkcore.cli.options import default_cache

pytestmark = [
    pytest.mark.skipif(find_spec("openai") is None, reason="the package openai is not installed"),
    pytest.mark.usefixtures("fake"),
]

TEXT = "\n\n".join(f"Paragraph number {number} tells of the fox." for number in range(30))


@pytest.fixture
def docs(tmp_path) -> Path:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "fox.txt").write_text(TEXT)
    return tmp_path / "docs"


@pytest.fixture
def questions(tmp_path) -> Path:
    path = tmp_path / "questions.jsonl"
    path.write_text('{"question": "What tells paragraph 7?", "evidence": ["Paragraph number 7 tells of the fox."]}')
    return path


def spec(server, fault: str = "ok") -> str:
    return f"lumber:window=60,size=60,llm=openai:{fault}@{server.url}"


def calls(line: str) -> int:
    return int(re.findall(r": ([\d,]+) calls?, ", line)[0])


def test_a_dry_run_tells_calls_tokens_and_cost_and_asks_nothing(server, docs, capsys):
    arguments = ["chunk", str(docs), "-s", spec(server), "--dry-run", "--input-price", "2", "--output-price", "8"]
    assert main(arguments) == 0
    told, assumed = capsys.readouterr().out.splitlines()
    numbers = re.fullmatch(r"lumber:.*: ([\d,]+) calls, ([\d,]+) tokens in, ([\d,]+) tokens out, cost ([\d.]+)", told)
    _, read, written, cost = (float(number.replace(",", "")) for number in numbers.groups())
    assert cost == pytest.approx((2 * read + 8 * written) / 1e6, abs=1e-4)
    assert "Nothing was asked" in assumed
    assert server.log == []
    assert not default_cache().exists()


def test_chunks_are_written_what_they_took_is_told_and_a_second_run_asks_nothing(server, docs, capsys):
    assert main(["chunk", str(docs), "-s", spec(server), "--input-price", "2", "--output-price", "8"]) == 0
    first = capsys.readouterr()
    asked = len(server.log)
    assert calls(first.err) == asked > 0
    assert f"{100 * asked:,} tokens in, {10 * asked:,} tokens out" in first.err
    assert main(["chunk", str(docs), "-s", spec(server)]) == 0
    second = capsys.readouterr()
    assert second.out == first.out
    assert len(server.log) == asked
    assert f"{asked} answers kept from before" in second.err
    lines = [json.loads(line) for line in first.out.splitlines()]
    assert all(TEXT[start:end] == line["text"] for line in lines for start, end in line["spans"])


def test_a_strategy_over_another_keeps_the_answers_of_both(server, docs, capsys):
    over = f"contextual:llm=openai:ok@{server.url},chunker={json.dumps(spec(server))}"
    assert main(["chunk", str(docs), "-s", over]) == 0
    asked = len(server.log)
    capsys.readouterr()
    assert main(["chunk", str(docs), "-s", over]) == 0
    assert len(server.log) == asked
    assert all("context" in json.loads(line) for line in capsys.readouterr().out.splitlines())


def test_a_comparison_foresees_and_tells_the_same(server, docs, questions, tmp_path, capsys):
    given = ["--docs", str(docs), "--questions", str(questions), "--output", str(tmp_path / "out")]
    arguments = ["compare", "-r", "dense", *given]
    arguments += ["-s", spec(server), "-s", "recursive:size=20", "--resamples", "100"]
    assert main([*arguments, "--dry-run"]) == 0
    foreseen, nothing, _ = capsys.readouterr().out.splitlines()
    assert calls(foreseen) > 0
    assert nothing == "recursive:size=20: 0 calls, 0 tokens in, 0 tokens out"
    assert server.log == []
    assert not (tmp_path / "out").exists()
    assert main(arguments) == 0
    assert f"openai:ok@{server.url}: {len(server.log)} calls, " in capsys.readouterr().out
    asked = len(server.log)
    assert main(arguments) == 0
    assert len(server.log) == asked


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--input-price", "2"], "--input-price and --output-price go together"),
        (["--input-price", "-1", "--output-price", "1"], "of a million tokens (input) is at least 0, got -1.0"),
        (["-s", "lumber"], "llm names the model to ask"),
        (["-s", "lumber:llm=openai:m@http://127.0.0.1:1/v1#tries=1"], "cannot be reached"),
    ],
)
def test_what_cannot_be_is_one_sentence(docs, capsys, arguments, message):
    assert main(["chunk", str(docs), *arguments]) == 2
    told = capsys.readouterr().err
    assert message in told
    assert told.count("\n") == 1
