"""What a command wrote is no document of the next one, wherever it lies; what only looks a little like it is."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest
from chunkcore import OptionError
from chunkcore.cli import main
from chunkcore.cli.options import check_output
from chunkcore.reading.opening import REPORT_NAMES, load_documents
from chunkcore.report import read_reports, write_report

from tests.fakes import FakeEmbedder

GENERATED = ("q.jsonl", "q.rejected.jsonl", "q.info.json")


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    laid(tmp_path / "docs", "fox.txt", text="The fox naps under the lid. At noon it wakes.")
    return tmp_path / "docs"


def laid(folder: Path, *names: str, text: str = "{}") -> None:
    folder.mkdir(exist_ok=True, parents=True)
    for name in names:
        (folder / name).write_text(text, encoding="utf-8")


@pytest.mark.parametrize(
    "names", [REPORT_NAMES, ("documents.jsonl", "questions.jsonl"), ("1-a.run.jsonl", "2-b.run.jsonl"), GENERATED]
)
def test_what_was_written_earlier_is_no_document_and_its_folder_is_named(docs: Path, names: tuple[str, ...]) -> None:
    laid(docs / "deep" / "out", *names, "own.md")
    message = rf"^files written by chunkcore are left out of .* \({len(names)}, in deep/out\): write results"
    with pytest.warns(UserWarning, match=message):
        found = load_documents(docs)
    assert [each.id for each in found] == ["deep/out/own.md", "fox.txt"]


@pytest.mark.parametrize(
    "names", [("report.json",), ("report.html", "report.md"), ("questions.csv",), ("a.jsonl",), GENERATED[:2]]
)
def test_a_name_alone_does_not_make_it_ours(docs: Path, names: tuple[str, ...]) -> None:
    laid(docs / "out", *names)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(load_documents(docs)) == len(names) + 1
    if names[0] in REPORT_NAMES:
        with pytest.raises(OptionError, match="would be replaced, and is in no report that chunkcore wrote"):
            check_output(docs / "out")


def test_neither_reports_nor_saved_runs_of_another_folder_are_searched(docs, tmp_path, capfd, monkeypatch):
    monkeypatch.setattr("chunkcore.models.get_embedder", lambda name: FakeEmbedder(8, name=name))
    laid(tmp_path, "q.jsonl", text='{"question": "Who naps?", "evidence": ["The fox naps under the lid."]}\n')
    call = ["compare", str(docs), "--questions", str(tmp_path / "q.jsonl"), "--resamples", "100", "--no-cache"]
    call += ["-s", "recursive:size=20", "-o"]
    assert main([*call, str(docs / "out")]) == 0
    (docs / "out" / "questions.csv").unlink()  # a report.json that is kept alone is a baseline
    assert main([*call, str(docs / "out"), "--save-runs", str(docs / "runs")]) == 0
    before = read_reports(docs / "out" / "report.json")[0]
    laid(tmp_path, "questions.csv")
    with pytest.raises(OptionError, match=r"questions\.csv would be replaced"):
        write_report([before], tmp_path)
    assert "left out" not in capfd.readouterr().err, "where it writes, its own report is expected"
    assert main([*call, str(docs / "out2")]) == 0
    written = [file for folder in ("out", "runs") for file in (docs / folder).iterdir()]
    assert f"({len(written)}, in out, runs): write results elsewhere" in capfd.readouterr().err
    after = read_reports(docs / "out2" / "report.json")[0]
    assert after.chunks.count == before.chunks.count
    assert after.values("Recall@5").tolist() == [1.0]


def test_chunks_are_not_written_where_documents_are(docs, tmp_path, capfd):
    call = ["chunk", str(docs), "-s", "recursive:size=20", "-o"]
    assert main([*call, str(docs / "deep" / "chunks.jsonl")]) == 2
    assert "would be taken for a document: write it elsewhere" in capfd.readouterr().err
    assert not (docs / "deep").exists()
    assert main([*call, str(docs / ".chunks.jsonl")]) == 0
    assert main([*call, str(tmp_path / "chunks.jsonl")]) == 0
    (docs / "documents.jsonl").write_text('{"id": "a", "text": "One."}', encoding="utf-8")
    assert main([*call, str(docs / "chunks.jsonl")]) == 0
