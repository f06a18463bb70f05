"""`Passages`: every window of every size scored for the question; spans chosen under a budget of tokens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chunkcore.document import Document
from chunkcore.errors import DataError, ModelError, OptionError
from chunkcore.registry import format_spec
from chunkcore.retrieval.assembly import MAX_TOKENS, passages_of, with_source
from chunkcore.retrieval.base import Hits, PassageIndex, RetrievalMethod, Scores, check_limits, retrievers
from chunkcore.retrieval.corpus import ChunkedCorpus
from chunkcore.retrieval.lexicon import Postings, check_words, word_keys
from chunkcore.retrieval.search import Rows, unit
from chunkcore.retrieval.vectors import TextVectors
from chunkcore.run import Retrieved
from chunkcore.spans import Numbers
from chunkcore.tokens import TokenCounter, get_counter

__all__ = ["KINDS", "SCALES", "Passages"]

KINDS = ("dense", "lexical")
SCALES = (0, 1, 3, 7, 15, 31, "document")
_BLOCK = 2**14  # units whose windows are scored together: what a block needs stays in the processor's cache
_WIDE = 2**15  # up to so many units, lexical scores are float64; float32 halves the time and differs by about 1e-6
_SAME = 1e-6  # a smaller deviation, relative to the largest score (of cosines: to 1), is rounding

Reals = NDArray[np.floating]
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

    Attributes:
        kinds: dense, lexical or both. As a string: ``passages:lexical``, which needs no model.
        words: of lexical: "whole", or "first5"; see `word_keys`.
        scales: half-widths, and "document" for the whole document. As a string: ``scales=0/1/3/document``.
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
    words: str = "whole"
    scales: tuple[int | str, ...] = SCALES
    k1: float = 1.2
    b: float = 0.75
    counter: str = "cl100k_base"

    def validate(self) -> None:
        unknown = [each for each in self.kinds if each not in KINDS]
        if unknown or not self.kinds or len(set(self.kinds)) < len(self.kinds):
            raise OptionError(f"passages: kinds are dense, lexical or both, each once; got {', '.join(self.kinds)!r}")
        wrong = [each for each in self.scales if each != "document" and not (isinstance(each, int) and each >= 0)]
        if wrong or not self.scales or len(set(self.scales)) < len(self.scales):
            told = "/".join(map(str, self.scales))
            raise OptionError(f"passages: scales are half-widths of 0 or more, or document, each once; got {told!r}")
        if not 0 <= self.k1 < float("inf"):
            raise OptionError(f"passages: k1 is at least 0, got {self.k1}")
        if not 0 <= self.b <= 1:
            raise OptionError(f"passages: b is 0 to 1, got {self.b}")
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
        if changed.pop("scales", None):
            parts.append(f"scales={'/'.join(map(str, self.scales))}")
        parts += [format_spec("", {option: value})[1:] for option, value in changed.items()]
        return f"passages:{','.join(parts)}" if parts else "passages"

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
        self._counter = options.counter
        self._units = _Units(corpus)
        halves = [each for each in options.scales if isinstance(each, int)]
        whole = "document" in options.scales
        self._dense = self._lexical = None
        if "dense" in options.kinds:
            self._vectors = vectors or TextVectors()
            rows, _ = self._vectors.chunks(corpus, cluster_only=True)
            self._dense = _Dense(self._units, rows, corpus.token_counts, halves, whole=whole)
        if "lexical" in options.kinds:
            self._lexical = _Lexical(self._units, corpus, options, halves, whole=whole)

    def search(self, queries: Sequence[str], k: int) -> Hits:
        found = []
        for scores in self._scores(queries):
            best = _best(scores, k)
            found.append((self._units.chunks(best), scores[best]))
        return Hits.of(found)

    def answers(
        self,
        queries: Sequence[str],
        k: int | None = None,
        max_tokens: int | None = None,
        *,
        sizes: Numbers | None = None,
        counter: TokenCounter | None = None,
    ) -> list[list[Retrieved]]:
        check_limits(k, max_tokens)
        measure = counter or get_counter(self._counter)
        budget = max_tokens or MAX_TOKENS
        return [self._passages(scores, k, budget, measure) for scores in self._scores(queries)]

    def _scores(self, queries: Sequence[str]) -> Iterator[Scores]:
        """Each query's scores of all units."""
        vectors = self._vectors.queries(queries) if self._dense is not None and len(queries) else None
        for number, query in enumerate(queries):
            scores = np.zeros(len(self._units))
            if self._dense is not None and vectors is not None:
                self._dense.add(scores, vectors[number])
            if self._lexical is not None:
                self._lexical.add(scores, query)
            yield scores

    def _passages(self, scores: Scores, k: int | None, budget: int, counter: TokenCounter) -> list[Retrieved]:
        units = self._units
        wanted = 8 + int(1.25 * budget / self._mean_tokens)
        while True:
            best = _best(scores, wanted)
            pieces = self._pieces(units.with_gaps(best, scores), scores)
            sizes = counter.count_many([each.text for each in pieces.values()])
            if wanted >= len(units) or sizes.sum() > budget:
                break
            wanted *= 2
        numbers = list(pieces)
        joined = [units.adjoin(one, other) for one, other in pairwise(numbers)]
        return passages_of(
            list(pieces.values()), joined, sizes, budget, k=k, documents=self._documents, counter=counter
        )

    def _pieces(self, numbers: Sequence[int], scores: Scores) -> dict[int, Retrieved]:
        chunks = self.corpus.retrieved
        places = self._units.chunks(np.array(numbers, dtype=np.int64)).tolist()
        return {
            number: with_source(chunks[place].with_score(float(scores[number])), self._documents)
            for number, place in zip(numbers, places, strict=True)
        }

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


class _Units:
    """The chunks in the order of their documents: `firsts` is each document's first unit, and the number of units."""

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
        self.lengths = np.diff(self.firsts)

    def __len__(self) -> int:
        return int(self.firsts[-1])

    def chunks(self, numbers: Numbers) -> Numbers:
        return numbers if self.order is None else self.order[numbers]

    def sorted(self, values: NDArray[Any]) -> NDArray[Any]:
        return values if self.order is None else values[self.order]

    def documents(self, numbers: Numbers) -> Numbers:
        """The document of each unit."""
        found: Numbers = np.searchsorted(self.firsts, numbers, side="right") - 1
        return found

    def each(self, values: NDArray[Any]) -> NDArray[Any]:
        """A number of each document, for each of its units."""
        return np.repeat(values, self.lengths)

    def windows(self, half: int, first: int = 0, last: int | None = None) -> tuple[Numbers, Numbers]:
        """The first unit of each window and the one after its last, of the units from `first` to `last`."""
        until = len(self) if last is None else last
        edges = np.clip(self.firsts, first, until)
        lengths = np.diff(edges)
        start = np.arange(first - half, until - half, dtype=np.int64)
        end = start + (2 * half + 1)
        np.maximum(start, np.repeat(self.firsts[:-1], lengths), out=start)
        np.minimum(end, np.repeat(self.firsts[1:], lengths), out=end)
        return start, end

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


def _add_standardised(scores: Scores, values: Reals, largest: float, lengths: Numbers | None = None) -> None:
    """Add (x - mean) / deviation to the units' scores; `lengths`: a value of each document counts for its units.

    `values` are changed.
    """
    wide = values.astype(np.float64, copy=False)
    if lengths is None:
        wide -= wide.mean()
        deviation = float(np.sqrt(wide @ wide / len(scores)))
    else:
        wide -= wide @ lengths / len(scores)
        deviation = float(np.sqrt((wide * wide) @ lengths / len(scores)))
    if deviation > _SAME * largest:
        wide *= 1 / deviation
        scores += wide if lengths is None else np.repeat(wide, lengths)


class _Dense:
    """One inverse length of each window's vector is kept; the vectors are not copied."""

    def __init__(self, units: _Units, rows: Rows, tokens: Numbers, halves: Sequence[int], *, whole: bool) -> None:
        self._units = units
        self._rows = rows
        self._weights = np.sqrt(units.sorted(tokens)).astype(np.float32)
        self._own = np.zeros(len(units), dtype=np.float32)  # the inverse length of each vector
        self._windows = {half: np.zeros(len(units), dtype=np.float32) for half in halves if half}
        self._halves = halves
        self._documents = np.zeros(len(units.lengths)) if whole else None
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
        self._documents[numbers] = _inverse_lengths(total[:, :-1], total[:, -1])
        return total[-1] if units.firsts[other + 1] > last else None

    def add(self, scores: Scores, query: Reals) -> None:
        """Add the standardised cosines of all scales."""
        units = self._units
        if not len(units):
            return
        if len(query) != self._rows.shape[1]:
            raise ModelError(
                f"the query has {len(query)} dimensions and the vectors {self._rows.shape[1]}: embed both with the "
                "same model"
            )
        own = units.sorted(self._rows @ unit(query[None])[0]) * self._own.astype(np.float64)
        if 0 in self._halves:
            _add_standardised(scores, own.copy(), 1.0)
        own *= self._weights
        sums = np.concatenate(([0.0], np.cumsum(own)))
        for half, inverse in self._windows.items():
            start, end = units.windows(half)
            values = sums[end]
            values -= sums[start]
            values *= inverse
            _add_standardised(scores, values, 1.0)
        if self._documents is not None:
            _add_standardised(scores, np.diff(sums[units.firsts]) * self._documents, 1.0, units.lengths)


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
        self._posted = corpus.postings(self._form)
        if units.order is not None:
            self._posted = Postings.joined([(self._posted, np.argsort(units.order))], len(units))
        sums = np.concatenate(([0], np.cumsum(self._posted.lengths)))
        sizes = [np.subtract(*(sums[edges] for edges in reversed(units.windows(half)))) for half in halves]
        self._norms = [_norm(each, options, float(each.mean())).astype(self._real) for each in sizes if len(each)]
        own = np.diff(sums[units.firsts])
        self._documents = _norm(own, options, float(units.each(own).mean())) if whole and len(units) else None

    def add(self, scores: Scores, query: str) -> None:
        """Add the standardised BM25 of all scales."""
        known = Counter(word for word in self._posted.find(word_keys(query, self._form)).tolist() if word >= 0)
        if not known:
            return
        words = [(*self._postings(word), count * self._weights_of(word)) for word, count in known.items()]
        found = np.zeros((len(self._halves), len(scores)), dtype=self._real)
        for first in range(0, len(scores), _BLOCK):
            self._add_block(found, words, first, min(first + _BLOCK, len(scores)))
        for values in found:
            _add_standardised(scores, values, float(values.max()))
        if self._documents is not None:
            values = np.zeros(len(self._documents))
            for posted, counts, weights in words:
                held = np.concatenate(([0.0], np.cumsum(counts, dtype=np.float64)))
                inside = np.diff(held[posted.searchsorted(self._units.firsts.astype(np.int32))])
                values += weights[-1] * inside / (inside + self._documents)
            _add_standardised(scores, values, float(values.max()), self._units.lengths)

    def _add_block(self, found: Reals, words: Sequence[_Word], first: int, last: int) -> None:
        """Add the scores of the windows of some units.

        Running sums never fall. So a window that reaches over its document's end grows until there: to the lesser of
        the sums at the two ends.
        """
        units, reach, size = self._units, self._reach, last - first
        one, other = units.documents(np.array([first, last - 1])).tolist()
        edges = np.clip(units.firsts[one : other + 2], first - reach, last + reach) - (first - reach)
        own_edges: Numbers = np.clip(units.firsts[one : other + 2], first, last)
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
                inside /= inside + self._norms[place][first:last]
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


def _norm(sizes: Numbers, options: Passages, mean: float) -> NDArray[np.float64]:
    """What BM25 adds to a frequency below its fraction: above 0, so that words that are not there get 0."""
    norm = options.k1 * (1 - options.b + options.b / (mean or 1.0) * sizes.astype(np.float64))
    found: NDArray[np.float64] = np.maximum(norm, 1e-30)
    return found
