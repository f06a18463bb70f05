"""`score`: how much of each query's evidence a run retrieved, and how much besides."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import cache, cached_property, partial
from itertools import chain, compress, islice
from typing import Literal, get_args

import numpy as np

from chunkcore import guesses
from chunkcore.boundaries.sentences import sentence_ranges
from chunkcore.errors import DataError, OptionError, echo, kind_of, warn_user
from chunkcore.evaluation.benchmarks import Benchmark, Query
from chunkcore.evaluation.counting import (
    Axis,
    Counts,
    Relevance,
    SpanTable,
    meeting_pairs,
)
from chunkcore.evaluation.measures import (
    Depth,
    Measure,
    Measures,
    RetrievalMeasure,
    Unit,
    budget_of,
    retrieval_measures,
)
from chunkcore.evaluation.results import ChunkStatistics, Report
from chunkcore.locating.text_search import occurrences
from chunkcore.options import suggesting
from chunkcore.reading.visible import SeenSpans
from chunkcore.run import Answers, MatchKind, RankedPieces, Retrieved, Run
from chunkcore.spans import Flags, Numbers, Scores
from chunkcore.text import Span
from chunkcore.tokens import TokenCounter, get_counter

MinRule = Literal["holding", "touching"]
CountsOf = Callable[[Unit, Depth | None, bool], Counts]
_OCCURRENCES = 1000  # of an ambiguous text that are tried


@suggesting
def score(
    run: Run,
    benchmark: Benchmark,
    measures: Measures = None,
    *,
    counter: str | TokenCounter = "cl100k_base",
    min_rule: MinRule = "holding",
) -> Report:
    """Score a run, query by query.

    Relevant units count once; retrieved units count every time, except documents and parts. A query that the run lacks
    scores 0. Unlocated text counts as retrieved. A piece's `sources` cost no token and count as found where it is whole
    (not in measures of ranks). docs/reference/measures.md says which units a span holds.

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
    >>> from chunkcore.evaluation.benchmarks import Evidence, Query
    >>> story = Document("fox.txt", "The quick fox naps.")
    >>> toy = Benchmark("toy", [story], [Query("q1", "Who naps?", (Evidence("fox.txt", Span(4, 13)),))])
    >>> report = score(Run("mine", {"q1": [Retrieved("fox.txt", (Span(0, 9),))]}), toy, ["Recall@5[character]"])
    >>> round(report.mean("Recall@5[character]"), 3)  # 5 of the 9 characters of "quick fox"
    0.556
    """
    if isinstance(run, Benchmark):
        raise OptionError(guesses.SWAPPED["score"])
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
        if not isinstance(benchmark, Benchmark):
            raise OptionError(
                f"expected a Benchmark, got {kind_of(benchmark)}: load_benchmark(documents, questions) makes one"
            )
        self.benchmark = benchmark
        self.counter = get_counter(counter)
        self.min_rule = min_rule
        self.axis = Axis(benchmark.documents)
        seen = SeenSpans(benchmark.documents)
        parts = list(chain.from_iterable(query.evidence for query in benchmark.queries))
        pieces = [Retrieved(one.document_id, seen.of(one.document_id, one.span)) for one in parts]
        evidence = SpanTable.of(pieces, self.axis, f"the benchmark {benchmark.name!r}")
        counts = [len(query.evidence) for query in benchmark.queries]
        self._evidence = replace(evidence, query=np.repeat(np.arange(len(counts)), counts))
        self._relevance = cache(self._relevance_in)

    def score(
        self,
        run: Run,
        measures: Measures = None,
        asked: Collection[str] | None = None,
    ) -> Report:
        """The run's scores; `asked` are the ids of the queries that the system was asked, all by default."""
        began = time.perf_counter()
        chosen = retrieval_measures(measures)
        report = self._report(run, chosen, asked)
        if report.located.get("ambiguous"):
            report = replace(report, bounds=self._bounds(run, chosen))
        if report.located.keys() == {"unlocated"}:
            name = max(piece.document_id for pieces in run.results.values() for piece in pieces)
            if name:
                warn_user(
                    f"the hits of the run {run.name!r} are in none of the benchmark's documents: they are in "
                    f"documents such as {echo(name)}, the benchmark has {echo(self.benchmark.documents[0].id)}: "
                    "give both the same ids"
                )
        seconds = time.perf_counter() - began
        return replace(report, seconds={**run.seconds, "score": seconds})

    def _report(
        self,
        run: Run,
        measures: Sequence[RetrievalMeasure],
        asked: Collection[str] | None = None,
    ) -> Report:
        queries = self.benchmark.queries
        ids = [query.id for query in queries]
        ranked = self._ranked(run, ids)
        is_asked = np.array([asked is None or name in asked for name in ids], bool)
        pool = pieces = SpanTable.of(run.pool or (), self.axis, f"the pool of {run.name!r}")
        if ranked.pieces is not run.pool:
            pieces = SpanTable.of(ranked.pieces, self.axis, f"the run {run.name!r}")
        query = np.repeat(np.arange(len(ids)), ranked.counts)
        counts = self._counts_of(pieces.take(ranked.numbers, query), self._holding(pool))
        has_pool = run.pool is not None
        scores = _scores(counts, measures, is_asked, has_pool)
        amounts, shares = {}, {}
        for k in dict.fromkeys(measure.k for measure in measures if measure.k is not None):
            is_known = is_asked & (has_pool or k != "min")
            counted = counts("token", k, False)
            amounts[k] = np.where(is_known, counted.retrieved, math.nan)
            shares[k] = self._found(counted, is_known)
        chunks = ChunkStatistics(pool.sizes(self.tokens)) if has_pool else None
        asked_count = None if asked is None else len(asked)
        return Report(
            name=run.name,
            benchmark=self.benchmark.name,
            query_ids=tuple(ids),
            collections=tuple(query.collection for query in queries),
            scores=scores,
            retrieved_tokens=amounts,
            found=shares,
            located=_located(pieces, ranked.numbers),
            unanswered=tuple(name for name in compress(ids, is_asked) if name not in run.results),
            chunks=chunks,
            min_rule=self.min_rule,
            run=run,
            documents_digest=self.benchmark.documents_digest,
            documents=self.benchmark.question_documents,
            asked=asked_count,
            counter=getattr(self.counter, "name", "") or "",
        )

    def _found(self, counted: Counts, is_known: Flags) -> tuple[tuple[float, ...], ...]:
        """The shares found of each known query's evidence; NaN for others."""
        shares = np.where(is_known[self._evidence.query], counted.shares, math.nan)
        ends = np.cumsum(self._evidence.per_query(len(is_known)))
        return tuple(tuple(part.tolist()) for part in np.split(shares, ends)[:-1])

    def _counts_of(self, retrieved: SpanTable, holding: SpanTable) -> CountsOf:
        """A run's counts by unit, depth, and whether they are of the pool, each computed once."""
        queries = len(self.benchmark.queries)

        def limit(k: Depth | None) -> Numbers:
            if k == "min":
                return holding.per_query(queries)
            most = k if isinstance(k, int) else np.iinfo(np.int64).max
            return np.full(queries, most)

        @cache
        def best(k: Depth | None) -> SpanTable:
            budget = budget_of(k)
            if budget is None:
                return retrieved.best(limit(k))
            return retrieved.within(budget, self.tokens)

        @cache
        def counts(unit: Unit, k: Depth | None, of_pool: bool) -> Counts:
            pieces = holding if of_pool else best(k)
            if unit == "document":
                pieces = pieces.of_documents(self.axis)
            return Counts(self._relevance(unit), pieces, limit(k), deduplicate=of_pool)

        return counts

    def _bounds(
        self, run: Run, measures: Sequence[RetrievalMeasure]
    ) -> dict[Measure, tuple[float, float]]:
        """Each measure's mean with every ambiguous piece at its worst place, and at its best."""
        means = []
        for choose in (min, max):
            results = {}
            for query in self.benchmark.queries:
                pieces = run.results.get(query.id, ())
                results[query.id] = [self._moved(piece, query, choose) for piece in pieces]
            report = self._report(replace(run, results=results), measures)
            means.append([report.mean(measure) for measure in measures])
        return {measure: tuple(pair) for measure, *pair in zip(measures, *means, strict=True)}

    def _moved(self, piece: Retrieved, query: Query, choose: Callable[..., Span]) -> Retrieved:
        """The piece; an ambiguous one at the place of its text that `choose` takes by its evidence."""
        if piece.match == "ambiguous" and piece.text:
            source = self.benchmark.document(piece.document_id).text
            starts = islice(occurrences(source, piece.text), _OCCURRENCES)
            places = [Span(start, start + len(piece.text)) for start in starts]
            if places:
                place = choose(places, key=partial(_evidence_in, query, piece.document_id))
                return replace(piece, spans=(place,))
        return piece

    def token_counts(self, pool: Sequence[Retrieved]) -> Numbers:
        """The tokens of each piece as retrieved, int64."""
        return SpanTable.of(pool, self.axis, "the pool").sizes(self.tokens)

    def depths(self, pool: Sequence[Retrieved]) -> Numbers:
        """K = "min" of each query, int64; `pool` is every chunk. A retriever must return that many."""
        holding = self._holding(SpanTable.of(pool, self.axis, "the pool"))
        return holding.per_query(len(self.benchmark.queries))

    def _ranked(self, run: Run, ids: list[str]) -> RankedPieces:
        """The run's pieces, by the benchmark's queries and then by rank."""
        if run.results and run.results.keys().isdisjoint(ids):
            raise DataError(
                f"the run {run.name!r} answers none of the benchmark's queries: it has {next(iter(run.results))!r}, "
                f"the benchmark {echo(next(iter(ids), 'none'))}"
            )
        if isinstance(run.results, Answers):
            rows = [run.results.rows.get(name, -1) for name in ids]
            return run.results.ranked.of_rows(rows)
        return Answers.of(ids, [run.results.get(name, ()) for name in ids]).ranked

    def _holding(self, pool: SpanTable) -> SpanTable:
        """The pieces that overlap each query's evidence."""
        evidence = self._evidence.characters
        if self.min_rule == "touching":  # one more character on each side
            evidence = evidence + np.array([-1, 1])
        is_shown = ~pool.is_copy
        window, span = meeting_pairs(pool.characters[is_shown], evidence)
        query = self._evidence.query[self._evidence.owner[window]]
        pairs = np.column_stack((query, pool.owner[is_shown][span]))
        query, piece = np.unique(pairs, axis=0).T
        return pool.take(piece, query)

    def _relevance_in(self, unit: Unit) -> Relevance:
        """The evidence in this unit."""
        axis, documents = self.axis, self.benchmark.documents
        if unit == "token":
            axis = self.tokens
        elif unit == "sentence":
            axis = Axis(documents, lambda text: sentence_ranges(text)[:, 0])
        elif unit == "document":
            axis = Axis(documents, lambda text: np.zeros(1, np.int64))
        return Relevance(axis, self._evidence, len(self.benchmark.queries))

    @cached_property
    def tokens(self) -> Axis:
        return Axis(self.benchmark.documents, self.counter.boundaries)


def _scores(
    counts: CountsOf, measures: Sequence[RetrievalMeasure], is_asked: Flags, has_pool: bool
) -> dict[Measure, Scores]:
    """Each measure's scores; NaN where it is undefined."""
    scores: dict[Measure, Scores] = {}
    for measure in measures:
        counted = counts(measure.unit, measure.k, measure.of_pool)
        is_known = is_asked & (has_pool or not measure.needs_pool)
        is_defined = is_known & (counted.relevant > 0)
        scores[measure] = np.where(is_defined, measure.compute(counted), math.nan)
    return scores


def _evidence_in(query: Query, document_id: str, place: Span) -> int:
    """How many characters of the query's evidence are in a place of a document."""
    spans = [part.span for part in query.evidence if part.document_id == document_id]
    shared = [range(max(span.start, place.start), min(span.end, place.end)) for span in spans]
    return sum(map(len, shared))


def _located(pieces: SpanTable, numbers: Numbers) -> dict[MatchKind, int]:
    """How many retrieved pieces were located in each way."""
    times = np.bincount(numbers, minlength=len(pieces.query))
    counts: Counter[MatchKind] = Counter({"spans": len(numbers)})
    for number, kind in pieces.kinds.items():
        counts[kind] += int(times[number])
        counts["spans"] -= int(times[number])
    return dict(+counts)
