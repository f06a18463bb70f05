"""Windows of units at every size: what a unit's window scores for a question, and the sum over all sizes.

The units are the chunks in the order of their documents. The window of a unit at a half-width h is the units within h
of it in its document; at the scale "document" it is the whole document. A window is read as one text:

- dense: the cosine of the question and the sum of the window's unit-length vectors, each times the square root of its
  chunk's tokens. The question's product with a sum is a difference of running sums of its products with the units.
- lexical: BM25 among the windows of this scale. A word's frequency in a window is a difference of running sums, too. Of
  wide windows a few neighbours share one: that of the middle one of them.

Each kind and scale is standardised over all units, z = (x - mean) / deviation; a kind's score is the mean of
z · abs(z) over its scales: a window twice as far above the mean counts fourfold. `Passages` weighs the kinds.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from chunkcore.errors import DataError, ModelError
from chunkcore.retrieval.corpus import ChunkedCorpus
from chunkcore.retrieval.lexicon import (
    Postings,
    inverse_document_frequency,
    length_norms,
    odds_against,
    question_keys,
    word_keys,
)
from chunkcore.retrieval.vectors import Rows, products
from chunkcore.spans import Floats, Numbers, Scores

DOCUMENT = "document"
VECTORS = 2**14  # that are read together, more where a document is longer
WORDS = 2**17  # units whose windows are scored together, so that they stay in the processor's cache
RARE = 70  # of a word that fewer units have than one in so many, only the windows that have it are scored
# Up to so many units, words are scored in float64; float32 takes two thirds of the time, and differs by about 1e-6.
WIDE = 2**15
# From this half-width on, so many neighbours as half of it have the window of the middle one of them.
SHARED = 7
_SAME = 1e-6  # a smaller deviation, relative to the largest score (of cosines: to 1), is rounding

Scale = int | str  # a half-width, or "document"
SCALES: dict[str, tuple[Scale, ...]] = {  # the vectors of many units, added up, tell little apart
    "dense": (0, 1, 3, DOCUMENT),
    "lexical": (0, 1, 3, 7, 15, 31, DOCUMENT),
}
Places = NDArray[np.int32]


class Units:
    """The chunks of a corpus in the order of their documents.

    Attributes:
        order: the units' chunk numbers; None for 0, 1, 2, ...
        starts: each unit's first place in its document.
        ends: the place after its last.
        firsts: each document's first unit, and the number of all.
        documents: the number of each unit's document, among those with units.

    Raises `DataError`: chunks overlap.
    """

    def __init__(self, corpus: ChunkedCorpus) -> None:
        numbers, extents = corpus.document_numbers, corpus.extents
        order = np.lexsort((extents[:, 0], numbers))
        numbers = numbers[order]
        self.starts, self.ends = extents[order].T
        is_same = numbers[1:] == numbers[:-1]
        overlaps = np.flatnonzero(is_same & (self.starts[1:] < self.ends[:-1]))
        if len(overlaps):
            one, other = (corpus[number] for number in order[overlaps[0] :][:2].tolist())
            raise DataError(
                f"passages are made of chunks that do not overlap: chunk {other.index} of {other.document_id!r} starts "
                f"at {other.start}, before chunk {one.index} ends at {one.end}; cut without overlap, such as with "
                "sentence:size=50, or use another retriever"
            )
        is_in_order = bool((np.diff(order) == 1).all())
        self.order: Numbers | None = None if is_in_order else order
        begins = np.flatnonzero(np.diff(numbers, prepend=-1))
        self.firsts: Numbers = np.append(begins, len(order)).astype(np.int64)
        self.documents: Numbers = np.repeat(np.arange(len(begins)), np.diff(self.firsts))

    def __len__(self) -> int:
        return int(self.firsts[-1])

    def chunks(self, units: Numbers) -> Numbers:
        """The units' chunk numbers."""
        return units if self.order is None else self.order[units]

    def by_unit(self, values: NDArray[Any]) -> NDArray[Any]:
        """One value a chunk as one value a unit."""
        return values if self.order is None else values[self.order]

    def windows(self, scale: Scale) -> tuple[Places, Places]:
        """The first unit of each unit's window, and the one after its last."""
        start, end = self.firsts[self.documents], self.firsts[self.documents + 1]
        if not isinstance(scale, str):
            place = np.arange(len(self), dtype=np.int64)
            start = np.maximum(place - scale, start)
            end = np.minimum(place + scale + 1, end)
        return start.astype(np.int32), end.astype(np.int32)

    def blocks(self, size: int) -> Iterator[tuple[int, int]]:
        """Ranges of about `size` units, each of whole documents."""
        count = max(1, round(len(self) / size))
        edges = self.firsts.searchsorted(np.linspace(0, len(self), count + 1))
        yield from pairwise(np.unique(self.firsts[edges]).tolist())

    def with_gaps(self, scores: Scores, best: Numbers) -> Numbers:
        """The best units, and gaps between them that cost less than the document's best units gain."""
        if not len(best):
            return best
        best = np.sort(best)
        least = scores[best].min()
        documents = self.documents[best]
        gains = np.bincount(documents - documents[0], scores[best] - least)
        parts = [best[:1]]
        for before, unit in pairwise(best.tolist()):
            document = self.documents[unit]
            between = scores[before + 1 : unit]
            cost = least * len(between) - between.sum()
            if self.documents[before] == document and cost < gains[document - documents[0]]:
                parts.append(np.arange(before + 1, unit))
            parts.append(np.array([unit]))
        return np.concatenate(parts)


class DenseWindows:
    """Cosines of windows. One inverse length of each window's vector is kept; the vectors are not copied."""

    def __init__(
        self,
        units: Units,
        rows: Rows,
        tokens: Numbers,
        measured: Scores | None = None,
    ) -> None:
        self._units = units
        self._rows = rows
        self._weights = np.sqrt(units.by_unit(tokens))
        self._scales = SCALES["dense"]
        self._windows = [units.windows(scale) for scale in self._scales]
        # The last row is of each unit's own vector.
        self._inverse = np.zeros((len(self._scales) + 1, len(units)))
        if measured is None:
            self._measure()
        else:
            self._inverse[:] = measured if units.order is None else measured[:, units.order]

    @property
    def measured(self) -> Scores:
        """The inverse lengths, which take a pass over the vectors to find: a row a scale, a column a chunk."""
        if self._units.order is None:
            return self._inverse
        by_chunk = np.empty_like(self._inverse)
        by_chunk[:, self._units.order] = self._inverse
        return by_chunk

    def _measure(self) -> None:
        units = self._units
        for first, last in units.blocks(VECTORS):
            block = np.arange(first, last)
            vectors = np.asarray(self._rows[units.chunks(block)], dtype=np.float64)
            inverse = _inverse_lengths(vectors, np.zeros(len(block)))
            self._inverse[-1, first:last] = inverse
            sums = _running(vectors * (inverse * self._weights[block])[:, None])
            weights = _running(self._weights[block])
            for place, (start, end) in enumerate(self._windows):
                start, end = start[block] - first, end[block] - first
                self._inverse[place, block] = _inverse_lengths(
                    sums[end] - sums[start], weights[end] - weights[start]
                )

    def cosines(self, question: Floats) -> Scores:
        """Each unit's cosine with a question's vector. Raises `ModelError`: the vector is of another model."""
        if len(self._units) and len(question) != self._rows.shape[1]:
            raise ModelError(
                f"the query has {len(question)} dimensions and the vectors {self._rows.shape[1]}: embed both with the "
                "same model"
            )
        length = float(np.linalg.norm(question.astype(np.float64))) or 1.0
        products_of_units = self._units.by_unit(products(self._rows, question))
        cosines: Scores = products_of_units * self._inverse[-1] / length
        return cosines

    def scales(self, cosines: Scores) -> Iterator[tuple[Scores, float]]:
        """At each scale every unit's score, in an array that may be changed; and what counts as a large score."""
        sums = _running(cosines * self._weights)
        for place, (start, end) in enumerate(self._windows):
            if self._scales[place] == 0:
                yield cosines.copy(), 1.0
            else:
                yield (sums[end] - sums[start]) * self._inverse[place], 1.0


class _Word(NamedTuple):
    """A word of the question."""

    units: Numbers  # that have it
    counts: NDArray[np.int32]  # how often it is in each
    weights: list[float]  # at each scale


class _Scale(NamedTuple):
    """The windows of all units at one scale."""

    width: Scale
    starts: Places
    ends: Places
    norms: NDArray[Any]


class _Block:
    """The windows of some documents: scale after scale, in one row.

    A narrow scale has a window at each place of an axis, on which documents stand so far apart that no window reaches
    two; a wide one has a window for some neighbouring units, which is that of the middle one of them.
    """

    def __init__(self, units: Units, first: int, last: int, scales: Sequence[_Scale]) -> None:
        self.first, self.last = first, last
        near = [scale for scale in scales if isinstance(scale.width, int) and scale.width < SHARED]
        self._widths = np.array([scale.width for scale in near], dtype=np.int64)
        self._gap = gap = int(self._widths.max(initial=0))
        documents = units.documents[first:last] - units.documents[first]
        self._places: Numbers = np.arange(last - first) + gap * (documents + 1)
        self._axis = int(self._places[-1]) + 1 + gap
        norms = [np.ones(self._axis, dtype=scale.norms.dtype) for scale in near]
        for row, scale in zip(norms, near, strict=True):
            row[self._places] = scale.norms[first:last]
        offset = len(near) * self._axis
        place_in_document = np.arange(first, last) - units.firsts[units.documents[first:last]]
        starts, ends, reach = [], [], []
        self._sizes: list[Numbers] = []  # how many units share each of the wide windows
        for scale in scales[len(near) :]:
            stride = scale.width // 2 if isinstance(scale.width, int) else last
            begins = np.flatnonzero(place_in_document % stride == 0)
            self._sizes.append(np.diff(begins, append=last - first))
            middle = first + begins + self._sizes[-1] // 2
            starts.append(self._places[scale.starts[middle] - first])
            ends.append(self._places[scale.ends[middle] - 1 - first] + 1)
            norms.append(scale.norms[middle])
            reach.append(
                [
                    ends[-1].searchsorted(self._places, side="right") + offset,
                    starts[-1].searchsorted(self._places, side="right") + offset,
                ]
            )
            offset += len(begins)
        self._starts: Numbers = np.concatenate([self._places[:0], *starts])
        self._ends: Numbers = np.concatenate([self._places[:0], *ends])
        self._norms: Floats = np.concatenate(norms)
        # Of each unit the first wide window that it is in, and the one after the last, at each scale.
        rows = np.array(reach, dtype=np.int32).reshape(-1, last - first)
        self._reach = np.ascontiguousarray(rows.T)
        self._lengths = [self._axis] * len(near) + [len(sizes) for sizes in self._sizes]

    def score(self, words: Sequence[_Word]) -> Floats:
        """The windows' scores for these words."""
        totals = np.zeros_like(self._norms)
        for word in words:
            inside = slice(*word.units.searchsorted((self.first, self.last)))
            units, counts = word.units[inside] - self.first, word.counts[inside]
            if RARE * len(units) < self.last - self.first:
                self._add_rare(totals, units, counts, word.weights)
            else:
                self._add(totals, units, counts, word.weights)
        return totals

    def of_units(self, totals: Floats, scale: int) -> Floats:
        """Each unit's score at a scale, given those of the windows."""
        first = sum(self._lengths[:scale])
        row = totals[first : first + self._lengths[scale]]
        near = len(self._widths)
        if scale < near:
            return row.take(self._places)
        return np.repeat(row, self._sizes[scale - near])

    def _add(
        self, totals: Floats, units: Numbers, counts: NDArray[np.int32], weights: Sequence[float]
    ) -> None:
        """Add a word's score in each window."""
        gap, axis = self._gap, self._axis
        running = np.zeros(axis + 1, dtype=np.int32)
        running[self._places.take(units) + 1] = counts
        # Whole numbers add up five times as fast.
        sums = np.cumsum(running, out=running).astype(totals.dtype)
        size = axis - 2 * gap
        frequency, divisor = np.empty((2, size), dtype=totals.dtype)
        first = 0
        for width, weight in zip(self._widths.tolist(), weights, strict=False):
            ends, starts = sums[gap + width + 1 :], sums[gap - width :]
            np.subtract(ends[:size], starts[:size], out=frequency)
            here = slice(first + gap, first + gap + size)
            np.add(frequency, self._norms[here], out=divisor)
            frequency /= divisor
            frequency *= totals.dtype.type(weight)
            totals[here] += frequency
            first += axis
        wide = sums.take(self._ends)
        wide -= sums.take(self._starts)
        wide /= wide + self._norms[first:]
        last = np.array(weights[len(self._widths) :], dtype=totals.dtype)
        wide *= np.repeat(last, self._lengths[len(self._widths) :])
        totals[first:] += wide

    def _add_rare(
        self, totals: Floats, units: Numbers, counts: NDArray[np.int32], weights: Sequence[float]
    ) -> None:
        """Add a word's score in the windows that have it."""
        scales, widths = len(self._lengths), self._widths[:, None]
        near = self._places[units] + self._axis * np.arange(len(widths))[:, None]
        reach = self._reach.take(units, axis=0).T
        first = np.concatenate((near - widths, reach[::2])).ravel()
        after = np.concatenate((near + widths + 1, reach[1::2])).ravel()
        # A window belongs to the first unit that reaches it; from there on the windows of a unit are without a gap.
        begin = first.copy()
        np.maximum(first[1:], after[:-1], out=begin[1:])
        lengths = after - begin
        places = lengths.cumsum() - lengths
        windows = np.repeat(begin - places, lengths)
        windows += np.arange(len(windows))
        steps = np.zeros(len(windows) + 1, dtype=np.int32)
        times = np.concatenate([counts] * scales)
        np.add.at(steps, places - begin + first, times)
        np.subtract.at(steps, places + lengths, times)
        frequency = steps[:-1].cumsum(dtype=steps.dtype).astype(totals.dtype)
        frequency /= frequency + self._norms.take(windows)
        frequency *= np.repeat(
            np.array(weights, dtype=totals.dtype), lengths.reshape(scales, -1).sum(axis=1)
        )
        totals[windows] += frequency


class LexicalWindows:
    """BM25 of windows, from the postings of the units."""

    def __init__(
        self,
        units: Units,
        postings: Postings,
        *,
        form: str,
        k1: float,
        b: float,
    ) -> None:
        self._units = units
        self._postings = postings if units.order is None else postings.selected(units.order)
        self._form = form
        self._real: type[np.floating] = np.float64 if len(units) <= WIDE else np.float32
        self._weights_of: dict[str, list[float]] = {}  # of words that questions had
        self._counts: dict[str, int] = {}  # of units that have such a word
        longest = int(np.diff(units.firsts).max(initial=0))
        lengths = _running(self._postings.lengths)
        # The half-widths of windows; windows of the scale "document" come last.
        self._widths = [
            min(scale, longest) for scale in SCALES["lexical"] if isinstance(scale, int)
        ]
        widths: list[Scale] = [*self._widths, DOCUMENT]
        scales = []
        for width in widths[: len(SCALES["lexical"])]:
            start, end = units.windows(width)
            norms = length_norms(lengths[end] - lengths[start], k1, b)
            scales.append(_Scale(width, start, end, norms.astype(self._real)))
        self._scales = len(scales)
        self._blocks = [_Block(units, *block, scales) for block in units.blocks(WORDS)]

    def scales(
        self, question: str, left: Mapping[str, float] | None = None
    ) -> Iterator[tuple[Floats, float]]:
        """At each scale every unit's score for a question, in an array that may be changed; and the greatest.

        `left`: what is left of the weight of some words.
        """
        left = left or {}
        words = []
        for key, repeats in Counter(question_keys(question, self._form)).items():
            units, counts = self._postings.of_word(key)
            if not len(units):
                continue
            if key not in self._weights_of:
                self._weights_of[key] = self._weights(units)
            factor = repeats * left.get(key, 1.0)
            weights = [factor * weight for weight in self._weights_of[key]]
            words.append(_Word(units, counts.astype(np.int32), weights))
        totals = [block.score(words) for block in self._blocks]
        scores = np.empty(len(self._units), dtype=self._real)
        for scale in range(self._scales):
            for block, total in zip(self._blocks, totals, strict=True):
                scores[block.first : block.last] = block.of_units(total, scale)
            yield scores, float(scores.max(initial=0.0))

    def with_words(self, question: str) -> list[Numbers]:
        """Of each word of the question the units that have it, ascending; of words that a unit has."""
        rows = (self._postings.of_word(key)[0] for key in word_keys(question, self._form))
        return [units for units in rows if len(units)]

    def keys(self, text: str) -> list[str]:
        """The text's words as they are compared."""
        return word_keys(text, self._form)

    def units_with(self, keys: Iterable[str]) -> Numbers:
        """The units that have all of these words, ascending."""
        rows = sorted((self._postings.of_word(key)[0] for key in set(keys)), key=len)
        units = rows[0]
        for row in rows[1:]:
            units = units[np.isin(units, row, assume_unique=True)]
        return units

    def rarity(self, question: str) -> dict[str, float]:
        """The question's words as they are compared, each with the logarithm of how few units have it."""
        size = len(self._units) + 1
        return {key: math.log(size / (self._count(key) + 0.5)) for key in self.keys(question)}

    def word_weights(self, question: str) -> dict[str, float]:
        """The weight of each word of the question: the logarithm of how many times as many units are without it; 0 if
        most have it.
        """
        size = len(self._units)
        odds = {key: odds_against(self._count(key), size) for key in self.keys(question)}
        return {key: max(0.0, math.log(value)) for key, value in odds.items()}

    def _count(self, key: str) -> int:
        """How many units have a word."""
        if key not in self._counts:
            self._counts[key] = len(self._postings.of_word(key)[0])
        return self._counts[key]

    def shares(
        self,
        question: str,
        norm: Literal[1, 2] = 1,
        width: int = 0,
    ) -> Scores:
        """The share of the question's words, by `word_weights`, that each unit's window of half-width `width` has.

        By norm 2, the root of the sum of squares stands in place of the sum: chance grows with it, so that short and
        long questions compare.
        """
        shares = np.zeros(len(self._units))
        weights = self.word_weights(question)
        start, end = self._units.windows(width)
        for key, weight in weights.items():
            units, _ = self._postings.of_word(key)
            if not width:
                shares[units] += weight
                continue
            has = np.zeros(len(shares), dtype=np.int32)
            has[units] = 1
            counts = _running(has)
            shares += weight * (counts[end] > counts[start])
        return shares / (float(np.linalg.norm([0.0, *weights.values()], norm)) or 1.0)

    def _weights(self, units: Numbers) -> list[float]:
        """At each scale the inverse document frequency, among its windows, of a word that these units have."""
        documents, firsts = self._units.documents[units], self._units.firsts
        first, end = firsts[documents], firsts[documents + 1]
        opens = np.append(True, first[1:] != first[:-1])  # a document's first unit with the word
        closes = np.append(opens[1:], True)
        before, after = (units - first)[opens], (end - units)[closes]
        gaps = np.diff(units)[~opens[1:]]
        widest = 2 * max(self._widths, default=0) + 1  # a wider gap counts no more
        sizes = np.arange(widest + 1)
        rows = (before, gaps, after)
        starts, between, ends = (
            np.bincount(np.minimum(row, widest), minlength=len(sizes)) for row in rows
        )
        counts = []
        for width in self._widths:
            reached = np.minimum(sizes, width) @ starts
            reached += np.minimum(sizes, 2 * width + 1) @ between
            reached += np.minimum(sizes, width + 1) @ ends
            counts.append(reached)
        if self._scales > len(self._widths):
            counts.append((end - first)[opens].sum())
        return [inverse_document_frequency(int(count), len(self._units)) for count in counts]


def mean_of_squares(
    scales: Iterable[tuple[Floats, float]],
    size: int,
) -> Scores:
    """Each unit's mean over the scales of z · abs(z); a scale that does not tell units apart gives 0."""
    total, count = np.zeros(size), 0
    for values, largest in scales:
        count += 1
        values -= values.mean() if size else 0.0
        deviation = float(np.sqrt(values @ values / max(1, size)))
        if deviation > _SAME * largest:
            values /= deviation
            values *= np.abs(values)
            total += values
    total /= max(1, count)
    return np.round(total, 9, out=total)  # else running sums would tell equal windows apart


def _running(values: NDArray[Any]) -> NDArray[Any]:
    """Running sums, from 0 on."""
    return np.concatenate(
        (np.zeros((1, *values.shape[1:]), dtype=values.dtype), np.cumsum(values, axis=0))
    )


def _inverse_lengths(vectors: Scores, weights: Scores) -> Scores:
    """1 / the length of each sum of vectors; 0 where they cancel out, but for rounding."""
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    inverse: Scores = np.divide(
        1.0, lengths, out=np.zeros(len(lengths)), where=lengths > _SAME * weights
    )
    return inverse
