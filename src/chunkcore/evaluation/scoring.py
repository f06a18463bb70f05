"""`evaluate`: how much of each query's evidence a run retrieved, and how much besides.

Everything is counted on one axis on which the documents' tokens (or characters) stand one after the
other, repeated for each query, so that all queries are scored by the same few array operations.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

import numpy as np

from chunkcore.errors import DataError, OptionError
from chunkcore.evaluation.benchmark import Benchmark
from chunkcore.evaluation.measures import Depth, Measure, Unit, as_measure, measures_at
from chunkcore.evaluation.outcomes import Counted, Outcome, Relevance
from chunkcore.evaluation.pieces import Numbers, Pieces, flatten, meeting_pairs
from chunkcore.evaluation.results import ChunkStatistics, Report
from chunkcore.evaluation.run import How, Retrieved, Run
from chunkcore.evaluation.units import CharacterAxis, TokenAxis
from chunkcore.tokens import TokenCounter, get_counter

__all__ = ["MinRule", "OmegaRule", "Scorer", "evaluate"]

MinRule = Literal["holding", "touching"]
OmegaRule = Literal["once", "repeats"]


def evaluate(
    benchmark: Benchmark,
    run: Run,
    measures: Iterable[Measure | str] | None = None,
    *,
    counter: str | TokenCounter = "cl100k_base",
    min_rule: MinRule = "holding",
    omega_rule: OmegaRule = "once",
) -> Report:
    """Score a run, query by query.

    A token belongs to the span in which its first character stands. Relevant units count once however
    often they are retrieved; retrieved units count every time. A query that the run lacks scores 0. Text
    that stands nowhere in the documents counts as retrieved.

    Args:
        benchmark: the queries and their evidence.
        run: what a system returned.
        measures: all measures at k = 5, 10 and "min", of tokens and of characters, by default.
        counter: whose tokens are counted, of the documents' own tokenization.
        min_rule: k = "min" is, for each query, the number of pool chunks that share a character with its
            evidence ("holding"), or also of those that end where evidence begins or begin where it ends
            ("touching", what the Chroma report's released code counts).
        omega_rule: whether PrecisionOmega counts a token that several of the chunks share "once", as the
            report's released code and its table do, or each time ("repeats", its text's precision taken
            literally). Without overlap they are the same.

    Returns:
        A `Report`. Measures at "min" and PrecisionOmega are NaN where the run has no pool.

    Raises:
        OptionError: an unknown rule, counter or measure.
        DataError: a span outside of its document, or results of other queries only.

    Source: the Chroma report "Evaluating Chunking Strategies for Retrieval", section "Metrics".

    >>> from chunkcore.document import Document, Span
    >>> from chunkcore.evaluation.benchmark import Evidence, Query
    >>> story = Document("fox.txt", "The quick fox naps.")
    >>> toy = Benchmark("toy", [story], [Query("q1", "Who naps?", (Evidence("fox.txt", Span(4, 13)),))])
    >>> report = evaluate(toy, Run("mine", {"q1": [Retrieved("fox.txt", (Span(0, 9),))]}), ["Recall@5[character]"])
    >>> round(report.mean("Recall@5[character]"), 3)  # 5 of the 9 characters of "quick fox"
    0.556
    """
    return Scorer(benchmark, counter=counter, min_rule=min_rule, omega_rule=omega_rule).score(run, measures)


class Scorer:
    """A benchmark, tokenized once, that scores any number of runs. Options and errors are `evaluate`'s."""

    def __init__(
        self,
        benchmark: Benchmark,
        *,
        counter: str | TokenCounter = "cl100k_base",
        min_rule: MinRule = "holding",
        omega_rule: OmegaRule = "once",
    ) -> None:
        if min_rule not in get_args(MinRule):
            raise OptionError(f'min_rule is "holding" or "touching", got {min_rule!r}')
        if omega_rule not in get_args(OmegaRule):
            raise OptionError(f'omega_rule is "once" or "repeats", got {omega_rule!r}')
        self.benchmark = benchmark
        self.counter = get_counter(counter)
        self.min_rule = min_rule
        self.omega_rule = omega_rule
        self._axis = CharacterAxis(benchmark.documents)
        evidence = [(number, each) for number, query in enumerate(benchmark.queries) for each in query.evidence]
        pieces = [Retrieved(each.document_id, (each.span,)) for _, each in evidence]
        self._evidence = Pieces.of(pieces, self._axis, f"the benchmark {benchmark.name!r}")
        self._evidence_query = np.array([number for number, _ in evidence], dtype=np.int64)
        self._counts: dict[str, int] = {}

    def score(self, run: Run, measures: Iterable[Measure | str] | None = None) -> Report:
        """The run's report; see `evaluate`."""
        began = time.perf_counter()
        wanted = list(dict.fromkeys(measures_at() if measures is None else map(as_measure, measures)))
        ks = list(dict.fromkeys(measure.k for measure in wanted if measure.k is not None))
        results = self._results(run)
        pieces, query, rank = flatten(results)
        answers = _Answers(Pieces.of(pieces, self._axis, f"the run {run.name!r}"), query, rank)
        pool = self._pool(run.pool, run.name) if run.pool is not None else None
        outcomes = self._outcomes(
            answers, pool, {*((each.unit, each.k) for each in wanted), *(("token", k) for k in ks)}
        )
        queries = self.benchmark.queries
        return Report(
            name=run.name,
            benchmark=self.benchmark.name,
            query_ids=tuple(each.id for each in queries),
            collections=tuple(each.collection for each in queries),
            scores={measure: outcomes[measure.unit, measure.k].value(measure) for measure in wanted},
            retrieved_tokens={k: outcomes["token", k].retrieved for k in ks},
            found={k: self._tokens.found(outcomes["token", k]) for k in ks},
            located=_located(pieces, answers.pieces),
            unanswered=tuple(each.id for each in queries if each.id not in run.results),
            chunks=ChunkStatistics(self._tokens.count(pool.pieces).sizes) if pool else None,
            seconds={**run.seconds, "score": time.perf_counter() - began},
            min_rule=self.min_rule,
        )

    def depths(self, pool: Sequence[Retrieved]) -> Numbers:
        """K = "min" of each query, int64, given every chunk: a retriever must answer with so many."""
        return self._pool(pool, "pool").depths(len(self.benchmark.queries))

    def _results(self, run: Run) -> list[Sequence[Retrieved]]:
        """The run's results in the order of the queries."""
        ids = {query.id for query in self.benchmark.queries}
        if run.results and not ids & run.results.keys():
            raise DataError(
                f"the run {run.name!r} answers none of the benchmark's queries: it has {next(iter(run.results))!r}, "
                f"the benchmark {next(iter(ids), 'none')!r}"
            )
        return [run.results.get(query.id, ()) for query in self.benchmark.queries]

    def _outcomes(
        self, answers: _Answers, pool: _Pool | None, wanted: set[tuple[Unit, Depth | None]]
    ) -> dict[tuple[Unit, Depth | None], Outcome]:
        found: dict[tuple[Unit, Depth | None], Outcome] = {}
        for unit in sorted({unit for unit, _ in wanted}):
            relevance = self._tokens if unit == "token" else self._characters
            counted = relevance.count(answers.pieces)
            for k in (k for each, k in wanted if each == unit):
                if k is None or k == "min":
                    found[unit, k] = self._with_pool(relevance, counted, answers, pool, k)
                else:
                    found[unit, k] = relevance.outcome(counted, *answers.best(k))
        return found

    def _with_pool(
        self, relevance: Relevance, counted: Counted, answers: _Answers, pool: _Pool | None, k: Depth | None
    ) -> Outcome:
        if pool is None:
            return Outcome.undefined(relevance)
        if k == "min":
            return relevance.outcome(counted, *answers.best(pool.depths(len(self.benchmark.queries))))
        once = self.omega_rule == "once"
        return relevance.outcome(relevance.count(pool.pieces), pool.query, pool.piece, once=once)

    def _pool(self, retrieved: Sequence[Retrieved], name: str) -> _Pool:
        """The pool's pieces, and which of them hold evidence of which query."""
        pieces = Pieces.of(retrieved, self._axis, f"the pool of {name!r}")
        # One more character on each side: then what only touches evidence meets it too.
        reach = np.array([-1, 1]) if self.min_rule == "touching" else np.array([0, 0])
        evidence, span = meeting_pairs(pieces.characters, self._evidence.characters + reach)
        pairs = np.unique(np.column_stack((self._evidence_query[evidence], pieces.owner[span])), axis=0)
        return _Pool(pieces, pairs[:, 0], pairs[:, 1])

    @cached_property
    def _tokens(self) -> Relevance:
        axis = TokenAxis(self._axis, self.benchmark.documents, self.counter)
        return self._relevance(axis, self._count_texts)

    @cached_property
    def _characters(self) -> Relevance:
        return self._relevance(self._axis, lambda texts: np.array([len(text) for text in texts], dtype=np.int64))

    def _relevance(self, axis: CharacterAxis | TokenAxis, text_size: Callable[[list[str]], Numbers]) -> Relevance:
        return Relevance(axis, self._evidence, self._evidence_query, len(self.benchmark.queries), text_size)

    def _count_texts(self, texts: list[str]) -> Numbers:
        """Tokens of texts that stand nowhere; each distinct text is tokenized once."""
        new = [text for text in dict.fromkeys(texts) if text not in self._counts]
        self._counts.update(zip(new, self.counter.count_many(new).tolist(), strict=True))
        return np.array([self._counts[text] for text in texts], dtype=np.int64)


@dataclass(frozen=True, eq=False)
class _Answers:
    """Everything that was retrieved: of each piece the query that it answers, and its rank from 0."""

    pieces: Pieces
    query: Numbers
    rank: Numbers

    def best(self, k: int | Numbers) -> tuple[Numbers, Numbers]:
        """The best k pieces of each query: the queries, and the pieces beside them."""
        limit = k if isinstance(k, int) else k[self.query]
        piece = np.flatnonzero(self.rank < limit)
        return self.query[piece], piece


@dataclass(frozen=True, eq=False)
class _Pool:
    """Every piece that could be retrieved, and each query beside each piece that holds its evidence."""

    pieces: Pieces
    query: Numbers
    piece: Numbers

    def depths(self, queries: int) -> Numbers:
        return np.bincount(self.query, minlength=queries).astype(np.int64)


def _located(retrieved: Sequence[Retrieved], pieces: Pieces) -> dict[How, int]:
    """How many pieces were located how; one of a document that the benchmark lacks is not located."""
    return dict(Counter("unlocated" if i in pieces.texts else each.how for i, each in enumerate(retrieved)))
