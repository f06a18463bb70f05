"""Chunkers whose chunks are clusters of sentences, which need not be neighbours."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from chunkcore.boundaries.sentences import sentence_ranges
from chunkcore.chunkers.base import Draft, chunkers
from chunkcore.chunkers.semantic import Floats, SentenceChunker
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

    bounded: ClassVar[bool] = True

    splitter: str | Callable[[str], Any] = "default"
    position_weight: float = 0.5
    size: int | None = 200
    bounds: ClassVar[Bounds] = {"position_weight": (0, 1), "size": 1}

    @abstractmethod
    def clusters(self, unit: Floats, sizes: Numbers) -> Numbers:
        """The number of each sentence's cluster, from unit vectors and sizes of at least two sentences."""

    def cut(self, source: TokenizedText) -> list[Draft]:
        sentences = sentence_ranges(source.text, self.splitter)
        ranges = split_ranges_to_maximum(source, sentences, self.size)
        if len(ranges) < 2:
            return [Draft((Span(start, end),)) for start, end in ranges.tolist()]
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
    ) -> list[list[int]]:
        if self.size is None:
            return [members]
        size = self.size

        def fits(first: int, after: int) -> bool:
            text = text_of_spans(source.text, _spans(ranges, members[first:after]))
            return self.token_counter.count(text) <= size

        chunks = []
        # The sum over sentences nearly always equals the size of the own text.
        for begin, end in pack(running_sizes(sizes[members], self._gap), size, gap=self._gap):
            chunks += [members[first:after] for first, after in halves(begin, end, fits)]
        return chunks

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
    distances = unit[rows] @ unit[rows.start : after].T
    np.clip(distances, 0.0, 1.0, out=distances)
    np.subtract(1.0, distances, out=distances)
    distances *= 1.0 - weight
    gaps = np.arange(rows.start, after) - np.arange(rows.start, rows.stop)[:, None]
    distances += weight * (gaps / count)
    left, right = np.nonzero((gaps > 0) & (distances <= most))
    return left + rows.start, right + rows.start, distances[left, right]


def _spans(ranges: Ranges, members: Sequence[int]) -> tuple[Span, ...]:
    rows = np.array(members)
    first = np.diff(rows, prepend=-2) > 1
    last = np.append(first[1:], True)
    bounds = zip(ranges[rows[first], 0].tolist(), ranges[rows[last], 1].tolist(), strict=True)
    return tuple(Span(start, end) for start, end in bounds)


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
        neighbors = needed("sklearn.neighbors", "clustering", action, "scikit-learn")
        sparse = needed("scipy.sparse", "clustering", action, "scikit-learn")
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
    bounds: ClassVar[Bounds] = {"stop": 0, "chunks": 1}

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
