"""What a report says of cost and collections is what was measured."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from chunkcore.evaluation.results import Cost
from chunkcore.report import ReportPage, html_report
from chunkcore.report.tables import Table, score_table

from tests.report_data import study


@pytest.fixture(scope="module")
def priced() -> ReportPage:
    return study(price=0.1)


def cells(table: Table, row: int) -> dict[tuple[str, str], str]:
    pairs = zip(table.columns, table.rows[row], strict=True)
    return {(column.group, column.title): cell.text for column, cell in pairs}


def without(made: ReportPage, **changes) -> ReportPage:
    reports = tuple(replace(report, **changes) for report in made.comparison.reports)
    return replace(made, comparison=replace(made.comparison, reports=reports))


def test_costs_stand_in_the_table_of_scores(priced):
    table = score_table(priced, 5, "token")
    for row, report in enumerate(priced.reports):
        found = cells(table, row)
        assert found["Cost", "Model calls"] == str(report.cost.embedder_calls + report.cost.llm_calls)
        assert found["Cost", "Tokens embedded"] == f"{report.cost.embedded_tokens:,}"
        assert found["Cost", "Money per million"] == f"{report.cost.embedded_tokens / 1e6:.3g}"


def test_what_is_not_known_of_costs_has_no_column(priced):
    titles = [column.title for column in score_table(study(), 5, "token").columns]
    assert "Money per million" not in titles
    assert "Tokens embedded" in titles
    unused = Cost(source_tokens=9, embedder_calls=0, embedded_tokens=0)
    assert "Tokens embedded" not in [
        column.title for column in score_table(without(priced, cost=unused), 5, "token").columns
    ]
    bare = without(priced, cost=None)
    assert [column.title for column in score_table(bare, 5, "token").columns if column.group == "Cost"] == [
        "Chunks",
        "Tokens of a chunk",
        "Seconds",
        "Seconds searching",
    ]


def test_every_mean_is_drawn_with_its_interval_and_what_may_be_best_is_filled():
    made = study()
    source = html_report(made)
    found = made.comparison
    (drawn,) = re.findall(r'aria-label="Mean Recall@5 of every system.*?</ol>', source, re.DOTALL)
    for number, report in enumerate(made.reports, 1):
        low, high = found.intervals[report.name]
        value = 100 * report.mean("Recall@5")
        assert f"{report.name}: {value:.1f} % (interval {100 * low:.1f} to {100 * high:.1f})" in drawn
        kind = "" if report.name in found.tied else " behind"
        assert f'class="estimate s{number}{kind}"' in drawn
        assert f"first in {100 * found.firsts[report.name]:.0f} %" in drawn
    assert source.index("Mean Recall@5 of every system") < source.index("<table")
