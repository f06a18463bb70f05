"""`tune`: search for the configuration that retrieves best, and say what the choice is worth on other questions."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from chunkcore.chunkers.base import Chunker, strategies
from chunkcore.chunkers.llm import LLMChunker
from chunkcore.chunkers.spec import parse_chunker, split_spec
from chunkcore.errors import (
    ChunkcoreError,
    DataError,
    MissingExtraError,
    ModelError,
    NoAnswerError,
    OptionError,
)
from chunkcore.evaluation.benchmark import Benchmark
from chunkcore.evaluation.measures import as_measure, budget_of
from chunkcore.models.base import Embedder
from chunkcore.models.cache import EmbeddingCache
from chunkcore.models.cached import CachedEmbedder
from chunkcore.models.loading import DEFAULT_MODEL, get_embedder
from chunkcore.progress import Progress
from chunkcore.tokens import get_counter
from chunkcore.tuning.default_space import default_space
from chunkcore.tuning.folds import assign_folds
from chunkcore.tuning.held_out import Outcomes
from chunkcore.tuning.options import TuneOptions
from chunkcore.tuning.proposal import Proposal, Seen, propose, require_optuna
from chunkcore.tuning.result import Stopped, Tuning, conclude
from chunkcore.tuning.space import Space
from chunkcore.tuning.study_file import StudyFile
from chunkcore.tuning.trial import Trial, run_trial

__all__ = ["tune"]

_DEAD = 3  # failures of a model in a row, after which there is no point in asking it on


def tune(
    benchmark: Benchmark,
    space: Space | None = None,
    embedder: Embedder | str = DEFAULT_MODEL,
    *,
    options: TuneOptions | None = None,
    study: Path | str | None = None,
    cache: EmbeddingCache | Path | str | None = None,
    keeping: Callable[[Chunker], Chunker] = lambda chunker: chunker,
    progress: Progress | None = None,
) -> Tuning:
    """Search strategies and their options for the configuration that retrieves best.

    Each configuration is run once, on all questions. First the baseline and every strategy's defaults are tried, then
    in turns a configuration that is drawn at random and one that Optuna proposes. A proposal belongs to a fold: it is
    made from the scores of the questions of all *other* folds, on the configurations that were drawn at random and
    those proposed for the same fold. So for each fold there are candidates that nobody proposed who had seen its
    questions; the best of them by the other folds' questions is scored on the fold's own. The mean of these held-out
    scores is what may be expected of the choice on new questions, and a little less, as each was made
    from fewer questions and candidates than the final one, which is the best of all by all questions.

    Proposals depend on earlier scores, the seed and the version of Optuna alone. A search that was stopped, by
    whatever, goes on with the trials of its `study`, and comes to the result that it would have come to, as far as
    the embedder answers the same (batches of other texts can change a vector's last digits).

    Args:
        benchmark: documents and questions.
        space: what is searched; `default_space` where it is not given.
        embedder: of chunks and queries, or the name of one.
        options: see `TuneOptions`.
        study: the file that keeps the trials; None keeps nothing.
        cache: of embeddings, or its file; in memory by default.
        keeping: wraps each strategy before it is run, for instance so that language models' answers are kept.
        progress: called with "trials", how many are done, and of how many; and with "this trial, %", how far the one
            at hand is, and 100.

    Returns:
        What was found. After Ctrl-C, or where the time is over, it is made of the trials that are done.

    Raises:
        OptionError: an option is out of range, or another process is at work on the study.
        DataError: the study is of another search, or damaged; or no configuration could be run.
        ModelError: the embedder failed on the baseline, or a model three times in a row.
        MissingExtraError: Optuna is not installed.
        KeyboardInterrupt: before any configuration was done.
    """
    require_optuna()
    search = _Search(benchmark, space or default_space(), embedder, options or TuneOptions(), cache, keeping, progress)
    if study is None:
        return search.run(None)
    with StudyFile(study, search.identity) as file:
        return search.run(file)


class _Search:
    """A search as it goes on: the trials by their numbers."""

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
        self.measure = as_measure(options.measure)
        self.counter = get_counter(options.counter)
        self.fold_of = assign_folds(benchmark, options.folds, by=options.by, seed=options.seed)
        model = get_embedder(embedder)
        if isinstance(model, CachedEmbedder) and cache is not None:
            raise OptionError("the embedder has a cache of its own: give the cache, or the embedder without it")
        if not isinstance(model, CachedEmbedder):
            model = CachedEmbedder(model, cache if isinstance(cache, EmbeddingCache) else EmbeddingCache(cache))
        self.embedder = model
        self._check_paid()
        self.keeping = keeping
        self.report = progress or (lambda step, done, total: None)
        self.trials: dict[int, Trial] = {}
        self._dead = 0
        self.file: StudyFile | None = None

    def _check_paid(self) -> None:
        """Refuse a search that asks language models without a word on how much."""
        asking = [
            branch.strategy for branch in self.space.branches if issubclass(strategies()[branch.strategy], LLMChunker)
        ]
        if asking and self.options.llm_tokens is None:
            raise OptionError(
                f"{asking[0]} asks a language model: say with llm_tokens how many tokens may be spent on it in all"
            )

    @property
    def identity(self) -> dict[str, Any]:
        """What a study is of: all that a trial's scores, or what is proposed next, depend on."""
        return {
            "benchmark": _digest(self.benchmark),
            "embedder": self.embedder.fingerprint,
            "space": self.space.digest(),
            "measure": str(self.measure),
            "counter": self.counter.name,
            "retriever": self.options.retriever,
            "baseline": self.options.baseline,
            "seed": self.options.seed,
            "folds": self.options.folds,
            "by": self.options.by,
        }

    def run(self, file: StudyFile | None) -> Tuning:
        """Try what is missing, and conclude."""
        self.file = file
        if file is not None:
            file.read(self._restore)
        stopped = self._try_all()
        return conclude(
            sorted(self.trials.values(), key=lambda trial: trial.number),
            self.benchmark,
            self.fold_of,
            self.options,
            self.embedder.name,
            stopped,
        )

    def _try_all(self) -> Stopped:
        deadline = math.inf if self.options.timeout is None else time.monotonic() + self.options.timeout
        try:
            if -1 not in self.trials:
                self._keep(self._run(Trial(number=-1, origin="baseline", spec=self.options.baseline)))
            for number in range(self.options.trials):
                self.report("trials", number, self.options.trials)
                if number in self.trials:
                    continue
                if self._tried >= self._possible:
                    return "exhausted"
                if time.monotonic() >= deadline:
                    return "time"
                self._try(number)
        except KeyboardInterrupt:
            if -1 not in self.trials or all(each.failure for number, each in self.trials.items() if number >= 0):
                raise
            return "interrupted"
        self.report("trials", self.options.trials, self.options.trials)
        return ""

    @property
    def _tried(self) -> int:
        return len({trial.spec for number, trial in self.trials.items() if number >= 0})

    @cached_property
    def _possible(self) -> float:
        return sum(branch.size for branch in self.space.branches)

    def _try(self, number: int) -> None:
        """Run the trial of this number, and keep it.

        Raises:
            ModelError: a model has failed in several trials one after another.
        """
        trial = self._propose(number)
        same = next((each for each in self.trials.values() if each.spec == trial.spec and not each.failure), None)
        if same is not None:
            self._keep(_like(trial, same))
            return
        writing = True
        try:
            done = self._run(trial)
            self._dead = 0
        except (ModelError, MissingExtraError, _OverBudgetError) as error:
            # Another time it may go well, so that it is not written down, unless an answer was paid for.
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
        if self.file is not None and writing:
            self.file.append(trial.to_dict())

    def _run(self, trial: Trial) -> Trial:
        chunker = parse_chunker(trial.spec)
        if "embedder" in split_spec(trial.spec)[1]:
            # As a name it could not be told from the default, in whose place the run's own comes.
            chunker = replace(chunker, embedder=get_embedder(chunker.embedder))  # type: ignore[call-arg, attr-defined]
        if isinstance(chunker, LLMChunker):
            trial = replace(trial, asked=self._estimate(chunker))
        return run_trial(
            trial, self.keeping(chunker), self.benchmark, self.embedder, self.options, self._progress_of_trial
        )

    def _estimate(self, chunker: LLMChunker) -> int:
        usage = chunker.estimate(self.benchmark.documents)
        tokens = usage.input_tokens + usage.output_tokens
        most = self.options.llm_tokens or 0
        spent = sum({trial.spec: trial.asked for trial in self.trials.values() if not trial.failure}.values())
        if spent + tokens > most:
            raise _OverBudgetError(
                f"it would take about {tokens:,} tokens of a language model; {spent:,} of {most:,} are spent"
            )
        return tokens

    def _progress_of_trial(self, step: str, done: int, total: int) -> None:
        """Cutting is told as the first half of a trial, embedding as the second."""
        if step in ("chunk", "embed") and 0 < done < total:
            self.report("this trial, %", 50 * (step == "embed") + 50 * done // total, 100)

    # ---- what comes next

    def _propose(self, number: int) -> Trial:
        """The configuration of this number: a function of the trials before it."""
        defaults = [(branch, drawn) for branch in self.space.branches if (drawn := branch.default()) is not None]
        if number < len(defaults):
            branch, drawn = defaults[number]
            return self._trial(number, "default", Proposal(branch.name, drawn))
        turn = number - len(defaults)
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
        """The trials with their means over the questions of all folds but this one."""
        others = self.fold_of != fold
        for trial in trials:
            proposal = Proposal(trial.branch, dict(trial.drawn))
            if trial.failure or fold is None:
                yield Seen(proposal, None)
                continue
            outcomes = Outcomes(trial.scores[:, None], trial.tokens[:, None], np.array([float(trial.cost)]))
            quality, tokens = (float(each[0]) for each in outcomes.means(others))
            if math.isnan(quality):
                yield Seen(proposal, None)
            elif budget_of(self.measure.k) is not None or math.isnan(tokens):  # the same for all
                yield Seen(proposal, (quality, float(trial.cost)))
            else:
                yield Seen(proposal, (quality, tokens, float(trial.cost)))

    def _restore(self, data: dict[str, Any]) -> None:
        """Take up a trial of the study's file.

        Raises:
            DataError: it is none of this space.
        """
        trial = Trial.from_dict(data, len(self.benchmark.queries))
        if trial.origin == "baseline":
            fits = (trial.number, trial.spec) == (-1, self.options.baseline)
        else:
            try:
                fits = trial.number >= 0 and self.space.branch(trial.branch).spec(trial.drawn) == trial.spec
            except (KeyError, IndexError, TypeError, ValueError, ChunkcoreError):
                fits = False
        if not fits or trial.number in self.trials or not (trial.fold is None or trial.fold < self.options.folds):
            raise DataError(f"trial {trial.number} ({trial.spec[:80]!r}) is none of this search")
        self.trials[trial.number] = trial


class _OverBudgetError(OptionError):
    """A language model would read and write more than it may."""


def _like(trial: Trial, same: Trial) -> Trial:
    """A trial of a configuration that has been run before, with what came of it."""
    return replace(same, number=trial.number, origin=trial.origin, branch=trial.branch, drawn=trial.drawn, seconds=0.0)


def _digest(benchmark: Benchmark) -> str:
    """16 hexadecimal digits that change with the documents, the questions or their evidence."""
    hashed = blake2b(digest_size=8)
    for document in benchmark.documents:
        hashed.update(json.dumps([document.id, document.text]).encode("ascii"))
    for query in benchmark.queries:
        evidence = [[each.document_id, each.span.start, each.span.end] for each in query.evidence]
        hashed.update(json.dumps([query.id, query.text, evidence]).encode("ascii"))
    return hashed.hexdigest()
