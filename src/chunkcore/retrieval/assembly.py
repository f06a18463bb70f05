"""Units and hits to passages: exact spans under a budget of tokens. `passages_of` chooses, `join` joins."""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise
from typing import NamedTuple

from chunkcore.errors import DataError
from chunkcore.options import check_number
from chunkcore.run import RankedList, Retrieved
from chunkcore.spans import Numbers, union
from chunkcore.text import Document, Span
from chunkcore.tokens import TokenCounter, get_counter

MAX_TOKENS = 1000
PRICE = 0.1  # of a passage, of what the best unit is above the threshold
_HALVINGS = 24  # of the range of thresholds
# The header of a Markdown table, the rule below it, and the first row.
_HEADER = re.compile(r"^[^\n]*\|[^\n]*\n(?=[^\n]*-)(?=[^\n]*\|)[-:| \t]+\n[^\n]*", re.MULTILINE)
_LONGEST_HEADER = 5000  # characters
_BLANK = 5  # characters between two units that are taken as white space where the text is not given


def check_limits(k: int | None, max_tokens: int | None) -> None:
    """Raise `OptionError`: a limit is under 1, or no whole number."""
    for name, value in (("k", k), ("max_tokens", max_tokens)):
        if value is not None:
            check_number(name, value, 1)


def with_source(hit: Retrieved, documents: Mapping[str, Document]) -> Retrieved:
    """The hit with its document's text. Raises `DataError`: it has neither text nor document, or ends after it."""
    document = documents.get(hit.document_id)
    if document is None or not hit.spans:
        if not hit.text:
            raise DataError(
                f"a hit of {hit.document_id!r} has no text: give its document and spans, or the text"
            )
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


def without_table_header(piece: Retrieved) -> Retrieved:
    """The last span of a piece of two, without the table's header before it."""
    return part_of(piece, len(piece.text) - len(piece.spans[-1]), len(piece.text))


def with_table_headers(
    passages: Sequence[Retrieved],
    headers: Mapping[tuple[str, Span], Span],
    max_tokens: int,
    documents: Mapping[str, Document],
    counter: TokenCounter,
) -> list[Retrieved]:
    """The passages; the first one with rows of a table has its header (by the rows' place), if the budget holds it."""
    left = max_tokens - sum(counter.count_many([passage.text for passage in passages]))
    held = [(passage.document_id, span) for passage in passages for span in passage.spans]
    whole = []
    for passage in passages:
        for part in passage.parts:
            header = headers.get((part.document_id, part.spans[0])) if part.spans else None
            if header is None or any(
                name == part.document_id and span.start <= header.start < span.end
                for name, span in held
            ):
                continue
            spans = tuple(sorted((header, *passage.spans)))
            text = " ".join(span.slice(documents[passage.document_id].text) for span in spans)
            if (more := counter.count(text) - counter.count(passage.text)) <= left:
                passage = replace(passage, spans=spans, text=text)
                left -= more
                held.append((part.document_id, header))
        whole.append(passage)
    return whole


def without_bare_headers(
    passages: Iterable[Retrieved], documents: Mapping[str, Document]
) -> list[Retrieved]:
    """The passages; one that ends in the header of a Markdown table ends before it, if no passage has a row of it."""
    listed = list(passages)
    whole = []
    for passage in listed:
        text = documents[passage.document_id].text if passage.document_id in documents else ""
        end = passage.spans[-1].end
        start = _bare_header(text, passage.spans[-1].start, end)
        if start is None or any(
            other.document_id == passage.document_id
            and other.spans[0].start >= end
            and "\n\n" not in text[start : other.spans[0].start]
            for other in listed
        ):
            whole.append(passage)
        elif (cut := _before(passage, start, text)) is not None:
            parts = (_before(part, start, text) for part in passage.parts)
            whole.append(replace(cut, parts=tuple(part for part in parts if part is not None)))
    return whole


def _bare_header(text: str, start: int, end: int) -> int | None:
    """Where the header of a table begins in which a span ends, before its first row is whole; None if in no header."""
    last = line = start + len(text[start:end].rstrip()) - 1
    for _ in range(3):  # header, rule and row
        line = text.rfind("\n", 0, max(line, 0))
    for header in _HEADER.finditer(
        text, max(line + 1, last - _LONGEST_HEADER), last + _LONGEST_HEADER
    ):
        if header.start() <= last < header.start() + len(header.group().rstrip()) - 1:
            return header.start()
    return None


def _before(piece: Retrieved, end: int, text: str) -> Retrieved | None:
    """What of a piece stands before a place of its document; None if that is white space alone."""
    spans = [Span(span.start, min(span.end, end)) for span in piece.spans if span.start < end]
    if tuple(spans) == piece.spans:
        return piece
    if not spans or not (kept := spans[-1].slice(text).rstrip()):
        return None
    spans[-1] = Span(spans[-1].start, spans[-1].start + len(kept))
    return replace(piece, spans=tuple(spans), text=" ".join(span.slice(text) for span in spans))


class Row(NamedTuple):
    """Disjoint units by place, to make passages of."""

    units: Sequence[Retrieved]  # with scores
    joined: Sequence[bool]  # of each unit but the last, whether the next one is its neighbour
    sizes: Numbers  # tokens of each unit
    least: float = -math.inf  # a unit with a lower score becomes no part of a passage


def passages_of(
    row: Row,
    max_tokens: int,
    *,
    k: int | None = None,
    documents: Mapping[str, Document],
    counter: TokenCounter,
) -> list[Retrieved]:
    """The runs of neighbouring units that are worth most together, within a budget of tokens: passages, best first.

    At a threshold t, a run is worth the sum of its scores less t for each unit, less a price: a tenth of what the best
    unit is above t. The runs that are worth most together become passages, at the least t at which they come within
    `max_tokens`; what is left goes to the next best units that fit. A passage has the score of its best unit; its
    `parts` are its units in reading order. Equal scores keep the units' order; with `k`, the best k passages are
    returned.

    If the best unit alone is over the budget, it is the only passage, cut at its last whole token within the budget;
    `match` is then "part", of the passage and its part. (If not one character fits, the next best unit is tried.)
    """
    check_limits(k, max_tokens)
    units, tokens, goes_on = row.units, row.sizes.tolist(), [*row.joined, False]
    order = sorted(range(len(units)), key=lambda number: -units[number].score)
    order = [number for number in order if units[number].score >= row.least]
    if order and tokens[order[0]] > max_tokens:
        return next(
            filter(None, (cut_unit(units[number], max_tokens, counter) for number in order)), []
        )
    left = max_tokens
    ends: dict[
        int, tuple[int, int]
    ] = {}  # the tokens and the other end of each passage, by both its ends

    def add(first: int, last: int) -> None:
        """Take these units, joined to the passages beside them, if the budget holds them."""
        nonlocal left
        before = ends.get(first - 1) if first and goes_on[first - 1] else None
        after = ends.get(last + 1) if goes_on[last] else None
        low = before[1] if before else first
        high = after[1] if after else last
        freed = (before[0] if before else 0) + (after[0] if after else 0)
        size = (
            tokens[low]
            if low == high
            else counter.count(passage_of(units[low : high + 1], 0.0, documents).text)
        )
        if size <= left + freed:
            for end in (
                {low, high} | ({first - 1} if before else set()) | ({last + 1} if after else set())
            ):
                ends.pop(end, None)
            left += freed - size
            ends[high] = size, low
            ends[low] = size, high
            chosen[first : last + 1] = [True] * (last + 1 - first)

    chosen = [False] * len(units)
    for first, last in _within_budget(row, goes_on, max_tokens):
        add(first, last)
    for number in order:
        if not chosen[number] and tokens[number] <= left:
            add(number, number)
    rank = {number: place for place, number in enumerate(order)}
    passages = [
        (min(rank.get(number, len(rank)) for number in range(first, last + 1)), first, last)
        for first, (_, last) in ends.items()
        if first <= last
    ]
    return [
        passage_of(units[first : last + 1], units[order[best]].score, documents)
        for best, first, last in sorted(passages)[:k]
    ]


def _within_budget(row: Row, goes_on: Sequence[bool], budget: int) -> list[tuple[int, int]]:
    """The runs at the least threshold at which they come within the budget, best first: first and last unit."""
    scores, tokens = [unit.score for unit in row.units], row.sizes.tolist()
    low, high = max(min(scores, default=0.0), row.least), max(scores, default=0.0)
    top, threshold, runs = high, low, list[tuple[float, int, int]]()
    for _ in range(_HALVINGS):
        candidates = _runs(
            [score - threshold for score in scores], goes_on, PRICE * (top - threshold)
        )
        if sum(sum(tokens[first : last + 1]) for _, first, last in candidates) <= budget:
            runs, high = candidates, threshold
            if threshold == low:
                break
        else:
            low = threshold
        threshold = (low + high) / 2
    return [(first, last) for _, first, last in sorted(runs)]


def _runs(
    values: Sequence[float], goes_on: Sequence[bool], price: float
) -> list[tuple[float, int, int]]:
    """The disjoint runs of neighbours that are worth most in all, each for a price: negative worth, first and last."""
    outside, inside = 0.0, -math.inf  # a dynamic programme over two states
    begins: list[int] = []  # of the best run that ends at each unit
    closes: list[bool] = []  # whether the best of all up to a unit ends with that run
    for number, value in enumerate(values):
        goes_on_here = number > 0 and goes_on[number - 1] and inside > outside - price
        begins.append(begins[-1] if goes_on_here else number)
        inside = value + (inside if goes_on_here else outside - price)
        closes.append(inside > outside)
        outside = max(outside, inside)
    runs = []
    last = len(values) - 1
    while last >= 0:
        if closes[last]:
            first = begins[last]
            runs.append((price - sum(values[first : last + 1]), first, last))
            last = first
        last -= 1
    return runs


def spans_of(units: Sequence[Retrieved], documents: Mapping[str, Document]) -> tuple[Span, ...]:
    """The spans of neighbouring units of one document, by place, with what stands between if the document is known."""
    spans, end = [*units[0].spans], units[0].spans[-1].end if units[0].spans else 0
    for unit in units[1:]:
        at = unit.spans
        if unit.document_id in documents and at[0].start > end:
            at = (Span(end, at[0].end), *at[1:])
        spans += at
        end = max(end, at[-1].end)
    return tuple(union(spans))


def passage_of(
    units: Sequence[Retrieved], score: float, documents: Mapping[str, Document]
) -> Retrieved:
    """One passage of neighbouring units, which are its parts."""
    spans, text = spans_of(units, documents), units[0].text
    if len(units) > 1 and (document := documents.get(units[0].document_id)):
        text = " ".join(span.slice(document.text) for span in spans)
    elif len(units) > 1:
        for one, other in pairwise(units):
            shared = one.spans[-1].end - other.spans[0].start
            text += other.text[shared:] if shared >= 0 else f" {other.text}"
    return Retrieved(units[0].document_id, spans, score, text, tuple(units))


def cut_unit(unit: Retrieved, budget: int, counter: TokenCounter) -> list[Retrieved]:
    """A passage of one unit, cut at its last whole token within the budget; none if not one character fits."""
    text = unit.text
    if counter.count(unit.text) > budget:
        begins = counter.boundaries(text)
        text = text[: int(begins[budget])].rstrip()
        while text and counter.count(text) > budget:
            text = text[: int(counter.boundaries(text)[-1])].rstrip()
    if not text:
        return []
    part = replace(part_of(unit, 0, len(text)), match="part")
    return [replace(part, parts=(part,))]


def part_of(piece: Retrieved, start: int, end: int) -> Retrieved:
    """The piece of ``text[start:end]``, with its places in the document: all of them if the text is not the document's.

    >>> piece = Retrieved("fox.txt", (Span(4, 7), Span(20, 24)), 1.0, "fox naps")
    >>> part_of(piece, 4, 8).spans, part_of(piece, 1, 5).spans
    ((Span(start=20, end=24),), (Span(start=5, end=7), Span(start=20, end=21)))
    """
    text, spans = piece.text[start:end], piece.spans
    gaps, between = len(piece.text) - sum(map(len, spans)), max(1, len(spans) - 1)
    if gaps == 0 or (
        gaps > 0 and len(spans) > 1 and gaps % between == 0
    ):  # else the text is not the source's
        begins = accumulate((len(span) + gaps // between for span in spans), initial=0)
        spans = tuple(
            Span(span.start + max(0, start - begin), span.start + min(len(span), end - begin))
            for span, begin in zip(spans, begins, strict=False)
            if max(start, begin) < min(end, begin + len(span))
        )
    return replace(piece, spans=spans or piece.spans, text=text, parts=())


def join(
    hits: Sequence[Retrieved],
    max_tokens: int | None = None,
    *,
    scores: Sequence[float] | None = None,
    pairs: Iterable[tuple[int, int]] = (),
    documents: Mapping[str, Document],
    counter: str | TokenCounter = "cl100k_base",
) -> RankedList:
    """Hits of one document that overlap or touch, and `pairs` of hits, become one passage each, in the hits' order.

    A passage has the greatest of its hits' scores; its `parts` are the hits, by place. Where the document is known,
    the passage's text has what stands between them. A hit without spans stays alone.

    Args:
        hits: best first.
        max_tokens: by `counter`: as many of the hits, in their order, as make passages of so many tokens in all. If the
            first one alone is longer, it is cut at its last whole token within the limit. None: all.
        scores: of the hits, if not their own.
        pairs: hits that are neighbours wherever they are, as places in `hits`.

    >>> fox = {"fox.txt": Document("fox.txt", "A fox naps. A crow sings. Rain falls.")}
    >>> hits = [Retrieved("fox.txt", (span,), score) for span, score in ((Span(11, 25), 2.0), (Span(0, 11), 1.0))]
    >>> [passage.text for passage in join(hits, documents=fox)]
    ['A fox naps. A crow sings.']
    """
    worth = [hit.score for hit in hits] if scores is None else scores
    neighbours = list(pairs)

    def joined(count: int) -> list[Retrieved]:
        within = [pair for pair in neighbours if max(pair) < count]
        groups = _groups([(hit.document_id, hit.spans) for hit in hits[:count]], within)
        passages = []
        for group in groups:
            units = sorted((hits[number] for number in group), key=lambda hit: hit.spans)
            passages.append(passage_of(units, max(worth[number] for number in group), documents))
        return passages

    if max_tokens is None:
        return RankedList(joined(len(hits)))
    tokens = get_counter(counter)

    def size(count: int) -> int:
        return int(sum(tokens.count_many([passage.text for passage in joined(count)])))

    fits = bisect_right(range(1, len(hits) + 1), max_tokens, key=size)
    if hits and not fits:
        return RankedList(
            next(filter(None, (cut_unit(hit, max_tokens, tokens) for hit in hits)), [])
        )
    return RankedList(joined(fits))


def _groups(
    places: Sequence[tuple[str, Sequence[Span]]], pairs: Iterable[tuple[int, int]]
) -> list[list[int]]:
    """Which places, each a document and spans, belong together: those that overlap or touch, and `pairs`."""
    parents = list(range(len(places)))

    def root(number: int) -> int:
        while parents[number] != number:
            parents[number] = number = parents[parents[number]]
        return number

    for one, other in pairs:
        parents[root(one)] = root(other)
    name, reach, reaching = "", 0, -1
    for document, span, number in sorted(
        (document, span, number)
        for number, (document, spans) in enumerate(places)
        for span in spans
    ):
        if reaching >= 0 and document == name and span.start <= reach:
            parents[root(number)] = root(reaching)
        if reaching < 0 or document != name or span.end > reach:
            name, reach, reaching = document, span.end, number
    groups: dict[int, list[int]] = {}
    for number in range(len(places)):
        groups.setdefault(root(number), []).append(number)
    return list(groups.values())
