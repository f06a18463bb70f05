"""`Tuning`: the result of a search, its held-out score, and snippets to paste."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import yaml  # type: ignore[import-untyped,unused-ignore]
from numpy.typing import NDArray

from chunkcore.chunkers.base import get_chunker, strategies
from chunkcore.errors import DataError
from chunkcore.escaping import plain_json
from chunkcore.evaluation.benchmarks.benchmark import Benchmark, question_documents
from chunkcore.evaluation.measures import Scores
from chunkcore.evaluation.results import Report
from chunkcore.evaluation.statistics.resampling import FEWEST_UNALIKE, mean_std, pareto_front
from chunkcore.frames import Frame, Markup, columns_of, html_table
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
from chunkcore.tuning.space import Space, configuration
from chunkcore.tuning.trials import Goal, Trial, TuneOptions

Stopped = Literal["", "time", "interrupted", "exhausted"]

FORMAT = "chunkcore-tune-1"
CHOICE = "the tuned choice"  # its scores are the held-out ones
_MATTERS = 0.02  # two points, as in `compare`; the same number for a measure that is not a share
_RESAMPLES = 2_000  # enough for a standard error; each makes every choice anew


@dataclass(frozen=True, kw_only=True)
class Fold:
    """The configuration that all other questions choose of `candidates`: its mean on those, and on the fold's."""

    spec: str
    training: float
    held_out: float
    questions: int
    candidates: int


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Tuning(Frame):
    """The result of a search.

    Attributes:
        trials: all trials in order; a failed one has a reason.
        baseline: the configuration to beat.
        winner: the configuration to take.
        front: Pareto front of quality, retrieved tokens and cost, the best quality first.
        folds: the choice made without each fold.
        held_out_report: per question, the score of the configuration chosen without it.
        interval: 95 % interval of the held-out mean; see `rechosen`.
        difference: lead of the held-out scores over the baseline; `distinct` if its 95 % interval excludes 0.
        strategies: for grids, each strategy's best by one half of the questions, compared on the other. None for
            proposed configurations, which used the scores of both halves.
        stopped: why trials are missing: "time", "interrupted", "exhausted" (the space); "" if none are.
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

    def __repr__(self) -> str:
        return f"Tuning({self.goal} on {self.benchmark!r}: {len(self.trials):,} trials, winner {self.winner.spec})"

    def tidy(self) -> dict[str, Sequence[Any]]:
        """A row a trial: number, origin, configuration, score, tokens retrieved and to index, seconds, failure."""
        names = ("number", "origin", "configuration", "score", "tokens", "chunks", "cost", "seconds", "failure")
        rows = [
            (t.number, t.origin, t.spec, t.quality, t.mean_tokens, t.chunks, t.cost, t.seconds, t.failure)
            for t in self.trials
        ]
        return columns_of(names, rows)

    def _repr_html_(self) -> str:
        return f"{Markup.of(self.verdict)}{html_table(self.tidy())}"

    @cached_property
    def goal(self) -> Goal:
        return self.options.goal

    @property
    def wanted(self) -> int:
        """The planned number of trials."""
        return len(self.space.specs) if self.space.exhaustive else self.options.trials

    @property
    def picked(self) -> float:
        """The winner's mean over the questions that chose it: too high, as the highest of many."""
        return self.winner.quality

    @property
    def held_out(self) -> float:
        """The mean over all questions, each scored by the configuration chosen without it."""
        return mean_std(self.goal.scores(self.held_out_report))[0]

    @property
    def optimism(self) -> float:
        """Picked minus held-out score."""
        return self.picked - self.held_out

    @property
    def failed(self) -> tuple[Trial, ...]:
        return tuple(trial for trial in self.trials if trial.failure)

    @property
    def configurations(self) -> tuple[Trial, ...]:
        """The trials with scores, one per configuration, in order."""
        return tuple({trial.spec: trial for trial in reversed(self.trials) if not trial.failure}.values())[::-1]

    @property
    def rule(self) -> str:
        """How the winner is chosen, in words."""
        noun, margin = str(self.goal).removeprefix("mean "), self.options.margin
        if not margin:
            return f"the highest mean {noun}; of equal ones the fewest retrieved tokens, then the lowest cost"
        given = f"{100 * margin:g} points" if self.goal.points else f"{margin:g}"
        return (
            f"of the configurations whose mean {noun} is within {given} of the highest, the one with the fewest "
            "retrieved tokens, then with the lowest cost"
        )

    @property
    def verdict(self) -> str:
        """The result in two sentences."""
        show = self.goal.show
        low, high = map(show, self.interval)
        share, points = self.goal.suffix, self.goal.points
        asked = int(np.count_nonzero(~np.isnan(self.goal.scores(self.held_out_report))))
        opening = (
            f"On questions that had no part in choosing it the choice has a {self.goal} of "
            f"{show(self.held_out)}{share} (95 % interval {low} to {high}; "
            f"{asked:,} question{'s' if asked > 1 else ''})."
        )
        lead = self.difference
        if not lead.wins and not lead.losses:
            return f"{opening} {lead.b} scores the same on every question."
        way = "ahead of" if lead.mean >= 0 else "behind"
        low, high = show(lead.low), show(lead.high)
        unalike = f"higher on {lead.wins:,} question{'s' if lead.wins != 1 else ''}, lower on {lead.losses:,}"
        claim = (
            "more than chance explains"
            if lead.distinct
            else "no more than chance may explain"
            + (f", and one of {show(_MATTERS)}{points} or more is ruled out" if lead.equivalent else "")
        )
        return (
            f"{opening} It is {show(abs(lead.mean))}{points} {way} {lead.b} "
            f"(95 % interval of the difference {low} to {high}; {unalike}): {claim}."
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values, NaN as null; of a grid with each question's scores."""
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
                "configurations": [
                    {
                        "configuration": trial.spec,
                        "values": {option: branch.written(option, trial.drawn[option]) for option in branch.varied},
                        "chunks": trial.chunks,
                        "means": {measure: trial.mean(measure) for measure in trial.measured},
                        "scores": trial.measured,
                    }
                    for trial in self.configurations
                    for branch in (self.space.branch(trial.branch),)
                ],
            }
        plain: dict[str, Any] = plain_json(data)
        return plain


def conclude(
    trials: Sequence[Trial],
    benchmark: Benchmark,
    space: Space,
    fold_of: NDArray[np.int64],
    options: TuneOptions,
    embedder: str,
    stopped: Stopped,
) -> Tuning:
    """Choose the winner, hold out and compare. `trials` are all that ran, with the baseline, by number."""
    baseline = next(trial for trial in trials if trial.number < 0)
    tried = [trial for trial in trials if trial.number >= 0]
    done = [trial for trial in tried if not trial.failure]
    if not tried:
        raise DataError("the time was over before any configuration was tried: give it more")
    if not done:
        first = f"the first, {tried[0].spec}, failed: {tried[0].failure}"
        raise DataError(f"none of the {len(tried)} configurations could be run; {first}")
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
    mean = mean_std(held.scores)[0]
    ids = [query.id for query in benchmark.queries]
    strategies = None
    if space.exhaustive:
        candidates: dict[str, dict[tuple[str, str], Trial]] = {}  # of equal configurations the first
        for trial in done:
            spec, retriever = configuration(trial.spec)
            alike = candidates.setdefault(space.branch(trial.branch).strategy, {})
            alike.setdefault((get_chunker(spec).label, retriever), trial)

        def by_depth(trial: Trial) -> Scores:
            return np.column_stack([trial.measured[measure] for measure in options.goal.measures])

        strategies = StrategyChoices.of(
            options.goal,
            {name: {each.spec: by_depth(each) for each in trials.values()} for name, trials in candidates.items()},
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
        interval=spread.interval(mean, spread.mean, share=options.goal.measures[0].is_share),
        difference=_difference(held.scores, baseline, spread, options.goal.measures[0].highest),
        strategies=strategies,
        stopped=stopped,
    )


def pareto_trials(trials: Sequence[Trial]) -> tuple[Trial, ...]:
    """The Pareto front of quality, retrieved tokens and cost, the best quality first; of equal trials the first."""
    points = np.array([[trial.quality, trial.mean_tokens, trial.cost] for trial in trials], dtype=np.float64)
    # NaN quality is worse than any; tokens are unknown of all trials or of none.
    points[:, 0] = np.where(np.isnan(points[:, 0]), -1.0, points[:, 0])
    points[:, 1] = np.nan_to_num(points[:, 1])
    front = pareto_front(points, better=("high", "low", "low"))
    distinct = {tuple(points[place].tolist()): trials[place] for place in reversed(front)}
    return tuple(sorted(distinct.values(), key=lambda trial: (-trial.quality, trial.mean_tokens, trial.cost)))


def _report(
    benchmark: Benchmark, goal: Goal, done: Sequence[Trial], held: HeldOut, fold_of: NDArray[np.int64]
) -> Report:
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


def _difference(scores: NDArray[np.float64], baseline: Trial, spread: Spread, highest: float) -> Gap:
    apart = scores - baseline.scores
    known = apart[~np.isnan(apart)]
    mean = mean_std(apart)[0]
    low, high = spread.interval(mean, spread.lead)
    narrow, wide = spread.interval(mean, spread.lead, 0.9)  # two one-sided tests at 5 %
    wins, losses = int(np.count_nonzero(known > 0)), int(np.count_nonzero(known < 0))
    return Gap(
        CHOICE,
        baseline.spec,
        mean,
        max(-highest, low),
        min(highest, high),
        distinct=(low > 0 or high < 0) and wins + losses >= FEWEST_UNALIKE,
        equivalent=narrow > -_MATTERS and wide < _MATTERS and wins + losses >= FEWEST_UNALIKE,
        wins=wins,
        losses=losses,
    )


def _described(trial: Trial) -> dict[str, Any]:
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


_ADAPTERS = {
    "LangChain": ("chunkadapters.langchain", "ChunkcoreTextSplitter", "splitter"),
    "LlamaIndex": ("chunkadapters.llamaindex", "ChunkcoreNodeParser", "parser"),
    "Haystack": ("chunkadapters.haystack", "ChunkcoreDocumentSplitter", "splitter"),
}


def portable_spec(spec: str, embedder: str = DEFAULT_MODEL) -> str:
    """The spec with the embedder added, if the strategy embeds and would default to another one.

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
    """Code to paste, by title; each makes the same chunks; the first names the retriever, if any.

    `spec` is read by `configuration`, and the search's embedder by `get_embedder`.

    >>> print(snippets("sentence:size=100")["LangChain"])
    from chunkadapters.langchain import ChunkcoreTextSplitter
    <BLANKLINE>
    splitter = ChunkcoreTextSplitter("sentence:size=100")
    """
    spec, retriever = configuration(spec)
    spec = portable_spec(spec, embedder)
    name, options = split_spec(spec)
    # For sizes in the embedder's own tokens, the adapter needs the embedder.
    fitted = f', fit_to="{_escaped(embedder)}"' if options.get("counter") == "embedder" else ""
    found = {}
    if retriever:
        made = f'retriever = get_retriever("{_escaped(retriever)}")'
        found["Retriever"] = f"from chunkcore import get_retriever\n\n{made}"
    for framework, (module, cls, variable) in _ADAPTERS.items():
        found[framework] = f'from {module} import {cls}\n\n{variable} = {cls}("{_escaped(spec)}"{fitted})'
        if retriever in ("passages", "passages:lexical"):  # what the adapters' retrievers are, by themselves
            models = {each: f", {each}" if retriever == "passages" else "" for each in _MODELS}
            found[framework] = _PASSAGES[framework].format(spec=_escaped(spec), **models)
    written: str = yaml.safe_dump([{"strategy": name, **options}], sort_keys=False, width=1_000)
    return found | {
        "YAML, for compare --config": written.rstrip("\n"),
        "Command line": f"chunkcore chunk docs/ --strategy {shlex.quote(spec)}",
    }


# In place of, or after, the splitter's lines: what a retriever is made of stays the user's.
_PASSAGES = {
    "LangChain": """from functools import partial

from chunkadapters.langchain import PassageRetriever

passages_of = partial(PassageRetriever.from_documents, units="{spec}", max_tokens=1000)
# retriever = passages_of(documents{embeddings})""",
    "LlamaIndex": """from functools import partial

from chunkadapters.llamaindex import PassageRetriever

passages_of = partial(PassageRetriever.from_documents, units="{spec}", max_tokens=1000)
# retriever = passages_of(documents{embed_model})""",
    "Haystack": """from functools import partial

from chunkadapters.haystack import ChunkcoreDocumentSplitter, ChunkcorePassageRetriever

splitter = ChunkcoreDocumentSplitter("{spec}")
passages_of = partial(ChunkcorePassageRetriever, max_tokens=1000)
# retriever = passages_of(store{text_embedder})""",
}
_MODELS = ("embeddings", "embed_model", "text_embedder")


def _escaped(text: str) -> str:
    """Text for a Python string in double quotes: ASCII, without quotes or terminal controls."""
    return ascii(text + '"')[1:-1].removesuffix('"').replace("\\'", "'").replace('"', '\\"')
