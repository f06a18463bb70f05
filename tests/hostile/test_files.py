"""Folders, names and links that try to lead elsewhere, or never to end."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from chunkcore import (
    ChunkcoreError,
    DataError,
    Document,
    Retrieved,
    Run,
    Span,
    chunk_corpus,
    get_retriever,
    load_benchmark,
    load_documents,
    score,
    write_report,
)
from chunkcore.cli import main
from chunkcore.cli.options import check_output
from chunkcore.evaluation.benchmarks.benchmark import Benchmark, Evidence, Query
from chunkcore.evaluation.run_files import read_run, write_runs
from chunkcore.models.llm import Usage
from chunkcore.questions.generate import Generated, write_generated

from tests.layouts import collection

NAMES = ("../../out", "/out", "..", "con:nul\x00\n", "a/b\\c", "~/.ssh/id", "-rf", "x" * 500, "\u202e.exe", "")

BENCHMARK = Benchmark("b", [Document("d", "One fox.")], [Query("q", "?", (Evidence("d", Span(0, 3)),))])
INDEX = get_retriever("bm25").index(chunk_corpus(BENCHMARK.documents, "sentence"))
REPORT = score(Run("bm25", {"q": [Retrieved("d", (Span(0, 3),))]}), BENCHMARK, ["Recall@1"])

# What writes files of names that nobody typed, and one of these names.
WRITERS = {
    "manifest.json": lambda folder: INDEX.save(folder),
    ".lock": lambda folder: INDEX.save(folder),
    "report.html": lambda folder: write_report([REPORT], folder),
    "checksums.json": lambda folder: collection(folder, BENCHMARK.documents),
    "1-bm25.run.jsonl": lambda folder: write_runs([REPORT], BENCHMARK, folder),
    "q.info.json": lambda folder: write_generated(folder / "q.jsonl", Generated([], [], [], Usage())),
}


@pytest.mark.parametrize("name", WRITERS)
def test_nothing_is_written_through_a_link_that_nobody_named(name: str, tmp_path: Path) -> None:
    target, folder = tmp_path / "target", tmp_path / "strangers"
    target.write_text("{}")
    folder.mkdir()
    (folder / name).symlink_to(target)
    with pytest.raises(DataError, match=f"{name} is a link, and nothing is written"):
        WRITERS[name](folder)
    assert target.read_text() == "{}"


@pytest.mark.parametrize(("command", "name"), [("compare", "chunkcore-report"), ("tune", "chunkcore-tuning")])
def test_a_command_has_a_default_folder_which_is_no_link(command, name, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    Path(name).symlink_to("elsewhere")
    assert main([command, "-s", "recursive", "-r", "bm25"]) == 2
    assert f"{name} is a link" in capsys.readouterr().err
    check_output(tmp_path / name)  # which was named
    (tmp_path / "elsewhere" / "report.md").symlink_to(name)
    with pytest.raises(DataError, match="is a link"):
        check_output(tmp_path / name)


WRONG_SPANS = '[[0, 99999999999999999999]]|[[-1, 2]]|[[3, 2]]|[[0, 1e300]]|[[0]]|[["0", "1"]]|[0]'


def test_a_systems_name_is_never_a_path(tmp_path: Path) -> None:
    benchmark = Benchmark(
        "../b", [Document("../../d", "One fox.")], [Query("q", "?", (Evidence("../../d", Span(0, 3)),))]
    )
    piece = Retrieved("../../d", (Span(0, 3),), id="../c")
    runs = [Run(name, {"q": [piece]}, [piece]) for name in NAMES]
    folder = tmp_path / "deep" / "runs"
    written = write_runs([score(run, benchmark, ["Recall@1"]) for run in runs], benchmark, folder)
    assert len(written) == len(NAMES)
    assert {each.resolve().parent for each in written} == {folder.resolve()}
    assert {each for each in tmp_path.rglob("*") if each.is_file()} == set(written)


@pytest.fixture
def deep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """In a folder with a file that 1,500 folders are around."""
    monkeypatch.chdir(tmp_path)
    for _ in range(1500):
        Path("d").mkdir()
        os.chdir("d")
    Path("fox.txt").write_text("The fox naps.")
    os.chdir(tmp_path)
    yield
    os.chdir(tmp_path / "/".join(["d"] * 1500))
    Path("fox.txt").unlink()
    for _ in range(1500):  # shutil.rmtree would call itself for each
        os.chdir("..")
        Path("d").rmdir()


def test_folders_in_folders_by_the_thousand(tmp_path: Path, deep: None) -> None:
    found = load_documents(Path())
    assert [document.text for document in found] == ["The fox naps."]
    with pytest.raises(ChunkcoreError):
        load_benchmark(Path())
    assert main(["chunk", "d", "-o", str(tmp_path / "chunks.jsonl")]) == 0


def test_numbers_of_documents_are_not_believed(tmp_path: Path) -> None:
    """Spans of a run, however large, take no memory before they are checked."""
    benchmark = Benchmark("b", [Document("d", "One fox.")], [Query("q", "?", (Evidence("d", Span(0, 3)),))])
    file = tmp_path / "r.jsonl"
    for spans in WRONG_SPANS.split("|"):
        file.write_text(f'{{"query_id": "q", "document_id": "d", "spans": {spans}}}\n')
        with pytest.raises(DataError, match="line 1"):
            read_run(file, benchmark)
