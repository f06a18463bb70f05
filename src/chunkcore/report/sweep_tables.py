"""A sweep's tables, as the plain cells of `tables`: scores in percent."""

from __future__ import annotations

from chunkcore.evaluation.choices import Choice, Gap
from chunkcore.evaluation.measures import describe_depth
from chunkcore.evaluation.sweep import SHOWN, Sweep
from chunkcore.report.plots import signed
from chunkcore.report.tables import MISSING, Cell, Column, Table, amount, interval_text, percent

__all__ = ["choice_table", "configuration_table", "gap_table"]


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
