"""What strategies over sentence vectors share: where sentences and their vectors come from, and cosines."""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chunkcore.boundaries.sentences import check_splitter
from chunkcore.chunkers.base import Chunker
from chunkcore.errors import OptionError
from chunkcore.models.base import Embedder, Vectors
from chunkcore.models.checks import embed
from chunkcore.models.loading import DEFAULT_MODEL, get_embedder

__all__ = [
    "SENTENCE_END",
    "Floats",
    "SentenceChunker",
    "neighbour_distances",
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

    def _validate(self) -> None:
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
