"""Windows of units at every size: what a unit's window scores for a question, and the sum over all sizes.

The units are the chunks in the order of their documents. The window of a unit at a half-width h is the units within h
of it in its document; at the widest scale it is the whole document. A window is read as one text:

- dense: the cosine of the question and the sum of the window's unit-length vectors, each times the square root of its
  chunk's tokens. The question's product with a sum is a difference of running sums of its products with the units.
- lexical: BM25 among the windows of this scale. A word's frequency in a window is a difference of running sums, too. Of
  wide windows a few neighbours share one: that of the middle one of them.

Each kind and scale is standardised over all units, z = (x - mean) / deviation; a kind's score is the mean of
z · abs(z) over its scales: a window twice as far above the mean counts fourfold. `Passages` weighs the kinds.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import PurePath
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from chunkcore.boundaries.sentences import marked_headings
from chunkcore.errors import ModelError
from chunkcore.retrieval.lexicon import (
    length_norms,
    odds_against,
    word_keys,
)
from chunkcore.retrieval.passages.units import DOCUMENT, Places, Units
from chunkcore.retrieval.vectors import Rows, products
from chunkcore.spans import Floats, Numbers, Scores
from chunkcore.text import Document

VECTORS = 2**14  # that are read together, more where a document is longer

# Up to so many units, words are scored in float64; float32 takes two thirds of the time, and differs by about 1e-6.
WIDE = 2**15
# From this half-width on, so many neighbours as half of it have the window of the middle one of them.
SHARED = 7
_SAME = 1e-6  # a smaller deviation, relative to the largest score (of cosines: to 1), is rounding

SCALES: dict[str, tuple[int, ...]] = {  # the vectors of many units, added up, tell little apart
    "dense": (0, 1, 3, DOCUMENT),
    "lexical": (0, 1, 3, 7, 15, 31, DOCUMENT),
}


class DenseWindows:
    """Cosines of windows. One inverse length of each window's vector is kept; the vectors are not copied."""

    def __init__(
        self,
        units: Units,
        rows: Rows,
        norms: Rows | None = None,
    ) -> None:
        self._units = units
        self._rows = rows
        self._weights = np.sqrt(units.tokens)
        self._scales = SCALES["dense"]
        self._windows = [units.windows(scale) for scale in self._scales]
        # The last row is of each unit's own vector.
        self._inverse = np.zeros((len(self._scales) + 1, len(units)))
        if norms is None or norms.shape[1] != len(self._inverse):
            self._measure()
        else:
            self._inverse[:] = norms[units.order].T

    @property
    def norms(self) -> Scores:
        """The inverse lengths, which take a pass over the vectors to find: a row a chunk, a column a scale."""
        by_chunk: Scores = np.empty(self._inverse.T.shape)
        by_chunk[self._units.order] = self._inverse.T
        return by_chunk

    def _measure(self) -> None:
        units = self._units
        for first, last in units.blocks(VECTORS):
            block = np.arange(first, last)
            vectors = np.asarray(self._rows[units.order[block]], float)
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
        products_of_units = products(self._rows, question)[self._units.order]
        cosines: Scores = products_of_units * self._inverse[-1] / length
        return cosines

    def scales(self, cosines: Scores) -> Iterator[Scores]:
        """At each scale every unit's score, in an array that may be changed."""
        sums = _running(cosines * self._weights)
        for place, (start, end) in enumerate(self._windows):
            if self._scales[place] == 0:
                yield cosines.copy()
            else:
                yield (sums[end] - sums[start]) * self._inverse[place]


class _Scale(NamedTuple):
    """The windows at one scale.

    A narrow scale has a window at each place of the axis of `LexicalWindows`; a wide one has a window for some
    neighbouring units, which is that of the middle one of them.

    Attributes:
        starts: the place on the axis at which each window begins.
        ends: the place after its last.
        norms: of the lengths of the windows.
        of_units: the number of each unit's window.
    """

    starts: slice | Numbers
    ends: slice | Numbers
    norms: NDArray[Any]
    of_units: Numbers


class LexicalWindows:
    """BM25 of windows, from the postings of the units; and the words of documents' names and of headings.

    `form` is that of words, see `word_keys`. The units stand on an axis, on which documents are so far apart that no
    narrow window reaches two.
    """

    def __init__(self, units: Units, *, form: str, k1: float, b: float) -> None:
        self.form = form
        self._units = units
        self._size = len(units)
        self._headings = Headings(units, form)  # first: it copies each text
        self._postings = units.corpus.postings(form).selected(units.order)
        self._weights_of: dict[str, list[float]] = {}  # of words that questions had
        self._names = Names(list(map(name_of, units.given)), form)

        longest = int(np.diff(units.firsts).max(initial=0))
        self._widths = [min(width, longest) for width in SCALES["lexical"]]
        self._gap = max((width for width in self._widths if width < SHARED), default=0)
        self._narrow_windows: Numbers = np.arange(self._size) + self._gap * units.documents
        self._places: Numbers = self._narrow_windows + self._gap
        self._axis = int(self._places.max(initial=0)) + 1 + self._gap
        lengths = _running(self._postings.lengths)
        real = np.float64 if self._size <= WIDE else np.float32
        self._scales = []
        for width in self._widths:
            start, end = units.windows(width)
            norms = length_norms(lengths[end] - lengths[start], k1, b).astype(real)
            if width < SHARED:
                self._scales.append(self._narrow(width, norms))
            else:
                self._scales.append(self._wide(width, start, end, norms))

    def _narrow(self, width: int, norms: NDArray[Any]) -> _Scale:
        first, after = self._gap, self._axis - self._gap
        of_windows = np.ones(after - first, norms.dtype)
        of_windows[self._narrow_windows] = norms
        starts = slice(first - width, after - width)
        ends = slice(first + width + 1, after + width + 1)
        return _Scale(starts, ends, of_windows, self._narrow_windows)

    def _wide(self, width: int, start: Places, end: Places, norms: NDArray[Any]) -> _Scale:
        numbers = np.arange(self._size)
        place_in_document = numbers - self._units.firsts[self._units.documents]
        begins = np.flatnonzero(place_in_document % (width // 2) == 0)
        sizes = np.diff(begins, append=self._size)
        middle = begins + sizes // 2
        starts, ends = self._places[start[middle]], self._places[end[middle] - 1] + 1
        return _Scale(starts, ends, norms[middle], np.repeat(numbers[: len(begins)], sizes))

    def scores(self, question: str) -> Scores:
        """Each unit's score; all units of a document or a section that the question names gain up to the best one's."""
        matches, left = self._names.of(question)
        totals = [np.zeros_like(scale.norms) for scale in self._scales]
        for key, repeats in Counter(word_keys(question, self.form, singles=True)).items():
            units, counts = self._postings.of_word(key)
            if not len(units):
                continue
            if key not in self._weights_of:
                self._weights_of[key] = self._weights(units)
            running = np.zeros(self._axis + 1, np.int32)
            running[self._places[units] + 1] = counts
            # Whole numbers add up five times as fast.
            sums = np.cumsum(running, out=running).astype(totals[0].dtype)
            factor = repeats * left.get(key, 1.0)
            for total, scale, weight in zip(
                totals, self._scales, self._weights_of[key], strict=True
            ):
                frequency = sums[scale.ends] - sums[scale.starts]
                frequency /= frequency + scale.norms
                frequency *= factor * weight
                total += frequency
        values = [
            total.take(scale.of_units) for total, scale in zip(totals, self._scales, strict=True)
        ]
        scores = mean_of_squares(values, self._size)
        best = float(scores.max(initial=0.0))
        if left:
            scores += best * np.repeat(matches, np.diff(self._units.firsts))
        return scores + self._headings.gains(self.word_weights(question), best)

    def units_with(self, keys: Iterable[str]) -> Numbers:
        """The units that have all of these words, ascending."""
        rows = [self._postings.of_word(key)[0] for key in set(keys)]
        units = min(rows, key=len)
        for row in rows:
            units = units[np.isin(units, row, assume_unique=True)]
        return units

    def counts(self, text: str) -> dict[str, int]:
        """How many units have each of the text's words, as they are compared."""
        return {key: len(self._postings.of_word(key)[0]) for key in word_keys(text, self.form)}

    def word_weights(self, question: str) -> dict[str, float]:
        """The weight of each word of the question: the logarithm of how many times as many units are without it; 0 if
        most have it.
        """
        return {
            key: max(0.0, math.log(odds_against(count, self._size)))
            for key, count in self.counts(question).items()
        }

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
        shares = np.zeros(self._size)
        weights = self.word_weights(question)
        start, end = self._units.windows(width)
        for key, weight in weights.items():
            has = np.zeros(len(shares), np.int32)
            has[self._postings.of_word(key)[0]] = 1
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
        odds = []
        for width in self._widths:
            reached = np.minimum(before, width).sum() + np.minimum(after, width + 1).sum()
            reached += np.minimum(gaps, 2 * width + 1).sum()
            odds.append(odds_against(int(reached), self._size))
        return [float(weight) for weight in np.log1p(odds)]


def mean_of_squares(
    scales: Iterable[Floats],
    size: int,
    largest: float | None = None,
) -> Scores:
    """Each unit's mean over the scales of z · abs(z); a scale that does not tell units apart gives 0.

    `largest`: what counts as a large value, if not a scale's largest one.
    """
    total, count = np.zeros(size), 0
    for values in scales:
        count += 1
        top = largest or float(values.max(initial=0.0))
        values -= values.mean() if size else 0.0
        deviation = float(np.sqrt(values @ values / max(1, size)))
        if deviation > _SAME * top:
            values /= deviation
            values *= np.abs(values)
            total += values
    total /= max(1, count)
    return np.round(total, 9, out=total)  # else running sums would tell equal windows apart


def _running(values: NDArray[Any]) -> NDArray[Any]:
    """Running sums, from 0 on."""
    return np.cumsum(np.insert(values, 0, 0, axis=0), axis=0)


def _inverse_lengths(vectors: Scores, weights: Scores) -> Scores:
    """1 / the length of each sum of vectors; 0 where they cancel out, but for rounding."""
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    inverse: Scores = np.divide(
        1.0, lengths, out=np.zeros(len(lengths)), where=lengths > _SAME * weights
    )
    return inverse


# ---- Names of documents, and headings

_FIELDS = ("title", "company", "year")
_YEAR = re.compile(r"(?:19|20)\d\d")
_NUMBER = re.compile(r"\d{5,}")  # of a filing, which nobody asks for
_ONE_WORD = 2.0  # a weight that may be chance
_LEAST = 0.3  # a match of a word or two that a title happens to have
_TAG = re.compile(r"<[^<>]*>")


def name_of(document: Document) -> str:
    """The text of a document's name.

    >>> name_of(Document("filings/Acme_10K.pdf", "", {"year": 2019}))
    'filings/Acme_10K 2019'
    """
    name = document.id
    path = PurePath(name)
    if path.name:
        name = str(path.with_suffix(""))
    fields = [str(document.metadata[field]) for field in _FIELDS if field in document.metadata]
    return " ".join([name, *fields])


class Names:
    """The words of the documents' names.

    A word's weight is the logarithm of how many times as many names are without it; 0 if most have it. A name's match
    with a question is the square of the share of its words, by weight, that the question has, times W / (W + 2), W
    their weight; under 0.3 it is 0.

    >>> names = Names(["BestBuy 2019", "Bolt 2019", "Bolt 2020", "Cord 2020", "Dell 2020"])
    >>> matches, left = names.of("What did Best Buy earn in 2019?")
    >>> matches.round(1).tolist(), sorted(left)
    ([0.4, 0.0, 0.0, 0.0, 0.0], ['2019', 'bestbuy'])
    """

    def __init__(
        self,
        names: Sequence[str],
        form: str = "whole",
    ) -> None:
        self._form = form
        self._documents: dict[str, list[int]] = defaultdict(list)
        for number, name in enumerate(names):
            for key in set(self._keys(name)):
                self._documents[key].append(number)
        self._weights: dict[str, float] = {}
        self._totals = np.zeros(len(names))
        for key, numbers in self._documents.items():
            weight = math.log(odds_against(len(numbers), len(names)))
            if weight > 0:
                self._weights[key] = weight
                self._totals[numbers] += weight

    def _keys(self, text: str) -> Iterator[str]:
        text = text.replace("_", " ")
        yield from _YEAR.findall(text)
        for key in word_keys(text, self._form):
            if not _NUMBER.fullmatch(key):
                yield key

    def of(self, question: str) -> tuple[Scores, dict[str, float]]:
        """Each name's match with a question, 0 to 1; and what is left of the weight of words that name a document.

        These are the words of the best match: its text need not have them, and its first page has them most.
        """
        keys = set(self._keys(question))
        for first, second in pairwise(word_keys(question)):  # "Best Buy" names BESTBUY.pdf
            keys.update(word_keys(first + second, self._form))
        keys &= self._weights.keys()
        matched = np.zeros(len(self._totals))
        for key in keys:
            matched[self._documents[key]] += self._weights[key]
        share = matched / np.maximum(self._totals, 1e-9)
        matches: Scores = share**2 * matched / (matched + _ONE_WORD)
        matches[matches < _LEAST] = 0.0
        if not matches.any():
            return matches, {}
        best = int(matches.argmax())
        left = 1 - float(matches[best])
        return matches, {key: left for key in keys if best in self._documents[key]}


# ---- Headings


def heading_paths(text: str) -> Iterator[tuple[int, str]]:
    r"""Where each section begins, and the titles above it with its own.

    >>> list(heading_paths("# Report 2023\n\n## Liquidity\n\nCash fell."))
    [(0, 'Report 2023'), (15, 'Report 2023 Liquidity')]
    """
    path: list[tuple[int, str]] = []
    for heading in marked_headings(text):
        path = [above for above in path if above[0] < heading.level]
        path.append((heading.level, _TAG.sub(" ", heading.title)))
        yield heading.start, " ".join([title for _, title in path])


class Headings:
    """The words of the headings above units."""

    def __init__(self, units: Units, form: str) -> None:
        self._size = len(units)
        edges: dict[str, list[int]] = defaultdict(list)
        for number, document in enumerate(units.given):
            first, end = units.firsts[number : number + 2].tolist()
            sections = list(heading_paths(document.text))
            begins = [start + units.begins[number] for start, _ in sections]
            places = np.searchsorted(units.starts[first:end], begins) + first
            ranges = pairwise([*places.tolist(), end])
            for (_, titles), (begin, after) in zip(sections, ranges, strict=True):
                if begin < after:
                    for key in set(word_keys(titles, form)):
                        edges[key] += begin, after
        # Where the headings that have a word begin to stand above units, and where they end.
        self._edges = {key: np.array(places).reshape(-1, 2).T for key, places in edges.items()}

    def gains(
        self,
        weights: Mapping[str, float],
        most: float,
    ) -> Scores:
        """What each unit gains: the square of the share of a question's words, by weight, that the headings above it
        have, times `most`.
        """
        steps = np.zeros(self._size + 1)
        for key, weight in weights.items():
            if key in self._edges:
                begins, ends = self._edges[key]
                steps[begins] += weight
                steps[ends] -= weight
        edges = np.flatnonzero(steps)
        shares = np.cumsum(steps[edges]) / (sum(weights.values()) or 1.0)
        # Sums that take away what they added are not exact.
        gains = most * np.append(0.0, np.round(shares, 9) ** 2)
        return np.repeat(gains, np.diff(edges, prepend=0, append=self._size))
