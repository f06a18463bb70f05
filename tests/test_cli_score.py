"""``chunkcore score`` and what ``chunkcore compare`` does with several retrievers and embedders."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from chunkcore.cli import main
from chunkcore.models.loading import quickest
from chunkcore.report import read_reports

from tests.fakes import FakeEmbedder

DOG = "# Dog\n\nThe dog is brown. " + "It barks at the postman. " * 20 + "It sleeps in the barn."
FOX = "The fox naps under the lid. " + "Nothing happens. " * 30 + "At noon the fox wakes."


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "fox.txt").write_text(FOX)
    (folder / "dog.md").write_text(DOG)
    return folder


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    rows = [
        {"id": "brown", "question": "Which colour is the dog?", "evidence": ["The dog is brown."]},
        {"id": "barn", "question": "Where does it sleep? In the barn?", "evidence": ["It sleeps in the barn."]},
        {"id": "naps", "question": "Who naps under the lid?", "evidence": ["The fox naps under the lid."]},
        {"id": "wakes", "question": "When does the fox wake?", "evidence": ["At noon the fox wakes."]},
    ]
    path = tmp_path / "questions.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


@pytest.fixture
def given(docs: Path, questions: Path) -> list[str]:
    return ["--docs", str(docs), "--questions", str(questions), "--resamples", "100"]


@pytest.fixture
def models(monkeypatch: pytest.MonkeyPatch) -> dict[str, FakeEmbedder]:
    found = {name: FakeEmbedder(size, name=name) for name, size in (("small", 4), ("large", 64))}
    found["all-MiniLM-L6-v2"] = found[quickest()] = found["large"]
    monkeypatch.setattr("chunkcore.models.loading.get_embedder", lambda spec: found.get(spec, spec))
    return found


def compared(given: list[str], output: Path, *more: str) -> dict[str, Any]:
    """The reports of a comparison by name."""
    retriever = [] if "-r" in more else ["-r", "dense"]
    assert main(["compare", "--no-extras", *retriever, *given, "--no-cache", "-o", str(output), *more]) == 0
    return {report.name: report for report in read_reports(output / "report.json")}


def scored(given: list[str], output: Path, *more: str) -> dict[str, Any]:
    assert main(["score", *given, "-o", str(output), *more]) == 0
    return {report.name: report for report in read_reports(output / "report.json")}


def error_of(capfd: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main([*arguments]) == 2
    err = capfd.readouterr().err
    assert "Traceback" not in err
    assert err.splitlines()[-1].startswith("chunkcore: ")
    return err.splitlines()[-1]


def test_embedders_are_compared_with_each_other(given, tmp_path, models) -> None:
    found = compared(
        given, tmp_path / "out", "-e", "small", "-e", "large", "-s", "recursive:size=20", "-s", "cluster_semantic"
    )
    specs = ["recursive:size=20", "cluster_semantic:size=200"]
    named = {(name.partition(" · ")[0], name.rpartition(":")[2]) for name in found}
    assert named == {(spec, model) for model in ("small", "large") for spec in specs}
    assert models["small"].calls > 0
    assert models["large"].calls > 0


def test_saved_runs_score_what_they_scored(given, tmp_path, models) -> None:
    runs = tmp_path / "runs"
    retrievers = ["-r", "dense", "-r", "bm25"]
    before = compared(given, tmp_path / "out", "-s", "recursive:size=20", *retrievers, "--save-runs", str(runs))
    stems = ["1-recursive_size=20_dense", "2-recursive_size=20_bm25"]
    assert sorted(path.name for path in runs.iterdir()) == [f"{stem}.run.jsonl" for stem in stems]
    paths = [argument for stem in stems for argument in ("--run", str(runs / f"{stem}.run.jsonl"))]
    after = scored(given, tmp_path / "again", *paths, "-k", "1000tok", "-k", "5", "-k", "10")
    for stem, retriever in zip(stems, ("dense", "bm25"), strict=True):
        one, other = before[f"recursive:size=20 · {retriever}"], after[f"{stem}.run"]
        for measure, values in other.scores.items():
            assert values.tolist() == one.scores[measure].tolist()


def test_a_run_of_whole_documents(given, tmp_path, capfd) -> None:
    run = tmp_path / "docs.jsonl"
    hits = [("brown", "dog.md"), ("brown", "fox.txt"), ("naps", "dog.md"), ("naps", "fox.txt")]
    run.write_text("".join(f'{{"query_id": "{query}", "document_id": "{name}"}}\n' for query, name in hits))
    found = scored(given, tmp_path / "out", "--run", str(run), "--measure", "MRR@10[document]")
    assert found["docs"].values("MRR@10[document]").tolist() == [1, 0, 0.5, 0]
    assert "PrecisionOmega" not in {measure.kind for measure in found["docs"].scores}
    assert "docs" in capfd.readouterr().out


def test_what_is_wrong_is_one_sentence(given, tmp_path, capfd, models) -> None:
    run = tmp_path / "run.jsonl"
    run.write_text('{"query_id": "brown", "document_id": "dog.md", "score": NaN}\n')
    score = ["score", *given, "-o", str(tmp_path / "out")]
    assert f"{run}, line 1: the score is a finite number" in error_of(capfd, *score, "--run", str(run))
    assert "is given twice" in error_of(capfd, *score, "--run", str(run), "--run", str(run))
    assert "cannot be read" in error_of(capfd, *score, "--run", str(tmp_path / "no.jsonl"))
    assert not (tmp_path / "out").exists()
    compare = ["compare", "-r", "dense", *given, "-o", str(tmp_path / "out"), "--no-cache", "-s", "recursive:size=20"]
    assert "unknown retriever 'bm52'" in error_of(capfd, *compare, "-r", "bm52")
    assert "bm25 is given twice" in error_of(capfd, *compare, "-r", "bm25", "-r", "bm25")
    assert "(embedding) is at least 0" in error_of(capfd, *compare, "--embed-price", "-1")
    assert "small is given twice" in error_of(capfd, *compare, "-e", "small", "-e", "small")


def test_a_run_has_a_row_alone_and_one_with_passages_behind_it(given, tmp_path) -> None:
    run = tmp_path / "ours.jsonl"
    run.write_text('{"query_id": "brown", "document_id": "dog.md"}\n')
    arguments = ["compare", *given, "--run", str(run), "-s", "sentence:size=20", "-r", "bm25"]
    assert main([*arguments, "-o", str(tmp_path / "out")]) == 0
    names = {report.name for report in read_reports(tmp_path / "out" / "report.json")}
    assert names == {"sentence:size=20", "ours", "ours · passages behind"}
