"""The tables of a report, for the page, Markdown and a terminal: rows, and columns that describe themselves.

Scores are shown in percent.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np

from chunkcore.evaluation.benchmarks import Benchmark
from chunkcore.evaluation.comparison import Difference, listed, rounded
from chunkcore.evaluation.measures import Depth, Measure, Unit, budget_of, describe_depth
from chunkcore.evaluation.resampling import SHARES, tokens_for
from chunkcore.evaluation.results import Report
from chunkcore.run import MatchKind
from chunkcore.study.comparing import FEW, ReportPage
from chunkcore.study.tuning import Tuning

MISSING = "–"


class Cell(NamedTuple):
    """A value, with qualifiers in smaller type; `number` is that of the system that it names, from 1; 0 for none."""

    text: str
    details: tuple[str, ...] = ()
    strong: bool = False
    number: int = 0


class Column(NamedTuple):
    """A heading, and a cell for each row."""

    title: str
    cells: Sequence[Cell]
    group: str = ""  # heading shared by neighbouring columns
    kind: Literal["number", "text"] = "number"  # sets the alignment
    meaning: str = ""  # one sentence for readers of the page
    short: str = ""  # heading in a terminal; "" leaves the column out there


@dataclass(frozen=True)
class Table:
    """Columns of equal length. The first one names the row."""

    title: str
    columns: Sequence[Column]

    @cached_property
    def rows(self) -> list[tuple[Cell, ...]]:
        return list(zip(*[column.cells for column in self.columns], strict=True))

    def with_values(self) -> Table:
        """The table without the columns of numbers that are empty or 0 in every row."""
        kept = []
        for column in self.columns:
            shown = {cell.text for cell in column.cells}
            if column.kind == "text" or not shown <= {MISSING, "0"}:
                kept.append(column)
        return Table(self.title, kept)


def texts(title: str, values: Iterable[Cell | str]) -> Column:
    """A column of text."""
    return Column(title, _cells(values), kind="text", short=title)


def numbers(title: str, values: Iterable[Cell | str], group: str = "", short: str = "") -> Column:
    """A column of numbers."""
    return Column(title, _cells(values), group, short=short)


def _cells(values: Iterable[Cell | str]) -> list[Cell]:
    return [value if isinstance(value, Cell) else Cell(value) for value in values]


def percent(value: float, digits: int = 1) -> str:
    """A share as a percentage."""
    return f"{100 * value:.{digits}f}" if math.isfinite(value) else MISSING


def whole_percent(share: float) -> int | None:
    """A share as whole percent; only exact 0 and 1 become 0 and 100. None for NaN.

    >>> whole_percent(0.001), whole_percent(0.999), whole_percent(1.0), whole_percent(math.nan)
    (1, 99, 100, None)
    """
    if math.isnan(share):
        return None
    percent = round(100 * share)
    return min(99, max(1, percent)) if 0 < share < 1 else percent


def signed(value: float) -> str:
    """A difference in points, always with its sign.

    >>> signed(1.26), signed(-0.04)
    ('+1.3', '0.0')
    """
    text = f"{value:+.1f}".replace("-", "\u2212")
    return "0.0" if text in ("+0.0", "\u22120.0") else text


def amount(value: float | None) -> str:
    """A number with grouped thousands."""
    return f"{value:,.0f}" if value is not None and math.isfinite(value) else MISSING


def brief(value: float | None) -> str:
    """Seconds or money, to three digits.

    >>> brief(0.03124), brief(4.26), brief(1812.4), brief(12.5), brief(None)
    ('0.0312', '4.26', '1,812', '12.5', '–')
    """
    if value is not None and value < 100:
        return f"{value:.3g}"
    return amount(value)


def plural(count: int, noun: str) -> str:
    """A count with its noun and "is" or "are"."""
    return f"{count:,} {noun} is" if count == 1 else f"{count:,} {noun}s are"


# ---- systems


def _system_columns(page: ReportPage) -> list[Column]:
    """What names a system: its chunker, then its retriever and embedder where these are known or vary."""
    systems = [report.system for report in page.reports]
    chunkers = [Cell(report.chunker, number=number) for number, report in page.systems]
    columns = [texts("Chunker", chunkers)]
    searches = [system.search or MISSING for system in systems]
    if set(searches) - {MISSING}:
        columns.append(texts("Retriever", searches))
    embedders = [system.embedder or MISSING for system in systems]
    if len(set(embedders) - {MISSING}) > 1:
        columns.append(texts("Embedder", embedders))
    return columns


def score_table(page: ReportPage, k: Depth, unit: Unit) -> Table:
    """One row per system: scores at `k`, and their cost in tokens, chunks and seconds."""
    reports = page.reports
    columns = _system_columns(page)
    for depth, name in ((k, f"At {describe_depth(k)}"), (None, "Any k")):
        group = f"{name}, % of {unit}s"
        columns += [_score_column(page, one, group) for one in page.measures(depth, unit)]
    retrieved = [amount(report.mean_tokens(k)) for report in reports]
    columns += [numbers("Tokens retrieved", retrieved, "Per question"), _budget_column(page)]
    costs: dict[str, Callable[[Report], Cell | str]] = {
        "Chunks": _chunks,
        "Tokens of a chunk": _sizes,
        "Seconds": _seconds,
        "Seconds searching": lambda report: brief(report.seconds.get("search")),
        "Model calls": _model_calls,
        "Tokens embedded": lambda report: amount(getattr(report.cost, "embedded_tokens", None)),
    }
    columns += [numbers(title, map(shown, reports), "Cost") for title, shown in costs.items()]
    money = [brief(getattr(report.cost, "money_per_million", None)) for report in reports]
    columns.append(numbers("Money per million", money, "Cost", "Money per\nmillion"))
    return Table(f"Scores at {describe_depth(k)}", columns).with_values()


def _chunks(report: Report) -> str:
    return amount(getattr(report.chunks, "count", None))


def _model_calls(report: Report) -> str:
    cost = report.cost
    return amount(cost.embedder_calls + cost.llm_calls) if cost else MISSING


def _sizes(report: Report) -> Cell | str:
    chunks = report.chunks
    if not chunks:
        return MISSING
    return Cell(amount(chunks.mean), (f"{amount(chunks.minimum)} to {amount(chunks.maximum)}",))


def _budget_column(page: ReportPage) -> Column:
    """The tokens for 80 % of the evidence, and below them those for 90 %."""
    first, second = (f"{percent(share, 0)} %" for share in SHARES)
    cells = []
    for report in page.reports:
        points = page.comparison.curves.get(report.name, ())
        needed = [tokens_for(share, points) for share in SHARES]
        most, rest = (MISSING if math.isnan(tokens) else rounded(tokens) for tokens in needed)
        details = () if most == MISSING else (f"{rest} for {second}",)
        cells.append(Cell(most, details))
    title = f"Tokens for {first} of the evidence"
    return numbers(title, cells, "Per question", f"Tokens\nfor {first}")


def _score_column(page: ReportPage, measure: Measure, group: str) -> Column:
    """The means by a measure, times 100: shares become percent. The verdict's measure has intervals."""
    title = measure.title
    if not measure.is_share:
        title += " × 100"
    is_verdicts = measure == page.comparison.measure
    cells = []
    for report in page.reports:
        details = []
        low, high = page.comparison.intervals[report.name]
        if math.isfinite(low):
            details.append(f"{percent(low)} to {percent(high)}")
        if report.asked:
            questions = len(report.query_ids)
            details.append(f"stopped after {report.asked:,} of {questions:,} questions")
        mean = report.mean(measure) if measure in report.scores else math.nan
        cell = Cell(percent(mean), tuple(details), strong=True)
        if not is_verdicts:
            cell = Cell(cell.text)
        cells.append(cell)
    short = title if is_verdicts else ""
    return Column(title, cells, group, meaning=measure.meaning, short=short)


def _seconds(report: Report) -> str:
    """Chunking, embedding and searching together; none if one is unknown, as where a cache had vectors."""
    return brief(sum(report.seconds.get(step, math.nan) for step in ("chunk", "embed", "search")))


def collection_table(page: ReportPage) -> Table | None:
    """The verdict's measure per document collection and over all.

    None for a single collection, and for groups of so few questions (`FEW`) that a mean says little.
    """
    measure, labels = page.comparison.measure, page.reports[0].collections
    counts = Counter(sorted(labels))
    if len(counts) < 2 or min(counts.values()) < FEW:
        return None
    means = [percent(report.mean(measure)) for report in page.reports]
    columns = [*_system_columns(page), numbers(f"All ({len(labels):,})", means)]
    groups = [report.by_collection(measure) for report in page.reports]
    for name, count in counts.items():
        means = [percent(group.get(name, (math.nan,))[0]) for group in groups]
        columns.append(numbers(f"{name or '(none)'} ({count:,})", means))
    return Table(f"{measure} by group of questions", columns)


def difference_table(page: ReportPage) -> Table:
    """Each other system's difference from the baseline, in points, with its interval; the best first."""
    comparison = page.comparison
    gaps = comparison.against
    columns = (
        texts("System", [gap.a for gap in gaps]),
        numbers("Points", map(_gap_points, gaps)),
        numbers("Questions better", [amount(gap.wins) for gap in gaps]),
        numbers("Questions worse", [amount(gap.losses) for gap in gaps]),
    )
    return Table(f"Differences of {comparison.measure} from {comparison.baseline}", columns)


def _gap_points(gap: Difference) -> Cell | str:
    if not math.isfinite(gap.mean):
        return MISSING
    interval = f"{signed(100 * gap.low)} to {signed(100 * gap.high)}"
    alike = "≈ " if gap.equivalent else ""
    return Cell(f"{alike}{signed(100 * gap.mean)}", (interval,), strong=gap.distinct)


def problem_table(page: ReportPage) -> Table | None:
    """The skipped questions and the reasons; None if none were skipped."""
    problems = page.benchmark.problems if page.benchmark else ()
    if not problems:
        return None
    names = texts("Question", [problem.query_id for problem in problems])
    reasons = texts("Why", [problem.reason for problem in problems])
    return Table("Questions left out", (names, reasons))


# ---- a search


def tuning_tables(tuning: Tuning | None) -> list[Table]:
    """Every configuration of a search, by its mean over all questions, which is too high for the best; and with their
    reasons those that could not run.
    """
    if not tuning:
        return []
    reports, measure = tuning.reports, tuning.measure
    chunkers = []
    for report in reports:
        chosen = tuning.choices.count(report.name)
        is_used = report.name == tuning.use
        labels = {
            "use": is_used,
            "default": report.name == tuning.default,
            f"chosen {chosen} of {len(tuning.choices)} times": chosen,
        }
        shown = tuple(filter(labels.get, labels))
        chunkers.append(Cell(report.system.chunker, shown, strong=is_used))
    columns = (
        texts("Chunker", chunkers),
        texts("Retriever", [report.system.retriever for report in reports]),
        numbers(str(measure), [measure.show(report.mean(measure)) for report in reports]),
        numbers("Chunks", map(_chunks, reports)),
        numbers("Seconds", map(_seconds, reports)),
    )
    tables = [Table("Every configuration, on all questions", columns)]
    if tuning.failures:
        names = texts("Configuration", tuning.failures)
        reasons = texts("Why it could not run", tuning.failures.values())
        tables.append(Table("Not scored", (names, reasons)))
    return tables


# ---- warnings


def warnings(page: ReportPage) -> list[str]:
    """Caveats to read before the numbers, one sentence each."""
    reports, sentences = page.reports, []
    if page.stopped:
        sentences.append(page.stopped)
    if len({report.documents_digest for report in reports} - {""}) > 1:
        sentences.append(
            "The systems were scored on different documents, or on different versions of them."
        )
    count = len(reports[0].query_ids)
    if count < FEW:
        few = f"with fewer than {FEW}, intervals are often too narrow"
        sentences.append(f"Only {plural(count, 'question')} asked: {few}.")
    for report in reports:
        sentences += _about(report)
    for k in page.ks:
        sentences += _short_of(k, reports)
    return list(dict.fromkeys([*sentences, *_left_out(page.benchmark)]))


def _left_out(benchmark: Benchmark | None) -> Iterator[str]:
    if not benchmark:
        return
    problems = benchmark.problems
    unread = sum(" was not read: " in problem.reason for problem in problems)
    unmarked = len(benchmark.without_evidence)
    reasons = {
        "left out because their file was not read; the report lists each": unread,
        "left out; the report lists each, with the reason": len(problems) - unread,
        "not scored because the collection marks no evidence for them": unmarked,
    }
    for reason, count in reasons.items():
        if count:
            yield f"{plural(count, 'question')} {reason}."


def _about(report: Report) -> Iterator[str]:
    chunks = report.chunks
    if chunks and chunks.truncated:
        verb = "is" if chunks.truncated == 1 else "are"
        cut = f"{chunks.truncated:,} of {chunks.count:,} chunks {verb}"
        lost = f"{chunks.tokens_lost:,} of its tokens were cut off"
        yield f"{report.chunker}: {cut} longer than the embedder reads; {lost} and had no part in the search."
    if report.unanswered:
        questions = plural(len(report.unanswered), "question")
        yield f"{report.name}: {questions} not answered by this run and scored 0."
    counts = report.located
    if counts.get("unlocated"):
        share = f"{100 * report.unlocated_share:.1f} % of all"
        pieces = plural(counts["unlocated"], "retrieved piece")
        yield f"{report.name}: {pieces} to be found in no document ({share}) and counted as irrelevant."
    total = sum(counts.values())
    matches = filter(counts.get, _BY_WORDS)
    shares = [f"{100 * counts[match] / total:.0f} % {FOUND_BY[match]}" for match in matches]
    if shares:
        differing = report.differing_documents
        names = f"; the text differs of {listed(differing)}" if differing else ""
        yield f"{report.name}: of its retrieved pieces were placed {', '.join(shares)}{names}."
    for measure, (low, high) in report.bounds.items():
        if low < high:
            places = "at worst and at best, as some pieces may stand at other places of their text"
            yield f"{report.name}: {measure} is {measure.show(low)} and {measure.show(high)} {places}."


def _short_of(k: Depth, reports: Sequence[Report]) -> Iterator[str]:
    """Which reports found less than a budget for some questions."""
    # The last piece may end a few tokens early, where a cut would split a character.
    least = 0.95 * (budget_of(k) or 0)
    short = {}
    for report in reports:
        count = np.count_nonzero(report.retrieved_tokens.get(k, least) < least)
        if count:
            short[report.name] = count
    if short:
        most = f"{max(short.values()):,} of the questions"
        if len(short) > 1:
            most = f"up to {most}"
        yield f"{listed(list(short))} found fewer than {describe_depth(k)} for {most}."


# Matches of a text that is not the document's.
_BY_WORDS: tuple[MatchKind, ...] = ("folded", "fuzzy", "part", "ambiguous", "quoted")
# How a retrieved piece was matched to its document.
FOUND_BY: dict[MatchKind, str] = {
    "spans": "by its spans",
    "exact": "by its text",
    "whitespace": "by its text but for white space",
    "folded": "by its letters and digits",
    "order": "by its text and its neighbours",
    "fuzzy": "by resemblance",
    "part": "by a part of its text",
    "ambiguous": "at one of several places",
    "quoted": "by the evidence it quotes",
    "unlocated": "nowhere",
}
