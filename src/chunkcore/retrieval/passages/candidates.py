"""The units that passages are made of: `Question` has what its answers share, `Candidates` what one answer has."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from chunkcore.retrieval.base import Budget
from chunkcore.retrieval.corpus import ChunkedCorpus
from chunkcore.retrieval.passages.assembly import Counted, goes_on
from chunkcore.retrieval.passages.names import Lead, names_in
from chunkcore.retrieval.passages.tables import Header, Reader, reader_of
from chunkcore.retrieval.passages.windows import LexicalWindows, Units
from chunkcore.retrieval.passages.worth import Claims, Said, Shown, UnitPlaces
from chunkcore.retrieval.vectors import best_of
from chunkcore.run import RankedList, Retrieved
from chunkcore.spans import Numbers, Scores, as_ranges
from chunkcore.text import Span, text_of_spans
from chunkcore.tokens import TokenCounter

_FIRST = 0.3  # of the budget: so much the first hit may have
_NEEDED = 8  # units on either side that a reader may need with one
# Of names that link documents: how many of the best units' names are followed, which have this share of the best score.
_SOURCES, _NEAR = 3, 0.5
_LEADS = 2  # units that names lead to
_NEXT = 0.9  # of the score of the unit that names it
_SHARE = 0.25  # of the budget for them
_MOST_DOCUMENTS = 2  # other ones that have the name
_MOST_HOLDERS = 8  # units of these that have it

Place = tuple[str, tuple[Span, ...]]  # the document, and spans in it
Copies = dict[Place, list[int]]  # by what stands in an answer, the units that say the same


class Filled(NamedTuple):
    """An answer within a budget: its passages before they get their tables' headers, what says the same as their parts,
    and the tokens that are left.
    """

    passages: RankedList
    copies: Copies
    headers: dict[tuple[str, Span], Header]
    left: int


class UnitTexts(UnitPlaces):
    """Where an index's units stand, their texts, and what a reader needs with each.

    Attributes:
        sources: the documents by id.
    """

    def __init__(self, units: Units, corpus: ChunkedCorpus) -> None:
        super().__init__(units, corpus)
        self.units = units
        self.corpus = corpus
        self.sources = {document.id: document for document in corpus.documents}
        self._readers: dict[str, Reader | None] = {}  # of tables, by document
        self._goes_on = np.full(len(units), -1, dtype=np.int8)  # see `goes_on`; -1: unknown

    def chunk(self, unit: int) -> int:
        order = self.units.order
        return unit if order is None else int(order[unit])

    def place(self, unit: int) -> Place:
        """A unit's document and spans, without the header of a table that is repeated before its rows."""
        number, corpus = self.chunk(unit), self.corpus
        # Most units: without a Chunk of its own it takes a fifth of the time.
        if number not in corpus.special:
            document, _, start, end, _ = corpus.columns[:, number].tolist()
            return corpus.documents[document].id, (Span(start, end),)
        chunk = corpus[number]
        return chunk.document_id, chunk.spans[corpus.repeating.get(number, 0) :]

    def text(self, unit: int, spans: tuple[Span, ...] | None = None) -> str:
        """The text of a unit, or of these of its spans."""
        name, whole = self.place(unit)
        document = self.sources.get(name)
        if document is not None:
            return text_of_spans(document.text, whole if spans is None else spans)
        chunk = self.corpus[self.chunk(unit)]
        if whole == chunk.spans or len(whole) > 1:
            return chunk.text
        return chunk.text[-len(whole[0]) :]

    def goes_on(self, unit: int) -> int:
        """Whether a reader needs the next unit of the document, too: see the function `goes_on`."""
        known = int(self._goes_on[unit])
        if known < 0:
            known = 0
            name, spans = self.place(unit)
            document = self.sources.get(name)
            documents = self.units.documents[unit : unit + 2]
            if document is not None and len(documents) == 2 and documents[0] == documents[1]:
                known = goes_on(document.text, spans[-1], self.place(unit + 1)[1][0].start)
            self._goes_on[unit] = known
        return known

    def reach(self, unit: int) -> range:
        """A unit, its neighbours, and what a reader needs with it."""
        document = self.units.documents[unit]
        low, end = self.units.firsts[document : document + 2].tolist()
        high = end - 1
        first, last = max(low, unit - 1), min(high, unit + 1)
        low, high = max(low, first - _NEEDED), min(high, last + _NEEDED)
        while first > low and self.goes_on(first - 1):
            first -= 1
        while last < high and self.goes_on(last):
            last += 1
        return range(first, last + 1)

    def header(self, unit: int) -> Header:
        """The header that a unit repeats, or that stands above its rows."""
        number = self.chunk(unit)
        if number in self.corpus.repeating:
            return self.corpus[number].spans[: self.corpus.repeating[number]]
        name, rows = self.place(unit)
        if name not in self._readers:
            self._readers[name] = reader_of(self.sources[name])
        reader = self._readers[name]
        return () if reader is None else reader(self.sources[name].text, rows[0].start)


@dataclass(eq=False)
class Question:
    """What the answers to a question share, within whatever budget.

    Attributes:
        text: the question.
        scores: of the units; -inf of units of which nothing but white space is shown.
        shown: what of the documents passages may show.
        texts: the units' texts.
        lexical: the units' words; None if they do not count.
        form: of words; see `word_keys`.
        hits: the other retriever's hits and what is shown of them; None without.
        has_answer: whether the index has an answer; None: not known yet.
        first: the units of another retriever's first hit, which words do not contradict.
        last: the counter and the tokens of the last budget, and what filled it.
        cut: what is shown of the units of which a part is shown.
        units: of which something is shown.
        weights: of the question's words.
        claims: what texts say of the question.
        reached: what a reader needs with a unit, as far as it is known; see `UnitTexts.reach`.
        headers: of units that are rows of a table, as far as they are known.
    """

    text: str
    scores: Scores
    shown: Shown
    texts: UnitTexts
    lexical: LexicalWindows | None
    form: str
    hits: object = None
    has_answer: bool | None = None
    first: Numbers = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    last: tuple[TokenCounter, int, Filled] | None = None
    _counted: tuple[TokenCounter | None, Counted] = (None, {})
    _pieces: dict[int, Retrieved] = field(default_factory=dict)
    reached: dict[int, range] = field(default_factory=dict)
    headers: dict[int, Header] = field(default_factory=dict)

    def __post_init__(self) -> None:
        units = self.shown.cut_units.tolist()
        self.cut = {unit: self.shown.cut(*self.texts.place(unit)) for unit in units}
        for unit, spans in self.cut.items():
            if not spans or not self.texts.text(unit, spans).strip():
                self.scores[unit] = -math.inf
        self.units: Numbers = np.flatnonzero(self.scores > -math.inf)
        self.weights = {} if self.lexical is None else self.lexical.rarity(self.text)
        self.claims = Claims(self.weights, self.form)

    def counted(self, counter: TokenCounter) -> Counted:
        """The tokens of texts that were counted; those of the last counter are kept."""
        last, counted = self._counted
        if last is not counter:
            counted = {}
            self._counted = counter, counted
        return counted

    def place(self, unit: int) -> Place:
        """What is shown of a unit, and its document."""
        name, whole = self.texts.place(unit)
        return name, self.cut.get(unit, whole)

    def piece(self, unit: int) -> Retrieved:
        """What is shown of a unit."""
        if unit not in self._pieces:
            name, spans = self.place(unit)
            number = self.texts.corpus[self.texts.chunk(unit)].id
            text, score = self.texts.text(unit, spans), float(self.scores[unit])
            self._pieces[unit] = Retrieved(name, spans, score, text, id=number)
        return self._pieces[unit]

    def shown_text(self, unit: int) -> str:
        """What is shown of a unit's text; "": nothing."""
        return self.texts.text(unit, self.cut.get(unit)) if np.isfinite(self.scores[unit]) else ""

    def header(self, unit: int) -> Header:
        """The header of a unit that is rows of a table, if it is shown; see `UnitTexts.header`."""
        name, _ = self.texts.place(unit)
        if unit in self.cut or name not in self.texts.sources:
            return ()
        header = self.texts.header(unit)
        if header:
            starts, ends = (as_ranges(header) + self.texts.begin(name)).T
            if not self.shown.covers(starts, ends).all():
                return ()
        return header

    @cached_property
    def leads(self) -> list[Lead]:
        """The units that a rare name in the best ones leads to, the best first: of names that the question has not, and
        only one or two other documents have.
        """
        best = self.units[best_of(self.scores[self.units], _SOURCES)]
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
        text, weight_of = self.shown_text(unit), self.weights.__getitem__
        documents = self.texts.units.documents
        rest = self.weights.keys() - lexical.keys(text)
        for name in names_in(text):
            keys = lexical.keys(name)
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
                for holder in row.tolist():
                    other = self.shown_text(holder)
                    if name in other:
                        shared = rest.intersection(lexical.keys(other))
                        gains[holder] = sum(map(weight_of, shared))
                if gains:
                    best = max(gains, key=gains.__getitem__)
                    yield Lead(gains[best], best, unit)

    def with_sources(self, passage: Retrieved, copies: Copies) -> Retrieved:
        """The passage with the places that say the same as its parts."""
        if not copies:
            return passage
        sources = []
        for part in passage.parts:
            for unit in copies.get((part.document_id, part.spans), ()):
                name, spans = self.place(unit)
                sources.append(Retrieved(name, spans, text=self.texts.text(unit, spans)))
        return replace(passage, sources=tuple(sources))


class Candidates:
    """The units of one answer, with their scores.

    Attributes:
        scores: -inf of units that are not shown, and of copies.
        copied: those units that say the same as others.
    """

    def __init__(self, question: Question) -> None:
        self.question = question
        self.scores = question.scores.copy()
        self.copies: Copies = {}
        self.copied: set[int] = set()
        self._said = Said(question.claims)
        self._read: set[int] = set()

    def piece(self, unit: int) -> Retrieved:
        piece, score = self.question.piece(unit), float(self.scores[unit])
        return piece if piece.score == score else piece.with_score(score)

    def keep_first(self, budget: Budget) -> None:
        """The units of a short first hit score next to the best one, so that they stay; over it if not both fit."""
        first = np.unique(self.question.first)  # two spans may stand in one unit
        first = first[np.isfinite(self.scores[first])]
        size = 0
        for unit in first.tolist():
            size += budget.counter.count(self.question.shown_text(unit))
            if size > _FIRST * budget.left:  # a long hit is not read to its end
                return
        if len(first):
            best = int(self.scores.argmax())
            both = size + budget.counter.count(self.question.shown_text(best))
            towards = -math.inf if both <= budget.left else math.inf
            self.scores[first] = np.nextafter(self.scores[best], towards)

    def follow_names(self, budget: Budget) -> None:
        """Units that a rare name in the best ones leads to score next to these, up to a share of the budget."""
        room = _SHARE * budget.left
        for lead in self.question.leads:
            room -= budget.counter.count(self.question.shown_text(lead.unit))
            worth = _NEXT * self.scores[lead.source]
            if room >= 0 and worth > self.scores[lead.unit]:
                self.scores[lead.unit] = worth

    def joined(self, units: Numbers) -> list[bool]:
        """Of each of the units but the last, whether the next one is its neighbour, and what is between them shown."""
        texts, cut = self.question.texts, self.question.cut
        documents = texts.units.documents[units]
        is_next = (np.diff(units) == 1) & (np.diff(documents) == 0)
        starts, ends = texts.starts[units], texts.ends[units]
        for place, unit in enumerate(units.tolist()):
            if unit in cut:
                begin = texts.begin(texts.place(unit)[0])
                starts[place] = begin + cut[unit][0].start
                ends[place] = begin + cut[unit][-1].end
        is_shown = self.question.shown.covers(ends[:-1], starts[1:])
        joined: list[bool] = (is_next & is_shown).tolist()
        return joined

    def with_needed(self, units: Numbers) -> Numbers:
        """These units, their neighbours, and what a reader needs with each, as far as it is shown."""
        needed: set[int] = set()
        reached = self.question.reached
        for unit in units.tolist():
            if unit not in reached:
                reached[unit] = self.question.texts.reach(unit)
            needed.update(reached[unit])
        wide = np.array(sorted(needed), dtype=np.int64)
        return wide[np.isfinite(self.scores[wide])]

    def without_copies(self, units: Numbers, least: float) -> Numbers:
        """These units without those that say what a better one of them has said, which become its `copies`."""
        units_read = units[self.scores[units] >= least]
        order = units_read[np.argsort(-self.scores[units_read], kind="stable")]
        for unit in order.tolist():
            if unit in self._read:
                continue
            self._read.add(unit)
            name, spans = self.question.place(unit)
            sayer = self._said.sayer(self.question.texts.text(unit, spans), name, unit)
            if sayer is not None:
                self.copies.setdefault(self.question.place(sayer), []).append(unit)
                self.copied.add(unit)
                self.scores[unit] = -math.inf
        return units[np.isfinite(self.scores[units])]

    def headers(self, units: Numbers) -> dict[tuple[str, Span], Header]:
        """The header of each of these units that are rows of a table, by its document and its first span of rows."""
        headers = {}
        for unit in units.tolist():
            if unit not in self.question.headers:
                self.question.headers[unit] = self.question.header(unit)
            header = self.question.headers[unit]
            if header:
                name, rows = self.question.texts.place(unit)
                headers[name, rows[0]] = header
        return headers
