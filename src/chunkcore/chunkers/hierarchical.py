"""`Hierarchical`: sentences to segments on one topic, related neighbouring segments to chunks that keep them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import sqrt
from typing import Any

import numpy as np

from chunkcore.boundaries.sentences import sentence_ranges
from chunkcore.chunkers.base import Draft, strategies
from chunkcore.chunkers.semantic import Floats, SentenceChunker, unit_rows
from chunkcore.document import Document, Span
from chunkcore.errors import OptionError
from chunkcore.models.loading import get_embedder
from chunkcore.packing import fit_ranges
from chunkcore.registry import check_ranges
from chunkcore.segmenters.base import Segmenter, check_segmenter, get_segmenter, segment_starts
from chunkcore.spans import Ranges
from chunkcore.tokens import TokenizedText

__all__ = ["Hierarchical", "initial_clusters", "merged_clusters", "pair_statistics"]

# A similarity over the threshold by less is over it by rounding.
_TIE = 1e-9

# The first segment of a cluster, and the one after its last.
Cluster = tuple[int, int]
Joins = Callable[[Cluster, Cluster], bool]


@strategies.register("hierarchical")
@dataclass(frozen=True, kw_only=True)
class Hierarchical(SentenceChunker):
    """Clusters of related neighbouring segments: chunks that are found by their parts, or as a whole.

    Nguyen, Nguyen and Nguyen, "Enhancing Retrieval Augmented Generation with Hierarchical Text Segmentation Chunking"
    (2025), section 3.2. A segmenter parts the sentences into segments. Two segments are related if the cosine of their
    vectors is over τ = mean + k · σ of those of all pairs (equation 3). Then

    1. neighbours that are both in a maximal clique of the graph of related segments make the initial clusters;
    2. neighbouring clusters are merged if a clique has a segment of each (Table 1);
    3. a cluster that is a single sentence is merged with the neighbour whose vector is nearer by cosine.

    A cluster is a chunk, and its `segments` are the segments. A cluster's vector is the mean of theirs; the
    retriever `dense` scores a chunk by the best of them all (equation 2).

    Two segments are in one maximal clique exactly if they are related: an edge is a clique, and some maximal clique
    holds it. So cliques, of which there can be exponentially many, are not listed, and only pairs in neighbouring
    clusters are compared. Table 1 merges {1, 2} with {3, 4, 5} by the clique {2, 4, 7}, and not {3, 4, 5} with {6, 7},
    which share it too. So clusters are merged in one pass from the left, each with one neighbour at most. White space
    between segments stays inside a chunk, and is dropped between chunks.

    Attributes:
        k: standard deviations over the mean; less gives larger chunks. The paper set 1.2, 0.7 and 0.4 for 512, 1024 and
            2048 tokens on average.
        segmenter: "tagger", the trained one (see `Tagger`), "tagger:" and a file of weights, "texttiling", the
            unsupervised one (see `TextTiling`), or a `Segmenter`: see `get_segmenter`.
        max_segment: a segment over this, in the counter's unit, is cut between sentences; a sentence over it at words,
            else at graphemes. None, as in the paper, for no maximum but `max_size`. The default is what a model with a
            limit of 256 tokens can read.
        max_size: no chunk's own text is over this: clusters that would be are not merged. None, as in the paper, for no
            maximum.
        splitter: see `SentenceChunker`.
        embedder: see `SentenceChunker`; of sentences, if the segmenter uses it, and of segments.

    Cost: one call of the model for the distinct segments, and the segmenter's for the sentences; then O(n·d²) time and
    O(n·d) memory for n segments of d dimensions, and the segmenter's. There is no n × n matrix.

    Raises:
        OptionError: an option is out of range, or there is no such segmenter.
        DataError: the segmenter's file of weights is missing, or holds no weights.
        SizeError: one grapheme is over `max_segment` or `max_size`.
        ModelError: the model or the segmenter failed twice.
    """

    splitter: str | Callable[[str], Any] = "default"
    segmenter: Segmenter | str = "tagger"
    k: float = 1.2
    max_segment: int | None = 200
    max_size: int | None = 1024

    def validate(self) -> None:
        super().validate()
        check_segmenter(self.segmenter)
        if abs(self.k) == float("inf"):
            raise OptionError(f"k is a finite number, got {self.k}")
        check_ranges(self, max_segment=1, max_size=1)

    @property
    def hard_maximum(self) -> int | None:
        return self.max_size

    def models(self) -> Mapping[str, Any]:
        return {**super().models(), "segmenter": get_segmenter(self.segmenter)}

    def draft(self, source: TokenizedText, document: Document | None) -> list[Draft]:
        segments, sentences = self._segments(source)
        clusters = self._clusters(source, segments, sentences)
        found = []
        for first, end in clusters:
            parts = [(Span(start, stop),) for start, stop in segments[first:end].tolist()]
            found.append(Draft((Span(parts[0][0].start, parts[-1][0].end),), segments=tuple(parts)))
        return found

    def _segments(self, source: TokenizedText) -> tuple[Ranges, list[int]]:
        """The segments, and how many sentences each has."""
        ranges = fit_ranges(source, sentence_ranges(source.text, self.splitter), self._most)
        texts = [source.text[start:end] for start, end in ranges.tolist()]
        edges = [0, len(ranges)] if len(ranges) else []
        if len(ranges) > 1:
            edges[1:1] = segment_starts(get_segmenter(self.segmenter), texts, get_embedder(self.embedder)).tolist()
        parts = [part for first, end in pairwise(edges) for part in self._bounded(source, ranges, first, end)]
        rows = [(ranges[first, 0], ranges[end - 1, 1]) for first, end in parts]
        return np.array(rows, dtype=np.int64).reshape(-1, 2), [end - first for first, end in parts]

    @property
    def _most(self) -> int | None:
        """The most that a segment counts."""
        return min((most for most in (self.max_segment, self.max_size) if most is not None), default=None)

    def _bounded(self, source: TokenizedText, ranges: Ranges, first: int, end: int) -> list[tuple[int, int]]:
        """A segment's sentences, halved until each part fits."""
        waiting, found = [(first, end)], []
        while waiting:
            low, high = waiting.pop()
            start, stop = int(ranges[low, 0]), int(ranges[high - 1, 1])
            if high - low > 1 and self._most is not None and source.count(start, stop) > self._most:
                middle = (low + high) // 2
                waiting += [(middle, high), (low, middle)]
            else:
                found.append((low, high))
        return found

    def _clusters(self, source: TokenizedText, segments: Ranges, sentences: list[int]) -> list[Cluster]:
        """Steps 1 to 3."""
        if len(segments) < 2:
            return [(0, 1)] * len(segments)
        vectors = self._embed([source.text[start:end] for start, end in segments.tolist()])
        unit = unit_rows(vectors)
        mean, deviation = pair_statistics(unit)
        threshold = mean + self.k * deviation

        def related(left: Cluster, right: Cluster) -> bool:
            return bool((unit[slice(*left)] @ unit[slice(*right)].T > threshold + _TIE).any())

        def fit_together(left: Cluster, right: Cluster) -> bool:
            size = self.max_size
            return size is None or source.count(int(segments[left[0], 0]), int(segments[right[1] - 1, 1])) <= size

        clusters = merged_clusters(initial_clusters(len(segments), related, fit_together), related, fit_together)
        alone = [end - first == 1 and sentences[first] == 1 for first, end in clusters]
        return _without_single(clusters, alone, vectors.astype(np.float64), fit_together)


def pair_statistics(unit: Floats) -> tuple[float, float]:
    """Mean and standard deviation of the dot products of all pairs of rows, without making them: O(n·d²) time.

    The products' sum is the product of the rows' sum with itself. The sum of their squares is the squared Frobenius
    norm of ``unit @ unit.T``, which equals that of the d × d matrix ``unit.T @ unit``. The rows' products with
    themselves are subtracted.

    >>> pair_statistics(np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]))
    (0.3333333333333333, 0.4714045207910317)
    """
    count = len(unit)
    if count < 2:
        return 0.0, 0.0
    own = np.einsum("ij,ij->i", unit, unit)
    total, gram = unit.sum(axis=0), unit.T @ unit
    pairs = count * (count - 1)
    mean = float(total @ total - own.sum()) / pairs
    variance = float((gram * gram).sum() - (own * own).sum()) / pairs - mean * mean
    return mean, sqrt(variance) if variance > _TIE else 0.0


def initial_clusters(count: int, related: Joins, fit_together: Joins) -> list[Cluster]:
    """Runs of segments each of which is related to the next: step 1."""
    clusters: list[Cluster] = []
    for segment in range(count):
        one = (segment, segment + 1)
        if clusters and related((segment - 1, segment), one) and fit_together(clusters[-1], one):
            clusters[-1] = (clusters[-1][0], segment + 1)
        else:
            clusters.append(one)
    return clusters


def merged_clusters(clusters: Sequence[Cluster], related: Joins, fit_together: Joins) -> list[Cluster]:
    """Each cluster with its right neighbour, where segments of both are related: step 2, in one pass."""
    found: list[Cluster] = []
    place = 0
    while place < len(clusters):
        pair = clusters[place : place + 2]
        join = len(pair) == 2 and related(*pair) and fit_together(*pair)
        found.append((pair[0][0], pair[-1][1]) if join else pair[0])
        place += 2 if join else 1
    return found


def _without_single(
    clusters: Sequence[Cluster], alone: Sequence[bool], vectors: Floats, fit_together: Joins
) -> list[Cluster]:
    """Each single-sentence cluster joined with the neighbour whose mean vector is nearer: step 3."""
    sums = np.concatenate((np.zeros((1, vectors.shape[1])), np.cumsum(vectors, axis=0)))

    def cosine(left: Cluster, right: Cluster) -> float:
        # A sum points where the mean does.
        one, other = sums[left[1]] - sums[left[0]], sums[right[1]] - sums[right[0]]
        lengths = sqrt(float(one @ one) * float(other @ other))
        return float(one @ other) / lengths if lengths else 0.0

    found: list[Cluster] = []
    rest = list(zip(clusters, alone, strict=True))[::-1]
    while rest:
        cluster, single = rest.pop()
        left = found[-1] if single and found and fit_together(found[-1], cluster) else None
        right = rest[-1][0] if single and rest and fit_together(cluster, rest[-1][0]) else None
        if left and (not right or cosine(left, cluster) >= cosine(cluster, right)):
            found[-1] = (left[0], cluster[1])
        elif right:
            rest[-1] = (cluster[0], right[1]), False
        else:
            found.append(cluster)
    return found
