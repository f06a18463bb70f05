"""`Passages`: every window of every size scored for the question; spans chosen under a budget of tokens."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, cast

import numpy as np

from chunkcore.document import Document
from chunkcore.errors import OptionError
from chunkcore.registry import format_spec
from chunkcore.retrieval.assembly import MAX_TOKENS, own_rows, passages_of, with_source
from chunkcore.retrieval.base import Hits, PassageIndex, RetrievalMethod, retrievers
from chunkcore.retrieval.corpus import ChunkedCorpus
from chunkcore.retrieval.lexicon import Postings, check_words
from chunkcore.retrieval.search import Rows
from chunkcore.retrieval.vectors import TextVectors
from chunkcore.retrieval.windows import (
    Asked,
    DenseKind,
    Kind,
    LexicalKind,
    Reals,
    Stretches,
    Units,
    Weights,
    best_of,
    moments,
    standardised,
)
from chunkcore.run import Retrieved
from chunkcore.spans import Numbers, Scores
from chunkcore.tokens import TokenCounter, get_counter

KINDS = ("dense", "lexical")
SCALES: dict[str, tuple[int | str, ...]] = {  # the vectors of many units, added up, tell little apart
    "dense": (0, 1, 3, "document"),
    "lexical": (0, 1, 3, 7, 15, 31, "document"),
}
_SAMPLE = 64, 128  # with `hits`: stretches, and units of each, whose scores give the means and deviations
_NEAR = (0, 1, 3, 7)  # with `hits`: half-widths over which hits add up, to choose the units that are scored


@retrievers.register("passages")
@dataclass(frozen=True, kw_only=True)
class Passages(RetrievalMethod):
    """Passages of any size: exact spans under a budget of tokens, from small chunks that are indexed once.

    The chunks are units, in the order of their documents: small ones, such as ``sentence:size=50``. The window of a
    unit at a half-width h is the units within h of it in its document. For a question, each kind scores every unit's
    window at each scale:

    - dense: the cosine of the question and the sum of the window's unit-length vectors, each times the square root of
      its chunk's tokens;
    - lexical: BM25 of the window as one text among the windows of this scale; see `BM25`.

    Each kind and scale is standardised over all units, z = (x - mean) / deviation, and a unit's score is the sum of
    z · abs(z): a window twice as far above the mean counts fourfold. A kind and scale that does not tell units apart
    adds nothing. `search` ranks the units, ties by their place; `retrieve` returns passages, see `assemble`: with
    `max_tokens` the budget's, with `k` the best k of those of 1,000 tokens.

    A question that starts with a document's title, set off by a colon, bar or dash, as in "Leave policy: how many
    days?", is asked of the documents of this title, without the title. Their units alone are scored, all of them. A
    title is the metadata's "title", else the first line.

    Attributes:
        kinds: dense, lexical or both. As a string: ``passages:lexical``, which needs no model.
        words: of lexical: "first5", cut to the first 5 characters, or "whole"; see `word_keys`.
        scales: half-widths, and "document" for the whole document, of all kinds; as a string ``scales=0/1/3/document``.
            None: of dense 0, 1, 3 and the document, of lexical also 7, 15 and 31.
        hits: None scores every unit. A number: only the neighbourhoods of the first so many units of each kind, found
            by their own vectors and words; means and deviations are then those of a sample of 8,192 units and what
            their windows reach. For a million units.
        k1: see `BM25`.
        b: see `BM25`.
        counter: of the budget's tokens, unless a report asks with its own.

    Cost: one embedding per chunk and query; one product of the vectors with the question. An index takes, beside the
    vectors, 40 bytes a unit and 5 to 8 a distinct word of a unit.

    Raises:
        OptionError: an unknown kind or counter, a scale that is repeated or negative, or an option out of range.
        DataError: when indexing, chunks overlap. A table's header before other rows of it is no overlap: passages have
            it once.

    >>> Passages().name, Passages(kinds=("lexical",), scales=(0, 3, "document")).name
    ('passages', 'passages:lexical,scales=0/3/document')
    """

    kinds: tuple[str, ...] = KINDS
    words: str = "first5"
    scales: tuple[int | str, ...] | None = None
    k1: float = 1.2
    b: float = 0.75
    hits: int | None = None
    counter: str = "cl100k_base"

    def validate(self) -> None:
        unknown = [each for each in self.kinds if each not in KINDS]
        if unknown or not self.kinds or len(set(self.kinds)) < len(self.kinds):
            raise OptionError(f"passages: kinds are dense, lexical or both, each once; got {', '.join(self.kinds)!r}")
        scales = ("document",) if self.scales is None else self.scales
        wrong = [each for each in scales if each != "document" and not (isinstance(each, int) and each >= 0)]
        if wrong or not scales or len(set(scales)) < len(scales):
            told = "/".join(map(str, scales))
            raise OptionError(f"passages: scales are half-widths of 0 or more, or document, each once; got {told!r}")
        if not 0 <= self.k1 < float("inf"):
            raise OptionError(f"passages: k1 is at least 0, got {self.k1}")
        if not 0 <= self.b <= 1:
            raise OptionError(f"passages: b is 0 to 1, got {self.b}")
        if self.hits is not None and self.hits < 1:
            raise OptionError(f"passages: hits is at least 1, or null for all units, got {self.hits}")
        check_words(self.words)
        get_counter(self.counter)

    @classmethod
    def read(cls, parts: Sequence[str], options: Mapping[str, Any]) -> RetrievalMethod:
        given = dict(options)
        if parts:
            given["kinds"] = tuple(parts)
        if isinstance(given.get("scales"), int | str):
            told = str(given["scales"]).split("/")
            given["scales"] = tuple(int(each) if each.isdecimal() else each for each in told)
        return super().read((), given)

    @property
    def name(self) -> str:
        changed = self.changed_options()
        parts = changed.pop("kinds", [])
        if changed.pop("scales", None) and self.scales:
            parts.append(f"scales={'/'.join(map(str, self.scales))}")
        parts += [format_spec("", {option: value})[1:] for option, value in changed.items()]
        return f"passages:{','.join(parts)}" if parts else "passages"

    def halves(self, kind: str) -> list[int]:
        """The half-widths of a kind."""
        scales = SCALES[kind] if self.scales is None else self.scales
        return [each for each in scales if isinstance(each, int)]

    @property
    def whole(self) -> bool:
        """Whether whole documents are among the scales."""
        return self.scales is None or "document" in self.scales

    @property
    def makes_passages(self) -> bool:
        return True

    @property
    def embeds(self) -> bool:
        return "dense" in self.kinds

    def index(self, corpus: ChunkedCorpus, vectors: TextVectors | None = None) -> PassageIndex:
        return cast(PassageIndex, super().index(corpus, vectors))

    def build(self, corpus: ChunkedCorpus, vectors: TextVectors | None = None) -> PassageIndex:
        return _ByWindows(corpus, vectors, self)


class WindowIndex(PassageIndex):
    """An index that scores every unit's windows, wherever that is done."""

    def __init__(self, corpus: ChunkedCorpus, counter: str) -> None:
        super().__init__(corpus)
        self.counter = counter
        self._units = Units.of_corpus(corpus)

    def read(self, query: str) -> tuple[Numbers | None, str]:
        """The ranges of units of the documents that a query names, None for all; and the rest of it."""
        documents, rest = self.corpus.titles.read(query)
        named = np.flatnonzero(np.isin(self._units.named, documents))
        return (named, rest) if len(named) else (None, query)

    @abstractmethod
    def scored(self, queries: Sequence[str], k: int) -> Iterator[tuple[Numbers, Scores]]:
        """Of each query, units of the documents that it names, ascending, and their scores: at least the k best, if
        there are as many, and the units between two of them that `Units.with_gaps` may take.
        """

    def search(self, queries: Sequence[str], k: int) -> Hits:
        found = []
        for numbers, scores in self.scored(queries, k):
            best = best_of(scores, k)
            found.append((self._units.chunks(numbers[best]), scores[best]))
        return Hits.of(found)

    def passages(
        self, queries: Sequence[str], k: int | None, max_tokens: int | None, counter: TokenCounter
    ) -> list[list[Retrieved]]:
        budget = max_tokens or MAX_TOKENS
        wanted = 8 + int(1.25 * budget / self._mean_tokens)
        return [
            self._passages(query, wanted, numbers, scores, k, budget, counter)
            for query, (numbers, scores) in zip(queries, self.scored(queries, wanted), strict=True)
        ]

    def _passages(
        self,
        query: str,
        wanted: int,
        numbers: Numbers,
        scores: Scores,
        k: int | None,
        budget: int,
        counter: TokenCounter,
    ) -> list[Retrieved]:
        while True:
            places = self._units.with_gaps(numbers, scores, wanted)
            units = numbers[places]
            pieces = self._pieces(units, scores[places])
            sizes = counter.count_many([each.text for each in pieces])
            if wanted >= len(scores) or sizes.sum() > budget:
                break
            wanted *= 2
            numbers, scores = self.deeper(query, wanted, numbers, scores)
        joined = [self._units.adjoin(one, other) for one, other in pairwise(units.tolist())]
        return passages_of(pieces, joined, sizes, budget, k=k, documents=self._documents, counter=counter)

    def deeper(self, query: str, k: int, numbers: Numbers, scores: Scores) -> tuple[Numbers, Scores]:
        """What `scored` gives of a query for a larger k; these are those of a smaller one."""
        return numbers, scores

    def _pieces(self, numbers: Numbers, scores: Scores) -> list[Retrieved]:
        chunks, repeating = self.corpus.retrieved, self.corpus.repeating
        found = []
        for place, score in zip(self._units.chunks(numbers).tolist(), scores.tolist(), strict=True):
            piece = chunks[place].with_score(score)
            found.append(with_source(own_rows(piece) if place in repeating else piece, self._documents))
        return found

    @cached_property
    def _mean_tokens(self) -> float:
        counts = self.corpus.token_counts
        return max(1.0, float(counts.mean())) if len(counts) else 1.0

    @cached_property
    def _documents(self) -> dict[str, Document]:
        return {document.id: document for document in self.corpus.documents}


def dense_of(
    options: Passages, units: Units, rows: Rows, tokens: Numbers, measured: Sequence[Scores] | None = None
) -> DenseKind:
    """The dense kind over vectors and token counts of chunks; `measured` is told where it was measured before."""
    halves, whole, nearest = options.halves("dense"), options.whole, options.hits is not None
    return DenseKind(units, rows, tokens, halves, whole=whole, nearest=nearest, measured=measured)


def lexical_of(
    options: Passages,
    units: Units,
    posted: Postings,
    means: Sequence[float] | None = None,
    weights: Weights | None = None,
) -> LexicalKind:
    """The lexical kind over the units' postings; `means` and `weights` are told where these are not all units."""
    return LexicalKind(
        units,
        posted,
        options.halves("lexical"),
        whole=options.whole,
        form=options.words,
        k1=options.k1,
        b=options.b,
        nearest=options.hits is not None,
        means=means,
        weights=weights,
    )


class _ByWindows(WindowIndex):
    def __init__(self, corpus: ChunkedCorpus, vectors: TextVectors | None, options: Passages) -> None:
        super().__init__(corpus, options.counter)
        self._options = options
        self._vectors = vectors
        self._kinds: list[Kind] = []
        self._short = 0  # documents up to so many units are read whole, where their scale is wanted
        units = self._units
        if options.embeds:
            self._vectors = vectors or TextVectors()
            rows, _ = self._vectors.chunks(corpus, cluster_only=True)
            norms = self._vectors.norms(options.name, corpus)
            measured = [norms[f"windows-{place}"] for place in range(len(norms))] or None
            dense = dense_of(options, units, rows, corpus.token_counts, measured)
            self.norms = {f"windows-{place}": lengths for place, lengths in enumerate(dense.measured)}
            self._kinds.append(dense)
            self._short = dense.short
        if "lexical" in options.kinds:
            posted = corpus.postings(options.words)
            if units.order is not None:
                posted = Postings.joined([(posted, np.argsort(units.order))], len(units))
            self._kinds.append(lexical_of(options, units, posted))
        self._all = np.arange(len(units), dtype=np.int64)

    def scored(self, queries: Sequence[str], k: int) -> Iterator[tuple[Numbers, Scores]]:
        told = list(map(self.read, queries))
        vectors: Sequence[Reals | None] = [None] * len(queries)
        if self._options.embeds and self._vectors is not None and len(queries):
            vectors = list(self._vectors.queries([rest for _, rest in told]))
        for (named, rest), vector in zip(told, vectors, strict=True):
            asked = [(kind, kind.asked(rest, vector)) for kind in self._kinds]
            if named is not None:
                own = self._units.ranges(named)
                yield own.of(self._all), standardised(asked, own)
            elif self._options.hits is None or not len(self._units):
                yield self._all, standardised(asked, self._units)
            else:
                part, chosen = self._chosen(asked, self._options.hits)
                yield part.numbers[chosen], standardised(asked, part, moments(asked, self._sample))[chosen]

    def _chosen(self, asked: Asked, hits: int) -> tuple[Stretches, Numbers]:
        """The units to score, with what their windows need; and which of these are to be scored.

        Around the first hits of each kind, hits add up, as far as they are above the last one.
        """
        found = [kind.first(question, hits) for kind, question in asked]
        near = np.unique(np.concatenate([numbers for numbers, _ in found]))
        if not len(near):  # no unit has a word of the question
            near = self._all[:hits]
        part = self._units.part(near, 2 * _NEAR[-1])
        total = np.zeros(len(part))
        for numbers, values in found:
            own = np.zeros(len(part))
            own[part.places(numbers)] = values - values.min(initial=0.0)
            sums = np.concatenate(([0.0], np.cumsum(own)))
            for half in _NEAR:
                start, end = part.windows(half)
                around = sums[end] - sums[start]
                square = float(around @ around) / len(self._units) - (float(around.sum()) / len(self._units)) ** 2
                total += around / math.sqrt(square) if square > 0 else 0.0
        best = np.sort(part.numbers[best_of(total, 2 * hits)])
        scored = self._units.part(best, self._reach, self._short)
        return scored, scored.places(best)

    @cached_property
    def _sample(self) -> Stretches:
        """Stretches of units, evenly spread: all of them where there are few."""
        stretches, size = _SAMPLE
        first = np.linspace(0, max(0, len(self._units) - size), stretches).astype(np.int64)
        own = self._all if len(self._units) <= stretches * size else first[:, None] + np.arange(size)
        return self._units.part(np.unique(own), self._reach, self._short)

    @property
    def _reach(self) -> int:
        halves = [half for kind in self._options.kinds for half in self._options.halves(kind)]
        return max(self._units.within(halves), default=0)
