"""`score`: how much of each query's evidence a run retrieved, and how much besides."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from itertools import chain
from typing import Literal, get_args

import numpy as np

from chunkcore.boundaries.sentences import sentence_ranges
from chunkcore.errors import DataError, OptionError, echo
from chunkcore.evaluation.benchmarks.benchmark import Benchmark
from chunkcore.evaluation.counting import (
    Axis,
    CharacterAxis,
    DocumentAxis,
    PartAxis,
    RankedSpans,
    Relevance,
    SpanTable,
    StartAxis,
    UnitCounts,
    UnitTable,
    meeting_pairs,
)
from chunkcore.evaluation.measures import (
    Depth,
    Measure,
    RetrievalMeasure,
    Scores,
    Unit,
    budget_of,
    measures_at,
    retrieval_measures,
)
from chunkcore.evaluation.measures.base import running
from chunkcore.evaluation.results import ChunkStatistics, Report
from chunkcore.run import MatchKind, PieceColumns, RankedRow, Retrieved, Run
from chunkcore.spans import Numbers, ragged_indices
from chunkcore.tokens import TokenCounter, get_counter

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

    A token or sentence belongs to the span that holds its first character; a part belongs to every span that overlaps
    it. Relevant units count once; retrieved units count every time, except documents and parts. A query that the run
    lacks scores 0. Unlocated text counts as retrieved.

    Args:
        measures: such as "nDCG@10", "Recall@4096tok" or "F1@5[document]"; see `Measure`. By default the Chroma report's
            at k = 5, 10 and "min", in tokens and characters.
        counter: of tokens; it tokenizes whole documents.
        min_rule: k = "min" is the number of pool chunks that overlap the query's evidence ("holding"), or overlap or
            touch it ("touching", as the Chroma report's code).
        omega_rule: whether PrecisionOmega counts a token of overlapping chunks "once" (the report's code and table) or
            each time ("repeats", the report's text taken literally).

    Returns:
        A `Report`. Measures at "min" and PrecisionOmega are NaN if the run has no pool.

    Raises:
        OptionError: an unknown rule, counter or measure, or a measure of answers.
        DataError: a span outside its document, or results of other queries only.

    Time O(n log n) in the retrieved spans and the documents' length, memory O(n).

    Source: the Chroma report "Evaluating Chunking Strategies for Retrieval", section "Metrics"; each other measure
    names its own.

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
    """A benchmark, tokenized once, that scores any number of runs. Options and errors as `score`."""

    def __init__(
        self,
        benchmark: Benchmark,
        *,
        counter: str | TokenCounter = "cl100k_base",
        min_rule: MinRule = "holding",
        omega_rule: OmegaRule = "once",
    ) -> None:
        if min_rule not in get_args(MinRule):
            raise OptionError(f'min_rule is "holding" or "touching", got {echo(min_rule)}')
        if omega_rule not in get_args(OmegaRule):
            raise OptionError(f'omega_rule is "once" or "repeats", got {echo(omega_rule)}')
        self.benchmark = benchmark
        self.counter = get_counter(counter)
        self.min_rule = min_rule
        self.omega_rule = omega_rule
        self.axis = CharacterAxis(benchmark.documents)
        evidence = [(number, each) for number, query in enumerate(benchmark.queries) for each in query.evidence]
        pieces = [Retrieved(each.document_id, (each.span,)) for _, each in evidence]
        self._evidence = SpanTable.of(pieces, self.axis, f"the benchmark {benchmark.name!r}")
        self._evidence_query = np.array([number for number, _ in evidence], dtype=np.int64)
        self._relevance: dict[Unit, Relevance] = {}
        self._token_counts: dict[str, int] = {}

    def score(self, run: Run, measures: Iterable[Measure | str] | None = None) -> Report:
        began = time.perf_counter()
        wanted = retrieval_measures(measures_at() if measures is None else measures)
        pieces, answers, counts = self._answers(run)
        chunks = None if run.pool is None else SpanTable.of(run.pool, self.axis, f"the pool of {run.name!r}")
        table = chunks if pieces is run.pool else None
        table = table or SpanTable.of(pieces, self.axis, f"the run {run.name!r}")
        retrieved = RankedSpans.of(table, answers, counts)
        holding = None if chunks is None else self._holding(chunks)
        counted = _RunCounts(self, retrieved, holding)
        scores: dict[Measure, Scores] = {measure: counted.scores(measure) for measure in wanted}
        tokens = {measure.k: counted.tokens(measure.k) for measure in wanted if measure.k is not None}
        queries = self.benchmark.queries
        located, certainty = _located(pieces, retrieved)
        return Report(
            name=run.name,
            benchmark=self.benchmark.name,
            query_ids=tuple(each.id for each in queries),
            collections=tuple(each.collection for each in queries),
            scores=scores,
            retrieved_tokens={k: retrieved for k, (retrieved, _) in tokens.items()},
            found={k: self.relevance("token").by_query(shares) for k, (_, shares) in tokens.items()},
            located=located,
            certainty=certainty,
            unanswered=tuple(each.id for each in queries if each.id not in run.results),
            chunks=None if holding is None else ChunkStatistics(self.relevance("token").count(holding.pieces).sizes),
            seconds={**run.seconds, "score": time.perf_counter() - began},
            min_rule=self.min_rule,
            run=run,
            documents_digest=self.benchmark.documents_digest,
        )

    def token_counts(self, pool: Sequence[Retrieved]) -> Numbers:
        """The tokens of each piece as retrieved, int64."""
        return self.relevance("token").count(SpanTable.of(pool, self.axis, "the pool")).sizes

    def depths(self, pool: Sequence[Retrieved]) -> Numbers:
        """K = "min" of each query, int64; `pool` is every chunk. A retriever must return that many."""
        pieces = SpanTable.of(pool, self.axis, "the pool")
        return self._holding(pieces).per_query(len(self.benchmark.queries))

    def _answers(self, run: Run) -> tuple[Sequence[Retrieved], Numbers, Numbers]:
        """Pieces; the piece of each answer, by query and then by rank; the number of answers of each query."""
        ids = {query.id for query in self.benchmark.queries}
        if run.results and not ids & run.results.keys():
            raise DataError(
                f"the run {run.name!r} answers none of the benchmark's queries: it has {next(iter(run.results))!r}, "
                f"the benchmark {echo(next(iter(ids), 'none'))}"
            )
        results = [run.results.get(query.id, ()) for query in self.benchmark.queries]
        counts = np.array([len(each) for each in results], dtype=np.int64)
        rows = [each for each in results if isinstance(each, RankedRow)]
        others = any(len(each) for each in results if not isinstance(each, RankedRow))
        if len({id(each.answers) for each in rows}) == 1 and not others:
            answers = rows[0].answers
            starts = answers.starts[[each.row if isinstance(each, RankedRow) else 0 for each in results]]
            return answers.pieces, answers.numbers[ragged_indices(starts, counts)[1]], counts
        pieces = list(chain.from_iterable(results))
        return pieces, np.arange(len(pieces), dtype=np.int64), counts

    def _holding(self, pieces: SpanTable) -> RankedSpans:
        # One more character on each side, so that touching pieces overlap too.
        reach = np.array([-1, 1]) if self.min_rule == "touching" else np.array([0, 0])
        evidence, span = meeting_pairs(pieces.characters, self._evidence.characters + reach)
        pairs = np.unique(np.column_stack((self._evidence_query[evidence], pieces.owner[span])), axis=0)
        query, piece = pairs[:, 0], pairs[:, 1]
        return RankedSpans(pieces, piece, query, running(np.ones_like(query), query))

    def relevance(self, unit: Unit) -> Relevance:
        """The evidence in this unit, computed on first use."""
        if unit not in self._relevance:
            axis, text_size = self._units(unit)
            queries = len(self.benchmark.queries)
            self._relevance[unit] = Relevance(axis, self._evidence, self._evidence_query, queries, text_size)
        return self._relevance[unit]

    def _units(self, unit: Unit) -> tuple[Axis, Callable[[list[str]], Numbers]]:
        documents = self.benchmark.documents
        if unit == "token":
            known = self._token_counts

            def counts(texts: list[str]) -> Numbers:
                new = [text for text in dict.fromkeys(texts) if text not in known]
                known.update(zip(new, self.counter.count_many(new).tolist(), strict=True))
                return np.array([known[text] for text in texts], dtype=np.int64)

            return self.tokens, counts
        if unit == "sentence":
            axis = StartAxis(self.axis, documents, lambda text: sentence_ranges(text)[:, 0])
            return axis, lambda texts: np.array([len(sentence_ranges(text)) for text in texts], dtype=np.int64)
        if unit == "document":
            return DocumentAxis(self.axis), lambda texts: np.ones(len(texts), dtype=np.int64)
        if unit == "part":
            return PartAxis(self.axis, documents), lambda texts: np.ones(len(texts), dtype=np.int64)
        return self.axis, lambda texts: np.array([len(text) for text in texts], dtype=np.int64)

    @cached_property
    def tokens(self) -> StartAxis:
        return StartAxis(self.axis, self.benchmark.documents, self.counter.boundaries)

    def first_tokens(self, text: str, count: int) -> str:
        begins = self.counter.boundaries(text)
        return text if len(begins) <= count else text[: int(begins[count])]


class _RunCounts:
    def __init__(self, scorer: Scorer, retrieved: RankedSpans, holding: RankedSpans | None) -> None:
        self._scorer, self._retrieved, self._holding = scorer, retrieved, holding
        self._queries = len(scorer.benchmark.queries)
        self._selected: dict[tuple[Depth | None, bool], RankedSpans] = {}
        self._tables: dict[tuple[Unit, int], UnitTable] = {}
        self._counts: dict[tuple[Unit, Depth | None, bool], UnitCounts] = {}

    def scores(self, measure: RetrievalMeasure) -> Scores:
        if measure.needs_pool and self._holding is None:
            return np.full(self._queries, math.nan)
        counts = self._count(measure.unit, measure.k, of_pool=measure.of_pool)
        return np.where(counts.relevant == 0, math.nan, measure.compute(counts))

    def tokens(self, k: Depth) -> tuple[Scores, Scores]:
        """The tokens retrieved for each query, and the share of each piece of evidence; NaN if unknown."""
        if k == "min" and self._holding is None:
            evidence = self._scorer.relevance("token").evidence
            return np.full(self._queries, math.nan), np.full(len(evidence), math.nan)
        counts = self._count("token", k)
        return counts.retrieved, counts.shares

    def _count(self, unit: Unit, k: Depth | None, *, of_pool: bool = False) -> UnitCounts:
        key = (unit, k, of_pool)
        if key not in self._counts:
            relevance = self._scorer.relevance(unit)
            spans = self._holding if of_pool else self._select(k, unit)
            assert spans is not None
            once = self._scorer.omega_rule == "once" if of_pool else unit == "part"
            counted = self._table(unit, spans.pieces)
            self._counts[key] = UnitCounts(relevance, spans, counted, self._limit(k), deduplicate=once)
        return self._counts[key]

    def _select(self, k: Depth | None, unit: Unit) -> RankedSpans:
        key = (k, unit == "document")
        if key not in self._selected:
            if unit == "document":
                self._selected[key] = self._select(k, "token").documents(self._scorer.axis)
            elif (budget := budget_of(k)) is not None:
                counted, scorer = self._table("token", self._retrieved.pieces), self._scorer
                self._selected[key] = self._retrieved.within(budget, scorer.tokens, counted, scorer.first_tokens)
            else:
                self._selected[key] = self._retrieved if k is None else self._retrieved.best(self._limit(k))
        return self._selected[key]

    def _limit(self, k: Depth | None) -> Numbers:
        if k == "min":
            assert self._holding is not None
            return self._holding.per_query(self._queries)
        return np.full(self._queries, k if isinstance(k, int) else np.iinfo(np.int64).max)

    def _table(self, unit: Unit, pieces: SpanTable) -> UnitTable:
        key = (unit, id(pieces))  # ids are stable: tables live as long as the cached selections
        if key not in self._tables:
            self._tables[key] = self._scorer.relevance(unit).count(pieces)
        return self._tables[key]


def _located(
    pieces: Sequence[Retrieved], retrieved: RankedSpans
) -> tuple[dict[MatchKind, int], dict[MatchKind, float]]:
    """The answers of each kind of match, and their mean certainty."""
    kinds: dict[MatchKind, int] = {"spans": 0, "unlocated": 1}
    kind, doubt = np.zeros(len(pieces), dtype=np.int64), np.zeros(len(pieces))
    others = np.flatnonzero(pieces.document < 0) if isinstance(pieces, PieceColumns) else np.arange(len(pieces))
    read = [pieces[number] for number in others.tolist()] if isinstance(pieces, PieceColumns) else pieces
    kind[others] = [kinds.setdefault(piece.match, len(kinds)) for piece in read]
    doubt[others] = 1 - np.array([piece.certainty for piece in read], dtype=np.float64)
    kind[list(retrieved.pieces.texts)] = kinds["unlocated"]
    kind, doubt = kind[retrieved.piece], doubt[retrieved.piece]
    present, first = np.unique(kind, return_index=True)
    names = list(kinds)
    counts: dict[MatchKind, int] = {}
    certainty: dict[MatchKind, float] = {}
    for each in present[np.argsort(first)].tolist():
        mine = doubt[kind == each]
        counts[names[each]] = len(mine)
        if names[each] != "unlocated":
            # A running sum, as one answer after the other is added.
            certainty[names[each]] = 1 - float(np.cumsum(mine)[-1]) / len(mine)
    return counts, certainty
