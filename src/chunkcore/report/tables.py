"""The report's tables, as plain cells that the terminal, Markdown and HTML each lay out in their own way.

Scores are shown in percent.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from chunkcore.evaluation.comparison import Comparison, Difference
from chunkcore.evaluation.measures import Depth, Measure, Unit, describe_depth
from chunkcore.evaluation.results import Report
from chunkcore.report.plots import signed
from chunkcore.report.study import Study, mean, std

__all__ = [
    "Cell",
    "Column",
    "Table",
    "chunk_table",
    "collection_score_tables",
    "collection_table",
    "difference_table",
    "measure_table",
    "pairs_note",
    "problem_table",
    "score_table",
]

MISSING = "–"
STEPS = ("chunk", "embed", "search")


@dataclass(frozen=True, slots=True)
class Cell:
    """A value, and what qualifies it in smaller type.

    Attributes:
        number: of the system that the cell names, from 1; 0 where it names none.
    """

    text: str
    details: tuple[str, ...] = ()
    strong: bool = False
    number: int = 0


@dataclass(frozen=True, slots=True)
class Column:
    """A heading. `group` is a heading over neighbours that share it."""

    title: str
    group: str = ""
    kind: Literal["number", "text"] = "number"


@dataclass(frozen=True, slots=True)
class Table:
    """Columns and rows of as many cells; the first column names the row."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]


def percent(value: float, digits: int = 1) -> str:
    """A share as a percentage.

    >>> percent(0.8125), percent(float("nan"))
    ('81.2', '–')
    """
    return f"{100 * value:.{digits}f}" if math.isfinite(value) else MISSING


def amount(value: float, digits: int = 0) -> str:
    """A number with its thousands grouped."""
    return f"{value:,.{digits}f}" if math.isfinite(value) else MISSING


def duration(seconds: float | None) -> str:
    """Seconds, with the digits that matter.

    >>> duration(0.0312), duration(4.26), duration(812.4), duration(0.002), duration(None)
    ('0.03', '4.3', '812', '<0.01', '–')
    """
    if seconds is None or not math.isfinite(seconds):
        return MISSING
    if 0 < seconds < 0.01:
        return "<0.01"
    return f"{seconds:,.{2 if seconds < 1 else 1 if seconds < 100 else 0}f}"


def compact(value: float) -> str:
    """A large number in three digits.

    >>> compact(842), compact(123_456), compact(4_560_000), compact(math.nan)
    ('842', '123k', '4.56M', '–')
    """
    if not math.isfinite(value):
        return MISSING
    for size, sign in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.3g}{sign}"
    return f"{value:.0f}"


def money(value: float) -> str:
    """An amount in the prices' currency, with the digits that matter.

    >>> money(12.5), money(0.01234), money(math.nan)
    ('12.50', '0.0123', '–')
    """
    if not math.isfinite(value):
        return MISSING
    return f"{value:,.2f}" if value >= 1 or value == 0 else f"{value:.3g}"


def interval_text(low: float, high: float) -> str:
    """An interval of a share in percent."""
    return f"{percent(low)} to {percent(high)}" if math.isfinite(low) else ""


def plain_text(value: float) -> str:
    """How far scores spread around their mean."""
    return f"± {percent(value)}" if math.isfinite(value) else ""


def score_table(study: Study, k: Depth, unit: Unit) -> Table:
    """One row a system: scores at `k`, what they cost in tokens, chunks and seconds."""
    columns = [Column("Strategy", kind="text")]
    columns += [Column(_heading(m), f"At {describe_depth(k)}, % of {unit}s") for m in _at(study, k, unit)]
    columns += [Column(_heading(m), f"Any k, % of {unit}s") for m in _at(study, None, unit)]
    columns += [
        Column("Tokens retrieved", "Per question"),
        Column("Number", "Chunks"),
        Column("Mean tokens", "Chunks"),
    ]
    columns += [Column(title, "Cost") for title, _ in _costs(study)]
    rows = [_score_row(study, number, report, k, unit) for number, report in enumerate(study.reports, 1)]
    return Table(f"Scores at {describe_depth(k)}", tuple(columns), tuple(rows))


def _at(study: Study, k: Depth | None, unit: Unit) -> list[Measure]:
    """The measures that a table of this depth has columns for."""
    if k is not None:
        return study.ranked(k, unit)
    usual = () if unit in ("document", "answer") else ("PrecisionOmega",)
    return [Measure(name, k, unit) for name in (*usual, *study.others(k, unit))]


def _heading(measure: Measure) -> str:
    name = "PrecisionΩ" if measure.name == "PrecisionOmega" else measure.name
    return name if measure.is_share else f"{name} × 100"


def _score_row(study: Study, number: int, report: Report, k: Depth, unit: Unit) -> tuple[Cell, ...]:
    measures = _at(study, k, unit) + _at(study, None, unit)
    chunks = report.chunks
    return (
        named(report.name, number),
        *(_score(study, report, measure) for measure in measures),
        Cell(amount(report.mean_tokens(k))),
        Cell(amount(chunks.count) if chunks else MISSING),
        Cell(amount(chunks.mean) if chunks else MISSING),
        *(Cell(text(report)) for _, text in _costs(study)),
    )


def _costs(study: Study) -> list[tuple[str, Callable[[Report], str]]]:
    """What stands beside the scores of what they cost: titles, and what each report has there."""
    known = [report.cost for report in study.reports if report.cost is not None]
    found: list[tuple[str, Callable[[Report], str]]] = [("Seconds", lambda report: duration(total_seconds(report)))]
    if known:
        found.append(("Model calls", lambda report: compact(_model_calls(report))))
        found.append(("Embedded", lambda report: compact(_embedded(report))))
    if any(cost.money is not None for cost in known):
        found.append(("Per million", lambda report: money(report.cost.money_per_million if report.cost else math.nan)))
    return found


def total_seconds(report: Report) -> float | None:
    """For chunking, embedding and searching together; None where none of these is known."""
    known = [report.seconds[step] for step in STEPS if step in report.seconds]
    return sum(known) if known else None


def _model_calls(report: Report) -> float:
    return math.nan if report.cost is None else report.cost.embedder_calls + report.cost.llm_calls


def _embedded(report: Report) -> float:
    tokens = None if report.cost is None else report.cost.embedded_tokens
    return math.nan if tokens is None else tokens


def _score(study: Study, report: Report, measure: Measure) -> Cell:
    details = [plain_text(std(report, measure))]
    verdict = measure == study.comparison.measure
    if verdict:
        details.append(interval_text(*study.comparison.intervals.get(report.name, (math.nan, math.nan))))
    return Cell(percent(mean(report, measure)), tuple(filter(None, details)), strong=verdict)


def named(name: str, number: int) -> Cell:
    """The cell that names a system."""
    return Cell(name, number=number)


def collection_table(study: Study, k: Depth, unit: Unit) -> Table | None:
    """The verdict's measure in each document collection and over all; None where there is one collection."""
    if len(study.collections) < 2:
        return None
    given = study.comparison.measure
    fixed = given.k is None or given.unit == "document" or "answer" in (given.unit, unit)
    measure = given if fixed else replace(given, k=k, unit=unit)
    reports = [report for report in study.reports if measure in report.scores]
    counts = {name: sum(other == name for other in study.reports[0].collections) for name in study.collections}
    columns = [Column("Strategy", kind="text"), Column(f"All ({sum(counts.values()):,})")]
    columns += [Column(f"{name or '(none)'} ({count:,})") for name, count in counts.items()]
    rows = []
    for number, report in enumerate(study.reports, 1):
        if report not in reports:
            continue
        by_name = report.by_collection(measure)
        spread = [(mean(report, measure), std(report, measure))]
        spread += [by_name.get(name, (math.nan, math.nan, 0))[:2] for name in study.collections]
        cells = [Cell(percent(value), tuple(filter(None, [plain_text(around)]))) for value, around in spread]
        rows.append((named(report.name, number), *cells))
    return Table(f"{measure} by collection", tuple(columns), tuple(rows))


def collection_score_tables(study: Study, k: Depth, unit: Unit) -> list[Table]:
    """Every measure in each document collection, a table a collection; none where there is one collection."""
    if len(study.collections) < 2:
        return []
    measures = _at(study, k, unit) + _at(study, None, unit)
    columns = (Column("Strategy", kind="text"), *(Column(_heading(measure)) for measure in measures))
    by_measure = {(report.name, m): report.by_collection(m) for report in study.reports for m in report.scores}
    tables = []
    for name in study.collections:

        def cell(report: Report, measure: Measure, name: str = name) -> Cell:
            value, around, _ = by_measure.get((report.name, measure), {}).get(name, (math.nan, math.nan, 0))
            return Cell(percent(value), tuple(filter(None, [plain_text(around)])))

        rows = tuple(
            (named(report.name, number), *(cell(report, measure) for measure in measures))
            for number, report in enumerate(study.reports, 1)
        )
        asked = sum(each == name for each in study.reports[0].collections)
        tables.append(Table(f"{name or '(none)'}: {asked:,} questions, {describe_depth(k)}", columns, rows))
    return tables


def difference_table(study: Study) -> Table:
    """Row minus column, in points, with its interval: bold where the data tells the two apart, with an equals sign
    where it shows that they differ by less than the margin.
    """
    names = [report.name for report in study.reports]
    columns = [Column("Row minus column", kind="text")]
    columns += [Column(str(number)) for number in range(1, len(names) + 1)]
    pairs = {(found.a, found.b): found for found in study.comparison.differences}
    rows = [
        (named(row, number), *(_difference(pairs, row, column) for column in names))
        for number, row in enumerate(names, 1)
    ]
    return Table(f"Differences of {study.comparison.measure}", tuple(columns), tuple(rows))


def pairs_note(study: Study) -> str:
    """What the signs of `difference_table` mean."""
    margin = study.comparison.margin
    within = f"{100 * margin:g} points" if study.comparison.measure.is_share else f"{margin:g}"
    return f"bold where the data tells the two apart, ≈ where it shows that they differ by less than {within}"


def difference(pairs: dict[tuple[str, str], Difference], a: str, b: str) -> Difference | None:
    """`a` minus `b`, whichever way round the pair was compared."""
    if (a, b) in pairs:
        return pairs[a, b]
    if (b, a) not in pairs:
        return None
    return pairs[b, a].reverse()


def _difference(pairs: dict[tuple[str, str], Difference], a: str, b: str) -> Cell:
    found = difference(pairs, a, b)
    if found is None or not math.isfinite(found.mean):
        return Cell("·" if a == b else MISSING)
    low, high = signed(100 * found.low), signed(100 * found.high)
    alike = "≈ " if found.equivalent else ""
    return Cell(f"{alike}{signed(100 * found.mean)}", (f"{low} to {high}",), strong=found.distinct)


def measure_table(study: Study) -> Table:
    """Which system each measure puts first at each k, and which ones it can't tell from that one."""
    unit = study.comparison.measure.unit
    shown = {k: {measure.name: measure for measure in study.ranked(k, unit)} for k in study.ks}
    rows = tuple(
        (Cell(name), *(_first(study, _compared(study, shown[k].get(name))) for k in study.ks))
        for name in dict.fromkeys(name for measures in shown.values() for name in measures)
    )
    columns = (Column("Highest mean by", kind="text"), *(Column(describe_depth(k), kind="text") for k in study.ks))
    return Table("The first by each measure", columns, rows)


def _compared(study: Study, measure: Measure | None) -> Comparison | None:
    return None if measure is None else study.comparison_by(measure)


def _first(study: Study, found: Comparison | None) -> Cell:
    if found is None or not found.tied:
        return Cell(MISSING)
    numbers = {report.name: number for number, report in enumerate(study.reports, 1)}
    first, *others = found.tied
    report = study.reports[numbers[first] - 1]
    tied = ", ".join(str(number) for number in sorted(numbers[name] for name in others))
    return Cell(
        percent(mean(report, found.measure)),
        (f"tied with {tied}" if tied else "no tie",),
        strong=found.measure == study.comparison.measure,
        number=numbers[first],
    )


def chunk_table(study: Study) -> Table | None:
    """How long each system's chunks are; None where no system's chunks are known."""
    rows = []
    for number, report in enumerate(study.reports, 1):
        if (chunks := report.chunks) is not None:
            values = (chunks.count, chunks.mean, chunks.std, chunks.minimum, chunks.median, chunks.maximum)
            rows.append((named(report.name, number), *(Cell(amount(value)) for value in values)))
    titles = ("Number", "Mean tokens", "Std", "Shortest", "Median", "Longest")
    columns = (Column("Strategy", kind="text"), *map(Column, titles))
    return Table("Chunks", columns, tuple(rows)) if rows else None


def problem_table(study: Study) -> Table | None:
    """The questions that were left out, and why; None where all were asked."""
    if study.benchmark is None or not study.benchmark.problems:
        return None
    rows = tuple((Cell(problem.query_id), Cell(problem.reason)) for problem in study.benchmark.problems)
    return Table("Questions left out", (Column("Question", kind="text"), Column("Why", kind="text")), rows)
