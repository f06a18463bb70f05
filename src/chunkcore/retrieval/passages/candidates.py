"""The units that passages are made of: `Question` has what its answers share, `Answer` what fills one budget."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
import regex

from chunkcore.retrieval.base import best_of
from chunkcore.retrieval.budget import Budget, CountedOnce
from chunkcore.retrieval.lexicon import HAS_UNSPACED, odds_against, without_tags, word_keys
from chunkcore.retrieval.passages.assembly import (
    Row,
    header_tokens,
    passages_of,
    with_table_headers,
    without_bare_headers,
)
from chunkcore.retrieval.passages.units import Header, Shown, Units
from chunkcore.retrieval.passages.windows import LexicalWindows
from chunkcore.run import Retrieved
from chunkcore.spans import Numbers, Scores, as_ranges, as_table
from chunkcore.text import Document, Span, text_of_spans

FEW = 10  # units, among fewer of which no score stands out
_NEEDED = 8  # units on either side that a reader may need with one and its neighbours
_LEAST = 0.15  # of the best unit's score: a unit with less becomes no part of a passage
_MOST_COPIES = 300  # that an answer reads: more leave it shorter
_FIRST = 0.3  # of the budget: so much the first hit may have
# Of names that link documents: how many of the best units' names are followed, which have this share of the best score.
_SOURCES, _NEAR = 3, 0.5
_LEADS = 2  # units that names lead to
_NEXT = 0.9  # of the score of the unit that names it
_ROOM = 0.25  # of the budget for them
_MOST_DOCUMENTS = 2  # other ones that have the name
_MOST_HOLDERS = 8  # units of these that have it

Place = tuple[str, tuple[Span, ...]]  # the document, and spans in it


@dataclass(eq=False)
class Question:
    """What the answers to a question share, within whatever budget.

    Attributes:
        text: the question.
        scores: of the units; -inf of units of which nothing but white space is shown.
        shown: what of the documents passages may show.
        units: the index's units.
        lexical: their words; None if they do not count.
        form: of words; see `word_keys`.
        hits: the other retriever's hits and what is shown of them; None without.
        has_answer: whether the index has an answer; None: not known yet.
        first: the units of another retriever's first hit, which words do not contradict.
        last: what filled the last budget.
        counter: the last one, which counts each text of the answers once.
        cut: what is shown of the units of which a part is shown.
        visible: the units of which something is shown.
        weights: of the question's words, the logarithm of how few units have each.
        claims: what texts say of the question, as far as it is known.
        reached: what a reader needs with a unit, as far as it is known.
    """

    text: str
    scores: Scores
    shown: Shown
    units: Units
    lexical: LexicalWindows | None
    form: str
    hits: object = None
    has_answer: bool | None = None
    last: Answer | None = None
    counter: CountedOnce | None = None

    def __post_init__(self) -> None:
        self.first: Numbers = np.zeros(0, np.int64)
        self._pieces: dict[int, Retrieved] = {}
        self.claims: dict[str, Claims] = {}
        self.reached: dict[int, range] = {}
        self._headers: dict[int, Header] = {}
        self.cut = self.shown.cut
        for unit, spans in self.cut.items():
            if not spans or not self.piece(unit).text.strip():
                self.scores[unit] = -math.inf
        self.visible: Numbers = np.flatnonzero(self.scores > -math.inf)
        self.weights: dict[str, float] = {}
        if self.lexical is not None:
            size = len(self.scores)
            for key, count in self.lexical.counts(self.text).items():
                self.weights[key] = math.log1p(odds_against(count, size))

    def piece(self, unit: int) -> Retrieved:
        """What is shown of a unit."""
        if unit in self._pieces:
            return self._pieces[unit]
        source = self.units.given[self.units.documents[unit]]
        chunk = self.units.corpus.item(int(self.units.order[unit]))
        shown = self.cut.get(unit) or self.units.spans(unit)
        text, score = text_of_spans(source.text, shown), float(self.scores[unit])
        piece = self._pieces[unit] = Retrieved(source.id, shown, score, text, id=chunk.id)
        return piece

    def header(self, unit: int) -> Header:
        """The header of a table that a unit repeats, or that stands above its rows; () if it is not shown whole."""
        if unit in self._headers:
            return self._headers[unit]
        units = self.units
        header: Header = ()
        document = units.documents[unit]
        begin, source = units.begins[document], units.given[document]
        if unit not in self.cut:
            place, reader = int(units.order[unit]), units.readers[document]
            repeated = units.corpus.repeating.get(place)
            if repeated:
                header = units.corpus.special[place].spans[:repeated]
            elif reader is not None:
                header = reader(source.text, int(units.starts[unit] - begin))
        if header:
            starts, ends = (as_ranges(header) + begin).T
            if not self.shown.covers(starts, ends).all():
                header = ()
        self._headers[unit] = header
        return header

    @cached_property
    def leads(self) -> list[Lead]:
        """The units that a rare name in the best ones leads to, the best first: of names that the question has not, and
        only one or two other documents have.
        """
        best = self.visible[best_of(self.scores[self.visible], _SOURCES)]
        top = self.scores[best].max(initial=0.0)
        if top <= 0 or not self.weights or self.lexical is None:
            return []
        near = best[self.scores[best] >= _NEAR * top].tolist()
        leads: list[Lead] = []
        for unit in near:
            leads += self._leads_of(unit, self.lexical)
        return sorted({lead.unit: lead for lead in sorted(leads)}.values(), reverse=True)[:_LEADS]

    def _leads_of(self, unit: int, lexical: LexicalWindows) -> Iterator[Lead]:
        """For each name in a unit and each other document that has it, the unit that says most of the question."""
        text, documents = self.piece(unit).text, self.units.documents
        rest = self.weights.keys() - word_keys(text, self.form)
        for name in names_in(text):
            keys = word_keys(name, self.form)
            if not keys or self.weights.keys() >= set(keys):
                continue
            units = lexical.units_with(keys)
            units = units[documents[units] != documents[unit]]
            if not 0 < len(units) <= _MOST_HOLDERS:
                continue
            rows = np.split(units, np.flatnonzero(np.diff(documents[units])) + 1)
            if len(rows) > _MOST_DOCUMENTS:
                continue
            for row in rows:
                gains = {}
                for holder in row[np.isfinite(self.scores[row])].tolist():
                    other = self.piece(holder).text
                    if name in other:
                        shared = rest.intersection(word_keys(other, self.form))
                        gains[holder] = sum(map(self.weights.__getitem__, shared))
                if gains:
                    best = max(gains, key=gains.__getitem__)
                    yield Lead(gains[best], best, unit)


class Answer:
    """The passages of a question that fill a budget.

    Args:
        question: the question.
        budget: of their tokens.
        least: a unit with a lower score becomes no part of a passage; None: 0.15 of the best one's score, or among few
            units that of any with a word of the question. Then the first hit stays, and rare names are followed.

    Attributes:
        limit: the budget's counter, and the tokens that were left of it.
        scores: of the units; -inf of units that are not shown, and of copies.
    """

    def __init__(
        self,
        question: Question,
        budget: Budget,
        least: float | None = None,
    ) -> None:
        self.question = question
        self.limit = budget.counter, budget.left
        counter = question.counter  # another thread may ask meanwhile
        if counter is None or counter.counter is not budget.counter:
            counter = question.counter = CountedOnce(budget.counter)
        self._budget = budget = Budget(budget.left, counter)
        self.scores = question.scores.copy()
        self._copies: dict[Place, list[int]] = {}  # units that say the same as one of the answer
        self._said = Said(question.weights, question.form, question.claims)
        self._headers: dict[tuple[str, Span], Header] = {}  # of rows of tables
        self._read: set[int] = set()  # units of which is known whether they are copies
        is_given = least is not None
        if least is None:
            least = self._least()
            self._raise_scores(budget)
        units, sizes = self._candidates(budget, least)
        if self._copies and not is_given:
            least = self._least()
        sources, reserved = question.units.sources, 0
        row = self._row(units, sizes, least)
        if self._headers:
            best = row.units[int(self.scores[units].argmax())]
            header = self._headers.get((best.document_id, best.spans[0]), ())
            reserved = header_tokens(best, header, budget, sources)
        budget.left -= reserved
        self._passages = passages_of(row, budget, sources)
        budget.left += reserved

    def _row(self, units: Numbers, sizes: Numbers, least: float) -> Row:
        """The units of which passages are made; those that are rows of a table leave their header."""
        question, index = self.question, self.question.units
        pieces, goes_on = [], []
        for unit in units.tolist():
            piece, score = question.piece(unit), float(self.scores[unit])
            if piece.score != score:
                piece = replace(piece, score=score)
            pieces.append(piece)
            goes_on.append(index.goes_on(unit))
            header = question.header(unit)
            if header:
                self._headers[piece.document_id, piece.spans[0]] = header
        # A unit is joined to the next one if it is its neighbour, and what is between them shown.
        documents = index.documents[units]
        is_next = (np.diff(units) == 1) & (np.diff(documents) == 0)
        extents = [(piece.spans[0].start, piece.spans[-1].end) for piece in pieces]
        starts, ends = as_table(extents).T + index.begins[documents]
        joined = [*(is_next & question.shown.covers(ends[:-1], starts[1:])).tolist(), False]
        return Row(pieces, sizes.tolist(), joined, goes_on, least)

    def passages(self, k: int | None = None) -> list[Retrieved]:
        """The first `k` passages with their tables' headers, and the places that say the same as their parts."""
        budget, sources = copy(self._budget), self.question.units.sources
        passages = self._passages[:k]
        if self._headers:
            passages = with_table_headers(passages, self._headers, budget, sources)
        whole = []
        for passage in without_bare_headers(passages, sources):
            text = passage.text
            if "<" in text or "&" in text:
                text = without_tags(Document(passage.document_id, text))
            if not text.strip():
                continue
            copies: list[int] = []
            for part in passage.parts:
                copies += self._copies.get((part.document_id, part.spans), ())
            if copies:
                pieces = map(self.question.piece, copies)
                same = [
                    Retrieved(piece.document_id, piece.spans, text=piece.text) for piece in pieces
                ]
                passage = replace(passage, sources=tuple(same))
            whole.append(passage)
        return whole

    def _least(self) -> float:
        """A unit with a lower score becomes no part of a passage. Among few units, any with a word of the query may."""
        question = self.question
        best = float(self.scores.max(initial=0.0))
        least = _LEAST * best or -math.inf
        count = len(self.scores) - sum(map(len, self._copies.values()))
        if count < FEW and question.lexical is not None:
            for key in question.weights:
                units = question.lexical.units_with([key])
                least = min(least, float(self.scores[units].min(initial=math.inf)))
        return least

    def _raise_scores(self, budget: Budget) -> None:
        """The units of a short first hit score next to the best one, so that they stay; over it if not both fit. Units
        that a rare name in the best ones leads to score next to these, up to a share of the budget.
        """
        room = _FIRST * budget.left
        first = self.question.first
        first = first[np.isfinite(self.scores[first])]
        if 0 < len(first) <= room:  # a long hit is not read
            best = int(self.scores.argmax())
            *sizes, more = self._sizes(np.append(first, best)).tolist()
            if sum(sizes) <= room:
                towards = -math.inf if sum(sizes) + more <= budget.left else math.inf
                self.scores[first] = np.nextafter(self.scores[best], towards)
        room = _ROOM * budget.left
        for lead in self.question.leads:
            room -= int(self._sizes(np.array([lead.unit]))[0])
            worth = _NEXT * self.scores[lead.source]
            if room >= 0 and worth > self.scores[lead.unit]:
                self.scores[lead.unit] = worth

    def _candidates(self, budget: Budget, least: float) -> tuple[Numbers, Numbers]:
        """The best units, and gaps between them, that fill the budget, and their tokens; without units that say what a
        better one of them has said, which become its copies.
        """
        question, visible, units_of = self.question, self.question.visible, self.question.units
        most = len(visible)
        count = min(8 + int(1.25 * budget.left / units_of.mean_tokens), most)
        while True:
            best = visible[best_of(self.scores[visible], count)]
            units = self._with_needed(units_of.with_gaps(self.scores, best))
            better = units[self.scores[units] >= least]
            for unit in better[np.argsort(-self.scores[better], kind="stable")].tolist():
                if unit in self._read:
                    continue
                self._read.add(unit)
                piece = question.piece(unit)
                sayer = self._said.sayer(piece.text, piece.document_id, unit)
                if sayer is not None:
                    first = question.piece(sayer)
                    self._copies.setdefault((first.document_id, first.spans), []).append(unit)
                    self.scores[unit] = -math.inf
            units = units[np.isfinite(self.scores[units])]
            sizes = self._sizes(units)
            copies = sum(map(len, self._copies.values()))
            if count >= most or sizes.sum() > budget.left or copies > _MOST_COPIES:
                return units, sizes
            count *= 2

    def _with_needed(self, units: Numbers) -> Numbers:
        """These units, their neighbours, and what a reader needs with each, as far as it is shown."""
        needed: set[int] = set()
        index, reached = self.question.units, self.question.reached
        for unit in units.tolist():
            if unit not in reached:
                document = index.documents[unit]
                begin, end = index.firsts[document : document + 2].tolist()
                first, last = max(begin, unit - 1), min(end - 1, unit + 1)
                low, high = max(begin, first - _NEEDED), min(end - 1, last + _NEEDED)
                while first > low and index.goes_on(first - 1):
                    first -= 1
                while last < high and index.goes_on(last):
                    last += 1
                reached[unit] = range(first, last + 1)
            needed.update(reached[unit])
        wide = np.array(sorted(needed), np.int64)
        return wide[np.isfinite(self.scores[wide])]

    def _sizes(self, units: Numbers) -> Numbers:
        """The tokens of what is shown of units."""
        texts = [self.question.piece(unit).text for unit in units.tolist()]
        return self._budget.counter.count_many(texts)


# ---- Names that link documents

_WORD = r"[\p{L}\p{M}\p{N}_]+(?:[-.'’/][\p{L}\p{M}\p{N}_]+)*"
_CAPITAL = rf"(?=\p{{Lu}}){_WORD}"
_TOKEN = regex.compile(rf"{_CAPITAL}(?: {_CAPITAL})+|{_WORD}")
_IDENTIFIER = regex.compile(r"(?=.*\p{N})\p{L}.{3,}|.+_.+")
_IN_SENTENCE = regex.compile(r"[\p{Ll},] $")
_FEW = (
    8  # at most one word in so many is a name of one word: German writes every noun with a capital
)


def names_in(text: str) -> list[str]:
    """The names in a text: words in a row that begin with a capital, one inside a sentence, and identifiers.

    >>> names_in("The clock by Ana Holt, of Valby, has ticket OPS-4412.")
    ['Ana Holt', 'Valby', 'OPS-4412']
    """
    names, single = [], []
    tokens = list(_TOKEN.finditer(text))
    for token in tokens:
        if " " in token[0] or _IDENTIFIER.fullmatch(token[0]):
            names.append(token[0])
        elif token[0].istitle() and _IN_SENTENCE.search(
            text, max(0, token.start() - 2), token.start()
        ):
            names.append(token[0])
            single.append(token[0])
    if _FEW * len(single) > len(tokens):
        common = set(single)
        names = [name for name in names if name not in common]
    return list(dict.fromkeys(names))


class Lead(NamedTuple):
    """A unit that a name leads to. `gain`: the weight of the question's words that it has and the source has not."""

    gain: float
    unit: int
    source: int


# ---- What has been said

_SENTENCE = re.compile(r"[^.!?。！？؟।\n]+(?:[.!?。！？؟।]+(?!\s)[^.!?。！？؟।\n]*)*")
_TERM = re.compile(r"[^\W_]+(?:['’.,:/-][^\W_]+)*")
_SHARE = 0.15  # of a sentence's words may be new
_MOSTLY = 0.4  # of a text's words are in the sentences that are said again
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


Claims = tuple[list[_Claim], bool]


def claims_of(text: str, weights: Mapping[str, float], form: str) -> Claims:
    """The sentences of a text that say something of a question, and whether these are nearly half of it.

    Those are its sentences with more than half as much of the question's words, by weight, as the best of them.
    """
    claims, worths = [], []
    for sentence in _sentences(text, form):
        keys = sentence.words.intersection(weights)
        claims.append(_Claim(keys, sentence))
        worths.append(sum(map(weights.__getitem__, keys)))
    least = max(worths, default=0.0) / 2
    relevant = [claim for claim, worth in zip(claims, worths, strict=True) if worth > least]
    if not relevant or len(relevant) == len(claims):
        return claims, True
    size = sum(len(claim.sentence.words) for claim in relevant)
    return relevant, size >= _MOSTLY * sum(len(claim.sentence.words) for claim in claims)


@dataclass
class Said:
    """What an answer has said of a question, sentence by sentence: see `claims_of`.

    A sentence is said again where at most one in seven of its words are new, and its words of the question, numbers,
    names and negations are the same.

    >>> said = Said({"pump": 1.0, "prime": 2.0}, "first5")
    >>> said.sayer("Version 1. The pump is primed with two litres of clean water.", "a", 1)
    >>> said.sayer("Version 2. The pump is primed with two litres of fresh water!", "b", 2)
    1
    >>> said.sayer("Version 3. The pump is primed with six litres of clean water.", "c", 3)
    """

    weights: Mapping[str, float]
    form: str
    claims: dict[str, Claims] = field(default_factory=dict)  # of texts, also of earlier answers
    _texts: dict[str, tuple[str, int]] = field(default_factory=dict)
    _by_keys: dict[frozenset[str], list[tuple[_Sentence, str, int]]] = field(default_factory=dict)

    def sayer(
        self,
        text: str,
        document_id: str,
        unit: int,
    ) -> int | None:
        """The number of another document's text that has said what this text says of the question; None: it is new."""
        name, first = self._texts.get(text, (document_id, unit))
        if name != document_id:
            return first
        if text not in self.claims:
            self.claims[text] = claims_of(text, self.weights, self.form)
        claims, is_most = self.claims[text]
        sayers = []
        for claim in claims:
            words, decisive = claim.sentence
            for other, name, number in self._by_keys.get(claim.keys, ()):
                is_same = name != document_id and decisive == other.decisive
                if is_same and len(words - other.words) <= _SHARE * len(words):
                    sayers.append(number)
                    break
        if sayers and len(sayers) == len(claims) and is_most:
            return sayers[0]
        self._texts[text] = document_id, unit
        for claim in claims:
            rows = self._by_keys.setdefault(claim.keys, [])
            rows.append((claim.sentence, document_id, unit))
        return None


@lru_cache(maxsize=2**14)
def _sentences(text: str, form: str) -> tuple[_Sentence, ...]:
    rows = []
    for match in _SENTENCE.finditer(text):
        words = frozenset(word_keys(match[0], form))
        decisive = set(_decisive(match[0]))
        if not match[0].isascii():
            decisive.update(filter(HAS_UNSPACED.search, words))
        if words:
            rows.append(_Sentence(words, frozenset(decisive)))
    return tuple(rows)


def has_decisive_words(text: str, other: str) -> bool:
    """Whether a text has the names, numbers and negations of another."""
    return set(_decisive(other)) <= set(map(str.casefold, _TERM.findall(text)))


def _decisive(text: str) -> Iterator[str]:
    """The names, numbers and negations in a text."""
    for word in _TERM.findall(text):
        folded = word.casefold()
        is_number = any(map(str.isdigit, word))
        is_negation = folded in _DECISIVE or folded.endswith(("n't", "n’t"))
        if is_number or is_negation or word != folded:
            yield folded
