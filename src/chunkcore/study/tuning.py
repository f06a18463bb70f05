"""`tune`: try a grid of chunkers and retrievers, and score the choice on questions that did not choose it.

The highest of many means is too high by chance. The questions are therefore split into folds. For each fold, the other
folds choose a configuration, and the fold scores that choice. These held-out scores are compared with the default's.
"""

from __future__ import annotations

import random
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from math import prod
from typing import Any, cast

import numpy as np

from chunkcore.chunkers.base import Chunker, get_chunker
from chunkcore.concurrency import Progress, no_progress
from chunkcore.errors import ChunkcoreError, DataError, OptionError, echo
from chunkcore.evaluation.benchmarks import Benchmark
from chunkcore.evaluation.comparison import By, Comparison, Difference, compare, shared_documents
from chunkcore.evaluation.measures import Measure, RetrievalMeasure, get_measure, retrieval_measures
from chunkcore.evaluation.resampling import column_means
from chunkcore.evaluation.results import Report, System
from chunkcore.evaluation.scoring import Scorer
from chunkcore.models.base import Embedder
from chunkcore.models.loading import DEFAULT_MODEL, cached_embedder
from chunkcore.options import Bounds, check_options, split_parts, suggesting
from chunkcore.plain import Frame, columns_of
from chunkcore.retrieval import get_retriever
from chunkcore.spans import Numbers, Scores
from chunkcore.study.experiment import run_experiment
from chunkcore.tokens import TokenCounter

DEFAULT_CHUNKERS = ("sentence:size={50,100}", "recursive:size={50,100,200,400}")
# Passages at their default balance of vectors and words and at three others, and what people have.
DEFAULT_RETRIEVERS = ("passages", "passages:balance={0.3,0.5,0.9}", "hybrid")
CHOICE = "the choice"  # the name of the held-out report
_MOST = 10_000  # configurations of a grid
_SHOWN = 8  # configurations whose runs are kept and which are compared in pairs


@dataclass(frozen=True, kw_only=True)
class TuneOptions:
    """How `tune` searches.

    Attributes:
        measure: what is maximised, of retrieval.
        draws: so many random configurations of the grid; 0 for all of it.
        folds: parts of the questions that are held out in turn; fewer where there are fewer documents.
        by: what stays on one side of a split and is resampled, as in `compare`: "auto" is "document" if questions share
            documents, and there are six documents at least; else "question".
        default: the chunker of the configuration to keep unless another is better; "" for that of
            `default_configuration`.
        default_retriever: its retriever; "" for the first one.
        counter: of the tokens that are scored.
        seed: of the draws, the folds and the resamples.
        resamples: of the bootstrap.
    """

    measure: str = "Recall@1000tok"
    draws: int = 0
    folds: int = 5
    by: By = "auto"
    default: str = ""
    default_retriever: str = ""
    counter: str | TokenCounter = "cl100k_base"
    seed: int = 0
    resamples: int = 10_000
    bounds = Bounds(draws=0, folds=2, seed=0, resamples=(100, 1_000_000))

    def __post_init__(self) -> None:
        check_options(self)
        retrieval_measures([self.measure])

    @cached_property
    def goal(self) -> RetrievalMeasure:
        return cast("RetrievalMeasure", get_measure(self.measure))


def default_configuration(retriever: str = DEFAULT_RETRIEVERS[0]) -> System:
    """The chunker that a retriever is used with by default: small units for passages, 200 tokens for others.

    >>> default_configuration("bm25").name
    'recursive:size=200 · bm25'
    """
    method = get_retriever(retriever)
    chunker = "sentence:size=50" if method.makes_passages else "recursive:size=200"
    return System(chunker, method.name)


# Values in braces, after "=" or at the beginning. A JSON object, which begins with a quotation mark, is none.
_VALUES = re.compile(r'(?:^|(?<==))\s*\{(?!\s*")([^{}]*)\}')


def expand_grid(spec: str) -> list[str]:
    """The specs of a grid: every combination of the values in braces.

    Braces stand after "=" or at the beginning. Raises `OptionError`: an empty value, or more than 10,000 combinations.

    >>> expand_grid("recursive:size={50,100},overlap={0,20}")[:3]
    ['recursive:size=50,overlap=0', 'recursive:size=50,overlap=20', 'recursive:size=100,overlap=0']
    >>> expand_grid("{dense,bm25}"), expand_grid("sentence")
    (['dense', 'bm25'], ['sentence'])
    """
    pieces = [[text] for text in _VALUES.split(spec)]  # text and values by turns
    for group in pieces[1::2]:
        group[:] = [value.strip() for value in split_parts(group[0], spec, "grid")]
        if not all(group):
            raise OptionError(
                f"a value is empty in the grid {echo(spec)}: expected {{value,value,...}}"
            )
    size = prod(map(len, pieces))
    if size > _MOST:
        raise OptionError(
            f"the grid {echo(spec)} has {size:,} configurations: narrow it to {_MOST:,} at most"
        )
    return list(dict.fromkeys("".join(parts) for parts in product(*pieces)))


@dataclass(frozen=True, kw_only=True, eq=False)
class Tuning(Frame):
    """The result of a search.

    Attributes:
        reports: one a configuration, the highest mean first; the best and the default keep their runs.
        default: the name of the default configuration.
        choices: by name, the choice made without each fold.
        comparison: of the held-out scores with the default's.
        failures: by name, why a configuration could not run.
    """

    options: TuneOptions
    reports: tuple[Report, ...]
    default: str
    choices: tuple[str, ...]
    comparison: Comparison
    failures: Mapping[str, str]

    def __repr__(self) -> str:
        return f"Tuning({self.measure}: {len(self.reports):,} configurations, use {self.use})"

    @property
    def measure(self) -> Measure:
        return self.options.goal

    @property
    def winner(self) -> str:
        """The configuration with the highest mean over all questions; that mean is too high by chance."""
        return self.reports[0].name

    @property
    def held_out(self) -> Report:
        """Each question's score by the configuration that was chosen without it."""
        return self.comparison.reports[0]

    @property
    def difference(self) -> Difference:
        """The held-out scores minus the default's."""
        return self.comparison.differences[0]

    @property
    def gain(self) -> bool:
        """Whether held-out questions show that the choice is better than the default."""
        return self.difference.distinct and self.difference.mean > 0

    @property
    def use(self) -> str:
        """The winner if there is a gain, else the default."""
        return self.winner if self.gain else self.default

    def report(self, name: str) -> Report:
        """The report of a configuration."""
        return next(report for report in self.reports if report.name == name)

    @property
    def shown(self) -> tuple[Report, ...]:
        """The best configurations and the default, which a page compares in pairs."""
        return tuple(report for report in self.reports if report.run)

    @property
    def verdict(self) -> str:
        """The held-out score, its difference from the default, and what follows."""
        measure, change = self.measure, self.difference
        low, high = map(measure.show, self.comparison.intervals[CHOICE])
        mean = measure.show(self.held_out.mean(measure))
        text = (
            f"On questions that did not choose it, the choice of {len(self.reports):,} configurations has a "
            f"{measure} of {mean}{measure.suffix} (95 % interval {low} to {high}). "
        )
        if self.winner == self.default and not change.wins and not change.losses:
            return f"{text}It is the default."
        ends = (change.mean, change.low, change.high)
        lead, low, high = (measure.show(value, signed=True) for value in ends)
        text += f"Its lead over the default, {self.default}, is {lead}{measure.points} (95 % interval {low} to {high})"
        if self.gain:
            return f"{text}: use {self.winner}."
        return f"{text}: no gain that these questions show; keep the default."

    def tidy(self) -> dict[str, Sequence[Any]]:
        """A row a configuration: chunker, retriever, score, chunks, seconds."""
        names = "chunker retriever score chunks seconds"
        rows = []
        for report in self.reports:
            system, score = report.system, report.mean(self.measure)
            chunks = report.chunks.count if report.chunks else 0
            seconds = sum(report.seconds.values())
            rows.append((system.chunker, system.retriever, score, chunks, seconds))
        return columns_of(names.split(), rows)

    def to_dict(self) -> dict[str, Any]:
        """Plain values; the reports themselves are not among them."""
        change = self.difference
        return {
            "measure": str(self.measure),
            "verdict": self.verdict,
            "use": self.use,
            "winner": self.winner,
            "default": self.default,
            "held_out": self.held_out.mean(self.measure),
            "interval": self.comparison.intervals[CHOICE],
            "difference": [change.mean, change.low, change.high],
            "choices": self.choices,
            "configurations": self.tidy(),
            "failures": self.failures,
            "seed": self.options.seed,
        }


@suggesting
def tune(
    benchmark: Benchmark,
    chunkers: str | Sequence[str] = DEFAULT_CHUNKERS,
    embedder: Embedder | str = DEFAULT_MODEL,
    *,
    retrievers: str | Sequence[str] = DEFAULT_RETRIEVERS,
    options: TuneOptions | None = None,
    prepare: Callable[[Chunker], Chunker] = lambda chunker: chunker,
    progress: Progress | None = None,
) -> Tuning:
    """Try every chunker with every retriever, and score the choice on questions that did not choose it.

    Args:
        chunkers: specs; values in braces make a grid (`expand_grid`).
        embedder: of the chunks, or its name; a `CachedEmbedder` keeps its cache.
        retrievers: specs, likewise.
        prepare: called with each chunker before it is used, for example to cache its language model.
        progress: called with a step, the count done and the total.

    Raises:
        OptionError: a spec or an option is wrong.
        DataError: fewer than two questions, or no configuration besides the default could run.
        ChunkcoreError: the default cannot run.

    Source: Varma and Simon, BMC Bioinformatics 7:91 (2006): the choice belongs inside the cross-validation.

    >>> from chunkcore.datasets import load_dataset
    >>> tuned = tune(load_dataset("lochmere"), "recursive:size={100,200}", retrievers="bm25")
    >>> tuned.default, len(tuned.reports), len(tuned.choices)
    ('recursive:size=200 · bm25', 2, 5)
    """
    settings = options or TuneOptions()
    default, configurations = plan(chunkers, retrievers, settings)
    scorer = Scorer(benchmark, counter=settings.counter)
    folds = assign_folds(benchmark, settings)
    model = cached_embedder(embedder)
    reports: list[Report] = []
    failures: dict[str, str] = {}
    groups: dict[str, list[System]] = defaultdict(list)
    for system in configurations:
        groups[system.chunker].append(system)
    progress = progress or no_progress

    def run(group: Sequence[System]) -> None:
        chunker, names = group[0].chunker, [system.retriever for system in group]
        try:
            built = {chunker: prepare(get_chunker(chunker))}
            reports.extend(
                run_experiment(scorer, built, model, retrievers=names, measures=settings.goal)
            )
        except ChunkcoreError as error:
            if len(group) > 1:  # another retriever may take the same chunks
                for system in group:
                    run([system])
                return
            if group == [default]:
                raise
            failures[group[0].name] = str(error)

    for number, group in enumerate(groups.values()):
        progress("tune", number, len(groups))
        run(group)
    progress("tune", len(groups), len(groups))
    reports = [replace(one, name=replace(one.system, embedder="").name) for one in reports]
    return conclude(reports, default.name, folds, settings, failures)


def plan(
    chunkers: str | Sequence[str], retrievers: str | Sequence[str], options: TuneOptions
) -> tuple[System, list[System]]:
    """The default, and all configurations to try, the default first. Raises `OptionError` for a wrong spec."""
    specs = _expanded(chunkers, _label, "chunker").values()
    methods = list(_expanded(retrievers, lambda spec: get_retriever(spec).name, "retriever"))
    default = default_configuration(options.default_retriever or methods[0])
    if options.default:
        default = replace(default, chunker=options.default)
    grid = [System(*pair) for pair in product(specs, methods)]
    if 0 < options.draws < len(grid):
        grid = random.Random(options.seed).sample(grid, options.draws)  # noqa: S311
    same = _label(default.chunker), default.retriever
    others = [one for one in grid if (_label(one.chunker), one.retriever) != same]
    return default, [default, *others]


def _label(spec: str) -> str:
    return get_chunker(spec).label


def _expanded(specs: str | Sequence[str], label: Callable[[str], str], noun: str) -> dict[str, str]:
    """The specs of grids by their labels, once each."""
    if isinstance(specs, str):
        specs = [specs]
    expanded = [spec for grid in specs for spec in expand_grid(grid.strip())]
    distinct = {label(spec): spec for spec in expanded}
    if not distinct:
        raise OptionError(f"there is no {noun} to try: expected at least one")
    return distinct


def assign_folds(benchmark: Benchmark, options: TuneOptions) -> tuple[Numbers, list[str] | None]:
    """Each question's fold, and the document that it is resampled with (None: resampled by question).

    Documents are shuffled by the seed; the one with the most questions goes to the smallest fold first.
    """
    clusters = shared_documents(benchmark.question_documents, options.by)
    labels = clusters or [query.id for query in benchmark.queries]
    counts = Counter(labels)
    if len(counts) < 2:
        raise DataError("tuning needs two questions at least: some choose, others score the choice")
    order = list(counts)
    random.Random(options.seed).shuffle(order)  # noqa: S311
    sizes = [0] * min(options.folds, len(order))
    fold = {}
    for label in sorted(order, key=counts.__getitem__, reverse=True):
        fold[label] = sizes.index(min(sizes))
        sizes[fold[label]] += counts[label]
    return np.array([fold[label] for label in labels], dtype=np.int64), clusters


def hold_out(scores: Scores, fold_of: Numbers) -> tuple[Scores, list[int]]:
    """Each question's score by the configuration with the highest mean on the other folds, and each fold's choice.

    `scores` is of shape (questions, configurations); of equal means the first configuration is chosen.

    >>> scores = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 0.9]])
    >>> held, choices = hold_out(scores, np.array([0, 0, 1, 1]))
    >>> held.tolist(), choices
    ([0.0, 0.0, 0.0, 0.0], [1, 0])
    """
    held = np.full(len(scores), np.nan)
    choices = []
    for fold in range(fold_of.max() + 1):
        inside = fold_of == fold
        choices.append(int(np.argmax(_means(scores[~inside]))))
        held[inside] = scores[inside, choices[-1]]
    return held, choices


def _means(scores: Scores) -> Scores:
    """Of each configuration; one without scores is the worst."""
    return np.nan_to_num(column_means(scores), nan=-np.inf)


def conclude(
    reports: Sequence[Report],
    default: str,
    folds: tuple[Numbers, list[str] | None],
    options: TuneOptions,
    failures: Mapping[str, str],
) -> Tuning:
    """What the scores of all configurations say: the choice, and what it gains on questions that did not choose it."""
    measure = options.goal
    fold_of, clusters = folds
    if len(reports) < 2:
        reason = next(iter(failures.values()), "the grid has no other")
        raise DataError(f"no configuration besides the default was scored: {reason}")
    scores = np.column_stack([report.values(measure) for report in reports])
    held, choices = hold_out(scores, fold_of)
    base = next(report for report in reports if report.name == default)
    held_out = replace(base, name=CHOICE, scores={measure: held}, run=None, chunks=None, cost=None)
    ranked = [reports[place] for place in np.argsort(-_means(scores), kind="stable")]
    for rank, report in enumerate(ranked):
        if rank >= _SHOWN and report is not base:
            ranked[rank] = replace(report, run=None)
    by: By = "document" if clusters else "question"
    return Tuning(
        options=options,
        reports=tuple(ranked),
        default=default,
        choices=tuple(reports[choice].name for choice in choices),
        comparison=compare(
            [held_out, base], measure, resamples=options.resamples, seed=options.seed, by=by
        ),
        failures=failures,
    )
