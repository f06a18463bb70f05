"""`score`: how much of each query's evidence a run retrieved, and how much besides.

Everything is counted on one axis on which the documents' tokens (or characters) stand one after the
other, repeated for each query, so that all queries are scored by the same few array operations.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

import numpy as np

from chunkcore.boundaries.sentences import sentence_ranges
from chunkcore.errors import DataError, OptionError
from chunkcore.evaluation.benchmarks.benchmark import Benchmark
from chunkcore.evaluation.measures import Depth, Measure, Unit, budget_of, measures_at, retrieval_measures
from chunkcore.evaluation.outcomes import (
    RANK_MEASURES,
    Axis,
    CharacterAxis,
    Counted,
    DocumentAxis,
    Numbers,
    Outcome,
    PartAxis,
    RankedSpans,
    Ranking,
    Relevance,
    SpanTable,
    StartAxis,
    meeting_pairs,
)
from chunkcore.evaluation.results import ChunkStatistics, Report, Scores
from chunkcore.run import MatchKind, Retrieved, Run
from chunkcore.tokens import TokenCounter, get_counter

__all__ = ["MinRule", "OmegaRule", "Scorer", "score"]

MinRule = Literal["holding", "touching"]
OmegaRule = Literal["once", "repeats"]


def score(
    run: Run,
    benchmark: Benchmark,
    measures: Iterable[Measure | str] | None = None,
    *,
    counter: str | TokenCounter = "cl100k_base",
    min_rule: MinRule = "holding",
    omega_rule: OmegaRule = "once",
) -> Report:
    """Score a run, query by query.

    A token or a sentence belongs to the span in which its first character stands. Relevant units count once
    however often they are retrieved; retrieved units count every time, but for documents and their parts, which count
    once. A part belongs to every span that shares a character with it.
    A query that the run lacks scores 0. Text that stands nowhere in the documents counts as retrieved.

    Args:
        run: what a system returned.
        benchmark: the queries and their evidence.
        measures: such as "nDCG@10", "Recall@4096tok" or "F1@5[document]"; see `Measure`. By default those of
            the Chroma report at k = 5, 10 and "min", of tokens and of characters.
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
        OptionError: an unknown rule, counter or measure, or a measure of answers.
        DataError: a span outside of its document, or results of other queries only.

    Time O(n log n) in the retrieved spans and the documents' length, memory O(n): 10,000 queries with 100
    spans each take seconds (docs/benchmarks.md).

    Source: the Chroma report "Evaluating Chunking Strategies for Retrieval", section "Metrics";
    `chunkcore.evaluation.measures` names those of the other measures.

    >>> from chunkcore.document import Document, Span
    >>> from chunkcore.evaluation.benchmarks.benchmark import Evidence, Query
    >>> story = Document("fox.txt", "The quick fox naps.")
    >>> toy = Benchmark("toy", [story], [Query("q1", "Who naps?", (Evidence("fox.txt", Span(4, 13)),))])
    >>> report = score(Run("mine", {"q1": [Retrieved("fox.txt", (Span(0, 9),))]}), toy, ["Recall@5[character]"])
    >>> round(report.mean("Recall@5[character]"), 3)  # 5 of the 9 characters of "quick fox"
    0.556
    """
    return Scorer(benchmark, counter=counter, min_rule=min_rule, omega_rule=omega_rule).score(run, measures)


class Scorer:
    """A benchmark, tokenized once, that scores any number of runs. Options and errors are `score`'s."""

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
        self.axis = CharacterAxis(benchmark.documents)
        evidence = [(number, each) for number, query in enumerate(benchmark.queries) for each in query.evidence]
        pieces = [Retrieved(each.document_id, (each.span,)) for _, each in evidence]
        self._evidence = SpanTable.of(pieces, self.axis, f"the benchmark {benchmark.name!r}")
        self._evidence_query = np.array([number for number, _ in evidence], dtype=np.int64)
        self._known: dict[Unit, Relevance] = {}
        self._counts: dict[str, int] = {}

    def score(self, run: Run, measures: Iterable[Measure | str] | None = None) -> Report:
        """The run's report; see `score`."""
        began = time.perf_counter()
        wanted = retrieval_measures(measures_at() if measures is None else measures)
        ks = list(dict.fromkeys(measure.k for measure in wanted if measure.k is not None))
        results = self._results(run)
        answers = RankedSpans.of(results, self.axis, f"the run {run.name!r}")
        pool = self._pool(run.pool, run.name) if run.pool is not None else None
        marks = _Marks(self, answers, pool)
        scores = {measure: marks.value(measure) for measure in wanted}
        at_k = {k: marks.outcome("token", k) for k in ks}
        queries = self.benchmark.queries
        located, certainty = _located(results, answers.pieces)
        return Report(
            name=run.name,
            benchmark=self.benchmark.name,
            query_ids=tuple(each.id for each in queries),
            collections=tuple(each.collection for each in queries),
            scores=scores,
            retrieved_tokens={k: outcome.retrieved for k, outcome in at_k.items()},
            found={k: self.relevance("token").found(outcome) for k, outcome in at_k.items()},
            located=located,
            certainty=certainty,
            unanswered=tuple(each.id for each in queries if each.id not in run.results),
            chunks=ChunkStatistics(self.relevance("token").count(pool.pieces).sizes) if pool else None,
            seconds={**run.seconds, "score": time.perf_counter() - began},
            min_rule=self.min_rule,
            run=run,
            documents_digest=self.benchmark.documents_digest,
        )

    def token_counts(self, pool: Sequence[Retrieved]) -> Numbers:
        """How many tokens each piece counts as retrieved, int64."""
        return self.relevance("token").count(SpanTable.of(pool, self.axis, "the pool")).sizes

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

    def _pool(self, retrieved: Sequence[Retrieved], name: str) -> _Pool:
        """The pool's pieces, and which of them hold evidence of which query."""
        pieces = SpanTable.of(retrieved, self.axis, f"the pool of {name!r}")
        # One more character on each side: then what only touches evidence meets it too.
        reach = np.array([-1, 1]) if self.min_rule == "touching" else np.array([0, 0])
        evidence, span = meeting_pairs(pieces.characters, self._evidence.characters + reach)
        pairs = np.unique(np.column_stack((self._evidence_query[evidence], pieces.owner[span])), axis=0)
        return _Pool(pieces, pairs[:, 0], pairs[:, 1])

    def relevance(self, unit: Unit) -> Relevance:
        """The evidence in this unit; documents are read once, when it is first asked for."""
        if unit not in self._known:
            axis, text_size = self._units(unit)
            queries = len(self.benchmark.queries)
            self._known[unit] = Relevance(axis, self._evidence, self._evidence_query, queries, text_size)
        return self._known[unit]

    def _units(self, unit: Unit) -> tuple[Axis, Callable[[list[str]], Numbers]]:
        """The unit's axis, and what counts it in texts that stand nowhere."""
        if unit == "token":
            return self.tokens, self._count_texts
        if unit == "sentence":
            axis = StartAxis(self.axis, self.benchmark.documents, lambda text: sentence_ranges(text)[:, 0])
            return axis, lambda texts: _integers(len(sentence_ranges(text)) for text in texts)
        if unit == "document":
            return DocumentAxis(self.axis), lambda texts: np.ones(len(texts), dtype=np.int64)
        if unit == "part":
            return PartAxis(self.axis, self.benchmark.documents), lambda texts: np.ones(len(texts), dtype=np.int64)
        return self.axis, lambda texts: _integers(map(len, texts))

    @cached_property
    def tokens(self) -> StartAxis:
        """The documents' tokens, of their own tokenization."""
        return StartAxis(self.axis, self.benchmark.documents, self.counter.boundaries)

    def first_tokens(self, text: str, count: int) -> str:
        """The beginning of a text that is so many tokens long, or all of it."""
        begins = self.counter.boundaries(text)
        return text if len(begins) <= count else text[: int(begins[count])]

    def _count_texts(self, texts: list[str]) -> Numbers:
        """Tokens of texts that stand nowhere; each distinct text is tokenized once."""
        new = [text for text in dict.fromkeys(texts) if text not in self._counts]
        self._counts.update(zip(new, self.counter.count_many(new).tolist(), strict=True))
        return np.array([self._counts[text] for text in texts], dtype=np.int64)


class _Marks:
    """A run's scores; what several measures need is worked out once."""

    def __init__(self, scorer: Scorer, answers: RankedSpans, pool: _Pool | None) -> None:
        self._scorer = scorer
        self._all = answers
        self._pool = pool
        self._selected: dict[tuple[Depth | None, bool], RankedSpans] = {}
        self._counted: dict[tuple[Unit, int], Counted] = {}
        self._outcomes: dict[tuple[Unit, Depth], Outcome] = {}
        self._rankings: dict[tuple[Unit, Depth | None], Ranking] = {}

    def value(self, measure: Measure) -> Scores:
        """The measure's score of each query, NaN where it is not known."""
        needs_pool = measure.name == "PrecisionOmega" or measure.k == "min"
        if needs_pool and self._pool is None:
            return np.full(len(self._scorer.benchmark.queries), math.nan)
        if measure.name in RANK_MEASURES:
            return self.ranking(measure.unit, measure.k).value(measure.name)
        if measure.k is None:
            return self._omega(measure.unit).value("Precision")
        return self.outcome(measure.unit, measure.k).value(measure.name)

    def outcome(self, unit: Unit, k: Depth) -> Outcome:
        """Everything retrieved to this depth, whatever its order."""
        if (unit, k) not in self._outcomes:
            relevance = self._scorer.relevance(unit)
            if k == "min" and self._pool is None:
                self._outcomes[unit, k] = Outcome.undefined(relevance)
            else:
                answers = self._answers(unit, k)
                counted = self._count(unit, answers.pieces)
                self._outcomes[unit, k] = relevance.outcome(counted, answers.query, answers.piece, once=unit == "part")
        return self._outcomes[unit, k]

    def ranking(self, unit: Unit, k: Depth | None) -> Ranking:
        """What each piece brings, to this depth."""
        if (unit, k) not in self._rankings:
            answers = self._answers(unit, k)
            counted = self._count(unit, answers.pieces)
            self._rankings[unit, k] = self._scorer.relevance(unit).ranking(counted, answers, self._limit(k))
        return self._rankings[unit, k]

    def _omega(self, unit: Unit) -> Outcome:
        """Every chunk that holds evidence retrieved, and no other."""
        assert self._pool is not None
        relevance = self._scorer.relevance(unit)
        once = self._scorer.omega_rule == "once"
        return relevance.outcome(relevance.count(self._pool.pieces), self._pool.query, self._pool.piece, once=once)

    def _answers(self, unit: Unit, k: Depth | None) -> RankedSpans:
        """The best answers to this depth, as documents where those are counted."""
        key = (k, unit == "document")
        if key not in self._selected:
            if unit == "document":
                self._selected[key] = self._answers("token", k).documents(self._scorer.axis)
            elif (budget := budget_of(k)) is not None:
                sizes = self._count("token", self._all.pieces).sizes
                self._selected[key] = self._all.within(budget, self._scorer.tokens, sizes, self._scorer.first_tokens)
            else:
                self._selected[key] = self._all if k is None else self._all.best(self._limit(k))
        return self._selected[key]

    def _limit(self, k: Depth | None) -> Numbers:
        """How many pieces of each query are looked at."""
        queries = len(self._scorer.benchmark.queries)
        if k == "min":
            assert self._pool is not None
            return self._pool.depths(queries)
        return np.full(queries, k if isinstance(k, int) else np.iinfo(np.int64).max)

    def _count(self, unit: Unit, pieces: SpanTable) -> Counted:
        key = (unit, id(pieces))  # they live as long as the answers that are kept here
        if key not in self._counted:
            self._counted[key] = self._scorer.relevance(unit).count(pieces)
        return self._counted[key]


@dataclass(frozen=True, eq=False)
class _Pool:
    """Every piece that could be retrieved, and each query beside each piece that holds its evidence."""

    pieces: SpanTable
    query: Numbers
    piece: Numbers

    def depths(self, queries: int) -> Numbers:
        return np.bincount(self.query, minlength=queries).astype(np.int64)


def _integers(values: Iterable[int]) -> Numbers:
    return np.fromiter(values, dtype=np.int64)


def _located(
    results: Sequence[Sequence[Retrieved]], pieces: SpanTable
) -> tuple[dict[MatchKind, int], dict[MatchKind, float]]:
    """How many pieces were located how, and how sure that is; one of a document that the benchmark lacks is nowhere."""
    retrieved = [piece for each in results for piece in each]
    hows: list[MatchKind] = ["unlocated" if i in pieces.texts else each.how for i, each in enumerate(retrieved)]
    counts = Counter(hows)
    doubts: dict[MatchKind, float] = dict.fromkeys(counts, 0.0)
    for how, piece in zip(hows, retrieved, strict=True):
        doubts[how] += 1 - piece.certainty
    return dict(counts), {how: 1 - doubt / counts[how] for how, doubt in doubts.items() if how != "unlocated"}
