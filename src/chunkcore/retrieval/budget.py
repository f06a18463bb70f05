"""`Budget`: the tokens that an answer may have. What is left, what fits, what is cut."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypeAlias

import numpy as np

from chunkcore.options import check_number
from chunkcore.spans import Numbers
from chunkcore.tokens import TokenCounter, get_counter

MAX_TOKENS = 1000
# "auto": what each question needs, of an index that `chunkcore.study.enough.calibrate` made.
MaxTokens: TypeAlias = int | Literal["auto"]


def check_limits(k: int | None, max_tokens: MaxTokens | None) -> None:
    """Raise `OptionError`: a limit is under 1, or no whole number."""
    for name, value in (("k", k), ("max_tokens", None if max_tokens == "auto" else max_tokens)):
        if value is not None:
            check_number(name, value, 1)


def fitting(sizes: Numbers, max_tokens: int) -> int:
    """How many of these sizes, from the first on, come within a limit.

    >>> fitting(np.array([3, 4, 1]), 7)
    2
    """
    return int(np.searchsorted(np.cumsum(sizes), max_tokens, side="right"))


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

    def __init__(self, max_tokens: int, counter: str | TokenCounter = "cl100k_base") -> None:
        check_limits(None, max_tokens)
        self.counter = get_counter(counter)
        self.left = max_tokens

    def total(self, texts: Iterable[str]) -> int:
        """The tokens of several texts."""
        return int(sum(self.counter.count_many(list(texts))))

    def fits(self, text: str) -> bool:
        return self.counter.count(text) <= self.left

    def cut(self, text: str) -> str:
        """The text, or the whole tokens of its beginning that fit, without white space after them; "" if none fits."""
        while text and not self.fits(
            text
        ):  # the beginning alone can have more tokens than in the whole text
            begins = self.counter.boundaries(text)
            text = text[: int(begins[min(self.left, len(begins) - 1)])].rstrip()
        return text

    def take(self, text: str) -> str:
        """What fits of the text (see `cut`), whose tokens are spent; after a cut, nothing is left."""
        kept = self.cut(text)
        if kept == text:
            self.left -= self.counter.count(text)
        else:
            self.left = 0
        return kept
