"""Units: where they stand, what of them passages may show, and what another retriever's hits are worth to them.

A hit is worth log((N + 1) / rank) to the units that it covers, N the number of hits. A unit's worth has two scales,
each divided by its best unit: two thirds of the hits as they are, one third of each with as much text again on either
side. The words' score is divided by its best unit, too, so that the first hit has the same share of what the best
words are worth in a small collection and in a large one; a lesser one where the hits hold the question's clearest
words no more than chance gives.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import compress, pairwise
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from chunkcore.boundaries import table_blocks
from chunkcore.boundaries.formats import format_of
from chunkcore.boundaries.html import visible_pieces
from chunkcore.errors import DataError, MissingExtraError
from chunkcore.reading.visible import is_html
from chunkcore.retrieval.corpus import ChunkedCorpus
from chunkcore.retrieval.passages.assembly import goes_on
from chunkcore.run import Retrieved
from chunkcore.spans import (
    Flags,
    Numbers,
    Ranges,
    Scores,
    ragged_indices,
    shifted,
    union_ranges,
)
from chunkcore.text import Chunk, Document, Span

# Or ids of documents: these are shown whole; of other documents only the hits' text.
Show = Literal["hits", "whole", "all"] | Collection[str]
BALANCE = 0.3
_SCALES = ((0, 2 / 3), (1, 1 / 3))  # how much wider a hit is read, that scale's share of the worth
_CLEAR = 25.0  # the words' score of a unit five deviations above the mean at every scale
_FIRST = 10  # hits that are held against the words
_CHANCE, _AGREED = 0.5, 0.7  # the mean place of the hits' units by words
_SAMPLE = 2**12  # units among which a place is found

DOCUMENT = 10**9  # the half-width of windows that are whole documents
Places = NDArray[np.int32]


class Units:
    """The chunks of a corpus in the order of their documents.

    They stand on one axis of characters, on which the documents with units follow one another, apart.

    Attributes:
        corpus: the chunks.
        order: the units' chunk numbers.
        firsts: each document's first unit, and the number of all.
        documents: the number of each unit's document, among those with units.
        given: the documents with units.
        names: their ids.
        readers: what finds the headers of their tables; see `reader_of`.
        begins: where each begins on the axis.
        starts: each unit's first place on the axis.
        ends: the place after its last.
        sources: all documents by id.
        tokens: of each unit, by its chunker.
        mean_tokens: their mean, at least 1.
        clear: the words' score that stands out.

    Raises `DataError`: chunks overlap.
    """

    def __init__(self, corpus: ChunkedCorpus) -> None:
        self.corpus = corpus
        self.sources = corpus.sources
        numbers, extents = corpus.document_numbers, corpus.extents
        order = np.lexsort((extents[:, 0], numbers))
        numbers = numbers[order]
        starts, ends = extents[order].T
        is_same = numbers[1:] == numbers[:-1]
        overlaps = np.flatnonzero(is_same & (starts[1:] < ends[:-1]))
        if len(overlaps):
            raise _overlap(*[corpus[number] for number in order[overlaps[0] :][:2].tolist()])
        self.order: Numbers = order
        firsts = np.flatnonzero(np.diff(numbers, prepend=-1))
        self.firsts: Numbers = np.append(firsts, len(order)).astype(np.int64)
        self.documents: Numbers = np.repeat(np.arange(len(firsts)), np.diff(self.firsts))
        self.given = [corpus.documents[number] for number in numbers[firsts].tolist()]
        self.readers: list[Reader | None] = list(map(reader_of, self.given))
        self.names = [document.id for document in self.given]
        self._number_of = {name: number for number, name in enumerate(self.names)}
        # The ranges of two documents never touch.
        self._lengths: Numbers = ends[self.firsts[1:] - 1] + 1
        self.begins: Numbers = np.cumsum(self._lengths) - self._lengths
        self.starts: Numbers = starts + self.begins[self.documents]
        self.ends: Numbers = ends + self.begins[self.documents]
        self.tokens: Numbers = corpus.token_counts[order]
        self.mean_tokens = max(1.0, float(self.tokens.sum()) / max(1, len(order)))
        # Among n units, no deviation is over the root of n - 1.
        self.clear = min(_CLEAR, len(order) / 4)
        self._goes_on = np.full(len(order), -1, np.int8)  # -1: not known yet

    def __len__(self) -> int:
        return int(self.firsts[-1])

    # ---- Windows

    def windows(self, width: int) -> tuple[Places, Places]:
        """The first unit of each unit's window of a half-width, and the one after its last."""
        place = np.arange(len(self), dtype=np.int64)
        start = np.maximum(place - width, self.firsts[self.documents])
        end = np.minimum(place + width + 1, self.firsts[self.documents + 1])
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
        gains = np.bincount(documents, scores[best] - least)
        units = best[:1].tolist()
        for before, unit in pairwise(best.tolist()):
            document, between = self.documents[unit], scores[before + 1 : unit]
            cost = least * len(between) - between.sum()
            if self.documents[before] == document and cost < gains[document]:
                units += range(before + 1, unit)
            units.append(unit)
        return np.array(units)

    # ---- Texts

    def spans(self, unit: int) -> tuple[Span, ...]:
        """A unit's place in its document, without the header of a table that is repeated before its rows."""
        number = int(self.order[unit])
        chunk = self.corpus.special.get(number)
        if chunk is not None:
            return chunk.spans[self.corpus.repeating.get(number, 0) :]
        _, _, start, end, _ = self.corpus.columns[:, number].tolist()
        return (Span(start, end),)

    def goes_on(self, unit: int) -> int:
        """Whether a reader needs the next unit of the document, too: see the function `goes_on`."""
        known = int(self._goes_on[unit])
        if known < 0:
            number = self.documents[unit]
            known = 0
            if unit + 1 < self.firsts[number + 1]:
                after = int(self.starts[unit + 1] - self.begins[number])
                known = goes_on(self.given[number].text, self.spans(unit)[-1], after)
            self._goes_on[unit] = known
        return known

    # ---- Hits

    def places_of(self, hits: Sequence[Retrieved]) -> Numbers:
        """Of each span of the hits that stand in units: the hit's number, start and end, and those of its document.

        Not of a hit with spans beyond its document. Shape (5, spans).
        """
        rows = []
        for number, hit in enumerate(hits):
            document = self._number_of.get(hit.document_id)
            if document is None:
                continue
            end = max((span.end for span in hit.spans), default=0)
            if end <= len(self.given[document].text):
                rows += [(number, document, span.start, span.end) for span in hit.spans]
        owner, documents, starts, ends = np.array(rows, np.int64).reshape(-1, 4).T
        low = self.begins[documents]
        places = np.stack((owner, starts + low, ends + low, low, low + self._lengths[documents]))
        within, _ = self.covered(ranges_of(places))
        return places[:, np.isin(owner, owner[within])]

    def covered(self, ranges: Ranges) -> tuple[Numbers, Numbers]:
        """The number of a range and the unit, for each unit that shares a character with a range."""
        first = np.searchsorted(self.ends, ranges[:, 0], side="right")
        after = np.searchsorted(self.starts, ranges[:, 1])
        return ragged_indices(first, np.maximum(after - first, 0))

    def agreement(self, places: Numbers, words: Scores) -> float:
        """How far the first hits agree with the words' scores, 0 to 1, by what they are worth to the units they hold.

        Hits of a model that does not know the language hold the question's words no more than any text: the mean place
        of their units among all, by words, is a half. That is no agreement, 0.7 is a full one. Words contradict nothing
        unless a unit has twice the score that stands out.
        """
        if words.max(initial=0.0) < 2 * self.clear:
            return 1.0
        held, worth = self.worth(places[:, places[0] < _FIRST], _FIRST)
        if not len(held):
            return 1.0
        step = 1 + len(words) // _SAMPLE
        sample = np.sort(words[::step])
        below = np.searchsorted(sample, words[held])
        up_to = np.searchsorted(sample, words[held], side="right")
        ranks = (below + up_to) / (2 * len(sample))
        mean = float(np.average(ranks, weights=worth))
        return min(1.0, max(0.0, (mean - _CHANCE) / (_AGREED - _CHANCE)))

    def worth(self, places: Numbers, count: int) -> tuple[Numbers, Scores]:
        """The units that hits at these places, of `count` hits in all, are worth something to, ascending; and how much,
        at most 1.
        """
        gains = np.log((count + 1) / (places[0] + 1))
        scales = []
        for wider, _ in _SCALES:
            ranges = ranges_of(places, wider)
            row, units = self.covered(ranges)
            shared = np.minimum(self.ends[units], ranges[row, 1])
            shared -= np.maximum(self.starts[units], ranges[row, 0])
            scales.append((units, shared, gains[row] * shared))
        held = np.unique(np.concatenate([units for units, _, _ in scales]))
        lengths = np.maximum(self.ends[held] - self.starts[held], 1)
        total = np.zeros(len(held))
        for (units, shared, gained), (wider, share) in zip(scales, _SCALES, strict=True):
            numbers = held.searchsorted(units)
            divisor = lengths
            if not wider:
                # Where chunks overlap, a unit has the mean of those that cover it; neighbouring hits add up.
                divisor = np.maximum(np.bincount(numbers, shared, minlength=len(held)), lengths)
            worth = np.bincount(numbers, gained, minlength=len(held)) / divisor
            total += share * worth / (worth.max(initial=0.0) or 1.0)
        return held, total


def _overlap(one: Chunk, other: Chunk) -> DataError:
    return DataError(
        f"passages are made of chunks that do not overlap: chunk {other.index} of {other.document_id!r} starts "
        f"at {other.start}, before chunk {one.index} ends at {one.end}; cut without overlap, such as with "
        "sentence:size=50, or use another retriever"
    )


def ranges_of(places: Numbers, wider: int = 0) -> Ranges:
    """The ranges of hits' places, each with so many times its length again on either side, within its document."""
    _, start, end, low, high = places
    more = wider * (end - start)
    return np.column_stack((np.clip(start - more, low, high), np.clip(end + more, low, high)))


class Shown:
    """What passages may show.

    Attributes:
        units: of which some is shown.
        cut: of those of which a part is shown, the spans of that part.
    """

    def __init__(self, units: Units, ranges: Ranges) -> None:
        self._ranges = union_ranges(ranges)
        _, self.units = units.covered(self._ranges)
        is_whole = self.covers(units.starts[self.units], units.ends[self.units])
        starts, ends = self._ranges.T.tolist()
        self.cut: dict[int, tuple[Span, ...]] = {}
        for unit in self.units[~is_whole].tolist():
            begin = int(units.begins[units.documents[unit]])
            spans = []
            for span in units.spans(unit):
                first = bisect_right(ends, span.start + begin)
                after = bisect_left(starts, span.end + begin)
                for number in range(first, after):
                    low, high = starts[number] - begin, ends[number] - begin
                    spans.append(Span(max(span.start, low), min(span.end, high)))
            self.cut[unit] = tuple(spans)

    def covers(self, starts: Numbers, ends: Numbers) -> Flags:
        """Whether each of these stretches of the axis is shown whole."""
        if not len(self._ranges):
            return np.zeros(len(starts), bool)
        place = np.searchsorted(self._ranges[:, 0], starts, side="right") - 1
        covers: Flags = (place >= 0) & (ends <= self._ranges[place, 1])
        return covers


# ---- Headers of tables

# The header of a Markdown table, and the rule below it.
_MARKDOWN = re.compile(r"^\|[^\n]*\n(?=[^\n]*-)\|[-:| \t]+$", re.MULTILINE)
_NO_ROW = re.compile(r"^[^|]", re.MULTILINE)
_ROW = re.compile(r"<tr\b", re.IGNORECASE)
_TH, _TD = re.compile(r"<th\b", re.IGNORECASE), re.compile(r"<td\b", re.IGNORECASE)
_START = 20_000  # characters of a CSV text, in which its header is looked for
_FAR = 100_000  # characters that a row may be below its header

Header = tuple[Span, ...]
Reader = Callable[[str, int], Header]


def reader_of(document: Document) -> Reader | None:
    r"""What gives the header's spans for a text and the place of a row in it; None if no such table is there.

    It reads Markdown, HTML and, of a document that is named so, CSV; where no row is, it gives none.

    >>> text = "| tea | heat |\n|---|---|\n| green | 80 |"
    >>> reader_of(Document("teas.md", text))(text, text.index("| green"))
    (Span(start=0, end=24),)
    """
    text = document.text
    if is_html(document):
        return _of_html if _TH.search(text) else None
    if format_of("", document).kind == "table":
        return _of_csv
    return _of_markdown if "|\n|" in text else None


def _of_markdown(text: str, place: int) -> Header:
    if not text.startswith("|", place):
        return ()
    headers = list(_MARKDOWN.finditer(text, max(0, place - _FAR), place))
    if not headers or _NO_ROW.search(text, headers[-1].end() + 1, place):
        return ()
    return (Span(*headers[-1].span()),)


def _of_html(text: str, place: int) -> Header:
    """What is above the row of the table's first cell `td`, if cells `th` are."""
    before = text[max(0, place - _FAR) : place]
    start = before.lower().rfind("<table")
    first = _TD.search(before, start)
    if start < 0 or first is None or "</table" in before[start:].lower():
        return ()
    above = before[start : first.start()]
    cell = _TH.search(above)
    if cell is None or not _ROW.search(above, cell.end()):
        return ()
    try:
        cells = visible_pieces(above)
    except MissingExtraError:
        return ()
    return shifted([Span(*piece) for piece in cells], place - len(before) + start)


def _of_csv(text: str, place: int) -> Header:
    header = _header_of_csv(text[:_START])
    if header is None or header[1] > place:
        return ()
    return (Span(*header),)


@lru_cache(maxsize=64)
def _header_of_csv(text: str) -> tuple[int, int] | None:
    for block in table_blocks(text):
        if block.header is not None:
            return block.header
    return None


# ---- How many units a question needs, and whether its answer is there

MOST = 16_000  # tokens of the units that a question may get
NEAREST = 20  # units whose text is read for phrases
_STEEP = 6.0  # how much a unit's score counts beside its place in tokens
_CHEAP = 200  # tokens that cost little


class Signs(NamedTuple):
    """What a question and an index have in common.

    Attributes:
        relation: of the best unit, the share of the question's words, by weight; with vectors 1.5 times that, and the
            nearness: the cosine, of which 0 is what unrelated questions have.
        wider: the same of the best three neighbouring units.
        lead: the root of the best unit's score, less that of the best in another document.
        phrase: the share of the question's pairs of neighbouring words, by weight, that one of the best 20 units has.
    """

    relation: float
    wider: float
    lead: float
    phrase: float


# Logistic regression over seven collections' questions, asked with and without their documents; see the page
# "Enough".
WITH_VECTORS = (Signs(1.31, 1.36, 0.63, 1.04), -3.44)
BY_WORDS = (Signs(0.56, 2.98, 0.46, 2.2), -2.95)


def presence(signs: Signs, *, by_words: bool) -> float:
    """The log odds that the answer is there, if half of all questions have theirs."""
    weights, bias = BY_WORDS if by_words else WITH_VECTORS
    return float(np.dot(weights, signs)) + bias


def phrase_share(
    question: Sequence[str],
    weights: Mapping[str, float],
    texts: Sequence[Sequence[str]],
) -> float:
    """The share of the question's pairs of neighbouring words, by weight, that stand side by side in one text.

    >>> phrase_share(["blue", "fox", "naps"], {"blue": 1.0, "fox": 2.0, "naps": 1.0}, [["the", "fox", "naps"]])
    0.5
    """
    pairs = list(pairwise(question))
    worths = [weights[one] + weights[other] for one, other in pairs]
    best = 0.0
    for text in texts:
        there = set(pairwise(text))
        best = max(best, sum(compress(worths, map(there.__contains__, pairs))))
    return best / (sum(worths) or 1.0)


def levels(scores: Scores, sizes: Numbers) -> tuple[Numbers, Scores]:
    """The units in the order of their scores, and the level of each, which never falls along the order.

    A unit's level rises with the tokens up to it, and with how far its score is below the best one: a budget alone
    would give an easy question as much as a hard one. Units of the score -inf are left out.

    >>> order, level = levels(np.array([1.0, 4.0, 0.0]), np.array([50, 50, 50]))
    >>> order.tolist(), np.round(level, 2).tolist()
    ([1, 0, 2], [-0.48, 2.7, 5.86])
    """
    order = np.argsort(-scores, kind="stable")
    order = order[np.isfinite(scores[order])]
    best = scores[order[:1]].max(initial=0.0) or 1.0
    shares = scores[order] / abs(best)
    roots = np.sign(shares) * np.sqrt(np.abs(shares))
    tokens = np.cumsum(sizes[order])
    level = np.where(tokens <= MOST, np.log(tokens + _CHEAP) - _STEEP * roots, math.inf)
    return order, level


def needed_level(
    scores: Scores,
    sizes: Numbers,
    units: Numbers,
) -> float:
    """The least level that shows all these units; infinite if none does."""
    order, level = levels(scores, sizes)
    places = np.full(len(scores), -1, np.int64)
    places[order] = np.arange(len(order))
    last = places[units]
    if not len(units) or (last < 0).any():
        return math.inf
    return float(level[last.max()])


def shown_units(
    scores: Scores,
    sizes: Numbers,
    level: float,
) -> Numbers:
    """The units up to a level: at least the best one, of at most 16,000 tokens."""
    order, rising = levels(scores, sizes)
    count = max(1, int(np.searchsorted(rising, level, side="right")))
    return order[:count]


def holds_all(
    pieces: Sequence[Retrieved],
    places: Sequence[Retrieved],
    documents: Mapping[str, Document],
) -> bool:
    """Whether the pieces hold all text of some places, but for white space."""
    for place in places:
        text = documents[place.document_id].text
        outside = np.ones(len(text), bool)
        for piece in pieces:
            if piece.document_id == place.document_id:
                for span in piece.spans:
                    outside[span.start : span.end] = False
        for span in place.spans:
            left = np.flatnonzero(outside[span.start : span.end]) + span.start
            if not all(text[number].isspace() for number in left.tolist()):
                return False
    return True
