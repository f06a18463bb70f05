"""`Trial`: one configuration with its scores per question; how it runs, and the log that keeps it."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from chunkcore.chunkers.base import Chunker, get_chunker
from chunkcore.concurrency import Progress
from chunkcore.errors import DataError, OptionError, echo
from chunkcore.escaping import plain_json
from chunkcore.evaluation.benchmarks.benchmark import Benchmark, question_documents
from chunkcore.evaluation.experiment import run_experiment
from chunkcore.evaluation.measures import (
    Depth,
    Measure,
    Scores,
    Unit,
    budget_of,
    get_measure,
    measures_at,
    retrieval_measures,
)
from chunkcore.evaluation.results import ChunkStatistics, Report
from chunkcore.evaluation.scoring import Scorer
from chunkcore.evaluation.statistics.resampling import mean_std
from chunkcore.files import AppendLog
from chunkcore.models.base import Embedder
from chunkcore.registry import LARGEST, check_number, check_option
from chunkcore.retrieval import get_retriever
from chunkcore.tokens import TokenCounter, get_counter
from chunkcore.tuning.space import configuration

By = Literal["question", "document"]
# Plotted against each option of a grid, beside the goal.
PLOTTED = ("Recall", "Precision", "F1")


@dataclass(frozen=True)
class Goal:
    """What a search maximises: a measure, or the mean of one measure over several depths.

    Attributes:
        measures: one or more, which differ only in depth.

    Raises `OptionError`: no measure, measures of several names or units, or a measure of answers.

    >>> str(Goal.of("Recall@1000tok")), str(Goal.of(["F1@1[part]", "F1@5[part]"]))
    ('Recall@1000tok', 'mean F1[part] over k = 1, 5')
    """

    measures: tuple[Measure, ...]

    def __post_init__(self) -> None:
        if not self.measures:
            raise OptionError("there is no measure to make high: give one, such as Recall@1000tok")
        if len({(measure.kind, measure.unit) for measure in self.measures}) > 1:
            raise OptionError(f"a mean is of one measure at several depths, got {', '.join(map(str, self.measures))}")

    @classmethod
    def of(cls, measures: Measure | str | Sequence[Measure | str]) -> Goal:
        given = [measures] if isinstance(measures, Measure | str) else measures
        return cls(tuple(retrieval_measures(given)))

    def __str__(self) -> str:
        if len(self.measures) == 1:
            return str(self.measures[0])
        unit = "" if self.unit == self.measures[0].units[0] else f"[{self.unit}]"
        return f"mean {self.kind}{unit} over k = {', '.join(map(str, self.ks))}"

    @property
    def kind(self) -> str:
        """The measure's registered name, such as Recall."""
        return self.measures[0].kind

    @property
    def unit(self) -> Unit:
        return self.measures[0].unit

    @property
    def ks(self) -> tuple[Depth, ...]:
        """The depths; empty if the measure has none."""
        return tuple(measure.k for measure in self.measures if measure.k is not None)

    @property
    def suffix(self) -> str:
        """Unit of a shown score: " %" or nothing."""
        return self.measures[0].suffix

    @property
    def points(self) -> str:
        """Unit of a shown difference: " points" or nothing."""
        return self.measures[0].points

    @property
    def has_tokens(self) -> bool:
        """Whether configurations differ in retrieved tokens: yes at a number of chunks, no at a token budget."""
        return bool(self.ks) and any(budget_of(k) is None for k in self.ks)

    def over_ks(self, kind: str) -> tuple[Measure, ...]:
        """A measure at each depth of the goal."""
        return tuple(get_measure(kind, k, self.unit) for k in self.ks)

    @cached_property
    def plotted(self) -> tuple[Measure, ...]:
        """The measures of a grid: Recall, Precision and F1 at the goal's depths, and the goal."""
        usual = [each for kind in PLOTTED for each in self.over_ks(kind)]
        return tuple(dict.fromkeys([*usual, *self.measures]))

    def scores(self, report: Report) -> Scores:
        """Per question, the mean over the depths."""
        return np.asarray(np.column_stack([report.values(each) for each in self.measures]).mean(axis=1))

    def tokens(self, report: Report) -> Scores:
        """Per question, retrieved tokens, the mean over the depths; NaN without depths."""
        if not self.ks:
            return np.full(len(report.query_ids), math.nan)
        return np.asarray(np.column_stack([report.retrieved_tokens[k] for k in self.ks]).mean(axis=1))

    def show(self, value: float) -> str:
        """A score as reports show it."""
        return self.measures[0].show(value)


def assign_folds(benchmark: Benchmark, folds: int, *, by: By = "question", seed: int = 0) -> NDArray[np.int64]:
    """Each question's fold, from 0: int64, shape (queries,).

    Args:
        by: "question" deals shuffled questions out in turn. "document" keeps questions of one document (that of their
            first evidence) together: largest documents first, each to the smallest fold.
        seed: of the shuffling.

    Raises `OptionError`: fewer than two folds, or more than questions or documents with questions.

    >>> from chunkcore.datasets import load_dataset
    >>> np.bincount(assign_folds(load_dataset("lochmere"), 5)).tolist()
    [18, 18, 18, 18, 18]
    """
    if by not in get_args(By):
        raise OptionError(f"by is question or document, got {echo(by)}")
    documents = question_documents(benchmark)
    owners = [documents[query.id] for query in benchmark.queries] if by == "document" else range(len(documents))
    units = list(dict.fromkeys(owners))
    if not 2 <= folds <= len(units):
        raise OptionError(
            f"folds is at least 2 and at most the number of {by}s that are asked about ({len(units)}), got {folds}"
        )
    shuffled = [units[place] for place in np.random.default_rng(seed).permutation(len(units))]
    sizes = Counter(owners)
    loads = [0] * folds
    fold_of = {}
    for unit in sorted(shuffled, key=lambda unit: -sizes[unit]):
        fold_of[unit] = loads.index(min(loads))
        loads[fold_of[unit]] += sizes[unit]
    return np.array([fold_of[owner] for owner in owners], dtype=np.int64)


@dataclass(frozen=True, kw_only=True)
class TuneOptions:
    """How to search, and how to report the result.

    Attributes:
        trials: configurations to try, without the baseline. Grids run all.
        timeout: seconds after which no new trial begins.
        folds: parts of the questions for held-out scores, by "question" or by "document" with all its questions.
        measure: one to maximise, or several that differ in depth and are averaged. A token budget (``Recall@1000tok``)
            compares chunks of all sizes fairly; at a number of chunks, retrieved tokens are minimised too.
        retriever: as in `run_experiment`. Of a space that searches retrievers, only the baseline's.
        baseline: the configuration to beat, as `get_chunker` reads it.
        margin: quality to give up for fewer retrieved tokens, then for a lower cost.
        llm_tokens: limit on what language models read and write in all, by the strategies' estimates. Required for
            strategies that use a language model.

    Raises `OptionError`: an option is out of range.
    """

    trials: int = 60
    timeout: float | None = None
    seed: int = 0
    folds: int = 5
    by: By = "question"
    measure: Measure | str | Sequence[Measure | str] = "Recall@1000tok"
    counter: TokenCounter | str = "cl100k_base"
    retriever: str = "dense"
    baseline: str = "recursive:size=200"
    margin: float = 0.0
    resamples: int = 10_000
    llm_tokens: int | None = None

    def __post_init__(self) -> None:
        measures = self.goal.measures
        object.__setattr__(self, "measure", measures[0] if len(measures) == 1 else measures)
        object.__setattr__(self, "counter", get_counter(self.counter))
        get_chunker(self.baseline)
        get_retriever(self.retriever)
        for name, least in (("trials", 1), ("seed", 0), ("folds", 2), ("resamples", 100)):
            check_number(name, getattr(self, name), least, 1_000_000 if name == "resamples" else LARGEST)
        if self.timeout is not None:
            check_number("timeout", self.timeout, 0.001, whole=False)
        check_number("margin", self.margin, whole=False)
        if self.llm_tokens is not None:
            check_number("llm_tokens", self.llm_tokens)

    @property
    def goal(self) -> Goal:
        return Goal.of(self.measure)

    def measured(self, origin: str) -> tuple[Measure, ...]:
        """The measures that a trial of this origin is scored by, beside the goal."""
        goal = self.goal
        if origin == "grid":
            return goal.plotted
        return goal.measures if len(goal.measures) > 1 else ()


_NOTHING = np.empty(0)


@dataclass(frozen=True, kw_only=True, eq=False)
class Trial:
    """A tried configuration.

    Attributes:
        number: from 0, in order; -1 for the baseline.
        origin: "baseline", "default", "grid", "random", or "fold 2" if proposed from the scores of all other folds.
        spec: the configuration; see `configuration`.
        branch: of the search space; "" for the baseline.
        drawn: the index or number drawn for each of the branch's parameters.
        scores: per question, by the search's goal; float64, shape (queries,).
        tokens: retrieved per question; NaN if the goal uses no ranking.
        measured: scores per question by each measure of a mean; of a grid, by every plotted measure.
        embedded: tokens that the embedder reads of distinct texts, cached or not (`Cost.embedded_tokens`); without a
            count of the embedder's, those of the chunks by the scores' counter.
        asked: estimated tokens that language models read and write.
        chunks: number of chunks; `chunk_tokens` of all together, by the scores' counter.
        seconds: chunking and embedding; low with cached embeddings.
        failure: why there are no scores; "" if there are.
    """

    number: int
    origin: str
    spec: str
    branch: str = ""
    drawn: Mapping[str, Any] = field(default_factory=dict)
    scores: Scores = field(default_factory=lambda: _NOTHING)
    tokens: Scores = field(default_factory=lambda: _NOTHING)
    measured: Mapping[Measure, Scores] = field(default_factory=dict)
    embedded: int = 0
    asked: int = 0
    chunks: int = 0
    chunk_tokens: int = 0
    seconds: float = 0.0
    failure: str = ""

    @property
    def cost(self) -> int:
        """Tokens that models read or write to chunk and index the documents once."""
        return self.embedded + self.asked

    @property
    def quality(self) -> float:
        """The mean of the scores; NaN without scores."""
        return mean_std(self.scores)[0]

    @property
    def mean_tokens(self) -> float:
        """Retrieved tokens per question; NaN if the goal uses no ranking."""
        return mean_std(self.tokens)[0]

    @property
    def fold(self) -> int | None:
        """The fold held out when this trial was proposed; None if no scores were used."""
        return int(self.origin[5:]) if self.origin.startswith("fold ") else None

    @property
    def tokens_per_chunk(self) -> float:
        """The mean length of a chunk; NaN if unknown."""
        return self.chunk_tokens / self.chunks if self.chunk_tokens else math.nan

    def mean(self, measure: Measure) -> float:
        """The mean by one of a grid's measures; NaN if unknown."""
        return mean_std(self.measured.get(measure, _NOTHING))[0]

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values, NaN as null; `from_dict` is its inverse."""
        names = (*_PLAIN, "drawn", "scores", "tokens", *(["measured"] if self.measured else []))
        data: dict[str, Any] = plain_json({name: getattr(self, name) for name in names})
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], queries: int, measures: Sequence[Measure] = ()) -> Trial:
        """The inverse of `to_dict`, for `queries` questions and a grid's measures."""
        data = {"chunk_tokens": 0, **data}  # logs of 0.1 lack it
        try:
            found = {name: check_option(cls, name, data.get(name)) for name in _PLAIN}
        except OptionError as error:
            raise DataError(str(error)) from error
        drawn = data.get("drawn")
        if not isinstance(drawn, dict) or not all(map(_is_number, drawn.values())):
            raise DataError(f"drawn is an object of numbers, got {json.dumps(drawn)[:60]}")
        if not str(found["origin"]).replace("fold ", "", 1).isdecimal() and found["origin"] not in _ORIGINS:
            raise DataError(f"origin is one of {', '.join(_ORIGINS)} or a fold, got {echo(found['origin'])}")
        size = 0 if found["failure"] else queries
        measured = data.get("measured", {}) if size else {}
        if not isinstance(measured, dict):
            raise DataError(f"measured is an object of lists of numbers, got {json.dumps(measured)[:60]}")
        return cls(
            drawn=drawn,
            scores=_floats(data, "scores", size),
            tokens=_floats(data, "tokens", size),
            measured={each: _floats(measured, str(each), size) for each in measures} if size else {},
            **found,
        )


_ORIGINS = ("baseline", "default", "grid", "random")
_PLAIN = ["number", "origin", "spec", "branch", "embedded", "asked", "chunks", "chunk_tokens", "seconds", "failure"]
_LARGEST = 2.0**53


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and -_LARGEST < value < _LARGEST


def _floats(data: Mapping[str, Any], name: str, size: int) -> Scores:
    values = data.get(name)
    if not isinstance(values, list) or len(values) != size:
        raise DataError(f"{name} is a list of {size} numbers, got {json.dumps(values)[:60]}")
    if not all(value is None or _is_number(value) for value in values):
        raise DataError(f"{name} holds numbers and nulls alone, got {json.dumps(values)[:60]}")
    return np.array([math.nan if value is None else value for value in values], dtype=np.float64)


def run_trial(
    trial: Trial,
    chunker: Chunker,
    benchmark: Benchmark,
    embedder: Embedder,
    options: TuneOptions,
    progress: Progress | None = None,
) -> Trial:
    """The trial with its scores. Raises what `run_experiment` raises."""
    goal = options.goal
    measured = options.measured(trial.origin)
    (report,) = run_experiment(
        Scorer(benchmark, counter=options.counter),
        [chunker],
        embedder,
        # A measure without a depth looks at as many chunks as the deepest of the others.
        measures=[*measures_at(() if goal.ks else (10,)), *goal.measures, *measured],
        retrievers=[configuration(trial.spec)[1] or options.retriever],
        progress=progress,
    )
    embedded = report.cost.embedded_tokens if report.cost else None
    chunks = report.chunks or ChunkStatistics(np.empty(0, dtype=np.int64))
    return replace(
        trial,
        scores=goal.scores(report),
        tokens=goal.tokens(report),
        measured={measure: report.values(measure) for measure in measured},
        embedded=chunks.total if embedded is None else embedded,
        chunks=chunks.count,
        chunk_tokens=chunks.total,
        seconds=report.seconds.get("chunk", 0.0) + report.seconds.get("embed", 0.0),
    )


_ADVICE = "give another folder for the output, or take the file away to begin anew"
# Parts of an identity that errors show in full.
_SHOWN = ("measure", "counter", "retriever", "seed", "folds", "by", "baseline")


class TrialLog(AppendLog):
    """The log of a search's trials; the log of a search of another identity is refused."""

    def __init__(self, path: Path | str, identity: Mapping[str, Any]) -> None:
        def check(header: Mapping[str, Any]) -> None:
            known = header.get("identity")
            for name, value in identity.items():
                was = known.get(name) if isinstance(known, dict) else None
                if was != value:
                    begun = f"{name} {was!r}, and now it is {value!r}" if name in _SHOWN else f"another {name}"
                    raise DataError(f"{path} was begun with {begun}: go on as before, or {_ADVICE}")

        header = {"format": "chunkcore-study-1", "identity": dict(identity)}
        super().__init__(path, header, what="study that chunkcore tune wrote", advice=_ADVICE, check=check)

    def read(self, take: Callable[[dict[str, Any]], None]) -> None:
        """Call `take` with each trial, in order."""
        for number, data in self.entries:
            try:
                take(data)
            except DataError as error:
                raise DataError(f"{self.path}, line {number}: {error}; {_ADVICE}") from error
