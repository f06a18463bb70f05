"""Passages behind a retriever, as a stage that is scored; and the limits to which measures need answers."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import cast

from chunkcore.chunkers.base import get_chunker
from chunkcore.errors import counted, echo
from chunkcore.evaluation.benchmarks.benchmark import Query
from chunkcore.evaluation.curve import budgets_up_to
from chunkcore.evaluation.measures import Measure, budget_of, get_measure
from chunkcore.evaluation.results import Report
from chunkcore.evaluation.scoring import Scorer
from chunkcore.retrieval import chunk_corpus, get_retriever
from chunkcore.retrieval.base import MAX_TOKENS
from chunkcore.retrieval.passages import WindowIndex
from chunkcore.run import Retrieved, Run
from chunkcore.spans import Scores

_HOPELESS = 10  # questions: if so many fail and none was answered, the system does not work


def ask_each(
    questions: Sequence[Query], ask: Callable[[Query], Sequence[Retrieved]], name: str
) -> Run:
    """The run of the questions that were answered; `Run.failures` says why the others were not.

    Raises what `ask` raised, if no question was answered. Warns if some failed.
    """
    results: dict[str, Sequence[Retrieved]] = {}
    failures: dict[str, str] = {}
    for query in questions:
        try:
            results[query.id] = ask(query)
        except Exception as error:
            failures[query.id] = f"{type(error).__name__}: {error}"
            hopeless = len(failures) == min(_HOPELESS, len(questions))
            if hopeless and not results:
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


@dataclass(frozen=True, slots=True)
class Limit:
    """How much a retriever is asked for at once, and the measures that these answers serve."""

    k: int | None
    max_tokens: int | None
    measures: Sequence[Measure]


def limits_of(measures: Sequence[Measure], depth: int) -> list[Limit]:
    """Each limit of the measures (k = "min": `depth`); measures without one go with the deepest."""
    depths = list(dict.fromkeys(measure.k for measure in measures if measure.k is not None)) or [1]
    deepest = max(depths, key=_depth_order)
    limits = []
    for k in depths:
        group = [measure for measure in measures if (measure.k or deepest) == k]
        budget = budget_of(k)
        if isinstance(k, int):
            limits.append(Limit(k, None, group))
        else:
            limits.append(Limit(None if budget else depth, budget, group))
    return limits


def _depth_order(k: int | str) -> tuple[bool, int]:
    if isinstance(k, int):
        return True, k
    return False, budget_of(k) or 0


def score_limits(
    scorer: Scorer, runs: Sequence[Run], limits: Sequence[Limit], measures: Sequence[Measure]
) -> Report:
    """One report of a system that was asked once for each limit, its measures in this order."""
    reports = [scorer.score(run, limit.measures) for run, limit in zip(runs, limits, strict=True)]
    return reports[0].joined(reports[1:], measures)


def recalls(scorer: Scorer, run: Run | None = None) -> list[Measure]:
    """The measures of `Report.curve`: recall at each budget, up to all tokens of the documents or of a run's pieces."""
    most = float(scorer.tokens.size)
    if run is not None:
        most = scorer.score(run, "Recall@1000000tok").retrieved_tokens["1000000tok"].max(initial=0)
    return [get_measure("Recall", f"{budget}tok") for budget in budgets_up_to(most)]


def curve_of(report: Report) -> dict[int, Scores]:
    """A report of `recalls` as `Report.curve`."""
    return {budget_of(measure.k) or 0: scores for measure, scores in report.scores.items()}


class PassagesBehind:
    """Passages behind any retriever of a benchmark's documents, by the words of one index."""

    def __init__(self, scorer: Scorer) -> None:
        self._scorer = scorer

    @cached_property
    def index(self) -> WindowIndex:
        chunker = replace(get_chunker(UNITS), counter=self._scorer.counter)
        corpus = chunk_corpus(self._scorer.benchmark.documents, chunker)
        return cast("WindowIndex", get_retriever(WORDS).index(corpus))

    def runs(self, hits: Run, limits: Sequence[Limit], show: str, name: str) -> list[Run]:
        """Passages of the first hits of each question, a run for each limit; `show` as in `System.behind`."""
        answers: dict[str, list[Sequence[Retrieved]]] = {}

        def ask(query: Query) -> Sequence[Retrieved]:
            first = list(hits.results.get(query.id, ()))[:HITS]
            some: list[Sequence[Retrieved]] = []
            for limit in limits:
                passages = self.index.behind(
                    query.text,
                    first,
                    max_tokens=limit.max_tokens or MAX_TOKENS,
                    k=limit.k,
                    show=show,
                    counter=self._scorer.counter,
                )
                some.append(passages)
            answers[query.id] = some
            return ()

        asked = ask_each(self._scorer.benchmark.queries, ask, name)
        runs = []
        for place in range(len(limits)):
            results = {query: some[place] for query, some in answers.items()}
            runs.append(replace(asked, results=results))
        return runs

    def score(self, hits: Run, measures: Sequence[Measure], show: str, name: str) -> Report:
        """Score passages behind a run that was made elsewhere."""
        scored = [measure for measure in measures if not measure.needs_pool]
        depths = [measure.k for measure in scored if isinstance(measure.k, int)]
        limits = limits_of(scored, max(depths, default=1))
        runs = self.runs(hits, limits, show, name)
        return score_limits(self._scorer, runs, limits, scored)

    def curve(self, hits: Run, show: str) -> dict[int, Scores]:
        """How much evidence passages behind a run hold within each budget; see `Report.curve`."""
        return curve_of(self.score(hits, recalls(self._scorer, hits), show, hits.name))
