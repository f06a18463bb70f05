"""`ClusterSemantic`: the segmentation whose chunks hold the most similar pieces, by dynamic programming."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from operator import add
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from chunkcore.chunkers.base import Chunker, strategies
from chunkcore.chunkers.recursive import Recursive
from chunkcore.chunkers.semantic import neighbour_distances
from chunkcore.document import Document, Span
from chunkcore.errors import DataError, OptionError
from chunkcore.models.base import Embedder, Vectors, embed
from chunkcore.models.loading import DEFAULT_MODEL, get_embedder
from chunkcore.packing import join_ranges
from chunkcore.spans import Ranges
from chunkcore.tokens import TokenizedText

__all__ = ["ClusterSemantic", "mean_pair_similarity", "optimal_segmentation"]

_SEPARATORS = ("\n\n", "\n", ".", "?", "!", " ", "")
_BLOCK_ROWS = 512  # in float64 they stay in the processor's cache
# Sums that differ by less are equal but for the order of their terms.
_TIE = 1e-9


@strategies.register("cluster_semantic")
@dataclass(frozen=True, kw_only=True)
class ClusterSemantic(Chunker):
    """Chunks that maximise the similarity of the pieces inside them, over the whole text.

    Smith and Troynikov, "Evaluating Chunking Strategies for Retrieval" (Chroma, 2024), section
    "ClusterSemanticChunker". The text is cut into pieces of at most `piece_size` tokens by the recursive
    splitter. Each pair of pieces in a chunk counts with its cosine similarity less the mean over all pairs
    of the text, and of all segmentations into chunks of at most ``max_size // piece_size`` pieces that with
    the greatest sum is taken; of equal ones, that with the longer chunks at the end. It is the report's
    objective, and as in the report's code the maximum is one of *pieces*: a chunk's own tokens can be
    somewhat over `max_size`, by the white space between its pieces and by tokens that break otherwise when
    pieces are joined.

    White space between pieces stays in the chunk when both sides do, and is dropped between chunks.
    The report's code has a fault that this has not: where no pair near the start of a text is above the
    mean, it joins all pieces up to the first such pair, maximum or not.

    The mean is of the whole text, so that text which is appended can move any boundary: a limit that the
    report names. With a `mean` that is given (see `freeze_mean`) the chunks of a longer text are, up to a cut
    in the last ``max_size // piece_size`` pieces of the shorter one (its last piece aside, which can grow),
    those of the text up to that cut. So the boundaries stay that the shorter text's segmentations up to each
    of those pieces have in common. That is nearly always all but the last few, yet no number of chunks is
    promised: where segmentations are almost equally good, a change at the end can turn the choice far back.

    Attributes:
        max_size: of a chunk, in the counter's unit, as a number of pieces.
        piece_size: of a piece, in the counter's unit.
        embedder: the name of a model, as `get_embedder` knows them, or an `Embedder`. Loaded when first used.
        separators: where pieces may be cut, first choice first; kept at the start of what follows them.
        maximum: "pieces", as told above, or "text": no chunk's own text is over `max_size` either.
        min_size: a chunk whose own text counts less joins the neighbour that is nearer by distance, or the other one,
            where the two are not over `max_size`; else it stays.
        mean: the similarity from which on pieces gain by being together, -1 to 1; None for the mean of each text.

    Cost: one call of the model for a text's distinct pieces; then O(n·w·d) time and O(n·d) memory for n
    pieces, w pieces a chunk and d dimensions.

    Raises:
        OptionError: piece_size is under 1 or over max_size; the embedder is neither a name nor an `Embedder`; the
            mean is no cosine similarity.
        SizeError: with ``maximum="text"``, one grapheme is over `piece_size`.
        ModelError: the model failed, or answered with something that is no answer, twice.
    """

    max_size: int = 400
    piece_size: int = 50
    embedder: Embedder | str = DEFAULT_MODEL
    separators: tuple[str, ...] = _SEPARATORS
    maximum: Literal["pieces", "text"] = "pieces"
    mean: float | None = None
    min_size: int = 0

    def validate(self) -> None:
        if not 1 <= self.piece_size <= self.max_size:
            raise OptionError(f"piece_size is at least 1 and at most max_size ({self.max_size}), got {self.piece_size}")
        if not 0 <= self.min_size <= self.max_size:
            raise OptionError(f"min_size is at least 0 and at most max_size ({self.max_size}), got {self.min_size}")
        if isinstance(self.embedder, str) and not self.embedder.strip():
            raise OptionError("embedder is the name of a model, got an empty one")
        if self.mean is not None and not -1 <= self.mean <= 1:
            raise OptionError(f"mean is -1 to 1, or null for that of each text; got {self.mean}")
        _ = self._splitter  # which checks the separators

    @property
    def hard_maximum(self) -> int | None:
        return self.max_size if self.maximum == "text" else None

    @cached_property
    def _splitter(self) -> Recursive:
        return Recursive(
            size=self.piece_size,
            overlap=0,
            separators=self.separators,
            keep="start",
            strip=True,
            maximum=self.maximum,
            counter=self.counter,
        )

    @cached_property
    def fingerprint(self) -> str:
        """16 hexadecimal digits that change when anything changes that changes the chunks, the model included."""
        if isinstance(self.embedder, str):
            return replace(self, embedder=get_embedder(self.embedder)).fingerprint
        return super().fingerprint

    def freeze_mean(self, documents: Iterable[Document]) -> ClusterSemantic:
        """The same chunker with its `mean` set to that over all pairs of pieces of one document, in all the documents.

        Each document's pieces are embedded in one call; memory holds one document's vectors.

        Raises:
            DataError: not a `Document`, or none has two pieces.
            ModelError: the model failed, or answered with something that is no answer, twice.
        """
        total, pairs = 0.0, 0
        for document in documents:
            texts = [piece.text for piece in self._splitter.chunk(document)]
            more = len(texts) * (len(texts) - 1)
            if more:
                total += mean_pair_similarity(embed(get_embedder(self.embedder), texts)) * more
                pairs += more
        if not pairs:
            raise DataError("no document has two pieces whose similarity could be taken; give longer documents")
        return replace(self, mean=min(1.0, max(-1.0, total / pairs)))

    def split(self, source: TokenizedText) -> list[tuple[Span, ...]]:
        found = self._splitter.ranges(source)
        pieces = np.array(found, dtype=np.int64).reshape(-1, 2)
        distances = np.empty(0)
        if len(pieces) > 1:
            vectors = embed(get_embedder(self.embedder), [source.text[start:end] for start, end in found])
            most = min(self.max_size // self.piece_size, len(pieces))
            fits = None if self.maximum == "pieces" else self._fitting(source, pieces, most)
            lasts = np.cumsum(optimal_segmentation(vectors, most, mean=self.mean, fits=fits)) - 1
            firsts = np.concatenate(([0], lasts[:-1] + 1))
            pieces = np.column_stack((pieces[firsts, 0], pieces[lasts, 1]))
            if self.min_size:
                distances = neighbour_distances(vectors)[lasts[:-1]]
        rows = [(start, end) for start, end in pieces.tolist()]
        joined = join_ranges(source, rows, self.min_size, self.max_size, [0.0, *distances.tolist()])
        return [(Span(start, end),) for start, end in joined]

    def _fitting(self, source: TokenizedText, pieces: Ranges, most: int) -> NDArray[np.bool_]:
        """Whether the last 1, 2, … `most` pieces up to each are at most `max_size` on their own."""
        fits = np.zeros((len(pieces), most), dtype=np.bool_)
        for before in range(most):
            counts = source.counts(pieces[: len(pieces) - before, 0], pieces[before:, 1])
            fits[before:, before] = counts <= self.max_size
        return fits


def mean_pair_similarity(vectors: Vectors) -> float:
    """The mean cosine similarity over all pairs of different rows, in O(n·d); 0 where there is no pair.

    |Σu|² is the sum over all pairs (i, j) of unit vectors, of which those with i = j give 1 each.

    >>> round(mean_pair_similarity(np.array([[2, 0], [1, 0], [0, 3]], dtype=np.float32)), 6)
    0.333333
    """
    count = len(vectors)
    if count < 2:
        return 0.0
    total, own = np.zeros(vectors.shape[1]), 0
    for start in range(0, count, _BLOCK_ROWS):
        wide, norms = _with_norms(vectors[start : start + _BLOCK_ROWS])
        total += (1.0 / norms) @ wide
        own += int(wide.any(axis=1).sum())
    return (float(total @ total) - own) / (count * (count - 1))


def optimal_segmentation(
    vectors: Vectors,
    max_pieces: int,
    *,
    mean: float | None = None,
    fits: NDArray[np.bool_] | None = None,
    block_rows: int = _BLOCK_ROWS,
) -> NDArray[np.int64]:
    """Into how many rows at a time to cut, for the greatest sum of centred cosine similarities inside.

    Args:
        vectors: one row a piece, shape (n, d); need not be of length 1. A row of zeros is similar to none.
        max_pieces: the most rows that may go together.
        mean: what each similarity counts less; None for the mean over all pairs.
        fits: shape (n, min(max_pieces, n)): whether a chunk may end with a row and be of 1, 2, … rows; one of
            a single row always may. None: all may.
        block_rows: how many rows are worked on at once; for large `max_pieces` as few as 256. It does not
            change the answer.

    Returns:
        Sizes in order, int64, summing to n.

    Of sums within 1e-9 of each other the longer last chunk is taken. Time O(n·w·d) and memory O(n·d).

    >>> optimal_segmentation(np.array([[1, 0], [1, 0], [0, 1], [0, 1]], dtype=np.float32), 3).tolist()
    [2, 2]
    """
    count = len(vectors)
    width = max(1, min(max_pieces, count))
    sizes: list[int] = []
    # best[s - 1]: the best sum of what precedes a chunk of s pieces, less one number for a whole block of rows,
    # so that sums stay small on long texts. Plain lists: at some eight pieces a chunk they are faster than arrays.
    best = [0.0] + [-np.inf] * (width - 1)
    centre = mean_pair_similarity(vectors) if mean is None else mean
    for sums in _window_sums(vectors, width, centre, block_rows):
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
        best = [each - best[0] for each in best]
    return _walk_back(sizes)


def _walk_back(sizes: list[int]) -> NDArray[np.int64]:
    """The chunks' sizes from the best last chunk at each end."""
    found: list[int] = []
    end = len(sizes)
    while end > 0:
        found.append(sizes[end - 1])
        end -= found[-1]
    return np.array(found[::-1], dtype=np.int64)


def _window_sums(vectors: Vectors, width: int, mean: float, block_rows: int) -> Iterator[NDArray[np.float64]]:
    """For each row i, in blocks: the sums over pairs of rows inside the windows that end at i.

    Column s - 1 is the window of s rows, and ``sum(i, s) = sum(i - 1, s - 1) + Σ_t<s (u_i·u_(i-t) - mean)``.
    Windows that begin before the first row have sums too; nothing leads to them.
    """
    rows = min(block_rows, max(256, 2**22 // width))
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
    """Cosine similarities of rows `start` … `end` - 1 to each of the `reach` rows before them; 0 before the first."""
    if not reach:
        return np.zeros((end - start, 0))
    # Groups of rows, each times those up to `reach` before its first: at most half of a product is not asked
    # for where the reach is long.
    step = max(16, min(reach, 256))
    groups = -(-(end - start) // step)
    unit = np.zeros((reach + groups * step, vectors.shape[1]))
    first = max(0, start - reach)
    unit[reach - (start - first) : reach + end - start] = _unit(vectors[first:end])
    windows = np.lib.stride_tricks.sliding_window_view(unit, reach + step, axis=0)[::step]
    products = unit[reach:].reshape(groups, step, -1) @ windows
    # A group's row r is column r + reach; its predecessors stand to the left of it, the nearest first.
    columns = np.arange(step)[:, None] + np.arange(reach - 1, -1, -1)
    found: NDArray[np.float64] = np.take_along_axis(products, columns[None], axis=2)
    return found.reshape(-1, reach)[: end - start]


def _unit(rows: Vectors) -> NDArray[np.float64]:
    wide, norms = _with_norms(rows)
    wide /= norms[:, None]
    return wide


def _with_norms(rows: Vectors) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The rows in float64 and their lengths; 1 for a row of zeros, which stays one."""
    wide = rows.astype(np.float64)
    norms = np.sqrt(np.einsum("ij,ij->i", wide, wide))
    norms[norms == 0] = 1.0
    return wide, norms
