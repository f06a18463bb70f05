"""Strategies from a YAML file: what is read, on the command line too, and what is told of a file that is wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from chunkcore import Chunker, get_chunker
from chunkcore.chunkers import FixedToken, Recursive, Sentence, get_chunkers
from chunkcore.cli import main
from chunkcore.errors import DataError, OptionError
from chunkcore.report import read_reports
from chunkcore.specs import format_spec
from tests.fakes import FakeEmbedder
from tests.test_chunker_promises import every_chunker

EXAMPLE = r"""
# Two sizes, and sentences.
- recursive:size=50,counter=words
- {strategy: fixed_token, size: 60}
- &sentences
  strategy: sentence
  size: 70
  maximum: null
  splitter: "regex:\\. |: "
- <<: *sentences
  overlap_sentences: 1
- strategy: recursive
  separators: ["\n\n", ", ", ""]
  strip: false
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "strategies.yaml"


def test_entries_are_strings_and_mappings_in_order(file: Path) -> None:
    file.write_text(EXAMPLE)
    sentences = {"size": 70, "splitter": r"regex:\. |: "}
    assert get_chunkers(file) == [
        Recursive(size=50, counter="words"),
        FixedToken(size=60),
        Sentence(**sentences),
        Sentence(overlap_sentences=1, **sentences),
        Recursive(separators=("\n\n", ", ", ""), strip=False),
    ]


@pytest.mark.parametrize("text", ["recursive:size=9", "strategy: recursive\nsize: 9\n", "[recursive:size=9]"])
def test_a_file_of_one_entry_needs_no_list(file: Path, text: str) -> None:
    file.write_text(text)
    assert get_chunkers(str(file)) == [Recursive(size=9)]


def test_a_byte_order_mark_and_windows_line_ends_are_no_obstacle(file: Path) -> None:
    file.write_bytes("\ufeff- recursive:size=9\r\n- fixed_token\r\n".encode())
    assert get_chunkers(file) == [Recursive(size=9), FixedToken()]


def test_no_model_is_loaded(file: Path) -> None:
    file.write_text("{strategy: cluster_semantic, embedder: no/such-model}")
    assert get_chunkers(file)[0].to_dict()["embedder"] == "no/such-model"


@every_chunker
def test_what_a_chunker_says_of_itself_can_stand_in_a_file(tmp_path: Path, chunker: Chunker) -> None:
    file, said = tmp_path / "strategies.yaml", chunker.to_dict()
    if "llm" in said:  # the fake's name builds none
        said["llm"] = "openai:model@http://127.0.0.1:9/v1"
    file.write_text(yaml.safe_dump([said]))
    (again,) = get_chunkers(file)
    assert again.to_dict() == said


@given(st.lists(st.text(min_size=1), min_size=1), st.integers(1, 10**6), st.booleans())
def test_any_string_is_an_option_s_value(separators: list[str], size: int, strip: bool) -> None:
    options = {"separators": separators, "size": size, "strip": strip}
    assert (
        get_chunker(format_spec("recursive", options)).to_dict() | options
        == get_chunker(format_spec("recursive", options)).to_dict()
    )


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("- recursive\n- recursive:sise=3\n", 2, "recursive has no option 'sise'"),
        ("- recursive\n-\n  strategy: recursive\n  size: 0\n", 3, "size is at least 1"),
        ("- recursive\n- strategy: recursiv\n", 2, "unknown strategy 'recursiv'"),
        ("- recursive\n- size: 3\n", 2, "an entry says which strategy it is"),
        ("- strategy: recursive\n  size: '9'\n", 1, "size is a whole number; got '9'"),
        ("- strategy: recursive\n  size: 9\n  size: 10\n", 1, "size is given twice"),
        ("- strategy: recursive\n  size: {a: 1}\n", 1, "size is a string, a number.*, got dict"),
        ("- strategy: recursive\n  separators: [[a]]\n", 1, "separators is a string.* got list"),
        ("- strategy: recursive\n  size: 2024-01-01\n", 1, r"got datetime.date\(2024, 1, 1\)"),
        ("- strategy: recursive\n  size: 2024-99-99\n", 1, "correct it"),
        ("- strategy: recursive\n  [a]: 1\n", 1, "an option's name is a string"),
        ("- strategy: recursive\n  7: 1\n", 1, "recursive has no option '7'"),
        ("- strategy: 7\n", 1, "an entry says which strategy it is.*got 7"),
        ("- recursive\n- 7\n", 2, r"expected recursive:size=200 or \{strategy: recursive, size: 200\}, got 7"),
        ("- recursive\n- [recursive]\n", 2, "expected recursive:size=200 or .*, got list"),
        ("- recursive\n- strategy: [a\n", 3, "expected ',' or ']'"),
        ("- recursive\n\t- a\n", 2, "cannot start any token"),
        ("- recursive\n- *unknown\n", 2, "undefined alias"),
        ("- recursive\n- !!python/object/apply:os.getcwd []\n", 2, "could not determine a constructor"),
        ("- recursive\n---\n- recursive\n", 2, "another document"),
        ("- &a\n  strategy: recursive\n  separators: &b [x, *b]\n", 3, "recursive node"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(file: Path, text: str, line: int, message: str) -> None:
    file.write_text(text)
    with pytest.raises(OptionError, match=rf"strategies.yaml, line {line}: (.|\n)*{message}"):
        get_chunkers(file)


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        (b"# nothing\n", OptionError, "names no strategy"),
        (b"[]", OptionError, "names no strategy"),
        (b"", DataError, "is empty"),
        (b"- caf\xe9", DataError, "is not UTF-8"),
        (b"- a\x00b", OptionError, "special characters are not allowed"),
        (b"[" * 5000, OptionError, "nested too deeply"),
        (None, DataError, "cannot be read"),
    ],
)
def test_a_file_that_is_none_is_told(file: Path, data: bytes | None, error: type[Exception], message: str) -> None:
    if data is not None:
        file.write_bytes(data)
    with pytest.raises(error, match=f"strategies.yaml.*{message}"):
        get_chunkers(file)


def test_aliases_that_multiply_cost_nothing(file: Path) -> None:
    rows = ["- &a0 [x, x, x, x, x, x, x, x, x]"]
    rows += [f"- &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 30)]
    file.write_text("\n".join([*rows, "- {strategy: recursive, separators: *a29}"]))
    with pytest.raises(OptionError, match=r"line 6: aliases \(\*name\) make 100,000 values"):
        get_chunkers(file)


# ---- the command line


def test_chunk_reads_its_strategy_from_a_file(file: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    text = tmp_path / "text.txt"
    text.write_text("One two three four five six.")
    file.write_text("{strategy: fixed_token, size: 2, counter: words}")
    assert main(["chunk", str(text), "--config", str(file)]) == 0
    rows = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    assert [row["token_count"] for row in rows] == [2, 2, 2]


@pytest.mark.parametrize(
    ("text", "more", "message"),
    [
        (
            "[recursive, fixed_token]",
            [],
            "strategies.yaml names 2 strategies, and one is wanted: give it with --strategy",
        ),
        ("recursive", ["-s", "recursive"], "--strategy recursive and --config .* were both given: give one"),
        ("recursive:", ["--config", "gone.yaml"], "gone.yaml cannot be read"),
        ("- recursive:size=0", [], "strategies.yaml, line 1: "),
    ],
)
def test_chunk_takes_one_strategy(
    file: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], text: str, more: list[str], message: str
) -> None:
    file.write_text(text)
    (tmp_path / "text.txt").write_text("One.")
    assert main(["chunk", str(tmp_path / "text.txt"), "--config", str(file), *more]) == 2
    err = capfd.readouterr().err
    assert err.count("\n") == 1
    with pytest.raises(AssertionError, match=message):
        raise AssertionError(err)


def test_compare_takes_strategies_from_a_file_and_the_command_line(
    file: Path, tmp_path: Path, fake: FakeEmbedder
) -> None:
    docs, questions = tmp_path / "a.txt", tmp_path / "questions.jsonl"
    docs.write_text("The fox naps. The dog runs. The cat purrs. " * 9 + "The owl hoots.")
    questions.write_text(json.dumps({"question": "Who hoots?", "evidence": ["The owl hoots."]}))
    file.write_text("- recursive:size=20\n- strategy: cluster_semantic\n  size: 20\n  piece_size: 5\n")
    arguments = [
        "compare",
        "-r",
        "dense",
        "--docs",
        str(docs),
        "--questions",
        str(questions),
        "--no-cache",
        "--resamples",
        "100",
    ]
    arguments += ["-o", str(tmp_path / "report"), "--no-behind", "--config", str(file), "-s", "fixed_token:size=20"]
    assert main(arguments) == 0
    reports = read_reports(tmp_path / "report" / "report.json")
    assert [report.name for report in reports] == [
        "fixed_token:size=20",
        "recursive:size=20",
        "cluster_semantic:size=20,piece_size=5",
    ]
