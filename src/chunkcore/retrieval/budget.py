"""The tokens of an answer: what is left of them, what fits, and where a unit is cut."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from chunkcore.options import check_number
from chunkcore.run import Retrieved
from chunkcore.spans import Numbers
from chunkcore.text import Span, offsets_within
from chunkcore.tokens import TokenCounter, get_counter


class CountedOnce(TokenCounter):
    """A counter that counts no text twice."""

    def __init__(self, counter: TokenCounter) -> None:
        self.counter, self.name = counter, counter.name
        self._known: dict[str, int] = {}

    def boundaries(self, text: str) -> Numbers:
        return self.counter.boundaries(text)

    def count(self, text: str) -> int:
        return int(self.count_many([text])[0])

    def count_many(self, texts: Sequence[str]) -> Numbers:
        new = list(dict.fromkeys(text for text in texts if text not in self._known))
        if new:
            self._known.update(zip(new, self.counter.count_each(new), strict=True))
        return np.array([self._known[text] for text in texts], np.int64)


class Budget:
    """Tokens that are left for an answer.

    Args:
        max_tokens: at least 1.
        counter: counts them.

    Raises `OptionError`: the limit is under 1, or there is no such counter.

    >>> budget = Budget(5, "words")
    >>> budget.take("A fox naps."), budget.left, budget.fits("Rain falls today.")
    ('A fox naps.', 2, False)
    >>> budget.take("Rain falls today."), budget.left
    ('Rain falls', 0)
    """

    def __init__(
        self,
        max_tokens: int,
        counter: str | TokenCounter,
    ) -> None:
        check_number("max_tokens", max_tokens, 1)
        self.counter = get_counter(counter)
        self.left = max_tokens

    def fits(self, text: str) -> bool:
        return self.counter.count(text) <= self.left

    def take(self, text: str) -> str:
        """What fits of the text, whose tokens are spent: all of it, or the whole tokens of its beginning, without white
        space after them. After a cut, nothing is left.
        """
        kept, size = text, self.counter.count(text)
        # The beginning alone can have more tokens than in the whole text.
        while kept and size > self.left:
            begins = self.counter.boundaries(kept)
            kept = kept[: int(begins[min(self.left, len(begins) - 1)])].rstrip()
            size = self.counter.count(kept)
        if kept == text:
            self.left -= size
        elif kept:
            self.left = 0
        return kept


def part_of(
    piece: Retrieved,
    start: int,
    end: int,
) -> Retrieved:
    """The piece of ``text[start:end]``, with its places in the document: all of them if the text is not the document's.

    >>> piece = Retrieved("fox.txt", (Span(4, 7), Span(20, 24)), 1.0, "fox naps")
    >>> part_of(piece, 4, 8).spans, part_of(piece, 1, 5).spans
    ((Span(start=20, end=24),), (Span(start=5, end=7), Span(start=20, end=21)))
    """
    spans = []
    offsets = offsets_within(piece.text, piece.spans) or []
    for begin, span in zip(offsets, piece.spans, strict=False):
        low, high = max(start, begin), min(end, begin + len(span))
        if low < high:
            spans.append(Span(span.start + low - begin, span.start + high - begin))
    kept = tuple(spans) or piece.spans
    return replace(piece, spans=kept, text=piece.text[start:end], parts=())


def cut_unit(unit: Retrieved, budget: Budget) -> list[Retrieved]:
    """A passage of one unit, cut at its last whole token within the budget; none if not one character fits."""
    text = budget.take(unit.text)
    if not text:
        return []
    part = replace(part_of(unit, 0, len(text)), match="part")
    return [replace(part, parts=(part,))]


def first_cut(units: Iterable[Retrieved], budget: Budget) -> list[Retrieved]:
    """A passage of the first of these units of which the budget holds a character, cut where it is full."""
    cuts = (cut_unit(unit, budget) for unit in units)
    return next(filter(None, cuts), [])
