"""`overlap="semantic"`: chunks share what is still on the topic."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from chunkcore.boundaries.sentences import sentence_ranges
from chunkcore.chunkers.semantic import neighbour_distances
from chunkcore.errors import OptionError
from chunkcore.models.base import Embedder, embed
from chunkcore.models.loading import DEFAULT_MODEL, get_embedder
from chunkcore.spans import Ranges
from chunkcore.tokens import Offsets, TokenizedText

__all__ = ["SemanticOverlap", "read_overlap"]

_THRESHOLD = 0.3


@dataclass(frozen=True, kw_only=True)
class SemanticOverlap:
    """Overlap that goes back from a chunk's beginning for as long as the topic stays.

    The chunking survey, "Overlap Methods":
    "Semantic: Include until topic similarity drops". The topic drops between two
    neighbouring sentences whose vectors' cosine similarity is not over the threshold, and a chunk shares nothing that
    stands before the last drop; one that begins inside a sentence shares that sentence's beginning. It shares at most
    half of the chunker's size, and as any overlap only whole pieces that leave room for the next one.

    As an option of a strategy it is also the string "semantic", "semantic:0.4" with a threshold, or
    "semantic:0.4:all-MiniLM-L6-v2" with a model.

    Cost: one call of the model for a text's distinct sentences, then time and memory that grow linearly.

    Attributes:
        threshold: -1 to 1; what is set lets about two of five neighbours of plain prose stay together.
        embedder: the name of a model, as `get_embedder` knows them, or an `Embedder`. Loaded when first used.

    Raises:
        OptionError: the threshold is no cosine similarity, or the embedder's name is empty.

    >>> SemanticOverlap(threshold=0.5).name
    'semantic:0.5'
    """

    threshold: float = _THRESHOLD
    embedder: Embedder | str = DEFAULT_MODEL

    def __post_init__(self) -> None:
        if not -1 <= self.threshold <= 1:
            raise OptionError(f"the threshold of a semantic overlap is -1 to 1, got {self.threshold}")
        if isinstance(self.embedder, str) and not self.embedder.strip():
            raise OptionError("the embedder of a semantic overlap is the name of a model, got an empty one")

    @property
    def name(self) -> str:
        """The shortest string that says the same."""
        model = self.embedder if isinstance(self.embedder, str) else self.embedder.name
        if model != DEFAULT_MODEL:
            return f"semantic:{self.threshold:g}:{model}"
        return "semantic" if self.threshold == _THRESHOLD else f"semantic:{self.threshold:g}"

    @cached_property
    def fingerprint(self) -> str:
        """Changes when the shared text could change, the model included."""
        return f"semantic:{self.threshold!r}:{get_embedder(self.embedder).fingerprint}"

    def drops(self, texts: list[str]) -> NDArray[np.bool_]:
        """Whether the topic drops before each sentence; it does before the first."""
        if len(texts) < 2:
            return np.ones(len(texts), dtype=np.bool_)
        similarity = 1.0 - neighbour_distances(embed(get_embedder(self.embedder), texts))
        return np.append(True, ~(similarity > self.threshold))

    def topics(self, source: TokenizedText) -> Offsets:
        """Where the topics of a text begin: code points, ascending, the white space before a sentence included."""
        parts = source.parts.tolist()
        ranges = [sentence_ranges(source.text[start:end]) + start for start, end in parts]
        sentences: Ranges = np.concatenate(ranges)
        drops = self.drops([source.text[start:end] for start, end in sentences.tolist()])
        # A part's first sentence begins with the part: what ends the part before it is none of its topic.
        own = zip(parts, ranges, strict=True)
        before = np.concatenate([np.append(start, rows[:-1, 1])[: len(rows)] for (start, _), rows in own])
        begins: Offsets = np.union1d(before[drops], source.parts[:, 0])
        return begins

    def allowance(self, source: TokenizedText, topics: Offsets, places: Offsets, size: int) -> Offsets:
        """How many tokens before each place are of the same topic, at most half of `size`."""
        begins = topics[np.searchsorted(topics, places, side="right") - 1]
        before = np.searchsorted(source.boundaries, places) - np.searchsorted(source.boundaries, begins)
        allowed: Offsets = np.minimum(before, size // 2).astype(np.int64)
        return allowed


def read_overlap(value: int | str | SemanticOverlap) -> int | SemanticOverlap:
    """An `overlap` option as chunkers keep it.

    Raises:
        OptionError: a string that is no semantic overlap.

    >>> read_overlap("semantic:0.5").threshold
    0.5
    """
    if not isinstance(value, str):
        return value
    kind, _, rest = value.partition(":")
    threshold, _, model = rest.partition(":")
    try:
        number = float(threshold) if threshold else _THRESHOLD
    except ValueError:
        number = float("nan")
    if kind != "semantic" or number != number:
        raise OptionError(
            f'overlap is a whole number, "semantic", "semantic:<threshold>" or "semantic:<threshold>:<model>", '
            f"got {value!r}"
        )
    return SemanticOverlap(threshold=number, embedder=model or DEFAULT_MODEL)
