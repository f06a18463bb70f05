"""The tables of a report, for the page, Markdown and a terminal: rows, and columns that describe themselves.

Scores are shown in percent.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Generic, Literal, TypeVar

import numpy as np

from chunkcore.escaping import markdown_cell
from chunkcore.evaluation.benchmarks.benchmark import Benchmark, DataProblem
from chunkcore.evaluation.comparison import Difference, listed, rounded
from chunkcore.evaluation.curve import SHARES, CurvePoint, tokens_for
from chunkcore.evaluation.measures import Depth, Measure, Unit, budget_of, describe_depth
from chunkcore.evaluation.results import Cost, Report
from chunkcore.report.plots import signed
from chunkcore.run import MatchKind
from chunkcore.study.comparing import FEW, Ranked, ReportPage, mean
from chunkcore.study.tuning import Fold, Tuning

Row = TypeVar("Row")

MISSING = "–"
STEPS = ("chunk", "embed", "search")


@dataclass(frozen=True, slots=True)
class Cell:
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
    qualified: bool = False  # Markdown writes the group before the title
    short: str = ""  # heading in a terminal; "" leaves the column out there
    # The order in a terminal: a narrow one drops the last ones, but never those of 0.
    priority: int = 0

    def cell(self, row: Row) -> Cell:
        shown = self.show(row)
        return shown if isinstance(shown, Cell) else Cell(shown)

    @property
    def full_title(self) -> str:
        """The heading without a line for groups."""
        return f"{self.group}: {self.title}" if self.qualified else self.title


@dataclass(frozen=True)
class Table(Generic[Row]):
    """Columns, and the items of its rows. The first column names the row."""

    title: str
    columns: tuple[Column[Row], ...]
    items: tuple[Row, ...]

    @cached_property
    def rows(self) -> tuple[tuple[Cell, ...], ...]:
        return tuple(tuple(column.cell(item) for column in self.columns) for item in self.items)


def markdown_table(table: Table[Any]) -> str:
    """A table in the pipe syntax; pipes and HTML in cells are escaped."""
    titles = [column.full_title for column in table.columns]
    rules = ["---:" if column.kind == "number" else "---" for column in table.columns]
    lines = [map(markdown_cell, titles), rules, *(map(_markdown_cell, row) for row in table.rows)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _markdown_cell(cell: Cell) -> str:
    text = markdown_cell(cell.text)
    if cell.strong:
        text = f"**{text}**"
    if cell.number:
        text = f"{cell.number}. {text}"
    if not cell.details:
        return text
    first, *others = map(markdown_cell, cell.details)
    return " ".join([text, first, *(f"({detail})" for detail in others)])


def percent(value: float, digits: int = 1) -> str:
    """A share as a percentage."""
    return f"{100 * value:.{digits}f}" if math.isfinite(value) else MISSING


def amount(value: float | None, digits: int = 0) -> str:
    """A number with grouped thousands."""
    return f"{value:,.{digits}f}" if value is not None and math.isfinite(value) else MISSING


def duration(seconds: float | None) -> str:
    """Seconds, with the digits that matter.

    >>> duration(0.0312), duration(4.26), duration(812.4), duration(0.002), duration(None)
    ('0.03', '4.3', '812', '<0.01', '–')
    """
    if seconds is None or not math.isfinite(seconds):
        return MISSING
    if 0 < seconds < 0.01:
        return "<0.01"
    if seconds < 1:
        return f"{seconds:.2f}"
    return f"{seconds:.1f}" if seconds < 100 else f"{seconds:,.0f}"


def money(value: float | None) -> str:
    """An amount in the prices' currency, with the digits that matter.

    >>> money(12.5), money(0.01234), money(math.nan)
    ('12.50', '0.0123', '–')
    """
    if value is None or not math.isfinite(value):
        return MISSING
    return f"{value:,.2f}" if value >= 1 or value == 0 else f"{value:.3g}"


def plural(count: int, noun: str) -> str:
    """A count with its noun and "is" or "are"."""
    return f"{count:,} {noun} is" if count == 1 else f"{count:,} {noun}s are"


def _spread(value: float, around: float) -> Cell:
    return Cell(percent(value), (f"± {percent(around)}",) if math.isfinite(around) else ())


def _system_columns(page: ReportPage, title: str = "Chunker") -> list[Column[Ranked]]:
    """What names a system: its chunker, then its retriever and embedder where these are known or vary."""

    def chunker(row: Ranked) -> Cell:
        return Cell(row.report.chunker, number=row.number)

    columns = [Column(title, chunker, kind="text", short=title)]
    systems = [report.system for report in page.reports]
    if any(system.search for system in systems):
        columns.append(_named("Retriever", lambda row: row.report.system.search))
    if len({system.embedder for system in systems} - {""}) > 1:
        columns.append(_named("Embedder", lambda row: row.report.system.embedder))
    return columns


def _named(title: str, name: Callable[[Ranked], str]) -> Column[Ranked]:
    return Column(title, lambda row: name(row) or MISSING, kind="text", short=title)


def with_values(table: Table[Row]) -> Table[Row]:
    """The table without the columns that have no value in any row."""
    kept = []
    for place, column in enumerate(table.columns):
        if any(row[place].text != MISSING for row in table.rows):
            kept.append(column)
    return replace(table, columns=tuple(kept))


def _chunks(title: str, name: str, short: str = "", group: str = "") -> Column[Ranked]:
    def show(row: Ranked) -> str:
        chunks = row.report.chunks
        return amount(getattr(chunks, name)) if chunks else MISSING

    return Column(title, show, group, qualified=bool(group), short=short, priority=3)


def _cost(
    group: str, title: str, show: Callable[[Cost], str], short: str = "", priority: int = 3
) -> Column[Ranked]:
    def cell(row: Ranked) -> str:
        return show(row.report.cost) if row.report.cost else MISSING

    return Column(title, cell, group, qualified=True, short=short, priority=priority)


def _seconds(group: str, title: str, seconds: Callable[[Report], float | None]) -> Column[Ranked]:
    return Column(title, lambda row: duration(seconds(row.report)), group, qualified=True)


def _per_million(cost: Cost) -> str:
    return money(cost.money_per_million)


def _embedded(cost: Cost) -> str:
    return amount(cost.embedded_tokens)


def score_table(page: ReportPage, k: Depth, unit: Unit) -> Table[Ranked]:
    """One row per system: scores at `k`, and their cost in tokens, chunks and seconds."""

    def retrieved(row: Ranked) -> str:
        return amount(row.report.mean_tokens(k))

    short = "Tokens per\nquestion"
    columns = _system_columns(page)
    for depth, name in ((k, f"At {describe_depth(k)}"), (None, "Any k")):
        for measure in page.measures(depth, unit):
            columns.append(_score_column(page, measure, f"{name}, % of {unit}s"))
    columns += [
        Column("Tokens retrieved", retrieved, "Per question", short=short, priority=1),
        _budget_column(page),
        _chunks("Number", "count", "Chunks", "Chunks"),
        _chunks("Mean tokens", "mean", "Tokens\nper chunk", "Chunks"),
        _seconds("Cost", "Seconds", total_seconds),
        _cost("Cost", "Model calls", lambda cost: amount(cost.embedder_calls + cost.llm_calls)),
        _cost("Cost", "Embedded", _embedded, "Tokens\nembedded"),
        _cost("Cost", "Per million", _per_million, "Money per\nmillion", priority=1),
    ]
    return with_values(Table(f"Scores at {describe_depth(k)}", tuple(columns), page.systems))


def _budget_column(page: ReportPage) -> Column[Ranked]:
    """The tokens for 80 % of the evidence, and below them those for 90 %."""

    def cell(row: Ranked) -> Cell:
        points = page.comparison.curves.get(row.report.name, ())
        needed = [tokens_for(share, points) for share in SHARES]
        if math.isnan(needed[0]):
            return Cell(MISSING)
        rest = MISSING if math.isnan(needed[1]) else rounded(needed[1])
        return Cell(rounded(needed[0]), (f"{rest} for {percent(SHARES[1], 0)} %",))

    first = f"{percent(SHARES[0], 0)} %"
    title, short = f"Tokens for {first} of the evidence", f"Tokens\nfor {first}"
    return Column(title, cell, "Per question", short=short, priority=1)


def budgets(page: ReportPage) -> list[tuple[int, str, str]]:
    """Each system's number and name, and what it needs for 80 % and 90 % of the evidence, in words."""
    curves = page.comparison.curves
    rows = []
    for number, report in page.systems:
        if report.name in curves:
            rows.append((number, report.name, budget_words(curves[report.name])))
    return rows


def budget_words(points: Sequence[CurvePoint]) -> str:
    """The budgets of a curve.

    >>> budget_words([CurvePoint(1000, 0.7, 0.6, 0.8), CurvePoint(2000, 0.85, 0.8, 0.9)])
    '80 % in about 1,600 tokens, 90 % is not reached (85 % in up to 2,000 tokens)'
    >>> budget_words([CurvePoint(125, 0.95, 0.9, 1.0)])
    '80 % in 125 tokens or fewer, 90 % in 125 tokens or fewer'
    """
    words = ""
    for share in SHARES:
        tokens, name = tokens_for(share, points), f"{percent(share, 0)} %"
        separator = ", " if words else ""
        if math.isnan(tokens):
            most = f"{percent(points[-1].share, 0)} % in up to {points[-1].tokens:,.0f} tokens"
            return f"{words}{separator}{name} is not reached ({most})"
        amount_of = f"about {rounded(tokens)} tokens"
        if tokens == points[0].tokens:
            amount_of = f"{tokens:,.0f} tokens or fewer"
        words += f"{separator}{name} in {amount_of}"
    return words


_HEADING = 12  # characters of a heading in a terminal; longer ones are broken
_LONG = re.compile("(?<=[a-z])(?=[A-Z])")


def _score_column(page: ReportPage, measure: Measure, group: str) -> Column[Ranked]:
    """The means by a measure, times 100: shares become percent. The verdict's measure has intervals."""
    verdict = measure == page.comparison.measure
    title = measure.title
    if not measure.is_share:
        title += " × 100"

    def score(row: Ranked) -> Cell:
        shown = percent(mean(row.report, measure))
        if not verdict:
            return Cell(shown)
        low, high = page.comparison.intervals[row.report.name]
        details = (f"{percent(low)} to {percent(high)}",) if math.isfinite(low) else ()
        if row.report.asked is not None:
            asked = f"stopped after {row.report.asked:,} of {len(row.report.query_ids):,} questions"
            details = (*details, asked)
        return Cell(shown, details, strong=True)

    short = title
    if len(title) > _HEADING:
        short = _LONG.sub("-\n", title)
    priority = 0 if verdict else 2
    return Column(title, score, group, meaning=measure.meaning, short=short, priority=priority)


def total_seconds(report: Report) -> float | None:
    """Chunking, embedding and searching together; None if one is unknown, as where a cache had vectors."""
    if not set(STEPS) <= report.seconds.keys():
        return None
    return sum(report.seconds[step] for step in STEPS)


def collection_table(page: ReportPage, k: Depth, unit: Unit) -> Table[Ranked] | None:
    """The verdict's measure per document collection and over all.

    None for a single collection, and for groups of so few questions (`FEW`) that a mean says little.
    """
    measure, labels = page.comparison.measure, page.reports[0].collections
    fewest = min(map(labels.count, page.collections), default=0)
    if len(page.collections) < 2 or fewest < FEW:
        return None
    fixed = measure.k is None or measure.unit == "document"
    if not fixed and "answer" not in (measure.unit, unit):
        measure = replace(measure, k=k, unit=unit)
    scored = tuple(row for row in page.systems if measure in row.report.scores)

    def whole(row: Ranked) -> Cell:
        return _spread(row.report.mean(measure), row.report.std(measure))

    def part(name: str, row: Ranked) -> Cell:
        groups = row.report.by_collection(measure)
        return _spread(*groups[name][:2]) if name in groups else Cell(MISSING)

    columns = [*_system_columns(page), Column(f"All ({len(labels):,})", whole)]
    for name in page.collections:
        title = f"{name or '(none)'} ({labels.count(name):,})"
        columns.append(Column(title, partial(part, name)))
    return Table(f"{measure} by group of questions", tuple(columns), scored)


def difference_table(page: ReportPage) -> Table[Difference]:
    """Each other system's difference from the baseline, in points, with its interval; the best first."""

    def points(gap: Difference) -> Cell:
        if not math.isfinite(gap.mean):
            return Cell(MISSING)
        interval = f"{signed(100 * gap.low)} to {signed(100 * gap.high)}"
        alike = "≈ " if gap.equivalent else ""
        return Cell(f"{alike}{signed(100 * gap.mean)}", (interval,), strong=gap.distinct)

    comparison = page.comparison
    columns = (
        Column[Difference]("System", lambda gap: gap.a, kind="text"),
        Column[Difference]("Points", points),
        Column[Difference]("Questions better", lambda gap: amount(gap.wins)),
        Column[Difference]("Questions worse", lambda gap: amount(gap.losses)),
    )
    title = f"Differences of {comparison.measure} from {comparison.baseline}"
    return Table(title, columns, comparison.against)


def chunk_table(page: ReportPage) -> Table[Ranked] | None:
    """Lengths of each system's chunks, in tokens; None if unknown."""
    rows = tuple(row for row in page.systems if row.report.chunks is not None)
    titles = {"Number": "count", "Mean tokens": "mean", "Std": "std"}
    titles |= {"Shortest": "minimum", "Median": "median", "Longest": "maximum"}
    columns = (*_system_columns(page), *(_chunks(title, name) for title, name in titles.items()))
    return Table("Chunks", columns, rows) if rows else None


def problem_table(page: ReportPage) -> Table[DataProblem] | None:
    """The skipped questions and the reasons; None if none were skipped."""
    if page.benchmark is None or not page.benchmark.problems:
        return None
    columns = (
        Column[DataProblem]("Question", lambda problem: problem.query_id, kind="text"),
        Column[DataProblem]("Why", lambda problem: problem.reason, kind="text"),
    )
    return Table("Questions left out", columns, tuple(page.benchmark.problems))


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


def model_tokens(cost: Cost) -> float:
    """Tokens that embedders and language models read and wrote, per token of the source."""
    llm_tokens = cost.llm_input_tokens + cost.llm_output_tokens
    return cost.tokens_ratio + llm_tokens / (cost.source_tokens or math.nan)


def cost_table(page: ReportPage) -> Table[Ranked] | None:
    """Each system's seconds by step and its model requests, as if it ran alone; None if unknown."""
    names = _system_columns(page)
    columns = [_seconds("Seconds", step, partial(_step, step)) for step in STEPS]
    columns += [
        _seconds("Seconds", "together", total_seconds),
        _cost("Embedder", "Calls", lambda cost: amount(cost.embedder_calls)),
        _cost("Embedder", "Texts", lambda cost: amount(cost.embedded_texts)),
        _cost("Embedder", "Tokens", _embedded),
        _cost("Embedder", "per source token", lambda cost: amount(cost.tokens_ratio, 2)),
        _cost("Language models", "Calls", lambda cost: amount(cost.llm_calls or None)),
        _cost("Language models", "Tokens read", lambda cost: amount(cost.llm_input_tokens or None)),
        _cost(
            "Language models", "Tokens written", lambda cost: amount(cost.llm_output_tokens or None)
        ),
        _cost("Money", "Documents", lambda cost: money(cost.money)),
        _cost("Money", "per million tokens", _per_million),
    ]
    table = with_values(Table("What each system costs", (*names, *columns), page.systems))
    return table if len(table.columns) > len(names) else None


def _step(step: str, report: Report) -> float | None:
    return report.seconds.get(step)


# ---- a search


def fold_table(tuning: Tuning) -> Table[Fold]:
    """The choice made without each fold."""
    show = tuning.measure.show
    columns = (
        Column[Fold]("Chosen by the other questions", lambda fold: fold.configuration, kind="text"),
        Column[Fold]("Mean where chosen", lambda fold: show(fold.training)),
        Column[Fold]("Held out", lambda fold: Cell(show(fold.held_out), strong=True)),
        Column[Fold]("Questions held out", lambda fold: amount(fold.questions)),
    )
    return Table("Chosen without each part of the questions", columns, tuning.folds)


def configuration_table(tuning: Tuning) -> Table[Report]:
    """One row a configuration: its mean over all questions, which is too high for the best."""

    def chunker(report: Report) -> Cell:
        names = {"use": tuning.use, "default": tuning.default}
        labels = tuple(label for label, name in names.items() if name == report.name)
        name = tuning.configurations[report.name].chunker
        return Cell(name, labels, strong="use" in labels)

    def retriever(report: Report) -> str:
        return tuning.configurations[report.name].retriever

    def score(report: Report) -> str:
        return tuning.measure.show(report.mean(tuning.measure))

    def chunks(report: Report) -> str:
        return amount(report.chunks.count) if report.chunks else MISSING

    columns = (
        Column[Report]("Chunker", chunker, kind="text"),
        Column[Report]("Retriever", retriever, kind="text"),
        Column[Report](str(tuning.measure), score),
        Column[Report]("Chunks", chunks),
        Column[Report]("Seconds", lambda report: duration(total_seconds(report))),
    )
    return Table("Every configuration, on all questions", columns, tuning.reports)


def failure_table(tuning: Tuning) -> Table[str] | None:
    """The configurations that could not run, with the reason; None if all could."""
    columns = (
        Column[str]("Configuration", lambda name: name, kind="text"),
        Column[str]("Why it could not run", lambda name: tuning.failures[name], kind="text"),
    )
    return Table("Not scored", columns, tuple(tuning.failures)) if tuning.failures else None


def tuning_tables(tuning: Tuning) -> list[Table]:  # type: ignore[type-arg]
    """The tables, in the order of the page."""
    tables = (fold_table(tuning), configuration_table(tuning), failure_table(tuning))
    return [table for table in tables if table is not None]
