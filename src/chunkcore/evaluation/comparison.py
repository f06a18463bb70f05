"""`compare`: which differences between systems are real, which are negligible, and a verdict in words.

Paired bootstrap intervals; paired randomisation tests with Holm's correction; two one-sided tests for equivalence.
docs/evidence/statistics.md has simulations of each.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any, Literal, get_args

import numpy as np

from chunkcore.errors import DataError, OptionError, check_type, echo
from chunkcore.evaluation.benchmarks.benchmark import warn_where_they_differ
from chunkcore.evaluation.measures import Measure, get_measure
from chunkcore.evaluation.resampling import (
    FEWEST_UNALIKE,
    holm,
    intervals,
    questions_to_show,
    randomisation_test,
    resampled_means,
    share_intervals,
    units_of,
)
from chunkcore.evaluation.results import Report
from chunkcore.frames import Frame, Markup, columns_of, html_table
from chunkcore.options import check_number, named_options
from chunkcore.spans import Scores

By = Literal["auto", "question", "document"]
_UNLOCATED = 0.01  # a share of unlocated pieces that the verdict names
_PER_PAIR = 10  # sign patterns drawn per pattern that the smallest corrected p-value counts
_BEST_FROM = 0.9  # of the resamples: in so many the best comes first


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference of two systems on the queries that both answered.

    Attributes:
        mean: of a - b over the queries; its interval is `low` to `high`, not widened for the number of pairs.
        distinct: the difference is significant: the interval excludes 0, and `adjusted_p` is at most 1 - confidence.
        p_value: of the randomisation test, for this pair alone.
        adjusted_p: the p-value corrected for all pairs by Holm's method.
        equivalent: two one-sided tests at 1 - confidence reject a difference of the margin or more. If fewer than six
            queries score differently, there must also be enough queries to show a difference of the margin.
        effect: Cohen's d of paired samples: mean / standard deviation of the differences; NaN if they are all equal.
        wins: queries on which a scores higher.
        losses: queries on which b scores higher.
    """

    a: str
    b: str
    measure: Measure
    mean: float
    low: float
    high: float
    distinct: bool
    p_value: float = math.nan
    adjusted_p: float = math.nan
    equivalent: bool = False
    effect: float = math.nan
    wins: int = 0
    losses: int = 0

    def reverse(self) -> Difference:
        swapped = replace(self, a=self.b, b=self.a, wins=self.losses, losses=self.wins)
        return replace(
            swapped, mean=-self.mean, low=-self.high, high=-self.low, effect=-self.effect
        )


@dataclass(frozen=True, eq=False)
class Comparison(Frame):
    """Systems on one benchmark, compared.

    Attributes:
        reports: the systems' reports.
        measure: of the verdict.
        differences: of every pair, in the reports' order.
        intervals: of each system's own mean, by name.
        firsts: by name, the share of resamples in which the system has the highest mean.
        by: what was resampled, "question" or "document".

    The other attributes are the arguments of `compare`.
    """

    reports: tuple[Report, ...]
    measure: Measure
    differences: tuple[Difference, ...]
    intervals: Mapping[str, tuple[float, float]]
    firsts: Mapping[str, float]
    resamples: int
    seed: int
    confidence: float
    margin: float
    by: Literal["question", "document"]

    def __repr__(self) -> str:
        tied = f"best: {self.best}" if self.best else f"tied: {', '.join(self.tied)}"
        return f"Comparison({self.measure}: {len(self.reports)} systems, {tied})"

    def tidy(self) -> dict[str, Sequence[Any]]:
        """A row a system: its mean by the measure, the interval, the share of firsts, ties.

        Each pair is in `differences`; each question's scores are in the reports.
        """
        rows = []
        for report in self.reports:
            name, value = report.name, report.mean(self.measure)
            rows.append(
                (
                    name,
                    str(self.measure),
                    value,
                    *self.intervals[name],
                    self.firsts[name],
                    name in self.tied,
                )
            )
        return columns_of(("system", "measure", "mean", "low", "high", "first", "tied"), rows)

    def _repr_html_(self) -> str:
        columns, order = self.tidy(), [self.reports.index(report) for report in self.ranked]
        table = html_table(
            {name: [values[at] for at in order] for name, values in columns.items()}, len(order)
        )
        return f"{Markup.of(self.verdict)}{table}"

    def between(self, a: str, b: str) -> Difference:
        """The difference a - b, in either order of the pair. Raises `KeyError` if there is no such pair."""
        if (a, b) in self._pairs:
            return self._pairs[a, b]
        return self._pairs[b, a].reverse()

    @cached_property
    def best(self) -> str | None:
        """The system that is distinct from every other, and first in 90 % of the resamples; None if there is none."""
        beats_all = len(self.tied) == 1 < len(self.standing)
        return self.tied[0] if beats_all and self.firsts[self.tied[0]] >= _BEST_FROM else None

    @cached_property
    def tied(self) -> tuple[str, ...]:
        """The system with the best mean, and all that are statistically tied with it."""
        names = [report.name for report in self.standing]
        return tuple(
            name for name in names if name == names[0] or not self.between(names[0], name).distinct
        )

    @cached_property
    def questions_needed(self) -> tuple[int, int] | None:
        """While the first is tied: how many questions would find a difference of `margin` from the next in 8 of 10
        cases, from and to; None if nothing is open, or too few scores differ.
        """
        if len(self.tied) == 1 or self.lead is None or self.lead.equivalent:
            return None
        first, rival = (
            report for name in self.tied[:2] for report in self.standing if report.name == name
        )
        apart = first.values(self.measure) - rival.values(self.measure)
        shared = 1 - (1 - self.confidence) / sum(
            not difference.distinct for difference in self.differences
        )
        clusters = shared_documents(first.documents, self.by)
        low, high = questions_to_show(self.margin, apart, confidence=shared, clusters=clusters)
        return None if math.isnan(low) else (math.ceil(low), math.ceil(high))

    @cached_property
    def verdict(self) -> str:
        """The result in two to five sentences."""
        measure, lead = self.measure, self.lead
        if not self.standing:
            return f"{measure} is not defined for any of the systems. There is nothing to compare."
        sentences = [_opening(self)]
        if lead is None:
            sentences.append(
                "It is the only system that was scored, so there is nothing to compare it with."
            )
        elif lead.mean == lead.low == lead.high == 0:
            same = f"{lead.a} and {lead.b} score the same on every question"
            sentences.append(f"{same}, so no number of such questions would separate them.")
        else:
            sentences.append(_lead(self, lead))
        if self.questions_needed is not None:
            low, high = (f"{int(float(f'{count:.1e}')):,}" for count in self.questions_needed)
            takes = f"takes {low} to {high} such questions to show in 8 of 10 cases"
            sentences.append(f"A difference of {self.within} {takes}.")
        return " ".join([*sentences, *(f"{caveat}." for caveat in _caveats(self))])

    @property
    def within(self) -> str:
        """The margin, as reports show it."""
        return f"{self.measure.show(self.margin)}{self.measure.points}"

    @cached_property
    def ranked(self) -> tuple[Report, ...]:
        """All reports, the best mean first; ties in the given order; last those in which the measure is undefined."""
        means = {
            report.name: self.measure.sign * report.mean(self.measure) for report in self.reports
        }
        keys = {name: -math.inf if math.isnan(value) else value for name, value in means.items()}
        return tuple(sorted(self.reports, key=lambda report: -keys[report.name]))

    @cached_property
    def standing(self) -> tuple[Report, ...]:
        """The reports in which the measure is defined, best first."""
        return tuple(report for report in self.ranked if not math.isnan(report.mean(self.measure)))

    @cached_property
    def lead(self) -> Difference | None:
        """Of the first from the next that is tied with it, else from the second; None without another."""
        behind = [*self.tied[1:], *(report.name for report in self.standing[1:])]
        return self.between(self.tied[0], behind[0]) if behind else None

    @cached_property
    def _pairs(self) -> dict[tuple[str, str], Difference]:
        return {(difference.a, difference.b): difference for difference in self.differences}

    def with_measure(self, measure: Measure) -> Comparison | None:
        """The comparison by another measure, at the same settings, cached; None if a report lacks the measure."""
        if measure == self.measure:
            return self
        if any(measure not in report.scores for report in self.reports):
            return None
        if measure not in self._others:
            names = ("resamples", "seed", "confidence", "margin", "by")
            settings: dict[str, Any] = {name: getattr(self, name) for name in names}
            self._others[measure] = compare(self.reports, measure, **settings)
        return self._others[measure]

    @cached_property
    def _others(self) -> dict[Measure, Comparison]:
        return {}


@named_options()
def compare(
    reports: Sequence[Report],
    measure: Measure | str = "",
    *,
    resamples: int = 10_000,
    seed: int = 0,
    confidence: float = 0.95,
    margin: float = 0.02,
    by: By = "auto",
) -> Comparison:
    """Which systems differ by more than the choice of questions explains, and which by less than matters.

    Args:
        reports: of the same benchmark's queries, in the same order.
        measure: of the verdict; by default Recall@1000tok, else Recall@5, else the first that was scored.
        margin: the smallest difference that matters, in the measure's unit.
        by: what is resampled. "document" draws documents with all their questions, so that the verdict holds for other
            documents too. "auto" is "document" if questions share documents, and there are six documents at least.

    Raises:
        OptionError: no such measure, or an option out of range.
        DataError: no reports, a repeated name, different queries, or too few or unknown documents for "document".

    Warns:
        ChangedDocumentsWarning: the reports are of different documents.

    Source: Efron and Tibshirani, An Introduction to the Bootstrap (1993), chapter 13; Holm (1979); Schuirmann (1987).

    >>> ids, where = tuple(map(str, range(40))), ("",) * 40
    >>> scores = {"a": np.ones(40), "b": np.tile([1.0, 0.0], 20)}
    >>> reports = [Report(name, "toy", ids, where, {get_measure("Recall", 5): row}) for name, row in scores.items()]
    >>> comparison = compare(reports)
    >>> comparison.best, comparison.differences[0].mean, comparison.differences[0].wins
    ('a', 0.5, 20)
    """
    check_number("resamples", resamples, 100, 1_000_000)
    check_number("seed", seed)
    check_number("confidence", confidence, whole=False)
    if not 0.5 <= confidence < 1:
        raise OptionError(f"confidence is from 0.5 to under 1, got {confidence}")
    check_number("margin", margin, whole=False)
    _check_reports(reports)
    settled = get_measure(measure or _usual_measure(reports))
    clusters = shared_documents(reports[0].documents, by)
    samples = _Samples(reports, settled, resamples, seed, confidence, clusters)
    names = [report.name for report in reports]
    low, high = samples.intervals()
    return Comparison(
        reports=tuple(reports),
        measure=settled,
        differences=tuple(samples.differences(margin)),
        intervals=dict(zip(names, zip(low.tolist(), high.tolist(), strict=True), strict=True)),
        firsts=dict(zip(names, samples.firsts().tolist(), strict=True)),
        resamples=resamples,
        seed=seed,
        confidence=confidence,
        margin=margin,
        by="question" if clusters is None else "document",
    )


def _usual_measure(reports: Sequence[Report]) -> Measure:
    usual = [get_measure("Recall@1000tok"), get_measure("Recall@5")]
    return next(
        (m for m in (*usual, *reports[0].scores) if all(m in report.scores for report in reports)),
        usual[0],
    )


def _check_reports(reports: Sequence[Report]) -> None:
    check_type(
        "what is compared", reports, Sequence, "a list of Reports, as of run_experiment or score"
    )
    for report in reports:
        check_type("what is compared", report, Report, "a Report, as of run_experiment or score")
    if not reports:
        raise DataError("there is no report to compare: expected at least one")
    repeated = [
        name for name, count in Counter(report.name for report in reports).items() if count > 1
    ]
    if repeated:
        raise DataError(f"two reports have the name {repeated[0]!r}: give each system its own")
    for report in reports[1:]:
        if report.query_ids != reports[0].query_ids:
            raise DataError(
                f"{reports[0].name!r} and {report.name!r} were scored on different queries"
            )
    warn_where_they_differ(
        (report.documents_digest for report in reports),
        "the reports are of different documents, or of different versions of them: scores are not of the same texts",
    )


def shared_documents(documents: Sequence[str], by: str) -> list[str] | None:
    """The documents of the queries if these are resampled by document, else None; `by` as in `compare`.

    >>> shared_documents(["a", "b"], "auto"), shared_documents(["a", "b"], "document")
    (None, ['a', 'b'])
    """
    if by not in get_args(By):
        raise OptionError(f'by is "auto", "question" or "document", got {echo(by)}')
    count = len(set(documents))
    if by == "document" and count < 2:
        about = "one document" if documents else "documents that the reports do not name"
        raise DataError(
            f"the questions are about {about}, so there is nothing to resample: resample by question"
        )
    is_shared = FEWEST_UNALIKE <= count < len(documents)
    return list(documents) if by == "document" or (by == "auto" and is_shared) else None


class _Samples:
    """The systems' scores and paired differences, and their means in each resample; a column a system or a pair."""

    def __init__(
        self,
        reports: Sequence[Report],
        measure: Measure,
        resamples: int,
        seed: int,
        confidence: float,
        clusters: list[str] | None,
    ) -> None:
        self._measure, self._confidence, self._clusters = measure, confidence, clusters
        self._scores = np.column_stack([report.values(measure) for report in reports])
        self._pairs = list(combinations([report.name for report in reports], 2))
        first, second = (
            np.array(list(combinations(range(len(reports)), 2)), dtype=np.int64).reshape(-1, 2).T
        )
        self._apart = self._scores[:, first] - self._scores[:, second]
        both = np.column_stack([self._scores, self._apart])
        means = resampled_means(both, resamples=resamples, seed=seed, clusters=clusters)
        self._means, self._apart_means = means[:, : len(reports)], means[:, len(reports) :]
        flips = max(resamples, math.ceil(_PER_PAIR * len(self._pairs) / (1 - confidence)))
        self._p = randomisation_test(self._apart, flips=flips, seed=seed, clusters=clusters)

    def intervals(self) -> tuple[Scores, Scores]:
        if self._measure.is_share:
            return share_intervals(self._scores, self._means, self._confidence, self._clusters)
        return intervals(self._means, units_of(self._scores, self._clusters), self._confidence)

    def firsts(self) -> Scores:
        """The share of resamples in which each system has the best mean; equal systems share."""
        signed = np.where(np.isnan(self._means), -np.inf, self._measure.sign * self._means)
        first = (signed >= signed.max(axis=1, keepdims=True) - 1e-12) & ~np.isnan(self._means)
        shares: Scores = (first / np.maximum(1, first.sum(axis=1, keepdims=True))).mean(axis=0)
        return shares

    def differences(self, margin: float) -> Iterator[Difference]:
        alpha = 1 - self._confidence
        units = units_of(self._apart, self._clusters)
        # Two one-sided tests at alpha are an interval at 1 - 2 alpha; there is none below 0.5.
        levels = (self._confidence, max(0.0, 1 - 2 * alpha))
        ends = np.array([intervals(self._apart_means, units, level) for level in levels])
        adjusted = holm(self._p).tolist()
        for number, (a, b) in enumerate(self._pairs):
            apart = self._apart[~np.isnan(self._apart[:, number]), number]
            (low, high), (narrow, wide) = ends[:, :, number].tolist()
            mean = float(apart.mean()) if len(apart) else math.nan
            deviation = float(apart.std(ddof=1)) if len(apart) > 1 else 0.0
            # After n equal scores, a share of -ln(alpha) / n may still differ, each by up to 1.
            some = np.count_nonzero(apart) >= FEWEST_UNALIKE
            unseen = 0.0 if some else -math.log(alpha) / max(1, int(units[number]))
            yield Difference(
                a,
                b,
                self._measure,
                mean,
                low,
                high,
                # Six differences of one sign (p = 2 / 64) must not fail by the rounding of 1 - 0.95.
                distinct=(low > 0 or high < 0) and adjusted[number] <= alpha + 1e-12,
                p_value=float(self._p[number]),
                adjusted_p=adjusted[number],
                equivalent=-margin < narrow and wide < margin and unseen < margin,
                effect=mean / deviation if deviation > 1e-12 else math.nan,
                wins=int(np.count_nonzero(apart > 0)),
                losses=int(np.count_nonzero(apart < 0)),
            )


def _opening(comparison: Comparison) -> str:
    measure, first, standing = comparison.measure, comparison.standing[0], len(comparison.standing)
    queries = int(np.count_nonzero(~np.isnan(first.values(measure))))
    low, high = comparison.intervals[first.name]
    questions = f"{queries:,} question{'' if queries == 1 else 's'}"
    if comparison.by == "document":
        questions += f" about {len(set(first.documents)):,} documents, which were resampled whole"
    interval = (
        f"{100 * comparison.confidence:g} % interval {measure.show(low)} to {measure.show(high)}"
    )
    score = f"{measure.show(first.mean(measure))}{measure.suffix} ({interval}) over {questions}"
    most, more = ("highest", "higher") if measure.higher_is_better else ("lowest", "lower")
    if standing == 1:
        return f"{first.name} has a {measure} of {score}."
    if comparison.best is not None:
        others = (
            "the other system" if standing == 2 else f"each of the {standing - 1} other systems"
        )
        best = f"{first.name} is best: its {measure} is {score}"
        return f"{best}, {more} than that of {others} by more than chance explains."
    share = f"is first in {100 * comparison.firsts[first.name]:.0f} % of resamples of these {comparison.by}s"
    highest = f"No system can be called best: {first.name} has the {most} {measure}, {score}"
    if len(comparison.tied) == 1:
        return f"{highest}, but {share}, which is less than {100 * _BEST_FROM:g} %."
    return (
        f"{highest}. It is statistically tied with {enumerated(comparison.tied[1:])}, and {share}."
    )


def _lead(comparison: Comparison, lead: Difference) -> str:
    measure = lead.measure
    ahead = lead if measure.higher_is_better else lead.reverse()
    mean, low, high = (measure.show(value) for value in (ahead.mean, ahead.low, ahead.high))
    interval = f"{100 * comparison.confidence:g} % interval of the difference {low} to {high}"
    unalike = (
        f"higher on {lead.wins:,} question{'' if lead.wins == 1 else 's'}, lower on {lead.losses:,}"
    )
    sentence = f"It is {mean}{measure.points} ahead of {lead.b} ({interval}; {unalike})"
    if not lead.distinct and (lead.low > 0 or lead.high < 0):
        pairs = len(comparison.differences)
        among = f"among {pairs} pairs " if pairs > 1 else ""
        # So few differences prove nothing, even if all have one sign.
        if 2 * 0.5 ** (lead.wins + lead.losses) > 1 - comparison.confidence + 1e-12:
            sentence += ", but they score differently on too few questions to tell"
        else:
            sentence += (
                f", but {among}chance alone may well give that much (p = {lead.adjusted_p:.2g})"
            )
    within = comparison.within
    alike = [name for name in comparison.tied[1:] if comparison.between(lead.a, name).equivalent]
    if lead.distinct and lead.equivalent:
        sentence += f"; the intervals show that the difference is under {within}"
    elif alike:
        sentence += f"; the intervals show that {enumerated(alike)} "
        sentence += f"{'is' if len(alike) == 1 else 'are'} within {within}"
    return f"{sentence}."


def _caveats(comparison: Comparison) -> Iterator[str]:
    undefined = [report.name for report in comparison.reports if report not in comparison.standing]
    if undefined:
        yield f"{comparison.measure} is not defined for {enumerated(undefined)}"
    for report in comparison.standing:
        if report.unanswered:
            count = f"{len(report.unanswered):,} of {len(report.query_ids):,}"
            yield f"{report.name} left {count} questions unanswered, scored as 0"
        if (share := report.unlocated_share) >= _UNLOCATED:
            what = f"{100 * share:.0f} % of what {report.name} retrieved"
            yield f"{what} was found in no document, and counts as no evidence"
    documents = comparison.reports[0].documents
    if comparison.by == "question" and 1 < len(set(documents)) < min(
        FEWEST_UNALIKE, len(documents)
    ):
        about = f"The questions are about {len(set(documents))} documents, too few to resample"
        yield f"{about}: the intervals hold for other questions about these alone"


def enumerated(names: Sequence[str]) -> str:
    """The names as in a sentence: a, b and c."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
