"""Windows of units at every size: their cosines and their BM25 scores for a question, standardised and added up."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from chunkcore.errors import DataError, ModelError
from chunkcore.retrieval.corpus import ChunkedCorpus
from chunkcore.retrieval.lexicon import Postings, word_keys
from chunkcore.retrieval.search import Rows, products
from chunkcore.spans import Numbers, Scores

_BLOCK = 2**16  # units whose windows are scored together: what a block needs stays in the processor's cache
_WIDE = 2**15  # up to so many units, float64 is used; float32 halves time and memory, and differs by about 1e-6
_SKETCHED = 2**16  # with `hits`: in more units, near vectors are found by their signs first
_REREAD = 16  # vectors read for a hit
_LOOKED_UP = 2**17  # with `hits`: postings of a question's rarest words
_SAME = 1e-6  # a smaller deviation, relative to the largest score (of cosines: to 1), is rounding

Reals = NDArray[np.floating]
Weights = Mapping[str, NDArray[np.float64]]  # of a word, by its key: its inverse document frequency at each scale
_Vector = tuple[Reals, float]
_Word = tuple[NDArray[np.int32], NDArray[Any], NDArray[np.float64]]  # its units, how often in each, weights by scale


class Ranges:
    """Consecutive ranges of units, each of one document; `firsts` is each range's first, and how many units there are.

    Attributes:
        numbers: of the units; None for all.
    """

    firsts: Numbers
    numbers: Numbers | None = None

    def __len__(self) -> int:
        return int(self.firsts[-1])

    @property
    def lengths(self) -> Numbers:
        return self.firsts[1:] - self.firsts[:-1]

    def documents(self, numbers: Numbers) -> Numbers:
        """The range of each unit."""
        found: Numbers = np.searchsorted(self.firsts, numbers, side="right") - 1
        return found

    def of(self, values: NDArray[Any]) -> NDArray[Any]:
        """What belongs to these units."""
        return values if self.numbers is None else values[self.numbers]

    def windows(self, half: int, first: int = 0, last: int | None = None) -> tuple[Numbers, Numbers]:
        """The first unit of each window and the one after its last, of the units from `first` to `last`."""
        until = len(self) if last is None else last
        edges = np.clip(self.firsts, first, until)
        lengths = edges[1:] - edges[:-1]
        start = np.arange(first - half, until - half, dtype=np.int64)
        end = start + (2 * half + 1)
        np.maximum(start, np.repeat(self.firsts[:-1], lengths), out=start)
        np.minimum(end, np.repeat(self.firsts[1:], lengths), out=end)
        return start, end


class Stretches(Ranges):
    """Ranges of units, ascending: `starts` and `ends` are those of all units, `shifts` what a place here is less."""

    numbers: Numbers

    def __init__(self, low: Numbers, high: Numbers) -> None:
        reach = np.maximum.accumulate(high)
        new = np.flatnonzero(np.concatenate(([True], low[1:] >= reach[:-1])))
        self.starts, self.ends = low[new], reach[np.append(new[1:], len(low)) - 1]
        self.firsts = np.concatenate(([0], np.cumsum(self.ends - self.starts)))
        self.shifts = self.starts - self.firsts[:-1]
        self.numbers = np.arange(len(self), dtype=np.int64) + np.repeat(self.shifts, self.lengths)

    def places(self, numbers: Numbers) -> Numbers:
        """Where these units of all are here."""
        found: Numbers = numbers - self.shifts[np.searchsorted(self.starts, numbers, side="right") - 1]
        return found


class Units(Ranges):
    """The chunks in the order of their documents, each a range.

    Attributes:
        order: the units' numbers in the corpus; None: 0, 1, 2, ...
        named: the number of each range's document in the corpus.
    """

    def __init__(self, firsts: Numbers, order: Numbers | None = None, named: Numbers | None = None) -> None:
        self.firsts = firsts
        self.order = order
        self.named = firsts[:-1] if named is None else named

    @classmethod
    def of_corpus(cls, corpus: ChunkedCorpus) -> Units:
        """Raises `DataError`: chunks overlap."""
        documents, extents = corpus.document_numbers, corpus.extents
        order = np.lexsort((extents[:, 0], documents))
        documents, extents = documents[order], extents[order]
        same = documents[1:] == documents[:-1]
        over = np.flatnonzero(same & (extents[1:, 0] < extents[:-1, 1]))
        if len(over):
            one, other = (corpus[int(order[over[0] + i])] for i in (0, 1))
            raise DataError(
                f"passages are made of chunks that do not overlap: chunk {other.index} of {other.document_id!r} starts "
                f"at {other.start}, before chunk {one.index} ends at {one.end}; cut without overlap, such as with "
                "sentence:size=50"
            )
        firsts: Numbers = np.zeros(1, dtype=np.int64)
        if len(order):
            firsts = np.concatenate((firsts, np.flatnonzero(~same) + 1, [len(order)])).astype(np.int64)
        return cls(firsts, None if (np.diff(order) == 1).all() else order, documents[firsts[:-1]])

    def chunks(self, numbers: Numbers) -> Numbers:
        return numbers if self.order is None else self.order[numbers]

    def sorted(self, values: NDArray[Any]) -> NDArray[Any]:
        return values if self.order is None else values[self.order]

    def part(self, numbers: Numbers, reach: int, short: int = 0) -> Stretches:
        """The ranges within reach of these units, ascending, in their documents; of short documents all."""
        documents = self.documents(numbers)
        begin, end = self.firsts[documents], self.firsts[documents + 1]
        whole = end - begin <= short
        low = np.where(whole, begin, np.maximum(numbers - reach, begin))
        high = np.where(whole, end, np.minimum(numbers + reach + 1, end))
        return Stretches(low, high)

    def ranges(self, numbers: Numbers) -> Ranges:
        """The ranges of these numbers, ascending, as far as there are any."""
        known = numbers[(numbers >= 0) & (numbers < len(self.firsts) - 1)]
        return Stretches(self.firsts[known], self.firsts[known + 1]) if len(known) else Units(self.firsts[:1])

    def within(self, halves: Sequence[int]) -> list[int]:
        """The half-widths, those beyond the longest document as long as it is."""
        longest = int(self.lengths.max(initial=0))
        return [min(half, longest) for half in halves]

    def adjoin(self, one: int, other: int) -> bool:
        return other == one + 1 and other not in self._starts

    @cached_property
    def _starts(self) -> frozenset[int]:
        return frozenset(self.firsts.tolist())

    def with_gaps(self, numbers: Numbers, scores: Scores, k: int) -> Numbers:
        """The places of the k best of these units, ascending, and of the units between two of them that cost less than
        all of their document's are worth.
        """
        best = np.sort(best_of(scores, k))
        if not len(best):
            return best
        least = scores[best].min()
        documents = self.documents(numbers[best])
        worth = np.bincount(documents - documents[0], scores[best] - least)[documents - documents[0]]
        found = [int(best[0])]
        for place in range(1, len(best)):
            first, own = int(best[place - 1]) + 1, int(best[place])
            near = documents[place] == documents[place - 1] and numbers[own] - numbers[first - 1] == own - first + 1
            between = scores[first:own]
            if near and least * len(between) - between.sum() < worth[place]:
                found += range(first, own)
            found.append(own)
        return np.array(found, dtype=np.int64)


class Kind(Protocol):
    """One way of scoring windows, of a question that `asked` has prepared."""

    def asked(self, query: str, vector: Reals | None) -> Any:
        """The question, from its text and, for the dense kind, its vector."""
        ...

    def first(self, question: Any, hits: int) -> tuple[Numbers, Scores]:
        """The first hits by their own score, ascending, and their scores."""
        ...

    def values(self, question: Any, ranges: Ranges) -> Iterator[tuple[Reals, float]]:
        """At each scale the scores of these units, which may be changed, and what counts as a large score.

        Those of whole documents are one for each range.
        """
        ...


class Moments(NamedTuple):
    """Of a kind's values at one scale: how many, their mean, the sum of squares around it, what a large value is."""

    size: int
    mean: float
    squares: float
    largest: float

    @classmethod
    def of(cls, values: Reals, ranges: Ranges, largest: float) -> Moments:
        """Of one value of each unit, or of each range, for all of its units; the mean is taken off `values`."""
        size = len(ranges)
        if len(values) == size:
            mean = float(values.mean())
            values -= mean
            return cls(size, mean, float(values @ values), largest)
        mean = float(values @ ranges.lengths) / size
        values -= mean
        return cls(size, mean, float(values**2 @ ranges.lengths), largest)

    @classmethod
    def together(cls, parts: Sequence[Moments]) -> Moments:
        size = sum(part.size for part in parts)
        mean = sum(part.size * part.mean for part in parts) / size
        squares = sum(part.squares + part.size * (part.mean - mean) ** 2 for part in parts)
        return cls(size, mean, squares, max(part.largest for part in parts))

    @property
    def deviation(self) -> float:
        """0 if it is rounding."""
        found = math.sqrt(self.squares / self.size)
        return found if found > _SAME * self.largest else 0.0


Asked = Sequence[tuple[Kind, Any]]  # each kind with the question that it has prepared


def moments(asked: Asked, ranges: Ranges) -> list[Moments]:
    """Those of each kind and scale over these units."""
    return [
        Moments.of(values.astype(np.float64, copy=False), ranges, largest)
        for kind, question in asked
        for values, largest in kind.values(question, ranges)
    ]


def standardised(asked: Asked, ranges: Ranges, told: Sequence[Moments] | None = None) -> Scores:
    """Each unit's sum over kinds and scales of z · abs(z), z = (x - mean) / deviation, over these units or as told.

    Rounded to 9 decimals: running sums would tell equal windows apart.
    """
    scores = np.zeros(len(ranges))
    scales = ((values, largest) for kind, question in asked for values, largest in kind.values(question, ranges))
    for place, (values, largest) in enumerate(scales):
        wide = values.astype(np.float64, copy=False)
        if told is None:
            own = Moments.of(wide, ranges, largest)
        else:
            own = told[place]
            wide -= own.mean
        if own.deviation:
            wide *= np.abs(wide)
            wide *= 1 / own.deviation**2
            scores += wide if len(wide) == len(scores) else np.repeat(wide, ranges.lengths)
    return np.round(scores, 9, out=scores)


def best_of(scores: Scores, k: int) -> Numbers:
    """The places of the k best scores, ties by place."""
    found = np.arange(len(scores), dtype=np.int64)
    for step in (16, 1):  # the k-th best of some is no better than that of all, and few are as good
        some = scores[found[::step]]
        if k < len(some):
            found = found[scores[found] >= np.partition(some, -k)[-k]]
    best: Numbers = found[np.argsort(-scores[found], kind="stable")[:k]]
    return best


def _first(numbers: Numbers, values: Reals, hits: int) -> tuple[Numbers, Scores]:
    best = np.sort(best_of(values.astype(np.float64, copy=False), hits))
    return numbers[best], values[best].astype(np.float64)


class DenseKind:
    """Cosines of windows. One inverse length of each window's vector is kept; the vectors are not copied.

    With `hits`, 128 signs of each vector find what may be near; long documents keep their vector.
    """

    def __init__(
        self,
        units: Units,
        rows: Rows,
        tokens: Numbers,
        halves: Sequence[int],
        *,
        whole: bool,
        nearest: bool = False,
        measured: Sequence[Scores] | None = None,
    ) -> None:
        self._units = units
        self._rows = rows
        real: type[np.floating] = np.float64 if len(units) <= _WIDE else np.float32
        self._weights = np.sqrt(units.sorted(tokens)).astype(real)
        self._own = np.zeros(len(units), dtype=real)  # the inverse length of each vector
        self._halves = units.within(halves)
        self._windows = {half: np.zeros(len(units), dtype=real) for half in self._halves if half}
        self._documents = np.zeros(len(units.lengths)) if whole else None
        dimensions = rows.shape[1] if len(units) else 0
        self.short = dimensions // 4 if whole else 0  # vectors of longer documents take 16 bytes a unit at most
        long = np.flatnonzero(units.lengths > self.short) if nearest and whole else np.zeros(0, dtype=np.int64)
        self._long, self._pooled = long, np.zeros((len(long), dimensions), dtype=np.float32)
        self._planes = self._signs = None
        if nearest and len(units) > _SKETCHED and hasattr(np, "bitwise_count"):
            self._planes = np.random.default_rng(0).standard_normal((dimensions, 128))
            self._signs = np.zeros((2, len(units)), dtype=np.uint64)
        if measured is None:
            self._measure()
        else:
            for own, kept in zip(self.measured, measured, strict=True):
                own[:] = kept

    @property
    def measured(self) -> Sequence[Scores]:
        """The inverse lengths of vectors, windows and documents, which take a pass over the vectors to find."""
        return [self._own, *self._windows.values(), *([] if self._documents is None else [self._documents])]

    def _measure(self) -> None:
        units = self._units
        reach = max(self._halves, default=0)
        rest: NDArray[np.float64] | None = None
        step = max(256, 4 * reach)
        for first in range(0, len(units), step):
            last = min(first + step, len(units))
            low, high = max(0, first - reach), min(len(units), last + reach)
            own = np.arange(low, high, dtype=np.int64)
            rows = np.asarray(self._rows[units.chunks(own)], dtype=np.float64)
            lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
            inverse = np.divide(1.0, lengths, out=np.zeros(len(rows)), where=lengths > 0)
            self._own[first:last] = inverse[first - low : last - low]
            if self._signs is not None:
                self._signs[:, first:last] = self._sketch(rows[first - low : last - low])
            rows *= (inverse * self._weights[low:high])[:, None]
            sums = np.zeros((len(rows) + 1, rows.shape[1]))
            np.cumsum(rows, axis=0, out=sums[1:])
            weights = np.concatenate(([0.0], np.cumsum(self._weights[low:high], dtype=np.float64)))
            for half, kept in self._windows.items():
                start, end = units.windows(half, first, last)
                kept[first:last] = _inverse_lengths(
                    sums[end - low] - sums[start - low], weights[end - low] - weights[start - low]
                )
            if self._documents is not None:
                rest = self._measure_documents(sums, weights, low, first, last, rest)

    def _measure_documents(
        self,
        sums: NDArray[np.float64],
        weights: NDArray[np.float64],
        low: int,
        first: int,
        last: int,
        rest: NDArray[np.float64] | None,
    ) -> NDArray[np.float64] | None:
        """The lengths of documents that end in these units; returns the sum of one that goes on, with its weight."""
        units = self._units
        one, other = units.documents(np.array([first, last - 1])).tolist()
        numbers = np.arange(one, other + 1)
        starts = np.maximum(units.firsts[numbers], first) - low
        ends = np.minimum(units.firsts[numbers + 1], last) - low
        total = np.column_stack((sums[ends] - sums[starts], weights[ends] - weights[starts]))
        if rest is not None:
            total[0] += rest
        assert self._documents is not None
        inverse = _inverse_lengths(total[:, :-1], total[:, -1])
        self._documents[numbers] = inverse
        places = np.searchsorted(self._long, (one, other + 1))
        own = self._long[slice(*places)] - one
        self._pooled[slice(*places)] = total[own, :-1] * inverse[own, None]
        return total[-1] if units.firsts[other + 1] > last else None

    def _sketch(self, rows: Reals) -> NDArray[np.uint64]:
        assert self._planes is not None
        return np.ascontiguousarray(np.packbits(rows @ self._planes > 0, axis=1)).view(np.uint64).T

    def asked(self, query: str, vector: Reals | None) -> _Vector:
        """The vector and its inverse length. Raises `ModelError`: it is of another model."""
        assert vector is not None
        if len(self._units) and len(vector) != self._rows.shape[1]:
            raise ModelError(
                f"the query has {len(vector)} dimensions and the vectors {self._rows.shape[1]}: embed both with the "
                "same model"
            )
        length = float(np.linalg.norm(vector.astype(np.float64)))
        return vector, 1 / length if length else 0.0

    def _cosines(self, question: _Vector, numbers: Numbers | None) -> Scores:
        query, inverse = question
        if numbers is None:
            found = self._units.sorted(products(self._rows, query))
        else:
            found = products(self._rows, query, self._units.chunks(numbers))
        own = self._own if numbers is None else self._own[numbers]
        return np.asarray(found * own.astype(np.float64) * inverse, dtype=np.float64)

    def first(self, question: _Vector, hits: int) -> tuple[Numbers, Scores]:
        if self._signs is None:
            return _first(np.arange(len(self._units), dtype=np.int64), self._cosines(question, None), hits)
        apart = np.zeros(len(self._units), dtype=np.uint8)
        for signs, own in zip(self._signs, self._sketch(question[0][None])[:, 0], strict=True):
            apart += np.bitwise_count(signs ^ own)
        enough = max(_REREAD * hits, len(apart) // 128)
        near = np.flatnonzero(apart <= np.searchsorted(np.cumsum(np.bincount(apart, minlength=129)), enough))
        return _first(near, self._cosines(question, near), hits)

    def values(self, question: _Vector, ranges: Ranges) -> Iterator[tuple[Reals, float]]:
        if not len(ranges):
            return
        own = self._cosines(question, ranges.numbers)
        if 0 in self._halves:
            yield own.copy(), 1.0
        own *= ranges.of(self._weights)
        sums = np.concatenate(([0.0], np.cumsum(own)))
        for half in filter(None, self._halves):
            start, end = ranges.windows(half)
            values = sums[end]
            values -= sums[start]
            values *= ranges.of(self._windows[half])
            yield values, 1.0
        if self._documents is not None:
            values = sums[ranges.firsts[1:]] - sums[ranges.firsts[:-1]]
            if isinstance(ranges, Stretches):
                documents = self._units.documents(ranges.starts)
                values *= self._documents[documents]
                long = np.flatnonzero(np.isin(documents, self._long))
                values[long] = self._pooled[np.searchsorted(self._long, documents[long])] @ question[0] * question[1]
            else:
                values *= self._documents
            yield values, 1.0


def _inverse_lengths(vectors: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """1 / the length of each sum of vectors; 0 where they cancel out, but for rounding."""
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    found: NDArray[np.float64] = np.divide(1.0, lengths, out=np.zeros(len(lengths)), where=lengths > _SAME * weights)
    return found


class LexicalKind:
    """Postings of the units, by word; a word's frequencies in windows are differences of running sums over them."""

    def __init__(
        self,
        units: Units,
        posted: Postings,
        halves: Sequence[int],
        *,
        whole: bool,
        form: str,
        k1: float,
        b: float,
        nearest: bool = False,
        means: Sequence[float] | None = None,
        weights: Weights | None = None,
    ) -> None:
        self._units = units
        self._form = form
        self._k1, self._b = k1, b
        self._halves = halves = units.within(halves)
        self._reach = max(halves, default=0)
        self._real: type[np.floating] = np.float64 if len(units) <= _WIDE else np.float32
        self._weights = dict(weights or {})
        self._posted = posted
        sums = np.concatenate(([0], np.cumsum(self._posted.lengths)))
        self._sums: NDArray[np.signedinteger[Any]] = sums.astype(np.int32 if sums[-1] < 2**31 else np.int64)
        own = np.diff(sums[units.firsts])
        if means is None:
            means = [float(self._sizes(half, units).sum()) / max(1, len(units)) for half in halves]
            means.append(float(own @ units.lengths) / max(1, len(units)))
        self.means = means
        self._norms = None if nearest else self._norms_of(units)
        self._documents = self._norm(own, means[-1]) if whole else None

    def _sizes(self, half: int, ranges: Ranges) -> Numbers:
        """How many words each window has."""
        start, end = ranges.windows(half)
        if isinstance(ranges, Stretches):
            shifts = np.repeat(ranges.shifts, ranges.lengths)
            start, end = start + shifts, end + shifts
        return np.asarray(self._sums[end] - self._sums[start], dtype=np.int64)

    def _norms_of(self, ranges: Ranges) -> list[Reals]:
        each = zip(self._halves, self.means, strict=False)
        return [self._norm(self._sizes(half, ranges), mean).astype(self._real) for half, mean in each]

    def _norm(self, sizes: Numbers, mean: float) -> NDArray[np.float64]:
        """What BM25 adds to a frequency below its fraction: above 0, so that words that are not there get 0."""
        norm = self._k1 * (1 - self._b + self._b / (mean or 1.0) * sizes.astype(np.float64))
        found: NDArray[np.float64] = np.maximum(norm, 1e-30)
        return found

    def asked(self, query: str, vector: Reals | None) -> list[_Word]:
        """The question's words that the units have."""
        found = []
        for key, count in Counter(word_keys(query, self._form)).items():
            posted, counts = self._postings(key)
            if len(posted):
                if key not in self._weights:
                    self._weights[key] = weights_of(self.held(key), len(self._units))
                found.append((posted, counts, count * self._weights[key]))
        return found

    def first(self, question: list[_Word], hits: int) -> tuple[Numbers, Scores]:
        """The rarest words are looked up first, and the commonest not at all where the others have hits enough."""
        scores = np.zeros(len(self._units), dtype=np.float32)
        mean = float(self._sums[-1]) / len(self._units)
        seen = 0
        for posted, counts, weights in sorted(question, key=lambda word: len(word[0])):
            if seen and seen + len(posted) > _LOOKED_UP:
                break
            seen += len(posted)
            sizes = (self._sums[posted + 1] - self._sums[posted]).astype(np.int64)
            scores[posted] += weights.max() * counts / (counts + self._norm(sizes, mean))
        found = np.flatnonzero(scores)
        return _first(found, scores[found], hits)

    def values(self, question: list[_Word], ranges: Ranges) -> Iterator[tuple[Reals, float]]:
        if not len(ranges):
            return
        words = question
        norms = self._norms
        if isinstance(ranges, Stretches):
            words = [(*_inside(ranges, posted, counts), weights) for posted, counts, weights in question]
        if isinstance(ranges, Stretches) or norms is None:
            norms = self._norms_of(ranges)
        found = np.zeros((len(self._halves), len(ranges)), dtype=self._real)
        for first in range(0, len(ranges), _BLOCK):
            self._add_block(found, words, norms, ranges, first, min(first + _BLOCK, len(ranges)))
        for values in found:
            yield values, float(values.max())
        if self._documents is not None:
            firsts = self._units.firsts
            documents = whose = np.arange(len(firsts) - 1)
            if isinstance(ranges, Stretches):
                documents, whose = np.unique(self._units.documents(ranges.starts), return_inverse=True)
                whole = Stretches(firsts[documents], firsts[documents + 1])
            values = np.zeros(len(documents))
            for posted, counts, weights in question:
                if isinstance(ranges, Stretches):  # few of many units: only their documents' postings
                    places, own = _inside(whole, posted, counts)
                    inside = np.bincount(whole.documents(places.astype(np.int64)), own, minlength=len(documents))
                else:
                    held = np.concatenate(([0.0], np.cumsum(counts, dtype=np.float64)))
                    inside = np.diff(held[posted.searchsorted(firsts.astype(np.int32))])
                values += weights[-1] * inside / (inside + self._documents[documents])
            yield values[whose], float(values.max())

    def _add_block(
        self, found: Reals, words: Sequence[_Word], norms: Sequence[Reals], ranges: Ranges, first: int, last: int
    ) -> None:
        """Add the scores of the windows of some units.

        Running sums never fall. So a window that reaches over its range's end grows until there: to the lesser of
        the sums at the two ends.
        """
        reach, size = self._reach, last - first
        one, other = ranges.documents(np.array([first, last - 1])).tolist()
        edges = np.clip(ranges.firsts[one : other + 2], first - reach, last + reach) - (first - reach)
        own_edges: Numbers = np.clip(ranges.firsts[one : other + 2], first, last)
        lengths = own_edges[1:] - own_edges[:-1]
        bounds = np.array([max(0, first - reach), last + reach], dtype=np.int32)
        for posted, counts, weights in words:
            own = slice(*posted.searchsorted(bounds))
            if own.start == own.stop:
                continue
            added = np.zeros(size + 2 * reach + 1, dtype=np.int32)  # four times as fast to sum as floats
            added[posted[own] - (first - reach - 1)] = counts[own]
            sums = np.cumsum(added, out=added).astype(self._real)
            low, high = np.repeat(sums[edges[:-1]], lengths), np.repeat(sums[edges[1:]], lengths)
            for place, half in enumerate(self._halves):
                inside = np.minimum(sums[reach + half + 1 : reach + half + 1 + size], high)
                inside -= np.maximum(sums[reach - half : reach - half + size], low)
                inside /= inside + norms[place][first:last]
                inside *= self._real(weights[place])
                found[place, first:last] += inside

    def _postings(self, key: str) -> tuple[NDArray[np.int32], NDArray[np.unsignedinteger[Any]]]:
        word = int(self._posted.find([key])[0])
        own = slice(*self._posted.begins[word : word + 2]) if word >= 0 else slice(0)
        return self._posted.texts[own], self._posted.counts[own]

    def held(self, key: str) -> Numbers:
        """How many windows of each scale have the word, those of documents last."""
        units = self._units
        posted = self._postings(key)[0].astype(np.int64)
        documents = units.documents(posted)
        begin, end = units.firsts[documents], units.firsts[documents + 1]
        numbers = []
        for half in self._halves:
            until = np.minimum(posted + half + 1, end)
            start = np.maximum(posted - half, begin)
            start[1:] = np.maximum(start[1:], until[:-1])
            numbers.append(int((until - start).sum()))
        numbers.append(int(units.lengths[np.unique(documents)].sum()))
        return np.array(numbers, dtype=np.int64)


def weights_of(held: Numbers, size: int) -> NDArray[np.float64]:
    """The inverse document frequency of a word that so many of `size` windows hold."""
    found: NDArray[np.float64] = np.log1p((size - held + 0.5) / (held + 0.5))
    return found


def _inside(part: Stretches, posted: NDArray[np.int32], counts: NDArray[Any]) -> tuple[NDArray[np.int32], NDArray[Any]]:
    """The postings in a part of the units, by their places in the part."""
    first = posted.searchsorted(part.starts.astype(np.int32))
    number = posted.searchsorted(part.ends.astype(np.int32)) - first
    own = np.arange(number.sum()) + np.repeat(first - (np.cumsum(number) - number), number)
    return posted[own] - np.repeat(part.shifts, number).astype(np.int32), counts[own]
