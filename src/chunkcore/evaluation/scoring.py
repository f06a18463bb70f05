"""`score`: how much of each query's evidence a run retrieved, and how much besides."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from functools import cache, cached_property
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
    meeting_pairs,
)
from chunkcore.evaluation.measures import (
    Depth,
    Measure,
    RetrievalMeasure,
    Unit,
    budget_of,
    measures_at,
    retrieval_measures,
    running,
)
from chunkcore.evaluation.results import ChunkStatistics, Report
from chunkcore.run import Answers, MatchKind, PieceColumns, RankedPieces, Retrieved, Run
from chunkcore.spans import Numbers, Scores
from chunkcore.tokens import TokenCounter, get_counter

MinRule = Literal["holding", "touching"]


def score(
    run: Run,
    benchmark: Benchmark,
    measures: Iterable[Measure | str] | Measure | str | None = None,
    *,
    counter: str | TokenCounter = "cl100k_base",
    min_rule: MinRule = "holding",
) -> Report:
    """Score a run, query by query.

    Relevant units count once; retrieved units count every time, except documents and parts. A query that the run lacks
    scores 0. Unlocated text counts as retrieved. docs/reference/measures.md says which units a span holds.

    Args:
        measures: such as "Recall@4096tok", "nDCG@10[document]" or "AllEvidence@1000tok"; see `Measure`. By default the
            Chroma report's at 1,000 tokens, k = 5, 10 and "min", in tokens and characters.
        counter: of tokens; it tokenizes whole documents.
        min_rule: k = "min" is the number of pool chunks that overlap the query's evidence ("holding"), or overlap or
            touch it ("touching", as the Chroma report's code).

    Returns:
        A `Report`. Measures at "min" and PrecisionOmega are NaN if the run has no pool.

    Raises:
        OptionError: an unknown rule, counter or measure, or a measure of answers.
        DataError: a span outside its document, or results of other queries only.

    Time O(n log n) in the retrieved spans and the documents' length, memory O(n).

    Source: the Chroma report "Evaluating Chunking Strategies for Retrieval", "Metrics"; other measures name theirs.

    >>> from chunkcore.text import Document, Span
    >>> from chunkcore.evaluation.benchmarks.benchmark import Evidence, Query
    >>> story = Document("fox.txt", "The quick fox naps.")
    >>> toy = Benchmark("toy", [story], [Query("q1", "Who naps?", (Evidence("fox.txt", Span(4, 13)),))])
    >>> report = score(Run("mine", {"q1": [Retrieved("fox.txt", (Span(0, 9),))]}), toy, ["Recall@5[character]"])
    >>> round(report.mean("Recall@5[character]"), 3)  # 5 of the 9 characters of "quick fox"
    0.556
    """
    return Scorer(benchmark, counter=counter, min_rule=min_rule).score(run, measures)


class Scorer:
    """A benchmark, tokenized once, that scores any number of runs. Options and errors as `score`."""

    def __init__(
        self,
        benchmark: Benchmark,
        *,
        counter: str | TokenCounter = "cl100k_base",
        min_rule: MinRule = "holding",
    ) -> None:
        if min_rule not in get_args(MinRule):
            raise OptionError(f'min_rule is "holding" or "touching", got {echo(min_rule)}')
        self.benchmark = benchmark
        self.counter = get_counter(counter)
        self.min_rule = min_rule
        self.axis = CharacterAxis(benchmark.documents)
        evidence = [
            (number, part)
            for number, query in enumerate(benchmark.queries)
            for part in query.evidence
        ]
        pieces = [Retrieved(part.document_id, (part.span,)) for _, part in evidence]
        self._evidence = SpanTable.of(pieces, self.axis, f"the benchmark {benchmark.name!r}")
        self._evidence_query = np.array([number for number, _ in evidence], dtype=np.int64)
        self._relevance: dict[Unit, Relevance] = {}
        self._token_counts: dict[str, int] = {}
        self._last_pool: tuple[Sequence[Retrieved], SpanTable] | None = None

    def score(
        self, run: Run, measures: Iterable[Measure | str] | Measure | str | None = None
    ) -> Report:
        began = time.perf_counter()
        chosen = retrieval_measures(measures_at() if measures is None else measures)
        ranked = self._ranked(run)
        pool = None
        if run.pool is not None:
            pool = self._pool_spans(run.pool, run.name)
        spans = pool
        if spans is None or ranked.pieces is not run.pool:
            spans = SpanTable.of(ranked.pieces, self.axis, f"the run {run.name!r}")
        retrieved = RankedSpans.of(spans, ranked.numbers, ranked.counts)
        holding = None if pool is None else self._holding(pool)
        counts = _RunCounts(self, retrieved, holding)
        depths = dict.fromkeys(measure.k for measure in chosen if measure.k is not None)
        amounts, found = {}, {}
        for k in depths:
            amounts[k], shares = counts.tokens(k)
            found[k] = self.relevance("token").by_query(shares)
        chunks = None
        if pool is not None:
            chunks = ChunkStatistics(self.relevance("token").count(pool).sizes)
        queries = self.benchmark.queries
        return Report(
            name=run.name,
            benchmark=self.benchmark.name,
            query_ids=tuple(query.id for query in queries),
            collections=tuple(query.collection for query in queries),
            scores={measure: counts.scores(measure) for measure in chosen},
            retrieved_tokens=amounts,
            found=found,
            located=_located(ranked.pieces, retrieved),
            unanswered=tuple(query.id for query in queries if query.id not in run.results),
            chunks=chunks,
            seconds={**run.seconds, "score": time.perf_counter() - began},
            min_rule=self.min_rule,
            run=run,
            documents_digest=self.benchmark.documents_digest,
            documents=tuple(query.evidence[0].document_id for query in queries),
        )

    def token_counts(self, pool: Sequence[Retrieved]) -> Numbers:
        """The tokens of each piece as retrieved, int64."""
        return self.relevance("token").count(self._pool_spans(pool)).sizes

    def depths(self, pool: Sequence[Retrieved]) -> Numbers:
        """K = "min" of each query, int64; `pool` is every chunk. A retriever must return that many."""
        return self._holding(self._pool_spans(pool)).per_query(len(self.benchmark.queries))

    def _pool_spans(self, pool: Sequence[Retrieved], name: str = "") -> SpanTable:
        """The table of the last pool is kept: one report asks for it several times."""
        if self._last_pool is None or self._last_pool[0] is not pool:
            self._last_pool = (
                pool,
                SpanTable.of(pool, self.axis, f"the pool of {name!r}" if name else "the pool"),
            )
        return self._last_pool[1]

    def _ranked(self, run: Run) -> RankedPieces:
        """The run's pieces, by the benchmark's queries and then by rank."""
        ids = [query.id for query in self.benchmark.queries]
        if run.results and not run.results.keys() & set(ids):
            raise DataError(
                f"the run {run.name!r} answers none of the benchmark's queries: it has {next(iter(run.results))!r}, "
                f"the benchmark {echo(next(iter(ids), 'none'))}"
            )
        if not isinstance(run.results, Answers):
            return Answers.of(ids, [run.results.get(name, ()) for name in ids]).ranked
        return run.results.ranked.of_rows([run.results.rows.get(name, -1) for name in ids])

    def _holding(self, pieces: SpanTable) -> RankedSpans:
        # One more character on each side, so that touching pieces overlap too.
        reach = np.array([-1, 1]) if self.min_rule == "touching" else np.array([0, 0])
        evidence, span = meeting_pairs(pieces.characters, self._evidence.characters + reach)
        pairs = np.unique(
            np.column_stack((self._evidence_query[evidence], pieces.owner[span])), axis=0
        )
        query, piece = pairs[:, 0], pairs[:, 1]
        return RankedSpans(pieces, piece, query, running(np.ones_like(query), query))

    def relevance(self, unit: Unit) -> Relevance:
        """The evidence in this unit, computed on first use."""
        if unit not in self._relevance:
            axis, text_size = self._units(unit)
            queries = len(self.benchmark.queries)
            self._relevance[unit] = Relevance(
                axis, self._evidence, self._evidence_query, queries, text_size
            )
        return self._relevance[unit]

    def _units(self, unit: Unit) -> tuple[Axis, Callable[[list[str]], Numbers]]:
        """The unit's axis, and how many units texts have that are in no document."""
        documents = self.benchmark.documents
        if unit == "token":
            return self.tokens, self._count_tokens
        if unit == "sentence":
            axis = StartAxis(self.axis, documents, lambda text: sentence_ranges(text)[:, 0])
            return axis, lambda texts: np.array(
                [len(sentence_ranges(text)) for text in texts], dtype=np.int64
            )
        if unit == "character":
            return self.axis, lambda texts: np.array([len(text) for text in texts], dtype=np.int64)
        whole = DocumentAxis(self.axis) if unit == "document" else PartAxis(self.axis, documents)
        return whole, lambda texts: np.ones(len(texts), dtype=np.int64)

    def _count_tokens(self, texts: list[str]) -> Numbers:
        counted = self._token_counts
        new = [text for text in dict.fromkeys(texts) if text not in counted]
        counted.update(zip(new, self.counter.count_many(new).tolist(), strict=True))
        return np.array([counted[text] for text in texts], dtype=np.int64)

    @cached_property
    def tokens(self) -> StartAxis:
        return StartAxis(self.axis, self.benchmark.documents, self.counter.boundaries)

    def first_tokens(self, text: str, count: int) -> str:
        begins = self.counter.boundaries(text)
        return text if len(begins) <= count else text[: int(begins[count])]


class _RunCounts:
    """A run's counts by unit and depth, each computed once."""

    def __init__(self, scorer: Scorer, retrieved: RankedSpans, holding: RankedSpans | None) -> None:
        self._scorer, self._retrieved, self._holding = scorer, retrieved, holding
        self._queries = len(scorer.benchmark.queries)
        self._count = cache(self._counts)
        self._select = cache(self._selection)
        self._table = cache(lambda unit, pieces: scorer.relevance(unit).count(pieces))

    def scores(self, measure: RetrievalMeasure) -> Scores:
        if measure.needs_pool and self._holding is None:
            return np.full(self._queries, math.nan)
        counts = self._count(measure.unit, measure.k, measure.of_pool)
        return np.where(counts.relevant == 0, math.nan, measure.compute(counts))

    def tokens(self, k: Depth) -> tuple[Scores, Scores]:
        """The tokens retrieved for each query, and the share of each piece of evidence; NaN if unknown."""
        if k == "min" and self._holding is None:
            evidence = self._scorer.relevance("token").evidence
            return np.full(self._queries, math.nan), np.full(len(evidence), math.nan)
        counts = self._count("token", k, False)
        return counts.retrieved, counts.shares

    def _counts(self, unit: Unit, k: Depth | None, of_pool: bool) -> UnitCounts:
        spans = self._holding if of_pool else self._select(k, unit == "document")
        assert spans is not None
        relevance, counted = self._scorer.relevance(unit), self._table(unit, spans.pieces)
        return UnitCounts(
            relevance, spans, counted, self._limit(k), deduplicate=of_pool or unit == "part"
        )

    def _selection(self, k: Depth | None, of_documents: bool) -> RankedSpans:
        """The best pieces down to k, or their documents."""
        if of_documents:
            return self._select(k, False).documents(self._scorer.axis)
        if (budget := budget_of(k)) is None:
            return self._retrieved if k is None else self._retrieved.best(self._limit(k))
        counted = self._table("token", self._retrieved.pieces)
        return self._retrieved.within(
            budget, self._scorer.tokens, counted, self._scorer.first_tokens
        )

    def _limit(self, k: Depth | None) -> Numbers:
        if k == "min":
            assert self._holding is not None
            return self._holding.per_query(self._queries)
        return np.full(self._queries, k if isinstance(k, int) else np.iinfo(np.int64).max)


def _located(pieces: Sequence[Retrieved], retrieved: RankedSpans) -> dict[MatchKind, int]:
    times = np.bincount(retrieved.piece, minlength=len(pieces))
    is_plain = (
        pieces.document >= 0
        if isinstance(pieces, PieceColumns)
        else np.zeros(len(pieces), dtype=np.bool_)
    )
    is_plain[list(retrieved.pieces.texts)] = False
    counts: dict[MatchKind, int] = {}
    if plain := int(times[is_plain].sum()):
        counts["spans"] = plain
    for number in np.flatnonzero((times > 0) & ~is_plain).tolist():
        kind = pieces[number].match
        if number in retrieved.pieces.texts and kind != "quoted":
            kind = "unlocated"
        counts[kind] = counts.get(kind, 0) + int(times[number])
    return counts
