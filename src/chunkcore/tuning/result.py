"""`Tuning`: what a search found, and what the choice is worth."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from chunkcore.chunkers.base import strategies
from chunkcore.errors import DataError
from chunkcore.evaluation.benchmarks.benchmark import Benchmark, question_documents
from chunkcore.evaluation.measures import Measure, Scores, get_measure
from chunkcore.evaluation.results import Report
from chunkcore.evaluation.statistics.comparison import Difference
from chunkcore.evaluation.statistics.resampling import resampled_means, student_quantile, units_of
from chunkcore.models.loading import DEFAULT_MODEL
from chunkcore.registry import format_spec, split_spec
from chunkcore.tuning.trial import Trial, TuneOptions

__all__ = [
    "Fold",
    "HeldOut",
    "Outcomes",
    "Spread",
    "Stopped",
    "Tuning",
    "choose",
    "conclude",
    "hold_out",
    "pareto",
    "portable_spec",
    "rechosen",
    "snippets",
]

Flags = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Outcomes:
    """What came of some configurations.

    Attributes:
        quality: float64, shape (queries, configurations), higher is better; NaN where it is undefined.
        tokens: retrieved tokens, likewise; all NaN where the measure looks at no ranking.
        cost: float64, shape (configurations,).
    """

    quality: Scores
    tokens: Scores
    cost: Scores

    def means(self, questions: Flags | None = None) -> tuple[Scores, Scores]:
        """Mean quality and mean tokens of each configuration, over some of the questions."""
        chosen = slice(None) if questions is None else questions
        return _means(self.quality[chosen]), _means(self.tokens[chosen])


@dataclass(frozen=True, eq=False)
class HeldOut:
    """What choosing is worth.

    Attributes:
        scores: of each question by the configuration that was chosen without it: float64, shape (queries,).
        tokens: retrieved tokens, likewise.
        picks: of each fold, the configuration that the questions of the other folds chose.
        training: of each fold, the mean by which it was chosen.
        means: of each fold, its mean on the fold's own questions.
    """

    scores: Scores
    tokens: Scores
    picks: tuple[int, ...]
    training: tuple[float, ...]
    means: tuple[float, ...]


def choose(quality: Scores, tokens: Scores, cost: Scores, margin: float = 0.0) -> int:
    """The place of the configuration to take, of means of shape (configurations,).

    Of those whose quality is within `margin` of the highest: the one with the fewest retrieved tokens (to a whole
    one), then with the lowest cost, then with the highest quality, then the one that came first. Without a
    margin, that is the highest quality.

    >>> means = np.array([0.70, 0.71, 0.69]), np.array([900.0, 1000.0, 400.0]), np.array([1.0, 1.0, 1.0])
    >>> choose(*means), choose(*means, margin=0.02)
    (1, 2)
    """
    level = np.where(np.isnan(quality), -np.inf, quality)
    whole = np.round(np.where(np.isnan(tokens), 0.0, tokens))
    near = level >= level.max() - margin - 1e-12
    order = np.lexsort((np.arange(len(level)), -level, cost, whole, ~near))
    return int(order[0])


def hold_out(outcomes: Outcomes, fold_of: NDArray[np.int64], allowed: Flags, margin: float = 0.0) -> HeldOut:
    """Score every question by the configuration that is chosen without its fold.

    Args:
        outcomes: of all configurations on all questions.
        fold_of: each question's fold, shape (queries,).
        allowed: which configurations may be chosen for which fold, shape (folds, configurations): those that
            nobody proposed who had seen the fold's scores.
        margin: see `choose`.

    Returns:
        Scores whose mean is, but for the fewer questions that each choice was made from, what may be expected of
        the choice on new questions. The mean by which a configuration was chosen is higher, as it is the highest of
        many.

    Source: Varma and Simon, Bias in error estimation when using cross-validation for model selection, BMC
    Bioinformatics 7:91 (2006); Cawley and Talbot, On over-fitting in model selection, JMLR 11 (2010).

    >>> quality = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 0.9]])
    >>> found = hold_out(Outcomes(quality, quality, np.ones(2)), np.array([0, 0, 1, 1]), np.ones((2, 2), dtype=bool))
    >>> found.picks, found.training, found.means
    ((1, 0), (0.95, 1.0), (0.0, 0.0))
    """
    scores = np.full(len(fold_of), np.nan)
    tokens = np.full(len(fold_of), np.nan)
    picks, training, means = [], [], []
    for fold, may in enumerate(allowed):
        held = fold_of == fold
        columns = np.flatnonzero(may)
        quality, retrieved = outcomes.means(~held)
        pick = int(columns[choose(quality[columns], retrieved[columns], outcomes.cost[columns], margin)])
        scores[held], tokens[held] = outcomes.quality[held, pick], outcomes.tokens[held, pick]
        picks.append(pick)
        training.append(float(quality[pick]))
        means.append(float(_means(scores[held][:, None])[0]))
    return HeldOut(scores, tokens, tuple(picks), tuple(training), tuple(means))


@dataclass(frozen=True, eq=False)
class Spread:
    """How far the held-out mean, and its lead over a baseline, might have come out elsewhere with other questions.

    Attributes:
        mean: the standard error of the held-out mean.
        lead: that of its difference from the baseline's mean.
        units: how many questions, or documents, were resampled.
    """

    mean: float
    lead: float
    units: int

    def interval(self, value: float, error: float, confidence: float = 0.95) -> tuple[float, float]:
        """Student's interval around a value that has this standard error."""
        if self.units < 2:
            return float("nan"), float("nan")
        reach = student_quantile((1 + confidence) / 2, self.units - 1) * error
        return value - reach, value + reach


def rechosen(
    outcomes: Outcomes,
    baseline: Scores,
    fold_of: NDArray[np.int64],
    allowed: Flags,
    margin: float = 0.0,
    *,
    resamples: int = 2_000,
    seed: int = 0,
    clusters: Sequence[str] | None = None,
) -> Spread:
    """The bootstrap of the held-out mean in which every resample makes its own choices.

    The choices of different folds lean on each other's questions, so that held-out scores are no independent
    witnesses: where many configurations are equally good, an interval from the scores alone is a fifth to a third too
    narrow, and calls one choice in seven better than an equal baseline (docs/tuning.md has the simulation). Here the
    questions of each resample choose anew.

    Args:
        outcomes: see `hold_out`.
        baseline: its scores, shape (queries,).
        fold_of: see `hold_out`.
        allowed: see `hold_out`.
        margin: see `choose`.
        resamples: of the questions.
        seed: equal seeds give equal spreads.
        clusters: of each question, what it is drawn together with, such as its document.
    """
    defined = ~np.isnan(baseline)

    def drawn(columns: Scores) -> Scores:
        # Equal seeds draw the same questions each time.
        return resampled_means(columns, resamples=resamples, seed=seed, clusters=clusters)

    total = np.zeros(resamples)
    for fold, may in enumerate(allowed):
        held = fold_of == fold
        columns = np.flatnonzero(may)
        quality = drawn(np.where(held[:, None], np.nan, outcomes.quality[:, columns]))
        retrieved = drawn(np.where(held[:, None], np.nan, outcomes.tokens[:, columns]))
        cost = outcomes.cost[columns]
        picks = [choose(*means, cost, margin) for means in zip(quality, retrieved, strict=True)]
        own = drawn(np.where(held[:, None], outcomes.quality[:, columns], np.nan))[np.arange(resamples), picks]
        share = drawn(np.where(defined, held.astype(np.float64), np.nan)[:, None])[:, 0]
        total += np.where(np.isnan(own), 0.0, own) * np.nan_to_num(share)
    lead = total - drawn(baseline[:, None])[:, 0]
    units = int(units_of(baseline[:, None], clusters)[0])
    return Spread(float(total.std(ddof=1)), float(np.nanstd(lead, ddof=1)), units)


def pareto(quality: Scores, tokens: Scores, cost: Scores) -> Flags:
    """Which configurations no other one is at least as good as in all three, and better in one.

    Of configurations that are equal in all three the first stands for them.

    >>> pareto(np.array([0.7, 0.8, 0.6, 0.8]), np.array([9.0, 9, 5, 9]), np.array([1.0, 2, 1, 3])).tolist()
    [True, True, True, False]
    """
    low = np.where(np.isnan(quality), -np.inf, quality)
    table = np.column_stack((-low, np.where(np.isnan(tokens), 0.0, tokens), cost))
    found = np.ones(len(table), dtype=np.bool_)
    for place, row in enumerate(table):
        no_worse = (table <= row).all(axis=1)
        better = no_worse & (table < row).any(axis=1)
        equal = no_worse & ~better
        found[place] = not better.any() and not equal[:place].any()
    return found


def _means(columns: Scores) -> Scores:
    """Of each column over what is not NaN; NaN where nothing is."""
    known = ~np.isnan(columns)
    counts = known.sum(axis=0)
    sums = np.where(known, columns, 0.0).sum(axis=0)
    means: Scores = np.divide(sums, counts, out=np.full(columns.shape[1], np.nan), where=counts > 0)
    return means


Stopped = Literal["", "time", "interrupted", "exhausted"]

FORMAT = "chunkcore-tune-1"
CHOICE = "the tuned choice"  # its scores are the held-out ones
_MATTERS = 0.02  # two points, as `compare` has it; of a measure that is no share the same number
_FEWEST_UNALIKE = 6  # questions; where fewer score unalike, their spread says nothing about those not asked
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
        benchmark: the benchmark's name.
        embedder: the embedder's name.
        trials: all that were tried, in order; those that failed have a reason.
        baseline: the configuration that the choice is compared with.
        winner: the configuration to take.
        front: the configurations that no other one beats in quality, retrieved tokens and cost at once, the best first.
        folds: what was chosen without each part of the questions.
        held_out_report: the scores of all questions, each by the configuration that was chosen without it.
        interval: of their mean, at 95 %; see `rechosen`.
        difference: of the same scores from the baseline's; `distinct` where its 95 % interval leaves 0 out.
        stopped: why there are fewer trials than were asked for: "time", "interrupted" or "exhausted" (the space);
            "" where there are not.
    """

    options: TuneOptions
    benchmark: str
    embedder: str
    trials: tuple[Trial, ...]
    baseline: Trial
    winner: Trial
    front: tuple[Trial, ...]
    folds: tuple[Fold, ...]
    held_out_report: Report
    interval: tuple[float, float]
    difference: Difference
    stopped: Stopped = ""

    @property
    def measure(self) -> Measure:
        return get_measure(self.options.measure)

    @property
    def picked(self) -> float:
        """The winner's mean over the questions that chose it: too high, as it is the highest of many."""
        return self.winner.quality

    @property
    def held_out(self) -> float:
        """The mean over all questions, each scored by the configuration that was chosen without it."""
        return self.held_out_report.mean(self.measure)

    @property
    def optimism(self) -> float:
        """By how much the picked score is over the held-out one."""
        return self.picked - self.held_out

    @property
    def failed(self) -> tuple[Trial, ...]:
        """The trials without scores."""
        return tuple(trial for trial in self.trials if trial.failure)

    @property
    def rule(self) -> str:
        """How the winner is chosen, in words."""
        if not self.options.margin:
            return f"the highest mean {self.measure}; of equal ones the fewest retrieved tokens, then the lowest cost"
        given = f"{100 * self.options.margin:g} points" if self.measure.is_share else f"{self.options.margin:g}"
        return (
            f"of the configurations whose mean {self.measure} is within {given} of the highest, the one with the "
            "fewest retrieved tokens, then with the lowest cost"
        )

    @property
    def verdict(self) -> str:
        """What the search may claim, in two sentences."""
        low, high = (self._score(each) for each in self.interval)
        share, points = (" %", " points") if self.measure.is_share else ("", "")
        asked = int(np.count_nonzero(~np.isnan(self.held_out_report.values(self.measure))))
        opening = (
            f"On questions that had no part in choosing it the choice has a {self.measure} of "
            f"{self._score(self.held_out)}{share} (95 % interval {low} to {high}; {asked:,} questions)."
        )
        lead = self.difference
        if not lead.wins and not lead.losses:
            return f"{opening} {lead.b} scores the same on every question."
        way = "ahead of" if lead.mean >= 0 else "behind"
        low, high = (self._score(each) for each in (lead.low, lead.high))
        unalike = f"higher on {lead.wins:,} questions, lower on {lead.losses:,}"
        told = (
            "more than chance explains"
            if lead.distinct
            else "no difference can be told from chance"
            + (f", and one of {self._score(_MATTERS)}{points} or more is ruled out" if lead.equivalent else "")
        )
        return (
            f"{opening} It is {self._score(abs(lead.mean))}{points} {way} {lead.b} "
            f"(95 % interval of the difference {low} to {high}; {unalike}): {told}."
        )

    def _score(self, value: float) -> str:
        written = f"{100 * value:.1f}" if self.measure.is_share else f"{value:.3f}"
        return written.removeprefix("-") if not float(written) else written

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain JSON values, NaN as null; per-question scores are in the study's file."""
        low, high = self.interval
        difference = self.difference
        return {
            "format": FORMAT,
            "benchmark": self.benchmark,
            "questions": len(self.held_out_report.query_ids),
            "embedder": self.embedder,
            "measure": str(self.measure),
            "counter": self.options.counter if isinstance(self.options.counter, str) else self.options.counter.name,
            "retriever": self.options.retriever,
            "seed": self.options.seed,
            "by": self.options.by,
            "trials_wanted": self.options.trials,
            "stopped": self.stopped,
            "rule": self.rule,
            "winner": {
                **_told(self.winner),
                "picked": _number(self.picked),
                "held_out": _number(self.held_out),
                "low": _number(low),
                "high": _number(high),
                "optimism": _number(self.optimism),
            },
            "baseline": _told(self.baseline),
            "difference": {
                "mean": _number(difference.mean),
                "low": _number(difference.low),
                "high": _number(difference.high),
                "distinct": difference.distinct,
                "equivalent": difference.equivalent,
                "wins": difference.wins,
                "losses": difference.losses,
            },
            "verdict": self.verdict,
            "folds": [
                {
                    "spec": fold.spec,
                    "training": _number(fold.training),
                    "held_out": _number(fold.held_out),
                    "questions": fold.questions,
                    "candidates": fold.candidates,
                }
                for fold in self.folds
            ],
            "front": [_told(trial) for trial in self.front],
            "trials": [_told(trial) for trial in self.trials],
        }


def conclude(
    trials: Sequence[Trial],
    benchmark: Benchmark,
    fold_of: NDArray[np.int64],
    options: TuneOptions,
    embedder: str,
    stopped: Stopped,
) -> Tuning:
    """Choose, hold out and compare.

    Args:
        trials: all that were run, the baseline among them, by their numbers.
        benchmark: the questions.
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
    quality, tokens = outcomes.means()
    front = [done[place] for place in np.flatnonzero(pareto(quality, tokens, outcomes.cost))]
    documents = question_documents(benchmark)
    spread = rechosen(
        outcomes,
        baseline.scores,
        fold_of,
        allowed,
        options.margin,
        resamples=min(options.resamples, _RESAMPLES),
        seed=options.seed,
        clusters=[documents[query.id] for query in benchmark.queries] if options.by == "document" else None,
    )
    report = _report(benchmark, get_measure(options.measure), held)
    return Tuning(
        options=options,
        benchmark=benchmark.name,
        embedder=embedder,
        trials=tuple(tried),
        baseline=baseline,
        winner=done[choose(quality, tokens, outcomes.cost, options.margin)],
        front=tuple(sorted(front, key=lambda trial: (-trial.quality, trial.mean_tokens, trial.cost))),
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
        held_out_report=report,
        interval=spread.interval(report.mean(get_measure(options.measure)), spread.mean),
        difference=_difference(held.scores, baseline, get_measure(options.measure), spread),
        stopped=stopped,
    )


def _report(benchmark: Benchmark, measure: Measure, held: HeldOut) -> Report:
    ids, collections = zip(*((query.id, query.collection) for query in benchmark.queries), strict=True)
    depths = {} if measure.k is None else {measure.k: held.tokens}
    return Report(CHOICE, benchmark.name, ids, collections, {measure: held.scores}, depths)


def _difference(scores: Scores, baseline: Trial, measure: Measure, spread: Spread) -> Difference:
    apart = scores - baseline.scores
    known = apart[~np.isnan(apart)]
    mean = float(known.mean()) if len(known) else math.nan
    low, high = spread.interval(mean, spread.lead)
    narrow, wide = spread.interval(mean, spread.lead, 0.9)  # two one-sided tests at 5 %
    wins, losses = int(np.count_nonzero(known > 0)), int(np.count_nonzero(known < 0))
    return Difference(
        CHOICE,
        baseline.spec,
        measure,
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


def _told(trial: Trial) -> dict[str, Any]:
    """A trial without what stands in the study's file."""
    found: dict[str, Any] = {
        "number": trial.number,
        "spec": trial.spec,
        "origin": trial.origin,
        "mean": _number(trial.quality),
        "retrieved_tokens": _number(trial.mean_tokens),
        "embedded_tokens": trial.embedded,
        "llm_tokens": trial.asked,
        "chunks": trial.chunks,
        "seconds": round(trial.seconds, 3),
    }
    return found | ({"failure": trial.failure} if trial.failure else {})


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


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
