"""A file that was written and is read again is as it was, or it is refused: any byte changed, or cut anywhere."""

from __future__ import annotations

import json
import random
import shlex
import warnings
from pathlib import Path

import numpy as np
import pytest
from chunkcore import ChunkcoreError, DataError, Report, get_measure, read_run, write_run
from chunkcore.cli import main
from chunkcore.evaluation.benchmarks import load_benchmark
from chunkcore.files import CHECKSUMS, check_unchanged
from chunkcore.questions.label import LabelledQuestions

from tests.faults.written import CACHES, DOCUMENT, WRITTEN, benchmark, copied, row, run
from tests.layouts import collection
from tests.results import keep_result

KINDS = WRITTEN | CACHES


def damages(kind: str, folder: Path, most: int) -> int:
    """Damage a kind's files in some `most` places, each by a byte and by a cut; returns how many were tried."""
    write, read, pattern = KINDS[kind]
    whole, damaged = folder / "whole", folder / "damaged"
    whole.mkdir()
    write(whole, "old")
    expected = read(copied(whole, damaged))
    chance = random.Random(kind)
    tried = 0
    files = sorted(path for path in whole.glob(pattern) if path.is_file() and path.stat().st_size)
    for file in files:
        content = file.read_bytes()
        for place in sorted(chance.sample(range(len(content)), min(1 + most // len(files), len(content)))):
            other = bytes([content[place] ^ chance.randint(1, 255)])
            for data in (content[:place], content[:place] + other + content[place + 1 :]):
                (copied(whole, damaged) / file.relative_to(whole)).write_bytes(data)
                tried += 1
                refusal, again = "", {}
                try:
                    again = read(damaged)
                except ChunkcoreError as error:
                    refusal = str(error)
                assert "\n" not in refusal
                same = again.items() <= expected.items() if kind in CACHES and again else again == expected
                assert refusal or same or (kind in CACHES and not again), (file.name, place)
    return tried


@pytest.mark.parametrize("most", [30, pytest.param(1_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_file_gives_the_same_or_is_refused(tmp_path: Path, kind: str, most: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        keep_result(f"damage: {most} places", kind, damages(kind, tmp_path, most))


def test_a_file_that_is_edited_on_purpose_is_accepted_by_the_command_that_its_refusal_names(tmp_path: Path) -> None:
    documents, questions = collection(tmp_path, [DOCUMENT], row("old"))
    questions.chmod(0o600)
    collection(tmp_path, [DOCUMENT], row("old"))
    questions.write_text(questions.read_text().replace("The old?", "The odd?"))
    for read in (lambda: load_benchmark(tmp_path), lambda: LabelledQuestions([DOCUMENT], questions)):
        with pytest.raises(DataError, match=r"questions\.jsonl is not what was written. .* chunkcore questions accept"):
            read()
    with pytest.raises(DataError) as refusal:
        load_benchmark(tmp_path)
    command = str(refusal.value).partition("accept it: chunkcore ")[2].partition(". If not")[0]
    assert main(shlex.split(command)) == 0
    assert questions.stat().st_mode & 0o777 == 0o600
    own = questions.with_name("own.jsonl")
    own.write_text("{}\n")
    assert main(["questions", "accept", str(own)]) == 2  # it may be edited as it is
    assert [query.text for query in load_benchmark(tmp_path).queries] == ["The odd?"]
    whole = {path: path.read_bytes() for path in (documents, questions)}
    for path, content in whole.items():  # damage is noticed as before, in the other file, too
        path.write_bytes(content[:-2])
        with pytest.raises(DataError, match=f"{path.name} is not what was written"):
            load_benchmark(tmp_path)
        path.write_bytes(content)
    (tmp_path / "links").mkdir()  # as of a store of files
    (tmp_path / "links" / CHECKSUMS).write_bytes((tmp_path / CHECKSUMS).read_bytes())
    (tmp_path / "links" / "questions.jsonl").symlink_to(tmp_path / "stored")
    (tmp_path / "stored").write_bytes(whole[questions][:-2])
    with pytest.raises(DataError, match="not what was written"):
        check_unchanged(tmp_path / "links" / "questions.jsonl")
    questions.write_bytes(whole[questions][:-4])
    assert main(["questions", "accept", str(questions)]) == 2  # that is no line of JSON
    questions.write_bytes(whole[questions])
    for foreign in ("[1]", '{"questions.jsonl": "d41d8cd9"}'):  # another program's file of that name
        (tmp_path / CHECKSUMS).write_text(foreign)
        assert [query.text for query in load_benchmark(tmp_path).queries] == ["The odd?"]
    (tmp_path / CHECKSUMS).write_text('{"questions')
    with pytest.raises(DataError, match=r"checksums\.json: not JSON"):
        load_benchmark(tmp_path)


def test_the_refusal_names_the_file_and_the_line(tmp_path: Path) -> None:
    path = write_run(run("old"), tmp_path / "run.jsonl", benchmark())
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:-1]))
    with pytest.raises(
        DataError, match=r"run\.jsonl, line 1: what follows is not what was written \(2 lines then, 1 now\)"
    ):
        read_run(path, benchmark())
    path.write_text("".join(lines[1:]))
    assert len(read_run(path, benchmark()).results) == 1, "a run of another program has no such line"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("scores", {"Recall@2": [9.41, 0.5]}),
        ("scores", {"Recall@2": [-0.1, 0.5]}),
        ("scores", {"Recall@2": [1.0]}),
        ("scores", {"Recall@2": [float("inf"), 0.0]}),
        ("retrieved_tokens", {"2": [-1, 3]}),
        ("located", {"exact": -3}),
        ("seconds", {"chunk": float("nan")}),
        ("seconds", {"chunk": 10**400}),
        ("chunks", {"tokens": [10**30]}),
        ("scores", {"Recall@2": [[1.0], [0.0]]}),
        ("query_ids", "ab"),
        ("documents", [1, 2]),
    ],
)
def test_a_value_out_of_range_is_no_report(key: str, value: object) -> None:
    plain = Report("a", "b", ("q", "r"), ("", ""), {get_measure("Recall@2"): np.ones(2)}).to_dict()
    assert Report.from_dict(json.loads(json.dumps(plain))).name == "a"
    with pytest.raises(DataError, match="this is no report"):
        Report.from_dict(plain | {key: value})
