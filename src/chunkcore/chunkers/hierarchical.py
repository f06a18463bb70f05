"""`Hierarchical`: sentences form segments on one topic, related neighbouring segments form chunks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from math import sqrt

import numpy as np

from chunkcore.boundaries.sentences import Splitter, sentence_ranges
from chunkcore.chunkers.base import Draft, chunkers
from chunkcore.chunkers.semantic import Floats, SentenceChunker
from chunkcore.models.base import Vectors, row_lengths, unit_rows
from chunkcore.options import Bounds
from chunkcore.packing import fitting, halves, split_ranges_to_maximum, whole_runs
from chunkcore.spans import Numbers, Ranges
from chunkcore.text import Span
from chunkcore.tokens import TokenizedText

_TIE = 1e-9  # a smaller excess over the threshold is rounding
Cluster = tuple[int, int]  # its first segment, and the one after its last
Joins = Callable[[Cluster, Cluster], bool]
Fits = Callable[
    [int, int], bool
]  # whether these and all segments between, as one chunk, are within the size


@chunkers.register("hierarchical")
@dataclass(frozen=True, kw_only=True)
class Hierarchical(SentenceChunker):
    """Clusters of related neighbouring segments: chunks that are found by their parts, or as a whole.

    Nguyen et al. (2025), section 3.2, with TextTiling (`segment_starts`) in place of their trained network: it divides
    the sentences into segments. Two segments are related if the cosine of their vectors is over τ = mean + k · σ over
    all pairs (equation 3). Then

    1. neighbours that are both in a maximal clique of the graph of related segments make the initial clusters;
    2. neighbouring clusters are merged if a clique has a segment of each (Table 1), in one pass from the left;
    3. a cluster that is a single sentence is merged with the neighbour whose vector is nearer by cosine.

    A cluster is a chunk with its segments as `segments`; the retriever `dense` scores a chunk by the best vector of
    them and their mean (equation 2). Two segments share a maximal clique exactly if they are related: none is listed.

    Attributes:
        k: standard deviations over the mean; less gives larger chunks. The paper set 1.2, 0.7 and 0.4 for 512, 1024 and
            2048 tokens on average.
        window: sentences that are compared on each side of a gap, see `segment_starts`.
        deviations: standard deviations over the mean depth at which a segment begins; less gives smaller segments.
        max_segment: a segment over this, in the counter's unit, is cut between sentences; a sentence over it at words,
            else at graphemes. None, as in the paper, for no maximum but `size`. The default suits a model with a
            limit of 256 tokens.
        size: no chunk's own text is over this: clusters that would be are not merged. None, as in the paper, for no
            maximum.
        splitter: see `SentenceChunker`.
        embedder: see `SentenceChunker`; of sentences and of segments.

    Cost: one call of the model for the distinct sentences, one for the distinct segments; then O(n·d²) time and O(n·d)
    memory for n sentences of d dimensions.
    """

    bounded = True

    splitter: Splitter = "default"
    window: int = 15
    deviations: float = 2.0
    k: float = 1.2
    max_segment: int | None = 200
    size: int | None = 1024
    bounds = Bounds(window=1, max_segment=1, size=1)

    def cut(self, source: TokenizedText) -> list[Draft]:
        most = min(filter(None, (self.max_segment, self.size)), default=None)
        ranges = split_ranges_to_maximum(source, sentence_ranges(source.text, self.splitter), most)
        starts = []
        if len(ranges) > 1:
            vectors = self._embed(source.slices(ranges))
            starts = segment_starts(vectors, self.window, self.deviations).tolist()
        fits = fitting(source, ranges, most)
        edges = pairwise(np.unique([0, *starts, len(ranges)]).tolist())
        runs = [run for ends in edges for run in halves(*ends, fits)]
        segments = whole_runs(ranges, runs)
        sentences = [after - first for first, after in runs]
        drafts = []
        for first, end in self._clusters(source, segments, sentences):
            parts = tuple((Span(start, stop),) for start, stop in segments[first:end].tolist())
            drafts.append(Draft((Span(parts[0][0].start, parts[-1][0].end),), segments=parts))
        return drafts

    def _clusters(
        self, source: TokenizedText, segments: Ranges, sentences: list[int]
    ) -> list[Cluster]:
        if len(segments) < 2:
            return [(0, 1)] * len(segments)
        vectors = self._embed(source.slices(segments))
        unit = unit_rows(vectors)
        mean, deviation = pair_statistics(unit)
        threshold = mean + self.k * deviation

        def related(left: Cluster, right: Cluster) -> bool:
            return bool((unit[slice(*left)] @ unit[slice(*right)].T > threshold + _TIE).any())

        fits = fitting(source, segments, self.size)
        clusters = initial_clusters(len(segments), related, fits)
        clusters = merged_clusters(clusters, related, fits)
        alone = [end - first == 1 and sentences[first] == 1 for first, end in clusters]
        return _without_single(clusters, alone, vectors.astype(np.float64), fits)


def segment_starts(vectors: Vectors, window: int, deviations: float) -> Numbers:
    """The sentences at which a segment begins, without the first: the topic changes there.

    Hearst, "TextTiling" (1997), section 4, on sentence vectors in place of words: at each gap the blocks of `window`
    sentences on both sides are compared by cosine. A gap's depth is how far its similarity lies below the nearest
    peaks. A segment begins at each local maximum of depth over ``mean + deviations · σ``. O(n·d) time and memory.

    >>> segment_starts(np.eye(2)[[0, 0, 0, 1, 1, 1]], 1, 0.0).tolist()
    [3]
    """
    if len(vectors) < 2:
        return np.empty(0, dtype=np.int64)
    gap_depths = depths(block_similarities(vectors, min(window, len(vectors))))
    return peaks(gap_depths, gap_depths.mean() + deviations * gap_depths.std()) + 1


def block_similarities(vectors: Vectors, window: int) -> Floats:
    """At each gap, the cosine of the sums of up to `window` unit rows before and after it: shape (n - 1,).

    >>> block_similarities(np.eye(2)[[0, 0, 1, 1]], 2).tolist()
    [0.7071067811865475, 0.0, 0.7071067811865475]
    """
    count = len(vectors)
    unit = unit_rows(vectors)
    sums = np.zeros((count + 1, unit.shape[1]))
    np.cumsum(unit, axis=0, out=sums[1:])
    gaps = np.arange(1, count)
    left = sums[gaps] - sums[np.maximum(0, gaps - window)]
    right = sums[np.minimum(count, gaps + window)] - sums[gaps]
    products: Floats = (
        np.einsum("ij,ij->i", left, right) / (row_lengths(left) * row_lengths(right))[:, 0]
    )
    return products


def depths(similarities: Floats) -> Floats:
    """How far each value lies below the peaks on its left and right, summed.

    >>> depths(np.array([0.9, 0.5, 0.6, 0.4, 0.8])).round(6).tolist()
    [0.0, 0.5, 0.0, 0.6, 0.0]
    """
    return _climbed(similarities) + _climbed(similarities[::-1])[::-1] - 2 * similarities


def _climbed(values: Floats) -> Floats:
    """For each value, the peak reached by stepping left while values do not fall."""
    reached = values.copy()
    for place in range(1, len(values)):
        if values[place - 1] >= values[place]:
            reached[place] = reached[place - 1]
    return reached


def peaks(values: Floats, threshold: float) -> Numbers:
    """The places of values over the threshold without a higher neighbour; of equal neighbours, the last.

    >>> peaks(np.array([0.1, 0.4, 0.8, 0.2, 0.6]), 0.5).tolist()
    [2, 4]
    """
    before = np.concatenate(([-1.0], values[:-1]))
    after = np.concatenate((values[1:], [-1.0]))
    return np.flatnonzero((values > threshold) & (values >= before) & (values > after))


def pair_statistics(unit: Floats) -> tuple[float, float]:
    """Mean and standard deviation of the dot products of all pairs of at least two rows, in O(n·d²) time.

    >>> pair_statistics(np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]))
    (0.3333333333333333, 0.4714045207910317)
    """
    count = len(unit)
    squares = np.einsum("ij,ij->i", unit, unit)
    total = unit.sum(axis=0)
    gram = unit.T @ unit  # its squared Frobenius norm is that of the large unit @ unit.T
    pairs = count * (count - 1)
    mean = float(total @ total - squares.sum()) / pairs
    variance = float((gram * gram).sum() - (squares * squares).sum()) / pairs - mean * mean
    return mean, sqrt(variance) if variance > _TIE else 0.0


def initial_clusters(count: int, related: Joins, fits: Fits) -> list[Cluster]:
    """Step 1: runs of segments, each related to the next."""
    starts = [0]
    for segment in range(1, count):
        is_related = related((segment - 1, segment), (segment, segment + 1))
        if not (is_related and fits(starts[-1], segment + 1)):
            starts.append(segment)
    return list(pairwise([*starts, count]))


def merged_clusters(clusters: Sequence[Cluster], related: Joins, fits: Fits) -> list[Cluster]:
    """Step 2, in one pass: join related neighbouring clusters."""
    merged: list[Cluster] = []
    waiting = list(clusters)[::-1]
    while waiting:
        cluster = waiting.pop()
        if waiting and related(cluster, waiting[-1]) and fits(cluster[0], waiting[-1][1]):
            cluster = (cluster[0], waiting.pop()[1])
        merged.append(cluster)
    return merged


def _without_single(
    clusters: Sequence[Cluster], alone: Sequence[bool], vectors: Floats, fits: Fits
) -> list[Cluster]:
    """Step 3: join single-sentence clusters with the nearer neighbour."""
    sums = np.concatenate((np.zeros((1, vectors.shape[1])), np.cumsum(vectors, axis=0)))

    def cosine(left: Cluster, right: Cluster) -> float:
        # A sum has the direction of the mean.
        one, other = (sums[end] - sums[first] for first, end in (left, right))
        lengths = sqrt(float(one @ one) * float(other @ other))
        return float(one @ other) / lengths if lengths else 0.0

    merged: list[Cluster] = []
    rest = list(zip(clusters, alone, strict=True))[::-1]
    while rest:
        cluster, is_single = rest.pop()
        neighbours = []
        if is_single and merged and fits(merged[-1][0], cluster[1]):
            neighbours.append(merged[-1])
        if is_single and rest and fits(cluster[0], rest[-1][0][1]):
            neighbours.append(rest[-1][0])
        nearest = max(neighbours, key=partial(cosine, cluster), default=cluster)
        if nearest < cluster:
            merged[-1] = (nearest[0], cluster[1])
        elif nearest > cluster:
            rest[-1] = (cluster[0], nearest[1]), False
        else:
            merged.append(cluster)
    return merged
