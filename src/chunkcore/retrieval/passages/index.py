"""`Passages`: passages of any size from small units; `WindowIndex.behind`: passages behind another retriever."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from chunkcore.errors import OptionError, echo
from chunkcore.options import Bounds, check_number
from chunkcore.retrieval.base import (
    MAX_TOKENS,
    Hits,
    MaxTokens,
    PassageIndex,
    RetrievalMethod,
    best_of,
    retrievers,
)
from chunkcore.retrieval.budget import Budget, first_cut
from chunkcore.retrieval.corpus import ChunkedCorpus
from chunkcore.retrieval.lexicon import check_words, word_keys, words
from chunkcore.retrieval.passages.assembly import Order, in_order
from chunkcore.retrieval.passages.candidates import FEW, Answer, Question, has_decisive_words
from chunkcore.retrieval.passages.units import (
    BALANCE,
    MOST,
    NEAREST,
    Show,
    Shown,
    Signs,
    Units,
    holds_all,
    levels,
    needed_level,
    phrase_share,
    presence,
    ranges_of,
    shown_units,
)
from chunkcore.retrieval.passages.windows import DenseWindows, LexicalWindows, mean_of_squares
from chunkcore.retrieval.vectors import OTHER_QUESTIONS, TextVectors
from chunkcore.run import RankedList, Retrieved
from chunkcore.spans import Floats, Numbers, Scores
from chunkcore.text import text_of_spans
from chunkcore.tokens import TokenCounter, get_counter

KINDS = ("dense", "lexical")
# What relates a question to a unit: the nearness and a third of the share of its words, by weight, that the unit has;
# or half of its words.
_THIRD, _HALF = 1 / 3, 0.5
_WORDS = 1.5  # of the share of the words beside nearness, in `signs`
_AGAIN = 0.7  # of a unit's words, by weight, are said again
_NARROW = 0.99  # a model whose unrelated texts have a higher cosine tells nothing
_BY_WORDS = 0.55  # where words are all that relates: what a unit has of the question's, by norm 2
_KEPT = 2**27  # bytes of the last questions: a score a unit, and what their answers share
_SHARED = 2**18


@retrievers.register("passages")
@dataclass(frozen=True, kw_only=True)
class Passages(RetrievalMethod):
    """Passages of any size: exact spans under a budget of tokens, from small chunks that are indexed once.

    The chunks are units, in the order of their documents: small ones, such as ``sentence:size=50``. For a question,
    each kind (dense, lexical) scores every unit's windows at all scales: see the module `windows`. A unit's score is
    `balance` times dense and 1 - `balance` times lexical. Words of a document's name (its file, title, company and
    year) count in all its units, see `Names`, and those of a heading in all under it. `search` ranks the units, ties by
    their place; `retrieve` returns passages, see `passages_of`: with `max_tokens` the budget's, with `k` the first k at
    a budget of 1,000 tokens. A unit that scores under 0.15 of the best one is left out, so that a budget need not be
    used up; among fewer than ten units, none that has a word of the question. A unit that says of the question what a
    better one of another document has said, up to small edits, becomes one of its passage's `sources`. A rare name that
    the best units have and the question has not leads to another document, for up to a quarter of the budget.
    `is_related` says whether a question has more in common with the collection than chance. By words alone: a unit's
    words of the question, by their weights, exceed 0.55 of the root of the sum of squares of all. With vectors, a unit
    with over half of the words is related, and so is one that is nearer than most of sixteen questions on everyday
    things, such as "Who wrote Hamlet?", are to any: by the cosine, of which 0 is what those questions have in the
    middle, and a third of the share of those words. So it holds for models whose cosines are all high. A question
    without a known word, or with vectors one that is not related and of whose words none tells units apart, has no
    answer. An index that `chunkcore.study.enough.calibrate` made calls a question related by its `presence`.

    Attributes:
        kinds: dense, lexical or both. As a string: ``passages:lexical``, which needs no model.
        balance: the dense kind's share of the score, 0 to 1. The default loses least where a kind knows little; see
            the evidence page.
        words: of lexical: "first5", cut to the first 5 characters, or "whole"; see `word_keys`.
        k1: see `BM25`.
        b: see `BM25`.
        counter: of the budget's tokens, unless a report asks with its own.
        order: of passages: "score", the best first, or "document", those of one document together, in its order.

    Cost: one embedding per chunk and query; one product of the vectors with the question. An index takes, beside the
    vectors, 200 bytes a unit and 5 to 8 a distinct word of a unit.

    Raises `OptionError`: an unknown kind or counter, or an option out of range. Raises `DataError`: when indexing,
    chunks overlap. A table's header before other rows of it is no overlap: passages have it once.

    >>> Passages().name, Passages(kinds=("lexical",), words="whole").name
    ('passages', 'passages:lexical,words=whole')
    """

    kinds: tuple[str, ...] = KINDS
    balance: float = 0.7
    words: str = "first5"
    k1: float = 1.2
    b: float = 0.75
    counter: str = "cl100k_base"
    order: Order = "score"
    bounds = Bounds(balance=(0, 1), k1=0, b=(0, 1))
    leading = "kinds"
    makes_passages = True

    def validate(self) -> None:
        if sorted(self.kinds) not in (["dense"], ["lexical"], ["dense", "lexical"]):
            raise OptionError(
                f"passages: kinds are dense, lexical or both, each once; got {', '.join(self.kinds)!r}"
            )
        check_words(self.words)
        get_counter(self.counter)

    def shares(self) -> dict[str, float]:
        """Each kind's share of the score; a kind without a share is not scored."""
        if len(self.kinds) == 1:
            return {self.kinds[0]: 1.0}
        shares = {"dense": self.balance, "lexical": 1 - self.balance}
        return {kind: share for kind, share in shares.items() if share}

    @property
    def embeds(self) -> bool:
        return "dense" in self.shares()

    def check_chunks(self, corpus: ChunkedCorpus) -> None:
        Units(corpus)

    def build(
        self,
        corpus: ChunkedCorpus,
        vectors: TextVectors,
    ) -> WindowIndex:
        return WindowIndex(corpus, vectors, self)


class WindowIndex(PassageIndex):
    """Scores of every unit's windows at every scale, and passages of the best units."""

    def __init__(
        self,
        corpus: ChunkedCorpus,
        vectors: TextVectors,
        options: Passages,
    ) -> None:
        super().__init__(corpus)
        self.counter = options.counter
        self.units = Units(corpus)
        self.sources = corpus.sources
        self._options = options
        self._vectors = vectors
        self._shares = options.shares()
        self._dense: DenseWindows | None = None
        # Questions, the last ones last, by their texts and whether they were asked with hits.
        self._last: dict[tuple[str, bool], Question] = {}
        self.questions_kept: int = max(1, _KEPT // (8 * len(self.units) + _SHARED))
        if "dense" in self._shares:
            rows, _ = self._vectors.chunks(corpus, cluster_only=True)
            norms = self._vectors.norms(corpus)
            self._dense = DenseWindows(self.units, rows, norms)
            if norms is None:
                self._vectors.hold(corpus, self._dense.norms, "norms")
        if "lexical" in self._shares:
            # Postings are saved; windows are made for the first question.
            corpus.postings(options.words)

    @cached_property
    def _lexical(self) -> LexicalWindows:
        options = self._options
        return LexicalWindows(self.units, form=options.words, k1=options.k1, b=options.b)

    # ---- Scores

    def rank(
        self,
        queries: Sequence[str],
        k: int,
    ) -> Hits:
        rows = []
        for question in self._questions(queries):
            best = best_of(question.scores, k)
            rows.append((self.units.order[best], question.scores[best]))
        return Hits.of(rows)

    def _questions(self, queries: Sequence[str]) -> Iterator[Question]:
        """The queries; the last ones are kept: a report asks at several limits."""
        kept = {query: self._last.get((query, False)) for query in queries}
        new = self._scored([query for query in queries if kept[query] is None])
        for query in queries:
            yield kept[query] or self._asked(query, next(new), self._everything)

    def _asked(self, text: str, scores: Scores, shown: Shown, hits: object = None) -> Question:
        """A question, which is kept."""
        lexical = self._lexical if "lexical" in self._shares else None
        question = Question(text, scores, shown, self.units, lexical, self._options.words, hits)
        self._last[text, hits is not None] = question
        if len(self._last) > self.questions_kept:
            oldest = list(self._last)[:1]  # none, where other threads take questions out meanwhile
            for key in oldest:
                self._last.pop(key, None)
        return question

    @cached_property
    def _everything(self) -> Shown:
        return Shown(self.units, np.array([[0, np.iinfo(np.int64).max]]))

    def _scored(self, queries: Sequence[str]) -> Iterator[Scores]:
        if self._dense is not None and queries:
            vectors = self._vectors.queries(queries)
        for place, query in enumerate(queries):
            scores = np.zeros(len(self.units))
            if "lexical" in self._shares:
                scores += self._shares["lexical"] * self._lexical.scores(query)
            if self._dense is not None:
                scales = self._dense.scales(self._dense.cosines(vectors[place]))
                scores += self._shares["dense"] * mean_of_squares(scales, len(scores), 1.0)
            yield scores

    # ---- Whether a question has an answer here

    def is_related(self, query: str) -> bool:
        """Whether a unit is nearer to a question than chance gives; see `Passages`. Of a calibrated index: whether its
        answer is there as far as the labelled questions show; see `Enough`.
        """
        if self.enough is not None:
            return self.presence(query) >= self.enough.least
        return self._is_related(query)

    def _is_related(self, query: str) -> bool:
        if len(self.units) < FEW and self._knows(query):
            return True
        if self._dense is None:
            return float(self._lexical.shares(query, 2).max(initial=0.0)) > _BY_WORDS
        if self._share(query) > _HALF:
            return True
        return self._relation(query, self._vectors.queries([query])[0]) > self._chance

    def _knows(self, query: str) -> bool:
        """Whether a unit has a word of the question."""
        return "lexical" in self._shares and any(self._lexical.counts(query).values())

    def _has_answer(self, query: str) -> bool:
        if self._dense is None:
            return self._knows(query)
        return self._share(query) > 0 or self._is_related(query)

    def _share(self, query: str) -> float:
        if "lexical" not in self._shares:
            return 0.0
        return float(self._lexical.shares(query).max(initial=0.0))

    def _relation(self, query: str, vector: Floats) -> float:
        assert self._dense is not None
        nearest = self._nearness(self._dense.cosines(vector))
        return float(nearest.max(initial=-1.0)) + _THIRD * self._share(query)

    def _nearness(self, cosines: Scores) -> Scores:
        """Cosines, of which 0 is what questions on something else have with their best unit, and 1 is 1."""
        return (cosines - self._usual) / (1 - self._usual)

    @cached_property
    def _usual(self) -> float:
        assert self._dense is not None
        cosines = map(self._dense.cosines, self._vectors.of_others)
        nearest = [row.max(initial=-1.0) for row in cosines]
        return min(float(np.median(nearest)), _NARROW)

    @cached_property
    def _chance(self) -> float:
        """The relation of questions on something else: the upper quartile."""
        relations = map(self._relation, OTHER_QUESTIONS, self._vectors.of_others)
        return float(np.quantile(list(relations), 0.75))

    def presence(self, question: str) -> float:
        """The log odds that the answer is there, if half of all questions have theirs, by `signs`."""
        return presence(self.signs(question), by_words=self._dense is None)

    def missing_words(
        self,
        question: str,
        passages: Iterable[Retrieved],
    ) -> list[str]:
        """The words of a question that none of these passages has, the rarest first; not those that most units have."""
        form = self._options.words
        held = {key for passage in passages for key in word_keys(passage.text, form)}
        weights = self._lexical.word_weights(question)
        missing = {}
        for word in words(question):
            key = word_keys(word, form)[0]
            if weights.get(key, 0.0) > 0 and key not in held:
                missing[word] = weights[key]
        return sorted(missing, key=lambda word: -missing[word])

    def signs(self, question: str) -> Signs:
        """What the question and the index have in common. Time: that of `retrieve`."""
        if not len(self.units):
            return Signs(0.0, 0.0, 0.0, 0.0)
        lexical = self._lexical
        relation, wider = lexical.shares(question), lexical.shares(question, width=1)
        if self._dense is not None:
            cosines = self._dense.cosines(self._vectors.queries([question])[0])
            scales = self._dense.scales(cosines)
            relation = _WORDS * relation + self._nearness(next(scales))
            wider = _WORDS * wider + self._nearness(next(scales))
        scores = next(self._questions([question])).scores
        best = best_of(scores, NEAREST)
        documents = self.units.documents
        others = scores[documents != documents[best[0]]]
        lead = 0.0
        if len(others):
            lead = float(np.sqrt(scores[best[0]].clip(0)) - np.sqrt(others.max().clip(0)))
        form = self._options.words
        chunks = map(self.corpus.item, self.units.order[best].tolist())
        texts = [word_keys(chunk.text, form) for chunk in chunks]
        keys = word_keys(question, form)
        phrase = phrase_share(keys, lexical.word_weights(question), texts)
        return Signs(float(relation.max()), float(wider.max()), lead, phrase)

    def sayer(self, text: str, evidence: str) -> str | None:
        """The document in which a unit with its neighbours has 0.7 of a text's words, by weight, and the names, numbers
        and negations of the evidence; None: no unit has.
        """
        shares = self._lexical.shares(text, width=1)
        if shares.max(initial=0.0) < _AGAIN:
            return None
        best = int(shares.argmax())
        start, end = self.units.windows(1)
        chunks = self.units.order[start[best] : end[best]].tolist()
        around = " ".join(self.corpus[chunk].text for chunk in chunks)
        return self.corpus[chunks[0]].document_id if has_decisive_words(around, evidence) else None

    # ---- Passages

    def passages(
        self,
        queries: Sequence[str],
        k: int | None,
        max_tokens: int | None,
        counter: TokenCounter,
    ) -> list[list[Retrieved]]:
        answers: list[list[Retrieved]] = []
        for question in self._questions(queries):
            passages: Sequence[Retrieved] = ()
            if question.has_answer is None:
                question.has_answer = self._has_answer(question.text)
            if question.has_answer:
                budget = Budget(max_tokens or MAX_TOKENS, counter)
                passages = self._answer(question, budget, k)
            answers.append(in_order(passages, self._options.order))
        return answers

    def enough_pieces(
        self,
        query: str,
        k: int | None,
    ) -> RankedList:
        level = self._level(behind=False)
        if not self._has_answer(query):
            return RankedList()
        question = next(self._questions([query]))
        passages = self._up_to(level, question, get_counter(self.counter))
        return in_order(passages[:k], self._options.order)

    def _level(self, *, behind: bool) -> float:
        """Raises `OptionError`: no level is known."""
        if self.enough is None or self.enough.behind != behind:
            where = "behind a retriever" if behind else "of this index alone"
            raise OptionError(
                f'max_tokens="auto" needs thresholds for passages {where}: calibrate the index with labelled '
                "questions (chunkcore calibrate, or chunkcore.study.enough.calibrate)"
            )
        return self.enough.level

    def _up_to(self, level: float, question: Question, counter: TokenCounter) -> list[Retrieved]:
        """The passages of all units up to a level, and of gaps between them."""
        units = shown_units(question.scores, self.units.tokens, level)
        if not len(units):
            return []
        tokens = int(self.units.tokens[units].sum())
        budget = Budget(2 * tokens + MAX_TOKENS, counter)
        least = float(question.scores[units].min())
        return Answer(question, budget, least).passages()

    def needed(
        self,
        question: str,
        places: Sequence[Retrieved],
        hits: Iterable[Retrieved] | None = None,
    ) -> tuple[float, Scores]:
        """The level of units that shows all text of some places, see `levels`; and the scores of the units.

        The level is infinite if none does: the question has no answer here, or the text is not in the index, or not in
        the hits. The score of a unit that is not shown is -inf.

        Args:
            question: the question.
            places: of its evidence.
            hits: of another retriever, for passages behind it.
        """
        if hits is None:
            asked = next(self._questions([question]))
            is_there = self._has_answer(question)
        else:
            ranked = distinct_hits(hits)
            spots = self.units.places_of(ranked)
            asked = self._behind_question(question, ranked, spots, "hits", BALANCE)
            placed = [ranked[number] for number in np.unique(spots[0]).tolist()]
            is_there = holds_all(placed, places, self.sources)
        scores = asked.scores
        _, units = self.units.covered(ranges_of(self.units.places_of(places)))
        if not is_there:
            return math.inf, scores
        return needed_level(scores, self.units.tokens, units), scores

    def levels(self, scores: Scores) -> tuple[Scores, Numbers]:
        """The rising levels of units with these scores, and the tokens that each shows."""
        order, rising = levels(scores, self.units.tokens)
        return rising, np.cumsum(self.units.tokens[order])

    def behind(
        self,
        question: str,
        hits: Iterable[Retrieved],
        *,
        max_tokens: MaxTokens = MAX_TOKENS,
        k: int | None = None,
        show: Show = "hits",
        balance: float = BALANCE,
        counter: str | TokenCounter | None = None,
        order: Order = "score",
    ) -> RankedList:
        """Passages from another retriever's hits and this index's words: no vectors, no model.

        The hits count by their order, whatever their scores; the words of the question count in the index's units. The
        first hit stays where it fills at most three tenths of the budget, unless the words contradict the hits. A hit
        without spans, with spans beyond its document, or of which the index's units hold nothing, is a passage of
        its own at its rank, if it has a text and the retriever's hits up to it are within the budget; if the answer
        would be empty, the first one is cut to the budget. Spans are taken at their word: `chunkcore.locating` finds
        those of a hit whose text may have changed.

        Args:
            question: the question.
            hits: best first, with document ids and spans, of any chunk size.
            max_tokens: of all passages; "auto": what the question needs, of a calibrated index; see `Enough`.
            k: the most passages.
            show: what passages may hold: "hits", the hits' own text, not a character more; "whole", all text of
                the hits' documents; "all", all text of the index; or ids of documents that are shown whole, of the
                hits' other documents the hits' own text.
            balance: the hits' share of the score, 0 to 1; less where the first ten hits hold the question's words no
                more than chance gives, though some unit has them clearly. 1 stays.
            counter: of `max_tokens`; None: the index's.
            order: "score", the best passage first, or "document", those of one document together, in its order.

        Raises `OptionError`: an argument is out of range.
        """
        if not isinstance(question, str):
            raise OptionError(
                f"behind takes one question as a string, got {type(question).__name__}"
            )
        show = check_show(show)
        check_number("balance", balance, 0, 1, whole=False)
        level = None
        if max_tokens == "auto":
            level, max_tokens = self._level(behind=True), MOST
        if k is not None:
            check_number("k", k, 1)
        if counter is None:
            counter = self.counter
        budget = Budget(max_tokens, counter)
        ranked = distinct_hits(hits)
        places = self.units.places_of(ranked)
        placed = np.unique(places[0]).tolist()
        alone = []
        if len(placed) < len(ranked):
            alone = self._alone(ranked, placed, budget)
        passages: list[Retrieved] = []
        if budget.left > 0 and (placed or show == "all"):
            asked = self._behind_question(question, ranked, places, show, balance)
            passages = (
                self._answer(asked, budget)
                if level is None
                else self._up_to(level, asked, budget.counter)
            )
        for number in alone:
            passages.insert(number, ranked[number])
        if not passages and level is None:
            others = [hit for number, hit in enumerate(ranked) if number not in placed]
            passages = first_cut([hit for hit in others if hit.text.strip()], budget)
        return in_order(passages[:k], order)

    def _alone(self, hits: Sequence[Retrieved], placed: Sequence[int], budget: Budget) -> list[int]:
        """The numbers of hits without a place that the budget would hold if the hits were returned."""
        texts = [hit.text for hit in hits]
        for number in placed:
            if not texts[number]:
                source = self.sources[hits[number].document_id]
                texts[number] = text_of_spans(source.text, hits[number].spans)
        sizes = budget.counter.count_many(texts)
        within = np.flatnonzero(np.cumsum(sizes) <= budget.left).tolist()
        alone = [number for number in within if texts[number].strip() and number not in placed]
        budget.left -= int(sizes[alone].sum())
        return alone

    def _behind_question(
        self,
        question: str,
        hits: Sequence[Retrieved],
        places: Numbers,
        show: Show,
        balance: float,
    ) -> Question:
        """The question, scored by words and by the hits, of which some stand at these places."""
        hits_of = hits, show, balance
        last = self._last.get((question, True))
        if last is not None and last.hits == hits_of:
            return last
        units = self.units
        words = self._lexical.scores(question)
        agreement = units.agreement(places, words)
        if balance < 1:
            balance *= agreement
        if show == "all":
            shown = self._everything
        else:
            ranges = [ranges_of(places)]
            if show != "hits":
                names = [hits[number].document_id for number in places[0].tolist()]
                is_whole = [show == "whole" or name in show for name in names]
                ranges.append(places[3:, is_whole].T)
            shown = Shown(units, np.concatenate(ranges))
        best = max(float(words.max(initial=0.0)), units.clear, 1e-9)
        scores = np.full(len(words), -math.inf)
        # A unit without a word that nearly all have loses no more than one without any.
        scores[shown.units] = (1 - balance) * (np.maximum(words[shown.units], -1.0) / best)
        held, worth = units.worth(places, len(hits))
        scores[held] += balance * worth
        asked = self._asked(question, scores, shown, hits_of)
        if balance and agreement == 1:
            _, first = units.covered(ranges_of(places[:, places[0] == 0]))
            asked.first = np.unique(first)  # two spans may stand in one unit
        return asked

    def _answer(
        self,
        question: Question,
        budget: Budget,
        k: int | None = None,
    ) -> list[Retrieved]:
        """The passages of the best units, of what is shown of them: within the budget, and at most `k`."""
        last = question.last
        if last is None or last.limit != (budget.counter, budget.left):
            last = question.last = Answer(question, budget)
        return last.passages(k)


def check_show(show: Show) -> Show:
    """What may be shown. Raises `OptionError`: it is neither of three words nor a collection of ids."""
    if isinstance(show, str):
        if show in ("hits", "whole", "all"):
            return show
    elif isinstance(show, Collection) and all(isinstance(name, str) for name in show):
        return frozenset(show) or "hits"
    raise OptionError(
        'show is "hits" (the hits\' own text), "whole" (their documents), "all", or ids of documents; '
        f"got {echo(show)}"
    )


def distinct_hits(hits: Iterable[Retrieved]) -> list[Retrieved]:
    """The hits, a repeated place once. Raises `OptionError`: one is no `Retrieved`."""
    first: dict[object, Retrieved] = {}
    for number, hit in enumerate(hits):
        if not isinstance(hit, Retrieved):
            raise OptionError(f"hits are Retrieved, best first; got {type(hit).__name__}")
        place = (hit.document_id, hit.spans, hit.text) if hit.spans else number
        first.setdefault(place, hit)
    return list(first.values())
