"""What each system cost: time, calls, tokens and money; and the axis that quality is drawn against."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from chunkcore.evaluation.costs import Cost
from chunkcore.evaluation.results import Report
from chunkcore.report.study import Study
from chunkcore.report.tables import MISSING, STEPS, Cell, Column, Table, amount, duration, money, named, total_seconds

__all__ = ["GROUPS", "CostAxis", "cost_axis", "cost_table"]

# Of columns whose titles say little without them.
GROUPS = ("Seconds", "Embedder", "Language models", "Money")


@dataclass(frozen=True)
class CostAxis:
    """A price of each report, NaN where it is not known.

    Attributes:
        title: what a section about it is called, after "Quality against ".
        label: of the axis.
        unit: of a point's value, after the number.
        values: in the order of the reports.
    """

    title: str
    label: str
    unit: str
    values: tuple[float, ...]


def cost_axis(study: Study) -> CostAxis | None:
    """Money where prices are known, else the tokens that models read and wrote; None where no cost is known."""
    costs = [report.cost for report in study.reports]
    money = tuple(math.nan if cost is None else cost.money_per_million for cost in costs)
    if any(map(math.isfinite, money)):
        return CostAxis("cost", "Money per million tokens of the documents", "a million tokens", money)
    ratios = tuple(math.nan if cost is None else model_tokens(cost) for cost in costs)
    if any(map(math.isfinite, ratios)):
        label = "Tokens that models read and wrote, for each token of the documents"
        return CostAxis("what models read", label, "model tokens a token", ratios)
    return None


def model_tokens(cost: Cost) -> float:
    """Tokens that the embedder read and language models read and wrote, for each token of the source.

    >>> model_tokens(Cost(source_tokens=100, embedded_tokens=150, llm_input_tokens=40, llm_output_tokens=10))
    2.0
    """
    if not cost.source_tokens:
        return math.nan
    return cost.tokens_ratio + (cost.llm_input_tokens + cost.llm_output_tokens) / cost.source_tokens


def cost_table(study: Study) -> Table | None:
    """Seconds by step and what models were asked, for one system alone; None where nothing is known."""
    parts: list[tuple[Column, Callable[[Report], str]]] = []
    if any(report.seconds for report in study.reports):
        parts += [(Column(step, "Seconds"), _seconds(step)) for step in STEPS]
        parts.append((Column("together", "Seconds"), lambda report: duration(total_seconds(report))))
    costs = [report.cost for report in study.reports if report.cost is not None]
    if costs:
        parts += [
            (Column("Calls", "Embedder"), _of(lambda cost: amount(cost.embedder_calls))),
            (Column("Texts", "Embedder"), _of(lambda cost: amount(cost.embedded_texts))),
            (Column("Tokens", "Embedder"), _of(lambda cost: _known(cost.embedded_tokens))),
            (Column("per source token", "Embedder"), _of(lambda cost: _ratio(cost.tokens_ratio))),
        ]
    if any(cost.llm_calls for cost in costs):
        parts += [
            (Column("Calls", "Language models"), _of(lambda cost: amount(cost.llm_calls))),
            (Column("Tokens read", "Language models"), _of(lambda cost: amount(cost.llm_input_tokens))),
            (Column("Tokens written", "Language models"), _of(lambda cost: amount(cost.llm_output_tokens))),
        ]
    if any(cost.money is not None for cost in costs):
        parts += [
            (Column("Documents", "Money"), _of(lambda cost: money(math.nan if cost.money is None else cost.money))),
            (Column("per million tokens", "Money"), _of(lambda cost: money(cost.money_per_million))),
        ]
    if not parts:
        return None
    rows = tuple(
        (named(report.name, number), *(Cell(text(report)) for _, text in parts))
        for number, report in enumerate(study.reports, 1)
    )
    return Table("What each strategy costs", (Column("Strategy", kind="text"), *(column for column, _ in parts)), rows)


def _seconds(step: str) -> Callable[[Report], str]:
    return lambda report: duration(report.seconds.get(step))


def _of(text: Callable[[Cost], str]) -> Callable[[Report], str]:
    return lambda report: MISSING if report.cost is None else text(report.cost)


def _known(value: int | None) -> str:
    return MISSING if value is None else amount(value)


def _ratio(value: float) -> str:
    return f"{value:.2f}" if math.isfinite(value) else MISSING
