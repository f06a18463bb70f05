"""`DualSemantic`: a sentence joins a chunk while it is similar to every sentence in it."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Literal

import numpy as np

from chunkcore.boundaries.sentences import sentence_ranges
from chunkcore.chunkers.base import strategies
from chunkcore.chunkers.semantic import Floats, SentenceChunker, unit_rows
from chunkcore.errors import OptionError
from chunkcore.options import check_ranges
from chunkcore.packing import join_ranges, split_ranges_to_maximum
from chunkcore.spans import Ranges
from chunkcore.tokens import TokenizedText

# Smaller excesses over the threshold are rounding.
_TIE = 1e-12


@strategies.register("dual_semantic")
@dataclass(frozen=True, kw_only=True)
class DualSemantic(SentenceChunker):
    """Chunks whose sentences are all similar to each other, by a threshold from the text itself.

    The Dual Semantic Chunker of Toresan et al., section 3. Each sentence is a block. The threshold is θ = mean + k · σ
    of the cosine similarities of blocks at most `d` apart (equations 1 and 2). Blocks are taken in order (section 3.3,
    figure 3):

    1. a block that finds the chunk under `minimum` joins it, even over `size`;
    2. a block that would take the chunk over `size` begins the next chunk;
    3. else it joins if its similarity to *every* block in the chunk is over θ (equation 3), or begins the next. The one
       similarity of two blocks is θ, which is not over it: two blocks are two chunks.

    With ``size_of="text"`` no chunk's own text is over `size`: step 2 comes first, and a chunk still under `minimum`
    joins the one before, if `size` allows. Equation 1 prints ``i < j < min(i + d, N - 1)``; here
    ``i < j <= min(i + d, N - 1)``, as the text says. Equation 2 prints √σ, and the paper's code uses σ, as here.

    Attributes:
        k: standard deviations over the mean; the paper's 3 leaves most sentences alone.
        d: how far apart, in blocks, the pairs are that make the threshold.
        minimum: the least size of a chunk, in the counter's unit.
        size: the greatest size of a chunk, in the counter's unit.
        size_of: "text": no chunk's own text is over `size`; "pieces": sizes are sums over the sentences, as in the
            paper's code. A sentence over `size` is cut at words, else graphemes, or with "pieces" is a chunk.
        splitter: see `SentenceChunker`; the paper uses spaCy.

    Cost: one call of the model for the distinct blocks; then O(n·(d + w)·D) time and O(n·D) memory for n blocks of D
    dimensions and w blocks in a chunk.
    """

    k: float = 3.0
    d: int = 10
    minimum: int = 0
    size: int = 200
    size_of: Literal["pieces", "text"] = "pieces"

    def validate(self) -> None:
        super().validate()
        check_ranges(self, d=1, minimum=0)
        if self.size < max(1, self.minimum):
            raise OptionError(f"size is at least 1 and minimum ({self.minimum}), got {self.size}")

    @property
    def hard_maximum(self) -> int | None:
        return self.size if self.size_of == "text" else None

    def ranges(self, source: TokenizedText) -> list[tuple[int, int]]:
        blocks = sentence_ranges(source.text, self.splitter)
        if self.size_of == "text":
            blocks = split_ranges_to_maximum(source, blocks, self.size)
        if len(blocks) < 2:
            return [(start, end) for start, end in blocks.tolist()]
        unit = unit_rows(self._embed([source.text[start:end] for start, end in blocks.tolist()]))
        firsts = self._firsts(source, blocks, unit)
        lasts = [*(first - 1 for first in firsts[1:]), len(blocks) - 1]
        rows = [(int(blocks[first, 0]), int(blocks[last, 1])) for first, last in zip(firsts, lasts, strict=True)]
        return join_ranges(source, rows, self.minimum, self.size) if self.size_of == "text" else rows

    def _threshold(self, unit: Floats) -> float:
        """Equation 2."""
        mean, deviation = band_statistics(unit, self.d)
        return mean + self.k * deviation

    def _firsts(self, source: TokenizedText, blocks: Ranges, unit: Floats) -> list[int]:
        """The first block of each chunk: section 3.3."""
        threshold = self._threshold(unit)
        sizes = source.counts(blocks[:, 0], blocks[:, 1]).tolist()
        bounds = blocks.tolist()
        firsts, first, size = [0], 0, sizes[0]
        for block in range(1, len(bounds)):
            if self.size_of == "pieces":
                joined = size + sizes[block]
            else:
                joined = source.count(bounds[first][0], bounds[block][1])
            fits = joined <= self.size
            small = size < self.minimum and (fits or self.size_of == "pieces")
            if small or (fits and bool((unit[first:block] @ unit[block] > threshold + _TIE).all())):
                size = joined
            else:
                firsts.append(block)
                first, size = block, sizes[block]
        return firsts


def band_statistics(unit: Floats, reach: int) -> tuple[float, float]:
    """Mean and standard deviation of the dot products of rows at most `reach` apart; O(n·reach·D) time.

    Moments are added one distance at a time (Chan, Golub and LeVeque, 1979), which loses no digits. 0 and 0 without
    pairs.

    >>> band_statistics(np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), 1)
    (0.5, 0.5)
    """
    count, mean, squares = 0, 0.0, 0.0
    for apart in range(1, min(reach, len(unit) - 1) + 1):
        products = np.einsum("ij,ij->i", unit[:-apart], unit[apart:])
        more, difference = len(products), float(products.mean()) - mean
        total = count + more
        squares += float(((products - products.mean()) ** 2).sum()) + difference**2 * count * more / total
        mean += difference * more / total
        count = total
    return mean, sqrt(squares / count) if count else 0.0
