"""What a search found, in a terminal. Needs rich, which comes with the command line."""

from __future__ import annotations

import math
from collections import Counter
from textwrap import wrap
from typing import TYPE_CHECKING

from chunkcore.escaping import terminal_text
from chunkcore.evaluation.measures import Measure, budget_of
from chunkcore.tuning.result import Tuning
from chunkcore.tuning.trial import Trial

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

__all__ = ["print_tuning"]

_MOST_ROWS = 15
_NAME = 44  # columns for a configuration
_STOPPED = {
    "time": "The time was over after {done} of {wanted} trials; the same command goes on.",
    "interrupted": "Stopped after {done} of {wanted} trials; the same command goes on.",
    "exhausted": "All of the space was tried, in {done} trials of {wanted}.",
}


def print_tuning(tuning: Tuning, console: Console) -> None:
    """Print the Pareto front, the winner with its honest score, the verdict, and what failed."""
    from rich.text import Text

    console.print(_table(tuning))
    if len(tuning.front) > _MOST_ROWS:
        console.print(Text(f"and {len(tuning.front) - _MOST_ROWS} more, in tune.json"), style="dim")
    console.print(Text(_legend(tuning)), style="dim")
    if tuning.stopped:
        done, wanted = len(tuning.trials), tuning.options.trials
        console.print(Text(_STOPPED[tuning.stopped].format(done=done, wanted=wanted)), style="yellow")
    for reason, count in Counter(trial.failure for trial in tuning.failed).most_common(3):
        console.print(Text(terminal_text(f"! {_trials(count)} failed: {reason}")), style="yellow")
    console.print()
    for line in _winner(tuning):
        console.print(Text(terminal_text(line)), soft_wrap=True)
    console.print()
    console.print(Text(terminal_text(tuning.verdict)), style="bold")


def _table(tuning: Tuning) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    done = len({trial.spec for trial in tuning.trials if not trial.failure})
    title = f"{len(tuning.front)} of {done} configurations that no other one beats in all"
    table = Table(title=Text(title), box=box.SIMPLE_HEAD, title_justify="left", pad_edge=False)
    table.add_column("Configuration", overflow="fold")
    columns = _columns(tuning)
    for name in columns:
        table.add_column(Text(name), justify="right")
    for trial in [*tuning.front[:_MOST_ROWS], tuning.baseline]:
        name = _lines(trial.spec) + (" (baseline)" if trial is tuning.baseline else "")
        style = "bold" if trial is tuning.winner else "dim" if trial is tuning.baseline else ""
        table.add_row(Text(name), *(_cell(tuning, trial, column) for column in columns), style=style)
    return table


def _lines(spec: str) -> str:
    """A configuration in lines that end after a comma, as a narrow terminal shows them."""
    parts = spec.replace(",", ", ")
    return "\n".join(wrap(terminal_text(parts), _NAME, break_on_hyphens=False)).replace(", ", ",")


def _columns(tuning: Tuning) -> list[str]:
    measure = tuning.measure
    tokens = [] if measure.k is None or budget_of(measure.k) else ["Tokens per\nquestion"]
    return [f"{measure}", *tokens, "Model\ntokens", "Chunks"]


def _cell(tuning: Tuning, trial: Trial, column: str) -> str:
    if column == str(tuning.measure):
        return _score(tuning.measure, trial.quality)
    if column.startswith("Tokens"):
        return f"{trial.mean_tokens:,.0f}"
    return f"{trial.cost:,}" if column.startswith("Model") else f"{trial.chunks:,}"


def _legend(tuning: Tuning) -> str:
    unit = "% of " if tuning.measure.is_share else ""
    return (
        f"{unit}{tuning.measure} over all questions, by which the configurations were picked, and so too high for the "
        "best; model tokens: what models read (and language models write) to cut and embed all documents once"
    )


def _winner(tuning: Tuning) -> list[str]:
    measure = tuning.measure
    low, high = (_score(measure, each) for each in tuning.interval)
    points = " points" if measure.is_share else ""
    share = " %" if measure.is_share else ""
    times = Counter(fold.spec for fold in tuning.folds).most_common()
    chosen = "; ".join(f"{spec} ({count} of {len(tuning.folds)})" for spec, count in times)
    optimism = "unknown" if math.isnan(tuning.optimism) else f"{_score(measure, tuning.optimism)}{points}"
    return [
        f"The winner ({tuning.rule}): {tuning.winner.spec}",
        f"Picked by {_score(measure, tuning.picked)}{share} on all questions.",
        f"Held out: {_score(measure, tuning.held_out)}{share} (95 % interval {low} to {high}), "
        "which is what to expect of the choice on other questions.",
        f"Optimism: {optimism}. Chosen without each part of the questions: {chosen}.",
    ]


def _score(measure: Measure, value: float) -> str:
    return f"{100 * value:.1f}" if measure.is_share else f"{value:.3f}"


def _trials(count: int) -> str:
    return "one configuration" if count == 1 else f"{count} configurations"
