"""`fixed_token` and `fixed_sentences`: chunks of a fixed number of tokens or sentences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from math import inf
from typing import Any, ClassVar, cast

import numpy as np

from chunkcore.boundaries.sentences import check_splitter, sentence_ranges
from chunkcore.chunkers.base import Chunker, chunkers
from chunkcore.chunkers.semantic import SemanticOverlap, check_overlap
from chunkcore.errors import OptionError
from chunkcore.options import Bounds
from chunkcore.packing import join_ranges
from chunkcore.spans import Numbers, Ranges, as_table
from chunkcore.tokens import TokenizedText


@chunkers.register("fixed_token")
@dataclass(frozen=True, kw_only=True)
class FixedToken(Chunker):
    """Windows of `size` tokens, one every ``size - overlap`` tokens, of the document's own tokenization.

    Equals LangChain's TokenTextSplitter wherever that returns source text. The original decodes U+FFFD where a window
    cuts a character; here the character goes whole to the windows that hold its last token. Nothing is lost. A chunk
    that begins inside a word may count a few tokens more or less on its own.

    Attributes:
        size: tokens in a window, at least 1.
        overlap: tokens that neighbouring windows share, ``0 <= overlap < size``.
        minimum: a last window of fewer tokens joins the one before it; ``0 <= minimum <= size``.
        counter: the tokenizer.

    >>> FixedToken(size=3, overlap=1, counter="words").split_text("one two three four five six")
    ['one two three ', 'three four five ', 'five six']
    """

    tokens_only: ClassVar[bool] = True

    size: int = 200
    overlap: int = 0
    minimum: int = 0
    bounds: ClassVar[Bounds] = {"size": 1, "minimum": (0, "size")}

    def validate(self) -> None:
        if not 0 <= self.overlap < self.size:
            raise OptionError(
                f"overlap is at least 0 and less than size ({self.size}), got {self.overlap}"
            )

    def cut(self, source: TokenizedText) -> Ranges:
        rows = [as_table([])]
        first = np.searchsorted(source.boundaries, source.parts).tolist()
        for (start, end), (low, high) in zip(source.parts.tolist(), first, strict=True):
            if low < high:
                rows.append(self._windows(source.boundaries[low:high], start, end))
            elif source.text[start:end].strip():
                # No token, but the text must not be lost.
                rows.append(as_table([(start, end)]))
        return np.concatenate(rows)

    def _windows(self, places: Numbers, start: int, end: int) -> Ranges:
        # The last window is the first that reaches the end of the text.
        begins = np.arange(0, max(1, len(places) - self.overlap), self.size - self.overlap)
        ends = np.minimum(begins + self.size, len(places))
        if len(begins) > 1 and ends[-1] - begins[-1] < self.minimum:
            # Only the last window holds less than `size`; it joins the one before.
            begins, ends = begins[:-1], np.delete(ends, -2)
        edges = np.append(places, end)
        edges[0] = start
        rows = np.column_stack((edges[begins], edges[ends]))
        # Windows inside one character are empty or equal.
        new = np.append(True, (rows[1:] != rows[:-1]).any(axis=1))
        windows: Ranges = rows[new & (rows[:, 0] < rows[:, 1])]
        return windows


@chunkers.register("fixed_sentences")
@dataclass(frozen=True, kw_only=True)
class FixedSentences(Chunker):
    """The Fixed-size Chunker of Qu et al. (2024): consecutive chunks of N sentences.

    Every chunk but the last has `sentences` new sentences; each after the first begins with the last `overlap`
    sentences before them. Linear time, apart from a semantic overlap.

    Attributes:
        sentences: new sentences in a chunk, at least 1.
        chunks: chunks in a document, at least 1, instead of `sentences`: of equal numbers of sentences, or the first
            ones one longer. A document of fewer sentences has a chunk for each.
        overlap: sentences that a chunk repeats, at least 0 and, without `chunks`, at most `sentences`; or "semantic":
            at most half of a chunk, back to where the topic changes (see `SemanticOverlap`), which needs a model.
        minimum: a chunk that counts less, in the counter's unit, joins the neighbour across less white space; 0 for
            none.
        splitter: "default", "spacy", "spacy:<pipeline>", "regex:<pattern>", or a callable with a `name`: see
            `sentence_ranges`.

    >>> FixedSentences(sentences=2, overlap=1).split_text("One. Two. Three. Four.")
    ['One. Two.', 'Two. Three. Four.']
    """

    sentences: int = 5
    chunks: int | None = None
    overlap: int | str | SemanticOverlap = 0
    minimum: int = 0
    splitter: str | Callable[[str], Any] = "default"
    bounds: ClassVar[Bounds] = {"sentences": 1, "chunks": 1, "minimum": 0}

    def validate(self) -> None:
        check_splitter(self.splitter, named=True)
        check_overlap(self, self.sentences if self.chunks is None else inf)

    def cut(self, source: TokenizedText) -> Ranges:
        rows = sentence_ranges(source.text, self.splitter).tolist()
        edges = self._edges(len(rows))
        reach = self._reach(source, rows, edges)
        chunks: list[tuple[int, int]] = []
        begin = -1
        for reached, end in zip(reach, edges[1:], strict=True):
            begin = max(begin + 1, reached)
            chunks.append((rows[begin][0], rows[end - 1][1]))
        return join_ranges(source, chunks, self.minimum)

    def _reach(self, source: TokenizedText, rows: list[list[int]], edges: list[int]) -> list[int]:
        """For each chunk, the first sentence that it may repeat."""
        if isinstance(self.overlap, int):
            return [max(0, first - self.overlap) for first in edges[:-1]]
        if not rows:
            return []
        overlap = cast("SemanticOverlap", self.overlap)
        topics = overlap.topics([source.text[start:end] for start, end in rows])
        reach = [0]
        for before, edge in pairwise(edges[:-1]):
            half = (edge - before) // 2
            reach.append(max(topics[edge], edge - half))
        return reach

    def _edges(self, total: int) -> list[int]:
        """The first new sentence of each chunk, then the number of sentences."""
        if not total:
            return [0]
        if self.chunks is None:
            return [*range(0, total, self.sentences), total]
        count = min(self.chunks, total)
        least, more = divmod(total, count)
        return [number * least + min(number, more) for number in range(count + 1)]
