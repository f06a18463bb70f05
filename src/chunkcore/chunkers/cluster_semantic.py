"""`ClusterSemantic`: the segmentation with the most similar pieces in each chunk, by dynamic programming."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from operator import add
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from chunkcore.chunkers.base import Chunker, chunkers
from chunkcore.chunkers.recursive import PROSE_SEPARATORS, Recursive
from chunkcore.chunkers.semantic import check_embedder, neighbour_distances
from chunkcore.errors import OptionError
from chunkcore.models.base import Embedder, Vectors, embed, unit_rows
from chunkcore.models.loading import DEFAULT_MODEL, get_embedder
from chunkcore.options import Bounds
from chunkcore.packing import join_ranges
from chunkcore.spans import Ranges
from chunkcore.tokens import TokenizedText

BLOCK_ROWS = 512  # fit the processor's cache in float64
_TIE = 1e-9  # smaller differences come from the order of the terms


@chunkers.register("cluster_semantic")
@dataclass(frozen=True, kw_only=True)
class ClusterSemantic(Chunker):
    """Chunks that maximise the similarity of the pieces inside them, over the whole text.

    The Chroma report (Smith and Troynikov, 2024), section "ClusterSemanticChunker". The recursive splitter cuts pieces
    of at most `piece_size` tokens. Each pair of pieces in a chunk scores its cosine similarity minus the mean over all
    pairs. The segmentation with the greatest sum wins, with at most ``size // piece_size`` pieces a chunk; ties prefer
    longer chunks at the end.

    As in the report's code, the maximum counts pieces: a chunk's own text can be slightly over `size`. One fault is
    corrected: that code joins all pieces up to the first pair above the mean. Appended text can move any boundary,
    because the mean is of the whole text; a fixed `mean` keeps nearly all of them.

    Attributes:
        size: the greatest size of a chunk, in the counter's unit, as a number of pieces.
        piece_size: the greatest size of a piece, in the counter's unit.
        embedder: the name of a model, as `get_embedder` knows them, or an `Embedder`. Loaded when first used.
        separators: where pieces may be cut, first choice first; kept at the start of the piece after them.
        size_of: "pieces": `size` counts pieces; "text": no chunk's own text is over it either.
        minimum: a smaller chunk joins the neighbour nearer by distance, else the other one, if both fit into `size`.
        mean: the similarity from which pieces gain by being together, -1 to 1; None for the mean of each text.

    Cost: one call of the model for the distinct pieces; then O(n·w·d) time and O(n·d) memory for n pieces, w pieces a
    chunk and d dimensions.
    """

    bounded: ClassVar[bool] = True

    size: int = 200
    piece_size: int = 50
    embedder: Embedder | str = DEFAULT_MODEL
    separators: tuple[str, ...] = PROSE_SEPARATORS
    size_of: Literal["pieces", "text"] = "pieces"
    mean: float | None = None
    minimum: int = 0
    bounds: ClassVar[Bounds] = {"piece_size": (1, "size"), "minimum": (0, "size")}

    def validate(self) -> None:
        check_embedder(self.embedder)
        if self.mean is not None and not -1 <= self.mean <= 1:
            raise OptionError(f"mean is -1 to 1, or null for that of each text; got {self.mean}")
        _ = self._splitter  # which checks the separators

    @cached_property
    def _splitter(self) -> Recursive:
        return Recursive(
            size=self.piece_size,
            size_of=self.size_of,
            separators=self.separators,
            counter=self.counter,
        )

    def cut(self, source: TokenizedText) -> Ranges:
        pieces = self._splitter.cut(source)
        if len(pieces) < 2:
            return pieces
        texts = source.slices(pieces)
        vectors = embed(get_embedder(self.embedder), texts)
        most = min(self.size // self.piece_size, len(pieces))
        fits = None if self.size_of == "pieces" else self._fitting(source, pieces, most)
        sizes = optimal_segmentation(vectors, most, mean=self.mean, fits=fits)
        lasts = np.cumsum(sizes) - 1
        rows = np.column_stack((pieces[lasts - sizes + 1, 0], pieces[lasts, 1]))
        if not self.minimum:
            return rows
        distances = neighbour_distances(vectors)[lasts[:-1]]
        return join_ranges(source, rows, self.minimum, self.size, [0.0, *distances.tolist()])

    def _fitting(self, source: TokenizedText, pieces: Ranges, most: int) -> NDArray[np.bool_]:
        """For each piece: whether the last 1, 2, … `most` pieces up to it are within `size`."""
        fits = np.zeros((len(pieces), most), dtype=np.bool_)
        for before in range(most):
            counts = source.counts(pieces[: len(pieces) - before, 0], pieces[before:, 1])
            fits[before:, before] = counts <= self.size
        return fits


def mean_pair_similarity(vectors: Vectors) -> float:
    """The mean cosine similarity over all pairs of different rows, in O(n·d); 0 without a pair.

    |Σu|² is the sum over all pairs (i, j) of unit vectors, each i = j adding 1.

    >>> round(mean_pair_similarity(np.array([[2, 0], [1, 0], [0, 3]], dtype=np.float32)), 6)
    0.333333
    """
    count = len(vectors)
    if count < 2:
        return 0.0
    total, nonzero = np.zeros(vectors.shape[1]), 0
    for start in range(0, count, BLOCK_ROWS):
        wide = vectors[start : start + BLOCK_ROWS].astype(np.float64)
        norms = np.sqrt(np.einsum("ij,ij->i", wide, wide))
        norms[norms == 0] = 1.0
        total += (1.0 / norms) @ wide
        nonzero += int(wide.any(axis=1).sum())
    return (float(total @ total) - nonzero) / (count * (count - 1))


def optimal_segmentation(
    vectors: Vectors,
    max_pieces: int,
    *,
    mean: float | None = None,
    fits: NDArray[np.bool_] | None = None,
) -> NDArray[np.int64]:
    """Sizes of chunks, int64, with the greatest sum of centred cosine similarities inside the chunks.

    Sums within 1e-9 tie; the longer last chunk wins. O(n·w·d) time and O(n·d) memory.

    Args:
        vectors: shape (n, d), of any length. A zero row is similar to none.
        max_pieces: the most rows in a chunk.
        mean: subtracted from each similarity; None for the mean over all pairs.
        fits: shape (n, min(max_pieces, n)): whether a chunk may end at a row with 1, 2, … rows. None: all may.

    >>> optimal_segmentation(np.array([[1, 0], [1, 0], [0, 1], [0, 1]], dtype=np.float32), 3).tolist()
    [2, 2]
    """
    count = len(vectors)
    width = max(1, min(max_pieces, count))
    sizes: list[int] = []
    # best[s - 1]: the best sum of the pieces before a chunk of s pieces, less one number for a whole block of rows,
    # so that sums stay small on long texts. Plain lists: for some eight pieces a chunk they are faster than arrays.
    best = [0.0] + [-np.inf] * (width - 1)
    centre = mean_pair_similarity(vectors) if mean is None else mean
    for sums in _window_sums(vectors, width, centre):
        if fits is not None:
            sums[~fits[len(sizes) : len(sizes) + len(sums)]] = -np.inf
        for row in sums:
            values = list(map(add, best, row.tolist()))
            least = max(values) - _TIE
            size = width
            while values[size - 1] < least:
                size -= 1
            sizes.append(size)
            best.insert(0, values[size - 1])
            best.pop()
        best = [value - best[0] for value in best]
    edges: list[int] = []
    while count > 0:  # back from the best last chunk
        edges.append(sizes[count - 1])
        count -= edges[-1]
    return np.array(edges[::-1], dtype=np.int64)


def _window_sums(vectors: Vectors, width: int, mean: float) -> Iterator[NDArray[np.float64]]:
    """Sums over pairs of rows in windows ending at row i; column s - 1 is the window of s rows.

    ``sum(i, s) = sum(i - 1, s - 1) + Σ_t<s (u_i·u_(i-t) - mean)``
    """
    rows = min(BLOCK_ROWS, max(256, 2**22 // width))
    before = np.zeros((1, width))
    for start in range(0, len(vectors), rows):
        band = _backward_products(vectors, start, min(start + rows, len(vectors)), width - 1)
        gains = np.cumsum(band - mean, axis=1)
        sums = np.zeros((len(band), width))
        for column in range(1, width):
            sums[0, column] = before[0, column - 1]
            sums[1:, column] = sums[:-1, column - 1]
            sums[:, column] += gains[:, column - 1]
        before = sums[-1:].copy()
        yield sums


def _backward_products(vectors: Vectors, start: int, end: int, reach: int) -> NDArray[np.float64]:
    """Cosines of rows `start` … `end` - 1 to each of the `reach` rows before them; 0 before the first."""
    if not reach:
        return np.zeros((end - start, 0))
    # Groups of rows, each multiplied with the rows up to `reach` before it: with a long reach at most half of a product
    # is wasted.
    step = max(16, min(reach, 256))
    groups = -(-(end - start) // step)
    unit = np.zeros((reach + groups * step, vectors.shape[1]))
    first = max(0, start - reach)
    unit[reach - (start - first) : reach + end - start] = unit_rows(vectors[first:end])
    windows = np.lib.stride_tricks.sliding_window_view(unit, reach + step, axis=0)[::step]
    products = unit[reach:].reshape(groups, step, -1) @ windows
    # A group's row r is column r + reach; its predecessors are to the left of it, the nearest first.
    columns = np.arange(step)[:, None] + np.arange(reach - 1, -1, -1)
    backward: NDArray[np.float64] = np.take_along_axis(products, columns[None], axis=2)
    return backward.reshape(-1, reach)[: end - start]
