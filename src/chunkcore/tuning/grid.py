"""`run_sweep`: grids of options, each configuration run once, the best chosen on one half of the questions only."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from chunkcore.chunkers.base import Chunker, get_chunker
from chunkcore.chunkers.configuration import Configuration, Grid, parse_grid
from chunkcore.concurrency import Progress
from chunkcore.errors import DataError, OptionError
from chunkcore.evaluation.benchmarks.benchmark import Benchmark
from chunkcore.evaluation.experiment import run_experiment
from chunkcore.evaluation.measures import Depth, Measure, Scores, Unit, get_measure
from chunkcore.evaluation.results import Report
from chunkcore.evaluation.statistics.choices import Candidates, Choice, Chooser, Gap, halves
from chunkcore.models.base import Embedder
from chunkcore.models.cache import EmbeddingCache
from chunkcore.models.loading import DEFAULT_MODEL
from chunkcore.tokens import TokenCounter

__all__ = ["SHOWN", "Choice", "Gap", "Sweep", "run_sweep"]

# What is plotted against each option.
SHOWN: tuple[str, ...] = ("Recall", "Precision", "F1")


@dataclass(frozen=True, eq=False)
class Sweep:
    """Every configuration's scores, and the choice of each strategy.

    Attributes:
        benchmark: its name.
        grids: what was swept.
        reports: by a configuration's string; equal configurations share one.
        measure: what choices are made by, averaged over `ks`.
        unit: what it counts.
        ks: the depths.
        choices: one a strategy, the highest score on the reporting half first.
        gaps: of every pair of choices.
        choosing: the ids of the questions that chose.
        reporting: those of the others.
        seed: of the halves and the resamples.
        confidence: of the intervals.
    """

    benchmark: str
    grids: tuple[Grid, ...]
    reports: Mapping[str, Report]
    measure: str
    unit: Unit
    ks: tuple[Depth, ...]
    choices: tuple[Choice, ...]
    gaps: tuple[Gap, ...]
    choosing: tuple[str, ...]
    reporting: tuple[str, ...]
    seed: int
    confidence: float

    @cached_property
    def configurations(self) -> tuple[Configuration, ...]:
        """All grids', in order, each string once."""
        return tuple({each.spec: each for grid in self.grids for each in grid.configurations}.values())

    def mean(self, configuration: str, name: str, k: Depth | None = None) -> float:
        """A configuration's mean over all questions: at one k, or averaged over all of them."""
        report = self.reports[configuration]
        depths = self.ks if k is None else (k,)
        return float(np.mean([report.mean(get_measure(name, depth, self.unit)) for depth in depths]))

    @property
    def target(self) -> str:
        """What choices are made by, in words."""
        what = "" if self.unit == "token" else f"[{self.unit}]"
        if len(self.ks) == 1:
            return f"{self.measure}@{self.ks[0]}{what}"
        return f"mean {self.measure}{what} over k = {', '.join(map(str, self.ks))}"

    @property
    def verdict(self) -> str:
        """What the reporting half says, in a few sentences."""
        first, *others = self.choices
        asked = f"{len(self.reporting):,} questions that chose nothing"
        interval = f"{100 * self.confidence:g} % interval {_percent(first.low)} to {_percent(first.high)}"
        said = [f"{first.configuration} has a {self.target} of {_percent(first.score)} % ({interval}) on {asked}."]
        if others:
            gaps = {frozenset((gap.a, gap.b)): gap for gap in self.gaps}
            tied = [each.strategy for each in others if not gaps[frozenset((first.strategy, each.strategy))].distinct]
            if not tied:
                said.append("That is more than each other strategy's choice has, by more than chance explains.")
            else:
                said.append(f"The data does not tell it from the best of {_listed(tied)}.")
        if first.candidates > 1:
            said.append(
                f"It was the best of {first.candidates:,} configurations on the other {len(self.choosing):,}, where it "
                f"has {_percent(first.picked)} %; such a choice flatters by {_points(first.optimism)} on average."
            )
        return " ".join(said)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain JSON values: per-question scores of each configuration, NaN as null."""
        return {
            "benchmark": self.benchmark,
            "measure": self.measure,
            "unit": self.unit,
            "ks": [str(k) for k in self.ks],
            "seed": self.seed,
            "confidence": self.confidence,
            "verdict": self.verdict,
            "choices": [_plain(each) | {"by_k": _keyed(each.by_k)} for each in self.choices],
            "gaps": [_plain(each) for each in self.gaps],
            "choosing": list(self.choosing),
            "reporting": list(self.reporting),
            "grids": [
                {"grid": grid.spec, "strategy": grid.strategy, "options": {k: list(v) for k, v in grid.options.items()}}
                for grid in self.grids
            ],
            "configurations": [
                {"configuration": each.spec, "values": dict(each.values), **self._scores(each.spec)}
                for each in self.configurations
            ],
        }

    def _scores(self, configuration: str) -> dict[str, Any]:
        report = self.reports[configuration]
        return {
            "chunks": report.chunks.count if report.chunks else None,
            "means": {str(measure): _null(report.mean(measure)) for measure in report.scores},
            "scores": {
                str(measure): [_null(value) for value in values.tolist()] for measure, values in report.scores.items()
            },
        }


def run_sweep(
    benchmark: Benchmark,
    grids: Sequence[Grid | str],
    embedder: Embedder | str = DEFAULT_MODEL,
    *,
    ks: Sequence[Depth] = (1, 3, 5, 10),
    unit: Unit = "token",
    measure: str = "F1",
    clusters: Mapping[str, str] | None = None,
    seed: int = 0,
    resamples: int = 10_000,
    confidence: float = 0.95,
    counter: str | TokenCounter = "cl100k_base",
    cache: EmbeddingCache | None = None,
    build: Callable[[str], Chunker] = get_chunker,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Sweep:
    """Run every configuration of some grids, and choose each strategy's best on a half of the questions.

    All configurations are run at once, so that each distinct text is embedded once. The questions are split in two
    halves by the seed. On the first, each strategy's configuration with the highest mean of `measure` over `ks` is
    chosen among all of its grids; on the other its score is told, with an interval, and strategies are compared: a
    score on the questions that chose is too good, the more configurations there are.

    Args:
        benchmark: documents and queries. For evidence sentences give ``whole_sentences(benchmark)``.
        grids: such as ``"recursive:size={50,100,200}"``; see `parse_grid`.
        embedder: of chunks and queries, or the name of one.
        ks: the depths that are averaged over.
        unit: what is counted: tokens, characters, sentences, documents, or the parts of stitched ones.
        measure: what choices are made by; Recall, Precision and F1 are scored besides.
        clusters: by query id, what stays on one side together with it and is resampled with it, such as its
            document (`question_documents`).
        seed: of the halves, the resamples and the tests.
        resamples: of the bootstrap.
        confidence: of intervals and tests.
        counter: whose tokens are counted.
        cache: of embeddings; in memory by default.
        build: makes a chunker from a configuration's string.
        workers: threads that cut documents.
        progress: see `run_experiment`.

    Raises:
        OptionError: no grid, or an option out of range.
        DataError: fewer than two questions, or clusters, to split.

    Source: Qu et al. (2024), section 4.1 (the best configuration by the average F1 over k), appendix B (the grids) and
    figures 2 to 5. The paper does not say that it reports on other queries than it chooses by; here that is told apart.

    >>> from types import SimpleNamespace
    >>> from chunkcore.datasets import load_dataset
    >>> letters = lambda texts: np.array([[text.count(each) + 1 for each in "aeiost"] for text in texts], np.float32)
    >>> model = SimpleNamespace(
    ...     name="m", fingerprint="m", max_tokens=None, embed_documents=letters, embed_queries=letters
    ... )
    >>> found = run_sweep(load_dataset("lochmere"), ["recursive:size={100,200}"], model, ks=[5], resamples=100)
    >>> found.choices[0].candidates, len(found.choosing), len(found.reporting)
    (2, 45, 45)
    """
    wanted = tuple(each if isinstance(each, Grid) else parse_grid(each) for each in grids)
    depths = tuple(dict.fromkeys(ks))
    if not wanted or not depths:
        raise OptionError(f"a sweep needs a grid and a k, got {len(wanted)} grids and {len(depths)} values of k")
    if not 0.5 < confidence < 1 or resamples < 1 or seed < 0:
        raise OptionError(
            "expected a confidence between 0.5 and 1, at least 1 resample and a seed of at least 0, "
            f"got {confidence}, {resamples} and {seed}"
        )
    labels = _labels(benchmark, clusters)
    names = tuple(dict.fromkeys([*SHOWN, measure]))
    made = {each.spec: build(each.spec) for grid in wanted for each in grid.configurations}
    labels_of = {spec: chunker.label for spec, chunker in made.items()}
    distinct = {labels_of[spec]: chunker for spec, chunker in made.items()}
    found = run_experiment(
        benchmark,
        list(distinct.values()),
        embedder,
        ks=(),
        measures=[get_measure(name, k, unit) for name in names for k in depths],
        counter=counter,
        cache=cache,
        workers=workers,
        progress=progress,
    )
    kept = {get_measure(name, k, unit) for name in names for k in depths}
    by_label = dict(zip(distinct, found, strict=True))
    reports = {spec: _slim(by_label[labels_of[spec]], spec, kept) for spec in made}
    first = halves(labels, np.random.default_rng(seed))
    chooser = Chooser(labels=labels, first=first, depths=depths, seed=seed, resamples=resamples, confidence=confidence)
    candidates = _candidates(wanted, labels_of, reports, [get_measure(measure, k, unit) for k in depths])
    choices = chooser.choices(candidates)
    ids = np.array([query.id for query in benchmark.queries], dtype=object)
    return Sweep(
        benchmark=benchmark.name,
        grids=wanted,
        reports=reports,
        measure=measure,
        unit=unit,
        ks=depths,
        choices=choices,
        gaps=chooser.gaps(candidates, choices),
        choosing=tuple(ids[first].tolist()),
        reporting=tuple(ids[~first].tolist()),
        seed=seed,
        confidence=confidence,
    )


def _labels(benchmark: Benchmark, clusters: Mapping[str, str] | None) -> list[str]:
    missing = [query.id for query in benchmark.queries if clusters is not None and query.id not in clusters]
    if missing:
        raise DataError(f"the clusters do not name that of the query {missing[0]!r}: name each query's")
    labels = [query.id if clusters is None else clusters[query.id] for query in benchmark.queries]
    if len(set(labels)) < 2:
        what = "questions" if clusters is None else "documents with questions"
        raise DataError(
            f"choosing on one half and reporting on the other needs two {what} or more, got {len(set(labels))}"
        )
    return labels


def _candidates(
    grids: Sequence[Grid], labels_of: Mapping[str, str], reports: Mapping[str, Report], measures: Sequence[Measure]
) -> list[Candidates]:
    """Each strategy's configurations, of all of its grids; of equal ones the first."""
    listed: dict[str, dict[str, str]] = {}
    for grid in grids:
        for each in grid.configurations:
            listed.setdefault(grid.strategy, {}).setdefault(labels_of[each.spec], each.spec)

    def scores(spec: str) -> Scores:
        return np.column_stack([reports[spec].values(measure) for measure in measures])

    return [
        Candidates(name, tuple(specs.values()), np.stack([scores(spec) for spec in specs.values()], axis=1))
        for name, specs in listed.items()
    ]


def _slim(report: Report, name: str, kept: set[Measure]) -> Report:
    """What a sweep keeps of a report: hundreds of runs with all that they retrieved would fill the memory."""
    scores = {measure: values for measure, values in report.scores.items() if measure in kept}
    return replace(report, name=name, scores=scores, found={}, run=None)


def _plain(value: Choice | Gap) -> dict[str, Any]:
    named = {name: getattr(value, name) for name in value.__slots__}
    return {name: _null(each) if isinstance(each, float) else each for name, each in named.items()}


def _keyed(by_k: Mapping[Depth, float]) -> dict[str, float | None]:
    return {str(k): _null(value) for k, value in by_k.items()}


def _null(value: float) -> float | None:
    return None if math.isnan(value) else float(value)


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"


def _points(share: float) -> str:
    """Points to a tenth; no minus before a zero."""
    return f"{abs(100 * share) if abs(share) < 0.0005 else 100 * share:.1f} points"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
