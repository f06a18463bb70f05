"""Texts in a reduced form, searched for a text in the same form."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

from chunkcore.evaluation.text_forms import Form
from chunkcore.evaluation.window_index import WindowIndex

__all__ = ["Searchable"]


class Searchable:
    """Texts, reduced when first searched; the index is built when a text is searched that is long enough for it.

    Args:
        texts: as they are.
        reduce: makes the form that is searched.
        window: see `WindowIndex`.
        stride: see `WindowIndex`.
    """

    def __init__(self, texts: Sequence[str], reduce: Callable[[str], Form], *, window: int, stride: int) -> None:
        self._originals = texts
        self._reduce = reduce
        self._window, self._stride = window, stride

    @cached_property
    def forms(self) -> list[Form]:
        return [self._reduce(text) for text in self._originals]

    @cached_property
    def texts(self) -> list[str]:
        return [form.text for form in self.forms]

    @cached_property
    def index(self) -> WindowIndex:
        return WindowIndex(self.texts, window=self._window, stride=self._stride)

    def places(self, text: str, number: int | None) -> Iterator[tuple[int, int]]:
        """Each text's number and each offset at which the reduced text stands in it, in order.

        Args:
            text: reduced, not empty.
            number: of the one text to search; None for all.
        """
        if len(text) >= self._window + self._stride - 1:
            for owner, start in self.index.candidates(text, number):
                if self.texts[owner].startswith(text, start):
                    yield owner, start
            return
        for owner in range(len(self.texts)) if number is None else [number]:
            start = self.texts[owner].find(text)
            while start >= 0:
                yield owner, start
                start = self.texts[owner].find(text, start + 1)
