"""`assemble`: ranked hits to passages, exact spans under a budget of tokens."""

from __future__ import annotations

import math
from bisect import bisect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from heapq import heapify, heappop, heappush
from itertools import accumulate, groupby, pairwise

import numpy as np
from numpy.typing import NDArray

from chunkcore.document import Document, Span
from chunkcore.errors import DataError, OptionError
from chunkcore.run import Retrieved
from chunkcore.tokens import TokenCounter, get_counter

__all__ = ["MAX_TOKENS", "assemble", "combine", "cut_unit", "passage_of", "passages_of", "spans_of", "text_of"]

MAX_TOKENS = 1000
_BLANK = 5  # characters between two units that are taken as white space where the text is not given


def assemble(
    hits: Iterable[Retrieved],
    max_tokens: int = MAX_TOKENS,
    *,
    k: int | None = None,
    documents: Iterable[Document] | Mapping[str, Document] | None = None,
    counter: str | TokenCounter = "cl100k_base",
) -> list[Retrieved]:
    """Passages from ranked hits: the neighbouring hits that are worth most together, within a budget of tokens.

    The best hits, taken one by one, come to `max_tokens` at some score t. A run of neighbouring hits is worth the sum
    of its scores less t for each. The runs worth most become passages until the budget is used; what is left of it goes
    to the next best hits that fit. A passage's score is what its run is worth, its `parts` are its hits in reading
    order, each with its span and score. Passages are disjoint and best first; equal input gives equal passages.

    Hits of one document are neighbours where no letter or digit stands between them, and the passage's span then runs
    from the first to the last. Without the document, hits are neighbours up to 5 characters apart; the passage keeps
    their spans, and a space joins their texts. A hit that overlaps a better one is left out; a hit without spans stays
    alone. Hits may come in any order; equal scores keep it.

    If the best hit alone is over the budget, it is the only passage, cut at its last whole token within the budget;
    `how` is then "part", of the passage and its part. (If not one character fits, the next best hit is tried.)

    Args:
        hits: with spans and scores, from any retriever.
        max_tokens: of the passages' texts in all.
        k: return only the best `k` of the passages that the budget gives.
        documents: the sources. Hits of others are assembled from their own texts.
        counter: of tokens.

    Raises:
        OptionError: a limit is under 1.
        DataError: a score is not finite, a hit has neither text nor document, or a span ends after its document.

    Time O(n log n) in the hits, and the tokenizing of the best of them.

    >>> fox = Document("fox.txt", "A fox naps. A crow sings. Rain falls. The end.")
    >>> places = {Span(12, 25): 3.0, Span(0, 11): 2.0, Span(38, 46): 1.0}
    >>> hits = [Retrieved("fox.txt", (span,), score) for span, score in places.items()]
    >>> [(each.text, each.score) for each in assemble(hits, 6, documents=[fox], counter="words")]
    [('A fox naps. A crow sings.', 1.0)]
    """
    sources = documents if isinstance(documents, Mapping) else {document.id: document for document in documents or ()}
    units = _disjoint([_checked(hit, sources) for hit in hits])
    joined = [_adjoin(one, other, sources) for one, other in pairwise(units)]
    return passages_of(units, joined, max_tokens, k=k, documents=sources, counter=get_counter(counter))


def combine(
    rankings: Iterable[Iterable[Retrieved]],
    *,
    scales: Sequence[int] = (0, 1, 3, 7),
    neighbours: Iterable[Retrieved] = (),
) -> list[Retrieved]:
    """Several searches' hits over small chunks as one ranking, by what was found around each.

    The r-th of a search's n hits is worth log((n + 1) / r), so that scores may be of any kind. At a half-width h, a hit
    has the worth of all hits within h chunks of it in its document; the distance of hits that are not neighbours is
    estimated from the mean length. Each search and half-width is divided by its root of the sum of squares; a hit's
    score is the sum. This is the form of the retriever ``passages`` for an index that exists.

    Args:
        rankings: of each search, the hits, best first.
        scales: half-widths, in chunks.
        neighbours: chunks that no search may have found: those beside hits, where they can be had.

    Returns:
        All hits and neighbours, each once, best first: for `assemble`.

    Raises:
        OptionError: a half-width is negative, or there is none.

    >>> a, b, c = (Retrieved("fox.txt", (Span(start, start + 9),)) for start in (0, 10, 500))
    >>> [hit.spans[0].start for hit in combine([[c, a], [b]])]
    [10, 500, 0]
    """
    if not scales or any(type(half) is not int or half < 0 for half in scales):
        raise OptionError(f"scales are half-widths of 0 or more, got {scales!r}")
    units: dict[tuple[str, object], Retrieved] = {}
    worth = []
    for ranking in rankings:
        found = dict.fromkeys(map(_key, hits := list(ranking)))  # a repeated hit counts at its best rank
        worth.append({key: math.log((len(found) + 1) / rank) for rank, key in enumerate(found, start=1)})
        units |= {key: hit for hit in hits if (key := _key(hit)) not in units}
    units |= {key: each for each in neighbours if (key := _key(each)) not in units}
    keys = sorted(units, key=lambda key: (key[0], not units[key].spans, key[1]))
    places = _distances([units[key] for key in keys], max(scales))
    total = np.zeros(len(keys))
    for own in worth:
        sums = np.concatenate(([0.0], np.cumsum([own.get(key, 0.0) for key in keys])))
        for half in scales:
            around = (
                sums[np.searchsorted(places, places + half, "right")] - sums[np.searchsorted(places, places - half)]
            )
            total += around / (float(np.linalg.norm(around)) or 1.0)
    return [units[keys[i]].with_score(float(total[i])) for i in np.argsort(-total, kind="stable").tolist()]


def _key(hit: Retrieved) -> tuple[str, object]:
    return hit.document_id, hit.spans or hit.text


def _distances(units: Sequence[Retrieved], reach: int) -> NDArray[np.int64]:
    """The place of each unit on a line: neighbours are 1 apart, documents more than `reach`."""
    lengths = [unit.spans[-1].end - unit.spans[0].start for unit in units if unit.spans]
    mean = max(1.0, sum(lengths) / len(lengths)) if lengths else 1.0
    steps = [0]
    for one, other in pairwise(units):
        if one.document_id != other.document_id or not (one.spans and other.spans):
            steps.append(reach + 1)
            continue
        gap = other.spans[0].start - one.spans[-1].end
        steps.append(1 if gap <= _BLANK else 1 + max(1, round(gap / mean)))
    return np.cumsum(steps[: len(units)], dtype=np.int64)


def _checked(hit: Retrieved, documents: Mapping[str, Document]) -> Retrieved:
    if not math.isfinite(hit.score):
        raise DataError(f"a hit of {hit.document_id!r} has the score {hit.score}: expected a finite number")
    document = documents.get(hit.document_id)
    if document is None or not hit.spans:
        if not hit.text:
            raise DataError(f"a hit of {hit.document_id!r} has no text: give its document and spans, or the text")
        return hit
    if hit.spans[-1].end > document.size:
        raise DataError(
            f"a hit ends at {hit.spans[-1].end} in {hit.document_id!r}, the text at {document.size}: "
            "give the document as it was indexed"
        )
    if hit.text and len(hit.spans) > 1:
        return hit
    text = " ".join(span.slice(document.text) for span in hit.spans)
    return hit if hit.text == text else replace(hit, text=text)


def _disjoint(hits: Sequence[Retrieved]) -> list[Retrieved]:
    """By document and place; hits without spans come last. Of overlapping hits the best stays."""
    kept: dict[str, list[tuple[int, int, int]]] = {}
    alone = []
    for number in sorted(range(len(hits)), key=lambda number: -hits[number].score):
        spans = hits[number].spans
        if not spans:
            alone.append(hits[number])
            continue
        start, end = min(span.start for span in spans), max(span.end for span in spans)
        own = kept.setdefault(hits[number].document_id, [])
        at = bisect(own, (start, end, number))
        if (at and own[at - 1][1] > start) or (at < len(own) and own[at][0] < end):
            continue
        own.insert(at, (start, end, number))
    return [hits[number] for _, own in sorted(kept.items()) for _, _, number in own] + alone


def _adjoin(one: Retrieved, other: Retrieved, documents: Mapping[str, Document]) -> bool:
    if one.document_id != other.document_id or not (one.spans and other.spans):
        return False
    start, end = one.spans[-1].end, other.spans[0].start
    document = documents.get(one.document_id)
    if document is None:
        return end - start <= _BLANK
    return not any(map(str.isalnum, document.text[start:end]))


def passages_of(
    units: Sequence[Retrieved],
    joined: Sequence[bool],
    max_tokens: int | None = None,
    *,
    k: int | None = None,
    documents: Mapping[str, Document],
    counter: TokenCounter,
) -> list[Retrieved]:
    """`assemble` of disjoint units by place; `joined` says of each but the last whether the next is its neighbour.

    Equal scores keep the units' order.
    """
    budget = MAX_TOKENS if max_tokens is None else max_tokens
    if min(budget, k or 1) < 1 or k == 0:
        raise OptionError(f"k and max_tokens are at least 1, or None; got {k} and {max_tokens}")
    return _Assembly(units, joined, budget, documents, counter).passages()[:k]


class _Assembly:
    def __init__(
        self,
        units: Sequence[Retrieved],
        joined: Sequence[bool],
        budget: int,
        documents: Mapping[str, Document],
        counter: TokenCounter,
    ) -> None:
        self._units = units
        self._joined = [*joined, False]
        self._budget = budget
        self._documents = documents
        self._counter = counter
        self._sizes = counter.count_many([unit.text for unit in units]).tolist()
        self._order = sorted(range(len(units)), key=lambda number: -units[number].score)
        self._left = budget
        self._taken: dict[int, tuple[int, int]] = {}  # the tokens and the other end of each passage, by both its ends

    def passages(self) -> list[Retrieved]:
        units, sizes = self._units, self._sizes
        if self._order and sizes[self._order[0]] > self._budget:
            return next(filter(None, map(self._cut, self._order)), [])
        threshold = self._threshold()
        values = [unit.score - threshold for unit in units]
        chosen = [False] * len(units)
        runs = self._runs(values)
        heapify(runs)
        while runs:
            _, first, last = heappop(runs)
            if sum(sizes[first : last + 1]) <= self._left and self._add(first, last):
                chosen[first : last + 1] = [True] * (last + 1 - first)
            elif first < last:
                for run in self._split(values, first, last):
                    heappush(runs, run)
        for number in self._order:
            if not chosen[number] and sizes[number] <= self._left:
                chosen[number] = self._add(number, number)
        rank = {number: place for place, number in enumerate(self._order)}
        found = [
            (-sum(values[first : last + 1]), min(rank[number] for number in range(first, last + 1)), first, last)
            for first, (_, last) in self._taken.items()
            if first <= last
        ]
        return [self._passage(first, last, -loss) for loss, _, first, last in sorted(found)]

    def _threshold(self) -> float:
        """The score of the last of the best units that fit one by one."""
        within = accumulate(self._sizes[number] for number in self._order)
        fitting = sum(tokens <= self._budget for tokens in within)
        return self._units[self._order[fitting - 1]].score if fitting else 0.0

    def _runs(self, values: Sequence[float]) -> list[tuple[float, int, int]]:
        """The runs of neighbours with the greatest sums, disjoint: each its negative sum, its first and last unit.

        Source: Ruzzo and Tompa, "A linear time algorithm for finding all maximal scoring subsequences" (ISMB 1999).
        """
        # Ends, the sums before and up to the run's end, and the nearest earlier run with a smaller sum before it.
        runs: list[tuple[int, int, float, float, int]] = []
        found: list[tuple[float, int, int]] = []
        total = 0.0
        for number, value in enumerate(values):
            if value > 0:
                first, before, upto = number, total, total + value
                while True:
                    place = len(runs) - 1
                    while place >= 0 and runs[place][2] >= before:
                        place = runs[place][4]
                    if place < 0 or runs[place][3] >= upto:
                        break
                    first, before = runs[place][0], runs[place][2]
                    del runs[place:]
                runs.append((first, number, before, upto, place))
            total += value
            if not self._joined[number]:
                found += [(before - upto, first, last) for first, last, before, upto, _ in runs]
                runs, total = [], 0.0
        return found

    @staticmethod
    def _split(values: Sequence[float], first: int, last: int) -> Iterator[tuple[float, int, int]]:
        """The parts of a run between its worst units, without worthless ends."""
        worst = min(values[first : last + 1])
        for better, part in groupby(range(first, last + 1), lambda number: values[number] > worst):
            worthy = [number for number in part if better and values[number] > 0]
            if worthy:
                yield -sum(values[worthy[0] : worthy[-1] + 1]), worthy[0], worthy[-1]

    def _add(self, first: int, last: int) -> bool:
        """Take these units, joined to the passages beside them, if the budget holds them."""
        before = self._taken.get(first - 1) if first and self._joined[first - 1] else None
        after = self._taken.get(last + 1) if self._joined[last] else None
        low = before[1] if before else first
        high = after[1] if after else last
        freed = (before[0] if before else 0) + (after[0] if after else 0)
        tokens = self._counter.count(self._text(low, high))
        if tokens > self._left + freed:
            return False
        for end in {low, high} | ({first - 1} if before else set()) | ({last + 1} if after else set()):
            self._taken.pop(end, None)
        self._left += freed - tokens
        self._taken[high] = tokens, low
        self._taken[low] = tokens, high
        return True

    def _text(self, first: int, last: int) -> str:
        units = self._units[first : last + 1]
        return text_of(units, spans_of(units, self._documents), self._documents)

    def _passage(self, first: int, last: int, score: float) -> Retrieved:
        return passage_of(self._units[first : last + 1], score, self._documents)

    def _cut(self, number: int) -> list[Retrieved]:
        return cut_unit(self._units[number], self._budget, self._counter)


def spans_of(units: Sequence[Retrieved], documents: Mapping[str, Document]) -> tuple[Span, ...]:
    """The spans of neighbouring units of one document, by place, and what stands between them if the document is known.

    Disjoint and ascending; units may overlap.
    """
    spans, end = [*units[0].spans], units[0].spans[-1].end if units[0].spans else 0
    for unit in units[1:]:
        at = unit.spans
        if unit.document_id in documents and at[0].start > end:
            at = (Span(end, at[0].end), *at[1:])
        spans += at
        end = max(end, at[-1].end)
    merged: list[Span] = []
    for span in sorted(spans):
        if merged and span.start <= merged[-1].end:
            merged[-1] = Span(merged[-1].start, max(span.end, merged[-1].end))
        else:
            merged.append(span)
    return tuple(merged)


def text_of(units: Sequence[Retrieved], spans: Sequence[Span], documents: Mapping[str, Document]) -> str:
    """The text of neighbouring units, whose spans are `spans_of` them."""
    if len(units) == 1:
        return units[0].text
    if document := documents.get(units[0].document_id):
        text = document.text
        return " ".join(span.slice(text) for span in spans)
    text = units[0].text
    for one, other in pairwise(units):
        shared = one.spans[-1].end - other.spans[0].start
        text += other.text[shared:] if shared >= 0 else f" {other.text}"
    return text


def passage_of(units: Sequence[Retrieved], score: float, documents: Mapping[str, Document]) -> Retrieved:
    """One passage of neighbouring units, which are its parts."""
    spans = spans_of(units, documents)
    return Retrieved(units[0].document_id, spans, score, text_of(units, spans, documents), tuple(units))


def cut_unit(unit: Retrieved, budget: int, counter: TokenCounter) -> list[Retrieved]:
    """A passage of one unit, cut at its last whole token within the budget; none if not one character fits."""
    text, spans = unit.text, unit.spans
    if counter.count(unit.text) > budget:
        begins = counter.boundaries(text)
        text = text[: int(begins[budget])].rstrip()
        while text and counter.count(text) > budget:
            text = text[: int(counter.boundaries(text)[-1])].rstrip()
    if not text:
        return []
    gaps = len(unit.text) - sum(map(len, spans))
    if gaps == 0 or (gaps > 0 and len(spans) > 1):  # else the text is not the source's
        starts = accumulate((len(span) + gaps // max(1, len(spans) - 1) for span in spans), initial=0)
        spans = tuple(
            Span(span.start, min(span.end, span.start + len(text) - start))
            for span, start in zip(spans, starts, strict=False)
            if start < len(text)
        )
    part = replace(unit, spans=spans, text=text, how="part")
    return [replace(part, parts=(part,))]
