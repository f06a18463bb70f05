"""The report's tables, as plain cells that the terminal, Markdown and HTML each lay out in their own way.

Scores are shown in percent.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np

from chunkcore.evaluation.measures import Depth, Measure, Unit, budget_of, describe_depth, get_measure
from chunkcore.evaluation.results import Cost, Report
from chunkcore.evaluation.statistics.choices import Choice, Gap
from chunkcore.evaluation.statistics.comparison import Comparison, Difference
from chunkcore.report.plots import signed
from chunkcore.report.study import Study, mean, std
from chunkcore.run import MatchKind
from chunkcore.tuning.grid import SHOWN, Sweep

__all__ = [
    "GROUPS",
    "Cell",
    "Column",
    "CostAxis",
    "Table",
    "choice_table",
    "chunk_table",
    "collection_score_tables",
    "collection_table",
    "configuration_table",
    "cost_axis",
    "cost_table",
    "cross_table",
    "difference_table",
    "gap_table",
    "located_table",
    "measure_table",
    "pairs_note",
    "problem_table",
    "score_table",
    "warnings",
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
    return [get_measure(name, k, unit) for name in (*usual, *study.others(k, unit))]


def _heading(measure: Measure) -> str:
    return measure.title if measure.is_share else f"{measure.title} × 100"


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
    shown = {k: {measure.kind: measure for measure in study.ranked(k, unit)} for k in study.ks}
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


# Of 2,000 samples from a strategy whose recall is 90 % (a question is found or not), the 95 % interval held the
# 90 % in 64 % with 10 questions, 86 % with 20, 95 % with 30.
FEW = 30

HOW: dict[str, str] = {
    "spans": "by its spans",
    "exact": "by its text",
    "whitespace": "by its text but for white space",
    "folded": "by its letters and digits",
    "order": "by its text and its neighbours",
    "fuzzy": "by resemblance",
    "part": "by a part of its text",
    "ambiguous": "at one of several places",
    "unlocated": "nowhere",
}


def warnings(study: Study) -> list[str]:
    """One sentence each, of the study and then in the order of the reports; empty where there is nothing to warn of."""
    found = [study.stopped] if study.stopped else []
    if len({report.documents_digest for report in study.reports} - {""}) > 1:
        found.append("The systems were scored on different documents, or on different versions of them.")
    if (count := len(study.reports[0].query_ids)) < FEW:
        found.append(f"Only {plural(count, 'question')} asked: with fewer than {FEW}, intervals are often too narrow.")
    found += [text for report in study.reports for text in _about(report)]
    left_out = len(study.benchmark.problems) if study.benchmark else 0
    if left_out:
        found.append(
            f"{plural(left_out, 'question')} left out because the evidence could not be placed; the report lists each."
        )
    without = len(study.benchmark.without_evidence) if study.benchmark else 0
    if without:
        found.append(f"{plural(without, 'question')} not scored because the collection marks no evidence for them.")
    return found


def _about(report: Report) -> list[str]:
    found = []
    if report.chunks is not None and report.chunks.truncated:
        cut = report.chunks.truncated
        chunks = f"{cut:,} of {report.chunks.count:,} chunks {'is' if cut == 1 else 'are'}"
        found.append(
            f"{report.name}: {chunks} longer than the embedder reads; "
            f"{amount(report.chunks.tokens_lost)} of its tokens were cut off and had no part in the search."
        )
    if report.search_recall is not None:
        found.append(f"{report.name}: the search is approximate and found {report.search_recall}.")
    for k, tokens in report.retrieved_tokens.items():
        # The last piece may end a few tokens early, where a cut would be inside of a character.
        short = int(np.count_nonzero(tokens < 0.95 * (budget_of(k) or 0)))
        if short:
            asked = plural(short, "question")
            found.append(f"{report.name}: {asked} answered with fewer than {describe_depth(k)}, all that the run has.")
    if report.unanswered:
        asked = plural(len(report.unanswered), "question")
        found.append(f"{report.name}: {asked} not answered by this run and scored 0.")
    if lost := report.located.get("unlocated", 0):
        pieces = plural(lost, "retrieved piece")
        found.append(f"{report.name}: {pieces} to be found in no document and counted as irrelevant.")
    return found


def plural(count: int, noun: str) -> str:
    """A count with its noun and "is" or "are".

    >>> plural(1, "chunk"), plural(2, "chunk")
    ('1 chunk is', '2 chunks are')
    """
    return f"{count:,} {noun} is" if count == 1 else f"{count:,} {noun}s are"


def located_table(study: Study) -> Table | None:
    """How many retrieved pieces were located how; None where every one came with right spans."""
    if all(how == "spans" or not count for report in study.reports for how, count in report.located.items()):
        return None
    hows: tuple[MatchKind, ...] = get_args(MatchKind)
    columns = (Column("Strategy", kind="text"), *(Column(HOW[how], "Pieces located") for how in hows))
    rows = tuple(
        (named(report.name, number), *(_located(report, how) for how in hows))
        for number, report in enumerate(study.reports, 1)
    )
    return Table("How pieces were located", columns, rows)


def _located(report: Report, how: MatchKind) -> Cell:
    """A count, and how sure the places are where they may be wrong."""
    sure = report.certainty.get(how, 1.0)
    return Cell(amount(report.located.get(how, 0)), (f"{percent(sure, 0)} % sure",) if sure < 1 else ())


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


# Between a strategy's name and what it was searched with; see `run_experiment`.
JOINT = " · "


def cross_table(study: Study) -> Table | None:
    """A row a strategy, a column a retriever or embedder: the mean by the verdict's measure, and its interval.

    None where the names tell no two ways of searching that share two strategies (Qu, Tu and Bao 2024, appendix E.2,
    lay out chunkers and embedders so).
    """
    places = {report.name.partition(JOINT)[::2]: report for report in study.reports}
    rows = list(dict.fromkeys(strategy for strategy, _ in places))
    ways = list(dict.fromkeys(way for _, way in places))
    if len(rows) < 2 or len(ways) < 2 or len(places) < 4 or len(places) <= max(len(rows), len(ways)):
        return None
    numbers = {report.name: number for number, report in enumerate(study.reports, 1)}
    measure = study.comparison.measure

    def cell(strategy: str, way: str) -> Cell:
        report = places.get((strategy, way))
        if report is None:
            return Cell(MISSING)
        interval = interval_text(*study.comparison.intervals[report.name])
        details = (interval,) if interval else ()
        return Cell(percent(mean(report, measure)), details, report.name in study.comparison.tied, numbers[report.name])

    columns = (Column("Strategy", kind="text"), *(Column(way or "(not named)", "Searched by", "text") for way in ways))
    cells = tuple((Cell(strategy), *(cell(strategy, way) for way in ways)) for strategy in rows)
    return Table(f"{measure} by strategy and search", columns, cells)


def choice_table(sweep: Sweep) -> Table:
    """A row a strategy: what was chosen, its scores on the questions that did not choose, and how choosing flatters."""
    what = "Questions that chose nothing"
    columns = [Column("Chosen", kind="text"), Column("Of")]
    columns += [Column(f"{sweep.measure}, {describe_depth(k)}", what) for k in sweep.ks]
    columns += [Column("Mean", what), Column("Mean where chosen"), Column("Choosing flatters by"), Column("Chosen in")]
    return Table("Each strategy's best configuration", tuple(columns), tuple(_choice(each) for each in sweep.choices))


def _choice(choice: Choice) -> tuple[Cell, ...]:
    return (
        Cell(choice.configuration),
        Cell(amount(choice.candidates)),
        *(Cell(percent(value)) for value in choice.by_k.values()),
        Cell(percent(choice.score), (interval_text(choice.low, choice.high),), strong=True),
        Cell(percent(choice.picked)),
        Cell(signed(100 * choice.optimism) if choice.candidates > 1 else MISSING),
        Cell(f"{percent(choice.share, 0)} %"),
    )


def gap_table(sweep: Sweep) -> Table | None:
    """A row a pair of strategies; None where there is only one."""
    if not sweep.gaps:
        return None
    columns = (Column("Pair", kind="text"), Column("Difference"), Column("p, corrected"), Column("Told apart"))
    return Table("Differences of the choices, in points", columns, tuple(_gap(each) for each in sweep.gaps))


def _gap(gap: Gap) -> tuple[Cell, ...]:
    interval = f"{signed(100 * gap.low)} to {signed(100 * gap.high)}"
    return (
        Cell(f"{gap.a} − {gap.b}"),
        Cell(signed(100 * gap.mean), (interval,), strong=gap.distinct),
        Cell(f"{gap.p_value:.2g}"),
        Cell("yes" if gap.distinct else "no"),
    )


def configuration_table(sweep: Sweep) -> Table:
    """A row a configuration: means over all questions."""
    columns = [Column("Configuration", kind="text"), Column("Chunks"), Column("Tokens per chunk")]
    columns += [Column(name, "Mean over k") for name in SHOWN]
    columns += [Column(f"{sweep.measure}, {describe_depth(k)}") for k in sweep.ks]
    rows = []
    for each in sweep.configurations:
        chunks = sweep.reports[each.spec].chunks
        rows.append(
            (
                Cell(each.spec),
                Cell(amount(chunks.count) if chunks else MISSING),
                Cell(amount(chunks.mean) if chunks else MISSING),
                *(Cell(percent(sweep.mean(each.spec, name))) for name in SHOWN),
                *(Cell(percent(sweep.mean(each.spec, sweep.measure, k))) for k in sweep.ks),
            )
        )
    return Table("Every configuration, on all questions", tuple(columns), tuple(rows))
