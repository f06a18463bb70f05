"""Files as strangers write them: broken ones end in one sentence with file and line, large ones are streamed."""

from __future__ import annotations

import cProfile
import json
import random
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from chunkcore import ChunkcoreError, DataError, load_benchmark, load_documents
from chunkcore.files import csv_rows, json_lines, read_text, text_lines
from hypothesis import strategies as st

from tests.layouts import WRITERS, jsonl, own, write
from tests.processes import peak

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-3, 40)
    | st.floats()
    | st.sampled_from(["", " ", "Foxes", "\ud800", "\x00", "9" * 30, "../x", "FLOAT SELECTED: x"])
    | st.text(max_size=8)
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
)


def told(root: Path) -> str:
    """What is said of a collection, where something is: never a traceback, and one line."""
    try:
        load_benchmark(root)
    except ChunkcoreError as error:
        said = str(error)
    else:
        said = ""
    assert "\n" not in said
    return said


def changed(value: Any, draw: random.Random, other: Any) -> Any:
    """The value with one of its parts, at any depth, replaced or taken away."""
    if isinstance(value, dict) and value and draw.random() < 0.9:
        key = draw.choice(list(value))
        if draw.random() < 0.15:
            return {each: value[each] for each in value if each != key}
        return {**value, key: changed(value[key], draw, other)}
    if isinstance(value, list) and value and draw.random() < 0.9:
        place = draw.randrange(len(value))
        return [*value[:place], changed(value[place], draw, other), *value[place + 1 :]]
    return other


def files_of(name: str) -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        root = WRITERS[name](Path(folder))
        return sorted(file.relative_to(root).as_posix() for file in root.rglob("*") if file.is_file())


FILES = [(name, file) for name in WRITERS for file in files_of(name)]


@pytest.mark.parametrize(("name", "file"), FILES)
def test_a_file_in_another_encoding_is_named_with_its_line(tmp_path: Path, name: str, file: str) -> None:
    root = WRITERS[name](tmp_path)
    content = (root / file).read_bytes()
    first, feed, rest = content.partition(b"\n")
    (root / file).write_bytes(first + b"\xe9" + feed + rest)
    said = told(root)
    assert file.rpartition("/")[2] in said
    assert " is not UTF-8 text (byte " in said
    assert f"(byte {len(first)} is 0xe9) on line 1" in said


@pytest.mark.parametrize(
    ("row", "message"), [(",cats,dogs", "4 values, but the header names 3"), (',"cats"!', "not CSV ('")]
)
def test_a_wrong_row_of_a_table_is_told_with_its_place(tmp_path: Path, row: str, message: str) -> None:
    file = WRITERS["chroma"](tmp_path) / "questions_df.csv"
    write(file, file.read_text("utf-8").replace(",cats", row, 1))
    assert f"questions_df.csv, line 2: {message}" in told(tmp_path)


SIZE = 8 * 1024**2
MB = 1024**2


def filled(path: Path, line: Callable[[int], str], *, head: str = "") -> Path:
    """A file of lines until it has SIZE bytes."""
    with path.open("w", encoding="utf-8", newline="") as file:
        file.write(head)
        number, size = 0, 0
        while size < SIZE:
            size += file.write(line(number))
            number += 1
    return path


def drained(rows: Iterator[Any]) -> int:
    return sum(1 for _ in rows)


def test_lines_and_rows_are_streamed(tmp_path: Path) -> None:
    """However large the file is, one line of it is in memory."""
    text = "words " * 2000
    lines = filled(tmp_path / "a.jsonl", lambda n: json.dumps({"id": n, "text": text}) + "\n")
    table = filled(tmp_path / "a.csv", lambda n: f'{n},"{text}"\r\n', head="id,text\r\n")
    for read in (text_lines(lines), json_lines(lines), csv_rows(table, ("id", "text"))):
        assert peak(lambda read=read: drained(read)) < 1 * MB  # type: ignore[misc]


def test_a_line_takes_few_steps(tmp_path: Path) -> None:
    """No error is made ready for a line that can be read."""
    lines = tmp_path / "a.jsonl"
    lines.write_text('{"id": 1}\n' * 1000)
    profile = cProfile.Profile()
    profile.runcall(drained, text_lines(lines))
    assert sum(entry.callcount for entry in profile.getstats()) < 15_000


def test_a_large_collection_takes_little_more_memory_than_its_texts(tmp_path: Path) -> None:
    text = "words " * 2000
    filled(tmp_path / "documents.jsonl", lambda n: json.dumps({"id": n, "text": text}) + "\n")
    assert peak(lambda: load_documents(tmp_path)) < 1.3 * SIZE


def test_an_error_far_into_a_file_names_its_line(tmp_path: Path) -> None:
    file = jsonl(tmp_path / "a.jsonl", *({"id": number} for number in range(5000)))
    with file.open("ab") as opened:
        opened.write(b'{"id": \xff}\n')
    with pytest.raises(DataError, match=r"a\.jsonl is not UTF-8 text \(byte \d+ is 0xff\) on line 5001"):
        drained(json_lines(file))
    position = file.read_bytes().index(b"\xff")
    with pytest.raises(DataError, match=rf"byte {position} is"):
        drained(json_lines(file))
    with pytest.raises(DataError, match=rf"\(byte {position} is 0xff\) on line 5001"):
        read_text(file)


def test_whole_documents_and_questions_without_evidence_in_our_own_lines(tmp_path: Path) -> None:
    root = own(tmp_path)
    jsonl(
        root / "questions.jsonl",
        {"id": "whole", "question": "?", "evidence": [{"document": "cat", "whole": True}]},
        {"id": "which", "question": "?", "evidence": [{"whole": True}]},
        {"id": "none", "question": "?", "document_id": "cat", "without_evidence": True, "answers": ["x"]},
        {"id": "both", "question": "?", "evidence": ["A cat"], "without_evidence": True},
        {"id": "left", "question": "?", "evidence": ["A cat"], "left_out": "it is silly"},
    )
    jsonl(root / "documents.jsonl", {"id": "cat", "text": "A cat purrs."}, {"id": "dog", "text": ""})
    with pytest.warns(UserWarning, match="left out: 3 of 5 questions .*; the first, 'which': line 2"):
        loaded = load_benchmark(root)
    assert [(query.id, len(query.evidence[0].span)) for query in loaded.queries] == [("whole", 12)]
    assert [(query.id, query.evidence, query.metadata["answers"]) for query in loaded.without_evidence] == [
        ("none", (), ["x"])
    ]
    assert {problem.query_id: problem.reason for problem in loaded.problems} == {
        "which": "line 2: evidence with offsets, or a whole document, must name its document; this names none",
        "both": "line 4: it has evidence, and says that it is without_evidence: take one of them out",
        "left": "line 5: it is silly",
    }
