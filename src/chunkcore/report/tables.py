"""The tables of a report, for the page, Markdown and a terminal: rows, and columns that describe themselves.

Scores are shown in percent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Generic, Literal, NamedTuple, TypeVar

import numpy as np

from chunkcore.evaluation.benchmarks.benchmark import Benchmark
from chunkcore.evaluation.comparison import Difference, listed, rounded
from chunkcore.evaluation.measures import Depth, Measure, Unit, budget_of, describe_depth
from chunkcore.evaluation.resampling import SHARES, tokens_for
from chunkcore.evaluation.results import Cost, Report
from chunkcore.run import MatchKind
from chunkcore.study.comparing import FEW, ReportPage, mean
from chunkcore.study.tuning import Tuning

Row = TypeVar("Row")

MISSING = "–"
STEPS = ("chunk", "embed", "search")


class Cell(NamedTuple):
    """A value, with qualifiers in smaller type; `number` is that of the system that it names, from 1; 0 for none."""

    text: str
    details: tuple[str, ...] = ()
    strong: bool = False
    number: int = 0


@dataclass(frozen=True)
class Column(Generic[Row]):
    """A column that describes itself."""

    title: str
    show: Callable[[Row], Cell | str]  # a row's cell, or its text
    group: str = ""  # heading shared by neighbouring columns
    kind: Literal["number", "text"] = "number"  # sets the alignment
    meaning: str = ""  # one sentence for readers of the page
    short: str = ""  # heading in a terminal; "" leaves the column out there

    def cell(self, row: Row) -> Cell:
        shown = self.show(row)
        return shown if isinstance(shown, Cell) else Cell(shown)


@dataclass(frozen=True)
class Table(Generic[Row]):
    """Columns, and the items of its rows. The first column names the row."""

    title: str
    columns: tuple[Column[Row], ...]
    items: tuple[Row, ...]

    @cached_property
    def rows(self) -> tuple[tuple[Cell, ...], ...]:
        return tuple(map(self._cells, self.items))

    def _cells(self, item: Row) -> tuple[Cell, ...]:
        return tuple(column.cell(item) for column in self.columns)

    def with_values(self) -> Table[Row]:
        """The table without the columns of numbers that are empty or 0 in every row."""
        kept = []
        for column, cells in zip(self.columns, zip(*self.rows, strict=True), strict=True):
            texts = {cell.text for cell in cells}
            if column.kind == "text" or not texts <= {MISSING, "0"}:
                kept.append(column)
        return replace(self, columns=tuple(kept))


def text_column(
    title: str,
    show: Callable[[Row], Cell | str],
) -> Column[Row]:
    """A column of text."""
    return Column(title, show, kind="text", short=title)


def percent(value: float, digits: int = 1) -> str:
    """A share as a percentage."""
    return f"{100 * value:.{digits}f}" if math.isfinite(value) else MISSING


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


def _system_columns(page: ReportPage) -> list[Column[Report]]:
    """What names a system: its chunker, then its retriever and embedder where these are known or vary."""
    numbers = {report.name: number for number, report in page.systems}
    systems = [report.system for report in page.reports]

    def chunker(report: Report) -> Cell:
        return Cell(report.chunker, number=numbers[report.name])

    columns = [text_column("Chunker", chunker)]
    if any(system.search for system in systems):
        columns.append(text_column("Retriever", lambda report: report.system.search or MISSING))
    if len({system.embedder for system in systems} - {""}) > 1:
        columns.append(text_column("Embedder", lambda report: report.system.embedder or MISSING))
    return columns


def score_table(
    page: ReportPage,
    k: Depth,
    unit: Unit,
) -> Table[Report]:
    """One row per system: scores at `k`, and their cost in tokens, chunks and seconds."""
    columns = _system_columns(page)
    for depth, name in ((k, f"At {describe_depth(k)}"), (None, "Any k")):
        for measure in page.measures(depth, unit):
            columns.append(_score_column(page, measure, f"{name}, % of {unit}s"))
    columns += [
        Column("Tokens retrieved", lambda report: amount(report.mean_tokens(k)), "Per question"),
        _budget_column(page),
        Column("Chunks", lambda report: amount(getattr(report.chunks, "count", None)), "Cost"),
        Column("Tokens of a chunk", _sizes, "Cost"),
        Column("Seconds", lambda report: brief(total_seconds(report)), "Cost"),
        Column("Seconds searching", lambda report: brief(report.seconds.get("search")), "Cost"),
        Column("Model calls", _model_calls, "Cost"),
        Column(
            "Tokens embedded",
            lambda report: amount(getattr(report.cost, "embedded_tokens", None)),
            "Cost",
        ),
        Column(
            "Money per million",
            lambda report: brief(getattr(report.cost, "money_per_million", None)),
            "Cost",
            short="Money per\nmillion",
        ),
    ]
    return Table(f"Scores at {describe_depth(k)}", tuple(columns), page.reports).with_values()


def _model_calls(report: Report) -> str:
    cost = report.cost
    return MISSING if cost is None else amount(cost.embedder_calls + cost.llm_calls)


def _sizes(report: Report) -> Cell | str:
    chunks = report.chunks
    if chunks is None:
        return MISSING
    return Cell(amount(chunks.mean), (f"{amount(chunks.minimum)} to {amount(chunks.maximum)}",))


def _budget_column(page: ReportPage) -> Column[Report]:
    """The tokens for 80 % of the evidence, and below them those for 90 %."""
    first, second = (f"{percent(share, 0)} %" for share in SHARES)

    def cell(report: Report) -> Cell | str:
        points = page.comparison.curves.get(report.name, ())
        needed = [tokens_for(share, points) for share in SHARES]
        if math.isnan(needed[0]):
            return MISSING
        rest = MISSING if math.isnan(needed[1]) else rounded(needed[1])
        return Cell(rounded(needed[0]), (f"{rest} for {second}",))

    title, short = f"Tokens for {first} of the evidence", f"Tokens\nfor {first}"
    return Column(title, cell, "Per question", short=short)


def _score_column(page: ReportPage, measure: Measure, group: str) -> Column[Report]:
    """The means by a measure, times 100: shares become percent. The verdict's measure has intervals."""
    verdict = measure == page.comparison.measure
    title = measure.title
    if not measure.is_share:
        title += " × 100"

    def score(report: Report) -> Cell | str:
        shown = percent(mean(report, measure))
        if not verdict:
            return shown
        details = []
        low, high = page.comparison.intervals[report.name]
        if math.isfinite(low):
            details.append(f"{percent(low)} to {percent(high)}")
        if report.asked is not None:
            questions = len(report.query_ids)
            details.append(f"stopped after {report.asked:,} of {questions:,} questions")
        return Cell(shown, tuple(details), strong=True)

    short = title if verdict else ""
    return Column(title, score, group, meaning=measure.meaning, short=short)


def total_seconds(report: Report) -> float | None:
    """Chunking, embedding and searching together; None if one is unknown, as where a cache had vectors."""
    if not set(STEPS) <= report.seconds.keys():
        return None
    return sum(report.seconds[step] for step in STEPS)


def collection_table(page: ReportPage) -> Table[Report] | None:
    """The verdict's measure per document collection and over all.

    None for a single collection, and for groups of so few questions (`FEW`) that a mean says little.
    """
    measure, labels = page.comparison.measure, page.reports[0].collections
    fewest = min(map(labels.count, page.collections), default=0)
    if len(page.collections) < 2 or fewest < FEW:
        return None

    def column(title: str, name: str | None) -> Column[Report]:
        def cell(report: Report) -> str:
            if name is None:
                return percent(report.mean(measure))
            return percent(report.by_collection(measure).get(name, (math.nan,))[0])

        return Column(title, cell)

    counts = {name: f"{name or '(none)'} ({labels.count(name):,})" for name in page.collections}
    groups = [column(title, name) for name, title in counts.items()]
    columns = (*_system_columns(page), column(f"All ({len(labels):,})", None), *groups)
    return Table(f"{measure} by group of questions", columns, page.reports)


def difference_table(page: ReportPage) -> Table[Difference]:
    """Each other system's difference from the baseline, in points, with its interval; the best first."""

    def points(gap: Difference) -> Cell | str:
        if not math.isfinite(gap.mean):
            return MISSING
        interval = f"{signed(100 * gap.low)} to {signed(100 * gap.high)}"
        alike = "≈ " if gap.equivalent else ""
        return Cell(f"{alike}{signed(100 * gap.mean)}", (interval,), strong=gap.distinct)

    comparison = page.comparison
    columns: tuple[Column[Difference], ...] = (
        text_column("System", lambda gap: gap.a),
        Column("Points", points),
        Column("Questions better", lambda gap: amount(gap.wins)),
        Column("Questions worse", lambda gap: amount(gap.losses)),
    )
    title = f"Differences of {comparison.measure} from {comparison.baseline}"
    return Table(title, columns, comparison.against)


def problem_table(page: ReportPage) -> Table[tuple[str, str]] | None:
    """The skipped questions and the reasons; None if none were skipped."""
    problems = page.benchmark.problems if page.benchmark else ()
    reasons = [(problem.query_id, problem.reason) for problem in problems]
    return reason_table("Questions left out", "Question", "Why", reasons) if reasons else None


def reason_table(
    title: str,
    name: str,
    why: str,
    reasons: Sequence[tuple[str, str]],
) -> Table[tuple[str, str]]:
    """Names, and a reason for each."""
    columns: tuple[Column[tuple[str, str]], ...] = (
        text_column(name, lambda row: row[0]),
        text_column(why, lambda row: row[1]),
    )
    return Table(title, columns, tuple(reasons))


def model_tokens(cost: Cost) -> float:
    """Tokens that embedders and language models read and wrote, per token of the source."""
    llm_tokens = cost.llm_input_tokens + cost.llm_output_tokens
    return cost.tokens_ratio + llm_tokens / (cost.source_tokens or math.nan)


# ---- a search


def configuration_table(tuning: Tuning) -> Table[Report]:
    """One row a configuration: its mean over all questions, which is too high for the best."""

    def chunker(report: Report) -> Cell:
        labels = []
        if report.name == tuning.use:
            labels.append("use")
        if report.name == tuning.default:
            labels.append("default")
        chosen = tuning.choices.count(report.name)
        if chosen:
            labels.append(f"chosen {chosen} of {len(tuning.choices)} times")
        return Cell(report.system.chunker, tuple(labels), strong=report.name == tuning.use)

    columns: tuple[Column[Report], ...] = (
        text_column("Chunker", chunker),
        text_column("Retriever", lambda report: report.system.retriever),
        Column(
            str(tuning.measure), lambda report: tuning.measure.show(report.mean(tuning.measure))
        ),
        Column("Chunks", lambda report: amount(getattr(report.chunks, "count", None))),
        Column("Seconds", lambda report: brief(total_seconds(report))),
    )
    return Table("Every configuration, on all questions", columns, tuning.reports)


def tuning_tables(tuning: Tuning | None) -> list[Table[Any]]:
    """Every configuration of a search, and with their reasons those that could not run."""
    if tuning is None:
        return []
    tables: list[Table[Any]] = [configuration_table(tuning)]
    if tuning.failures:
        failures = tuple(tuning.failures.items())
        tables.append(reason_table("Not scored", "Configuration", "Why it could not run", failures))
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
        sentences += (text for text in _about(report) if text not in sentences)
    for k in page.ks:
        sentences += _short_of(k, reports)
    return [*sentences, *_left_out(page.benchmark)]


def _left_out(benchmark: Benchmark | None) -> Iterator[str]:
    if benchmark is None:
        return
    problems = benchmark.problems
    unread = sum(" was not read: " in problem.reason for problem in problems)
    unplaced = len(problems) - unread
    unmarked = len(benchmark.without_evidence)
    reasons = {
        "left out because their file was not read; the report lists each": unread,
        "left out because the evidence could not be placed; the report lists each": unplaced,
        "not scored because the collection marks no evidence for them": unmarked,
    }
    for reason, count in reasons.items():
        if count:
            yield f"{plural(count, 'question')} {reason}."


def _about(report: Report) -> Iterator[str]:
    chunks = report.chunks
    if chunks is not None and chunks.truncated:
        verb = "is" if chunks.truncated == 1 else "are"
        cut = (
            f"{chunks.truncated:,} of {chunks.count:,} chunks {verb} longer than the embedder reads"
        )
        lost = f"{amount(chunks.tokens_lost)} of its tokens were cut off"
        yield f"{report.chunker}: {cut}; {lost} and had no part in the search."
    if report.unanswered:
        questions = plural(len(report.unanswered), "question")
        yield f"{report.name}: {questions} not answered by this run and scored 0."
    lost_pieces = report.located.get("unlocated", 0)
    if lost_pieces:
        share = f"{100 * report.unlocated_share:.1f} % of all"
        pieces = plural(lost_pieces, "retrieved piece")
        yield f"{report.name}: {pieces} to be found in no document ({share}) and counted as irrelevant."
    total = sum(report.located.values())
    shares = []
    for match in _BY_WORDS:
        if report.located.get(match):
            located = 100 * report.located[match] / total
            shares.append(f"{located:.0f} % {FOUND_BY[match]}")
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
        retrieved = report.retrieved_tokens.get(k)
        if retrieved is not None and (retrieved < least).any():
            short[report.name] = int(np.count_nonzero(retrieved < least))
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
