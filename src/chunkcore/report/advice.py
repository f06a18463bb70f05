"""`Advice`: what to use, why, and what to avoid, first on the terminal, in Markdown and on the page."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from chunkcore.chunkers.base import get_chunker
from chunkcore.errors import ChunkcoreError
from chunkcore.escaping import markdown_cell
from chunkcore.evaluation.comparison import Comparison
from chunkcore.evaluation.measures import Measure, budget_of, describe_depth
from chunkcore.evaluation.results import Report
from chunkcore.models.loading import DEFAULT_MODEL
from chunkcore.report.page import ReportPage, mean
from chunkcore.report.pasting import snippets
from chunkcore.report.tables import FEW, cost_axis, listed
from chunkcore.tuning import CHOICE, Tuning

_ALIKE = 1.05  # costs within 5 % count as equal
_DEAR = 2.0  # a tied strategy that costs so many times as much is named


@dataclass(frozen=True)
class Advice:
    """What to do after a comparison or a search.

    Attributes:
        use: the strategy to use, as its report names it; "" if none can be advised.
        lines: labels and sentences, the most important first.
        pasted: by title, code that builds the strategy; empty for a system that is no strategy.
        command: what to run next.
    """

    use: str
    lines: tuple[tuple[str, str], ...]
    pasted: Mapping[str, str] = field(default_factory=dict)
    command: str = ""

    @classmethod
    def of(cls, page: ReportPage) -> Advice:
        """Of the tied: the cheapest whose mean is within the comparison's margin of the highest."""
        if page.tuning is not None:
            return cls._of_tuning(page, page.tuning)
        found, measure = page.comparison, page.comparison.measure
        standing = {report.name: report for report in found.standing}
        if not standing:
            return cls("", (("Use", f"Nothing can be advised: {measure} is not defined for any of them."),))
        asked = int(np.count_nonzero(~np.isnan(standing[found.tied[0]].values(measure))))
        costs = _Costs.on(page)
        first = found.tied[0]
        best = mean(standing[first], measure)
        # Being tied is no chain: one of the tied may still be surely worse than another.
        beaten = {name for name in standing for each in found.tied if name != each and _worse(found, name, each)}
        near = [
            name
            for name, report in standing.items()
            if name not in beaten and abs(best - mean(report, measure)) <= found.margin
        ]
        least = min(costs.of[name] for name in near)
        use = next(name for name in near if not costs.of[name] > _ALIKE * least)
        few = asked < FEW
        lines = [("For now" if few else "Use", f"{use}: {_quality(page, use)}")]
        tied = [
            name for name in standing if name != use and not _worse(found, name, use) and not _worse(found, use, name)
        ]
        within = f"{measure.show(found.margin)}{measure.points}"
        if tied:
            margin = " (the margin: smaller differences count as none)" if found.margin else ""
            shown = f"{listed(tied)}: {asked:,} questions show no sure difference of {within} or more{margin}."
            lines.append(("As good", shown))
            lines.append(("Why this one", _reason(use, near, costs, found.margin, measure)))
        if avoid := _avoided(page, use, tied, costs):
            lines.append(("Avoid", avoid))
        if few:
            more = f"{asked} questions settle little: label {FEW - asked} more at least, and compare again."
            lines.append(("Next", more))
        elif settled := _settled(page, use, tied, asked):
            lines.append(("To settle it", settled))
        return cls(use, tuple(lines), _pasted(page, standing[use]), page.more_questions if few else "")

    @classmethod
    def _of_tuning(cls, page: ReportPage, tuning: Tuning) -> Advice:
        """The winner if held-out questions show a gain over the default, else the default."""
        measure, change = tuning.measure, tuning.difference
        low, high = map(measure.show, tuning.comparison.intervals[CHOICE])
        report = tuning.held_out if tuning.gain else tuning.comparison.reports[1]
        asked = len(report.query_ids)
        expected = f"expect a {measure} of {measure.show(report.mean(measure))}{measure.suffix} on other questions"
        ends = f"{measure.show(change.low, signed=True)} to {measure.show(change.high, signed=True)}"
        lead = f"{measure.show(change.mean, signed=True)}{measure.points} (95 % interval {ends})"
        if tuning.gain:
            lines = [
                ("For now" if asked < FEW else "Use", f"{tuning.use}: {expected} ({low} to {high})."),
                ("Why", f"On questions that did not choose it, it is {lead} from the default, {tuning.default}."),
            ]
        else:
            lines = [
                ("Keep the default", f"{tuning.use}: {expected}."),
                ("Why", f"The choice of the others is {lead} from it on questions that did not choose: no sure gain."),
            ]
        if asked < FEW:
            lines.append(("Next", f"{asked} questions settle little: label {FEW - asked} more at least, tune again."))
        return cls(
            tuning.use,
            tuple(lines),
            _pasted(page, tuning.report(tuning.use)),
            page.more_questions if asked < FEW else "",
        )

    def markdown(self) -> str:
        """The lines as a list, then the first block of code to paste, folded."""
        parts = ["\n".join(f"- **{label}** {markdown_cell(text)}" for label, text in self.lines)]
        if self.command:
            parts.append(_fenced(self.command))
        if self.pasted:
            title, text = next(iter(self.pasted.items()))  # the page has the others
            block = f"{markdown_cell(title)}:\n\n{_fenced(text)}"
            parts += ["<details><summary>Lines to paste</summary>", block, "</details>"]
        return "\n\n".join(parts)


def _pasted(page: ReportPage, use: Report) -> Mapping[str, str]:
    """The code that builds a system; none for a deployed system, which is no chunker."""
    chunker, retriever, embedder = use.system
    models = [page.embedders[embedder]] if embedder in page.embedders else list(page.embedders.values())
    with suppress(ChunkcoreError):
        get_chunker(chunker)
        return snippets(chunker, retriever, models[0] if len(models) == 1 else DEFAULT_MODEL)
    return {}


def _fenced(text: str) -> str:
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}\n{text}\n{fence}"


def _worse(found: Comparison, name: str, other: str) -> bool:
    """Whether one is worse than the other by more than chance explains, and not surely by less than the margin."""
    gap = found.between(other, name)
    ahead = gap.mean > 0 if found.measure.higher_is_better else gap.mean < 0
    return gap.distinct and not gap.equivalent and ahead


def _quality(page: ReportPage, name: str) -> str:
    measure = page.comparison.measure
    report = next(each for each in page.reports if each.name == name)
    low, high = map(measure.show, page.comparison.intervals[name])
    score = f"{measure.show(mean(report, measure))}{measure.suffix}"
    if measure.kind == "Recall" and measure.unit == "token" and measure.k is not None:
        budget = budget_of(measure.k)
        where = f"{describe_depth(measure.k)}" if budget is None else f"{budget:,} retrieved tokens"
        told = f"it finds {score} of the evidence in {where}"
    else:
        told = f"its {measure} is {score}"
    return f"{told} ({page.level} interval {low} to {high})."


class _Costs(NamedTuple):
    """What is to be kept low: retrieved tokens; where all retrieve a budget, what indexing takes. NaN if unknown."""

    of: Mapping[str, float]
    noun: str
    shown: str

    @classmethod
    def on(cls, page: ReportPage) -> _Costs:
        k = page.comparison.measure.k
        names = [report.name for report in page.reports]
        retrieved = {each.name: math.nan if k is None else each.mean_tokens(k) for each in page.reports}
        if k is not None and budget_of(k) is None and all(map(math.isfinite, retrieved.values())):
            return cls(retrieved, "retrieved tokens", "{0:,.0f} a question, others up to {1:,.0f}")
        axis = cost_axis(page)
        values = axis.values if axis else [math.nan] * len(names)
        shown = "models read {0:.1f} tokens for each of the documents, others up to {1:.1f}"
        if axis and axis.title == "cost":
            shown = "{0:.3g} for a million tokens, others up to {1:.3g}"
        return cls(dict(zip(names, values, strict=True)), "cost to index", shown)


def _reason(use: str, near: Sequence[str], costs: _Costs, margin: float, measure: Measure) -> str:
    within = f"{measure.show(margin)}{measure.points}"
    if len(near) == 1:
        return f"It has the highest score; the tied are more than {within} lower, though that may be chance."
    least, dearest = costs.of[use], max(costs.of[name] for name in near)
    if not dearest > _ALIKE * least:
        return f"It has the highest score, and no other within {within} of it is known to cost less."
    most = "fewest" if costs.noun.endswith("s") else "lowest"
    amounts = costs.shown.format(least, dearest)
    return f"It has the {most} {costs.noun} of those within {within} of the highest score: {amounts}."


def _avoided(page: ReportPage, use: str, tied: Sequence[str], costs: _Costs) -> str:
    found, measure = page.comparison, page.comparison.measure
    word = "lower" if measure.higher_is_better else "higher"
    gaps = [found.between(use, each.name) for each in page.reports if each.name != use]
    worse = sorted((each for each in gaps if _worse(found, each.b, use)), key=lambda each: -abs(each.mean))
    sentences = []
    if worse:
        told = [f"{each.b} ({measure.show(abs(each.mean))}{measure.points} {word})" for each in worse]
        sentences.append(f"{listed(told)}: more than chance explains.")
    ratios = {name: costs.of[name] / costs.of[use] for name in tied if costs.of[name] > _DEAR * costs.of[use] > 0}
    if ratios:
        told = [f"{name} ({ratio:.1f} times the {costs.noun})" for name, ratio in ratios.items()]
        sentences.append(f"{listed(told)}: for nothing that these questions show.")
    return " ".join(sentences)


def _settled(page: ReportPage, use: str, tied: Sequence[str], asked: int) -> str:
    found, measure = page.comparison, page.comparison.measure
    within = f"{measure.show(found.margin)}{measure.points}"
    if not tied:
        return ""
    if all(found.between(use, name).equivalent for name in tied):
        return f"Nothing: all of these are surely within {within} of each other."
    if found.questions_needed is None:
        return ""
    low, high = (f"{max(0, int(float(f'{each:.1e}')) - asked):,}" for each in found.questions_needed)
    return f"{low} to {high} more questions; so many show a difference of {within} in 8 of 10 cases."
