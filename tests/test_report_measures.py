"""Reports show every kind of measure: those of order, of documents and sentences, at budgets, and DCG, no share."""

from __future__ import annotations

import io

import pytest
from chunkcore import Benchmark, Document, Evidence, Query, Retrieved, Run, Span, compare, score
from chunkcore.evaluation.measures import measures_at
from chunkcore.report import ReportPage, html_report, read_reports, write_report
from chunkcore.report.records import markdown_report, print_report
from chunkcore.report.tables import score_table, warnings
from rich.console import Console

DOCUMENTS = [Document(f"d{number}", "The valve is red. Filler follows. More of it. " * 3) for number in range(12)]
QUERIES = [Query(f"q{number}", "Which?", (Evidence(f"d{number}", Span(0, 17)),)) for number in range(12)]
BENCHMARK = Benchmark("valves", DOCUMENTS, QUERIES)


def study(measures: list[str], verdict_by: str) -> ReportPage:
    def run(name: str, rank: int) -> Run:
        """Each question's document at this rank."""
        results = {}
        for number in range(12):
            others = [Retrieved(f"d{(number + step) % 12}", (Span(0, 40),)) for step in range(1, 4)]
            results[f"q{number}"] = [*others[:rank], Retrieved(f"d{number}", (Span(0, 40),)), *others[rank:]]
        return Run(name, results)

    reports = [score(run(f"rank {rank + 1}", rank), BENCHMARK, measures) for rank in (2, 0)]
    return ReportPage(compare(reports, verdict_by, resamples=200), BENCHMARK)


def terminal(shown: ReportPage, width: int = 160) -> str:
    console = Console(file=io.StringIO(), width=width, highlight=False)
    print_report(shown, console)
    return console.file.getvalue()


def column(shown: ReportPage, k, unit: str, title: str) -> list[str]:
    table = score_table(shown, k, unit)
    place = [each.title for each in table.columns].index(title)
    return [row[place].text for row in table.rows]


USUAL = [str(each) for each in measures_at([5, "20tok"], ["token"]) if each.kind != "PrecisionOmega"]
ORDER = ["HitRate@5", "nDCG@5", "MRR", "DCG@5", "ChunkPrecision@5"]


def test_measures_of_order_are_columns_beside_the_usual_ones() -> None:
    shown = study([*USUAL, *ORDER], "nDCG@5")
    assert column(shown, 5, "token", "nDCG") == ["100.0", "50.0"]
    assert column(shown, 5, "token", "MRR") == ["100.0", "33.3"]
    assert column(shown, "20tok", "token", "Recall") == ["100.0", "0.0"]
    assert "nDCG" not in [each.title for each in score_table(shown, "20tok", "token").columns]
    assert "rank 1 is best: its nDCG@5[token] is 100.0 %" in shown.comparison.verdict
    assert "nDCG" in terminal(shown).partition("Scores at")[2]
    for text in (markdown_report(shown), html_report(shown)):
        for title in ("HitRate", "nDCG", "MRR", "DCG × 100"):
            assert title in text
    assert "The best pieces until so many tokens are retrieved" in html_report(shown)
    assert "Scores at 20 tokens" in markdown_report(shown)


ANY = ("F1@5[document] MAP[document]", "Recall@5[sentence] nDCG@5[document]", "MRR", "HitRate@40tok MRR@5[document]")


@pytest.mark.parametrize("measures", [each.split() for each in ANY])
def test_any_measures_make_a_whole_report(measures, tmp_path) -> None:
    shown = study(measures, measures[0])
    write_report(shown, tmp_path)
    assert measures[0] in (tmp_path / "report.html").read_text("utf-8")
    assert terminal(shown)
    again = read_reports(tmp_path / "report.json")
    assert [list(map(str, each.scores)) for each in again] == [measures, measures]


def test_a_run_that_is_shorter_than_the_budget_is_told() -> None:
    shown = study(["Recall@30tok", "Recall@900tok"], "Recall@30tok")
    told = [line for line in warnings(shown) if "fewer than" in line and "rank" in line]
    assert told == ["rank 3 and rank 1 found fewer than 900 tokens for up to 12 of the questions."]
