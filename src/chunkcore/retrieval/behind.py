"""Passages behind a retriever: its hits, of any chunk size and any scores, count by their order; words are local.

A hit is worth log((N + 1) / rank) to the units that it covers, N the number of hits. Its score of a unit is the mean of
two scales: the hits as they are, and each hit with as much text again on either side; each is divided by its best unit.
The words' score is divided by its best unit, too: the first hit has the same share of what the best words are worth,
in a small collection and in a large one. Where the best words stand out by less than five deviations, they count less.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from chunkcore.document import Document, Span
from chunkcore.errors import OptionError
from chunkcore.options import check_number
from chunkcore.retrieval.assembly import check_limits, with_source
from chunkcore.retrieval.corpus import ChunkedCorpus
from chunkcore.retrieval.windows import Units
from chunkcore.run import Retrieved
from chunkcore.spans import Numbers, Scores
from chunkcore.tokens import TokenCounter

BALANCE = 0.3
_CLEAR = 25.0  # the words' score of a unit five deviations above the mean at every scale
Scope = Literal["hits", "text", "all"]
Rank = int


def kept_alone(
    ranked: Sequence[tuple[Rank, Retrieved]],
    alone: Sequence[tuple[Rank, Retrieved]],
    budget: int,
    documents: Mapping[str, Document],
    counter: TokenCounter,
) -> list[tuple[Rank, Retrieved]]:
    """The hits without a place in the index that the budget would hold if the retriever's hits were returned."""
    if not alone:
        return []
    texts = [hit.text or with_source(hit, documents).text for _, hit in ranked]
    reached = np.cumsum(counter.count_many(texts))
    return [(rank, hit) for rank, hit in alone if reached[rank - 1] <= budget]


class HitText:
    """The text that hits cover: where only that may be returned, pieces are cut to it."""

    def __init__(self, hits: Iterable[Retrieved], documents: Mapping[str, Document]) -> None:
        places = sorted((hit.document_id, span) for hit in hits for span in hit.spans)
        self._documents = documents
        self._spans = {name: _merged(span for _, span in group) for name, group in groupby(places, lambda at: at[0])}

    def cut(self, piece: Retrieved) -> Retrieved | None:
        """What the hits cover of the piece; None if that is nothing but white space."""
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
        """Whether the hits cover what stands between two pieces of one document, too."""
        start, end = one.spans[-1].end, other.spans[0].start
        return any(span.start <= start and end <= span.end for span in self._spans[one.document_id])


def _merged(spans: Iterable[Span]) -> list[Span]:
    """Ascending spans as disjoint ones that do not touch."""
    merged: list[Span] = []
    for span in spans:
        if merged and span.start <= merged[-1].end:
            merged[-1] = Span(merged[-1].start, max(span.end, merged[-1].end))
        else:
            merged.append(span)
    return merged


class UnitPlaces:
    """Which units a span covers, and how many characters of each."""

    def __init__(self, units: Units, corpus: ChunkedCorpus) -> None:
        extents = units.by_unit(corpus.extents)
        self.starts, self.ends = extents[:, 0], extents[:, 1]
        numbers = units.by_unit(corpus.document_numbers)[units.firsts[:-1]]
        names = corpus.document_names
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
            inside[slice(*self._ranges[name])] = True
        return inside

    def worth(self, placed: Sequence[tuple[Rank, Retrieved]], count: int) -> Scores:
        """What hits, of `count` in all, are worth to each unit, at most 1."""
        lengths = np.maximum(self.ends - self.starts, 1)
        total = np.zeros(len(lengths))
        for wider in (False, True):
            worth, covered = np.zeros(len(lengths)), np.zeros(len(lengths))
            for rank, hit in placed:
                for units, shared in self.covered(hit, wider=wider):
                    worth[units] += math.log((count + 1) / rank) * shared
                    covered[units] += shared
            # Where chunks overlap, a unit has the mean of those that cover it; neighbouring hits add up.
            total += _divided(worth / (lengths if wider else np.maximum(covered, lengths)))
        return total / 2


def word_shares(scores: Scores) -> Scores:
    """The words' scores, at most 1: divided by the best one, or by what stands out clearly if that is more."""
    clear = min(_CLEAR, len(scores) / 4)  # among n units, no deviation is greater than the root of n - 1
    shares: Scores = scores / max(float(scores.max(initial=0.0)), clear, 1e-9)
    return shares


def _divided(scores: Scores) -> Scores:
    """The scores divided by the best one; all 0 where none is above 0."""
    best = float(scores.max(initial=0.0))
    return scores / best if best > 0 else np.zeros(len(scores))


def check_behind(
    question: str, hits: Iterable[Retrieved], words: str, balance: float, max_tokens: int, k: int | None
) -> list[Retrieved]:
    """The hits. Raises `OptionError`: an argument of `behind` is out of range."""
    if not isinstance(question, str):
        raise OptionError(f"behind takes one question as a string, got {type(question).__name__}")
    if words not in ("hits", "text", "all"):
        raise OptionError(
            f'words is "hits" (the documents of the hits), "text" (the hits\' own text) or "all", got {words!r}'
        )
    check_number("balance", balance, 0, 1, whole=False)
    check_limits(k, max_tokens)
    pieces = list(hits) if isinstance(hits, Iterable) else [hits]
    if wrong := [piece for piece in pieces if not isinstance(piece, Retrieved)]:
        raise OptionError(f"hits are Retrieved, best first; got {type(wrong[0]).__name__}")
    return pieces
