"""A document that is edited between two steps: whoever holds something of the old text is told."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
import pytest
from chunkadapters.scores import DeployedRetriever, RetrieverHooks
from chunkcore import DataError, Document, Report, Retrieved, Run, Span, compare, get_measure, read_run, write_run
from chunkcore.cli import main
from chunkcore.evaluation.benchmarks.benchmark import Benchmark, ChangedDocumentsWarning, Evidence, Query
from chunkcore.evaluation.gate import check_baseline
from chunkcore.locating import Hit, StatedPlace

from tests.fakes import FakeEmbedder

TEXT = "Tea is hot. The sea is deep. Fees are low."
# A word longer, at the beginning, so that all places move; and another one at the end, so that none does.
MOVED, LONGER = f"Green {TEXT}", f"{TEXT} So it goes."


def benchmark(text: str) -> Benchmark:
    start = text.index("The sea")
    return Benchmark("b", [Document("d", text)], [Query("q", "sea", (Evidence("d", Span(start, start + 16)),))])


def run_of(spans: tuple[Span, ...] = (Span(12, 28),)) -> Run:
    return Run("r", {"q": [Retrieved("d", spans, 0.5, id="c")]})


@pytest.mark.parametrize("spans", [(Span(12, 28),), (Span(0, 11), Span(29, 42))])
def test_a_saved_run_is_refused_where_another_text_stands_at_its_places(tmp_path: Path, spans) -> None:
    path = write_run(run_of(spans), tmp_path / "run.jsonl", benchmark(TEXT))
    assert read_run(path, benchmark(TEXT)).results["q"][0].spans == spans
    assert read_run(path, benchmark(LONGER)).results["q"][0].spans == spans  # what was retrieved is what it was
    with pytest.raises(DataError, match=r"run\.jsonl, line 2: in 'd' another text stands at these spans"):
        read_run(path, benchmark(MOVED))


def test_a_run_without_digests_is_read_as_before(tmp_path: Path) -> None:
    path = write_run(run_of(), tmp_path / "run.jsonl")
    assert "digest" not in path.read_text()
    assert read_run(path, benchmark(MOVED)).results["q"][0].spans == (Span(12, 28),)


def report(name: str, text: str) -> Report:
    recall = {get_measure("Recall", 5): np.ones(8)}
    digest = benchmark(text).documents_digest if text else ""
    return Report(name, "b", tuple("12345678"), ("",) * 8, recall, documents_digest=digest)


def test_reports_of_different_texts_are_compared_with_a_warning() -> None:
    for other in (TEXT, ""):  # what is not known is not held against anything
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            compare([report("a", TEXT), report("b", other)], "Recall@5", resamples=100)
    with pytest.warns(ChangedDocumentsWarning, match="different versions of them"):
        compare([report("a", TEXT), report("b", LONGER)], "Recall@5", resamples=100)
    with pytest.warns(ChangedDocumentsWarning, match="have changed since the earlier report"):
        check_baseline(report("a", TEXT), report("a", LONGER), get_measure("Recall", 5), resamples=100)


@pytest.fixture
def files(tmp_path: Path, fake: FakeEmbedder) -> list[str]:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "d").write_text(TEXT)
    (tmp_path / "questions.jsonl").write_text(
        "\n".join(json.dumps({"question": f"{each}?", "evidence": [each]}) for each in ("The sea is deep.", "Fees are"))
    )
    return ["--docs", str(tmp_path / "docs"), "--questions", str(tmp_path / "questions.jsonl"), "--resamples", "100"]


def test_the_commands_tell_of_an_edit_after_the_baseline_and_after_the_run(files, tmp_path: Path, capsys) -> None:
    comparing = ["compare", "-r", "dense", *files, "-s", "fixed_sentences:sentences=1", "-k", "2", "--no-cache"]
    first, runs = tmp_path / "first", tmp_path / "runs"
    assert main([*comparing, "-o", str(first), "--save-runs", str(runs)]) == 0
    (run,) = runs.glob("*.jsonl")
    scoring = ["score", *files, "--run", str(run), "-k", "2", "-o", str(tmp_path / "scored")]
    gated = [*comparing, "--baseline", str(first / "report.json"), "-o", str(tmp_path / "second")]
    assert (main(scoring), main(gated)) == (0, 0)
    assert "changed" not in capsys.readouterr().err
    (tmp_path / "docs" / "d").write_text(MOVED)
    assert main(gated) == 0
    assert capsys.readouterr().err.count("chunkcore: warning: the documents have changed since the earlier report") == 1
    assert main(scoring) == 2
    assert "another text stands at these spans than when the run was written" in capsys.readouterr().err


def answering(*pieces: Hit) -> DeployedRetriever:
    async def ask(question: str) -> list[Hit]:
        return list(pieces)

    return DeployedRetriever("toy", lambda question: list(pieces), ask)


HOOKS: RetrieverHooks[DeployedRetriever] = RetrieverHooks(lambda system: system, lambda hit: hit, Hit, "hits")
SEA = Hit(TEXT[12:28], 0.5, ("d",), StatedPlace((Span(12, 28),)))


def test_a_retriever_whose_places_do_not_hold_is_told_of_and_its_texts_are_found() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        HOOKS.run_retriever(answering(SEA), benchmark(LONGER))
    with pytest.warns(UserWarning, match="1 of 2 answers: another text stands at its stated place.*changed since"):
        run = HOOKS.run_retriever(
            answering(SEA, Hit(MOVED[:17], 0.4, ("d",), StatedPlace((Span(0, 17),)))), benchmark(MOVED)
        )
    (found, _) = run.results["q"]
    assert (found.spans, found.match) == ((Span(18, 34),), "exact")
