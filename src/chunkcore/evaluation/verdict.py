"""What a comparison says, in sentences: nothing that the numbers do not support."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from chunkcore.evaluation.measures import Measure
from chunkcore.evaluation.results import Report

if TYPE_CHECKING:  # comparison.py imports this module
    from chunkcore.evaluation.comparison import Comparison, Difference

__all__ = ["write_verdict"]


def write_verdict(comparison: Comparison, standing: Sequence[Report], lead: Difference | None) -> str:
    """Two to five sentences.

    Args:
        comparison: everything but the verdict.
        standing: the reports for which the measure is defined, the highest mean first.
        lead: of the first over the one that it is held against; None where it stands alone.
    """
    if not standing:
        return f"{comparison.measure} is not defined for any of the strategies. There is nothing to compare."
    first = standing[0]
    queries = int(np.count_nonzero(~np.isnan(first.values(comparison.measure))))
    sentences = [_opening(comparison, first, len(standing), queries)]
    if lead is None:
        sentences.append("It is the only strategy that was scored, so there is nothing to compare it with.")
    else:
        sentences.append(_lead(comparison, lead))
        sentences.append(_cost(comparison, standing, lead))
        sentences.append(_questions(comparison, lead))
    sentences.append(_gaps(comparison, standing))
    return " ".join(sentence for sentence in sentences if sentence)


def _opening(comparison: Comparison, first: Report, standing: int, queries: int) -> str:
    measure = comparison.measure
    low, high = comparison.intervals[first.name]
    asked = f"{queries:,} question" if queries == 1 else f"{queries:,} questions"
    if comparison.clusters is not None:
        documents = len({comparison.clusters[query] for query in first.query_ids})
        asked += f" about {documents:,} documents, which were resampled whole"
    interval = f"{_confidence(comparison)} interval {_number(measure, low)} to {_number(measure, high)}"
    score = f"{_number(measure, first.mean(measure))}{' %' if measure.is_share else ''} ({interval})"
    if standing == 1:
        return f"{first.name} has a {measure} of {score} over {asked}."
    if comparison.best is not None:
        others = "the other strategy" if standing == 2 else f"each of the {standing - 1} other strategies"
        return (
            f"{first.name} is best: its {measure} is {score} over {asked}, "
            f"higher than that of {others} by more than chance explains."
        )
    seldom = f"and comes first in {100 * comparison.firsts[first.name]:.0f} % of the resamples"
    highest = f"No strategy can be called best: {first.name} has the highest {measure}, {score} over {asked}, {seldom}"
    if len(comparison.tied) == 1:
        return f"{highest}, which is less than {100 * comparison.gate:g} %."
    return f"{highest}, but the data does not tell it from {_enumerate(comparison.tied[1:])}."


def _lead(comparison: Comparison, lead: Difference) -> str:
    if _same(lead):
        pair = f"{lead.a} and {lead.b}"
        return f"{pair} score the same on every question, so no number of such questions would separate them."
    mean, low, high = (_number(lead.measure, value) for value in (lead.mean, lead.low, lead.high))
    interval = f"{_confidence(comparison)} interval of the difference {low} to {high}"
    unalike = f"higher on {lead.wins:,} questions, lower on {lead.losses:,}"
    ahead = f"It is {mean}{_points(lead.measure)} ahead of {lead.b} ({interval}; {unalike})"
    return f"{ahead}{_doubt(comparison, lead)}{_matter(comparison, lead)}."


def _doubt(comparison: Comparison, lead: Difference) -> str:
    """Why an interval that leaves 0 out is not enough."""
    if lead.distinct or not (lead.low > 0 or lead.high < 0):
        return ""
    # Even a coin that always falls on one side proves nothing in so few throws.
    if 2 * 0.5 ** (lead.wins + lead.losses) > 1 - comparison.confidence + 1e-12:
        return ", but they score differently on too few questions to tell"
    pairs = len(comparison.differences)
    among = f"among {pairs} pairs " if pairs > 1 else ""
    return f", but {among}chance alone may well give that much (p = {lead.adjusted_p:.2g})"


def _matter(comparison: Comparison, lead: Difference) -> str:
    """Which differences are shown to be too small to matter."""
    within = f"{_number(comparison.measure, comparison.margin)}{_points(comparison.measure)}"
    if lead.distinct:
        return f"; but that is surely less than {within}" if lead.equivalent else ""
    alike = [name for name in comparison.tied[1:] if comparison.between(lead.a, name).equivalent]
    if not alike:
        return ""
    return f"; {_enumerate(alike)} {'is' if len(alike) == 1 else 'are'} surely within {within} of it, as good as equal"


def _points(measure: Measure) -> str:
    return " points" if measure.is_share else ""


def _cost(comparison: Comparison, standing: Sequence[Report], lead: Difference) -> str:
    k = comparison.measure.k
    if k is None:
        return ""
    named = (lead.a, lead.b) if comparison.best is not None else comparison.tied
    costs = {report.name: report.mean_tokens(k) for report in standing if report.name in named}
    known = {name: cost for name, cost in costs.items() if not math.isnan(cost)}
    if len(known) < 2:
        return ""
    listed = ", ".join(f"{name} {known[name]:,.0f}" for name in known)
    return f"Retrieved tokens per query: {listed}; {_cheapest(known)}."


def _cheapest(costs: Mapping[str, float]) -> str:
    least = min(costs.values())
    names = [name for name, cost in costs.items() if cost == least]
    if len(names) == len(costs):
        return "they cost the same"
    return f"{_enumerate(names)} {'is' if len(names) == 1 else 'are'} the cheapest of these"


def _same(lead: Difference) -> bool:
    return lead.mean == lead.low == lead.high == 0


def _questions(comparison: Comparison, lead: Difference) -> str:
    if _same(lead) or (lead.equivalent and not lead.distinct):
        return ""  # `_lead` has said so
    needed = comparison.questions_needed
    if lead.wins + lead.losses < 2:
        return ""  # of one question's difference nobody knows how it spreads
    if needed is None:
        return (
            f"No realistic number of questions would separate {lead.a} from {lead.b}: they differ by next to nothing."
        )
    about = f"About {_rounded(needed)} such questions"
    if lead.distinct:
        return f"{about} would have separated {lead.a} from {lead.b} in 8 of 10 cases."
    return f"{about} would separate {lead.a} from {lead.b} in 8 of 10 cases, if the difference stays what it is."


def _gaps(comparison: Comparison, standing: Sequence[Report]) -> str:
    names = {report.name for report in standing}
    undefined = [report.name for report in comparison.reports if report.name not in names]
    parts = [f"{comparison.measure} is not defined for {_enumerate(undefined)}"] if undefined else []
    parts += [
        f"{report.name} left {len(report.unanswered):,} of {len(report.query_ids):,} questions unanswered, scored as 0"
        for report in standing
        if report.unanswered
    ]
    sentence = "; ".join(parts)
    return f"{sentence}." if sentence else ""


def _number(measure: Measure, value: float) -> str:
    """A share in percent; of a measure that is none, the score itself."""
    written = f"{100 * value:.1f}" if measure.is_share else f"{value:.3f}"
    return written.removeprefix("-") if not float(written) else written


def _confidence(comparison: Comparison) -> str:
    return f"{100 * comparison.confidence:g} %"


def _enumerate(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _rounded(count: int) -> str:
    """Two digits that count: an estimate from a sample's variance has no more to say."""
    return f"{int(float(f'{count:.1e}')):,}"
