"""Strategies over sentence vectors: sentences, their vectors, cosines, and clusters."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from chunkcore.boundaries.sentences import check_splitter, sentence_ranges
from chunkcore.chunkers.base import Chunker
from chunkcore.document import Span
from chunkcore.errors import DataError, OptionError
from chunkcore.models.base import Embedder, Vectors, embed
from chunkcore.models.loading import DEFAULT_MODEL, get_embedder
from chunkcore.options import check_ranges
from chunkcore.packing import pack, running_sizes, split_ranges_to_maximum
from chunkcore.spans import Numbers, Ranges
from chunkcore.tokens import TokenizedText

Floats = NDArray[np.float64]

SENTENCE_END = r"regex:(?<=[.?!])\s+"
_BLOCK_ROWS = 4096


@dataclass(frozen=True, kw_only=True)
class SentenceChunker(Chunker, ABC):
    """A strategy that embeds sentences and cuts between them.

    Attributes:
        splitter: "default", "spacy", "spacy:<pipeline>", "regex:<pattern>", or a callable with a `name`: see
            `sentence_ranges`. The default is that of Kamradt's code: white space after ".", "?" or "!".
        embedder: the name of a model, as `get_embedder` knows them, or an `Embedder`. Loaded when first used.
    """

    splitter: str | Callable[[str], Any] = SENTENCE_END
    embedder: Embedder | str = DEFAULT_MODEL

    def validate(self) -> None:
        check_embedder(self.embedder)
        check_splitter(self.splitter, named=True)

    def models(self) -> Mapping[str, Any]:
        return {"embedder": get_embedder(self.embedder)}

    def _embed(self, texts: list[str]) -> Vectors:
        return embed(get_embedder(self.embedder), texts)


def check_embedder(embedder: Embedder | str) -> None:
    """Raise `OptionError` for an empty name."""
    if isinstance(embedder, str) and not embedder.strip():
        raise OptionError("embedder is the name of a model, got an empty one")


def window_texts(sentences: list[str], buffer: int) -> list[str]:
    """Each sentence with up to `buffer` sentences before and after it, joined by spaces.

    >>> window_texts(["a", "b", "c"], 1)
    ['a b', 'a b c', 'b c']
    """
    return [" ".join(sentences[max(0, place - buffer) : place + buffer + 1]) for place in range(len(sentences))]


def unit_rows(vectors: Vectors) -> Floats:
    """The rows at length 1, float64; zero rows stay zero.

    >>> unit_rows(np.array([[3, 4], [0, 0]], dtype=np.float32)).tolist()
    [[0.6, 0.8], [0.0, 0.0]]
    """
    wide = vectors.astype(np.float64)
    norms = np.sqrt(np.einsum("ij,ij->i", wide, wide))
    norms[norms == 0] = 1.0
    wide /= norms[:, None]
    return wide


def neighbour_distances(vectors: Vectors) -> Floats:
    """1 minus the cosine similarity of each row and the next: float64, shape (n - 1,). O(n·d) time.

    >>> neighbour_distances(np.array([[2, 0], [1, 0], [0, 3]], dtype=np.float32)).tolist()
    [0.0, 1.0]
    """
    distances = np.empty(max(0, len(vectors) - 1))
    for start in range(0, len(distances), _BLOCK_ROWS):
        unit = unit_rows(vectors[start : start + _BLOCK_ROWS + 1])
        distances[start : start + _BLOCK_ROWS] = 1.0 - np.einsum("ij,ij->i", unit[:-1], unit[1:])
    return distances


_BLOCK_BYTES = 2 * 2**20
_MOST_SENTENCES = 100_000


class Sentences(NamedTuple):
    """Sentences to cluster: ranges, shape (n, 2); sizes; unit vectors, shape (n, d)."""

    ranges: Ranges
    sizes: Numbers
    unit: Floats


@dataclass(frozen=True, kw_only=True)
class SentenceClusters(SentenceChunker, ABC):
    """A strategy whose chunks are clusters of sentences, which need not be neighbours.

    A subclass implements `clusters`. Neighbours in a cluster become one span. Chunks can have several spans and
    interleave; they are ordered by start. A sentence over `size` is cut at words, else graphemes, and its parts are
    clustered.

    Attributes:
        splitter: see `SentenceChunker`; the paper uses spaCy.
        position_weight: λ of the paper, 0 (meaning alone) to 1 (position alone).
        size: of a chunk's own text, in the counter's unit; None for no maximum.

    Raises `DataError`: a text of more than 100,000 sentences: their comparison is quadratic.
    """

    splitter: str | Callable[[str], Any] = "default"
    position_weight: float = 0.5
    size: int | None = 200

    def validate(self) -> None:
        super().validate()
        check_ranges(self, position_weight=(0, 1), size=1)

    @property
    def hard_maximum(self) -> int | None:
        return self.size

    @abstractmethod
    def clusters(self, sentences: Sentences) -> NDArray[np.int64]:
        """The number of each sentence's cluster, for at least two sentences."""

    def split(self, source: TokenizedText) -> list[tuple[Span, ...]]:
        ranges = split_ranges_to_maximum(source, sentence_ranges(source.text, self.splitter), self.size)
        if len(ranges) < 2:
            return [(Span(start, end),) for start, end in ranges.tolist()]
        sizes = source.counts(ranges[:, 0], ranges[:, 1])
        if len(ranges) > _MOST_SENTENCES:
            raise DataError(
                f"{self.name}: the text has {len(ranges):,} sentences, and comparing all of over {_MOST_SENTENCES:,} "
                "takes hours: cut the text into documents first"
            )
        unit = unit_rows(self._embed([source.text[start:end] for start, end in ranges.tolist()]))
        clusters = defaultdict(list)
        for sentence, cluster in enumerate(self.clusters(Sentences(ranges, sizes, unit)).tolist()):
            clusters[cluster].append(sentence)
        members = self._bounded(source, ranges, sizes, list(clusters.values()))
        return [_spans(ranges, each) for each in sorted(members)]

    def _bounded(
        self, source: TokenizedText, ranges: Ranges, sizes: Numbers, clusters: list[list[int]]
    ) -> list[list[int]]:
        if self.size is None:
            return clusters
        gap = self._gap
        waiting = [
            cluster[begin:end]
            for cluster in clusters
            for begin, end in pack(running_sizes(sizes[cluster], gap), self.size, gap=gap)
        ]
        members: list[list[int]] = []
        while waiting:
            # The sum over sentences nearly always equals the size of the own text.
            counts = self.token_counter.count_many([self._text(source.text, _spans(ranges, each)) for each in waiting])
            halves: list[list[int]] = []
            for cluster, count in zip(waiting, counts.tolist(), strict=True):
                if count <= self.size or len(cluster) == 1:  # one code point may be over the maximum
                    members.append(cluster)
                else:
                    middle = len(cluster) // 2
                    halves += [cluster[:middle], cluster[middle:]]
            waiting = halves
        return members

    @property
    def _gap(self) -> int:
        return self.token_counter.count(self.separator)


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
    step = max(1, _BLOCK_BYTES // (8 * max(count, 1)))
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
