"""Counts per query in one unit: relevant, retrieved, and both.

Units lie on an axis. Retrieved pieces become a `SpanTable`, with queries and ranks `RankedSpans`. `Relevance` holds
the evidence and counts ranked spans against it: `Counts`, the input of measures. The axis repeats all units for
each query, so that a few array operations count all queries at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from chunkcore.errors import DataError
from chunkcore.run import PieceColumns, Retrieved
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


class CharacterAxis:
    """Every document's characters in a row. A gap of one keeps neighbouring documents from touching."""

    def __init__(self, documents: Sequence[Document]) -> None:
        self.numbers = {document.id: number for number, document in enumerate(documents)}
        self.sizes = np.array([document.size for document in documents], dtype=np.int64)
        self.bases = np.cumsum(self.sizes + 1) - self.sizes - 1
        self.size = int((self.sizes + 1).sum())

    def ranges(self, characters: Ranges) -> Ranges:
        return characters

    def documents(self, characters: Ranges) -> Numbers:
        return np.searchsorted(self.bases, characters[:, 0], side="right") - 1


class StartAxis:
    """Units of which each begins in a document, in a row; a unit belongs to the range in which it begins."""

    def __init__(
        self,
        characters: CharacterAxis,
        documents: Sequence[Document],
        starts: Callable[[str], Numbers],
    ) -> None:
        begins = [np.empty(0, dtype=np.int64)]
        for base, document in zip(characters.bases, documents, strict=True):
            begins.append(base + starts(document.text))
        self.begins: Numbers = np.concatenate(begins)
        self._first_of_document = np.searchsorted(self.begins, characters.bases)
        self._characters = characters
        self.size = len(self.begins)

    def ranges(self, characters: Ranges) -> Ranges:
        """The units that begin in each range of characters.

        A range inside one unit is that unit: part of a token costs the token, and short evidence is one unit.
        """
        first, after = np.searchsorted(self.begins, characters).T
        least = self._first_of_document[self._characters.documents(characters)]
        around = np.maximum(first - 1, least)
        return np.column_stack((np.where(first == after, around, first), after))


# Units numbered from 0; `ranges` maps ranges of characters to ranges of units.
Axis = CharacterAxis | StartAxis


@dataclass(frozen=True, eq=False)
class SpanTable:
    """Pieces, each with any number of spans: `owner` (each span's piece, ascending) and `characters` (its range).

    `is_copy` marks the places of pieces' sources, which are found and not shown. `texts` has the texts of pieces that
    are counted by them: unlocated ones, and those that hold evidence word for word (`quoted`: the words of each of the
    piece's spans). `documents` has each piece's document number; unknown documents are numbered too, equal ids alike.
    """

    owner: Numbers
    characters: Ranges
    is_copy: Flags
    texts: dict[int, str]
    documents: Numbers
    quoted: dict[int, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        pieces: Sequence[Retrieved],
        axis: CharacterAxis,
        source: str,
    ) -> SpanTable:
        """The pieces in order. Raises `DataError`: a span ends after its document, or an unknown one has no text."""
        documents, plain = _plain_rows(pieces, axis)
        numbers: dict[str | int, int] = {}
        numbers.update(axis.numbers)
        texts, quoted = {}, {}
        spans: list[tuple[int, ...]] = []
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
            if is_placed and piece.match == "quoted":
                quoted[number] = tuple(part.text for part in piece.parts)
            if not is_placed or number in quoted:
                texts[number] = piece.text
            for place in (piece, *piece.sources):
                if place.document_id in axis.numbers:
                    at = number, axis.numbers[place.document_id], place is not piece
                    spans += [(*at, span.start, span.end) for span in place.spans]
        rows = np.concatenate((plain, np.array(spans, dtype=np.int64).reshape(-1, 5)))
        rows = _inside(rows[np.argsort(rows[:, 0], kind="stable")], axis, source)
        owner, document, copied = rows[:, :3].T
        characters = rows[:, 3:] + axis.bases[document, None]
        return cls(owner, characters, copied.astype(np.bool_), texts, documents, quoted)

    def spans_of(self, pieces: Numbers) -> tuple[Numbers, Numbers]:
        """All spans of some pieces (repeats allowed): their places in `pieces`, and the spans."""
        first = self._first[pieces]
        return ragged_indices(first, self._first[pieces + 1] - first)

    @cached_property
    def _first(self) -> Numbers:
        """Each piece's first span; one more for the end."""
        return np.searchsorted(self.owner, np.arange(len(self.documents) + 1))


def _plain_rows(pieces: Sequence[Retrieved], axis: CharacterAxis) -> tuple[Numbers, Ranges]:
    """Each piece's document number, -1 if it is to be read alone; and the others' spans.

    A row is the piece, its document, whether it is a copy, start and end.
    """
    if not isinstance(pieces, PieceColumns):
        return np.full(len(pieces), -1, dtype=np.int64), np.empty((0, 5), dtype=np.int64)
    numbers = [axis.numbers.get(name, -1) for name in pieces.documents]
    documents = np.array([*numbers, -1], dtype=np.int64)[pieces.document]
    plain = np.flatnonzero(documents >= 0)
    columns = (
        plain,
        documents[plain],
        np.zeros_like(plain),
        pieces.starts[plain],
        pieces.ends[plain],
    )
    return documents, np.column_stack(columns)


def _inside(rows: Ranges, axis: CharacterAxis, source: str) -> Ranges:
    """The spans inside their documents. Raises `DataError` for another, unless it is a copy's."""
    is_outside = rows[:, 4] > axis.sizes[rows[:, 1]]
    for number, document, is_copy, _, end in rows[is_outside].tolist():
        if not is_copy:
            name, size = list(axis.numbers)[document], axis.sizes[document]
            raise DataError(
                f"{source}: a span of piece {number} ends at {end}, its document {name!r} at {size}"
            )
    return rows[~is_outside]


@dataclass(frozen=True, eq=False)
class RankedSpans:
    """The retrieved pieces of all queries, by query and then by rank.

    `piece`, `query` and `rank` (from 0) are arrays with one entry per answer; `piece` is a number in `pieces`.
    """

    pieces: SpanTable
    piece: Numbers
    query: Numbers
    rank: Numbers

    def per_query(self, queries: int) -> Numbers:
        return np.bincount(self.query, minlength=queries).astype(np.int64)

    def best(self, k: Numbers) -> RankedSpans:
        """The best `k` pieces of each query; `k` has one number per query."""
        kept = self.rank < k[self.query]
        return RankedSpans(self.pieces, self.piece[kept], self.query[kept], self.rank[kept])

    def documents(self, axis: CharacterAxis) -> RankedSpans:
        """The pieces' documents, each once a query, at its first rank. An unknown document is irrelevant."""
        document = self.pieces.documents[self.piece]
        # One number per pair of query and document sorts many times faster than pairs.
        pair = self.query * (document.max(initial=0) + 1) + document
        _, first, row = np.unique(pair, return_index=True, return_inverse=True)
        order = np.argsort(first)
        first = first[order]
        query, document = self.query[first], document[first]
        number = np.arange(len(first), dtype=np.int64)
        is_known = document < len(axis.sizes)
        begins = axis.bases[document[is_known]]
        answer, span = self.pieces.spans_of(self.piece)
        is_copy = self.pieces.is_copy[span]
        copies = np.argsort(order)[row[answer[is_copy]]]
        owner = np.concatenate((number[is_known], copies))
        characters = np.concatenate(
            (np.column_stack((begins, begins + 1)), self.pieces.characters[span[is_copy]])
        )
        by_owner = np.argsort(owner, kind="stable")
        pieces = SpanTable(
            owner[by_owner],
            characters[by_owner],
            by_owner >= len(begins),
            dict.fromkeys(number[~is_known].tolist(), ""),
            document,
        )
        return RankedSpans(pieces, number, query, running(np.ones_like(query), query))

    def within(
        self,
        budget: int,
        axis: StartAxis,
        counted: UnitTable,
        cut_text: Callable[[str, int], str],
    ) -> RankedSpans:
        """The best pieces of each query until it has `budget` tokens, repeats included; the last piece is cut there.

        `axis` is of tokens, `counted` has `pieces` in them; `cut_text` gives the first tokens of an unlocated text.
        """
        left = budget - running(counted.sizes[self.piece], self.query)
        kept = left > 0
        piece, left = self.piece[kept], left[kept]
        answer, span = self.pieces.spans_of(piece)
        characters = self.pieces.characters[span]
        is_copy = self.pieces.is_copy[span]
        tokens = counted.ranges[span]
        lengths = np.where(is_copy, 0, _range_sizes(tokens))
        room = left[answer] - running(lengths, answer)
        over = np.flatnonzero((lengths > room) & (room > 0))
        characters[over, 1] = axis.begins[tokens[over, 0] + room[over]]
        # Tokens inside one character begin at one place: a cut between them leaves nothing.
        is_kept = (room > 0) & (characters[:, 1] > characters[:, 0])
        is_whole = counted.sizes[piece] <= left
        is_kept = np.where(is_copy, is_whole[answer], is_kept)
        texts = {}
        for number in np.flatnonzero(np.isin(piece, list(self.pieces.texts))).tolist():
            name = int(piece[number])
            texts[number] = cut_text(self.pieces.texts[name], int(left[number]))
            if name in self.pieces.quoted:
                # Evidence counts where its words are before the cut.
                places = np.flatnonzero((answer == number) & ~is_copy)
                is_kept[places] = [quote in texts[number] for quote in self.pieces.quoted[name]]
                characters[places] = self.pieces.characters[span[places]]
        pieces = SpanTable(
            answer[is_kept],
            characters[is_kept],
            is_copy[is_kept],
            texts,
            self.pieces.documents[piece],
        )
        return RankedSpans(pieces, np.arange(len(piece)), self.query[kept], self.rank[kept])


class UnitTable(NamedTuple):
    """A span table in one unit: each span's range, and each piece's size, repeats included."""

    ranges: Ranges
    sizes: Numbers


class Relevance:
    """Every query's evidence in one unit: `query` is the query of each piece of evidence, ascending.

    A piece has a range in `evidence` for each of its spans; `owner` is each range's piece.

    `text_size` counts the units of unlocated texts.
    """

    def __init__(
        self,
        axis: Axis,
        evidence: SpanTable,
        query: Numbers,
        queries: int,
        text_size: Callable[[list[str]], Sequence[int] | Numbers],
    ) -> None:
        self._axis = axis
        self._text_size = text_size
        self._queries = queries
        # One more than the units, so that the ranges of two queries never touch.
        self.stride = axis.size + 1
        self._query = query
        self.owner = evidence.owner
        self._query_of_range = query[self.owner]
        shift = self._query_of_range * self.stride
        self.evidence = axis.ranges(evidence.characters) + shift[:, None]
        self.union = union_ranges(self.evidence)
        self.relevant = self.lengths(self.union)
        self._documents = evidence.documents[self.owner]

    def count(self, table: SpanTable) -> UnitTable:
        """Pieces in this unit; an unlocated piece has the units of its text."""
        ranges = self._axis.ranges(table.characters)
        shown = np.where(table.is_copy, 0, _range_sizes(ranges))
        sizes = _sums(table.owner, shown, len(table.documents)).astype(np.int64)
        if table.texts:
            sizes[list(table.texts)] = self._text_size(list(table.texts.values()))
        return UnitTable(ranges, sizes)

    def lengths(self, union: Ranges) -> Scores:
        """The units of each query in disjoint ranges."""
        query = union[:, 0] // self.stride
        return _sums(query, _range_sizes(union), self._queries)

    def by_piece(self, owner: Numbers, ranges: Ranges) -> Scores:
        """The units of each piece of evidence in ranges, each of which lies in the range of this number."""
        return _sums(self.owner[owner], _range_sizes(ranges), len(self._query))

    def by_query(self, shares: Scores) -> tuple[tuple[float, ...], ...]:
        """One value per piece of evidence, grouped by query."""
        ends = np.cumsum(np.bincount(self._query, minlength=self._queries))
        return tuple(tuple(part.tolist()) for part in np.split(shares, ends)[:-1])

    @cached_property
    def by_document(self) -> tuple[Numbers, Scores]:
        """Each query's relevant documents: the query, and the document's relevant units."""
        pairs = np.column_stack((self._query_of_range, self._documents))
        pairs, number = np.unique(pairs, axis=0, return_inverse=True)
        shift = (number.reshape(-1) - self._query_of_range) * self.stride
        union = union_ranges(self.evidence + shift[:, None])
        return pairs[:, 0], _sums(union[:, 0] // self.stride, _range_sizes(union), len(pairs))


@dataclass(frozen=True, eq=False)
class Counts:
    """Ranked spans against the evidence, in one unit: the input of measures, float64, shape (queries,).

    `counted` is `spans.pieces` in this unit; `limit` is each query's depth. With `deduplicate`, a unit that
    several pieces share counts once; unlocated text counts each time.
    """

    relevance: Relevance
    spans: RankedSpans
    counted: UnitTable
    limit: Numbers
    deduplicate: bool = False

    @property
    def relevant(self) -> Scores:
        """Units of evidence."""
        return self.relevance.relevant

    @cached_property
    def retrieved(self) -> Scores:
        """Units retrieved to the measure's depth, repeats included."""
        sizes = self._sizes
        if self.deduplicate:
            is_text = np.isin(self.spans.piece, list(self.spans.pieces.texts))
            sizes = np.where(is_text, sizes, 0)
        retrieved = _sums(self.spans.query, sizes, len(self.relevant))
        if self.deduplicate:
            retrieved += self.relevance.lengths(union_ranges(self._ranges[self._is_shown]))
        return retrieved

    @cached_property
    def found(self) -> Scores:
        """Units of evidence retrieved, each once; a piece's `sources`, which say the same, are found with it."""
        inside, _ = clip_ranges(self.relevance.union, self._union)
        return self.relevance.lengths(inside)

    @cached_property
    def hit(self) -> Scores:
        """`found`, at most `retrieved`."""
        return np.minimum(self.found, self.retrieved)

    @cached_property
    def shares(self) -> Scores:
        """The retrieved share of each piece of evidence; NaN for one without a unit."""
        evidence = self.relevance.evidence
        inside, owner = clip_ranges(evidence, self._union)
        lengths = self.relevance.by_piece(np.arange(len(evidence)), evidence)
        lengths[lengths == 0] = math.nan
        return np.asarray(self.relevance.by_piece(owner, inside) / lengths)

    @cached_property
    def ranking(self) -> Ranking:
        """The counts piece by piece."""
        spans, is_shown = self.spans, self._is_shown
        relevant, span = clip_ranges(self._ranges[is_shown], self.relevance.union)
        new = first_cover(relevant, self._placed[0][is_shown][span], len(spans.piece))
        ideal = ideal_gain(*self.relevance.by_document, self.limit)
        return Ranking(spans.query, spans.rank, new, self._sizes, ideal)

    @cached_property
    def _placed(self) -> tuple[Numbers, Numbers]:
        """The answers' spans: the answer, and the span."""
        return self.spans.pieces.spans_of(self.spans.piece)

    @cached_property
    def _is_shown(self) -> Flags:
        return np.asarray(~self.spans.pieces.is_copy[self._placed[1]])

    @cached_property
    def _ranges(self) -> Ranges:
        """The units of each answer's spans, of each query apart."""
        answer, span = self._placed
        shift = self.spans.query[answer] * self.relevance.stride
        return np.asarray(self.counted.ranges[span] + shift[:, None])

    @cached_property
    def _union(self) -> Ranges:
        """What is retrieved, and the places that say the same."""
        return union_ranges(self._ranges)

    @property
    def _sizes(self) -> Scores:
        return self.counted.sizes[self.spans.piece].astype(np.float64)


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
    return np.bincount(owner, amounts, minlength=owners).astype(np.float64)


def meeting_pairs(spans: Ranges, windows: Ranges) -> tuple[Numbers, Numbers]:
    """Every window and span that share a position: two int64 arrays of numbers.

    Spans may overlap. Spans of like length (within a factor of two) are looked up together, so the work grows with the
    result, not with the longest span.

    >>> windows, spans = meeting_pairs(np.array([[0, 5], [3, 9], [9, 12]]), np.array([[4, 9]]))
    >>> spans.tolist()
    [0, 1]
    """
    pairs = [np.empty((2, 0), dtype=np.int64)]
    _, magnitudes = np.frexp(_range_sizes(spans).astype(np.float64))
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


_Number = TypeVar("_Number", np.int64, np.float64)


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
