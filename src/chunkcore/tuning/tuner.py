"""`tune`: search for the configuration that retrieves best, and estimate its score on new questions."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from functools import cached_property, lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from chunkcore.chunkers.base import Chunker, get_chunker, strategies
from chunkcore.chunkers.llm import LLMChunker
from chunkcore.concurrency import Progress
from chunkcore.errors import ChunkcoreError, DataError, MissingExtraError, ModelError, NoAnswerError, OptionError, echo
from chunkcore.evaluation.benchmarks.benchmark import Benchmark
from chunkcore.evaluation.statistics.resampling import column_means
from chunkcore.lazy import needed
from chunkcore.models.base import Embedder
from chunkcore.models.cache import CachedEmbedder, EmbeddingCache
from chunkcore.models.loading import DEFAULT_MODEL, get_embedder
from chunkcore.registry import split_spec
from chunkcore.tokens import get_counter
from chunkcore.tuning.result import Stopped, Tuning, conclude
from chunkcore.tuning.space import Space, Values, configuration, default_space, parse_space
from chunkcore.tuning.trials import Trial, TrialLog, TuneOptions, assign_folds, run_trial

if TYPE_CHECKING:
    import optuna

_DEAD = 3  # consecutive failures of a model that end the search


def tune(
    benchmark: Benchmark,
    space: Space | str | Sequence[str] | None = None,
    embedder: Embedder | str = DEFAULT_MODEL,
    *,
    options: TuneOptions | None = None,
    study: Path | str | None = None,
    cache: EmbeddingCache | Path | str | None = None,
    keeping: Callable[[Chunker], Chunker] = lambda chunker: chunker,
    progress: Progress | None = None,
) -> Tuning:
    """Search strategies and their options for the configuration that retrieves best.

    Grids (``"recursive:size={50,100,200}"``) run every combination. Any other space starts with each strategy's
    defaults, then alternates random configurations and proposals of Optuna. A proposal belongs to a fold and uses the
    scores of the *other* folds' questions only. The held-out score is the mean over the folds, each scored by the
    configuration that the others choose: an estimate on new questions, slightly low.

    A stopped search resumes from its `study` and gives the same result, up to the last digits of vectors. After Ctrl-C
    or the time limit the result is that of the finished trials.

    Args:
        benchmark: documents and questions. For evidence sentences pass ``whole_sentences(benchmark)``.
        space: a `Space`, or strategies as `parse_space` reads them; `default_space` by default.
        study: file that keeps the trials; `cache` keeps embeddings, in memory by default.
        keeping: wraps each strategy before it runs, for instance to keep language models' answers.
        progress: called with "trials", done and total; and with "this trial, %", percent done and 100.

    Raises:
        OptionError: an option is out of range, or another process uses the study.
        DataError: the study is damaged or of another search; or every configuration failed.
        ModelError: the embedder failed on the baseline, or a model three times in a row.
        MissingExtraError: Optuna is needed for proposals and not installed.
        KeyboardInterrupt: before any configuration was done.

    Source: for grids, Qu et al. (2024), section 4.1 and appendix B.

    >>> from types import SimpleNamespace
    >>> from chunkcore.datasets import load_dataset
    >>> letters = lambda texts: np.array([[text.count(each) + 1 for each in "aeiost"] for text in texts], np.float32)
    >>> model = SimpleNamespace(
    ...     name="m", fingerprint="m", max_tokens=None, embed_documents=letters, embed_queries=letters
    ... )
    >>> options = TuneOptions(measure="F1@5", resamples=100)
    >>> found = tune(load_dataset("lochmere"), "recursive:size={100,200}", model, options=options)
    >>> len(found.trials), found.strategies.choices[0].candidates, len(found.strategies.reporting)
    (2, 2, 45)
    """
    if isinstance(space, str):
        space = [space]
    searched = default_space() if space is None else space if isinstance(space, Space) else parse_space(space)
    if not searched.exhaustive:
        _optuna()
    search = _Search(benchmark, searched, embedder, options or TuneOptions(), cache, keeping, progress)
    if study is None:
        return search.run(None)
    with closing(TrialLog(study, search.identity)) as log:
        return search.run(log)


class _Search:
    def __init__(
        self,
        benchmark: Benchmark,
        space: Space,
        embedder: Embedder | str,
        options: TuneOptions,
        cache: EmbeddingCache | Path | str | None,
        keeping: Callable[[Chunker], Chunker],
        progress: Progress | None,
    ) -> None:
        self.benchmark = benchmark
        self.space = space
        self.options = options
        self.fold_of = assign_folds(benchmark, options.folds, by=options.by, seed=options.seed)
        model = get_embedder(embedder)
        if isinstance(model, CachedEmbedder) and cache is not None:
            raise OptionError("the embedder has a cache of its own: give the cache, or the embedder without it")
        if not isinstance(model, CachedEmbedder):
            model = CachedEmbedder(model, cache if isinstance(cache, EmbeddingCache) else EmbeddingCache(cache))
        self.embedder = model
        asking = [each.strategy for each in space.branches if issubclass(strategies[each.strategy], LLMChunker)]
        if asking and options.llm_tokens is None:
            raise OptionError(
                f"{asking[0]} asks a language model: say with llm_tokens how many tokens may be spent on it in all"
            )
        self.keeping = keeping
        self.report = progress or (lambda step, done, total: None)
        self.trials: dict[int, Trial] = {}
        self._dead = 0
        self.log: TrialLog | None = None

    @property
    def identity(self) -> dict[str, Any]:
        """Everything that scores or proposals depend on."""
        return {
            "benchmark": _digest(self.benchmark),
            "embedder": self.embedder.fingerprint,
            "space": self.space.digest(),
            "measure": str(self.options.goal),
            "counter": get_counter(self.options.counter).name,
            "retriever": self.options.retriever,
            "baseline": self.options.baseline,
            "seed": self.options.seed,
            "folds": self.options.folds,
            "by": self.options.by,
        }

    def run(self, log: TrialLog | None) -> Tuning:
        self.log = log
        if log is not None:
            log.read(self._restore)
        stopped = self._try_all()
        done = sorted(self.trials.values(), key=lambda trial: trial.number)
        return conclude(done, self.benchmark, self.space, self.fold_of, self.options, self.embedder.name, stopped)

    @cached_property
    def _planned(self) -> list[Trial]:
        branches = self.space.branches
        if self.space.exhaustive:
            found = {each.spec(drawn): Proposal(each.name, drawn) for each in branches for drawn in each.combinations()}
            return [self._trial(number, "grid", each) for number, each in enumerate(found.values())]
        defaults = [Proposal(each.name, drawn) for each in branches if (drawn := each.default()) is not None]
        return [self._trial(number, "default", each) for number, each in enumerate(defaults)]

    def _try_all(self) -> Stopped:
        wanted = len(self._planned) if self.space.exhaustive else self.options.trials
        deadline = math.inf if self.options.timeout is None else time.monotonic() + self.options.timeout
        try:
            if -1 not in self.trials:
                self._keep(self._run(Trial(number=-1, origin="baseline", spec=self.options.baseline)))
            for number in range(wanted):
                self.report("trials", number, wanted)
                if number in self.trials:
                    continue
                tried = {each.spec for each in self.trials.values() if each.number >= 0}
                if not self.space.exhaustive and len(tried) >= self.space.size:
                    return "exhausted"
                if time.monotonic() >= deadline:
                    return "time"
                self._try(number)
        except KeyboardInterrupt:
            if -1 not in self.trials or all(each.failure for each in self.trials.values() if each.number >= 0):
                raise
            return "interrupted"
        self.report("trials", wanted, wanted)
        return ""

    def _try(self, number: int) -> None:
        """Run one trial and keep it. Raises `ModelError` if a model failed in several trials in a row."""
        trial = self._propose(number)
        name, measured = _label(trial.spec), self.options.measured(trial.origin)
        known = (each for each in self.trials.values() if not each.failure and len(each.measured) >= len(measured))
        same = next((each for each in known if _label(each.spec) == name), None)
        if same is not None:
            names = "scores", "tokens", "measured", "embedded", "asked", "chunks", "chunk_tokens"
            self._keep(replace(trial, **{each: getattr(same, each) for each in names}))
            return
        writing = True
        try:
            done = self._run(trial)
            self._dead = 0
        except (ModelError, MissingExtraError, _OverBudgetError) as error:
            # A retry may succeed, so the failure is not logged, unless an answer was paid for.
            writing = isinstance(error, NoAnswerError)
            done = replace(trial, failure=str(error))
            self._dead += isinstance(error, ModelError) and not writing
            if self._dead == _DEAD:
                raise
        except ChunkcoreError as error:
            done = replace(trial, failure=str(error))
        self._keep(done, writing=writing)

    def _keep(self, trial: Trial, *, writing: bool = True) -> None:
        self.trials[trial.number] = trial
        if self.log is not None and writing:
            self.log.append(trial.to_dict())

    def _run(self, trial: Trial) -> Trial:
        spec, _ = configuration(trial.spec)
        chunker = get_chunker(spec)
        if "embedder" in split_spec(spec)[1]:
            # A name could be the default's, which the run's own embedder replaces.
            chunker = replace(chunker, embedder=get_embedder(chunker.embedder))  # type: ignore[call-arg, attr-defined]
        if isinstance(chunker, LLMChunker):
            trial = replace(trial, asked=self._estimate(chunker))

        def progress(step: str, done: int, total: int) -> None:  # chunking is the first half, embedding the second
            if step in ("chunk", "embed") and 0 < done < total:
                self.report("this trial, %", 50 * (step == "embed") + 50 * done // total, 100)

        return run_trial(trial, self.keeping(chunker), self.benchmark, self.embedder, self.options, progress)

    def _estimate(self, chunker: LLMChunker) -> int:
        usage = chunker.estimate(self.benchmark.documents)
        tokens = usage.input_tokens + usage.output_tokens
        most = self.options.llm_tokens or 0
        spent = sum(
            {configuration(trial.spec)[0]: trial.asked for trial in self.trials.values() if not trial.failure}.values()
        )
        if spent + tokens > most:
            raise _OverBudgetError(
                f"it would take about {tokens:,} tokens of a language model; {spent:,} of {most:,} are spent"
            )
        return tokens

    # ---- what comes next

    def _propose(self, number: int) -> Trial:
        """The configuration of this number: a function of the trials before it."""
        if number < len(self._planned):
            return self._planned[number]
        turn = number - len(self._planned)
        fold = None if turn % 2 == 0 else turn // 2 % self.options.folds
        before = [self.trials[each] for each in range(number) if each in self.trials]
        seen = list(self._seen([each for each in before if each.fold is None or each.fold == fold], fold))
        seed = int(np.random.SeedSequence([self.options.seed, number]).generate_state(1)[0])
        proposal = propose(self.space, seen, seed=seed, blind=fold is None)
        return self._trial(number, "random" if fold is None else f"fold {fold}", proposal)

    def _trial(self, number: int, origin: str, proposal: Proposal) -> Trial:
        spec = self.space.branch(proposal.branch).spec(proposal.drawn)
        return Trial(number=number, origin=origin, spec=spec, branch=proposal.branch, drawn=proposal.drawn)

    def _seen(self, trials: Sequence[Trial], fold: int | None) -> Iterator[Seen]:
        others = self.fold_of != fold
        for trial in trials:
            values = None
            if not trial.failure and fold is not None:
                quality, tokens = (
                    float(column_means(each[others][:, None])[0]) for each in (trial.scores, trial.tokens)
                )
                prices = (tokens, float(trial.cost)) if self.options.goal.has_tokens else (float(trial.cost),)
                values = None if math.isnan(quality) else (quality, *prices)
            yield Seen(Proposal(trial.branch, dict(trial.drawn)), values)

    def _restore(self, data: dict[str, Any]) -> None:
        """Take over a trial of the log. Raises `DataError` if it is not of this space."""
        measures = self.options.measured(str(data.get("origin")))
        trial = Trial.from_dict(data, len(self.benchmark.queries), measures)
        if trial.origin == "baseline":
            fits = (trial.number, trial.spec) == (-1, self.options.baseline)
        else:
            try:
                fits = trial.number >= 0 and self.space.branch(trial.branch).spec(trial.drawn) == trial.spec
            except (KeyError, IndexError, TypeError, ValueError, ChunkcoreError):
                fits = False
        if not fits or trial.number in self.trials or not (trial.fold is None or trial.fold < self.options.folds):
            raise DataError(f"trial {trial.number} ({echo(trial.spec[:80])}) is none of this search")
        self.trials[trial.number] = trial


@lru_cache(maxsize=4_096)
def _label(spec: str) -> tuple[str, str]:
    strategy, retriever = configuration(spec)
    return get_chunker(strategy).label, retriever


class _OverBudgetError(OptionError):
    """The estimate of a language model's tokens exceeds the limit."""


def _digest(benchmark: Benchmark) -> str:
    hashed = blake2b(digest_size=8)
    for document in benchmark.documents:
        hashed.update(json.dumps([document.id, document.text]).encode("ascii"))
    for query in benchmark.queries:
        evidence = [[each.document_id, each.span.start, each.span.end] for each in query.evidence]
        hashed.update(json.dumps([query.id, query.text, evidence]).encode("ascii"))
    return hashed.hexdigest()


_REDRAWS = 30
_BRANCH = "branch"


class Proposal(NamedTuple):
    """A configuration: a branch, and the index or number drawn for each of its parameters."""

    branch: str
    drawn: dict[str, Any]


class Seen(NamedTuple):
    """A trial: quality, to maximise, then prices, to minimise; None if it failed."""

    proposal: Proposal
    values: tuple[float, ...] | None


def propose(space: Space, seen: Sequence[Seen], *, seed: int, blind: bool) -> Proposal:
    """A new configuration, unless thirty draws in a row find none.

    Equal seeds and trials give equal proposals, for one version of Optuna. `blind` draws at random; otherwise Optuna's
    `TPESampler` proposes all values at once. Raises `MissingExtraError` if Optuna is not installed.

    Source: Bergstra et al., Algorithms for Hyper-Parameter Optimization, NIPS 2011; Ozaki et al., Multiobjective
    Tree-structured Parzen Estimator, JAIR 73 (2022).
    """
    optuna = _optuna()
    known = {_spec(space, each.proposal) for each in seen}
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
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
    finally:
        optuna.logging.set_verbosity(before)


def _ask(optuna: Any, study: optuna.Study, space: Space, known: set[str]) -> Proposal:
    for _ in range(_REDRAWS):
        trial = study.ask()
        found = _draw(trial, space)
        if _spec(space, found) not in known:
            break
        study.tell(trial, state=optuna.trial.TrialState.FAIL)
    return found


def _optuna() -> Any:
    return needed("optuna", "tune", "search for a configuration")


def _draw(trial: optuna.Trial | optuna.trial.FixedTrial, space: Space) -> Proposal:
    branch = trial.suggest_categorical(_BRANCH, [each.name for each in space.branches])
    drawn: dict[str, Any] = {}
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


def _trial(optuna: Any, space: Space, seen: Seen) -> Any:
    """The trial as `_draw` leaves it in an Optuna study."""
    branch, drawn = seen.proposal
    fixed = optuna.trial.FixedTrial({_BRANCH: branch, **{f"{branch}.{option}": drawn[option] for option in drawn}})
    _draw(fixed, space)
    states = optuna.trial.TrialState
    return optuna.trial.create_trial(
        state=states.FAIL if seen.values is None else states.COMPLETE,
        values=seen.values,
        params=fixed.params,
        distributions=fixed.distributions,
    )


def _spec(space: Space, proposal: Proposal) -> str:
    return space.branch(proposal.branch).spec(proposal.drawn)
