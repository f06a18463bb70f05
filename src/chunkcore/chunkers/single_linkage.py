"""`SingleLinkage`: join the nearest sentences first, while their cluster stays within limits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from chunkcore.chunkers.base import strategies
from chunkcore.chunkers.semantic import Floats, SentenceClusters, Sentences, near_pairs, row_blocks
from chunkcore.options import check_ranges
from chunkcore.spans import Numbers

_PAIRS_AT_ONCE = 2**20
_SOME = 4096


@strategies.register("single_linkage")
@dataclass(frozen=True, kw_only=True)
class SingleLinkage(SentenceClusters):
    """Clusters of sentences that need not be neighbours, joined nearest first up to a size.

    Qu, Tu and Bao, "Is Semantic Chunking Worth the Computational Cost?" (2024), section 2 ("Clustering-based Semantic
    Chunker") and appendix A. The distance of the sentences a and b of n is (equations 1 to 3)

        position_weight · |a - b| / n + (1 - position_weight) · (1 - max(cosine of their vectors, 0))

    Pairs are taken by distance, ties in text order. Each joins the clusters of its two sentences, unless the cluster
    would be over a limit; over `stop` none are joined, so a remote sentence is a chunk. The paper limits sentences
    (`chunks`) and has no `stop`; `size` limits tokens as well. With ``position_weight=1, stop=1, size=None`` and
    `chunks` the result is that of fixed_sentences.

    Attributes:
        stop: the distance over which no sentences are joined; at least 0.
        chunks: no chunk has more than n / `chunks` of the n sentences (rounded up); None for no such limit.

    Cost: one call of the model for the distinct sentences; then O(n²·d) time for n sentences of d dimensions (4 s for
    10,000 by 384), again for sentences whose clusters are not full after each million of pairs, and O(n·d) memory plus
    about 100 MB. More than 100,000 sentences are refused.
    """

    stop: float = 0.5
    chunks: int | None = None

    def validate(self) -> None:
        super().validate()
        check_ranges(self, stop=0, chunks=1)

    def clusters(self, sentences: Sentences) -> Numbers:
        count = len(sentences.ranges)
        limits = [count if self.chunks is None else -(-count // self.chunks)]
        weights = [np.ones(count, dtype=np.int64)]
        if self.size is not None:
            limits.append(self.size + self._gap)
            weights.append(sentences.sizes + self._gap)
        return link(sentences.unit, np.column_stack(weights), np.array(limits), self.position_weight, self.stop)


def link(
    unit: Floats,
    weights: Numbers,
    limits: Numbers,
    position_weight: float,
    stop: float,
    *,
    pairs_at_once: int = _PAIRS_AT_ONCE,
) -> Numbers:
    """Single-linkage clusters within limits: for each row the first row of its cluster.

    Args:
        unit: vectors at length 1, shape (n, d).
        weights: of each row, by one measure or several: shape (n, m).
        limits: the most that the weights of a cluster sum to, shape (m,).
        position_weight: see `near_pairs`.
        stop: the distance over which rows are not joined.
        pairs_at_once: pairs held in memory; does not change the answer.

    >>> unit = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 0.0]])
    >>> link(unit, np.ones((4, 1), dtype=np.int64), np.array([2]), 0.0, 0.5).tolist()
    [0, 1, 0, 3]
    """
    clusters = _Clusters(weights, limits)
    after = -1.0, -1  # distance and place of the last pair that was joined
    complete = False
    while not complete:
        distances, places, complete = _nearest(unit, position_weight, stop, clusters, pairs_at_once, after)
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
        apart: NDArray[np.bool_] = first != second
        apart[apart] = (self._weights[first[apart]] + self._weights[second[apart]] <= self._limits).all(axis=1)
        return apart

    def open_rows(self) -> Numbers:
        """The rows whose clusters fit together with the least one."""
        weights = self._weights[self.labels]
        open_: Numbers = np.flatnonzero((weights + weights.min(axis=0) <= self._limits).all(axis=1))
        return open_

    def join(self, left: Numbers, right: Numbers) -> None:
        for start in range(0, len(left), _SOME):
            some = slice(start, start + _SOME)
            open_ = self.joinable(left[some], right[some])
            for a, b in zip(left[some][open_].tolist(), right[some][open_].tolist(), strict=True):
                keep, gone = sorted((int(self.labels[a]), int(self.labels[b])))
                together = self._weights[keep] + self._weights[gone]
                if keep != gone and not (together > self._limits).any():
                    self.labels[self._members[gone]] = keep
                    self._members[keep] += self._members[gone]
                    self._members[gone] = []
                    self._weights[keep] = together


def _nearest(
    unit: Floats, position_weight: float, stop: float, clusters: _Clusters, most: int, after: tuple[float, int]
) -> tuple[Floats, Numbers, bool]:
    """The `most` nearest joinable pairs after a pair, sorted, and whether these are all."""
    count, complete = len(unit), True
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
