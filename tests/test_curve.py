"""Evidence against tokens: what each kind of system finds within a budget, and the budget that a share takes."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from chunkcore import Query, Report, chunk_corpus, get_measure, get_retriever, load_dataset, run_retriever
from chunkcore.evaluation.comparison import compare, rounded
from chunkcore.evaluation.resampling import BUDGETS, tokens_for
from chunkcore.report.html import html_report
from chunkcore.report.plots import COLOURS
from chunkcore.report.records import markdown_report, read_reports, write_report
from chunkcore.report.tables import score_table
from chunkcore.study.comparing import ReportPage, StudySettings, compare_systems


@pytest.fixture(scope="module")
def page() -> ReportPage:
    lochmere = load_dataset("lochmere")
    index = get_retriever("bm25").index(chunk_corpus(lochmere.documents, "recursive:size=100"))
    mine = run_retriever(index, lochmere, 3, name="mine")
    settings = StudySettings(depths=("1000tok",), resamples=200, measure="Recall@1000tok")
    retrievers = ["bm25", "passages:lexical"]
    return compare_systems(lochmere, ["sentence:size=50"], retrievers, settings=settings, runs=[mine])


def test_a_curve_has_at_each_budget_what_the_measure_has_there_whatever_the_system(page: ReportPage) -> None:
    names = {report.name.partition(" · ")[2] for report in page.reports}
    assert names == {"", "bm25", "passages:lexical", "passages behind"}
    for report in page.reports:
        found = report.curve[min(1000, max(report.curve))]
        np.testing.assert_array_equal(found, report.values("Recall@1000tok"), err_msg=report.name)
        asked = list(report.curve)
        assert asked == list(BUDGETS[: len(asked)])
        is_found = np.nanmean(report.curve[asked[-1]]) >= 0.9
        assert len(asked) == 2 if report.name.startswith("mine") else is_found or len(asked) == len(BUDGETS)


def test_questions_without_evidence_are_no_hindrance_to_a_comparison_by_documents() -> None:
    benchmark = replace(load_dataset("lochmere"), without_evidence=(Query("none", "Who?", ()),))
    settings = StudySettings(depths=("1000tok",), resamples=100, by="document", extras=False)
    page = compare_systems(benchmark, ["recursive"], ["bm25"], settings=settings)
    assert page.comparison.by == "document"


def test_the_budget_that_is_said_holds_the_share(page: ReportPage) -> None:
    lochmere = load_dataset("lochmere")
    index = get_retriever("bm25").index(chunk_corpus(lochmere.documents, "sentence:size=50"))
    from chunkcore.evaluation.scoring import score

    tokens = round(tokens_for(0.7, page.comparison.curves["sentence:size=50 · bm25"]))
    measure = f"Recall@{tokens}tok"
    report = score(run_retriever(index, lochmere, 1, tokens), lochmere, measure)
    assert report.mean(measure) == pytest.approx(0.7, abs=0.02)


def test_bands_are_by_document_like_the_other_intervals(page: ReportPage) -> None:
    for report in page.reports:
        points = {point.tokens: point for point in page.comparison.curves[report.name]}
        if 1000 in points:
            ends = page.comparison.intervals[report.name]
            assert (points[1000].low, points[1000].high) == pytest.approx(ends)


def test_page_markdown_and_records_say_each_systems_budgets(page: ReportPage, tmp_path: Path) -> None:
    html, text = html_report(page), markdown_report(page)
    shown = re.findall(r'<polyline class="curve s(\d)" points="([^"]+)"', html)
    assert len(shown) == len(page.reports)
    assert len(re.findall('<polygon class="band', html)) == len(shown)
    table = score_table(page, "1000tok", "token")
    (column,) = [place for place, column in enumerate(table.columns) if column.title.startswith("Tokens for 80 %")]
    needed = {report.name: row[column] for report, row in zip(page.reports, table.rows, strict=True)}
    assert needed["mine"].text == "–"
    tokens = tokens_for(0.8, page.comparison.curves["sentence:size=50 · bm25"])
    assert needed["sentence:size=50 · bm25"].text == rounded(tokens)
    assert f"| {rounded(tokens)} " in text
    write_report(page, tmp_path)
    for before, after in zip(page.reports, read_reports(tmp_path / "report.json"), strict=True):
        assert {budget: row.tolist() for budget, row in before.curve.items()} == {
            budget: row.tolist() for budget, row in after.curve.items()
        }


def test_more_systems_than_colours_leave_the_plot_readable_and_a_report_without_a_curve_has_none() -> None:
    measure = get_measure("Recall@1000tok")
    ids = tuple(map(str, range(20)))

    def report(number: int) -> Report:
        row = np.linspace(0, 1, 20) ** (number + 1)
        curve = {500: row / 2, 1000: row}
        return Report(f"system {number}", "toy", ids, ("",) * 20, {measure: row}, curve=curve)

    many = [report(number) for number in range(12)]
    html = html_report(ReportPage(compare(many, resamples=100)))
    drawn = html[html.index('id="budgets"') :].partition("<h2>")[2].partition("<h2>")[0]
    assert drawn.count('class="curve s') == COLOURS
    heights = [float(y) for y in re.findall(r'<foreignObject x="100%" y="([\d.]+)%"', drawn)]
    assert np.diff(sorted(heights)).min() >= 5
    plain = [replace(one, curve={}) for one in many]
    page = ReportPage(compare(plain, resamples=100))
    assert 'id="budgets"' not in html_report(page)
    assert page.comparison.curves == {}
    assert math.isnan(tokens_for(0.5, []))
