"""Disks that are full, or may not be written to: an error that names the file, and what was there stays there."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from chunkcore.cli import main
from chunkcore.files import write_text
from chunkcore.models import CacheWarning, EmbeddingCache
from chunkcore.models.llm import LLMCache
from chunkcore.plain import text_key

from tests.fakes import FakeEmbedder
from tests.faults import places
from tests.faults.places import Disk, disk

__all__ = ["disk"]

OLD = [text_key("old")]
MANY = [text_key(str(number)) for number in range(2000)]


def vectors(count: int) -> np.ndarray:
    return np.ones((count, 64), dtype=np.float32)


def test_a_cache_on_a_disk_that_fills_up_keeps_what_it_had_and_the_run_goes_on(disk: Disk) -> None:
    path = disk.path / "cache.sqlite"
    cache = EmbeddingCache(path)
    cache.store("m", OLD, vectors(1))
    disk.fill()
    with pytest.warns(CacheWarning, match="cannot be written to .*full.* going on with memory alone"):
        cache.store("m", MANY, vectors(2000))
    assert cache.fetch("m", [*MANY, *OLD])[0].all()
    disk.free()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = EmbeddingCache(path)
        assert again.fetch("m", [*OLD, *MANY[:1]])[0].tolist() == [True, False]
        again.store("m", MANY[:1], vectors(1))
        assert len(EmbeddingCache(path)) == 2


def test_a_cache_that_a_full_disk_has_no_room_for_is_begun_once_there_is(disk: Disk) -> None:
    path = disk.path / "cache.sqlite"
    disk.fill()
    with pytest.warns(CacheWarning, match="cannot be read .*full"):
        cache = EmbeddingCache(path)
    cache.store("m", OLD, vectors(1))
    assert cache.fetch("m", OLD)[0].all()
    disk.free()
    again = EmbeddingCache(path)
    again.store("m", OLD, vectors(1))
    assert len(EmbeddingCache(path)) == 1


def test_a_cache_on_a_read_only_disk_is_read(disk: Disk) -> None:
    embeddings, answers = disk.path / "e.sqlite", disk.path / "a.sqlite"
    first = EmbeddingCache(embeddings)
    second = LLMCache(answers)
    first.store("m", OLD, vectors(1))
    second.store("m", b"key", "It is.")
    disk.remount("ro")
    first, second = EmbeddingCache(embeddings), LLMCache(answers)
    with pytest.warns(CacheWarning, match="e.sqlite' cannot be written to .* going on with memory alone"):
        first.store("m", MANY[:1], vectors(1))
    with pytest.warns(CacheWarning, match="a.sqlite' cannot be written to"):
        second.store("m", b"other", "It is not.")
    assert first.fetch("m", [*OLD, *MANY[:1]])[0].all()
    assert (second.fetch("m", b"key"), second.fetch("m", b"other")) == ("It is.", "It is not.")
    assert sorted(each.name for each in disk.path.iterdir()) == ["a.sqlite", "e.sqlite"]


@pytest.mark.parametrize("how", ["full", "read-only"])
def test_a_file_that_cannot_be_written_stays_and_is_named(disk: Disk, how: str) -> None:
    path = write_text(disk.path / "page.html", "old")
    if how == "full":
        disk.fill()
    else:
        disk.remount("ro")
    with pytest.raises(OSError, match=r"page\.html cannot be written: .*; the file that was there is as it was$"):
        write_text(path, "new" * 5000)
    assert path.read_text() == "old"
    assert not list(disk.path.glob(".*"))


DOCS, QUESTIONS = "{0}/docs", "--questions={0}/q.jsonl"
MEASURED = [DOCS, QUESTIONS, "-r", "bm25", "-s", "fixed_token:size=9", "--resamples", "100", "--no-cache"]
WRITERS = {
    "chunk": ["chunk", DOCS, "-o", "{1}/c.jsonl"],
    "index": ["index", DOCS, "-o", "{1}/i"],
    "compare": ["compare", *MEASURED, "-k", "3", "-o", "{1}/r"],
    "save-runs": ["compare", *MEASURED, "-k", "3", "-o", "{0}/r", "--save-runs", "{1}/runs"],
    "tune": ["tune", *MEASURED, "--folds", "2", "-o", "{1}/t"],
    "calibrate": ["calibrate", "{1}/i", QUESTIONS, "--miss=0.9", "--refuse=0.9"],
    "label": ["questions", "label", DOCS, "--no-browser", "-o", "{1}/q.jsonl"],
}
HOW = ["missing", "full", "read-only"]
NOT_TRIED = {("full", "label"), ("missing", "calibrate")}


@pytest.mark.skipif(sys.platform != "linux", reason="/proc and /dev/full")
@pytest.mark.parametrize(("how", "name"), sorted({*product(HOW, WRITERS)} - NOT_TRIED))
def test_what_cannot_be_written_exits_1_and_says_what_is_there(how, name, tmp_path, request, fake, capfd):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.txt").write_text("Tea is hot. The sea is deep. Fees are low.")
    asked = [{"question": f"Is it {text}?", "evidence": [text]} for text in ("hot", "deep", "low")]
    (tmp_path / "q.jsonl").write_text("\n".join(map(json.dumps, asked)))
    place = Path("/proc/missing")
    if how != "missing":
        disk = request.getfixturevalue("disk")
        place = disk.path
        if name == "calibrate":
            assert main(["index", str(tmp_path / "docs"), "-o", str(place / "i")]) == 0
        disk.fill() if how == "full" else disk.remount("ro")
    assert main([part.format(tmp_path, place) for part in WRITERS[name]]) == 1
    said = capfd.readouterr().err.splitlines()[-1]
    assert said.startswith("chunkcore: ")
    assert said.endswith(("; no file is there", "; no index is there", "; what was in it is as it was"))


@pytest.mark.parametrize("arguments", [["list"], ["cache", "size"], ["--help"]])
def test_a_full_standard_output_exits_1(arguments):
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            places.command(*arguments), cwd=places.ROOT, stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert (done.returncode, done.stderr.count(b"\n")) == (1, 1)
    assert b"standard output cannot be written: No space left" in done.stderr


def test_a_cache_that_cannot_be_cleared_exits_1_and_has_its_entries(disk: Disk, capfd) -> None:
    EmbeddingCache(disk.path / "c.sqlite").store("m", OLD, vectors(1))
    disk.remount("ro")
    assert main(["cache", "clear", "--cache", str(disk.path / "c.sqlite")]) == 1
    assert "1 vectors" in capfd.readouterr().out


def test_a_command_without_room_for_its_report_is_one_sentence_and_the_earlier_report_stays(
    disk: Disk, tmp_path: Path, capfd: pytest.CaptureFixture[str], fake: FakeEmbedder
) -> None:
    output, cache = disk.path / "out", tmp_path / "cache.sqlite"
    chosen = ["-r", "dense", "-s", "recursive:size=200", "-k", "3", "--resamples", "100"]
    arguments = ["compare", *chosen, "--cache", str(cache)]
    for name in ("questions.csv", "report.json", "report.md"):
        write_text(output / name, "the report of yesterday")
    disk.fill(leave=20_000)
    assert main([*arguments, "-o", str(output)]) == 1
    said = capfd.readouterr().err.splitlines()[-1]
    there = "the file that was there is as it was"
    assert said == f"chunkcore: {output}/report.json cannot be written: No space left on device; {there}"
    assert not list(output.glob(".*"))
    assert {path.read_text() for path in output.iterdir()} == {"the report of yesterday"}
    assert len(EmbeddingCache(cache)) > 0  # the dear part of the work is kept
