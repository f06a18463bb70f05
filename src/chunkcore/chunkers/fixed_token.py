"""`fixed_token`: windows of a fixed number of tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from chunkcore.chunkers.base import Chunker, strategies
from chunkcore.chunkers.overlap import SemanticOverlap, read_overlap, shareable
from chunkcore.errors import OptionError
from chunkcore.options import check_ranges
from chunkcore.packing import pack
from chunkcore.spans import Numbers
from chunkcore.tokens import TokenizedText


@strategies.register("fixed_token")
@dataclass(frozen=True, kw_only=True)
class FixedToken(Chunker):
    """Windows of `size` tokens, one every ``size - overlap`` tokens, of the document's own tokenization.

    Equals LangChain's TokenTextSplitter wherever that returns source text. The original decodes U+FFFD where a window
    cuts a character; here the character goes whole to the windows that hold its last token. Nothing is lost. A chunk
    that begins inside a word may count a few tokens more or less on its own.

    Attributes:
        size: tokens in a window, at least 1.
        overlap: tokens that neighbouring windows share, ``0 <= overlap < size``; or "semantic": at most half of `size`,
            back to where the topic changes (see `SemanticOverlap`), which needs a model.
        minimum: a last window of fewer tokens joins the one before it; ``0 <= minimum <= size``.
        counter: whose tokens.

    >>> FixedToken(size=3, overlap=1, counter="words").split_text("one two three four five six")
    ['one two three ', 'three four five ', 'five six']
    """

    tokens_only: ClassVar[bool] = True

    size: int = 200
    overlap: int | str | SemanticOverlap = 0
    minimum: int = 0

    def validate(self) -> None:
        if self.size < 1:
            raise OptionError(f"size is at least 1 token, got {self.size}")
        object.__setattr__(self, "overlap", read_overlap(self.overlap))
        if isinstance(self.overlap, int) and not 0 <= self.overlap < self.size:
            raise OptionError(
                f"overlap is at least 0 and less than size ({self.size}), else windows would not advance; "
                f"got {self.overlap}"
            )
        check_ranges(self, minimum=(0, "size"))

    def ranges(self, source: TokenizedText) -> list[tuple[int, int]]:
        rows: list[tuple[int, int]] = []
        overlap = shareable(self.overlap, source, self.size)
        first = np.searchsorted(source.boundaries, source.parts).tolist()
        for (start, end), (low, high) in zip(source.parts.tolist(), first, strict=True):
            if low < high:
                begins, ends = self._tokens(high - low, overlap(source.boundaries[low:high]))
                rows.extend(self._windows(source.boundaries[low:high], begins, ends, start, end))
            elif source.text[start:end].strip():
                # No token, but the text must not be lost.
                rows.append((start, end))
        return rows

    def _tokens(self, count: int, overlap: int | Numbers) -> tuple[Numbers, Numbers]:
        if isinstance(overlap, int):
            # The last window is the first that reaches the end of the text.
            begins = np.arange(0, max(1, count - overlap), self.size - overlap)
            ends = np.minimum(begins + self.size, count)
        else:
            begins, ends = np.array(pack(np.arange(count + 1), self.size, overlap)).T
        if len(begins) > 1 and ends[-1] - begins[-1] < self.minimum:
            # Only the last window holds less than `size`; it joins the one before.
            return begins[:-1], np.delete(ends, -2)
        return begins, ends

    def _windows(self, places: Numbers, begins: Numbers, ends: Numbers, start: int, end: int) -> list[tuple[int, int]]:
        edges = np.append(places, end)
        edges[0] = start
        rows = np.column_stack((edges[begins], edges[ends]))
        # Windows inside one character are empty or equal.
        new = np.append(True, (rows[1:] != rows[:-1]).any(axis=1))
        return list(map(tuple, rows[new & (rows[:, 0] < rows[:, 1])].tolist()))
