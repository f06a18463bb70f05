"""Chunkers whose chunks are clusters of sentences, which need not be neighbours."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from chunkcore.boundaries.sentences import sentence_ranges
from chunkcore.chunkers.base import Draft, chunkers
from chunkcore.chunkers.semantic import SentenceChunker
from chunkcore.chunkers.similarity import Floats
from chunkcore.errors import DataError, OptionError
from chunkcore.lazy import needed
from chunkcore.models.base import unit_rows
from chunkcore.options import Bounds
from chunkcore.packing import halves, pack, running_sizes, split_ranges_to_maximum
from chunkcore.spans import Numbers, Ranges
from chunkcore.text import Span, text_of_spans
from chunkcore.tokens import TokenizedText

BLOCK_BYTES = 2 * 2**20
MOST_SENTENCES = 100_000
MOST_PAIRS = 20_000_000  # of DBSCAN, which holds them
PAIRS_AT_ONCE = 2**20
_SOME = 4096


@dataclass(frozen=True, kw_only=True)
class SentenceClusters(SentenceChunker, ABC):
    """A chunker whose chunks are clusters of sentences, which need not be neighbours.

    Neighbours in a cluster become one span. Chunks can have several spans and interleave; they are ordered by start. A
    sentence over `size` is cut at words, else graphemes, and its parts are clustered.

    Attributes:
        splitter: see `SentenceChunker`; the paper uses spaCy.
        position_weight: λ of the paper, 0 (meaning alone) to 1 (position alone).
        size: of a chunk's own text, in the counter's unit; None for no maximum.

    Raises `DataError`: a text of more than 100,000 sentences: their comparison is quadratic.
    """

    bounded: ClassVar[bool] = True

    splitter: str | Callable[[str], Any] = "default"
    position_weight: float = 0.5
    size: int | None = 200
    bounds: ClassVar[Bounds] = {"position_weight": (0, 1), "size": 1}

    @abstractmethod
    def clusters(self, unit: Floats, sizes: Numbers) -> Numbers:
        """The number of each sentence's cluster, from unit vectors and sizes of at least two sentences."""

    def cut(self, source: TokenizedText) -> list[Draft]:
        ranges = split_ranges_to_maximum(
            source, sentence_ranges(source.text, self.splitter), self.size
        )
        if len(ranges) < 2:
            return [Draft((Span(start, end),)) for start, end in ranges.tolist()]
        sizes = source.counts(ranges[:, 0], ranges[:, 1])
        if len(ranges) > MOST_SENTENCES:
            raise DataError(
                f"{self.name}: the text has {len(ranges):,} sentences, and comparing all of over {MOST_SENTENCES:,} "
                "takes hours: cut the text into documents first"
            )
        unit = unit_rows(self._embed([source.text[start:end] for start, end in ranges.tolist()]))
        clusters = defaultdict(list)
        for sentence, cluster in enumerate(self.clusters(unit, sizes).tolist()):
            clusters[cluster].append(sentence)
        members = self._bounded(source, ranges, sizes, list(clusters.values()))
        return [Draft(_spans(ranges, sentences)) for sentences in sorted(members)]

    def _bounded(
        self, source: TokenizedText, ranges: Ranges, sizes: Numbers, clusters: list[list[int]]
    ) -> list[list[int]]:
        size, gap = self.size, self._gap
        if size is None:
            return clusters

        def fits(sentences: list[int], first: int, after: int) -> bool:
            # The sum over sentences nearly always equals the size of the own text.
            text = text_of_spans(source.text, _spans(ranges, sentences[first:after]))
            return self.token_counter.count(text) <= size

        bounded = []
        for sentences in clusters:
            fit = partial(fits, sentences)
            for begin, end in pack(running_sizes(sizes[sentences], gap), size, gap=gap):
                bounded += [sentences[first:after] for first, after in halves(begin, end, fit)]
        return bounded

    @property
    def _gap(self) -> int:
        return self.token_counter.count("\n")  # between sentences that are not neighbours, at most


def near_pairs(
    unit: Floats, weight: float, stop: float, rows: slice, places: Numbers, count: int
) -> tuple[Numbers, Numbers, Floats]:
    """The pairs of some rows with later ones that are at most `stop` apart, by row and column, with their distances.

    Equations 1 to 3 of Qu et al. (2024), for the sentences a and b of `count`; `places` has the sentence of each row:

        weight · |a - b| / count + (1 - weight) · (1 - max(cos(a, b), 0))

    Only a band of columns is compared, because a pair is at least weight · |a - b| / count apart.

    >>> unit = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [1.0, 0.0]])
    >>> near_pairs(unit, 0.5, 0.7, slice(0, 1), np.arange(4), 4)
    (array([0, 0]), array([1, 3]), array([0.625, 0.375]))
    """
    sentences = places[rows]
    reach = count if weight * count <= stop else int(stop / weight * count) + 1
    after = int(np.searchsorted(places, sentences[-1] + reach, side="right"))
    cosines = unit[rows] @ unit[rows.start : after].T
    least = np.full(after - rows.start, -np.inf)
    if weight < 1:
        apart = weight * np.maximum(places[rows.start : after] - sentences[-1], 0) / count
        least = 1.0 - (stop - apart) / (1.0 - weight) - 1e-9  # rounding; the distance decides
        least[least <= 0] = -np.inf
    near = cosines >= least
    near[:, : len(sentences)] &= ~np.tri(len(sentences), dtype=np.bool_)
    row, column = np.nonzero(near)
    distances = cosines[row, column]
    left, right = row + rows.start, column + rows.start
    np.clip(distances, 0.0, 1.0, out=distances)
    np.subtract(1.0, distances, out=distances)
    distances *= 1.0 - weight
    distances += weight * ((places[right] - places[left]) / count)
    kept = distances <= stop
    return left[kept], right[kept], distances[kept]


def row_blocks(count: int) -> Iterator[slice]:
    """Slices of rows of a square float64 matrix, about 2 MiB each."""
    step = max(1, BLOCK_BYTES // (8 * max(count, 1)))
    for start in range(0, count, step):
        yield slice(start, min(start + step, count))


def _spans(ranges: Ranges, members: Sequence[int]) -> tuple[Span, ...]:
    runs: list[list[int]] = []
    for sentence in members:
        if runs and runs[-1][1] == sentence - 1:
            runs[-1][1] = sentence
        else:
            runs.append([sentence, sentence])
    return tuple(Span(int(ranges[first, 0]), int(ranges[last, 1])) for first, last in runs)


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
    bounds: ClassVar[Bounds] = {"min_samples": 1}

    def validate(self) -> None:
        super().validate()
        if self.eps <= 0:
            raise OptionError(f"eps is over 0, got {self.eps}")

    def clusters(self, unit: Floats, sizes: Numbers) -> Numbers:
        action = "cluster sentences with DBSCAN"
        cluster = needed("sklearn.cluster", "clustering", action, "scikit-learn")
        graph = _neighbours(unit, self.position_weight, self.eps)
        dbscan = cluster.DBSCAN(eps=self.eps, min_samples=self.min_samples, metric="precomputed")
        fitted = dbscan.fit(graph).labels_
        labels: Numbers = np.array(fitted, dtype=np.int64)
        noise = np.flatnonzero(labels < 0)
        labels[noise] = len(labels) + noise
        return labels


def _neighbours(unit: Floats, position_weight: float, eps: float) -> Any:
    """Distances of at most `eps`, as a sparse matrix with rows sorted by distance."""
    from scipy.sparse import csr_array  # type: ignore[import-untyped,unused-ignore]

    count, pairs = len(unit), 0
    blocks = []
    for rows in row_blocks(count):
        blocks.append(near_pairs(unit, position_weight, eps, rows, np.arange(count), count))
        pairs += len(blocks[-1][0])
        if pairs > MOST_PAIRS:
            raise DataError(
                f"dbscan: of the text's {count} sentences more than {MOST_PAIRS:,} pairs are within eps={eps}, which "
                "would take too much memory: lower eps, raise position_weight, or cut the text into documents first"
            )
    left, right, distances = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    diagonal = np.arange(count)
    row = np.concatenate((left, right, diagonal))
    column = np.concatenate((right, left, diagonal)).astype(np.int32)
    data = np.concatenate((distances, distances, np.zeros(count)))
    order = np.lexsort((column, data, row))
    ends = np.cumsum(np.bincount(row + 1, minlength=count + 1))
    return csr_array((data[order], column[order], ends), shape=(count, count))


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

    Cost: one call of the model for the distinct sentences; then O(n²·d) time for n sentences of d dimensions, again for
    sentences whose clusters are not full after each million of pairs, and O(n·d) memory plus about 100 MB.
    """

    stop: float = 0.5
    chunks: int | None = None
    bounds: ClassVar[Bounds] = {"stop": 0, "chunks": 1}

    def clusters(self, unit: Floats, sizes: Numbers) -> Numbers:
        count = len(unit)
        limits = [count if self.chunks is None else -(-count // self.chunks)]
        weights = [np.ones(count, dtype=np.int64)]
        if self.size is not None:
            limits.append(self.size + self._gap)
            weights.append(sizes + self._gap)
        table = np.column_stack(weights)
        return link(unit, table, np.array(limits), self.position_weight, self.stop)


def link(
    unit: Floats, weights: Numbers, limits: Numbers, position_weight: float, stop: float
) -> Numbers:
    """Single-linkage clusters within limits: for each row the first row of its cluster.

    Args:
        unit: vectors at length 1, shape (n, d).
        weights: of each row, by one measure or several: shape (n, m).
        limits: the most that the weights of a cluster sum to, shape (m,).
        position_weight: see `near_pairs`.
        stop: the distance over which rows are not joined.

    >>> unit = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 0.0]])
    >>> link(unit, np.ones((4, 1), dtype=np.int64), np.array([2]), 0.0, 0.5).tolist()
    [0, 1, 0, 3]
    """
    clusters = _Clusters(weights, limits)
    after = -1.0, -1  # distance and place of the last pair that was joined
    complete = False
    while not complete:
        distances, places, complete = _nearest(unit, position_weight, stop, clusters, after)
        clusters.join(places // len(unit), places % len(unit))
        if not complete:
            after = float(distances[-1]), int(places[-1])
    return clusters.labels


class _Clusters:
    def __init__(self, weights: Numbers, limits: Numbers) -> None:
        self.labels = np.arange(len(weights))
        self._members = [[row] for row in range(len(weights))]
        self._weights = weights.copy()
        self._limits = limits

    def joinable(self, left: Numbers, right: Numbers) -> NDArray[np.bool_]:
        """Pairs that may be joined. Others never will be: weights only grow."""
        first, second = self.labels[left], self.labels[right]
        together = self._weights[first] + self._weights[second]
        fits = np.all(together <= self._limits, axis=1)
        joinable: NDArray[np.bool_] = np.logical_and(fits, first != second)
        return joinable

    def open_rows(self) -> Numbers:
        """The rows whose clusters fit together with the least one."""
        weights = self._weights[self.labels]
        open_: Numbers = np.flatnonzero((weights + weights.min(axis=0) <= self._limits).all(axis=1))
        return open_

    def join(self, left: Numbers, right: Numbers) -> None:
        for start in range(0, len(left), _SOME):
            some = slice(start, start + _SOME)
            joinable = self.joinable(left[some], right[some])
            pairs = np.column_stack((left[some], right[some]))[joinable]
            for pair in pairs:
                self._join(*sorted(self.labels[pair].tolist()))

    def _join(self, first: int, second: int) -> None:
        together = self._weights[first] + self._weights[second]
        if first == second or (together > self._limits).any():
            return
        self.labels[self._members[second]] = first
        self._members[first] += self._members[second]
        self._members[second] = []
        self._weights[first] = together


def _nearest(
    unit: Floats, position_weight: float, stop: float, clusters: _Clusters, after: tuple[float, int]
) -> tuple[Floats, Numbers, bool]:
    """The nearest joinable pairs after a pair, as many as are held at once, sorted; and whether these are all."""
    count, most, complete = len(unit), PAIRS_AT_ONCE, True
    rows = clusters.open_rows()
    some = unit if len(rows) == count else unit[rows]
    held, size = [(np.empty(0), np.empty(0, dtype=np.int64))], 0
    for block in row_blocks(len(rows)):
        left, right, new = near_pairs(some, position_weight, stop, block, rows, count)
        left, right = rows[left], rows[right]
        new_places = left * count + right
        kept = (new > after[0]) | ((new == after[0]) & (new_places > after[1]))
        kept[kept] = clusters.joinable(left[kept], right[kept])
        held.append((new[kept], new_places[kept]))
        size += len(held[-1][0])
        if size > 2 * most:
            held, complete = [_first(held, most)], False
            size, stop = len(held[0][0]), float(held[0][0].max())
    distances, places = _first(held, most)
    order = np.lexsort((places, distances))
    return distances[order], places[order], complete and size <= most


def _first(held: list[tuple[Floats, Numbers]], most: int) -> tuple[Floats, Numbers]:
    """The `most` nearest; of equal distances those of the first places."""
    distances, places = (np.concatenate(parts) for parts in zip(*held, strict=True))
    if len(distances) > most:
        last = np.partition(distances, most - 1)[most - 1]
        near, equal = np.flatnonzero(distances < last), np.flatnonzero(distances == last)
        kept = np.concatenate((near, equal[np.argsort(places[equal])[: most - len(near)]]))
        distances, places = distances[kept], places[kept]
    return distances, places
