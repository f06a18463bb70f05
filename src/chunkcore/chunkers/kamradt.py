"""`Kamradt`, and `KamradtModified`, which finds the threshold for a stated size."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from chunkcore.boundaries.sentences import sentence_ranges
from chunkcore.chunkers.base import strategies
from chunkcore.chunkers.breakpoint import Breakpoint, group_pieces
from chunkcore.chunkers.recursive import small_pieces
from chunkcore.chunkers.semantic import Floats, SentenceChunker, neighbour_distances, window_texts
from chunkcore.models.base import Vectors
from chunkcore.options import check_ranges
from chunkcore.spans import Ranges
from chunkcore.tokens import TokenizedText

_BLOCK_ROWS = 16


@strategies.register("kamradt")
@dataclass(frozen=True, kw_only=True)
class Kamradt(Breakpoint):
    """`Breakpoint` with Kamradt's defaults.

    Smith and Troynikov, "Evaluating Chunking Strategies for Retrieval" (Chroma, 2024), section
    "KamradtSemanticChunker": cuts over the 95th percentile of the text's distances, so about one sentence in twenty
    ends a chunk. Options and cost are those of `Breakpoint`.
    """


@strategies.register("kamradt_modified")
@dataclass(frozen=True, kw_only=True)
class KamradtModified(SentenceChunker):
    """Kamradt's chunker with the threshold that gives chunks of a stated size.

    Smith and Troynikov, "Evaluating Chunking Strategies for Retrieval" (Chroma, 2024), section
    "KamradtModifiedChunker": "a binary search over discontinuity thresholds such that the largest chunk is shorter than
    the specified length". One threshold serves the whole text: the greatest that leaves no chunk of several sentences
    over `size`. The most even passage decides, so chunks can be far smaller elsewhere. A single sentence over `size` is
    cut at words, else graphemes.

    The report's code differs from its text: ``goal="mean", piece_size=50, buffer=3``. It searches, to 1e-6 between 0
    and 1, the threshold whose number of cuts gives a *mean* size, and takes the last one tried, often one cut too many.
    Chunks then have no maximum.

    Attributes:
        size: of the largest chunk's own text, or the mean, in the counter's unit.
        goal: "maximum": no chunk is over `size`; "mean": `size` is the mean, without a maximum.
        minimum: a smaller chunk joins its nearer neighbour, where `size` allows; with ``goal="mean"`` always.
        piece_size: None for sentences; else the most tokens in a piece of the recursive splitter.
        buffer: sentences, or pieces, on each side of a window.

    Cost: one call of the model for the distinct windows; then O(n·d) time and memory for n sentences of d dimensions,
    and O(n log n) for the search.
    """

    size: int = 200
    minimum: int = 0
    goal: Literal["maximum", "mean"] = "maximum"
    piece_size: int | None = None
    buffer: int = 1

    def validate(self) -> None:
        super().validate()
        check_ranges(self, size=1, minimum=(0, "size"), piece_size=(1, "size"), buffer=0)

    @property
    def hard_maximum(self) -> int | None:
        return self.size if self.goal == "maximum" else None

    def ranges(self, source: TokenizedText) -> list[tuple[int, int]]:
        if self.piece_size is None:
            pieces = sentence_ranges(source.text, self.splitter)
        else:
            pieces = small_pieces(source, self.piece_size, size_of="pieces")
        distances = np.empty(0)
        if len(pieces) > 1:
            texts = [source.text[start:end] for start, end in pieces.tolist()]
            vectors = self._embed(window_texts(texts, self.buffer))
            distances = (neighbour_distances if self.goal == "maximum" else _float32_distances)(vectors)
        search = self._largest_within if self.goal == "maximum" else self._mean_about
        cuts = search(source, pieces, distances)
        return group_pieces(source, pieces, distances, cuts, minimum=self.minimum, maximum=self.hard_maximum)

    def _largest_within(self, source: TokenizedText, pieces: Ranges, distances: Floats) -> NDArray[np.bool_]:
        """The fewest cuts by one threshold that leave no chunk of several pieces over `size`."""

        def too_large(threshold: float) -> bool:
            cuts = np.flatnonzero(distances > threshold)
            firsts = np.concatenate(([0], cuts + 1))
            lasts = np.concatenate((cuts, [len(pieces) - 1]))
            several = firsts < lasts
            counts = source.counts(pieces[firsts[several], 0], pieces[lasts[several], 1])
            return bool((counts > self.size).any())

        # Only the distances change the cuts; below all of them each piece is a chunk.
        thresholds = [-np.inf, *np.unique(distances).tolist()]
        best = float(thresholds[max(0, bisect_left(thresholds, True, key=too_large) - 1)])
        return np.asarray(distances > best)

    def _mean_about(self, source: TokenizedText, pieces: Ranges, distances: Floats) -> NDArray[np.bool_]:
        """The cuts of the report's code, which takes the last threshold tried."""
        cuts = int(source.counts(pieces[:, 0], pieces[:, 1]).sum()) // self.size
        lower, upper, threshold = 0.0, 1.0, 0.5
        while upper - lower > 1e-6:
            threshold = (lower + upper) / 2
            if np.count_nonzero(distances > threshold) > cuts:
                lower = threshold
            else:
                upper = threshold
        return np.asarray(distances > threshold)


def _float32_distances(vectors: Vectors) -> Floats:
    """The digits of the report's code: BLAS gives them for a product of a few rows, a NumPy sum does not."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit = vectors / np.where(norms == 0, np.float32(1), norms)
    distances = np.empty(max(0, len(unit) - 1))
    for start in range(0, len(distances), _BLOCK_ROWS):
        rows = unit[start : start + _BLOCK_ROWS + 1]
        distances[start : start + _BLOCK_ROWS] = 1 - np.diagonal(rows @ rows.T, 1)
    return distances
