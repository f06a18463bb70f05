"""What strategies over sentence vectors share: where sentences and their vectors come from, and cosines."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from chunkcore.boundaries.sentences import check_splitter, sentence_ranges
from chunkcore.chunkers.base import Chunker
from chunkcore.document import Span
from chunkcore.errors import OptionError
from chunkcore.models.base import Embedder, Vectors, embed
from chunkcore.models.loading import DEFAULT_MODEL, get_embedder
from chunkcore.packing import fit_ranges, pack, running_sizes
from chunkcore.spans import Numbers, Ranges
from chunkcore.tokens import TokenizedText

__all__ = [
    "SENTENCE_END",
    "Floats",
    "SentenceChunker",
    "SentenceClusters",
    "Sentences",
    "joint_distances",
    "neighbour_distances",
    "row_blocks",
    "unit_rows",
    "window_texts",
]

Floats = NDArray[np.float64]

SENTENCE_END = r"regex:(?<=[.?!])\s+"
_BLOCK_ROWS = 4096


@dataclass(frozen=True, kw_only=True)
class SentenceChunker(Chunker, ABC):
    """A strategy that cuts between sentences, by what a model makes of them.

    Attributes:
        splitter: "default", "spacy", "spacy:<pipeline>", "regex:<pattern>", or a callable with a `name`: see
            `sentence_ranges`. Set is what Kamradt's code has: white space after ".", "?" or "!".
        embedder: the name of a model, as `get_embedder` knows them, or an `Embedder`. Loaded when first used.
    """

    splitter: str | Callable[[str], Any] = SENTENCE_END
    embedder: Embedder | str = DEFAULT_MODEL

    def validate(self) -> None:
        if isinstance(self.embedder, str) and not self.embedder.strip():
            raise OptionError("embedder is the name of a model, got an empty one")
        check_splitter(self.splitter, named=True)

    @cached_property
    def fingerprint(self) -> str:
        """16 hexadecimal digits that change when anything changes that changes the chunks, the model included."""
        if isinstance(self.embedder, str):
            return replace(self, embedder=get_embedder(self.embedder)).fingerprint
        return super().fingerprint

    def _embed(self, texts: list[str]) -> Vectors:
        """One row a text: the model is asked once, for the distinct texts."""
        return embed(get_embedder(self.embedder), texts)


def window_texts(sentences: list[str], buffer: int) -> list[str]:
    """Each sentence with up to `buffer` sentences before and after it, joined by spaces.

    >>> window_texts(["a", "b", "c"], 1)
    ['a b', 'a b c', 'b c']
    """
    return [" ".join(sentences[max(0, place - buffer) : place + buffer + 1]) for place in range(len(sentences))]


def unit_rows(vectors: Vectors) -> Floats:
    """The rows at length 1, float64. A row of zeros stays one, and is similar to none.

    >>> unit_rows(np.array([[3, 4], [0, 0]], dtype=np.float32)).tolist()
    [[0.6, 0.8], [0.0, 0.0]]
    """
    wide = vectors.astype(np.float64)
    norms = np.sqrt(np.einsum("ij,ij->i", wide, wide))
    norms[norms == 0] = 1.0
    wide /= norms[:, None]
    return wide


def neighbour_distances(vectors: Vectors) -> Floats:
    """1 less the cosine similarity of each row to the next: float64, one less than rows. O(n·d) time.

    >>> neighbour_distances(np.array([[2, 0], [1, 0], [0, 3]], dtype=np.float32)).tolist()
    [0.0, 1.0]
    """
    distances = np.empty(max(0, len(vectors) - 1))
    for start in range(0, len(distances), _BLOCK_ROWS):
        unit = unit_rows(vectors[start : start + _BLOCK_ROWS + 1])
        distances[start : start + _BLOCK_ROWS] = 1.0 - np.einsum("ij,ij->i", unit[:-1], unit[1:])
    return distances


_BLOCK_BYTES = 2 * 2**20


class Sentences(NamedTuple):
    """What is clustered.

    Attributes:
        ranges: where each is, shape (n, 2).
        sizes: of each, in the counter's unit.
        unit: their vectors at length 1, shape (n, d).
    """

    ranges: Ranges
    sizes: Numbers
    unit: Floats


@dataclass(frozen=True, kw_only=True)
class SentenceClusters(SentenceChunker, ABC):
    """A strategy whose chunks are clusters of sentences, which need not be neighbours.

    A subclass implements `_clusters`. Neighbours in a cluster become one span, with the white space between them.
    """

    splitter: str | Callable[[str], Any] = "default"
    position_weight: float = 0.5
    max_size: int | None = 200

    def validate(self) -> None:
        super().validate()
        if not 0 <= self.position_weight <= 1:
            raise OptionError(f"position_weight is at least 0 and at most 1, got {self.position_weight}")
        if self.max_size is not None and self.max_size < 1:
            raise OptionError(f"max_size is at least 1, or null for none, got {self.max_size}")

    @property
    def hard_maximum(self) -> int | None:
        return self.max_size

    @abstractmethod
    def _clusters(self, sentences: Sentences) -> NDArray[np.int64]:
        """A number a sentence, the same for those that belong together; there are at least two sentences."""

    def split(self, source: TokenizedText) -> list[tuple[Span, ...]]:
        ranges = fit_ranges(source, sentence_ranges(source.text, self.splitter), self.max_size)
        if len(ranges) < 2:
            return [(Span(start, end),) for start, end in ranges.tolist()]
        sizes = source.counts(ranges[:, 0], ranges[:, 1])
        unit = unit_rows(self._embed([source.text[start:end] for start, end in ranges.tolist()]))
        clusters = defaultdict(list)
        for sentence, cluster in enumerate(self._clusters(Sentences(ranges, sizes, unit)).tolist()):
            clusters[cluster].append(sentence)
        members = self._bounded(source, ranges, sizes, list(clusters.values()))
        return [_spans(ranges, each) for each in sorted(members)]

    def _bounded(
        self, source: TokenizedText, ranges: Ranges, sizes: Numbers, clusters: list[list[int]]
    ) -> list[list[int]]:
        """The clusters, those over `max_size` in parts: their sentences packed in order."""
        if self.max_size is None:
            return clusters
        gap = self._gap
        waiting = [
            cluster[begin:end]
            for cluster in clusters
            for begin, end in pack(running_sizes(sizes[cluster], gap), self.max_size, gap=gap)
        ]
        found: list[list[int]] = []
        while waiting:
            # Sums over sentences foresee a chunk's own text, but for rare white space and tokens.
            counts = self.token_counter.count_many([self._text(source.text, _spans(ranges, each)) for each in waiting])
            fits = (counts <= self.max_size).tolist()
            found += [each for each, fitting in zip(waiting, fits, strict=True) if fitting]
            over = [each for each, fitting in zip(waiting, fits, strict=True) if not fitting]
            waiting = [half for each in over for half in (each[: len(each) // 2], each[len(each) // 2 :])]
        return found

    @property
    def _gap(self) -> int:
        """What stands between two sentences of a chunk counts this much."""
        return self.token_counter.count(self.separator)


def joint_distances(unit: Floats, weight: float, rows: slice, first: int = 0) -> Floats:
    """Distances of some sentences to those from `first` on: equations 1 to 3, float64.

    ``weight · |a - b| / n + (1 - weight) · (1 - max(cos(a, b), 0))`` for n sentences; between 0 and 1.

    >>> unit = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [1.0, 0.0]])
    >>> joint_distances(unit, 0.5, slice(0, 1)).tolist()
    [[0.0, 0.625, 0.75, 0.375]]
    """
    count = len(unit)
    distances = unit[rows] @ unit[first:].T
    np.clip(distances, 0.0, 1.0, out=distances)
    np.subtract(1.0, distances, out=distances)
    distances *= 1.0 - weight
    places = np.arange(count)
    distances += weight * (np.abs(places[rows, None] - places[first:]) / count)
    return distances


def row_blocks(count: int) -> Iterator[slice]:
    """Slices of rows of a square matrix of float64 that take about 2 MiB each."""
    step = max(1, _BLOCK_BYTES // (8 * count))
    for start in range(0, count, step):
        yield slice(start, min(start + step, count))


def _spans(ranges: Ranges, members: Sequence[int]) -> tuple[Span, ...]:
    """The spans of sentences in order: one for each run of neighbours."""
    runs: list[list[int]] = []
    for sentence in members:
        if runs and runs[-1][1] == sentence - 1:
            runs[-1][1] = sentence
        else:
            runs.append([sentence, sentence])
    return tuple(Span(int(ranges[first, 0]), int(ranges[last, 1])) for first, last in runs)
