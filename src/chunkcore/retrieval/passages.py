"""`Passages`: every window of every size scored for the question; spans chosen under a budget of tokens.

Behind a retriever: its hits, of any chunk size and any scores, count by their order; words are local.

A hit is worth log((N + 1) / rank) to the units that it covers, N the number of hits. A unit's score has two scales,
each divided by its best unit: two thirds of the hits as they are, one of each with as much text again on either side.
The words' score is divided by its best unit, too: the first hit has the same share of what the best words are worth,
in a small collection and in a large one. Where the best words stand out by less than five deviations, they count less.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby, pairwise
from typing import Any, ClassVar, Literal, cast

import numpy as np
from numpy.typing import NDArray

from chunkcore.errors import OptionError, check_type, echo
from chunkcore.models.base import Embedder
from chunkcore.options import Bounds, check_number, format_spec, named_options
from chunkcore.retrieval.assembly import (
    MAX_TOKENS,
    Row,
    check_limits,
    passages_of,
    with_source,
    with_table_headers,
    without_bare_headers,
    without_table_header,
)
from chunkcore.retrieval.base import Hits, Index, PassageIndex, RetrievalMethod, retrievers
from chunkcore.retrieval.corpus import ChunkedCorpus
from chunkcore.retrieval.lexicon import check_words
from chunkcore.retrieval.vectors import OTHER_QUESTIONS, TextVectors, best_of
from chunkcore.retrieval.windows import DenseWindows, LexicalWindows, Units, mean_of_squares
from chunkcore.run import RankedList, Retrieved
from chunkcore.spans import Numbers, Scores, union
from chunkcore.text import Document, Span
from chunkcore.tokens import TokenCounter, get_counter

KINDS = ("dense", "lexical")
BALANCE = 0.3
_CLEAR = 25.0  # the words' score of a unit five deviations above the mean at every scale
# Or ids of documents: these are shown whole; of other documents only the hits' text.
Scope = Literal["hits", "whole", "all"] | Collection[str]
Rank = int
_FEW = 10  # units, among fewer of which no score stands out
# What relates a question to a unit: the cosine and a quarter of the share of its words, by weight, that the unit has;
# or half of its words.
_QUARTER, _HALF = 0.25, 0.5
_BY_WORDS = 0.55  # where words are all that relates: what a unit has of the question's, by norm 2
_LEAST = 0.15  # of the best unit's score: a unit with less becomes no part of a passage


@retrievers.register("passages")
@dataclass(frozen=True, kw_only=True)
class Passages(RetrievalMethod):
    """Passages of any size: exact spans under a budget of tokens, from small chunks that are indexed once.

    The chunks are units, in the order of their documents: small ones, such as ``sentence:size=50``. For a question,
    each kind (dense, lexical) scores every unit's windows at all scales: see `chunkcore.retrieval.windows`. A unit's
    score is `balance` times dense and 1 - `balance` times lexical. `search` ranks the units, ties by their place;
    `retrieve` returns passages, see `passages_of`: with `max_tokens` the budget's, with `k` the first k at a budget of
    1,000 tokens. A unit that scores under 0.15 of the best one is left out, so that a budget need not be used up; among
    fewer than ten units, none that has a word of the question. `is_related` says whether a question has more in common
    with the collection than chance. By words alone: a unit's words of the question, by their weights, exceed 0.55 of
    the root of the sum of squares of all. With vectors, a unit with over half of the words is related, and so is one
    that is nearer than most of sixteen questions on everyday things, such as "Who wrote Hamlet?", are to any: by the
    cosine, and a quarter of the share of those words. A question without a known word, or with vectors one that is not
    related and of whose words none tells units apart, has no answer.

    Attributes:
        kinds: dense, lexical or both. As a string: ``passages:lexical``, which needs no model.
        balance: the dense kind's share of the score, 0 to 1. The default loses least where a kind knows little; see
            the evidence page.
        words: of lexical: "first5", cut to the first 5 characters, or "whole"; see `word_keys`.
        k1: see `BM25`.
        b: see `BM25`.
        counter: of the budget's tokens, unless a report asks with its own.

    Cost: one embedding per chunk and query; one product of the vectors with the question. An index takes, beside the
    vectors, 176 bytes a unit and 5 to 8 a distinct word of a unit.

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
    bounds: ClassVar[Bounds] = {"balance": (0, 1), "k1": 0, "b": (0, 1)}
    makes_passages = True

    def validate(self) -> None:
        unknown = [kind for kind in self.kinds if kind not in KINDS]
        if unknown or not self.kinds or len(set(self.kinds)) < len(self.kinds):
            raise OptionError(
                f"passages: kinds are dense, lexical or both, each once; got {', '.join(self.kinds)!r}"
            )
        check_words(self.words)
        get_counter(self.counter)

    @classmethod
    def read(cls, parts: Sequence[str], options: Mapping[str, Any]) -> RetrievalMethod:
        kinds = {"kinds": tuple(parts)} if parts else {}
        return super().read((), {**options, **kinds})

    @property
    def name(self) -> str:
        changed = self.changed_options()
        parts = changed.pop("kinds", [])
        parts += [format_spec("", {option: value})[1:] for option, value in changed.items()]
        return f"passages:{','.join(parts)}" if parts else "passages"

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

    @named_options()
    def index(
        self, corpus: ChunkedCorpus, vectors: TextVectors | Embedder | str | None = None
    ) -> WindowIndex:
        return cast(WindowIndex, super().index(corpus, vectors))

    def build(self, corpus: ChunkedCorpus, vectors: TextVectors | None = None) -> Index:
        return WindowIndex(corpus, vectors, self)


class WindowIndex(PassageIndex):
    """Scores of every unit's windows at every scale, and passages of the best units."""

    def __init__(
        self, corpus: ChunkedCorpus, vectors: TextVectors | None, options: Passages
    ) -> None:
        super().__init__(corpus)
        self.counter = options.counter
        self._options = options
        self._vectors = vectors or TextVectors()
        self.units = Units(corpus)
        self._shares = options.shares()
        self._warned_of: set[str] = set()
        self._dense: DenseWindows | None = None
        if "dense" in self._shares:
            rows, _ = self._vectors.chunks(corpus, cluster_only=True)
            measured = self._vectors.norms(options.name, corpus).get("windows")
            self._dense = DenseWindows(self.units, rows, corpus.token_counts, measured)
            self.norms = {"windows": self._dense.measured}
        if "lexical" in self._shares:
            _ = self._lexical

    @cached_property
    def _lexical(self) -> LexicalWindows:
        options = self._options
        postings = self.corpus.postings(options.words)
        return LexicalWindows(self.units, postings, form=options.words, k1=options.k1, b=options.b)

    def rank(self, queries: Sequence[str], k: int) -> Hits:
        rows = []
        for scores in self._scores(queries):
            best = best_of(scores, k)
            rows.append((self.units.chunks(best), scores[best]))
        return Hits.of(rows)

    def _scores(self, queries: Sequence[str]) -> Iterator[Scores]:
        """Each query's scores of all units."""
        vectors = self._vectors.queries(queries) if self._dense is not None and len(queries) else ()
        for place, query in enumerate(queries):
            scores = np.zeros(len(self.units))
            if "lexical" in self._shares:
                scores += self._shares["lexical"] * self.word_scores(query)
            if self._dense is not None:
                cosines = self._dense.cosines(vectors[place])
                scores += self._shares["dense"] * mean_of_squares(
                    self._dense.scales(cosines), len(scores)
                )
            yield scores

    def word_scores(self, query: str) -> Scores:
        """The lexical kind's score of each unit."""
        return mean_of_squares(self._lexical.scales(query), len(self.units))

    def behind(
        self,
        question: str,
        hits: Iterable[Retrieved],
        *,
        max_tokens: int = MAX_TOKENS,
        k: int | None = None,
        documents: Scope = "hits",
        balance: float = BALANCE,
        counter: str | TokenCounter | None = None,
    ) -> RankedList:
        """Passages from another retriever's hits and this index's words: no vectors, no model.

        The hits count by their order, whatever their scores; the words of the question count in the index's units. A
        hit whose document is not in the index, or whose spans are not, stays a passage of its own at its rank, if the
        retriever's hits up to it are within the budget. So does a hit whose place has another text of its length: the
        document has changed since it was indexed, which is warned of once, and its old text is not used.

        Args:
            hits: best first, with document ids and spans, of any chunk size.
            max_tokens: of all passages.
            k: the most passages.
            documents: what passages may show: "hits", the hits' own text, not a character more; "whole", all text of
                the hits' documents; "all", all text of the index; or ids of documents that are shown whole, of the
                hits' other documents the hits' own text.
            balance: the hits' share of the score, 0 to 1.
            counter: of `max_tokens`; None: the index's.

        Raises `OptionError`: an argument is out of range.
        """
        hits = check_behind(question, hits, documents, balance, max_tokens, k)
        shows_all = isinstance(documents, str) and documents == "all"
        whole: Collection[str] | None = None
        if not isinstance(documents, str):
            whole = documents
        elif documents == "hits":
            whole = ()
        tokens = get_counter(self.counter if counter is None else counter)
        ranked = list(enumerate(hits, start=1))
        changed = self._changed(hits)
        placed = [
            (rank, hit)
            for rank, hit in ranked
            if self._places.covered(hit)
            and hit.document_id not in changed
            and (whole is None or hit.document_id in self.sources)
        ]
        alone = self._alone(ranked, placed, max_tokens, tokens)
        left = max_tokens - sum(tokens.count(hit.text) for _, hit in alone)
        passages: list[Retrieved] = []
        if left > 0 and (placed or shows_all):
            scores = (1 - balance) * word_shares(self.word_scores(question))
            scores += balance * self._places.worth(placed, len(ranked))
            scores[self._places.within(changed)] = -math.inf
            if not shows_all:
                scores[~self._places.within({hit.document_id for _, hit in placed})] = -math.inf
            shown = None
            if whole is not None and any(hit.document_id not in whole for _, hit in placed):
                shown = HitText([hit for _, hit in placed], self.sources, whole)
                allowed = self._places.within(whole)
                covered = [units for _, hit in placed for units, _ in self._places.covered(hit)]
                cut = np.setdiff1d(np.concatenate(covered), np.flatnonzero(allowed))
                allowed[cut] = [
                    shown.cut(piece) is not None for piece in self._pieces(cut, scores[cut])
                ]
                scores[~allowed] = -math.inf
            passages = list(self.assembled(question, scores, None, left, tokens, shown))
        for rank, hit in alone:
            passages.insert(rank - 1, hit)
        return RankedList(passages[:k])

    def _alone(
        self,
        ranked: Sequence[tuple[Rank, Retrieved]],
        placed: Sequence[tuple[Rank, Retrieved]],
        max_tokens: int,
        tokens: TokenCounter,
    ) -> list[tuple[Rank, Retrieved]]:
        """Hits without a place that the budget would hold if the hits were returned."""
        if len(placed) == len(ranked):
            return []
        ranks = {rank for rank, _ in placed}
        texts = [hit.text or with_source(hit, self.sources).text for _, hit in ranked]
        reached = np.cumsum(tokens.count_many(texts)).tolist()
        return [
            (rank, hit)
            for (rank, hit), size in zip(ranked, reached, strict=True)
            if rank not in ranks and size <= max_tokens
        ]

    def _changed(self, hits: Iterable[Retrieved]) -> set[str]:
        """The documents that have changed since they were indexed: a hit's place has another text of equal length."""
        changed = set()
        for hit in hits:
            document = self.sources.get(hit.document_id)
            # A text of another length was not copied from its place: a model wrote it, or it has a context before it.
            is_copied = (
                hit.match == "spans"
                and len(hit.text) == sum(map(len, hit.spans)) + len(hit.spans) - 1
            )
            text = " ".join(span.slice(document.text) for span in hit.spans) if document else ""
            if (
                document and is_copied and hit.text.split() != text.split()
            ):  # spans may be joined by a line end, too
                changed.add(document.id)
        if untold := sorted(changed - self._warned_of):
            self._warned_of |= changed
            warnings.warn(
                f"{len(untold)} documents have changed since they were indexed, such as {untold[0]!r}: their hits stay "
                "as they are; save the index anew: index.update(documents).save(folder)",
                stacklevel=3,
            )
        return changed

    @cached_property
    def _places(self) -> UnitPlaces:
        return UnitPlaces(self.units, self.corpus)

    def passages(
        self, queries: Sequence[str], k: int | None, max_tokens: int | None, counter: TokenCounter
    ) -> list[list[Retrieved]]:
        return [
            self.assembled(query, scores, k, max_tokens or MAX_TOKENS, counter)
            if self._has_answer(query)
            else RankedList()
            for query, scores in zip(queries, self._scores(queries), strict=True)
        ]

    def is_related(self, query: str) -> bool:
        """Whether a unit is nearer to a question than chance gives; see `Passages`. Raises `DataError`: no text."""
        check_type("a question", query, str, "a string")
        if len(self.units) < _FEW and self._knows(query):
            return True
        share = self._share(query)
        if self._dense is None:
            return float(self._lexical.shares(query, 2).max(initial=0.0)) > _BY_WORDS
        return (
            share > _HALF or self._relation(query, self._vectors.queries([query])[0]) > self._chance
        )

    def _knows(self, query: str) -> bool:
        """Whether a unit has a word of the question."""
        return "lexical" in self._shares and bool(self._lexical.with_words(query))

    def _has_answer(self, query: str) -> bool:
        return (
            self._knows(query)
            if self._dense is None
            else self._share(query) > 0 or self.is_related(query)
        )

    def _share(self, query: str) -> float:
        return (
            float(self._lexical.shares(query).max(initial=0.0))
            if "lexical" in self._shares
            else 0.0
        )

    def _relation(self, query: str, vector: NDArray[np.floating]) -> float:
        assert self._dense is not None
        return float(self._dense.cosines(vector).max(initial=-1.0)) + _QUARTER * self._share(query)

    @cached_property
    def _chance(self) -> float:
        """The relation of questions on something else: the upper quartile."""
        relations = map(self._relation, OTHER_QUESTIONS, self._vectors.of_others)
        return float(np.quantile(list(relations), 0.75))

    def _least(self, query: str, scores: Scores) -> float:
        """A unit with a lower score becomes no part of a passage. Among few units, any with a word of the query may."""
        best = float(scores.max(initial=0.0))
        least = _LEAST * best if best > 0 else -math.inf
        if len(scores) < _FEW and "lexical" in self._shares:
            least = min(
                [least, *(float(scores[units].min()) for units in self._lexical.with_words(query))]
            )
        return least

    def assembled(
        self,
        query: str,
        scores: Scores,
        k: int | None,
        budget: int,
        counter: TokenCounter,
        shown: HitText | None = None,
    ) -> RankedList:
        """The passages of the best units, none of the score -inf; with `shown`, a passage has no other text."""
        most = int(np.isfinite(scores).sum())
        count = min(8 + int(1.25 * budget / self._mean_tokens), most)
        while True:
            units = self.units.with_gaps(scores, count)
            pieces = self._pieces(units, scores[units])
            if shown is not None:
                pieces = [piece for piece in map(shown.cut, pieces) if piece is not None]
            sizes = counter.count_many([piece.text for piece in pieces])
            if count >= most or sizes.sum() > budget:
                break
            count = min(2 * count, most)
        documents = self.units.documents[units]
        joined = [
            bool(other == unit + 1 and same)
            for (unit, other), same in zip(
                pairwise(units.tolist()), documents[1:] == documents[:-1], strict=True
            )
        ]
        if shown is not None:
            joined = [
                near and shown.joins(one, other)
                for near, (one, other) in zip(joined, pairwise(pieces), strict=True)
            ]
        row = Row(pieces, joined, sizes, self._least(query, scores))
        headers = self._headers(units)
        if shown is not None:
            headers = {
                key: span
                for key, span in headers.items()
                if shown.covers(key[0], span.start, span.end)
            }
        reserved = min(
            (
                counter.count(header.slice(self.sources[name].text))
                for (name, _), header in headers.items()
            ),
            default=0,
        )
        most = budget - reserved if 2 * reserved < budget else budget
        passages = passages_of(row, most, k=k, documents=self.sources, counter=counter)
        if headers:
            passages = with_table_headers(passages, headers, budget, self.sources, counter)
        return RankedList(without_bare_headers(passages, self.sources))

    def _headers(self, units: Numbers) -> dict[tuple[str, Span], Span]:
        """The header of each of these units that are rows of a table, by its document and the span of its rows."""
        chunks = (
            self.corpus[place]
            for place in self.units.chunks(units).tolist()
            if place in self.corpus.repeating
        )
        return {
            (chunk.document_id, chunk.spans[1]): chunk.spans[0]
            for chunk in chunks
            if chunk.document_id in self.sources
        }

    def _pieces(self, units: Numbers, scores: Scores) -> list[Retrieved]:
        chunks, repeating = self.corpus.retrieved, self.corpus.repeating
        pieces = []
        for place, score in zip(self.units.chunks(units).tolist(), scores.tolist(), strict=True):
            piece = chunks[place].with_score(score)
            piece = without_table_header(piece) if place in repeating else piece
            pieces.append(with_source(piece, self.sources))
        return pieces

    @cached_property
    def _mean_tokens(self) -> float:
        counts = self.corpus.token_counts
        return max(1.0, float(counts.mean())) if len(counts) else 1.0

    @cached_property
    def sources(self) -> dict[str, Document]:
        """The documents by id."""
        return {document.id: document for document in self.corpus.documents}


class HitText:
    """The text that hits cover: where only that may be returned, pieces are cut to it; `whole` documents are not."""

    def __init__(
        self, hits: Iterable[Retrieved], documents: Mapping[str, Document], whole: Collection[str]
    ) -> None:
        self.whole = whole
        places = sorted((hit.document_id, span) for hit in hits for span in hit.spans)
        self._documents = documents
        self._spans = {
            name: union(span for _, span in group)
            for name, group in groupby(places, lambda at: at[0])
        }

    def cut(self, piece: Retrieved) -> Retrieved | None:
        """What the hits cover of the piece; None if that is nothing but white space."""
        if piece.document_id in self.whole:
            return piece
        spans = [
            Span(max(span.start, other.start), min(span.end, other.end))
            for span in piece.spans
            for other in self._spans.get(piece.document_id, ())
            if max(span.start, other.start) < min(span.end, other.end)
        ]
        if tuple(spans) == piece.spans:
            return piece
        text = " ".join(span.slice(self._documents[piece.document_id].text) for span in spans)
        return replace(piece, spans=tuple(spans), text=text) if text.strip() else None

    def joins(self, one: Retrieved, other: Retrieved) -> bool:
        """Whether what stands between two pieces of one document is shown, too."""
        return self.covers(one.document_id, one.spans[-1].end, other.spans[0].start)

    def covers(self, name: str, start: int, end: int) -> bool:
        """Whether a stretch of a document is shown."""
        return name in self.whole or any(
            span.start <= start and end <= span.end for span in self._spans[name]
        )


class UnitPlaces:
    """Which units a span covers, and how many characters of each."""

    def __init__(self, units: Units, corpus: ChunkedCorpus) -> None:
        extents = units.by_unit(corpus.extents)
        self.starts, self.ends = extents[:, 0], extents[:, 1]
        numbers = units.by_unit(corpus.document_numbers)[units.firsts[:-1]]
        names, _ = corpus.described
        self._ranges = {
            names[number]: (first, last)
            for number, first, last in zip(
                numbers.tolist(), units.firsts[:-1].tolist(), units.firsts[1:].tolist(), strict=True
            )
        }

    def covered(self, hit: Retrieved, *, wider: bool = False) -> list[tuple[Numbers, Numbers]]:
        """Units and the characters that the hit's spans share with each; `wider`: with as much text again around."""
        if hit.document_id not in self._ranges:
            return []
        first, last = self._ranges[hit.document_id]
        shares = []
        for span in hit.spans:
            more = len(span) if wider else 0
            start, end = span.start - more, span.end + more
            low = first + int(np.searchsorted(self.ends[first:last], start, side="right"))
            high = first + int(np.searchsorted(self.starts[first:last], end))
            if low < high:
                units = np.arange(low, high)
                shared = np.minimum(self.ends[units], end) - np.maximum(self.starts[units], start)
                shares.append((units, shared))
        return shares

    def within(self, names: Collection[str]) -> NDArray[np.bool_]:
        """Whether each unit is of one of these documents."""
        inside = np.zeros(len(self.starts), dtype=np.bool_)
        for name in names:
            inside[slice(*self._ranges.get(name, (0, 0)))] = True
        return inside

    def worth(self, placed: Sequence[tuple[Rank, Retrieved]], count: int) -> Scores:
        """What hits, of `count` in all, are worth to each unit, at most 1."""
        lengths = np.maximum(self.ends - self.starts, 1)
        total = np.zeros(len(lengths))
        for wider, share in ((False, 2 / 3), (True, 1 / 3)):
            worth, covered = np.zeros(len(lengths)), np.zeros(len(lengths))
            for rank, hit in placed:
                for units, shared in self.covered(hit, wider=wider):
                    worth[units] += math.log((count + 1) / rank) * shared
                    covered[units] += shared
            # Where chunks overlap, a unit has the mean of those that cover it; neighbouring hits add up.
            worth /= lengths if wider else np.maximum(covered, lengths)
            total += share * worth / (worth.max(initial=0.0) or 1.0)
        return total


def word_shares(scores: Scores) -> Scores:
    """The words' scores, at most 1: divided by the best one, or by what stands out clearly if that is more."""
    scores = np.maximum(
        scores, -1.0
    )  # a unit without a word that nearly all have loses no more than one without any
    clear = min(
        _CLEAR, len(scores) / 4
    )  # among n units, no deviation is greater than the root of n - 1
    shares: Scores = scores / max(float(scores.max(initial=0.0)), clear, 1e-9)
    return shares


def check_behind(
    question: str,
    hits: Iterable[Retrieved],
    documents: Scope,
    balance: float,
    max_tokens: int,
    k: int | None,
) -> list[Retrieved]:
    """The hits, a repeated one once. Raises `OptionError`: an argument of `behind` is out of range."""
    if not isinstance(question, str):
        raise OptionError(f"behind takes one question as a string, got {type(question).__name__}")
    if isinstance(documents, str):
        is_scope = documents in ("hits", "whole", "all")
    else:
        is_scope = isinstance(documents, Collection) and all(
            isinstance(name, str) for name in documents
        )
    if not is_scope:
        raise OptionError(
            'documents is "hits" (the hits\' own text), "whole" (their documents), "all", or ids of documents; '
            f"got {echo(documents)}"
        )
    check_number("balance", balance, 0, 1, whole=False)
    check_limits(k, max_tokens)
    pieces = list(hits) if isinstance(hits, Iterable) else [hits]
    if wrong := [piece for piece in pieces if not isinstance(piece, Retrieved)]:
        raise OptionError(f"hits are Retrieved, best first; got {type(wrong[0]).__name__}")
    first: dict[object, Retrieved] = {}
    for number, piece in enumerate(pieces):
        first.setdefault(
            (piece.document_id, piece.spans, piece.text) if piece.spans else number, piece
        )
    return list(first.values())
