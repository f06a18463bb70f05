"""`Tuning`: what a search found, what the choice is worth, and what to paste."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from chunkcore.chunkers.base import get_chunker, strategies
from chunkcore.errors import DataError
from chunkcore.escaping import plain_json
from chunkcore.evaluation.benchmarks.benchmark import Benchmark, question_documents
from chunkcore.evaluation.measures import Scores
from chunkcore.evaluation.results import Report
from chunkcore.evaluation.statistics.pareto import pareto_front
from chunkcore.models.loading import DEFAULT_MODEL
from chunkcore.registry import format_spec, split_spec
from chunkcore.tuning.choosing import (
    Gap,
    HeldOut,
    Outcomes,
    Spread,
    StrategyChoices,
    choose,
    hold_out,
    rechosen,
)
from chunkcore.tuning.space import Branch, Space
from chunkcore.tuning.trials import Goal, Trial, TuneOptions, mean_of

__all__ = ["Fold", "Stopped", "Tuning", "conclude", "pareto_trials", "portable_spec", "snippets"]

Stopped = Literal["", "time", "interrupted", "exhausted"]

FORMAT = "chunkcore-tune-1"
CHOICE = "the tuned choice"  # its scores are the held-out ones
_MATTERS = 0.02  # two points, as in `compare`; the same number for a measure that is no share
_FEWEST_UNALIKE = 6  # questions; where fewer score unalike, their spread says nothing about other questions
_RESAMPLES = 2_000  # enough for a standard error; each makes every choice anew


@dataclass(frozen=True, kw_only=True)
class Fold:
    """What was chosen without some questions.

    Attributes:
        spec: the configuration that all other questions chose.
        training: its mean on those.
        held_out: its mean on the fold's own questions.
        questions: how many these are.
        candidates: how many configurations it was chosen from.
    """

    spec: str
    training: float
    held_out: float
    questions: int
    candidates: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Tuning:
    """What a search found.

    Attributes:
        options: how it was searched.
        space: what was searched.
        benchmark: the benchmark's name.
        embedder: the embedder's name.
        trials: all that were tried, in order; a trial that failed has a reason.
        baseline: the configuration that the choice is compared with.
        winner: the configuration to take.
        front: the configurations that no other one beats in quality, retrieved tokens and cost at once, the best first.
        folds: what was chosen without each part of the questions.
        held_out_report: the scores of all questions, each by the configuration that was chosen without it.
        interval: of the held-out mean, at 95 %; see `rechosen`.
        difference: of the same scores from the baseline's; `distinct` where its 95 % interval leaves 0 out.
        strategies: of a grid, each strategy's best configuration by one half of the questions, compared on the other;
            None where configurations were proposed, which saw the scores of both halves.
        stopped: why there are fewer trials than were asked for: "time", "interrupted" or "exhausted" (the space);
            "" where there are not.
    """

    options: TuneOptions
    space: Space
    benchmark: str
    embedder: str
    trials: tuple[Trial, ...]
    baseline: Trial
    winner: Trial
    front: tuple[Trial, ...]
    folds: tuple[Fold, ...]
    held_out_report: Report
    interval: tuple[float, float]
    difference: Gap
    strategies: StrategyChoices | None = None
    stopped: Stopped = ""

    @cached_property
    def goal(self) -> Goal:
        """What was made high."""
        return self.options.goal

    @property
    def wanted(self) -> int:
        """How many trials there were to be."""
        return len(self.space.specs) if self.space.exhaustive else self.options.trials

    @property
    def picked(self) -> float:
        """The winner's mean over the questions that chose it: too high, as it is the highest of many."""
        return self.winner.quality

    @property
    def held_out(self) -> float:
        """The mean over all questions, each scored by the configuration that was chosen without it."""
        return mean_of(self.goal.scores(self.held_out_report))

    @property
    def optimism(self) -> float:
        """By how much the picked score is over the held-out one."""
        return self.picked - self.held_out

    @property
    def failed(self) -> tuple[Trial, ...]:
        """The trials without scores."""
        return tuple(trial for trial in self.trials if trial.failure)

    @property
    def configurations(self) -> tuple[Trial, ...]:
        """The trials with scores, each configuration once, in the order in which they were tried."""
        return tuple({trial.spec: trial for trial in reversed(self.trials) if not trial.failure}.values())[::-1]

    @property
    def rule(self) -> str:
        """How the winner is chosen, in words."""
        if not self.options.margin:
            return (
                f"the highest mean {_noun(self.goal)}; of equal ones the fewest retrieved tokens, then the lowest cost"
            )
        margin = self.options.margin
        given = f"{100 * margin:g} points" if self.goal.points else f"{margin:g}"
        return (
            f"of the configurations whose mean {_noun(self.goal)} is within {given} of the highest, the one with the "
            "fewest retrieved tokens, then with the lowest cost"
        )

    @property
    def verdict(self) -> str:
        """What the search may claim, in two sentences."""
        show = self.goal.show
        low, high = map(show, self.interval)
        share, points = self.goal.suffix, self.goal.points
        asked = int(np.count_nonzero(~np.isnan(self.goal.scores(self.held_out_report))))
        opening = (
            f"On questions that had no part in choosing it the choice has a {self.goal} of "
            f"{show(self.held_out)}{share} (95 % interval {low} to {high}; {asked:,} questions)."
        )
        lead = self.difference
        if not lead.wins and not lead.losses:
            return f"{opening} {lead.b} scores the same on every question."
        way = "ahead of" if lead.mean >= 0 else "behind"
        low, high = show(lead.low), show(lead.high)
        unalike = f"higher on {lead.wins:,} questions, lower on {lead.losses:,}"
        claim = (
            "more than chance explains"
            if lead.distinct
            else "no difference can be told from chance"
            + (f", and one of {show(_MATTERS)}{points} or more is ruled out" if lead.equivalent else "")
        )
        return (
            f"{opening} It is {show(abs(lead.mean))}{points} {way} {lead.b} "
            f"(95 % interval of the difference {low} to {high}; {unalike}): {claim}."
        )

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain JSON values, NaN as null; with the scores of each question of a grid."""
        low, high = self.interval
        scores = {"picked": self.picked, "held_out": self.held_out, "low": low, "high": high, "optimism": self.optimism}
        data = {
            "format": FORMAT,
            "benchmark": self.benchmark,
            "questions": len(self.held_out_report.query_ids),
            "embedder": self.embedder,
            "measure": str(self.goal),
            "counter": self.options.counter if isinstance(self.options.counter, str) else self.options.counter.name,
            "retriever": self.options.retriever,
            "seed": self.options.seed,
            "by": self.options.by,
            "trials_wanted": self.wanted,
            "stopped": self.stopped,
            "rule": self.rule,
            "winner": _described(self.winner) | scores,
            "baseline": _described(self.baseline),
            "difference": self.difference,
            "verdict": self.verdict,
            "folds": self.folds,
            "front": list(map(_described, self.front)),
            "trials": list(map(_described, self.trials)),
        }
        if self.strategies is not None:
            data["strategies"] = self.strategies.to_dict() | {
                "grids": [
                    {
                        "grid": branch.grid,
                        "strategy": branch.strategy,
                        "options": {option: each.values for option, each in branch.varied.items()},
                    }
                    for branch in self.space.branches
                ],
                "configurations": [_measured(trial, self.space.branch(trial.branch)) for trial in self.configurations],
            }
        plain: dict[str, Any] = plain_json(data)
        return plain


def _noun(goal: Goal) -> str:
    """The goal after the word "mean"."""
    return str(goal).removeprefix("mean ")


def conclude(
    trials: Sequence[Trial],
    benchmark: Benchmark,
    space: Space,
    fold_of: NDArray[np.int64],
    options: TuneOptions,
    embedder: str,
    stopped: Stopped,
) -> Tuning:
    """Choose, hold out and compare.

    Args:
        trials: all that were run, the baseline among them, by their numbers.
        benchmark: the questions.
        space: what was searched.
        fold_of: each question's fold.
        options: see `TuneOptions`.
        embedder: its name.
        stopped: see `Tuning`.

    Raises:
        DataError: no configuration could be run.
    """
    baseline = next(trial for trial in trials if trial.number < 0)
    tried = [trial for trial in trials if trial.number >= 0]
    done = [trial for trial in tried if not trial.failure]
    if not done:
        raise DataError(_nothing(tried))
    outcomes = Outcomes(
        np.column_stack([trial.scores for trial in done]),
        np.column_stack([trial.tokens for trial in done]),
        np.array([float(trial.cost) for trial in done]),
    )
    allowed = np.array(
        [[trial.fold is None or trial.fold == fold for trial in done] for fold in range(options.folds)], dtype=np.bool_
    )
    if not allowed.any(axis=1).all():
        raise DataError("too few configurations could be run to choose without some questions: try more of them")
    held = hold_out(outcomes, fold_of, allowed, options.margin)
    documents = question_documents(benchmark) if options.by == "document" else {}
    clusters = [documents[query.id] for query in benchmark.queries] if documents else None
    spread = rechosen(
        outcomes,
        baseline.scores,
        fold_of,
        allowed,
        options.margin,
        resamples=min(options.resamples, _RESAMPLES),
        seed=options.seed,
        clusters=clusters,
    )
    mean = mean_of(held.scores)
    ids = [query.id for query in benchmark.queries]
    strategies = None
    if space.exhaustive:
        strategies = StrategyChoices.of(
            options.goal,
            _candidates(done, space, options.goal),
            ids,
            clusters or ids,
            seed=options.seed,
            resamples=options.resamples,
        )
    return Tuning(
        options=options,
        space=space,
        benchmark=benchmark.name,
        embedder=embedder,
        trials=tuple(tried),
        baseline=baseline,
        winner=done[choose(*outcomes.means(), outcomes.cost, options.margin)],
        front=pareto_trials(done),
        folds=tuple(
            Fold(
                spec=done[pick].spec,
                training=training,
                held_out=mean,
                questions=int(np.count_nonzero(fold_of == fold)),
                candidates=len({trial.spec for trial, may in zip(done, allowed[fold], strict=True) if may}),
            )
            for fold, (pick, training, mean) in enumerate(zip(held.picks, held.training, held.means, strict=True))
        ),
        held_out_report=_report(benchmark, options.goal, done, held, fold_of),
        interval=spread.interval(mean, spread.mean),
        difference=_difference(held.scores, baseline, spread),
        strategies=strategies,
        stopped=stopped,
    )


def pareto_trials(trials: Sequence[Trial]) -> tuple[Trial, ...]:
    """The trials that no other one beats in quality, retrieved tokens and cost at once, the best first.

    Of trials that are equal in all three the first stands for them.
    """
    points = np.array([[trial.quality, trial.mean_tokens, trial.cost] for trial in trials], dtype=np.float64)
    # No quality is worse than any; where tokens are not known, they are known of no trial.
    points[:, 0] = np.where(np.isnan(points[:, 0]), -1.0, points[:, 0])
    points[:, 1] = np.nan_to_num(points[:, 1])
    front = pareto_front(points, better=("high", "low", "low"))
    distinct = {tuple(points[place].tolist()): trials[place] for place in reversed(front)}
    return tuple(sorted(distinct.values(), key=lambda trial: (-trial.quality, trial.mean_tokens, trial.cost)))


def _candidates(done: Sequence[Trial], space: Space, goal: Goal) -> dict[str, dict[str, Scores]]:
    """By strategy, the scores of the configurations of all of its grids; of equal configurations the first."""
    found: dict[str, dict[str, Trial]] = {}
    for trial in done:
        strategy = space.branch(trial.branch).strategy
        found.setdefault(strategy, {}).setdefault(get_chunker(trial.spec).label, trial)

    def scores(trial: Trial) -> Scores:
        return np.column_stack([trial.measured[measure] for measure in goal.measures])

    return {name: {each.spec: scores(each) for each in trials.values()} for name, trials in found.items()}


def _report(
    benchmark: Benchmark, goal: Goal, done: Sequence[Trial], held: HeldOut, fold_of: NDArray[np.int64]
) -> Report:
    """The held-out scores as those of one system."""
    ids, collections = zip(*((query.id, query.collection) for query in benchmark.queries), strict=True)
    chosen = [done[pick] for pick in held.picks]
    if len(goal.measures) == 1:
        scores = {goal.measures[0]: held.scores}
    else:
        by_fold = {each: np.stack([trial.measured[each] for trial in chosen]) for each in goal.measures}
        scores = {each: values[fold_of, np.arange(len(fold_of))] for each, values in by_fold.items()}
    tokens = np.stack([trial.tokens for trial in chosen])[fold_of, np.arange(len(fold_of))]
    depths = {goal.ks[0]: tokens} if len(goal.ks) == 1 else {}
    return Report(CHOICE, benchmark.name, ids, collections, scores, depths)


def _difference(scores: NDArray[np.float64], baseline: Trial, spread: Spread) -> Gap:
    apart = scores - baseline.scores
    known = apart[~np.isnan(apart)]
    mean = mean_of(apart)
    low, high = spread.interval(mean, spread.lead)
    narrow, wide = spread.interval(mean, spread.lead, 0.9)  # two one-sided tests at 5 %
    wins, losses = int(np.count_nonzero(known > 0)), int(np.count_nonzero(known < 0))
    return Gap(
        CHOICE,
        baseline.spec,
        mean,
        low,
        high,
        distinct=(low > 0 or high < 0) and wins + losses >= _FEWEST_UNALIKE,
        equivalent=narrow > -_MATTERS and wide < _MATTERS and wins + losses >= _FEWEST_UNALIKE,
        wins=wins,
        losses=losses,
    )


def _nothing(tried: Sequence[Trial]) -> str:
    if not tried:
        return "the time was over before any configuration was tried: give it more"
    return (
        f"none of the {len(tried)} configurations could be run; the first, {tried[0].spec}, failed: {tried[0].failure}"
    )


def _described(trial: Trial) -> dict[str, Any]:
    """A trial without its per-question scores."""
    found: dict[str, Any] = {
        "number": trial.number,
        "spec": trial.spec,
        "origin": trial.origin,
        "mean": trial.quality,
        "retrieved_tokens": trial.mean_tokens,
        "embedded_tokens": trial.embedded,
        "llm_tokens": trial.asked,
        "chunks": trial.chunks,
        "seconds": round(trial.seconds, 3),
    }
    return found | ({"failure": trial.failure} if trial.failure else {})


def _measured(trial: Trial, branch: Branch) -> dict[str, Any]:
    """A grid's configuration with its scores by every measure."""
    return {
        "configuration": trial.spec,
        "values": {option: branch.written(option, trial.drawn[option]) for option in branch.varied},
        "chunks": trial.chunks,
        "means": {measure: trial.mean(measure) for measure in trial.measured},
        "scores": trial.measured,
    }


_ADAPTERS = {
    "LangChain": ("chunkadapters.langchain", "ChunkcoreTextSplitter", "splitter"),
    "LlamaIndex": ("chunkadapters.llamaindex", "ChunkcoreNodeParser", "parser"),
    "Haystack": ("chunkadapters.haystack", "ChunkcoreDocumentSplitter", "splitter"),
}


def portable_spec(spec: str, embedder: str = DEFAULT_MODEL) -> str:
    """The string with the embedder in it, where the strategy embeds and would take another one by itself.

    >>> portable_spec("cluster_semantic:max_size=200", "openvino:models/mine")
    'cluster_semantic:max_size=200,embedder=openvino:models/mine'
    >>> portable_spec("recursive:size=200", "openvino:models/mine")
    'recursive:size=200'
    """
    name, options = split_spec(spec)
    if embedder == DEFAULT_MODEL or "embedder" not in strategies[name].option_names() or "embedder" in options:
        return spec
    return format_spec(name, {**options, "embedder": embedder})


def snippets(spec: str, embedder: str = DEFAULT_MODEL) -> Mapping[str, str]:
    """By title, what to paste; each makes the same chunks.

    Args:
        spec: the configuration, as `get_chunker` reads it.
        embedder: the name of the model that it was found with, as `get_embedder` knows it.

    >>> print(snippets("sentence:size=100")["LangChain"])
    from chunkadapters.langchain import ChunkcoreTextSplitter
    <BLANKLINE>
    splitter = ChunkcoreTextSplitter("sentence:size=100")
    """
    spec = portable_spec(spec, embedder)
    name, options = split_spec(spec)
    # Where sizes are in the embedder's own tokens, it has to be known to the adapter.
    fitted = f', fit_to="{_escaped(embedder)}"' if options.get("counter") == "embedder" else ""
    found = {
        "Command line": f"chunkcore chunk docs/ --strategy {shlex.quote(spec)}",
        "YAML, for compare --config": _yaml(name, options),
    }
    for framework, (module, cls, variable) in _ADAPTERS.items():
        found[framework] = f'from {module} import {cls}\n\n{variable} = {cls}("{_escaped(spec)}"{fitted})'
    return found


def _escaped(text: str) -> str:
    """Text between double quotes in Python: nothing in it ends the string, steers a terminal or is not ASCII."""
    return ascii(text + '"')[1:-1].removesuffix('"').replace("\\'", "'").replace('"', '\\"')


def _yaml(name: str, options: Mapping[str, Any]) -> str:
    import yaml  # type: ignore[import-untyped,unused-ignore]

    text: str = yaml.safe_dump([{"strategy": name, **options}], sort_keys=False, width=1_000)
    return text.rstrip("\n")
