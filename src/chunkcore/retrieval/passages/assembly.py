"""Units and hits to passages: exact spans under a budget of tokens. `passages_of` chooses, `join` joins."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Literal

from chunkcore.errors import OptionError, echo
from chunkcore.reading.visible import is_html
from chunkcore.retrieval.budget import Budget, first_cut
from chunkcore.run import RankedList, Retrieved
from chunkcore.spans import union
from chunkcore.text import Document, Span, text_of_spans

PRICE = 0.1  # of a passage, of what the best unit is above the threshold
CRUMB = 36  # tokens: a shorter run takes a neighbour, where the budget is twenty times as much
# Of the budget: more is not kept together. By what goes on: nothing, a sentence or a heading, a table.
KEPT = (0.0, 0.2, 0.5)
_HALVINGS = 24  # of the range of thresholds
# The header of a Markdown table, the rule below it, and the first row.
_HEADER = re.compile(r"^[^\n]*\|[^\n]*\n(?=[^\n]*-)(?=[^\n]*\|)[-:| \t]+\n[^\n]*", re.MULTILINE)
_LONGEST_HEADER = 5000  # characters
_HEADING = re.compile(r"#{1,6} |\*\*[^*]+\*\*$")
_CLOSED = (
    ".!?:;\"'”’»)]」』。！？；…।॥؟۔"  # after which a sentence, or a clause of a long one, ends
)
# Scripts whose sentences end at a space.
_SPACES = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]")
# Words that refer to the sentence before.
_REFERS = re.compile(r"(?:It|Its|This|That|These|Those|They|Their|He|She|Such)\b")

Documents = Mapping[str, Document]
Run = tuple[int, int]  # neighbouring units: the numbers of the first and the last
Order = Literal["score", "document"]


# ---- The text of pieces


def with_spans(
    piece: Retrieved,
    spans: Sequence[Span],
    documents: Documents,
) -> Retrieved:
    """The piece with other spans, and their text."""
    text = text_of_spans(documents[piece.document_id].text, spans)
    return replace(piece, spans=tuple(spans), text=text)


def goes_on(
    text: str,
    span: Span,
    after: int,
) -> int:
    """Whether a reader of a span needs what stands at a later place, too. 0: no; 1: a sentence goes on, or the span
    ends in a Markdown heading; 2: a table goes on.

    >>> goes_on("The fox naps. Rain", Span(0, 13), 14), goes_on("The fox naps", Span(0, 7), 8)
    (0, 1)
    """
    kept = text[span.start : span.end].rstrip()
    line = kept[kept.rfind("\n") + 1 :]
    gap = text[span.start + len(kept) : after]
    if line.startswith("|") and text.startswith("|", after):
        return 2
    if _HEADING.match(line):
        return 1
    if "\n" in gap or not line or line[-1] in _CLOSED:
        return 0
    return 0 if gap and _SPACES.match(line[-1]) else 1


def passage_of(
    units: Sequence[Retrieved],
    score: float,
    documents: Documents,
) -> Retrieved:
    """One passage of neighbouring units, which are its parts, with what stands between them in their document."""
    name, joined, text = units[0].document_id, units[0].spans, units[0].text
    if len(units) > 1:
        document = documents[name]
        spans = [*joined]
        for unit in units[1:]:
            first, *others = unit.spans
            end = spans[-1].end
            has_tags = "<" in document.text[end : max(end, first.start)]
            if not has_tags or not is_html(document):
                first = Span(min(end, first.start), first.end)
            spans += [first, *others]
        joined = tuple(union(spans))
        text = text_of_spans(document.text, joined)
    return Retrieved(name, joined, score, text, tuple(units))


# ---- Units to passages


@dataclass(frozen=True, slots=True)
class Row:
    """Disjoint units by place, to make passages of.

    Attributes:
        units: with their scores.
        sizes: tokens of each unit.
        joined: of each unit, whether the next one is its neighbour; False of the last.
        goes_on: of each unit, whether a reader needs the next one, see `goes_on`.
        least: a unit with a lower score becomes no part of a passage.
    """

    units: Sequence[Retrieved]
    sizes: Sequence[int]
    joined: Sequence[bool]
    goes_on: Sequence[int]
    least: float = -math.inf


def passages_of(
    row: Row,
    budget: Budget,
    documents: Documents,
) -> list[Retrieved]:
    """The runs of neighbouring units that are worth most together, within a budget of tokens: passages, best first.

    At a threshold t, a run is worth the sum of its scores less t for each unit, less a price: a tenth of what the best
    unit is above t. The runs that are worth most together become passages, at the least t at which they come within
    the budget; what is left goes to the next best units that fit. Units that a reader needs together stay together, up
    to a share of the budget; a run of few tokens takes a neighbour. A passage has the score of its best unit; its
    `parts` are its units in reading order. Equal scores keep the units' order.

    If the best unit alone is over the budget, it is the only passage, cut at its last whole token within the budget;
    `match` is then "part", of the passage and its part. (If not one character fits, the next best unit is tried.)
    """
    scores = [unit.score for unit in row.units]
    order = [number for number, score in enumerate(scores) if score >= row.least]
    order.sort(key=lambda number: -scores[number])
    if order and row.sizes[order[0]] > budget.left:
        return first_cut([row.units[number] for number in order], budget)
    blocks = _Blocks(row, budget.left)
    runs = _Runs(row, budget, documents)
    for first, last in blocks.runs():
        runs.add(first, last)
    for first in list(runs.ends):
        if _REFERS.match(row.units[first].text.lstrip()) and row.joined[first - 1]:
            runs.add(*blocks.around[first - 1])
    for number in order:
        if number not in runs.begins and row.sizes[number] <= budget.left:
            runs.add(*blocks.around[number], blocks)
    if order and not runs.ends:
        runs.add(order[0], order[0])
    passages = []
    for first in dict.fromkeys(runs.begins[number] for number in order if number in runs.begins):
        units = row.units[first : runs.ends[first] + 1]
        best = max(unit.score for unit in units)
        passages.append(passage_of(units, best, documents))
    return passages


def in_order(passages: Iterable[Retrieved], order: Order) -> RankedList:
    """Passages, which are best first; "document": those of one document together, in its order.

    Raises `OptionError`: another order.
    """
    if order not in ("score", "document"):
        raise OptionError(f"order is score or document; got {echo(order)}")
    ranked = RankedList(passages)
    if order == "document":
        names = list(dict.fromkeys(passage.document_id for passage in ranked))
        ranked.sort(key=lambda passage: (names.index(passage.document_id), passage.spans))
    return ranked


class _Blocks:
    """The units that a reader needs together: a block has at most a share of the budget, or one unit.

    Attributes:
        ends: the first and the last unit of each block.
        around: the same of the block of each unit.
    """

    def __init__(self, row: Row, tokens: int) -> None:
        self._row = row
        self._scores = [unit.score for unit in row.units]
        self._sizes = [0, *accumulate(row.sizes)]  # the tokens before each unit, and of all
        self._tokens = tokens
        self.ends: list[Run] = []
        for unit in range(len(self._scores)):
            self.ends.append((unit, unit))
            if row.joined[unit - 1]:
                first = self.ends[-2][0]
                most = KEPT[row.goes_on[unit - 1]] * tokens
                if self._size(first, unit) <= most:
                    self.ends[-2:] = [(first, unit)]
        self.around: list[Run] = []
        for first, last in self.ends:
            self.around += [(first, last)] * (last + 1 - first)
        worths = [0.0, *accumulate(self._scores)]
        self._gains = [worths[last + 1] - worths[first] for first, last in self.ends]
        self._worths = worths

    def _size(self, first: int, last: int) -> int:
        return self._sizes[last + 1] - self._sizes[first]

    def wide(self, run: Run) -> Run:
        """A run with neighbouring blocks, the better first, until it is no crumb."""
        first, last = run
        while self._size(first, last) < min(CRUMB, self._tokens // 20):
            sides = []
            if self._row.joined[first - 1]:
                sides.append(self.around[first - 1])
            if self._row.joined[last]:
                sides.append(self.around[last + 1])
            if not sides:
                break
            low, high = max(sides, key=lambda side: max(self._scores[side[0] : side[1] + 1]))
            first, last = min(first, low), max(last, high)
        return first, last

    def runs(self) -> list[Run]:
        """The runs at the least threshold at which they come within the budget, best first."""
        top = max(self._scores, default=0.0)
        least = max(min(self._scores, default=0.0), self._row.least)
        low, high, threshold = least, top, least
        within: list[Run] = []
        for _ in range(_HALVINGS):
            runs = self._runs_at(threshold, PRICE * (top - threshold))
            if sum(self._size(*self.wide(run)) for run in runs) <= self._tokens:
                within, high = runs, threshold
                if threshold == least:
                    break
            else:
                low = threshold
            threshold = (low + high) / 2
        losses = []
        for first, last in within:
            worth = self._worths[last + 1] - self._worths[first] - high * (last + 1 - first)
            losses.append((PRICE * (top - high) - worth, first, last))
        return [self.wide((first, last)) for _, first, last in sorted(losses)]

    def _runs_at(self, threshold: float, price: float) -> list[Run]:
        """The disjoint runs of blocks that are worth most in all at a threshold, each for a price."""
        outside, inside = 0.0, -math.inf  # a dynamic programme over two states
        begins: list[int] = []  # of the best run that ends at each block
        closes: list[bool] = []  # whether the best of all up to a block ends with that run
        for number, (first, last) in enumerate(self.ends):
            if not self._row.joined[first - 1]:
                outside, inside = 0.0, -math.inf
            before, begin = outside - price, number
            if inside > before:
                before, begin = inside, begins[-1]
            begins.append(begin)
            inside = before + self._gains[number] - threshold * (last + 1 - first)
            closes.append(inside > outside)
            outside = max(outside, inside)
        runs = []
        number = len(closes) - 1
        while number >= 0:
            last = self.ends[number][1]
            if closes[number]:
                number = begins[number]
                runs.append((self.ends[number][0], last))
            number -= 1
        return runs


@dataclass(eq=False)
class _Runs:
    """The runs of neighbouring units that an answer has, whose tokens are taken from its budget.

    Attributes:
        begins: of each unit in a run, the run's first unit.
        ends: the last unit of each run, by its first.
        tokens: of each run, by its first unit.
    """

    row: Row
    budget: Budget
    documents: Documents
    begins: dict[int, int] = field(default_factory=dict)
    ends: dict[int, int] = field(default_factory=dict)
    tokens: dict[int, int] = field(default_factory=dict)

    def add(self, first: int, last: int, blocks: _Blocks | None = None) -> None:
        """Take these units, joined to the runs that they overlap or touch, if the budget holds them.

        `blocks`: if they touch none, take neighbouring blocks, too, until they are no crumb.
        """
        row, budget = self.row, self.budget
        low = first - 1 if row.joined[first - 1] else first
        high = last + 1 if row.joined[last] else last
        beside = {self.begins[unit] for unit in range(low, high + 1) if unit in self.begins}
        if blocks is not None and not beside:
            self.add(*blocks.wide((first, last)))
            return
        first = min([first, *beside])
        last = max([last, *(self.ends[begin] for begin in beside)])
        freed = sum(self.tokens[begin] for begin in beside)
        tokens = row.sizes[first]
        if first < last:
            passage = passage_of(row.units[first : last + 1], 0.0, self.documents)
            tokens = budget.counter.count(passage.text)
        if tokens > budget.left + freed:
            return
        for begin in beside:
            del self.ends[begin]
        budget.left += freed - tokens
        self.ends[first], self.tokens[first] = last, tokens
        self.begins |= dict.fromkeys(range(first, last + 1), first)


# ---- Tables


def header_tokens(
    row: Retrieved,
    header: Sequence[Span],
    budget: Budget,
    documents: Documents,
) -> int:
    """What to hold back of a budget for the header of the best row: none if it is too long, or comes with its table."""
    if not header:
        return 0
    text, start = documents[row.document_id].text, header[0].start
    if text.startswith("|", row.spans[0].start):
        rows = text[start : min(row.spans[-1].end, start + _LONGEST_HEADER)]
        if budget.counter.count(rows) <= KEPT[2] * budget.left:
            return 0
    tokens = budget.counter.count(text_of_spans(text, header) + "\n")
    return 0 if 2 * tokens >= budget.left else tokens


def with_table_headers(
    passages: Sequence[Retrieved],
    headers: Mapping[tuple[str, Span], tuple[Span, ...]],
    budget: Budget,
    documents: Documents,
) -> list[Retrieved]:
    """The passages; the first one with rows of a table has its header (by the rows' place), if the budget holds it."""
    held = [(passage.document_id, span) for passage in passages for span in passage.spans]
    whole = []
    for passage in passages:
        for part in passage.parts:
            header = headers.get((part.document_id, part.spans[0]))
            if header is None:
                continue
            spans = [span for name, span in held if name == part.document_id]
            if _is_shown(header, passage, spans):
                continue
            longer = with_spans(passage, union(header, passage.spans), documents)
            more = budget.counter.count(longer.text) - budget.counter.count(passage.text)
            if more <= budget.left:
                budget.left -= more
                held += [(part.document_id, span) for span in header]
                passage = longer
        whole.append(passage)
    return whole


def _is_shown(header: Sequence[Span], passage: Retrieved, spans: Iterable[Span]) -> bool:
    """Whether these spans hold a part of the header; the passage itself may begin with the header's second line."""
    start, end = header[0].start, header[-1].end
    over = [span for span in spans if span.start < end and start < span.end]
    return any(span.start <= start or span not in passage.spans for span in over)


def without_bare_headers(passages: Sequence[Retrieved], documents: Documents) -> list[Retrieved]:
    """The passages; one that ends in the header of a Markdown table ends before it, if no passage has a row of it."""
    whole = []
    for passage in passages:
        start, end = None, passage.spans[-1].end
        text = documents[passage.document_id].text
        if "|" in passage.text:
            start = _bare_header(text, passage.spans[-1])
        if start is None:
            whole.append(passage)
            continue
        name = passage.document_id
        rows = [other.spans[0].start for other in passages if other.document_id == name]
        if any(end <= row and "\n\n" not in text[start:row] for row in rows):
            whole.append(passage)
            continue
        kept = _before(passage, start, documents)
        if kept is not None:
            parts = [_before(part, start, documents) for part in passage.parts]
            whole.append(replace(kept, parts=tuple(filter(None, parts))))
    return whole or list(passages)  # an answer is not empty for a header's sake


def _bare_header(text: str, span: Span) -> int | None:
    """Where the header of a table begins in which a span ends; None if in no header.

    It goes on to the end of the first row, or to where more of the row than of the lines above is there.
    """
    last = line = span.start + len(text[span.start : span.end].rstrip()) - 1
    for _ in range(3):  # header, rule and row
        line = text.rfind("\n", 0, max(line, 0))
    first = max(line + 1, last - _LONGEST_HEADER)
    for header in _HEADER.finditer(text, first, last + _LONGEST_HEADER):
        row = header.group().rindex("\n") + 1
        end = min(2 * row, len(header.group().rstrip()) - 1)
        if header.start() <= last < header.start() + end:
            return header.start()
    return None


def _before(
    piece: Retrieved,
    end: int,
    documents: Documents,
) -> Retrieved | None:
    """What of a piece stands before a place of its document; None if that is white space alone."""
    spans = [span for span in piece.spans if span.start < end]
    if len(spans) == len(piece.spans) and spans[-1].end <= end:
        return piece
    if not spans:
        return None
    begin, stop = spans[-1].start, min(spans[-1].end, end)
    kept = documents[piece.document_id].text[begin:stop].rstrip()
    if not kept:
        return None
    spans[-1] = Span(begin, begin + len(kept))
    return with_spans(piece, spans, documents)
