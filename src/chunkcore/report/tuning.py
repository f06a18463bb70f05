"""What a page shows of a search: the choice of each fold, every configuration, and a plot of each option."""

from __future__ import annotations

from itertools import count

from chunkcore.evaluation.results import Report
from chunkcore.report import plots
from chunkcore.report.tables import Cell, Column, Table, amount, duration, total_seconds
from chunkcore.specs import split_spec
from chunkcore.tuning import Fold, Tuning, varied_options


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
        names = [label for name, label in ((tuning.use, "use"), (tuning.default, "default")) if name == report.name]
        return Cell(tuning.configurations[report.name].chunker, tuple(names), strong=report.name == tuning.use)

    columns = (
        Column[Report]("Chunker", chunker, kind="text"),
        Column[Report]("Retriever", lambda report: tuning.configurations[report.name].retriever, kind="text"),
        Column[Report](str(tuning.measure), lambda report: tuning.measure.show(report.mean(tuning.measure))),
        Column[Report]("Chunks", lambda report: amount(report.chunks.count if report.chunks else None)),
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


def option_plot(tuning: Tuning, *, width: int) -> str:
    """The measure against each option of a chunker that varies, a line a retriever; "" if none varies."""
    groups = [
        (f"{option} of {chunker}", _panels(tuning, chunker, option, tuple(values)))
        for chunker, options in varied_options(list(tuning.configurations.values())).items()
        for option, values in options.items()
    ]
    title = f"{tuning.measure} in percent against each option that was varied"
    return plots.panels(groups, width=width, title=title)


def _panels(tuning: Tuning, chunker: str, option: str, values: tuple[str, ...]) -> list[plots.Panel]:
    """One panel for each combination of the chunker's other options."""
    means: dict[str, dict[str, dict[str, float]]] = {}  # by the other options, retriever and value
    for report in tuning.reports:
        spec, retriever = tuning.configurations[report.name]
        name, options = split_spec(spec)
        if name == chunker and option in options:
            others = ", ".join(f"{key}={value}" for key, value in options.items() if key != option)
            line = means.setdefault(others, {}).setdefault(retriever, {})
            line[str(options[option])] = 100 * report.mean(tuning.measure)
    return [
        plots.Panel(
            option,
            values,
            others,
            tuple(
                plots.Line(str(number), retriever, tuple(line.get(value, float("nan")) for value in values))
                for number, (retriever, line) in zip(count(1), lines.items(), strict=False)
            ),
        )
        for others, lines in means.items()
    ]
