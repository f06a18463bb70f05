"""Systems that are surely behind are asked no further questions, and everything that is shown says so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest
from chunkcore import Benchmark, Comparison, Document, Report, load_benchmark
from chunkcore.evaluation.resampling import surely_below
from chunkcore.report.records import markdown_report
from chunkcore.retrieval import ChunkedCorpus, Hits, Index, RetrievalMethod, TextVectors, retrievers
from chunkcore.study.comparing import ReportPage, StudySettings, compare_systems

SETTINGS = StudySettings(depths=(1,), resamples=200, extras=False)


class _Last(RetrievalMethod):
    """The last chunks, whatever the question."""

    name, embeds = "last", False

    def build(self, corpus: ChunkedCorpus, vectors: TextVectors | None = None) -> Index:
        return _LastIndex(corpus)


class _LastIndex(Index):
    def rank(self, queries: Sequence[str], k: int) -> Hits:
        best = np.arange(len(self.corpus))[::-1][:k]
        return Hits.of([(best, -np.arange(float(len(best))))] * len(queries))


@pytest.fixture(scope="module")
def towns() -> Benchmark:
    documents, rows = [], []
    for number in range(20):
        lines = [f"Town{number}x{line} has {1000 + line} people." for line in range(6)]
        documents.append(Document(f"{number}.md", "\n\n".join(lines)))
        for line in range(6):
            evidence = [{"document": f"{number}.md", "text": lines[line]}]
            rows.append({"question": f"How many live in town{number}x{line}?", "evidence": evidence})
    return load_benchmark(documents, rows, name="towns")


def page_of(towns: Benchmark, **changes: object) -> ReportPage:
    settings = replace(SETTINGS, **changes)  # type: ignore[arg-type]
    with patch.dict(retrievers.entries, {"last": _Last}):
        return compare_systems(towns, ["fixed_sentences:sentences=1"], ["bm25", "last"], settings=settings)


@pytest.fixture(scope="module")
def page(towns: Benchmark) -> ReportPage:
    return page_of(towns)


def behind(comparison: Comparison) -> Report:
    return next(report for report in comparison.reports if report.system.retriever == "last")


def test_a_system_that_is_surely_behind_is_asked_a_third_of_the_questions(page: ReportPage) -> None:
    comparison, report = page.comparison, behind(page.comparison)
    assert report.asked == 40
    assert np.count_nonzero(~np.isnan(report.values("Recall@1"))) == 40
    assert report.unanswered == ()
    assert "search" not in report.seconds
    first = comparison.ranked[0]
    assert first.asked is None
    assert (comparison.ranked[-1], comparison.tied, comparison.best) == (report, (first.name,), first.name)
    assert comparison.firsts[report.name] == 0
    assert comparison.baseline == first.name
    assert Report.from_dict(report.to_dict()).asked == 40


def test_what_was_not_asked_has_no_scores_and_nothing_found(page: ReportPage) -> None:
    for report in page.comparison.stopped:
        unasked = np.isnan(report.values(page.comparison.measure))
        rows = next(iter(report.found.values()))
        assert unasked.sum() + (report.asked or 0) == len(rows)
        assert [bool(np.isnan(row).all()) for row in rows] == unasked.tolist()


def test_the_report_says_which_were_stopped_and_after_how_many(page: ReportPage) -> None:
    name = behind(page.comparison).name
    assert f"Surely behind and so stopped early, after 40 of 120 questions: {name}." in page.comparison.verdict
    assert "stopped after 40 of 120 questions" in markdown_report(page)


def test_a_higher_mean_of_fewer_questions_is_not_first(page: ReportPage) -> None:
    easy = behind(page.comparison)
    easy = replace(easy, scores={measure: np.where(np.isnan(row), row, 1.0) for measure, row in easy.scores.items()})
    others = [report for report in page.comparison.reports if report.name != easy.name]
    comparison = SETTINGS.compare([*others, easy])
    assert comparison.ranked[-1] == easy
    assert easy.name not in comparison.tied


STRICT = [{"every_question": True}, {"requirements": ("Recall@1>=0.1",)}, {"baseline": "last"}]
STRICT.append({"baseline": "fixed_sentences:sentences=1 · last"})


@pytest.mark.parametrize("changes", STRICT)
def test_all_questions_are_asked_for_a_gate_of_the_baseline_and_on_demand(towns: Benchmark, changes: dict) -> None:
    assert behind(page_of(towns, **changes).comparison).asked is None


@pytest.mark.parametrize(
    ("differences", "is_below"),
    [
        ([-0.3, 0.1, -0.2] * 10, True),
        ([-0.3, 0.3] * 15, False),
        ([-1.0] * 5 + [0.0] * 20, False),  # too few that differ
        ([-0.1, 0.05] * 8 + [-0.2], False),  # likely at 95 %, not surely
    ],
)
def test_surely_below_is_an_interval_not_a_mean(differences: list[float], is_below: bool) -> None:
    assert surely_below(np.array(differences), None) is is_below
    assert not surely_below(-np.array(differences), None)
