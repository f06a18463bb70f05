"""Chunkers that group small pieces by meaning: clusters of sentences, and the best segmentation of the whole text."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf
from operator import add
from typing import Literal

import numpy as np

from chunkcore.boundaries.sentences import Splitter, sentence_ranges
from chunkcore.chunkers.base import Chunker, Cuts, Draft, chunkers
from chunkcore.chunkers.recursive import PROSE_SEPARATORS, Recursive, small_pieces
from chunkcore.chunkers.semantic import Floats, SentenceChunker, neighbour_distances
from chunkcore.errors import DataError, OptionError
from chunkcore.lazy import needed
from chunkcore.models.base import Embedder, Vectors, embed, unit_rows
from chunkcore.models.loading import DEFAULT_MODEL, get_embedder
from chunkcore.options import Bounds
from chunkcore.packing import halves, join_ranges, pack, split_ranges_to_maximum, whole_runs
from chunkcore.spans import Flags, Numbers, Ranges
from chunkcore.text import Span, text_of_spans
from chunkcore.tokens import TokenizedText

BLOCK_BYTES = 2 * 2**20
MOST_SENTENCES = 100_000
MOST_PAIRS = 20_000_000  # held at once, with their distances
_AT_ONCE = 4096


@dataclass(frozen=True, kw_only=True)
class SentenceClusters(SentenceChunker, ABC):
    """A chunker whose chunks are clusters of sentences, which need not be neighbours.

    Neighbours in a cluster become one span. Chunks can have several spans and interleave; they are ordered by start. A
    sentence over `size` is cut at words, else graphemes, and its parts are clustered.

    Attributes:
        splitter: see `SentenceChunker`; the paper uses spaCy.
        position_weight: λ of the paper, 0 (meaning alone) to 1 (position alone).
        size: the maximum of a chunk's text, in the counter's unit; None: no maximum.

    Raises `DataError`: a text of more than 100,000 sentences: their comparison is quadratic.
    """

    bounded = True

    splitter: Splitter = "default"
    position_weight: float = 0.5
    size: int | None = 200
    bounds = Bounds(position_weight=(0, 1), size=1)

    @abstractmethod
    def clusters(self, unit: Floats, sizes: Numbers) -> Numbers:
        """The number of each sentence's cluster, from unit vectors and sizes of at least two sentences."""

    def cut(self, source: TokenizedText) -> Cuts:
        sentences = sentence_ranges(source.text, self.splitter)
        ranges = split_ranges_to_maximum(source, sentences, self.size)
        if len(ranges) < 2:
            return ranges
        if len(ranges) > MOST_SENTENCES:
            raise DataError(
                f"{self.name}: the text has {len(ranges):,} sentences, and comparing all of over {MOST_SENTENCES:,} "
                "takes hours: cut the text into documents first"
            )
        sizes = source.counts(*ranges.T)
        unit = unit_rows(self._embed(source.slices(ranges)))
        clusters = defaultdict(list)
        for sentence, cluster in enumerate(self.clusters(unit, sizes).tolist()):
            clusters[cluster].append(sentence)
        chunks: list[list[int]] = []
        for members in clusters.values():
            chunks += self._within_size(source, ranges, sizes, members)
        return [Draft(_spans(ranges, members)) for members in sorted(chunks)]

    def _within_size(
        self, source: TokenizedText, ranges: Ranges, sizes: Numbers, members: list[int]
    ) -> Iterator[list[int]]:
        size = inf if self.size is None else self.size

        def fits(first: int, after: int) -> bool:
            text = text_of_spans(source.text, _spans(ranges, members[first:after]))
            return self.token_counter.count(text) <= size

        # The sum over sentences nearly always equals the size of the own text.
        sums = np.append(0, np.cumsum(sizes[members] + self._gap))
        for begin, end in pack(sums, size, gap=self._gap):
            for first, after in halves(begin, end, fits):
                yield members[first:after]

    @property
    def _gap(self) -> int:
        return self.token_counter.count("\n")  # between sentences that are not neighbours, at most


def pairs_within(
    name: str, unit: Floats, weight: float, limit: tuple[str, float]
) -> tuple[Numbers, Numbers, Floats]:
    """All pairs of rows at most so far apart: first row, second row, distance.

    `limit` is an option's name and value. Raises `DataError`: there are more than 20 million pairs.
    """
    count = len(unit)
    option, most = limit
    step = max(1, BLOCK_BYTES // (8 * count))
    blocks = []
    pairs = 0
    for start in range(0, count, step):
        block = near_pairs(unit, weight, most, slice(start, min(start + step, count)))
        blocks.append(block)
        pairs += len(block[0])
        if pairs > MOST_PAIRS:
            raise DataError(
                f"{name}: of the text's {count} sentences more than {MOST_PAIRS:,} pairs are within {option}={most}, "
                f"which would take too much memory: lower {option}, raise position_weight, or cut the text into "
                "documents first"
            )
    left, right, distances = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    return left, right, distances


def near_pairs(
    unit: Floats, weight: float, most: float, rows: slice
) -> tuple[Numbers, Numbers, Floats]:
    """The pairs of some rows with later ones that are at most `most` apart, as of `pairs_within`.

    Equations 1 to 3 of Qu et al. (2024), for the sentences a and b of n:

        weight · |a - b| / n + (1 - weight) · (1 - max(cos(a, b), 0))

    Only a band of columns is compared, because a pair is at least weight · |a - b| / n apart.

    >>> unit = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [1.0, 0.0]])
    >>> near_pairs(unit, 0.5, 0.7, slice(0, 1))
    (array([0, 0]), array([1, 3]), array([0.625, 0.375]))
    """
    count = len(unit)
    after = count
    if weight * count > most:
        after = min(count, rows.stop + int(most / weight * count) + 1)
    similarities = np.clip(unit[rows] @ unit[rows.start : after].T, 0.0, 1.0)
    gaps = np.arange(rows.start, after) - np.arange(rows.start, rows.stop)[:, None]
    distances = (1.0 - weight) * (1.0 - similarities) + weight * (gaps / count)
    left, right = np.nonzero((gaps > 0) & (distances <= most))
    return left + rows.start, right + rows.start, distances[left, right]


def _spans(ranges: Ranges, members: Sequence[int]) -> tuple[Span, ...]:
    starts, ends = ranges[members].T
    first = np.diff(members, prepend=-2) > 1
    last = np.append(first[1:], True)
    return tuple(map(Span, starts[first].tolist(), ends[last].tolist()))


@chunkers.register("dbscan")
@dataclass(frozen=True, kw_only=True)
class Dbscan(SentenceClusters):
    """Clusters of sentences that need not be neighbours, found where sentences are dense.

    Qu et al. (2024), section 2 ("Clustering-based Semantic Chunker") and appendix A: scikit-learn's DBSCAN (Ester et
    al., 1996) over the joint distance of `SingleLinkage`. A sentence with at least `min_samples` sentences within
    `eps`, itself included, is a core. Cores within `eps` form a cluster with the sentences within `eps` of them. A
    sentence without a cluster is a chunk. The paper has no maximum; here a cluster over `size` is packed in order.

    Attributes:
        eps: the distance within which sentences are neighbours; over 0. The paper tried 0.1 to 0.5.
        min_samples: how many sentences make a core; at least 1. The paper tried 1 to 5.

    Cost: one call of the model for the distinct sentences; then O(n²·d) time and O(n·d + p) memory for n sentences of d
    dimensions and p pairs within `eps`.

    Raises `DataError`: more than 20 million pairs (about 1.5 GB) are within `eps`.
    """

    eps: float = 0.3
    min_samples: int = 2
    bounds = Bounds(min_samples=1)

    def validate(self) -> None:
        super().validate()
        if self.eps <= 0:
            raise OptionError(f"eps is over 0, got {self.eps}")

    def clusters(self, unit: Floats, sizes: Numbers) -> Numbers:
        action = "cluster sentences with DBSCAN"
        cluster, neighbors, sparse = (
            needed(module, "clustering", action, "scikit-learn")
            for module in ("sklearn.cluster", "sklearn.neighbors", "scipy.sparse")
        )
        count = len(unit)
        left, right, distances = pairs_within(
            self.name, unit, self.position_weight, ("eps", self.eps)
        )
        diagonal = np.arange(count)
        rows = np.concatenate((left, right, diagonal))
        columns = np.concatenate((right, left, diagonal))
        values = np.concatenate((distances, distances, np.zeros(count)))
        graph = sparse.csr_array((values, (rows, columns)), shape=(count, count))
        graph = neighbors.sort_graph_by_row_values(graph, warn_when_not_sorted=False)
        dbscan = cluster.DBSCAN(eps=self.eps, min_samples=self.min_samples, metric="precomputed")
        labels: Numbers = dbscan.fit(graph).labels_.astype(np.int64)
        noise = np.flatnonzero(labels < 0)
        labels[noise] = count + noise
        return labels


@chunkers.register("single_linkage")
@dataclass(frozen=True, kw_only=True)
class SingleLinkage(SentenceClusters):
    """Clusters of sentences that need not be neighbours, joined nearest first up to a size.

    Qu et al. (2024), section 2 ("Clustering-based Semantic Chunker") and appendix A. The distance of the sentences a
    and b of n is (equations 1 to 3)

        position_weight · |a - b| / n + (1 - position_weight) · (1 - max(cosine of their vectors, 0))

    Pairs are taken by distance, ties in text order. Each joins the clusters of its two sentences, unless the cluster
    would be over a limit; over `stop` none are joined, so a remote sentence is a chunk. The paper limits sentences
    (`chunks`) and has no `stop`; `size` limits tokens as well. With ``position_weight=1, stop=1, size=None`` and
    `chunks` the result is that of fixed_sentences.

    Attributes:
        stop: the distance over which no sentences are joined; at least 0.
        chunks: no chunk has more than n / `chunks` of the n sentences (rounded up); None for no such limit.

    Cost: as of `Dbscan`, for p pairs within `stop`.

    Raises `DataError`: more than 20 million pairs (about 1.5 GB) are within `stop`.
    """

    stop: float = 0.5
    chunks: int | None = None
    bounds = Bounds(stop=0, chunks=1)

    def clusters(self, unit: Floats, sizes: Numbers) -> Numbers:
        count = len(unit)
        limits = [count if self.chunks is None else -(-count // self.chunks)]
        weights = [np.ones(count, dtype=np.int64)]
        if self.size is not None:
            limits.append(self.size + self._gap)
            weights.append(sizes + self._gap)
        pairs = pairs_within(self.name, unit, self.position_weight, ("stop", self.stop))
        return link(*pairs, np.column_stack(weights), np.array(limits))


def link(
    left: Numbers, right: Numbers, distances: Floats, weights: Numbers, limits: Numbers
) -> Numbers:
    """Single-linkage clusters within limits: for each row the first row of its cluster.

    Args:
        left, right, distances: the pairs of rows that may be joined, as of `pairs_within`.
        weights: of each row, by one measure or several: shape (n, m).
        limits: the most that the weights of a cluster sum to, shape (m,).

    >>> pairs = np.array([0, 0, 2]), np.array([2, 3, 3]), np.zeros(3)
    >>> link(*pairs, np.ones((4, 1), dtype=np.int64), np.array([2])).tolist()
    [0, 1, 0, 3]
    """
    labels = np.arange(len(weights))
    members = [[row] for row in range(len(weights))]
    weights = weights.copy()  # of each cluster, at its first row
    pairs = np.column_stack((left, right))[np.lexsort((right, left, distances))]
    for start in range(0, len(pairs), _AT_ONCE):
        some = pairs[start : start + _AT_ONCE]
        clusters = labels[some]
        # Pairs that do not fit never will: weights only grow.
        fits = (weights[clusters].sum(axis=1) <= limits).all(axis=1)
        for pair in some[fits & (clusters[:, 0] != clusters[:, 1])]:
            first, second = sorted(labels[pair].tolist())
            together = weights[first] + weights[second]
            if first != second and (together <= limits).all():
                labels[members[second]] = first
                members[first] += members[second]
                weights[first] = together
    return labels


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

    bounded = True

    size: int = 200
    piece_size: int = 50
    embedder: Embedder | str = DEFAULT_MODEL
    separators: tuple[str, ...] = PROSE_SEPARATORS
    size_of: Literal["pieces", "text"] = "pieces"
    mean: float | None = None
    minimum: int = 0
    bounds = Bounds(piece_size=(1, "size"), minimum=(0, "size"), mean=(-1, 1))

    def validate(self) -> None:
        Recursive(separators=self.separators)  # which checks them

    def cut(self, source: TokenizedText) -> Ranges:
        pieces = small_pieces(source, self.piece_size, self.size_of, self.separators)
        if len(pieces) < 2:
            return pieces
        vectors = embed(get_embedder(self.embedder), source.slices(pieces))
        most = min(self.size // self.piece_size, len(pieces))
        fits = None if self.size_of == "pieces" else self._fitting(source, pieces, most)
        sizes = optimal_segmentation(vectors, most, mean=self.mean, fits=fits)
        afters = np.cumsum(sizes)
        rows = whole_runs(pieces, np.column_stack((afters - sizes, afters)))
        distances = neighbour_distances(vectors)[afters[:-1] - 1]
        return join_ranges(source, rows, self.minimum, self.size, [0.0, *distances.tolist()])

    def _fitting(self, source: TokenizedText, pieces: Ranges, most: int) -> Flags:
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
        block = vectors[start : start + BLOCK_ROWS]
        total += unit_rows(block).sum(axis=0)
        nonzero += int(block.any(axis=1).sum())
    return (float(total @ total) - nonzero) / (count * (count - 1))


def optimal_segmentation(
    vectors: Vectors,
    max_pieces: int,
    *,
    mean: float | None = None,
    fits: Flags | None = None,
) -> Numbers:
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
    centre = mean_pair_similarity(vectors) if mean is None else mean
    sizes: list[int] = []
    # Plain lists: for some eight pieces a chunk they are faster than arrays.
    sums = [0.0] * width  # of the similarities in a chunk of 1, 2, … pieces that ends here
    best = [0.0] + [-np.inf] * (width - 1)  # of the pieces before such a chunk
    rows = min(BLOCK_ROWS, max(256, 2**22 // width))
    for start in range(0, count, rows):
        similarities = _backward_products(vectors, start, min(start + rows, count), width - 1)
        for gains in np.cumsum(similarities - centre, axis=1).tolist():
            sums = [0.0, *map(add, sums, gains)]
            values = list(map(add, best, sums))
            if fits is not None:
                values = np.where(fits[len(sizes)], values, -np.inf).tolist()
            least = max(values) - _TIE
            size = width
            while values[size - 1] < least:
                size -= 1
            sizes.append(size)
            best = [values[size - 1], *best[:-1]]
        best = [value - best[0] for value in best]  # so that sums stay small on long texts
    edges: list[int] = []
    while count > 0:  # back from the best last chunk
        edges.append(sizes[count - 1])
        count -= edges[-1]
    return np.array(edges[::-1], dtype=np.int64)


def _backward_products(vectors: Vectors, start: int, end: int, reach: int) -> Floats:
    """Cosines of rows `start` … `end` - 1 to each of the `reach` rows before them; 0 before the first."""
    first = max(0, start - reach)
    unit = np.zeros((reach + end - start, vectors.shape[1]))
    unit[reach - (start - first) :] = unit_rows(vectors[first:end])
    products = np.empty((end - start, reach))
    for apart in range(1, reach + 1):
        before = unit[reach - apart : len(unit) - apart]
        products[:, apart - 1] = np.einsum("ij,ij->i", unit[reach:], before)
    return products
