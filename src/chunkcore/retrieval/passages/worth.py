"""What another retriever's hits are worth to an index's units, and what passages may show of the documents.

A hit is worth log((N + 1) / rank) to the units that it covers, N the number of hits. A unit's worth has two scales,
each divided by its best unit: two thirds of the hits as they are, one third of each with as much text again on either
side. The words' score is divided by its best unit, too, so that the first hit has the same share of what the best
words are worth in a small collection and in a large one; a lesser one where the hits hold the question's clearest
words no more than chance gives.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np

from chunkcore.errors import OptionError, echo
from chunkcore.retrieval.corpus import ChunkedCorpus
from chunkcore.retrieval.lexicon import has_unspaced, word_keys
from chunkcore.retrieval.passages.windows import Units
from chunkcore.run import Retrieved
from chunkcore.spans import Flags, Numbers, Ranges, Scores, ragged_indices, union_ranges
from chunkcore.text import Span

# Or ids of documents: these are shown whole; of other documents only the hits' text.
Show = Literal["hits", "whole", "all"] | Collection[str]
BALANCE = 0.3
_SCALES = ((0, 2 / 3), (1, 1 / 3))  # how much wider a hit is read, that scale's share of the worth
_CLEAR = 25.0  # the words' score of a unit five deviations above the mean at every scale
_FIRST = 10  # hits that are held against the words
_CHANCE, _AGREED = 0.5, 0.7  # the mean place of the hits' units by words
_SAMPLE = 2**12  # units among which a place is found


def check_show(show: Show) -> Show:
    """What may be shown. Raises `OptionError`: it is neither of three words nor a collection of ids."""
    if isinstance(show, str):
        if show in ("hits", "whole", "all"):
            return show
    elif isinstance(show, Collection) and all(isinstance(name, str) for name in show):
        return frozenset(show)
    raise OptionError(
        'show is "hits" (the hits\' own text), "whole" (their documents), "all", or ids of documents; '
        f"got {echo(show)}"
    )


class UnitPlaces:
    """Where the units of a corpus stand on one axis of characters: its documents, one after another, apart.

    Attributes:
        numbers: of each document with units, its number in the corpus.
        starts: the first place of each unit.
        ends: the place after its last.
    """

    def __init__(self, units: Units, corpus: ChunkedCorpus) -> None:
        names, _ = corpus.described
        by_unit = units.by_unit(corpus.document_numbers)
        self.numbers: list[int] = by_unit[units.firsts[:-1]].tolist()
        self._places = {names[number]: place for place, number in enumerate(self.numbers)}
        last_ends = units.ends[units.firsts[1:] - 1]
        self._sizes: Numbers = last_ends + 1  # so that the ranges of two documents never touch
        self._begins: Numbers = np.cumsum(self._sizes) - self._sizes
        begins = self._begins[units.documents]
        self.starts: Numbers = units.starts + begins
        self.ends: Numbers = units.ends + begins

    def begin(self, document_id: str) -> int:
        """Where a document with units begins on the axis."""
        return int(self._begins[self._places[document_id]])

    def whole(self, names: Iterable[str]) -> Ranges:
        """The ranges of these documents, as far as they have units."""
        places = [self._places[name] for name in names if name in self._places]
        begins = self._begins[places]
        return np.column_stack((begins, begins + self._sizes[places]))

    def ranges(
        self,
        hits: Sequence[Retrieved],
        wider: int = 0,
    ) -> tuple[Ranges, Numbers]:
        """The hits' spans on the axis, and the number of each span's hit.

        With `wider`, a span has so many times its length again on either side, within its document.
        """
        rows = []
        for number, hit in enumerate(hits):
            place = self._places.get(hit.document_id)
            if place is not None:
                rows += [(number, place, span.start, span.end) for span in hit.spans]
        owner, document, starts, ends = np.array(rows, dtype=np.int64).reshape(-1, 4).T
        more = wider * (ends - starts)
        last = self._sizes[document]
        begin = self._begins[document]
        start = np.clip(starts - more, 0, last) + begin
        end = np.clip(ends + more, 0, last) + begin
        return np.column_stack((start, end)), owner

    def bounds(self, ranges: Ranges) -> tuple[Numbers, Numbers]:
        """The first unit that shares a character with each range, and the one after the last."""
        first = np.searchsorted(self.ends, ranges[:, 0], side="right")
        after = np.searchsorted(self.starts, ranges[:, 1])
        return first, np.maximum(after, first)

    def covered(self, ranges: Ranges) -> tuple[Numbers, Numbers]:
        """The number of a range and the unit, for each unit that shares a character with a range."""
        first, after = self.bounds(ranges)
        return ragged_indices(first, after - first)

    def agreement(self, hits: Sequence[Retrieved], ranks: Numbers, words: Scores) -> float:
        """How far the first hits agree with the words' scores, 0 to 1, by what they are worth to the units they hold.

        Hits of a model that does not know the language hold the question's words no more than any text: the mean place
        of their units among all, by words, is a half. That is no agreement, 0.7 is a full one. Words contradict nothing
        unless a unit has twice the score that stands out.
        """
        if words.max(initial=0.0) < 2 * _clear(words):
            return 1.0
        first = int(np.searchsorted(ranks, _FIRST, side="right"))
        held, worth = self.worth(hits[:first], ranks[:first], _FIRST)
        if not len(held):
            return 1.0
        step = 1 + len(words) // _SAMPLE
        sample = np.sort(words[::step])
        below = np.searchsorted(sample, words[held])
        up_to = np.searchsorted(sample, words[held], side="right")
        places = (below + up_to) / (2 * len(sample))
        place = float(np.average(places, weights=worth))
        return min(1.0, max(0.0, (place - _CHANCE) / (_AGREED - _CHANCE)))

    def worth(
        self,
        hits: Sequence[Retrieved],
        ranks: Numbers,
        count: int,
    ) -> tuple[Numbers, Scores]:
        """The units that these hits, of `count` in all, are worth something to, ascending; and how much, at most 1."""
        gains = np.log((count + 1) / ranks)
        scales = []
        for wider, _ in _SCALES:
            ranges, owner = self.ranges(hits, wider)
            row, units = self.covered(ranges)
            shared = np.minimum(self.ends[units], ranges[row, 1])
            shared -= np.maximum(self.starts[units], ranges[row, 0])
            scales.append((units, shared, gains[owner[row]] * shared))
        held = np.unique(np.concatenate([units for units, _, _ in scales]))
        lengths = np.maximum(self.ends[held] - self.starts[held], 1)
        total = np.zeros(len(held))
        for (units, shared, gained), (wider, share) in zip(scales, _SCALES, strict=True):
            places = held.searchsorted(units)
            divisor = lengths
            if not wider:
                # Where chunks overlap, a unit has the mean of those that cover it; neighbouring hits add up.
                divisor = np.maximum(np.bincount(places, shared, minlength=len(held)), lengths)
            worth = np.bincount(places, gained, minlength=len(held)) / divisor
            total += share * worth / (worth.max(initial=0.0) or 1.0)
        return held, total


class Shown:
    """What passages may show: ranges of the axis of characters."""

    def __init__(self, places: UnitPlaces, ranges: Ranges) -> None:
        self._places = places
        self._ranges = union_ranges(ranges)
        self._starts, self._ends = self._ranges.T.tolist()

    @property
    def units(self) -> Numbers:
        """The units of which some is shown."""
        return self._places.covered(self._ranges)[1]

    @property
    def cut_units(self) -> Numbers:
        """The units of which a part is shown."""
        first, after = self._places.bounds(self._ranges)
        is_any = after > first
        edges = np.unique(np.concatenate((first[is_any], after[is_any] - 1)))
        is_whole = self.covers(self._places.starts[edges], self._places.ends[edges])
        return edges[~is_whole]

    def covers(self, starts: Numbers, ends: Numbers) -> Flags:
        """Whether each of these stretches of the axis is shown whole."""
        if not len(self._ranges):
            return np.zeros(len(starts), dtype=np.bool_)
        place = np.searchsorted(self._ranges[:, 0], starts, side="right") - 1
        covers: Flags = (place >= 0) & (ends <= self._ranges[place, 1])
        return covers

    def cut(
        self,
        document_id: str,
        spans: Sequence[Span],
    ) -> tuple[Span, ...]:
        """What of a unit's spans is shown."""
        begin = self._places.begin(document_id)
        kept = []
        for span in spans:
            first = bisect_right(self._ends, span.start + begin)
            after = bisect_left(self._starts, span.end + begin)
            for number in range(first, after):
                low, high = self._starts[number] - begin, self._ends[number] - begin
                kept.append(Span(max(span.start, low), min(span.end, high)))
        return tuple(kept)


def word_shares(scores: Scores, units: Numbers) -> Scores:
    """The words' scores of some units, at most 1: divided by the best of all, or by what stands out clearly if that is
    more.
    """
    best = max(float(scores.max(initial=0.0)), _clear(scores), 1e-9)
    # A unit without a word that nearly all have loses no more than one without any.
    shares: Scores = np.maximum(scores[units], -1.0) / best
    return shares


def _clear(scores: Scores) -> float:
    """The words' score that stands out: among n units, no deviation is over the root of n - 1."""
    return min(_CLEAR, len(scores) / 4)


def distinct_hits(hits: Iterable[Retrieved]) -> list[Retrieved]:
    """The hits, a repeated place once. Raises `OptionError`: one is no `Retrieved`."""
    first: dict[object, Retrieved] = {}
    for number, hit in enumerate(hits):
        if not isinstance(hit, Retrieved):
            raise OptionError(f"hits are Retrieved, best first; got {type(hit).__name__}")
        place = (hit.document_id, hit.spans, hit.text)
        first.setdefault(place if hit.spans else number, hit)
    return list(first.values())


_SENTENCE = re.compile(r"[^.!?。！？؟।\n]+(?:[.!?。！？؟।]+(?!\s)[^.!?。！？؟।\n]*)*")
_WORD = re.compile(r"[^\W_]+(?:['’.,:/-][^\W_]+)*")
_SHARE = 0.15  # of a sentence's words may be new
_LEAST = 0.4  # of a text's words are in the sentences that are said again
_NEGATIONS_AND_NUMBERS = """
no not never none nor neither without cannot except unless nobody nothing nowhere hardly only but
nicht nie kein keine keinen keiner ohne außer weder ne pas jamais sans aucun aucune ni sin nunca jamás ningún
non mai senza nessun nessuna não sem nenhum niet geen zonder не нет без никогда ни
one two three four five six seven eight nine ten eleven twelve thirteen fifteen twenty thirty forty fifty sixty
seventy eighty ninety hundred thousand million billion half twice double first second third
"""
_DECISIVE = frozenset(_NEGATIONS_AND_NUMBERS.split())


class _Sentence(NamedTuple):
    words: frozenset[str]
    decisive: frozenset[str]  # names, numbers, negations; words of scripts without spaces


class _Claim(NamedTuple):
    keys: frozenset[str]  # words of the question
    sentence: _Sentence


class Claims:
    """What texts say of a question: of each, its sentences that do, and whether these are nearly half of it.

    Those are its sentences with more than half as much of the question's words, by weight, as the best of them.
    """

    def __init__(self, weights: Mapping[str, float], form: str) -> None:
        self._form = form
        self._weights = weights
        self._keys = frozenset(weights)
        self._of_texts: dict[str, tuple[list[_Claim], bool]] = {}

    def of(self, text: str) -> tuple[list[_Claim], bool]:
        """The claims of a text, which are kept."""
        if text in self._of_texts:
            return self._of_texts[text]
        weight_of = self._weights.__getitem__
        claims, worths = [], []
        for sentence in _sentences(text, self._form):
            keys = sentence.words & self._keys
            claims.append(_Claim(keys, sentence))
            worths.append(sum(map(weight_of, keys)))
        least = max(worths, default=0.0) / 2
        relevant = [claim for claim, worth in zip(claims, worths, strict=True) if worth > least]
        is_most = True
        if not relevant:
            relevant = claims
        if len(relevant) < len(claims):
            size = sum(len(claim.sentence.words) for claim in relevant)
            is_most = size >= _LEAST * sum(len(claim.sentence.words) for claim in claims)
        self._of_texts[text] = relevant, is_most
        return relevant, is_most


class Said:
    """What an answer has said of a question, sentence by sentence: see `Claims`.

    A sentence is said again where at most one in seven of its words are new, and its words of the question, numbers,
    names and negations are the same.

    >>> said = Said(Claims({"pump": 1.0, "prime": 2.0}, "first5"))
    >>> said.sayer("Version 1. The pump is primed with two litres of clean water.", "a", 1)
    >>> said.sayer("Version 2. The pump is primed with two litres of fresh water!", "b", 2)
    1
    >>> said.sayer("Version 3. The pump is primed with six litres of clean water.", "c", 3)
    """

    def __init__(self, claims: Claims) -> None:
        self._claims = claims
        self._texts: dict[str, tuple[str, int]] = {}
        self._by_keys: defaultdict[frozenset[str], list[tuple[_Sentence, str, int]]] = defaultdict(
            list
        )

    def sayer(self, text: str, document_id: str, number: int) -> int | None:
        """The number of another document's text that has said what this text says of the question; None: it is new."""
        name, first = self._texts.get(text, (document_id, number))
        if name != document_id:
            return first
        claims, is_most = self._claims.of(text)
        sayers = [self._sayer(claim, document_id) for claim in claims]
        if sayers and None not in sayers and is_most:
            return sayers[0]
        self._texts[text] = document_id, number
        for claim in claims:
            self._by_keys[claim.keys].append((claim.sentence, document_id, number))
        return None

    def _sayer(self, claim: _Claim, document_id: str) -> int | None:
        sentence = claim.sentence
        for other, name, number in self._by_keys[claim.keys]:
            if name == document_id or sentence.decisive != other.decisive:
                continue
            if len(sentence.words - other.words) <= _SHARE * len(sentence.words):
                return number
        return None


@lru_cache(maxsize=2**14)
def _sentences(text: str, form: str) -> tuple[_Sentence, ...]:
    rows = []
    for match in _SENTENCE.finditer(text):
        words = frozenset(word_keys(match[0], form))
        decisive = {*_decisive(match[0]), *filter(has_unspaced, words)}
        if words:
            rows.append(_Sentence(words, frozenset(decisive)))
    return tuple(rows)


def has_decisive_words(text: str, other: str) -> bool:
    """Whether a text has the names, numbers and negations of another."""
    return set(_decisive(other)) <= set(map(str.casefold, _WORD.findall(text)))


def _decisive(text: str) -> Iterator[str]:
    """The names, numbers and negations in a text."""
    for word in _WORD.findall(text):
        folded = word.casefold()
        is_number = any(map(str.isdigit, word))
        is_negation = folded in _DECISIVE or folded.endswith(("n't", "n’t"))
        if is_number or is_negation or word != folded:
            yield folded
