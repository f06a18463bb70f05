"""Similarity of neighbouring sentences, and the overlap "semantic", which shares the sentences of one topic."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import isnan, nan
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from chunkcore.errors import OptionError, echo
from chunkcore.models.base import Embedder, Vectors, embed, unit_rows
from chunkcore.models.loading import DEFAULT_MODEL, get_embedder

Floats = NDArray[np.float64]

_THRESHOLD = 0.3
_BLOCK_ROWS = 4096


def check_embedder(embedder: Embedder | str) -> None:
    """Raise `OptionError` for an empty name."""
    if isinstance(embedder, str) and not embedder.strip():
        raise OptionError("embedder is the name of a model, got an empty one")


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


@dataclass(frozen=True, kw_only=True)
class SemanticOverlap:
    """Overlap that goes back from a chunk's beginning for as long as the topic stays.

    The chunking survey, "Overlap Methods": "Semantic: Include until topic similarity drops". The topic drops between
    neighbouring sentences whose cosine similarity is not over the threshold. A chunk shares nothing before the last
    drop, and at most half of the chunker's size.

    As an option of a chunker: "semantic", "semantic:0.4" or "semantic:0.4:all-MiniLM-L6-v2".

    Cost: one call of the model for the distinct sentences; then linear time and memory.

    Attributes:
        threshold: -1 to 1; the default keeps about two of five neighbouring sentences of plain prose together.
        embedder: the name of a model, as `get_embedder` knows them, or an `Embedder`. Loaded when first used.

    >>> SemanticOverlap(threshold=0.5).name
    'semantic:0.5'
    """

    threshold: float = _THRESHOLD
    embedder: Embedder | str = DEFAULT_MODEL

    def __post_init__(self) -> None:
        if not -1 <= self.threshold <= 1:
            raise OptionError(
                f"the threshold of a semantic overlap is -1 to 1, got {self.threshold}"
            )
        check_embedder(self.embedder)

    @property
    def name(self) -> str:
        """The shortest string that says it."""
        model = self.embedder if isinstance(self.embedder, str) else self.embedder.name
        if model != DEFAULT_MODEL:
            return f"semantic:{self.threshold:g}:{model}"
        return "semantic" if self.threshold == _THRESHOLD else f"semantic:{self.threshold:g}"

    @cached_property
    def fingerprint(self) -> str:
        return f"semantic:{self.threshold!r}:{get_embedder(self.embedder).fingerprint}"

    def topics(self, sentences: list[str]) -> list[int]:
        """For each sentence the first of its topic."""
        firsts = np.arange(len(sentences))
        if len(sentences) > 1:
            similarity = 1.0 - neighbour_distances(embed(get_embedder(self.embedder), sentences))
            firsts[1:][similarity > self.threshold] = 0
        return cast("list[int]", np.maximum.accumulate(firsts).tolist())


def check_overlap(chunker: Any, most: float) -> None:
    """Read a chunker's option `overlap`: a number from 0 to `most`, or the string of a `SemanticOverlap`.

    >>> from types import SimpleNamespace
    >>> chunker = SimpleNamespace(overlap="semantic:0.5")
    >>> check_overlap(chunker, 9)
    >>> chunker.overlap.name
    'semantic:0.5'
    """
    overlap = chunker.overlap
    if isinstance(overlap, str):
        kind, _, options = overlap.partition(":")
        threshold, _, model = options.partition(":")
        try:
            number = float(threshold or _THRESHOLD) if kind == "semantic" else nan
        except ValueError:
            number = nan
        if isnan(number):
            expected = 'a whole number, "semantic", "semantic:<threshold>" or "semantic:<threshold>:<model>"'
            raise OptionError(f"overlap is {expected}, got {echo(overlap)}")
        object.__setattr__(
            chunker, "overlap", SemanticOverlap(threshold=number, embedder=model or DEFAULT_MODEL)
        )
    elif isinstance(overlap, int) and not 0 <= overlap <= most:
        raise OptionError(f"overlap is at least 0 and at most {most:g}, got {overlap}")
