"""Checks for continuous integration: they fail only on a significant shortfall or drop, not by chance.

A requirement fails if the whole interval of the mean is below it; a baseline fails if the whole interval of the change
is below 0. Six questions at least are needed to fail. Checks are not corrected for each other.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from chunkcore.errors import DataError, OptionError, counted, echo
from chunkcore.evaluation.benchmarks.benchmark import warn_where_they_differ
from chunkcore.evaluation.comparison import By, compare, warn_of_counters
from chunkcore.evaluation.measures import Measure, get_measure
from chunkcore.evaluation.resampling import FEWEST_UNALIKE, mean_std
from chunkcore.evaluation.results import Report, System

_ROUNDING = 1e-9  # scores closer than this are the same: sums depend on the order of questions


class Requirement(NamedTuple):
    """The lowest mean that a measure may have."""

    measure: Measure
    bound: float

    def __str__(self) -> str:
        return f"{self.measure}>={self.bound:g}"


class Check(NamedTuple):
    """A check's result in one sentence, and whether it failed."""

    sentence: str
    failed: bool = False


def parse_requirement(text: str) -> Requirement:
    """The requirement of a text such as "nDCG@10>=0.40".

    Raises `OptionError`: malformed, as an upper bound is, or the measure cannot have such a score.

    >>> parse_requirement("nDCG@10 >= 0.40").bound
    0.4
    """
    try:
        name, number = text.split(">=")
        bound = float(number)
    except ValueError:
        raise OptionError(
            f"{echo(text)} is no requirement: expected something like HitRate@5>=0.70"
        ) from None
    measure = get_measure(name)
    allowed, most = "a finite number from 0", sys.float_info.max
    if measure.is_share:
        allowed, most = "a share from 0 to 1, such as 0.70", 1
    if not 0 <= bound <= most:
        raise OptionError(f"{measure} is {allowed}, got {bound:g}")
    return Requirement(measure, bound)


def check_requirement(
    report: Report,
    requirement: Requirement | str,
    *,
    resamples: int = 10_000,
    seed: int = 0,
    by: By = "auto",
) -> Check:
    """Check that a measure's mean is not significantly worse than required; `by` as of `compare`.

    Raises `OptionError`: no such requirement, or the report lacks its measure.

    >>> scores = {get_measure("HitRate@5"): np.array([0.0] * 7 + [1.0])}
    >>> report = Report("a", "toy", tuple("12345678"), ("",) * 8, scores)
    >>> check_requirement(report, "HitRate@5>=0.70").failed, check_requirement(report, "HitRate@5>=0.30").failed
    (True, False)
    """
    required = parse_requirement(requirement) if isinstance(requirement, str) else requirement
    measure = required.measure
    mean, _, count = mean_std(report.values(measure))
    if not count:
        return Check(
            f"{report.name}: {required} was not checked, as {measure} is not defined here."
        )
    comparison = compare([report], measure, resamples=resamples, seed=seed, by=by)
    low, high = comparison.intervals[report.name]
    score, lowest, highest, limit = (
        measure.show(value) + measure.suffix for value in (mean, low, high, required.bound)
    )
    interval = f"95 % interval {lowest} to {highest}"
    about = f"{report.name}: {measure} is {score} ({interval}, {counted(count, 'question')})"
    least = required.bound - _ROUNDING
    if mean >= least:
        though = ", though the interval reaches under it" if low < least else ""
        return Check(f"{about}, meets the required {limit}: passed{though}.")
    about += f", under the required {limit}"
    doubt = "the interval reaches it"
    if high < least:
        if count >= FEWEST_UNALIKE:
            return Check(f"{about}: failed.", failed=True)
        doubt = "six questions at least are needed to tell"
    return Check(f"{about}, but {doubt}: passed, as these questions do not show a shortfall.")


def check_baseline(
    report: Report,
    earlier: Report,
    measure: Measure,
    *,
    resamples: int = 10_000,
    seed: int = 0,
    by: By = "auto",
) -> Check:
    """Check that a measure's mean is not significantly worse than in an earlier report; questions are paired by id.

    `by` is as of `compare`.

    Raises:
        DataError: no question in common, or k = "min" counted by different rules.
        OptionError: a report lacks the measure.

    Warns:
        ChangedDocumentsWarning: the documents have changed.
        UserWarning: different counters counted the tokens.

    >>> ids, recall = tuple("12345678"), get_measure("Recall@5")
    >>> before = Report("a", "toy", ids, ("",) * 8, {recall: np.ones(8)})
    >>> now = Report("a", "toy", ids, ("",) * 8, {recall: np.array([0.5] * 7 + [1.0])})
    >>> check_baseline(now, before, recall).failed, check_baseline(before, now, recall).failed
    (True, False)
    """
    now, before = _paired(report, earlier, measure)
    change = compare([now, before], measure, resamples=resamples, seed=seed, by=by).differences[0]
    if math.isnan(change.mean):
        return Check(
            f"{report.name}: the change of {measure} is not known, as it is not defined here."
        )
    low, high = (measure.show(end, signed=True) for end in (change.low, change.high))
    common = len(now.query_ids)
    noun, others = "question", ""
    for side, state in ((report, "new"), (earlier, "gone")):
        if len(side.query_ids) > common:
            noun = "common question"
            others += f", {len(side.query_ids) - common:,} {state}"
    interval = f"95 % interval of the change {low} to {high}"
    was, shown = (measure.show(side.mean(measure)) + measure.suffix for side in (before, now))
    moved = f"stayed at {shown}"
    if abs(change.mean) >= _ROUNDING:
        verb = "rose" if change.mean > 0 else "fell"
        moved = f"{verb} from {was} to {shown}"
    about = f"{report.name}: {measure} {moved} on {counted(common, noun)}{others} ({interval})"
    if change.mean > -_ROUNDING:
        return Check(f"{about}: passed.")
    if change.distinct:
        return Check(f"{about}: failed.", failed=True)
    doubt = "which chance may explain"
    if change.low * change.high > 0:
        doubt = "but too few questions differ to tell"
    return Check(f"{about}, {doubt}: passed.")


def _paired(report: Report, earlier: Report, measure: Measure) -> tuple[Report, Report]:
    """Both reports' scores of the questions that both have; NaN where one of them is undefined."""
    earlier_rows = {query: row for row, query in enumerate(earlier.query_ids)}
    rows = [row for row, query in enumerate(report.query_ids) if query in earlier_rows]
    if not rows:
        one, other = next(iter(report.query_ids), "none"), next(iter(earlier.query_ids), "none")
        raise DataError(
            f"{echo(report.name)} and the earlier {echo(earlier.name)} have no question in common "
            f"({one!r} and {other!r} are among theirs): give a report on the same questions"
        )
    warn_where_they_differ(
        (report.documents_digest, earlier.documents_digest),
        "the documents have changed since the earlier report was written: scores before and now are of different texts",
    )
    warn_of_counters(measure, [report, earlier])
    if measure.needs_pool and report.min_rule != earlier.min_rule:
        raise DataError(
            f"{measure} counted chunks {earlier.min_rule} evidence before and {report.min_rule} it now: "
            "give both the same min_rule"
        )
    names = tuple(report.query_ids[row] for row in rows)
    documents = tuple(report.documents[row] for row in rows if report.documents)
    same = [earlier_rows[query] for query in names]
    scores = np.stack((report.values(measure)[rows], earlier.values(measure)[same]))
    scores[:, np.isnan(scores).any(axis=0)] = math.nan
    alike = partial(Report, benchmark="", query_ids=names, collections=names, documents=documents)
    now, before = scores
    return alike("now", scores={measure: now}), alike("before", scores={measure: before})


def check_names(names: Sequence[str], earlier: Sequence[Report]) -> None:
    """Check before long work that a baseline has one of these systems.

    A single system is compared with a single earlier one, whatever their names.
    """
    before = [report.chunker for report in earlier]
    is_single = len(names) == len(earlier) == 1
    if not is_single and not set(before) & set(names):
        raise _strangers(names, before)


def _strangers(names: Sequence[str], before: Sequence[str]) -> DataError:
    return DataError(
        f"the baseline has none of the systems: it has {', '.join(before)}; compared are {', '.join(names)}"
    )


def with_earlier(
    reports: Sequence[Report], earlier: Sequence[Report]
) -> list[tuple[Report, Report]]:
    """Each report with the earlier one of its system, if there is one."""
    if len(reports) == len(earlier) == 1:
        return [(reports[0], earlier[0])]
    # The same system, which several retrievers or embedders name otherwise; or what was called the same.
    # A model keeps its name where another machine or command runs it with another backend.
    named: dict[object, Report] = {report.name: report for report in earlier}
    known = [report for report in earlier if report.system.chunker]
    named |= {_of_any_backend(report.system): report for report in known}
    named |= {report.system: report for report in known}
    pairs = []
    for report in reports:
        keys = report.system, _of_any_backend(report.system), report.name
        before = next((named[key] for key in keys if key in named), None)
        if before is not None:
            pairs.append((report, before))
    if not pairs:
        raise _strangers([report.name for report in reports], [report.name for report in earlier])
    return pairs


def _of_any_backend(system: System) -> System:
    """The system with its model's name without what runs it, as "openvino:" or "openvino-bf16:"."""
    backend, _, model = system.embedder.partition(":")
    return replace(system, embedder=model or backend)
