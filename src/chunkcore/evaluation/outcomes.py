"""What each query was answered with, counted in one unit: relevant, retrieved, and both at once."""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from chunkcore.columns import SortedNumbers
from chunkcore.document import Document
from chunkcore.errors import DataError
from chunkcore.evaluation.benchmarks.benchmark import parts_of
from chunkcore.evaluation.measures import MeasureName
from chunkcore.evaluation.results import Scores
from chunkcore.run import Retrieved
from chunkcore.spans import Ranges, as_ranges, union_ranges

__all__ = [
    "RANK_MEASURES",
    "Axis",
    "CharacterAxis",
    "Counted",
    "Coverage",
    "DocumentAxis",
    "Numbers",
    "Outcome",
    "PartAxis",
    "RankedSpans",
    "Ranking",
    "Relevance",
    "SpanTable",
    "StartAxis",
    "expand",
    "first_cover",
    "flatten",
    "ideal_gain",
    "meeting_pairs",
    "running",
]

Numbers = NDArray[np.int64]


class Axis(Protocol):
    """Units numbered from 0, and which of them a range of characters holds."""

    @property
    def size(self) -> int: ...

    def ranges(self, characters: Ranges) -> Ranges: ...


class CharacterAxis:
    """Every document's characters, one document after the other, with a gap of one between two.

    The gap keeps the end of a document from touching the beginning of the next.
    """

    def __init__(self, documents: Sequence[Document]) -> None:
        self.numbers = {document.id: number for number, document in enumerate(documents)}
        self.sizes = np.array([document.size for document in documents], dtype=np.int64)
        self.bases = np.cumsum(self.sizes + 1) - self.sizes - 1
        self.size = int((self.sizes + 1).sum())

    def ranges(self, characters: Ranges) -> Ranges:
        """The characters themselves."""
        return characters

    def documents(self, characters: Ranges) -> Numbers:
        """The number of each range's document."""
        return np.searchsorted(self.bases, characters[:, 0], side="right") - 1


class StartAxis:
    """Every document's tokens or sentences, numbered one document after the other.

    A unit is known by where it begins, and belongs to the range in which it does.
    """

    def __init__(
        self, characters: CharacterAxis, documents: Sequence[Document], starts: Callable[[str], Numbers]
    ) -> None:
        # 200 million tokens are 0.8 GB in 32 bits.
        self._begins = SortedNumbers(np.dtype("u4" if characters.size < 2**32 else "u8"))
        for base, document in zip(characters.bases.tolist(), documents, strict=True):
            self._begins.append(base + starts(document.text))
        self._characters = characters
        self.size = len(self._begins)

    def ranges(self, characters: Ranges) -> Ranges:
        """Of each range of the character axis the units that begin in it.

        A range inside of one unit, in which none begins, is that unit: whoever retrieves a part of a
        token pays for it, and evidence of a few letters is never evidence of nothing.
        """
        first = self._begins.first_from(characters[:, 0])
        after = self._begins.first_from(characters[:, 1])
        least = self._begins.first_from(self._characters.bases[self._characters.documents(characters)])
        return np.column_stack((np.where(first == after, np.maximum(first - 1, least), first), after))

    def begin(self, units: Numbers) -> Numbers:
        """The character at which each of some units begins."""
        return self._begins.at(units)


class DocumentAxis:
    """The documents themselves: a range of the character axis is the one in which it stands."""

    def __init__(self, characters: CharacterAxis) -> None:
        self._characters = characters
        self.size = len(characters.sizes)

    def ranges(self, characters: Ranges) -> Ranges:
        """Of each range its document, as a range of one."""
        document = self._characters.documents(characters)
        return np.column_stack((document, document + 1))


class PartAxis:
    """The originals of stitched documents (`parts_of`): a range holds those that it shares a character with."""

    def __init__(self, characters: CharacterAxis, documents: Sequence[Document]) -> None:
        found = [as_ranges(part.span for part in parts_of(document)) for document in documents]
        bases = characters.bases.tolist()
        moved = [base + each for base, each in zip(bases, found, strict=True)]
        self._parts: Ranges = np.concatenate([np.empty((0, 2), dtype=np.int64), *moved])
        self.size = len(self._parts)

    def ranges(self, characters: Ranges) -> Ranges:
        """Of each range the parts that it shares a character with; none between two of them."""
        first = np.searchsorted(self._parts[:, 1], characters[:, 0], side="right")
        after = np.searchsorted(self._parts[:, 0], characters[:, 1], side="left")
        return np.column_stack((first, np.maximum(first, after)))


class Coverage:
    """Positions that sorted, disjoint ranges cover, ready to be asked how many lie in other ranges."""

    def __init__(self, union: Ranges) -> None:
        lengths = union[:, 1] - union[:, 0]
        self._edges = union.reshape(-1)
        # Covered positions before each edge; between two edges the count grows, or stands still.
        self._before = np.column_stack((np.cumsum(lengths) - lengths, np.cumsum(lengths))).reshape(-1)

    def lengths(self, ranges: Ranges) -> Numbers:
        """How many covered positions lie in each range, int64."""
        return self._up_to(ranges[:, 1]) - self._up_to(ranges[:, 0])

    def _up_to(self, positions: Numbers) -> Numbers:
        if not len(self._edges):
            return np.zeros(len(positions), dtype=np.int64)
        edge = np.searchsorted(self._edges, positions, side="right") - 1
        inside = edge % 2 == 0  # also true of no edge but -1, which is odd
        known = np.maximum(edge, 0)
        grown = np.where(inside, positions - self._edges[known], 0)
        return np.where(edge < 0, 0, self._before[known] + grown)


@dataclass(frozen=True, eq=False)
class SpanTable:
    """Pieces, each with any number of spans.

    Attributes:
        count: how many pieces.
        owner: of each span, the piece that it belongs to; ascending.
        characters: of each span, its range on the character axis.
        texts: by piece, the text of those that stand nowhere in the documents.
        documents: of each piece, its document's number; one that no document has where it is not known,
            the same for pieces that name the same unknown document.
    """

    count: int
    owner: Numbers
    characters: Ranges
    texts: dict[int, str]
    documents: Numbers

    @classmethod
    def of(cls, retrieved: Iterable[Retrieved], axis: CharacterAxis, source: str) -> SpanTable:
        """The pieces, in order.

        Raises:
            DataError: a span ends after its document, or a piece is of no known document and has no text.
        """
        rows = array("q")
        texts: dict[int, str] = {}
        documents = array("q")
        unknown: dict[str, int] = {}
        for number, piece in enumerate(retrieved):
            document = axis.numbers.get(piece.document_id)
            if document is not None:
                documents.append(document)
            elif piece.document_id:
                documents.append(unknown.setdefault(piece.document_id, len(axis.numbers) + len(unknown)))
            else:
                documents.append(-1 - number)
            if document is not None and piece.spans:
                for span in piece.spans:
                    rows.extend((number, document, span.start, span.end))
            elif piece.text or not piece.spans:
                texts[number] = piece.text
            else:
                raise DataError(
                    f"{source}: piece {number} is of the document {piece.document_id!r}, which the benchmark does not "
                    "have, and has no text that could be counted: give it one, or the document"
                )
        table = np.frombuffer(rows, dtype=np.int64).reshape(-1, 4)
        _check(table, axis, source)
        characters = table[:, 2:] + axis.bases[table[:, 1], None]
        return cls(len(documents), table[:, 0], characters, texts, np.frombuffer(documents, dtype=np.int64))

    def spans_of(self, pieces: Numbers) -> tuple[Numbers, Numbers]:
        """Of some pieces (one may come several times) all spans: the place in `pieces`, and the span."""
        first = np.searchsorted(self.owner, pieces, side="left")
        counts = np.searchsorted(self.owner, pieces, side="right") - first
        return expand(first, counts)


def _check(table: Numbers, axis: CharacterAxis, source: str) -> None:
    outside = np.flatnonzero(table[:, 3] > axis.sizes[table[:, 1]])
    if len(outside):
        number, document, _, end = table[outside[0]].tolist()
        raise DataError(
            f"{source}: a span of piece {number} ends at {end}, its document {list(axis.numbers)[document]!r} at "
            f"{axis.sizes[document]}: spans are code points of the benchmark's own text"
        )


def meeting_pairs(spans: Ranges, windows: Ranges) -> tuple[Numbers, Numbers]:
    """Every window and span that share a position, as two int64 arrays of their numbers.

    Spans may overlap and be of any length: those of like length (within a factor of two) are looked up
    together, so the work grows with the answer and not with the longest span.

    >>> windows, spans = meeting_pairs(np.array([[0, 5], [3, 9], [9, 12]]), np.array([[4, 9]]))
    >>> spans.tolist()
    [0, 1]
    """
    found = [np.empty((2, 0), dtype=np.int64)]
    magnitudes = np.frexp((spans[:, 1] - spans[:, 0]).astype(np.float64))[1]
    for magnitude in np.unique(magnitudes).tolist():
        members = np.flatnonzero(magnitudes == magnitude)
        members = members[np.argsort(spans[members, 0], kind="stable")]
        starts = spans[members, 0]
        # Lengths are under 2**magnitude: what begins earlier than that before a window ends before it.
        first = np.searchsorted(starts, windows[:, 0] - 2**magnitude, side="right")
        after = np.searchsorted(starts, windows[:, 1], side="left")
        window, place = expand(first, np.maximum(after - first, 0))
        span = members[place]
        meets = spans[span, 1] > windows[window, 0]
        found.append(np.stack((window[meets], span[meets])))
    window, span = np.concatenate(found, axis=1)
    return window, span


def expand(first: Numbers, counts: Numbers) -> tuple[Numbers, Numbers]:
    """For each row i the numbers first[i] ... first[i] + counts[i] - 1, beside i."""
    row = np.repeat(np.arange(len(first), dtype=np.int64), counts)
    within = np.arange(len(row), dtype=np.int64) - np.repeat(np.cumsum(counts) - counts, counts)
    return row, first[row] + within


def flatten(results: Sequence[Sequence[Retrieved]]) -> tuple[list[Retrieved], Numbers, Numbers]:
    """All pieces of all queries, with the query and the rank of each."""
    sizes = np.array([len(each) for each in results], dtype=np.int64)
    query, rank = expand(np.zeros(len(sizes), dtype=np.int64), sizes)
    return [piece for each in results for piece in each], query, rank


@dataclass(frozen=True, eq=False)
class RankedSpans:
    """Pieces, and who is answered with which: three arrays side by side, by query and then by rank.

    Attributes:
        pieces: all pieces, each of one answer.
        piece: of each answer, its number among them; ascending.
        query: of each answer, the query's number; ascending.
        rank: of each answer, from 0.
    """

    pieces: SpanTable
    piece: Numbers
    query: Numbers
    rank: Numbers

    @classmethod
    def of(cls, results: Sequence[Sequence[Retrieved]], axis: CharacterAxis, source: str) -> RankedSpans:
        """Every query's results, in the queries' order."""
        retrieved, query, rank = flatten(results)
        return cls(SpanTable.of(retrieved, axis, source), np.arange(len(retrieved), dtype=np.int64), query, rank)

    def best(self, k: int | Numbers) -> RankedSpans:
        """The best k of each query; k is one for all queries or one of each."""
        kept = np.flatnonzero(self.rank < (k if isinstance(k, int) else k[self.query]))
        return RankedSpans(self.pieces, self.piece[kept], self.query[kept], self.rank[kept])

    def documents(self, axis: CharacterAxis) -> RankedSpans:
        """The documents that the pieces come from, each once a query, where it first comes up.

        A piece of no known document is an irrelevant one; two of one unknown id are of one.
        """
        document = self.pieces.documents[self.piece]
        least = document.min(initial=0)
        # One number for each pair of query and document, which sorts many times faster than pairs.
        pair = self.query * (document.max(initial=0) - least + 1) + (document - least)
        first = np.sort(np.unique(pair, return_index=True)[1])
        query, document = self.query[first], document[first]
        number = np.arange(len(first), dtype=np.int64)
        known = np.flatnonzero((document >= 0) & (document < len(axis.sizes)))
        begins = axis.bases[document[known]]
        unknown = np.setdiff1d(number, known).tolist()
        pieces = SpanTable(
            len(first), known, np.column_stack((begins, begins + 1)), dict.fromkeys(unknown, ""), document
        )
        return RankedSpans(pieces, number, query, running(np.ones_like(query), query))

    def within(self, budget: int, axis: StartAxis, sizes: Numbers, cut_text: Callable[[str, int], str]) -> RankedSpans:
        """The best pieces of each query until it has `budget` tokens; the last one is cut there.

        Args:
            budget: tokens, counted as retrieved ones are: repeats included.
            axis: the tokens'.
            sizes: of every piece, its tokens.
            cut_text: the beginning of a text that stands nowhere, so many tokens long.
        """
        left = budget - running(sizes[self.piece], self.query)
        kept = np.flatnonzero(left > 0)
        piece, left = self.piece[kept], left[kept]
        answer, span = self.pieces.spans_of(piece)
        characters = self.pieces.characters[span]
        tokens = axis.ranges(characters)
        lengths = tokens[:, 1] - tokens[:, 0]
        room = left[answer] - running(lengths, answer)
        over = np.flatnonzero((lengths > room) & (room > 0))
        characters[over, 1] = axis.begin(tokens[over, 0] + room[over])
        # Tokens of one character begin at the same place: where the cut is between them, nothing is left.
        whole = (room > 0) & (characters[:, 1] > characters[:, 0])
        texts = (
            {
                number: cut_text(self.pieces.texts[old], int(left[number]))
                for number, old in enumerate(piece.tolist())
                if old in self.pieces.texts
            }
            if self.pieces.texts
            else {}
        )
        pieces = SpanTable(len(kept), answer[whole], characters[whole], texts, self.pieces.documents[piece])
        return RankedSpans(pieces, np.arange(len(kept), dtype=np.int64), self.query[kept], self.rank[kept])


_Number = TypeVar("_Number", np.int64, np.float64)


def running(values: NDArray[_Number], group: Numbers) -> NDArray[_Number]:
    """The sum of the values before each one in its group; groups are ascending.

    >>> running(np.array([5, 2, 1, 4]), np.array([0, 0, 0, 3])).tolist()
    [0, 5, 7, 0]
    """
    before: NDArray[_Number] = np.cumsum(values) - values
    before -= before[np.searchsorted(group, group, side="left")]
    return before


RANK_MEASURES: tuple[MeasureName, ...] = ("HitRate", "MRR", "MAP", "nDCG", "DCG", "ChunkPrecision")


@dataclass(frozen=True, eq=False)
class Ranking:
    """Ranked answers, by query and then by rank, in one unit.

    Attributes:
        query: of each answer, its query's number, shape (answers,).
        rank: of each answer, from 0.
        new: of each answer, the relevant units that no better one of its query held.
        sizes: of each answer, all of its units, repeats included.
        relevant: of each query, its relevant units, shape (queries,).
        ideal: of each query, the most that the sum of nDCG can be.
    """

    query: Numbers
    rank: Numbers
    new: Scores
    sizes: Scores
    relevant: Scores
    ideal: Scores

    def value(self, name: MeasureName) -> Scores:
        """The measure's score of each query; nothing retrieved scores 0, no unit of evidence NaN."""
        # The share of each piece that is what it brings: the gain of papers that score chunks by their density.
        share, discount = _divide(self.new, self.sizes), _discount(self.rank)
        found: dict[str, Callable[[], Scores]] = {
            "HitRate": self._hit_rate,
            "MRR": self._reciprocal_rank,
            "MAP": self._average_precision,
            "nDCG": lambda: _divide(self._sum(self.new * discount), self.ideal),
            "DCG": lambda: self._sum(share * discount),
            "ChunkPrecision": lambda: _divide(self._sum(share), self._sum(np.ones_like(share))),
        }
        return np.where(self.relevant == 0, math.nan, found[name]())

    def _hit_rate(self) -> Scores:
        return (self._sum(self.new) > 0).astype(np.float64)

    def _reciprocal_rank(self) -> Scores:
        best = np.zeros(len(self.relevant))
        brings = self.new > 0
        np.maximum.at(best, self.query[brings], 1 / (self.rank[brings] + 1.0))
        return best

    def _average_precision(self) -> Scores:
        found = running(self.new, self.query) + self.new
        seen = running(self.sizes, self.query) + self.sizes
        return _divide(self._sum(self.new * _divide(found, seen)), self.relevant)

    def _sum(self, values: Scores) -> Scores:
        return np.bincount(self.query, values, minlength=len(self.relevant)).astype(np.float64)


def _discount(rank: Numbers) -> Scores:
    return np.asarray(1 / np.log2(rank + 2.0))


def _divide(above: Scores, below: Scores) -> Scores:
    return np.divide(above, below, out=np.zeros_like(above), where=below > 0)


def ideal_gain(query: Numbers, amounts: Scores, limit: Numbers) -> Scores:
    """The largest discounted gain, whatever the pieces: each relevant document in one of them, the richest first.

    A piece comes from one document. So no ranking brings more by any rank than the documents that hold most.

    Args:
        query: of each relevant document, the query's number.
        amounts: of each relevant document, its relevant units.
        limit: of each query, how many pieces are looked at, shape (queries,).

    >>> ideal_gain(np.array([0, 0]), np.array([1.0, 1.0]), np.array([1])).tolist()
    [1.0]
    """
    order = np.lexsort((-amounts, query))
    query, amounts = query[order], amounts[order]
    rank = running(np.ones_like(query), query)
    kept = rank < limit[query]
    gains = amounts[kept] * _discount(rank[kept])
    return np.bincount(query[kept], gains, minlength=len(limit)).astype(np.float64)


def first_cover(ranges: Ranges, owner: Numbers, owners: int) -> Scores:
    """How many positions each owner is the first to cover; of two, the one of the lower number was first.

    Args:
        ranges: shape (n, 2).
        owner: of each range, shape (n,).
        owners: how many there are.

    Time O(n log n), whatever the ranges overlap: each stretch between two edges is given the lowest owner of
    the blocks of a power of two of stretches that cover it, handed down from the long blocks to the short.

    >>> first_cover(np.array([[0, 4], [2, 6], [0, 9]]), np.array([0, 1, 2]), 3).tolist()
    [4.0, 2.0, 3.0]
    """
    edges, places = np.unique(ranges, return_inverse=True)
    if not len(edges):
        return np.zeros(owners)
    places = places.reshape(ranges.shape)
    counts = places[:, 1] - places[:, 0]
    level = np.frexp(counts.astype(np.float64))[1] - 1
    nobody = owners
    first = np.full(len(edges), nobody, dtype=np.int64)
    for power in range(int(level.max()), -1, -1):
        here = np.flatnonzero((level == power) & (counts > 0))
        np.minimum.at(first, places[here, 0], owner[here])
        np.minimum.at(first, places[here, 1] - 2**power, owner[here])
        if power:
            half = 2 ** (power - 1)
            handed = first.copy()
            handed[half:] = np.minimum(handed[half:], first[:-half])
            first = handed
    lengths = np.append(np.diff(edges), 0)
    return np.bincount(first, lengths, minlength=owners + 1)[:owners].astype(np.float64)


@dataclass(frozen=True, eq=False)
class Counted:
    """Pieces in one unit: the range of each span, and the size of each piece, repeats included."""

    pieces: SpanTable
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
        evidence: SpanTable,
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

    def count(self, pieces: SpanTable) -> Counted:
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

    def ranking(self, counted: Counted, answers: RankedSpans, limit: Numbers) -> Ranking:
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
