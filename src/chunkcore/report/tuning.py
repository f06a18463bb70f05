"""The report of a search: tables, plots of each option, page, Markdown, JSON, and the winner's file."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from chunkcore.escaping import markdown_cell
from chunkcore.evaluation.measures import Measure, describe_depth
from chunkcore.files import installed_version, write_text
from chunkcore.report import plots
from chunkcore.report.advice import Advice
from chunkcore.report.rendering import assets, both_widths, markup, policy, template
from chunkcore.report.tables import (
    MISSING,
    Cell,
    Column,
    Table,
    amount,
    heading,
    interval_text,
    markdown_table,
    percent,
)
from chunkcore.tuning.choosing import Choice, Gap
from chunkcore.tuning.result import Fold, Tuning
from chunkcore.tuning.space import Branch
from chunkcore.tuning.trials import PLOTTED, Trial


def front_table(tuning: Tuning) -> Table[Trial]:
    """The Pareto front, the winner in bold, then the baseline."""
    goal = tuning.goal
    done = len({trial.spec for trial in tuning.trials if not trial.failure})

    def name(trial: Trial) -> Cell:
        return Cell(f"{trial.spec}{' (baseline)' if trial is tuning.baseline else ''}", strong=trial is tuning.winner)

    columns = [
        Column[Trial]("Configuration", name, kind="text"),
        Column[Trial](str(goal), lambda trial: Cell(goal.show(trial.quality), strong=trial is tuning.winner)),
    ]
    if goal.has_tokens:
        columns.append(
            Column("Tokens per question", lambda trial: amount(trial.mean_tokens), short="Tokens per\nquestion")
        )
    columns += [
        Column("Model tokens", lambda trial: amount(trial.cost), short="Model\ntokens"),
        Column("Chunks", lambda trial: amount(trial.chunks)),
    ]
    title = f"{len(tuning.front)} of {done} configurations that no other one beats in all"
    return Table(title, tuple(columns), (*tuning.front, tuning.baseline))


def fold_table(tuning: Tuning) -> Table[Fold]:
    """The choice made without each fold."""
    written = tuning.goal.show
    columns = (
        Column[Fold]("Chosen by the other questions", lambda fold: fold.spec, kind="text"),
        Column[Fold]("Of", lambda fold: amount(fold.candidates)),
        Column[Fold]("Mean where chosen", lambda fold: written(fold.training)),
        Column[Fold]("Held out", lambda fold: Cell(written(fold.held_out), strong=True)),
        Column[Fold]("Questions held out", lambda fold: amount(fold.questions)),
    )
    return Table("Chosen without each part of the questions", columns, tuning.folds)


def choice_table(tuning: Tuning) -> Table[Choice] | None:
    """Each strategy's best of a grid: its scores on questions that did not choose it, and the optimism of choosing."""
    found = tuning.strategies
    if found is None:
        return None
    goal = found.goal
    group = "Questions that chose nothing"

    def score(choice: Choice) -> Cell:
        return Cell(percent(choice.score), (interval_text(choice.low, choice.high),), strong=True)

    def flattery(choice: Choice) -> str:
        return plots.signed(100 * choice.optimism) if choice.candidates > 1 else MISSING

    by_k: list[Column[Choice]] = [
        Column(f"{goal.kind}, {describe_depth(k)}", lambda choice, k=k: percent(choice.by_k[k]), group)  # type: ignore[misc]
        for k in goal.ks
    ]
    columns = (
        Column[Choice]("Chosen", lambda choice: choice.configuration, kind="text", short="Best configuration"),
        Column[Choice]("Of", lambda choice: amount(choice.candidates), short="Of"),
        *by_k,
        Column[Choice]("Mean", score, group, short="Mean"),
        Column[Choice]("Mean where chosen", lambda choice: percent(choice.picked), short="Where\nchosen"),
        Column[Choice]("Choosing flatters by", flattery, short="Choosing\nflatters by"),
        Column[Choice]("Chosen in", lambda choice: f"{percent(choice.share, 0)} %"),
    )
    return Table("Each strategy's best configuration", columns, found.choices)


def gap_table(tuning: Tuning) -> Table[Gap] | None:
    """One row per pair of strategies; None for a single strategy."""
    if tuning.strategies is None or not tuning.strategies.gaps:
        return None

    def difference(gap: Gap) -> Cell:
        interval = f"{plots.signed(100 * gap.low)} to {plots.signed(100 * gap.high)}"
        return Cell(plots.signed(100 * gap.mean), (interval,), strong=gap.distinct)

    columns = (
        Column[Gap]("Pair", lambda gap: f"{gap.a} − {gap.b}", kind="text"),
        Column[Gap]("Difference", difference),
        Column[Gap]("p, corrected", lambda gap: f"{gap.p_value:.2g}"),
        Column[Gap]("Significant", lambda gap: "yes" if gap.distinct else "no"),
    )
    return Table("Differences of the choices, in points", columns, tuning.strategies.gaps)


def configuration_table(tuning: Tuning) -> Table[Trial]:
    """One row per configuration: means over all questions."""
    goal = tuning.goal
    columns = [
        Column[Trial]("Configuration", lambda trial: trial.spec, kind="text"),
        Column[Trial]("Chunks", lambda trial: amount(trial.chunks)),
    ]
    if tuning.strategies is None:
        columns += [
            Column("Model tokens", lambda trial: amount(trial.cost)),
            Column(str(goal), lambda trial: goal.show(trial.quality)),
        ]
    else:
        columns.append(Column("Tokens per chunk", lambda trial: amount(trial.tokens_per_chunk)))
        if goal.ks:
            columns += [
                Column(name, partial(_mean_of, tuning.goal.over_ks(name)), "Mean over k", meaning=name)
                for name in PLOTTED
            ]
        columns += [
            Column(f"{goal.kind}{f', {describe_depth(each.k)}' if each.k else ''}", partial(_mean_of, (each,)))
            for each in goal.measures
        ]
    return Table("Every configuration, on all questions", tuple(columns), tuning.configurations)


def _mean_of(measures: Sequence[Measure], trial: Trial) -> str:
    return percent(_mean(trial, measures))


def _mean(trial: Trial, measures: Sequence[Measure]) -> float:
    return sum(trial.mean(measure) for measure in measures) / len(measures)


def tuning_tables(tuning: Tuning) -> list[Table]:  # type: ignore[type-arg]
    """All tables, in the order of the files."""
    tables = (front_table, fold_table, choice_table, gap_table, configuration_table)
    return [table for make in tables if (table := make(tuning)) is not None]


# ---- plots of each option


def option_plot(tuning: Tuning, name: str | None = None, *, width: int) -> str:
    """A grid's measures against each varied option, the others fixed; "" if none varied.

    A `name` draws that measure with one line per k. None draws Recall, Precision and F1, each averaged over k, as in Qu
    et al. (2024), figures 2 to 5.
    """
    groups = []
    for branch in tuning.space.branches if tuning.strategies else ():
        for option in branch.varied:
            lines = partial(_lines, tuning, name)
            groups.append((f"{option} of {branch.grid}", option_panels(tuning, branch, option, lines)))
    title = f"{_plot_title(tuning, name)}, against each option that was varied"
    return plots.panels(groups, width=width, title=title)


def option_panels(
    tuning: Tuning, branch: Branch, option: str, lines: Callable[[Sequence[Trial]], tuple[plots.Line, ...]]
) -> list[plots.Panel]:
    """One panel per combination of the branch's other options; all its trials need scores."""
    labels = tuple(branch.written(option, place) for place in range(len(branch.varied[option].values)))
    known = {trial.spec: trial for trial in tuning.configurations}
    found: dict[str, list[Trial]] = {}
    for drawn in branch.combinations():
        fixed = ", ".join(f"{each}={branch.written(each, drawn[each])}" for each in branch.varied if each != option)
        trials = found.setdefault(fixed, [])
        if (spec := branch.spec(drawn)) in known:
            trials.append(known[spec])
    whole = {fixed: trials for fixed, trials in found.items() if len(trials) == len(labels)}
    return [plots.Panel(option, labels, fixed, lines(trials)) for fixed, trials in whole.items()]


def _lines(tuning: Tuning, name: str | None, trials: Sequence[Trial]) -> tuple[plots.Line, ...]:
    goal = tuning.goal

    def line(letters: str, title: str, measures: Sequence[Measure]) -> plots.Line:
        return plots.Line(letters, title, tuple(100 * _mean(trial, measures) for trial in trials))

    if name is None:
        return tuple(line(each[0], each, goal.over_ks(each)) for each in PLOTTED)
    if name == goal.kind and not goal.ks:
        return (line(name, name, goal.measures),)
    return tuple(line(str(each.k), f"k = {each.k}", (each,)) for each in goal.over_ks(name))


def _plot_title(tuning: Tuning, name: str | None) -> str:
    unit = "" if tuning.goal.unit in ("token", "answer") else f" of {tuning.goal.unit}s"
    if name is None:
        return f"Recall (R), precision (P) and F1 (F){unit} in percent, averaged over k"
    title = name if name != tuning.goal.kind else heading(tuning.goal.measures[0])
    return f"{title}{unit} in percent, a line a k" if tuning.goal.ks else f"{title}{unit}"


def _plots(tuning: Tuning) -> list[tuple[str, dict[str, object]]]:
    """All measures together, then each with one line per k; none if nothing varied."""
    if tuning.strategies is None or not any(branch.varied for branch in tuning.space.branches):
        return []
    usual: tuple[str | None, ...] = (None, *PLOTTED) if tuning.goal.ks else ()
    return [
        (_plot_title(tuning, name), both_widths(lambda width, name=name: option_plot(tuning, name, width=width)))  # type: ignore[misc]
        for name in dict.fromkeys([*usual, tuning.goal.kind])
    ]


# ---- the page and the files


@dataclass(frozen=True, slots=True)
class TuningFiles:
    """Paths of the files of a search's report."""

    html: Path
    markdown: Path
    json: Path
    winner: Path


def write_tuning(
    tuning: Tuning,
    folder: Path | str,
    settings: Mapping[str, str] | None = None,
    *,
    embedder: str = "",
    name: str = "tune",
    advice: Advice | None = None,
) -> TuningFiles:
    """Write ``tune.html``, ``tune.md``, ``tune.json`` and ``winner.yaml`` (for ``compare --config``), each atomically.

    Args:
        folder: created if missing.
        embedder: the model's name for `get_embedder`, for the snippets; its own name by default.
        name: of the first three files.
        advice: what to do, first; that of `Advice.of_search` by default.

    Raises:
        MissingExtraError: jinja2 is not installed.
        OSError: the folder cannot be written to.
    """
    options = tuning.options
    shown = {
        "Questions": amount(len(tuning.held_out_report.query_ids)),
        "Embedder": tuning.embedder,
        "Retriever": options.retriever,
        "Scores count tokens of": options.counter if isinstance(options.counter, str) else options.counter.name,
        "Held out": f"{options.folds} parts, by {options.by}",
        "Seed": str(options.seed),
        **(settings or {}),
    }
    advice = advice or Advice.of_search(tuning, embedder)
    told = {"advice": dict(advice.lines), "snippets": dict(advice.pasted), "settings": shown}
    data = {**tuning.to_dict(), **told}
    texts = {
        "markdown": (f"{name}.md", tuning_markdown(tuning, shown, advice)),
        "json": (f"{name}.json", json.dumps(data, ensure_ascii=True, allow_nan=False, indent=1) + "\n"),
        "winner": ("winner.yaml", advice.pasted["YAML, for compare --config"] + "\n"),
        "html": (f"{name}.html", tuning_html(tuning, shown, advice)),
    }
    return TuningFiles(**{kind: write_text(Path(folder) / file, text) for kind, (file, text) in texts.items()})


def tuning_markdown(tuning: Tuning, settings: Mapping[str, str], advice: Advice) -> str:
    """What to do, the verdict and the tables."""
    parts = [f"# Tuning on {markdown_cell(tuning.benchmark)}", advice.markdown()]
    parts += ["## Verdict", markdown_cell(tuning.verdict)]
    if tuning.strategies is not None:
        parts.append(markdown_cell(tuning.strategies.verdict))
    for table in tuning_tables(tuning):
        parts += [f"## {markdown_cell(table.title)}", markdown_table(table)]
    parts.append("## How this was made")
    parts.append("\n".join(f"- {markdown_cell(name)}: {markdown_cell(value)}" for name, value in settings.items()))
    return "\n\n".join(parts) + "\n"


def tuning_html(tuning: Tuning, settings: Mapping[str, str], advice: Advice) -> str:
    """The page: no script, no connection; text from the data is inert."""
    style = assets("page.css")
    return str(
        template("tuning.html.jinja").render(
            policy=policy(style),
            style=markup(style),
            version=installed_version(),
            tuning=tuning,
            winner=winner_facts(tuning),
            front=front_table(tuning),
            folds=fold_table(tuning),
            advice=advice,
            settings=settings,
            shown=tuning_section(tuning),
        )
    )


def winner_facts(tuning: Tuning) -> list[str]:
    """The winner with the score it was picked by, and its expected score, one line each."""
    goal = tuning.goal
    low, high = map(goal.show, tuning.interval)
    specs = [fold.spec for fold in tuning.folds]
    chosen = "; ".join(
        f"{spec} ({specs.count(spec)} of {len(specs)})"
        for spec in sorted(dict.fromkeys(specs), key=lambda s: -specs.count(s))
    )
    optimism = "unknown" if math.isnan(tuning.optimism) else f"{goal.show(tuning.optimism)}{goal.points}"
    return [
        f"The winner ({tuning.rule}): {tuning.winner.spec}",
        f"Picked by {goal.show(tuning.picked)}{goal.suffix} on all questions.",
        f"Held out: {goal.show(tuning.held_out)}{goal.suffix} (95 % interval {low} to {high}), "
        "which is what to expect of the choice on other questions.",
        f"Optimism: {optimism}. Chosen without each part of the questions: {chosen}.",
    ]


def tuning_section(tuning: Tuning) -> dict[str, object]:
    """A grid's choices and configurations, for the comparison's page and the search's page."""
    return {
        "strategies": tuning.strategies,
        "choices": choice_table(tuning),
        "gaps": gap_table(tuning),
        "plots": _plots(tuning),
        "configurations": configuration_table(tuning),
    }
