"""`tune`: search for the configuration that retrieves best, and say what the choice is worth on other questions."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from hashlib import blake2b
from io import FileIO
from pathlib import Path
from typing import Any

import numpy as np

from chunkcore.chunkers.base import Chunker, get_chunker, strategies
from chunkcore.chunkers.llm import LLMChunker
from chunkcore.concurrency import Progress
from chunkcore.errors import (
    ChunkcoreError,
    DataError,
    MissingExtraError,
    ModelError,
    NoAnswerError,
    OptionError,
)
from chunkcore.evaluation.benchmarks.benchmark import Benchmark
from chunkcore.evaluation.measures import budget_of, get_measure
from chunkcore.files import append_lines, json_lines
from chunkcore.models.base import Embedder
from chunkcore.models.cache import CachedEmbedder, EmbeddingCache
from chunkcore.models.loading import DEFAULT_MODEL, get_embedder
from chunkcore.registry import split_spec
from chunkcore.tokens import get_counter
from chunkcore.tuning.result import Outcomes, Stopped, Tuning, conclude
from chunkcore.tuning.space import Space, default_space
from chunkcore.tuning.trial import Proposal, Seen, Trial, TuneOptions, assign_folds, propose, require_optuna, run_trial

__all__ = ["StudyFile", "tune"]

_FORMAT = "chunkcore-study-1"


class StudyFile:
    """A file of trials that only grows. A line that a kill left unfinished is dropped.

    Args:
        path: the file, begun where there is none.
        identity: what the trials are of: a study of anything else is refused. Names and plain values.

    Raises:
        DataError: the file is of another search, no such file, or cannot be written.
        OptionError: another process is at work on it.
        OSError: it cannot be opened.
    """

    def __init__(self, path: Path | str, identity: Mapping[str, Any]) -> None:
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._file = self.path.open("ab", buffering=0)
        try:
            _lock(self._file, self.path)
            self._drop_unfinished()
            if not self.path.stat().st_size:
                self.append({"format": _FORMAT, "identity": dict(identity)})
            self._lines = list(json_lines(self.path))
            self._check(identity)
        except BaseException:
            self._file.close()
            raise

    def read(self, take: Callable[[dict[str, Any]], None]) -> None:
        """Call `take` with each trial, in order.

        Raises:
            DataError: what `take` raised, with the line.
        """
        for number, data in self._lines[1:]:
            try:
                take(data)
            except DataError as error:
                raise DataError(f"{self.path}, line {number}: {error}; {_ADVICE}") from error

    def append(self, data: Mapping[str, Any]) -> None:
        """Add a line, and see it on the disk.

        Raises:
            DataError: it cannot be written; what is there stays.
        """
        line = json.dumps(data, ensure_ascii=True, allow_nan=False).encode("ascii") + b"\n"
        try:
            append_lines(self._file, line)
        except OSError as error:
            raise DataError(
                f"{self.path} cannot be written ({error.strerror or error}): what was tried before is kept, and the "
                "same command goes on with it"
            ) from error

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

    def __enter__(self) -> StudyFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _drop_unfinished(self) -> None:
        data = self.path.read_bytes()
        whole = data.rfind(b"\n") + 1
        # A file that is not ours is left as it is; of ours only the first line can have been cut off without an end.
        ours = data.startswith(b'{"format": "' + _FORMAT.encode()) or _HEAD.startswith(data)
        if whole < len(data) and ours:
            self._file.truncate(whole)

    def _check(self, identity: Mapping[str, Any]) -> None:
        head = self._lines[0][1] if self._lines else {}
        known = head.get("identity")
        if head.get("format") != _FORMAT or not isinstance(known, dict):
            raise DataError(f"{self.path} is no study that chunkcore tune wrote; {_ADVICE}")
        for name, value in identity.items():
            if known.get(name) != value:
                was = f"{name} {known.get(name)!r}, and now it is {value!r}" if name in _SHOWN else f"another {name}"
                raise DataError(f"{self.path} was begun with {was}: go on as before, or {_ADVICE}")


_HEAD = b'{"format": "chunkcore-study-1", "identity": {'
_ADVICE = "give another folder for the output, or take the file away to begin anew"
_SHOWN = ("measure", "counter", "retriever", "seed", "folds", "by", "baseline")


def _lock(file: FileIO, path: Path) -> None:
    """Keep other processes from the same study, where the system can."""
    try:
        import fcntl
    except ImportError:  # not on Windows
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise OptionError(
            f"another process is at work on {path}: wait for it, or give another folder for the output"
        ) from None
    except OSError:  # a file system without locks
        return


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
        self.measure = get_measure(options.measure)
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
            branch.strategy for branch in self.space.branches if issubclass(strategies[branch.strategy], LLMChunker)
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
        chunker = get_chunker(trial.spec)
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
