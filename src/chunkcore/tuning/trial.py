"""`Trial`: one configuration and what came of it, question by question; and how it is run."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from chunkcore.chunkers.base import Chunker, get_chunker
from chunkcore.concurrency import Progress
from chunkcore.errors import DataError, MissingExtraError, OptionError
from chunkcore.evaluation.benchmarks.benchmark import Benchmark, question_documents
from chunkcore.evaluation.experiment import run_experiment
from chunkcore.evaluation.measures import Measure, Scores, get_measure
from chunkcore.evaluation.results import ChunkStatistics
from chunkcore.models.base import Embedder
from chunkcore.retrieval import get_retriever
from chunkcore.tokens import TokenCounter, get_counter
from chunkcore.tuning.space import Parameter, Space, Values

if TYPE_CHECKING:
    import optuna

__all__ = ["By", "Proposal", "Seen", "Trial", "TuneOptions", "assign_folds", "propose", "require_optuna", "run_trial"]

By = Literal["question", "document"]


def assign_folds(benchmark: Benchmark, folds: int, *, by: By = "question", seed: int = 0) -> NDArray[np.int64]:
    """Each question's fold, from 0: int64, shape (queries,).

    Args:
        benchmark: the questions.
        folds: how many parts.
        by: "question" deals the shuffled questions out in turn; "document" keeps the questions about one document
            (that of their first evidence) together, the documents with the most questions dealt first, each
            to the fold with the fewest.
        seed: of the shuffling.

    Raises:
        OptionError: fewer than two folds, or more than there are questions or documents with questions.

    >>> from chunkcore.datasets import load_dataset
    >>> np.bincount(assign_folds(load_dataset("lochmere"), 5)).tolist()
    [18, 18, 18, 18, 18]
    """
    if by not in get_args(By):
        raise OptionError(f"by is question or document, got {by!r}")
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
    """How to search, and how to say what was found.

    Attributes:
        trials: how many configurations are tried, the baseline not counted.
        timeout: seconds after which no new one is begun; None for no such limit.
        seed: of the proposals, the folds and the bootstrap.
        folds: how many parts the questions are held out in.
        by: what is held out together, and resampled: "question", or "document" with all its questions.
        measure: what is to be high. At a budget of retrieved tokens, such as ``Recall@1000tok``, chunks of all sizes
            are compared fairly; at a number of chunks, retrieved tokens are to be low, too.
        counter: whose tokens are scored.
        retriever: how the chunks are searched, as `run_experiment` takes it: "dense", "bm25", "hybrid" and others.
        baseline: what the choice is compared with, as `get_chunker` reads it.
        margin: how much of the measure is given away for fewer retrieved tokens, and then for a lower cost.
        resamples: of the bootstrap.
        llm_tokens: what language models may read and write in all, by the strategies' own estimates; strategies that
            ask one are not tried without it.

    Raises:
        OptionError: an option is out of range.
    """

    trials: int = 60
    timeout: float | None = None
    seed: int = 0
    folds: int = 5
    by: By = "question"
    measure: Measure | str = "Recall@1000tok"
    counter: TokenCounter | str = "cl100k_base"
    retriever: str = "dense"
    baseline: str = "recursive:size=200"
    margin: float = 0.0
    resamples: int = 10_000
    llm_tokens: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "measure", get_measure(self.measure))
        object.__setattr__(self, "counter", get_counter(self.counter))
        get_chunker(self.baseline)
        get_retriever(self.retriever)
        for name, least in (("trials", 1), ("seed", 0), ("folds", 2), ("resamples", 100)):
            value = getattr(self, name)
            if type(value) is not int or value < least:
                raise OptionError(f"{name} is a whole number from {least} on, got {value!r}")
        if self.timeout is not None and not self.timeout > 0:
            raise OptionError(f"timeout is over 0 seconds, got {self.timeout!r}")
        if not 0 <= self.margin < math.inf:
            raise OptionError(f"margin is at least 0, in the measure's unit, got {self.margin!r}")
        if self.llm_tokens is not None and self.llm_tokens < 0:
            raise OptionError(f"llm_tokens is at least 0, got {self.llm_tokens!r}")


_NOTHING = np.empty(0)


@dataclass(frozen=True, kw_only=True, eq=False)
class Trial:
    """A configuration that was tried.

    Attributes:
        number: from 0, in the order in which they were tried; the baseline's is -1.
        origin: "baseline", "default", "random", or "fold 2" where it was proposed from the scores of all questions
            but those of fold 2.
        spec: the configuration, as `get_chunker` reads it.
        branch: of the search space; "" of the baseline.
        drawn: what was drawn for each of the branch's parameters.
        scores: the measure's, of each question; float64, shape (queries,).
        tokens: retrieved, of each question; NaN where the measure looks at no ranking.
        embedded: tokens that the embedder reads of all distinct texts: chunks, and what a strategy embeds to find
            them (`Cost.embedded_tokens`), kept from before or not. Where it does not tell its tokens, the chunks' by
            the scores' counter.
        asked: tokens of language models, of questions and answers, as estimated beforehand.
        chunks: how many.
        seconds: cutting and embedding; little where the embeddings were kept from before.
        failure: why there are no scores; "" where there are.
    """

    number: int
    origin: str
    spec: str
    branch: str = ""
    drawn: Mapping[str, Any] = field(default_factory=dict)
    scores: Scores = field(default_factory=lambda: _NOTHING)
    tokens: Scores = field(default_factory=lambda: _NOTHING)
    embedded: int = 0
    asked: int = 0
    chunks: int = 0
    seconds: float = 0.0
    failure: str = ""

    @property
    def cost(self) -> int:
        """Tokens that models read or write to cut and index the documents once."""
        return self.embedded + self.asked

    @property
    def quality(self) -> float:
        """The mean of the scores; NaN where there is none."""
        return _mean(self.scores)

    @property
    def mean_tokens(self) -> float:
        """Retrieved tokens per question; NaN where the measure looks at no ranking."""
        return _mean(self.tokens)

    @property
    def fold(self) -> int | None:
        """The fold whose scores had no part in proposing it; None where no scores had."""
        return int(self.origin[5:]) if self.origin.startswith("fold ") else None

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values, NaN as null; `from_dict` is its inverse."""
        told = {name: getattr(self, name) for name in _PLAIN}
        return told | {
            "drawn": dict(self.drawn),
            "scores": _nulls(self.scores),
            "tokens": _nulls(self.tokens),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], queries: int) -> Trial:
        """The trial that `to_dict` described, of so many questions.

        Raises:
            DataError: a part is missing or of the wrong kind.
        """
        found = {name: data.get(name) for name in _PLAIN}
        for name, value in found.items():
            if not _is_plain(value, _PLAIN[name]):
                raise DataError(f"{name} is {_KINDS[_PLAIN[name]]}, got {json.dumps(value)[:60]}")
        drawn = data.get("drawn")
        if not isinstance(drawn, dict) or not all(_is_plain(each, float) for each in drawn.values()):
            raise DataError(f"drawn is an object of numbers, got {json.dumps(drawn)[:60]}")
        if not str(found["origin"]).replace("fold ", "", 1).isdecimal() and found["origin"] not in _ORIGINS:
            raise DataError(f"origin is one of {', '.join(_ORIGINS)} or a fold, got {found['origin']!r}")
        size = 0 if found["failure"] else queries
        return cls(
            drawn=drawn,
            scores=_floats(data, "scores", size),
            tokens=_floats(data, "tokens", size),
            **found,  # type: ignore[arg-type]
        )


_ORIGINS = ("baseline", "default", "random")
_PLAIN: dict[str, type] = {
    "number": int,
    "origin": str,
    "spec": str,
    "branch": str,
    "embedded": int,
    "asked": int,
    "chunks": int,
    "seconds": float,
    "failure": str,
}


def run_trial(
    trial: Trial,
    chunker: Chunker,
    benchmark: Benchmark,
    embedder: Embedder,
    options: TuneOptions,
    progress: Progress | None = None,
) -> Trial:
    """The trial with what came of its configuration.

    Raises:
        ChunkcoreError: whatever `run_experiment` raises.
    """
    measure = get_measure(options.measure)
    (report,) = run_experiment(
        benchmark,
        [chunker],
        embedder,
        # A measure without a depth looks at as many chunks as the deepest of the others.
        ks=(10,) if measure.k is None else (measure.k,),
        measures=[measure],
        counter=options.counter,
        retrievers=[options.retriever],
        progress=progress,
    )
    nothing = np.full(len(benchmark.queries), math.nan)
    embedded = report.cost.embedded_tokens if report.cost else None
    chunks = report.chunks or ChunkStatistics(np.empty(0, dtype=np.int64))
    return replace(
        trial,
        scores=report.values(measure),
        tokens=nothing if measure.k is None else report.retrieved_tokens[measure.k],
        embedded=chunks.total if embedded is None else embedded,
        chunks=chunks.count,
        seconds=report.seconds.get("chunk", 0.0) + report.seconds.get("embed", 0.0),
    )


_KINDS = {int: "a whole number", float: "a number", str: "a string"}
_LARGEST = 2.0**53


def _is_plain(value: Any, kind: type) -> bool:
    """Whether it is a string, or a number that a float holds; a whole one may stand for one that need not be."""
    if kind is str:
        return isinstance(value, str)
    return type(value) in ((int,) if kind is int else (int, float)) and -_LARGEST < value < _LARGEST


def _mean(values: Scores) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else math.nan


def _nulls(values: Scores) -> list[float | None]:
    return [None if math.isnan(value) else value for value in values.tolist()]


def _floats(data: Mapping[str, Any], name: str, size: int) -> Scores:
    values = data.get(name)
    if not isinstance(values, list) or len(values) != size:
        raise DataError(f"{name} is a list of {size} numbers, got {json.dumps(values)[:60]}")
    if not all(value is None or _is_plain(value, float) for value in values):
        raise DataError(f"{name} holds numbers and nulls alone, got {json.dumps(values)[:60]}")
    return np.array([math.nan if value is None else value for value in values], dtype=np.float64)


_REDRAWS = 30
_BRANCH = "branch"


class Proposal(NamedTuple):
    """A configuration of the space: a branch, and what is drawn for each of its parameters."""

    branch: str
    drawn: dict[str, Any]


class Seen(NamedTuple):
    """A trial that may be learnt from.

    Attributes:
        proposal: its configuration.
        values: quality first, which is to be high, then what is to be low; None where it failed.
    """

    proposal: Proposal
    values: tuple[float, ...] | None


def propose(space: Space, seen: Sequence[Seen], *, seed: int, blind: bool) -> Proposal:
    """A configuration that is not among those seen, unless thirty draws at random find none.

    Args:
        space: what may be drawn.
        seen: earlier trials, all with as many values.
        seed: equal seeds and trials give the same proposal, with one version of Optuna.
        blind: draw at random; else by Optuna's `TPESampler`, for all values at once.

    Raises:
        MissingExtraError: Optuna is not installed.

    Source: Bergstra et al., Algorithms for Hyper-Parameter Optimization, NIPS 2011; Ozaki et al., Multiobjective
    Tree-structured Parzen Estimator, JAIR 73 (2022).
    """
    optuna = require_optuna()
    known = {_spec(space, each.proposal) for each in seen}
    with _quiet(optuna):
        if not blind:
            values = max((len(each.values) for each in seen if each.values), default=1)
            study = optuna.create_study(
                directions=["maximize", *["minimize"] * (values - 1)], sampler=optuna.samplers.TPESampler(seed=seed)
            )
            study.add_trials([_trial(optuna, space, each) for each in seen])
            found = _ask(optuna, study, space, known)
            if _spec(space, found) not in known:
                return found
        return _ask(optuna, optuna.create_study(sampler=optuna.samplers.RandomSampler(seed)), space, known)


def _ask(optuna: Any, study: optuna.Study, space: Space, known: set[str]) -> Proposal:
    """A proposal that is not known, unless thirty are."""
    for _ in range(_REDRAWS):
        trial = study.ask()
        found = _draw(trial, space)
        if _spec(space, found) not in known:
            break
        study.tell(trial, state=optuna.trial.TrialState.FAIL)
    return found


def require_optuna() -> Any:
    """The package.

    Raises:
        MissingExtraError: it is not installed.
    """
    try:
        import optuna
    except ImportError as error:
        raise MissingExtraError.of("optuna", "tune", "search for a configuration") from error
    return optuna


@contextmanager
def _quiet(optuna: Any) -> Iterator[None]:
    """No line a study on standard error; whoever uses Optuna beside us keeps their setting."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)


def _draw(trial: optuna.Trial, space: Space) -> Proposal:
    branch = trial.suggest_categorical(_BRANCH, [each.name for each in space.branches])
    drawn = {}
    for option, parameter in space.branch(branch).parameters.items():
        name = f"{branch}.{option}"
        if not isinstance(parameter, Values):
            suggest: Any = trial.suggest_int if parameter.whole else trial.suggest_float
            drawn[option] = suggest(name, parameter.low, parameter.high, log=parameter.log)
        elif parameter.ordered:
            drawn[option] = trial.suggest_int(name, 0, len(parameter.values) - 1)
        else:
            drawn[option] = trial.suggest_categorical(name, range(len(parameter.values)))
    return Proposal(branch, drawn)


def _trial(optuna: Any, space: Space, seen: Seen) -> optuna.trial.FrozenTrial:
    """What `_draw` would have left in a study."""
    branch = space.branch(seen.proposal.branch)
    names = [each.name for each in space.branches]
    params: dict[str, Any] = {_BRANCH: branch.name}
    distributions: dict[str, Any] = {_BRANCH: optuna.distributions.CategoricalDistribution(names)}
    for option, parameter in branch.parameters.items():
        params[f"{branch.name}.{option}"] = seen.proposal.drawn[option]
        distributions[f"{branch.name}.{option}"] = _distribution(optuna, parameter)
    if seen.values is None:
        return optuna.trial.create_trial(  # type: ignore[no-any-return]
            state=optuna.trial.TrialState.FAIL, params=params, distributions=distributions
        )
    return optuna.trial.create_trial(  # type: ignore[no-any-return]
        values=list(seen.values), params=params, distributions=distributions
    )


def _distribution(optuna: Any, parameter: Parameter) -> Any:
    kinds = optuna.distributions
    if not isinstance(parameter, Values):
        kind = kinds.IntDistribution if parameter.whole else kinds.FloatDistribution
        return kind(parameter.low, parameter.high, log=parameter.log)
    if parameter.ordered:
        return kinds.IntDistribution(0, len(parameter.values) - 1)
    return kinds.CategoricalDistribution(range(len(parameter.values)))


def _spec(space: Space, proposal: Proposal) -> str:
    return space.branch(proposal.branch).spec(proposal.drawn)
