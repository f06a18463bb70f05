"""`compare`: which differences between systems are real, which are negligible, and a verdict in words.

Paired bootstrap intervals; paired randomisation tests, corrected for all pairs by their max-statistic; two one-sided
tests for equivalence. docs/evidence/statistics.md has simulations of each.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import combinations
from typing import Any, Literal, get_args

import numpy as np

from chunkcore.errors import DataError, OptionError, counted, echo, warn_user
from chunkcore.evaluation.benchmarks.benchmark import warn_where_they_differ
from chunkcore.evaluation.measures import Measure, budget_of, get_measure
from chunkcore.evaluation.resampling import (
    CONFIDENCE,
    FEWEST_UNALIKE,
    Clusters,
    CurvePoint,
    PValues,
    column_means,
    curve_points,
    intervals,
    mean_std,
    questions_to_show,
    randomisation_test,
    resampled_means,
    share_intervals,
    units_of,
    units_to_show,
)
from chunkcore.evaluation.results import Report
from chunkcore.options import check_number, suggesting
from chunkcore.plain import Frame, columns_of
from chunkcore.spans import Numbers, Scores

By = Literal["auto", "question", "document"]
_ALPHA = 1 - CONFIDENCE  # of each test
_UNLOCATED = 0.01  # a share of unlocated pieces that the verdict names


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference of two systems on the queries that both answered.

    Attributes:
        mean: of a - b over the queries; its interval is `low` to `high`, not widened for the number of pairs.
        distinct: the difference is shown: the interval excludes 0, and `adjusted_p` is at most 0.05.
        likely: this pair alone shows it, whatever else is compared: the interval excludes 0, and so small is `p_value`.
        p_value: of the randomisation test, for this pair alone.
        adjusted_p: the p-value corrected for all pairs by the max-statistic; see `randomisation_test`.
        equivalent: two one-sided tests at 5 % reject a difference of the margin or more. If fewer than six
            queries score differently, there must also be enough queries to show a difference of the margin.
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
    likely: bool
    p_value: float
    adjusted_p: float
    equivalent: bool
    wins: int
    losses: int

    def reverse(self) -> Difference:
        return replace(
            self,
            a=self.b,
            b=self.a,
            mean=-self.mean,
            low=-self.high,
            high=-self.low,
            wins=self.losses,
            losses=self.wins,
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
        clusters: each question's document if documents were resampled; None if questions were.
        baseline: the system in use today, by name.

    The other attributes are the arguments of `compare`.
    """

    reports: tuple[Report, ...]
    measure: Measure
    differences: tuple[Difference, ...]
    intervals: Mapping[str, tuple[float, float]]
    firsts: Mapping[str, float]
    resamples: int
    seed: int
    margin: float
    clusters: Clusters
    baseline: str

    def __repr__(self) -> str:
        result = f"best: {self.best}" if self.best else f"tied: {', '.join(self.tied)}"
        return f"Comparison({self.measure}: {len(self.reports)} systems, {result})"

    def tidy(self) -> dict[str, Sequence[object]]:
        """A row a system, the best first: its mean by the measure, the interval, the share of firsts, ties.

        Each pair is in `differences`; each question's scores are in the reports.
        """
        names = "system measure mean low high first tied"
        rows = []
        for report in self.ranked:
            name = report.name
            ends, first = self.intervals[name], self.firsts[name]
            mean = report.mean(self.measure)
            rows.append((name, str(self.measure), mean, *ends, first, name in self.tied))
        return columns_of(names.split(), rows)

    def between(self, a: str, b: str) -> Difference:
        """The difference a - b, in either order of the pair. Raises `KeyError` if there is no such pair."""
        return self._pairs[a, b]

    @cached_property
    def against(self) -> tuple[Difference, ...]:
        """Each other system's difference from the baseline, the best first."""
        names = [report.name for report in self.standing]
        if self.baseline not in names:
            return ()
        return tuple(self.between(name, self.baseline) for name in names if name != self.baseline)

    @cached_property
    def _gaps(self) -> list[Difference]:
        """The first's difference from each other system, the best first."""
        return [self.between(self.standing[0].name, other.name) for other in self.standing[1:]]

    @cached_property
    def best(self) -> str | None:
        """The system that every other is shown to be behind; None if there is none."""
        if self._gaps and all(gap.distinct for gap in self._open):
            return self.standing[0].name
        return None

    @cached_property
    def _open(self) -> list[Difference]:
        """The gaps to systems that were asked everything."""
        stopped = {report.name for report in self.stopped}
        return [gap for gap in self._gaps if gap.b not in stopped]

    @property
    def stopped(self) -> list[Report]:
        """The systems that were not asked all questions, as they were surely behind; they stand last."""
        return [report for report in self.standing if report.asked is not None]

    @cached_property
    def tied(self) -> tuple[str, ...]:
        """The system with the best mean, and all that by their pair alone may be as good."""
        alike = [gap.b for gap in self._open if not gap.likely]
        return (*[report.name for report in self.standing[:1]], *alike)

    @cached_property
    def unsettled(self) -> tuple[Difference, ...]:
        """The first's differences that are likely, but may be chance among so many systems."""
        return tuple(gap for gap in self._gaps if gap.likely and not gap.distinct)

    @cached_property
    def questions_needed(self) -> tuple[int, int] | None:
        """While the first is tied: how many questions would find a difference of `margin` from the next in 8 of 10
        cases, from and to; None if nothing is open, or too few scores differ.
        """
        if len(self.tied) < 2 or self.lead is None or self.lead.equivalent:
            return None
        undecided = sum(not difference.distinct for difference in self.differences)
        shared = 1 - _ALPHA / undecided
        apart = self._apart(self.lead)
        low, high = questions_to_show(self.margin, apart, shared, self.clusters)
        return None if math.isnan(low) else (math.ceil(low), math.ceil(high))

    def units_needed(self, gap: Difference) -> int:
        """About how many documents (or questions, see `by`) show a gap of this size, among so many systems."""
        shared = 1 - _ALPHA / max(1, len(self.standing) - 1)
        needed = units_to_show(self._apart(gap), shared, self.clusters)
        return max(self.units + 1, math.ceil(needed))

    @property
    def units(self) -> int:
        """The documents that were resampled, or the questions."""
        first = self.reports[0]
        return len(set(first.documents)) if self.by == "document" else len(first.query_ids)

    def _apart(self, gap: Difference) -> Scores:
        reports = {report.name: report for report in self.reports}
        return reports[gap.a].values(self.measure) - reports[gap.b].values(self.measure)

    @property
    def by(self) -> Literal["question", "document"]:
        """What was resampled."""
        return "question" if self.clusters is None else "document"

    @cached_property
    def verdict(self) -> str:
        """The result in two to six sentences."""
        return " ".join(_sentences(self))

    @property
    def within(self) -> str:
        """The margin, as reports show it."""
        return f"{self.measure.show(self.margin)}{self.measure.points}"

    @cached_property
    def ranked(self) -> tuple[Report, ...]:
        """All reports, the best mean first; ties in the given order; last those in which the measure is undefined."""
        undefined = [report for report in self.reports if report not in self.standing]
        return (*self.standing, *undefined)

    @cached_property
    def standing(self) -> tuple[Report, ...]:
        """The reports in which the measure is defined, best first; last those that were stopped."""
        measure = self.measure
        defined = [report for report in self.reports if not math.isnan(report.mean(measure))]
        defined.sort(key=lambda report: (report.asked is not None, -report.mean(measure)))
        return tuple(defined)

    @cached_property
    def lead(self) -> Difference | None:
        """Of the first from the next that is tied with it, else from the second; None without another."""
        return min(self._gaps, key=lambda gap: gap.b not in self.tied, default=None)

    @cached_property
    def _pairs(self) -> dict[tuple[str, str], Difference]:
        pairs = {}
        for gap in self.differences:
            pairs[gap.a, gap.b], pairs[gap.b, gap.a] = gap, gap.reverse()
        return pairs

    @cached_property
    def curves(self) -> Mapping[str, Sequence[CurvePoint]]:
        """By name, evidence against tokens, with bands; only of the systems of which it was measured."""
        curves = {}
        for report in self.ranked:
            if report.curve:
                curves[report.name] = curve_points(
                    list(report.curve),
                    np.column_stack(list(report.curve.values())),
                    self.clusters,
                    self.resamples,
                    self.seed,
                )
        return curves


@suggesting
def compare(
    reports: Sequence[Report],
    measure: Measure | str = "",
    *,
    baseline: str = "",
    resamples: int = 10_000,
    seed: int = 0,
    margin: float = 0.02,
    by: By = "auto",
) -> Comparison:
    """Compare systems: which differences are real, and which are too small to matter.

    Time and memory grow with the pairs of systems, times `resamples`.

    Args:
        reports: of the same benchmark's queries, in the same order.
        measure: of the verdict; by default the first that was scored.
        baseline: the name of the system that is in use today; by default the first.
        margin: the smallest difference that matters, in the measure's unit.
        by: what is resampled. "document" draws documents with all their questions, so that the verdict holds for other
            documents too. "auto" is "document" if questions share documents, and there are six documents at least.

    Raises:
        OptionError: no such measure or baseline, or an option out of range.
        DataError: no reports, a repeated name, different queries, or too few or unknown documents for "document".

    Warns:
        ChangedDocumentsWarning: the reports are of different documents.
        UserWarning: different counters counted their tokens.

    Source: Efron and Tibshirani, An Introduction to the Bootstrap (1993), chapter 13; Westfall and Young,
    Resampling-Based Multiple Testing (1993); Schuirmann (1987).

    >>> ids, where = tuple(map(str, range(40))), ("",) * 40
    >>> scores = {"a": np.ones(40), "b": np.tile([1.0, 0.0], 20)}
    >>> reports = [Report(name, "toy", ids, where, {get_measure("Recall", 5): row}) for name, row in scores.items()]
    >>> comparison = compare(reports)
    >>> comparison.best, comparison.differences[0].mean, comparison.differences[0].wins
    ('a', 0.5, 20)
    """
    check_number("resamples", resamples, 100, 1_000_000)
    check_number("seed", seed)
    check_number("margin", margin, whole=False)
    _check_reports(reports)
    names = [report.name for report in reports]
    if baseline and baseline not in names:
        raise OptionError(
            f"no system is called {echo(baseline)}: expected one of {enumerated(names)}"
        )
    settled = get_measure(measure or next(iter(reports[0].scores), "Recall@5"))
    warn_of_counters(settled, reports)
    clusters = shared_documents(reports[0].documents, by)
    drawn = partial(resampled_means, resamples=resamples, seed=seed, clusters=clusters)
    scores = np.column_stack([report.values(settled) for report in reports])
    means = drawn(scores)
    if settled.is_share:
        low, high = share_intervals(scores, means, clusters)
    else:
        low, high = intervals(means, units_of(scores, clusters), CONFIDENCE)
    first, second = np.triu_indices(len(names), 1)
    apart = scores[:, first] - scores[:, second]
    tests = randomisation_test(apart, resamples, seed, clusters)
    units = units_of(apart, clusters)
    columns = _difference_columns(apart, drawn(apart), units, tests, margin)
    pairs = zip(combinations(names, 2), zip(*columns, strict=True), strict=True)
    return Comparison(
        reports=tuple(reports),
        measure=settled,
        differences=tuple(Difference(*pair, settled, *row) for pair, row in pairs),
        intervals=dict(zip(names, zip(low.tolist(), high.tolist(), strict=True), strict=True)),
        firsts=dict(zip(names, _firsts(reports, means), strict=True)),
        resamples=resamples,
        seed=seed,
        margin=margin,
        clusters=clusters,
        baseline=baseline or names[0],
    )


def _firsts(reports: Sequence[Report], means: Scores) -> list[float]:
    """The share of resamples in which each system has the best mean; equal ones share it."""
    is_out = np.isnan(means) | [report.asked is not None for report in reports]
    means = np.where(is_out, -np.inf, means)
    is_first = (means >= means.max(axis=1, keepdims=True) - 1e-12) & ~is_out
    counts = is_first.sum(axis=1, keepdims=True)
    shares: list[float] = (is_first / np.maximum(1, counts)).mean(axis=0).tolist()
    return shares


def _difference_columns(
    apart: Scores,
    means: Scores,
    units: Numbers,
    tests: PValues,
    margin: float,
) -> list[list[Any]]:
    """The fields of `Difference` from `mean` on: a column a field, a row a pair."""
    low, high = intervals(means, units, CONFIDENCE)
    # Two one-sided tests at alpha are an interval at 1 - 2 alpha.
    narrow, wide = intervals(means, units, 1 - 2 * _ALPHA)
    # After n equal scores, a share of -ln(alpha) / n may still differ, each by up to 1.
    unseen = -math.log(_ALPHA) / np.maximum(1, units)
    is_seen = np.count_nonzero(np.nan_to_num(apart), axis=0) >= FEWEST_UNALIKE
    # Six differences of one sign (p = 2 / 64) must not fail by the rounding of 1 - 0.95.
    most = _ALPHA + 1e-12
    excludes_zero = (low > 0) | (high < 0)
    columns = (
        column_means(apart),
        low,
        high,
        excludes_zero & (tests.together <= most),
        excludes_zero & (tests.alone <= most),
        tests.alone,
        tests.together,
        (-margin < narrow) & (wide < margin) & (is_seen | (unseen < margin)),
        np.count_nonzero(apart > 0, axis=0),
        np.count_nonzero(apart < 0, axis=0),
    )
    return [column.tolist() for column in columns]


def _check_reports(reports: Sequence[Report]) -> None:
    if not reports:
        raise DataError("there is no report to compare: expected at least one")
    for name, count in Counter(report.name for report in reports).items():
        if count > 1:
            raise DataError(f"two reports have the name {name!r}: give each system its own")
    for report in reports[1:]:
        if report.query_ids != reports[0].query_ids:
            raise DataError(
                f"{reports[0].name!r} and {report.name!r} were scored on different queries"
            )
    warn_where_they_differ(
        (report.documents_digest for report in reports),
        "the reports are of different documents, or of different versions of them: scores are not of the same texts",
    )


def warn_of_counters(measure: Measure, reports: Sequence[Report]) -> None:
    """Warn if the measure looks at tokens, and two known counters counted them."""
    counters = sorted({report.counter for report in reports} - {""})
    if len(counters) > 1 and (measure.unit == "token" or budget_of(measure.k)):
        warn_user(
            f"{measure} counted tokens of {enumerated(counters)}: score the reports with one counter"
        )


def shared_documents(documents: Collection[str], by: str) -> list[str] | None:
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


def _sentences(comparison: Comparison) -> Iterator[str]:
    if not comparison.standing:
        yield f"{comparison.measure} is not defined for any of the systems. There is nothing to compare."
        return
    yield _opening(comparison)
    lead = comparison.lead
    if lead is None:
        yield "It is the only system that was scored, so there is nothing to compare it with."
    elif lead.mean == lead.low == lead.high == 0:
        same = f"{lead.a} and {lead.b} score the same on every question"
        yield f"{same}, so no number of such questions would separate them."
    else:
        yield _lead(comparison, lead)
    if comparison.unsettled:
        yield unsettled_words(comparison, comparison.unsettled)
    if comparison.questions_needed is not None:
        low, high = map(rounded, comparison.questions_needed)
        takes = f"takes {low} to {high} such questions to show in 8 of 10 cases"
        yield f"A difference of {comparison.within} {takes}."
    yield from _caveats(comparison)


def _opening(comparison: Comparison) -> str:
    measure, first = comparison.measure, comparison.standing[0]
    mean, _, count = mean_std(first.values(measure))
    questions = counted(count, "question")
    if comparison.by == "document":
        questions += f" about {comparison.units:,} documents, which were resampled whole"
    low, high = map(measure.show, comparison.intervals[first.name])
    interval = f"95 % interval {low} to {high}"
    score = f"{measure.show(mean)}{measure.suffix} ({interval}) over {questions}"
    if len(comparison.standing) == 1:
        return f"{first.name} has a {measure} of {score}."
    if comparison.best is not None:
        best = f"{first.name} is best: its {measure} is {score}"
        return f"{best}, higher than that of any other system by more than chance explains."
    highest = f"No system can be called best: {first.name} has the highest {measure}, {score}"
    share = f"is first in {100 * comparison.firsts[first.name]:.0f} % of resamples of these {comparison.by}s"
    if len(comparison.tied) == 1:
        return f"{highest}, and {share}."
    return (
        f"{highest}. It is statistically tied with {enumerated(comparison.tied[1:])}, and {share}."
    )


def _lead(comparison: Comparison, lead: Difference) -> str:
    measure = lead.measure
    mean, low, high = map(measure.show, (lead.mean, lead.low, lead.high))
    interval = f"95 % interval of the difference {low} to {high}"
    unalike = f"higher on {counted(lead.wins, 'question')}, lower on {lead.losses:,}"
    sentence = f"It is {mean}{measure.points} ahead of {lead.b} ({interval}; {unalike})"
    if (lead.low > 0 or lead.high < 0) and not lead.likely:
        sentence += ", but they score differently on too few questions to tell"
    within = comparison.within
    alike = [name for name in comparison.tied[1:] if comparison.between(lead.a, name).equivalent]
    if lead.distinct and lead.equivalent:
        sentence += f"; the intervals show that the difference is under {within}"
    elif alike:
        verb = "is" if len(alike) == 1 else "are"
        sentence += f"; the intervals show that {enumerated(alike)} {verb} within {within}"
    return f"{sentence}."


def unsettled_words(comparison: Comparison, gaps: Sequence[Difference]) -> str:
    """Which systems are likely behind, and how many documents or questions would settle it."""
    verb, lead = "are", "intervals leave"
    if len(gaps) == 1:
        verb, lead = "is", "interval leaves"
    names = listed([gap.b for gap in gaps])
    pairs = counted(len(comparison.differences), "pair")
    most = max(gap.adjusted_p for gap in gaps)
    chance = f"among {pairs} chance alone may do that (p up to {most:.2g})"
    needed = rounded(max(map(comparison.units_needed, gaps)))
    likely = f"{names} {verb} likely behind, as the {lead} out 0"
    enough = f"{comparison.units:,}, some {needed} would settle it"
    return f"{likely}, but {chance}; not enough {comparison.by}s: {enough}."


def _caveats(comparison: Comparison) -> Iterator[str]:
    if comparison.stopped:
        counts = {report.asked or 0 for report in comparison.stopped}
        asked = " or ".join(f"{count:,}" for count in sorted(counts))
        names = listed([report.name for report in comparison.stopped])
        whole = f"{len(comparison.reports[0].query_ids):,} questions"
        yield f"Surely behind and so stopped early, after {asked} of {whole}: {names}."
    undefined = [report.name for report in comparison.reports if report not in comparison.standing]
    if undefined:
        yield f"{comparison.measure} is not defined for {enumerated(undefined)}."
    for report in comparison.standing:
        if report.unanswered:
            whole = counted(len(report.query_ids), "question")
            yield f"{report.name} left {len(report.unanswered):,} of {whole} unanswered, scored as 0."
        if report.unlocated_share >= _UNLOCATED:
            what = f"{100 * report.unlocated_share:.0f} % of what {report.name} retrieved"
            yield f"{what} was found in no document, and counts as no evidence."
    documents = comparison.reports[0].documents
    distinct = len(set(documents))
    if comparison.by == "question" and 1 < distinct < min(FEWEST_UNALIKE, len(documents)):
        about = f"The questions are about {distinct} documents, too few to resample"
        yield f"{about}: the intervals hold for other questions about these alone."


def enumerated(names: Sequence[str]) -> str:
    """The names as in a sentence: a, b and c."""
    if len(names) == 1:
        return names[0]
    return f"{', '.join(names[:-1])} and {names[-1]}"


_NAMED = 3  # systems of a list; the table has the others


def listed(names: Sequence[str]) -> str:
    """The first three names, and how many more there are."""
    if len(names) <= _NAMED:
        return enumerated(names)
    return enumerated([*names[:_NAMED], f"{len(names) - _NAMED} more"])


def rounded(count: float) -> str:
    """A count with two digits that matter."""
    return f"{int(float(f'{count:.1e}')):,}"
