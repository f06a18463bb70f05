"""What each query was answered with, counted in one unit: relevant, retrieved, and both at once."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from chunkcore.evaluation.answers import Answers
from chunkcore.evaluation.measures import MeasureName
from chunkcore.evaluation.pieces import Numbers, Pieces, expand
from chunkcore.evaluation.ranking import Ranking, first_cover, ideal_gain
from chunkcore.evaluation.results import Scores
from chunkcore.evaluation.units import Axis, Coverage
from chunkcore.spans import Ranges, union_ranges

__all__ = ["Counted", "Outcome", "Relevance"]


@dataclass(frozen=True, eq=False)
class Counted:
    """Pieces in one unit: the range of each span, and the size of each piece, repeats included."""

    pieces: Pieces
    ranges: Ranges
    sizes: Numbers


@dataclass(frozen=True, eq=False)
class Outcome:
    """Each query's counts, float64, shape (queries,), and the share found of each piece of evidence."""

    relevant: Scores
    retrieved: Scores
    hit: Scores
    shares: Scores

    def value(self, name: MeasureName) -> Scores:
        """The measure's score of each query; nothing retrieved scores 0, no unit of evidence NaN."""
        relevant, retrieved, hit = self.relevant, self.retrieved, self.hit
        denominator = {
            "Recall": relevant,
            "Precision": retrieved,
            "PrecisionOmega": retrieved,
            "IoU": relevant + retrieved - hit,
            "F1": (relevant + retrieved) / 2,
        }[name]
        scores = np.divide(hit, denominator, out=np.zeros_like(hit), where=denominator != 0)
        return np.where((relevant == 0) | np.isnan(retrieved), math.nan, scores)

    @classmethod
    def undefined(cls, relevance: Relevance) -> Outcome:
        """Of what can't be known, such as k = "min" where the pool is not."""
        nothing = np.full(len(relevance.relevant), math.nan)
        return cls(relevance.relevant, nothing, nothing, np.full(len(relevance.evidence), math.nan))


class Relevance:
    """Every query's evidence in one unit, on an axis that holds all units once for each query."""

    def __init__(
        self,
        axis: Axis,
        evidence: Pieces,
        query: Numbers,
        queries: int,
        text_size: Callable[[list[str]], Numbers],
    ) -> None:
        self._axis = axis
        self._text_size = text_size
        self._queries = queries
        # One more than the units, so that what two queries retrieve never touches.
        self._stride = axis.size + 1
        self._query = query
        self.evidence = axis.ranges(evidence.characters) + (query * self._stride)[:, None]
        self._union = union_ranges(self.evidence)
        self.relevant = self._per_query(self._union)
        self._documents = evidence.documents

    def count(self, pieces: Pieces) -> Counted:
        """Pieces in this unit; those that stand nowhere count the units of their own text."""
        ranges = self._axis.ranges(pieces.characters)
        sizes = np.bincount(pieces.owner, ranges[:, 1] - ranges[:, 0], minlength=pieces.count).astype(np.int64)
        if pieces.texts:
            sizes[list(pieces.texts)] = self._text_size(list(pieces.texts.values()))
        return Counted(pieces, ranges, sizes)

    def outcome(self, counted: Counted, query: Numbers, piece: Numbers, *, once: bool = False) -> Outcome:
        """What comes of answering each query in `query` with the piece beside it.

        Args:
            counted: the pieces.
            query: of each answer, shape (answers,).
            piece: of each answer, shape (answers,).
            once: count a unit that several pieces share once; text that stands nowhere counts each time.
        """
        answer, span = counted.pieces.spans_of(piece)
        union = union_ranges(counted.ranges[span] + (query[answer] * self._stride)[:, None])
        coverage = Coverage(union)
        hit = np.bincount(self._union[:, 0] // self._stride, coverage.lengths(self._union), minlength=self._queries)
        sizes = counted.sizes[piece].astype(np.float64)
        if once:
            sizes = np.where(np.isin(piece, list(counted.pieces.texts)), sizes, 0)
        retrieved = np.bincount(query, sizes, minlength=self._queries) + (self._per_query(union) if once else 0)
        lengths = (self.evidence[:, 1] - self.evidence[:, 0]).astype(np.float64)
        shares = np.full(len(lengths), math.nan)
        np.divide(coverage.lengths(self.evidence), lengths, out=shares, where=lengths > 0)
        return Outcome(self.relevant, retrieved.astype(np.float64), hit.astype(np.float64), shares)

    def ranking(self, counted: Counted, answers: Answers, limit: Numbers) -> Ranking:
        """What each answer brings, where `limit` is how many of each query's pieces are looked at."""
        order, span = counted.pieces.spans_of(answers.piece)
        spans = counted.ranges[span] + (answers.query[order] * self._stride)[:, None]
        relevant, owner = _clipped(spans, self._union)
        return Ranking(
            answers.query,
            answers.rank,
            first_cover(relevant, order[owner], len(answers.piece)),
            counted.sizes[answers.piece].astype(np.float64),
            self.relevant,
            ideal_gain(*self._by_document, limit),
        )

    @cached_property
    def _by_document(self) -> tuple[Numbers, Scores]:
        """Each query's relevant documents: the query, and how many relevant units the document holds."""
        pairs, which = np.unique(np.column_stack((self._query, self._documents)), axis=0, return_inverse=True)
        units = self.evidence - (self._query * self._stride)[:, None]
        apart = union_ranges(units + (which.reshape(-1) * self._stride)[:, None])
        amounts = np.bincount(apart[:, 0] // self._stride, apart[:, 1] - apart[:, 0], minlength=len(pairs))
        return pairs[:, 0], amounts.astype(np.float64)

    def found(self, outcome: Outcome) -> tuple[tuple[float, ...], ...]:
        """The share found of each piece of evidence, by query."""
        counts = np.bincount(self._query, minlength=self._queries)
        ends = np.cumsum(counts)
        shares = outcome.shares.tolist()
        places = zip((ends - counts).tolist(), ends.tolist(), strict=True)
        return tuple(tuple(shares[start:end]) for start, end in places)

    def _per_query(self, union: Ranges) -> Scores:
        lengths = union[:, 1] - union[:, 0]
        return np.bincount(union[:, 0] // self._stride, lengths, minlength=self._queries).astype(np.float64)


def _clipped(ranges: Ranges, union: Ranges) -> tuple[Ranges, Numbers]:
    """The parts of each range that lie in a sorted, disjoint union, and which range each is a part of."""
    first = np.searchsorted(union[:, 1], ranges[:, 0], side="right")
    after = np.searchsorted(union[:, 0], ranges[:, 1], side="left")
    owner, within = expand(first, np.maximum(after - first, 0))
    starts = np.maximum(ranges[owner, 0], union[within, 0])
    return np.column_stack((starts, np.minimum(ranges[owner, 1], union[within, 1]))), owner
