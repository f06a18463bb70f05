"""`Passages`: every window of every size scored for the question; spans chosen under a budget of tokens."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from chunkcore.document import Document
from chunkcore.errors import DataError, ModelError, OptionError
from chunkcore.registry import format_spec
from chunkcore.retrieval.assembly import MAX_TOKENS, passages_of, with_source
from chunkcore.retrieval.base import Hits, PassageIndex, RetrievalMethod, retrievers
from chunkcore.retrieval.corpus import ChunkedCorpus, Titles
from chunkcore.retrieval.lexicon import Postings, check_words, word_keys
from chunkcore.retrieval.search import Rows, products
from chunkcore.retrieval.vectors import TextVectors
from chunkcore.run import Retrieved
from chunkcore.spans import Numbers, Scores
from chunkcore.tokens import TokenCounter, get_counter

KINDS = ("dense", "lexical")
SCALES: dict[str, tuple[int | str, ...]] = {  # the vectors of many units, added up, tell little apart
    "dense": (0, 1, 3, "document"),
    "lexical": (0, 1, 3, 7, 15, 31, "document"),
}
_BLOCK = 2**14  # units whose windows are scored together: what a block needs stays in the processor's cache
_WIDE = 2**15  # up to so many units, float64 is used; float32 halves time and memory, and differs by about 1e-6
_SAMPLE = 64, 128  # with `hits`: stretches, and units of each, whose scores give the means and deviations
_NEAR = (0, 1, 3, 7)  # with `hits`: half-widths over which hits add up, to choose the units that are scored
_SKETCHED = 2**16  # with `hits`: in more units, near vectors are found by their signs first
_REREAD = 16  # vectors read for a hit
_LOOKED_UP = 2**17  # with `hits`: postings of a question's rarest words
_SAME = 1e-6  # a smaller deviation, relative to the largest score (of cosines: to 1), is rounding

Reals = NDArray[np.floating]
_Vector = tuple[Reals, float]
_Word = tuple[NDArray[np.int32], NDArray[Any], NDArray[np.float64]]  # its units, how often in each, weights by scale


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

    Each kind and scale is standardised over all units, (x - mean) / deviation, and a unit's score is the plain sum. A
    kind and scale that does not tell units apart adds nothing. `search` ranks the units, ties by their place;
    `retrieve` returns passages, see `assemble`: with `max_tokens` the budget's, with `k` the best k of those of 1,000
    tokens.

    A question that starts with a document's title, set off by a colon, as in "Leave policy: how many days?", is asked
    of the documents of this title, without the title. Their units alone are scored, all of them. A title is the
    metadata's "title", else the first line. (An index whose files are not held, such as that of `chunkcore search`,
    knows no titles.)

    Attributes:
        kinds: dense, lexical or both. As a string: ``passages:lexical``, which needs no model.
        words: of lexical: "first5", cut to the first 5 characters, or "whole"; see `word_keys`.
        scales: half-widths, and "document" for the whole document, of all kinds; as a string ``scales=0/1/3/document``.
            None: of dense 0, 1, 3 and the document, of lexical also 7, 15 and 31.
        hits: None scores every unit. A number: only the neighbourhoods of the first so many units of each kind, found
            by their own vectors and words; means and deviations are then those of 8,192 units. For a million units.
        k1: see `BM25`.
        b: see `BM25`.
        counter: of the budget's tokens, unless a report asks with its own.

    Cost: one embedding per chunk and query; one product of the vectors with the question. An index takes, beside the
    vectors, 40 bytes a unit and 5 to 8 a distinct word of a unit.

    Raises:
        OptionError: an unknown kind or counter, a scale that is repeated or negative, or an option out of range.
        DataError: when indexing, chunks overlap.

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
    def makes_passages(self) -> bool:
        return True

    @property
    def embeds(self) -> bool:
        return "dense" in self.kinds

    def index(self, corpus: ChunkedCorpus, vectors: TextVectors | None = None) -> PassageIndex:
        return _ByWindows(corpus, vectors, self)


class _ByWindows(PassageIndex):
    def __init__(self, corpus: ChunkedCorpus, vectors: TextVectors | None, options: Passages) -> None:
        super().__init__(corpus)
        self._options = options
        self.counter = options.counter
        self._units = _Units(corpus)
        self._titles = Titles(corpus.documents if corpus.at_hand else ())
        halves = {kind: options.halves(kind) for kind in KINDS}
        whole = options.scales is None or "document" in options.scales
        self._dense: _Dense | None = None
        self._lexical: _Lexical | None = None
        if "dense" in options.kinds:
            self._vectors = vectors or TextVectors()
            rows, _ = self._vectors.chunks(corpus, cluster_only=True)
            self._dense = _Dense(self._units, rows, corpus.token_counts, options, halves["dense"], whole=whole)
        if "lexical" in options.kinds:
            self._lexical = _Lexical(self._units, corpus, options, halves["lexical"], whole=whole)

    def search(self, queries: Sequence[str], k: int) -> Hits:
        found = []
        for numbers, scores in self._scored(queries):
            best = _best(scores, k)
            best = best[scores[best] > -np.inf]
            found.append((self._units.chunks(best if numbers is None else numbers[best]), scores[best]))
        return Hits.of(found)

    def passages(
        self, queries: Sequence[str], k: int | None, max_tokens: int | None, counter: TokenCounter
    ) -> list[list[Retrieved]]:
        return [self._passages(*scored, k, max_tokens or MAX_TOKENS, counter) for scored in self._scored(queries)]

    def _scored(self, queries: Sequence[str]) -> Iterator[tuple[Numbers | None, Scores]]:
        """Each query's units, ascending (None: all), and their scores: -inf in documents that it does not name."""
        told = list(map(self._titles.read, queries))
        rests = [rest for _, rest in told]
        vectors = self._vectors.queries(rests) if "dense" in self._options.kinds and len(queries) else None
        for place, (documents, rest) in enumerate(told):
            asked: list[Any] = []
            if self._dense is not None and vectors is not None:
                asked.append((self._dense, self._dense.asked(vectors[place])))
            if self._lexical is not None:
                asked.append((self._lexical, self._lexical.asked(rest)))
            if documents and (named := self._units.of_documents(documents)):
                scores = np.full(len(self._units), -np.inf)
                scores[named.numbers] = _standardised(asked, named)
                yield None, scores
            elif self._options.hits is None or not len(self._units):
                yield None, _standardised(asked, self._units)
            else:
                part, own = self._chosen(asked, self._options.hits)
                yield part.numbers[own], _standardised(asked, part, self._sample)[own]

    def _chosen(self, asked: Sequence[tuple[_Kind, Any]], hits: int) -> tuple[_Part, Numbers]:
        """The units to score, with what their windows need; and which of these are to be scored.

        Around the first hits of each kind, hits add up, as far as they are above the last one.
        """
        found = [kind.first(question, hits) for kind, question in asked]
        near = np.unique(np.concatenate([numbers for numbers, _ in found]))
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
        best = np.sort(part.numbers[_best(total, 2 * hits)])
        scored = self._units.part(best, self._reach, self._short)
        return scored, scored.places(best)

    @cached_property
    def _sample(self) -> _Part:
        """Stretches of units, evenly spread: all of them where there are few."""
        stretches, size = _SAMPLE
        first = np.linspace(0, max(0, len(self._units) - size), stretches).astype(np.int64)
        own = np.arange(len(self._units)) if len(self._units) <= stretches * size else first[:, None] + np.arange(size)
        return self._units.part(np.unique(own), self._reach, self._short)

    @property
    def _reach(self) -> int:
        return max((half for kind in self._options.kinds for half in self._options.halves(kind)), default=0)

    @property
    def _short(self) -> int:
        """Documents up to so many units are read whole, where their scale is wanted."""
        return self._dense.short if self._dense and self._dense.whole else 0

    def _passages(
        self, numbers: Numbers | None, scores: Scores, k: int | None, budget: int, counter: TokenCounter
    ) -> list[Retrieved]:
        wanted = 8 + int(1.25 * budget / self._mean_tokens)
        while True:
            best = _best(scores, wanted)
            best = best[scores[best] > -np.inf]
            if numbers is None:
                units = self._units.with_gaps(best, scores)
                worth = scores[units]
            else:
                best = np.sort(best)
                units, worth = numbers[best].tolist(), scores[best]
            pieces = self._pieces(units, worth)
            sizes = counter.count_many([each.text for each in pieces])
            if wanted > len(best) or sizes.sum() > budget:
                break
            wanted *= 2
        joined = [self._units.adjoin(one, other) for one, other in pairwise(units)]
        return passages_of(pieces, joined, sizes, budget, k=k, documents=self._documents, counter=counter)

    def _pieces(self, numbers: Sequence[int], scores: Scores) -> list[Retrieved]:
        chunks = self.corpus.retrieved
        places = self._units.chunks(np.array(numbers, dtype=np.int64)).tolist()
        return [
            with_source(chunks[place].with_score(score), self._documents)
            for place, score in zip(places, scores.tolist(), strict=True)
        ]

    @cached_property
    def _mean_tokens(self) -> float:
        counts = self.corpus.token_counts
        return max(1.0, float(counts.mean())) if len(counts) else 1.0

    @cached_property
    def _documents(self) -> dict[str, Document]:
        return {document.id: document for document in self.corpus.documents}


def _best(scores: Scores, k: int) -> Numbers:
    """The k units with the best scores, ties by place."""
    found = np.arange(len(scores), dtype=np.int64)
    for step in (16, 1):  # the k-th best of some is no better than that of all, and few are as good
        some = scores[found[::step]]
        if k < len(some):
            found = found[scores[found] >= np.partition(some, -k)[-k]]
    best: Numbers = found[np.argsort(-scores[found], kind="stable")[:k]]
    return best


class _Ranges:
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


class _Part(_Ranges):
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


class _Units(_Ranges):
    """The chunks in the order of their documents, each a range."""

    def __init__(self, corpus: ChunkedCorpus) -> None:
        documents, extents = corpus.document_numbers, corpus.extents
        order = np.lexsort((extents[:, 0], documents))
        self.order = None if (np.diff(order) == 1).all() else order
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
        self.firsts = np.concatenate(([0], np.flatnonzero(~same) + 1, [len(order)])).astype(np.int64)
        if not len(order):
            self.firsts = np.zeros(1, dtype=np.int64)
        self._documents = documents[self.firsts[:-1]]

    def chunks(self, numbers: Numbers) -> Numbers:
        return numbers if self.order is None else self.order[numbers]

    def sorted(self, values: NDArray[Any]) -> NDArray[Any]:
        return values if self.order is None else values[self.order]

    def part(self, numbers: Numbers, reach: int, short: int = 0) -> _Part:
        """The ranges within reach of these units, ascending, in their documents; of short documents all."""
        documents = self.documents(numbers)
        begin, end = self.firsts[documents], self.firsts[documents + 1]
        whole = end - begin <= short
        low = np.where(whole, begin, np.maximum(numbers - reach, begin))
        high = np.where(whole, end, np.minimum(numbers + reach + 1, end))
        return _Part(low, high)

    def of_documents(self, documents: Sequence[int]) -> _Part | None:
        """The ranges of these documents, by their numbers in the corpus; None without units."""
        own = np.flatnonzero(np.isin(self._documents, documents))
        return _Part(self.firsts[own], self.firsts[own + 1]) if len(own) else None

    def adjoin(self, one: int, other: int) -> bool:
        return other == one + 1 and other not in self._starts

    @cached_property
    def _starts(self) -> frozenset[int]:
        return frozenset(self.firsts.tolist())

    def with_gaps(self, best: Numbers, scores: Scores) -> list[int]:
        """These units, and the units between two of them that cost less than all of their document's are worth."""
        if not len(best):
            return []
        least = scores[best].min()
        numbers = np.sort(best)
        documents = self.documents(numbers)
        worth = np.bincount(documents - documents[0], scores[numbers] - least)[documents - documents[0]]
        found = [int(numbers[0])]
        for place in range(1, len(numbers)):
            before, own = int(numbers[place - 1]), int(numbers[place])
            if documents[place] == documents[place - 1] and own > before + 1:
                between = scores[before + 1 : own]
                if least * len(between) - between.sum() < worth[place]:
                    found += range(before + 1, own)
            found.append(own)
        return found


class _Kind(Protocol):
    """One way of scoring windows, of a question that `asked` has prepared."""

    def first(self, question: Any, hits: int) -> tuple[Numbers, Scores]:
        """The first hits by their own score, ascending, and their scores."""
        ...

    def values(self, question: Any, ranges: _Ranges) -> Iterator[tuple[Reals, float]]:
        """At each scale the scores of these units, which may be changed, and what counts as a large score.

        Those of whole documents are one for each range.
        """
        ...


def _standardised(asked: Sequence[tuple[_Kind, Any]], ranges: _Ranges, sample: _Ranges | None = None) -> Scores:
    """Each unit's sum over kinds and scales of (x - mean) / deviation, over these units or over the sample."""
    scores = np.zeros(len(ranges))
    for kind, question in asked:
        told = [] if sample is None else [_moments(values, sample) for values, _ in kind.values(question, sample)]
        for scale, (values, largest) in enumerate(kind.values(question, ranges)):
            wide = values.astype(np.float64, copy=False)
            if sample is None:
                mean, deviation = _moments(wide, ranges)
            else:
                mean, deviation = told[scale]
            if deviation > _SAME * largest:
                wide -= mean
                wide *= 1 / deviation
                scores += wide if len(wide) == len(scores) else np.repeat(wide, ranges.lengths)
    return scores


def _moments(values: Reals, ranges: _Ranges) -> tuple[float, float]:
    """The mean and the deviation over units, of a value of each or of each range."""
    size = len(ranges)
    if len(values) == size:
        mean = float(values.mean(dtype=np.float64))
        apart = values - mean
        return mean, math.sqrt(float(apart @ apart) / size)
    mean = float(values @ ranges.lengths) / size
    return mean, math.sqrt(float((values - mean) ** 2 @ ranges.lengths) / size)


def _first(numbers: Numbers, values: Reals, hits: int) -> tuple[Numbers, Scores]:
    best = np.sort(_best(values.astype(np.float64, copy=False), hits))
    return numbers[best], values[best].astype(np.float64)


class _Dense:
    """Cosines of windows. One inverse length of each window's vector is kept; the vectors are not copied.

    With `hits`, 128 signs of each vector find what may be near; long documents keep their vector.
    """

    def __init__(
        self,
        units: _Units,
        rows: Rows,
        tokens: Numbers,
        options: Passages,
        halves: Sequence[int],
        *,
        whole: bool,
    ) -> None:
        self._units = units
        self._rows = rows
        real: type[np.floating] = np.float64 if len(units) <= _WIDE else np.float32
        self._weights = np.sqrt(units.sorted(tokens)).astype(real)
        self._own = np.zeros(len(units), dtype=real)  # the inverse length of each vector
        self._windows = {half: np.zeros(len(units), dtype=real) for half in halves if half}
        self._halves = halves
        self._documents = np.zeros(len(units.lengths)) if whole else None
        self.whole = whole
        dimensions = rows.shape[1] if len(units) else 0
        self.short = dimensions // 4  # so that the vectors of longer documents take 16 bytes a unit at most
        long = np.flatnonzero(units.lengths > self.short) if options.hits and whole else np.zeros(0, dtype=np.int64)
        self._long, self._pooled = long, np.zeros((len(long), dimensions), dtype=np.float32)
        self._planes = self._signs = None
        if options.hits and len(units) > _SKETCHED and hasattr(np, "bitwise_count"):
            self._planes = np.random.default_rng(0).standard_normal((dimensions, 128))
            self._signs = np.zeros((2, len(units)), dtype=np.uint64)
        self._measure()

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

    def asked(self, query: Reals) -> _Vector:
        """The query's vector and its inverse length. Raises `ModelError`: it is of another model."""
        if len(self._units) and len(query) != self._rows.shape[1]:
            raise ModelError(
                f"the query has {len(query)} dimensions and the vectors {self._rows.shape[1]}: embed both with the "
                "same model"
            )
        length = float(np.linalg.norm(query.astype(np.float64)))
        return query, 1 / length if length else 0.0

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

    def values(self, question: _Vector, ranges: _Ranges) -> Iterator[tuple[Reals, float]]:
        if not len(ranges):
            return
        own = self._cosines(question, ranges.numbers)
        if 0 in self._halves:
            yield own.copy(), 1.0
        own *= ranges.of(self._weights)
        sums = np.concatenate(([0.0], np.cumsum(own)))
        for half, inverse in self._windows.items():
            start, end = ranges.windows(half)
            values = sums[end]
            values -= sums[start]
            values *= ranges.of(inverse)
            yield values, 1.0
        if self._documents is not None:
            values = sums[ranges.firsts[1:]] - sums[ranges.firsts[:-1]]
            if isinstance(ranges, _Part):
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


class _Lexical:
    """Postings of the units, by word; a word's frequencies in windows are differences of running sums over them."""

    def __init__(
        self, units: _Units, corpus: ChunkedCorpus, options: Passages, halves: Sequence[int], *, whole: bool
    ) -> None:
        self._units = units
        self._form = options.words
        self._halves = halves
        self._reach = max(halves, default=0)
        self._real: type[np.floating] = np.float64 if len(units) <= _WIDE else np.float32
        self._weights: dict[int, NDArray[np.float64]] = {}
        self._options = options
        self._posted = corpus.postings(self._form)
        if units.order is not None:
            self._posted = Postings.joined([(self._posted, np.argsort(units.order))], len(units))
        sums = np.concatenate(([0], np.cumsum(self._posted.lengths)))
        self._sums: NDArray[np.signedinteger[Any]] = sums.astype(np.int32 if sums[-1] < 2**31 else np.int64)
        self._means = {half: float(self._sizes(half, units).mean()) if len(units) else 0.0 for half in halves}
        self._norms = None if options.hits else [self._norm_of(half, units) for half in halves]
        own = np.diff(sums[units.firsts])
        self._documents = _norm(own, options, float(own @ units.lengths) / max(1, len(units))) if whole else None

    def _sizes(self, half: int, ranges: _Ranges) -> Numbers:
        """How many words each window has."""
        start, end = ranges.windows(half)
        if isinstance(ranges, _Part):
            shifts = np.repeat(ranges.shifts, ranges.lengths)
            start, end = start + shifts, end + shifts
        return np.asarray(self._sums[end] - self._sums[start], dtype=np.int64)

    def _norm_of(self, half: int, ranges: _Ranges) -> Reals:
        return _norm(self._sizes(half, ranges), self._options, self._means[half]).astype(self._real)

    def asked(self, query: str) -> list[_Word]:
        """The question's words that the units have."""
        known = Counter(word for word in self._posted.find(word_keys(query, self._form)).tolist() if word >= 0)
        return [(*self._postings(word), count * self._weights_of(word)) for word, count in known.items()]

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
            scores[posted] += weights.max() * counts / (counts + _norm(sizes, self._options, mean))
        found = np.flatnonzero(scores)
        return _first(found, scores[found], hits)

    def values(self, question: list[_Word], ranges: _Ranges) -> Iterator[tuple[Reals, float]]:
        if not (question and len(ranges)):
            return
        words = question
        norms = self._norms
        if isinstance(ranges, _Part):
            words = [(*_inside(ranges, posted, counts), weights) for posted, counts, weights in question]
        if isinstance(ranges, _Part) or norms is None:
            norms = [self._norm_of(half, ranges) for half in self._halves]
        found = np.zeros((len(self._halves), len(ranges)), dtype=self._real)
        for first in range(0, len(ranges), _BLOCK):
            self._add_block(found, words, norms, ranges, first, min(first + _BLOCK, len(ranges)))
        for values in found:
            yield values, float(values.max())
        if self._documents is not None:
            firsts = self._units.firsts
            documents = whose = np.arange(len(firsts) - 1)
            if isinstance(ranges, _Part):
                documents, whose = np.unique(self._units.documents(ranges.starts), return_inverse=True)
                whole = _Part(firsts[documents], firsts[documents + 1])
            values = np.zeros(len(documents))
            for posted, counts, weights in question:
                if isinstance(ranges, _Part):  # few of many units: only their documents' postings
                    places, own = _inside(whole, posted, counts)
                    inside = np.bincount(whole.documents(places.astype(np.int64)), own, minlength=len(documents))
                else:
                    held = np.concatenate(([0.0], np.cumsum(counts, dtype=np.float64)))
                    inside = np.diff(held[posted.searchsorted(firsts.astype(np.int32))])
                values += weights[-1] * inside / (inside + self._documents[documents])
            yield values[whose], float(values.max())

    def _add_block(
        self, found: Reals, words: Sequence[_Word], norms: Sequence[Reals], ranges: _Ranges, first: int, last: int
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

    def _postings(self, word: int) -> tuple[NDArray[np.int32], NDArray[np.unsignedinteger[Any]]]:
        own = slice(*self._posted.begins[word : word + 2])
        return self._posted.texts[own], self._posted.counts[own]

    def _weights_of(self, word: int) -> NDArray[np.float64]:
        """The word's inverse document frequency among the windows of each scale, that of documents last."""
        if word not in self._weights:
            units = self._units
            posted = self._postings(word)[0].astype(np.int64)
            documents = units.documents(posted)
            begin, end = units.firsts[documents], units.firsts[documents + 1]
            numbers = []
            for half in self._halves:
                until = np.minimum(posted + half + 1, end)
                start = np.maximum(posted - half, begin)
                start[1:] = np.maximum(start[1:], until[:-1])
                numbers.append(int((until - start).sum()))
            numbers.append(int(units.lengths[np.unique(documents)].sum()))
            held = np.array(numbers, dtype=np.float64)
            self._weights[word] = np.log1p((len(units) - held + 0.5) / (held + 0.5)).astype(np.float64)
        return self._weights[word]


def _inside(part: _Part, posted: NDArray[np.int32], counts: NDArray[Any]) -> tuple[NDArray[np.int32], NDArray[Any]]:
    """The postings in a part of the units, by their places in the part."""
    first = posted.searchsorted(part.starts.astype(np.int32))
    number = posted.searchsorted(part.ends.astype(np.int32)) - first
    own = np.arange(number.sum()) + np.repeat(first - (np.cumsum(number) - number), number)
    return posted[own] - np.repeat(part.shifts, number).astype(np.int32), counts[own]


def _norm(sizes: Numbers, options: Passages, mean: float) -> NDArray[np.float64]:
    """What BM25 adds to a frequency below its fraction: above 0, so that words that are not there get 0."""
    norm = options.k1 * (1 - options.b + options.b / (mean or 1.0) * sizes.astype(np.float64))
    found: NDArray[np.float64] = np.maximum(norm, 1e-30)
    return found
