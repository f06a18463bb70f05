"""Counts per query in one unit: relevant, retrieved, and both.

Units lie on an axis. Evidence and retrieved pieces become a `SpanTable`; `Relevance` is the evidence on an axis, and
`Counts` has the retrieved pieces against it: the input of measures. The axis repeats all units for each query, so that
a few array operations count all queries at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence, Sized
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from chunkcore.errors import DataError
from chunkcore.run import MatchKind, PieceColumns, Retrieved
from chunkcore.spans import (
    Flags,
    Numbers,
    Ranges,
    Scores,
    clip_ranges,
    ragged_indices,
    union_ranges,
)
from chunkcore.text import Document

_Number = TypeVar("_Number", np.int64, np.float64)


class Axis:
    """The units of all documents in a row; a unit belongs to the range of characters in which it begins.

    `starts` gives where the units of a text begin. Without it characters are the units, and a gap of one keeps
    neighbouring documents from touching.
    """

    def __init__(
        self, documents: Sequence[Document], starts: Callable[[str], Numbers] | None = None
    ) -> None:
        self.numbers = {document.id: number for number, document in enumerate(documents)}
        self.sizes = np.array([document.size for document in documents], np.int64)
        self.bases = np.cumsum(self.sizes + 1) - self.sizes - 1
        self.size = int((self.sizes + 1).sum())
        self._starts = starts
        units_of: Callable[[str], Sized] = starts or str
        # Of texts that are in no document; each depth asks for them again.
        self.text_size = cache(lambda text: len(units_of(text)))
        if starts is not None:
            begins = [
                base + starts(one.text) for base, one in zip(self.bases, documents, strict=True)
            ]
            self.begins = np.concatenate([np.empty(0, np.int64), *begins])
            self._first_of_document = np.searchsorted(self.begins, self.bases)
            self.size = len(self.begins)

    def ranges(self, characters: Ranges) -> Ranges:
        """The units that begin in each range of characters.

        A range inside one unit is that unit: part of a token costs the token, and short evidence is one unit.
        """
        if self._starts is None:
            return characters
        first, after = np.searchsorted(self.begins, characters).T
        document = np.searchsorted(self.bases, characters[:, 0], side="right") - 1
        around = np.maximum(first - 1, self._first_of_document[document])
        return np.column_stack((np.where(first == after, around, first), after))

    def cut(self, text: str, count: int) -> str:
        """The first units of a text."""
        assert self._starts is not None
        begins = self._starts(text)
        return text if len(begins) <= count else text[: int(begins[count])]


@dataclass(frozen=True, eq=False)
class SpanTable:
    """Pieces by query and then by rank, each with any number of spans.

    Of each piece: `query`, and `documents`, its document's number; unknown documents are numbered too, equal ids alike.
    Of each span: `owner`, the number of its piece, ascending; `characters`, its range; and `is_copy`: whether it is the
    place of one of the piece's sources, which are found and not shown.

    `texts` has the texts of pieces that are counted by them: unlocated ones, and those that hold evidence word for
    word, with the words of each of the piece's spans. `kinds` says how pieces were located, if not by spans. `origin`
    is the table that the pieces were taken from, with each span's number there.
    """

    query: Numbers
    documents: Numbers
    owner: Numbers
    characters: Ranges
    is_copy: Flags
    texts: dict[int, tuple[str, tuple[str, ...]]]
    kinds: dict[int, MatchKind] = field(default_factory=dict)
    origin: tuple[SpanTable, Numbers] | None = None
    _ranges: dict[Axis, Ranges] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        pieces: Sequence[Retrieved],
        axis: Axis,
        source: str,
    ) -> SpanTable:
        """The pieces in order, all of query 0.

        Raises `DataError`: a span ends after its document, or a piece of an unknown one has no text.
        """
        documents, plain = _column_rows(pieces, axis)
        numbers: dict[Any, int] = dict(axis.numbers)
        texts: dict[int, tuple[str, tuple[str, ...]]] = {}
        kinds: dict[int, MatchKind] = {}
        rows: list[tuple[int, ...]] = []
        for number in np.flatnonzero(documents < 0).tolist():
            piece = pieces[number]
            # Pieces that name no document are each of their own.
            name = piece.document_id or number
            documents[number] = numbers.setdefault(name, len(numbers))
            is_placed = bool(piece.spans) and name in axis.numbers
            if piece.spans and not is_placed and not piece.text:
                raise DataError(
                    f"{source}: piece {number} is of the document {name!r}, which the benchmark does not have, and "
                    "has no text that could be counted: give it one, or the document"
                )
            if piece.match != "spans":
                kinds[number] = piece.match
            if not is_placed:
                kinds[number] = "unlocated"
                texts[number] = piece.text, ()
            elif piece.match == "quoted":
                texts[number] = piece.text, tuple(part.text for part in piece.parts)
            for place in (piece, *piece.sources):
                if place.document_id in axis.numbers:
                    at = number, axis.numbers[place.document_id], place is not piece
                    rows += [(*at, span.start, span.end) for span in place.spans]
        table = np.concatenate((plain, np.array(rows, np.int64).reshape(-1, 5)))
        table = table[np.argsort(table[:, 0], kind="stable")]
        _check_inside(table, axis, source)
        owner, document, is_copy = table[:, :3].T
        characters = table[:, 3:] + axis.bases[document, None]
        query = np.zeros_like(documents)
        return cls(query, documents, owner, characters, is_copy.astype(bool), texts, kinds)

    def take(self, numbers: Numbers, query: Numbers) -> SpanTable:
        """Some of the pieces, repeats allowed, each for a query."""
        counts = np.bincount(self.owner, minlength=len(self.query))
        first = np.cumsum(counts) - counts
        owner, span = ragged_indices(first[numbers], counts[numbers])
        places = np.flatnonzero(np.isin(numbers, list(self.texts))).tolist()
        origin = self, span
        if self.origin is not None:  # spans are counted once for all depths
            table, first_span = self.origin
            origin = table, first_span[span]
        return SpanTable(
            query,
            self.documents[numbers],
            owner,
            self.characters[span],
            self.is_copy[span],
            {place: self.texts[int(numbers[place])] for place in places},
            origin=origin,
        )

    @cached_property
    def rank(self) -> Numbers:
        """Each piece's rank in its query, from 0."""
        return running(np.ones_like(self.query), self.query)

    def per_query(self, queries: int) -> Numbers:
        return np.bincount(self.query, minlength=queries)

    def ranges(self, axis: Axis) -> Ranges:
        """Each span's range of units."""
        if self.origin is not None:
            pieces, span = self.origin
            return pieces.ranges(axis)[span]
        if axis not in self._ranges:
            self._ranges[axis] = axis.ranges(self.characters)
        return self._ranges[axis]

    def sizes(self, axis: Axis) -> Numbers:
        """The units of each piece, repeats included; those of its text where it is not located."""
        shown = np.where(self.is_copy, 0, _range_sizes(self.ranges(axis)))
        sizes = _sums(self.owner, shown, len(self.query)).astype(np.int64)
        sizes[list(self.texts)] = [axis.text_size(text) for text, _ in self.texts.values()]
        return sizes

    def best(self, k: Numbers) -> SpanTable:
        """The best `k` pieces of each query; `k` has one number per query."""
        kept = np.flatnonzero(self.rank < k[self.query])
        return self.take(kept, self.query[kept])

    def of_documents(self, axis: Axis) -> SpanTable:
        """The pieces' documents, each once a query, at its first rank. An unknown document is irrelevant."""
        # One number per pair of query and document sorts many times faster than pairs.
        pair = self.query * (self.documents.max(initial=0) + 1) + self.documents
        _, first, row = np.unique(pair, return_index=True, return_inverse=True)
        order = np.argsort(first)
        first = first[order]
        documents = self.documents[first]
        is_known = documents < len(axis.sizes)
        begins = axis.bases[documents[is_known]]
        copies = np.argsort(order)[row[self.owner[self.is_copy]]]
        owner = np.concatenate((np.flatnonzero(is_known), copies))
        by_owner = np.argsort(owner, kind="stable")
        characters = np.concatenate(
            (np.column_stack((begins, begins + 1)), self.characters[self.is_copy])
        )
        return SpanTable(
            self.query[first],
            documents,
            owner[by_owner],
            characters[by_owner],
            by_owner >= len(begins),
            dict.fromkeys(np.flatnonzero(~is_known).tolist(), ("", ())),
        )

    def within(self, budget: int, axis: Axis) -> SpanTable:
        """The best pieces of each query until it has `budget` units, repeats included; the last piece is cut there."""
        sizes = self.sizes(axis)
        left = budget - running(sizes, self.query)
        kept = np.flatnonzero(left > 0)
        best, left = self.take(kept, self.query[kept]), left[kept]
        owner, characters = best.owner, best.characters.copy()
        tokens = best.ranges(axis)
        lengths = np.where(best.is_copy, 0, _range_sizes(tokens))
        room = left[owner] - running(lengths, owner)
        over = np.flatnonzero((lengths > room) & (room > 0))
        characters[over, 1] = axis.begins[tokens[over, 0] + room[over]]
        # Tokens inside one character begin at one place: a cut between them leaves nothing.
        is_kept = (room > 0) & (characters[:, 1] > characters[:, 0])
        is_whole = sizes[kept] <= left
        is_kept = np.where(best.is_copy, is_whole[owner], is_kept)
        texts = {}
        for number, (text, quotes) in best.texts.items():
            cut = axis.cut(text, int(left[number]))
            texts[number] = cut, quotes
            if quotes:  # evidence counts where its words are before the cut
                places = np.flatnonzero((owner == number) & ~best.is_copy)
                is_kept[places] = [quote in cut for quote in quotes]
                characters[places] = best.characters[places]
        return SpanTable(
            best.query,
            best.documents,
            owner[is_kept],
            characters[is_kept],
            best.is_copy[is_kept],
            texts,
        )


def _column_rows(pieces: Sequence[Retrieved], axis: Axis) -> tuple[Numbers, Ranges]:
    """Each piece's document number, -1 if it is to be read alone; and the others' spans.

    A row is the piece, its document, whether it is a copy, start and end.
    """
    if not isinstance(pieces, PieceColumns):
        return np.full(len(pieces), -1), np.empty((0, 5), np.int64)
    numbers = [axis.numbers.get(name, -1) for name in pieces.documents]
    documents = np.array([*numbers, -1])[pieces.document]
    plain = np.flatnonzero(documents >= 0)
    columns = plain, documents[plain], 0 * plain, pieces.starts[plain], pieces.ends[plain]
    return documents, np.column_stack(columns)


def _check_inside(rows: Ranges, axis: Axis, source: str) -> None:
    """Raise `DataError`: a span ends after its document."""
    for number, document, _, _, end in rows[rows[:, 4] > axis.sizes[rows[:, 1]]].tolist():
        name, size = list(axis.numbers)[document], axis.sizes[document]
        raise DataError(
            f"{source}: a span of piece {number} ends at {end}, its document {name!r} at {size}"
        )


class Relevance:
    """Every query's evidence on an axis."""

    def __init__(self, axis: Axis, evidence: SpanTable, queries: int) -> None:
        self.axis = axis
        self._evidence = evidence
        self._queries = queries
        # One more than the units, so that the ranges of two queries never touch.
        self._stride = axis.size + 1
        self.ranges = self.ranges_of(evidence)
        self.union = union_ranges(self.ranges)
        self.relevant = self.lengths(self.union)

    def ranges_of(self, pieces: SpanTable) -> Ranges:
        """The units of pieces' spans, of each query apart."""
        return pieces.ranges(self.axis) + self._stride * pieces.query[pieces.owner, None]

    def lengths(self, union: Ranges) -> Scores:
        """The units of each query in disjoint ranges."""
        return _sums(union[:, 0] // self._stride, _range_sizes(union), self._queries)

    def shares(self, union: Ranges) -> Scores:
        """The share of each piece of evidence in disjoint ranges; NaN for one without a unit."""
        inside, owner = clip_ranges(self.ranges, union)
        count, pieces = len(self._evidence.query), self._evidence.owner
        lengths = _sums(pieces, _range_sizes(self.ranges), count)
        lengths[lengths == 0] = math.nan
        return _sums(pieces[owner], _range_sizes(inside), count) / lengths

    @cached_property
    def by_document(self) -> tuple[Numbers, Scores]:
        """Each query's relevant documents: the query, and the document's relevant units."""
        pieces = self._evidence
        pairs = np.column_stack((pieces.query, pieces.documents))[pieces.owner]
        pairs, number = np.unique(pairs, axis=0, return_inverse=True)
        shift = (number.reshape(-1) - pieces.query[pieces.owner]) * self._stride
        union = union_ranges(self.ranges + shift[:, None])
        return pairs[:, 0], _sums(union[:, 0] // self._stride, _range_sizes(union), len(pairs))


class Counts:
    """Pieces against the evidence, in one unit: the input of measures, float64, shape (queries,).

    `limit` is each query's depth. With `deduplicate`, a unit that several pieces share counts once; unlocated text
    counts each time.

    Attributes:
        relevant: units of evidence.
    """

    relevant: Scores

    def __init__(
        self, relevance: Relevance, pieces: SpanTable, limit: Numbers, *, deduplicate: bool
    ) -> None:
        self.relevant = relevance.relevant
        self._relevance, self._pieces, self._limit = relevance, pieces, limit
        self._deduplicate = deduplicate
        self._sizes = pieces.sizes(relevance.axis).astype(float)
        self._ranges = relevance.ranges_of(pieces)
        # What is retrieved, and the places that say the same.
        self._union = union_ranges(self._ranges)

    @cached_property
    def retrieved(self) -> Scores:
        """Units retrieved to the measure's depth, repeats included."""
        query = self._pieces.query
        if not self._deduplicate:
            return _sums(query, self._sizes, len(self.relevant))
        texts = list(self._pieces.texts)
        shown = union_ranges(self._ranges[~self._pieces.is_copy])
        in_texts = _sums(query[texts], self._sizes[texts], len(self.relevant))
        return in_texts + self._relevance.lengths(shown)

    @cached_property
    def found(self) -> Scores:
        """Units of evidence retrieved, each once; a piece's `sources`, which say the same, are found with it."""
        inside, _ = clip_ranges(self._relevance.union, self._union)
        return self._relevance.lengths(inside)

    @cached_property
    def hit(self) -> Scores:
        """`found`, at most `retrieved`."""
        return np.minimum(self.found, self.retrieved)

    @property
    def shares(self) -> Scores:
        """The retrieved share of each piece of evidence; NaN for one without a unit."""
        return self._relevance.shares(self._union)

    @cached_property
    def ranking(self) -> Ranking:
        """The counts piece by piece."""
        pieces = self._pieces
        is_shown = ~pieces.is_copy
        relevant, span = clip_ranges(self._ranges[is_shown], self._relevance.union)
        new = first_cover(relevant, pieces.owner[is_shown][span], len(pieces.query))
        ideal = ideal_gain(*self._relevance.by_document, self._limit)
        return Ranking(pieces.query, pieces.rank, new, self._sizes, ideal)


@dataclass(frozen=True, eq=False)
class Ranking:
    """The retrieved pieces, by query and then by rank; arrays with one entry per piece.

    Attributes:
        query: the query's number, int64.
        rank: from 0, int64.
        new: relevant units that no better piece of the query held.
        sizes: all units of the piece.
        ideal: per query, the highest possible discounted gain.
    """

    query: Numbers
    rank: Numbers
    new: Scores
    sizes: Scores
    ideal: Scores

    def sum(self, values: Scores) -> Scores:
        return _sums(self.query, values, len(self.ideal))

    @property
    def share(self) -> Scores:
        return divide(self.new, self.sizes)

    @property
    def discount(self) -> Scores:
        return discount(self.rank)


def _range_sizes(ranges: Ranges) -> Numbers:
    return ranges[:, 1] - ranges[:, 0]


def _sums(owner: Numbers, amounts: Numbers | Scores, owners: int) -> Scores:
    """The sum of the amounts of each owner."""
    return np.bincount(owner, amounts, minlength=owners).astype(float)


def meeting_pairs(spans: Ranges, windows: Ranges) -> tuple[Numbers, Numbers]:
    """Every window and span that share a position: two int64 arrays of numbers.

    Spans may overlap. Spans of like length (within a factor of two) are looked up together, so the work grows with the
    result, not with the longest span.

    >>> windows, spans = meeting_pairs(np.array([[0, 5], [3, 9], [9, 12]]), np.array([[4, 9]]))
    >>> spans.tolist()
    [0, 1]
    """
    pairs = [np.empty((2, 0), np.int64)]
    _, magnitudes = np.frexp(_range_sizes(spans).astype(float))
    for magnitude in np.unique(magnitudes).tolist():
        members = np.flatnonzero(magnitudes == magnitude)
        members = members[np.argsort(spans[members, 0], kind="stable")]
        starts = spans[members, 0]
        # Lengths are under 2**magnitude: spans that begin earlier before a window end before it.
        first = np.searchsorted(starts, windows[:, 0] - 2**magnitude, side="right")
        after = np.searchsorted(starts, windows[:, 1], side="left")
        window, place = ragged_indices(first, np.maximum(after - first, 0))
        span = members[place]
        meets = spans[span, 1] > windows[window, 0]
        pairs.append(np.stack((window[meets], span[meets])))
    window, span = np.concatenate(pairs, axis=1)
    return window, span


def ideal_gain(
    query: Numbers,
    amounts: Scores,
    limit: Numbers,
) -> Scores:
    """Each query's largest possible discounted gain: each relevant document in one piece, the richest first.

    A piece comes from one document, so no ranking gains more by any rank. `amounts` are relevant units per document;
    `limit` is each query's depth.

    >>> ideal_gain(np.array([0, 0]), np.array([1.0, 1.0]), np.array([1])).tolist()
    [1.0]
    """
    order = np.lexsort((-amounts, query))
    query, amounts = query[order], amounts[order]
    rank = running(np.ones_like(query), query)
    kept = rank < limit[query]
    gains = amounts[kept] * discount(rank[kept])
    return _sums(query[kept], gains, len(limit))


def first_cover(
    ranges: Ranges,
    owner: Numbers,
    owners: int,
) -> Scores:
    """How many positions each owner covers first; the lower owner is first. `ranges`: shape (n, 2); `owner`: shape
    (n,).

    The ranges are painted over each other, the first owner's last: time is linear in the edges that they cover.

    >>> first_cover(np.array([[0, 4], [2, 6], [0, 9]]), np.array([0, 1, 2]), 3).tolist()
    [4.0, 2.0, 3.0]
    """
    edges, places = np.unique(ranges, return_inverse=True)
    painted = np.full(max(0, len(edges) - 1), owners)
    order = np.argsort(-owner, kind="stable")
    stretches = places.reshape(ranges.shape)[order].tolist()
    for number, (start, end) in zip(owner[order].tolist(), stretches, strict=True):
        painted[start:end] = number
    return _sums(painted, np.diff(edges), owners + 1)[:owners]


def running(values: NDArray[_Number], group: Numbers) -> NDArray[_Number]:
    """The sum of the earlier values in each value's group; groups ascend.

    >>> running(np.array([5, 2, 1, 4]), np.array([0, 0, 0, 3])).tolist()
    [0, 5, 7, 0]
    """
    before = np.cumsum(values) - values
    begins = np.concatenate(([True], group[1:] != group[:-1]))[: len(group)]
    before -= before[np.maximum.accumulate(np.where(begins, np.arange(len(group)), 0))]
    return before


def discount(rank: Numbers) -> Scores:
    """1 / log2(rank + 2), rank from 0."""
    return np.asarray(1 / np.log2(rank + 2.0))


def divide(above: Scores, below: Scores) -> Scores:
    """The quotient; 0 if the denominator is 0."""
    return np.divide(above, below, out=np.zeros_like(above), where=below != 0)
