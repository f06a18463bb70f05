"""Passages behind a retriever, as a stage that is scored; the limits to which measures need answers; `Race`."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial, reduce
from operator import or_
from typing import Any, cast

import numpy as np

from chunkcore.chunkers.base import get_chunker
from chunkcore.errors import counted, echo
from chunkcore.evaluation.benchmarks import Benchmark, Query
from chunkcore.evaluation.comparison import By, shared_documents
from chunkcore.evaluation.measures import Measure, budget_of, get_measure
from chunkcore.evaluation.resampling import budgets_up_to, surely_below
from chunkcore.evaluation.results import Report
from chunkcore.evaluation.scoring import Scorer
from chunkcore.retrieval import WindowIndex, chunk_corpus, get_retriever
from chunkcore.retrieval.base import MAX_TOKENS
from chunkcore.run import Retrieved, Run
from chunkcore.spans import Scores

_HOPELESS = 10  # questions: if so many fail and none was answered, the system does not work


def ask_each(
    questions: Sequence[Query],
    ask: Callable[[Query], Sequence[Retrieved]],
    name: str,
) -> Run:
    """The run of the questions that were answered; `Run.failures` says why the others were not.

    Raises what `ask` raised, if no question was answered. Warns if some failed.
    """
    results = {}
    failures = {}
    for query in questions:
        try:
            results[query.id] = ask(query)
        except Exception as error:
            failures[query.id] = f"{type(error).__name__}: {error}"
            if not results and len(failures) == min(_HOPELESS, len(questions)):
                raise
    if failures:
        first, reason = next(iter(failures.items()))
        warnings.warn(
            f"{name} failed at {len(failures):,} of {counted(len(questions), 'question')}, which count as unanswered; "
            f"the first is {echo(first)} ({reason})",
            stacklevel=3,
        )
    return Run(name, results, failures=failures)


UNITS = "sentence:size=50"  # of the words behind a retriever
WORDS = "passages:lexical"
HITS = 100  # of a question that passages are made of: what the adapters ask a retriever for


# How much a retriever is asked for at once: k and max_tokens; None for no limit.
Limit = tuple[int | None, int | None]
Limits = Mapping[Limit, Sequence[Measure]]  # with the measures that each serves
Runs = dict[Limit, Run]
Ask = Callable[[Collection[Limit], Sequence[Query]], Runs]


def limits_of(measures: Sequence[Measure], most_chunks: int | None = None) -> Limits:
    """What serves the measures, each with its own; those without a k go with the deepest.

    `most_chunks` is the highest k = "min"; None without a pool: measures that need one are left out.
    """
    scored = [measure for measure in measures if most_chunks is not None or not measure.needs_pool]
    depths = [measure.k for measure in scored if measure.k]
    numbers = [k for k in depths if isinstance(k, int)]
    longest = max(depths, key=lambda k: budget_of(k) or 0, default=1)
    deepest = max(numbers, default=longest)
    most = max([1, *numbers, most_chunks or 0])
    limits: dict[Limit, list[Measure]] = {}
    for measure in sorted(scored, key=lambda measure: measure.k is None):
        k = measure.k or deepest
        if k == "min":
            k = most
        limit: Limit = (k, None) if isinstance(k, int) else (None, budget_of(k))
        limits.setdefault(limit, []).append(measure)
    return limits


def score_limits(
    scorer: Scorer,
    runs: Runs,
    limits: Limits,
    measures: Sequence[Measure],
    asked: Collection[str] | None = None,
) -> Report:
    """One report of a system that was asked once for each limit, its measures in this order; `asked` as of a scorer."""
    reports = [scorer.score(runs[limit], served, asked) for limit, served in limits.items()]

    def merged(name: str) -> dict[Any, Any]:
        return reduce(or_, [getattr(report, name) for report in reports])

    scores = merged("scores")
    seconds = sum(report.seconds["score"] for report in reports)
    return replace(
        reports[0],
        scores={measure: scores[measure] for measure in measures if measure in scores},
        retrieved_tokens=merged("retrieved_tokens"),
        found=merged("found"),
        bounds=merged("bounds"),
        seconds={**reports[0].seconds, "score": seconds},
    )


def recalls(scorer: Scorer, run: Run | None = None) -> list[Measure]:
    """The measures of `Report.curve`: recall at each budget, up to all tokens of the documents or of a run's pieces."""
    most = float(scorer.tokens.size)
    if run:
        most = scorer.score(run, "Recall@1000000tok").retrieved_tokens["1000000tok"].max(initial=0)
    return [get_measure("Recall", f"{budget}tok") for budget in budgets_up_to(most)]


def curve_of(report: Report) -> dict[int, Scores]:
    """A report of `recalls` as `Report.curve`."""
    return {budget_of(measure.k) or 0: scores for measure, scores in report.scores.items()}


@dataclass
class PassagesBehind:
    """Passages behind any retriever of a benchmark's documents, by the words of one index."""

    scorer: Scorer

    @cached_property
    def index(self) -> WindowIndex:
        chunker = replace(get_chunker(UNITS), counter=self.scorer.counter)
        corpus = chunk_corpus(self.scorer.benchmark.documents, chunker)
        return cast("WindowIndex", get_retriever(WORDS).index(corpus))

    def runs(self, hits: Run, limits: Collection[Limit], show: str, name: str) -> Runs:
        """Passages of the first hits of each question, a run for each limit; `show` as in `System.behind`."""
        counter = self.scorer.counter
        results: dict[Limit, dict[str, Sequence[Retrieved]]] = {limit: {} for limit in limits}

        def ask(query: Query) -> Sequence[Retrieved]:
            first = list(hits.results.get(query.id, ()))[:HITS]
            shown = partial(self.index.behind, query.text, first, show=show, counter=counter)
            # The index keeps the scores of its last questions.
            for (k, most), answers in results.items():
                answers[query.id] = shown(k=k, max_tokens=most or MAX_TOKENS)
            return ()

        asked = ask_each(self.scorer.benchmark.queries, ask, name)
        return {limit: replace(asked, results=answers) for limit, answers in results.items()}

    def score(self, hits: Run, measures: Sequence[Measure], show: str, name: str) -> Report:
        """Score passages behind a run that was made elsewhere."""
        limits = limits_of(measures)
        return score_limits(self.scorer, self.runs(hits, limits, show, name), limits, measures)


LEAST = 30  # questions of a part
PARTS = 3


@dataclass
class Race:
    """Compares a system with the best before it, after each third of the questions, which are drawn at random.

    Attributes:
        measure: of the verdict.
        by: what is resampled, as in `compare`.
        seed: of the draw.
        kept: the name of what is asked everything; "" for none.
    """

    benchmark: Benchmark
    measure: Measure
    by: By = "auto"
    seed: int = 0
    kept: str = ""
    _best: Report | None = None

    def parts(self, *names: str) -> list[Sequence[Query]]:
        """The questions that a system of these names is asked one part after another."""
        queries = self.benchmark.queries
        if not self._best or self.kept in names or len(queries) < PARTS * LEAST:
            return [queries]
        order = np.random.default_rng(self.seed).permutation(len(queries))
        parts = np.array_split(order, PARTS)
        return [list(map(queries.__getitem__, part)) for part in parts]

    def is_behind(self, report: Report) -> bool:
        """Whether a system that was asked a part of the questions is surely behind the best."""
        assert self._best
        best, scores = self._best.values(self.measure), report.values(self.measure)
        clusters = shared_documents(self.benchmark.question_documents, self.by)
        return surely_below(scores - best, clusters)

    def add(self, report: Report) -> None:
        """Take a system that was asked everything: the next are compared with the best of them."""
        if not self._best or report.mean(self.measure) > self._best.mean(self.measure):
            self._best = report
