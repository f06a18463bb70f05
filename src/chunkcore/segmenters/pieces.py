"""What a segmenter is trained on: pieces of texts, drawn and varied anew each epoch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from chunkcore.models.base import Vectors
from chunkcore.segmenters.features import sentence_features
from chunkcore.segmenters.labelled import Labelled

__all__ = ["SHORTEST", "Batch", "Pieces", "whole_texts"]

SHORTEST = 10  # sentences: a shorter piece teaches nothing


class Batch(NamedTuple):
    """Some pieces side by side, padded: all float32.

    Attributes:
        inputs: shape (pieces, sentences, features).
        labels: 1 where a segment begins: shape (pieces, sentences).
        counted: 0 for padding, and for first sentences, where nothing is to be found.
    """

    inputs: Vectors
    labels: Vectors
    counted: Vectors


class Variation(Protocol):
    """What of a `Training` is needed here; see there."""

    @property
    def windows(self) -> tuple[int, ...]: ...
    @property
    def batch(self) -> int: ...
    @property
    def piece(self) -> int: ...
    @property
    def shuffle(self) -> float: ...
    @property
    def splice(self) -> float: ...
    @property
    def thin(self) -> float: ...


class Pieces:
    """The texts to train on.

    A hundred texts have few sections. So each epoch sees them changed: their segments shuffled, some
    replaced by another text's, and sentences left out, which makes places for a segment to begin that no text has.
    """

    def __init__(self, texts: Sequence[Labelled], variation: Variation) -> None:
        self._texts = [_segments(text) for text in texts]
        self._pool = [segment for segments in self._texts for segment in segments]
        self._variation = variation

    def batches(self, random: np.random.Generator) -> Iterator[Batch]:
        """All texts, varied and cut into pieces, in any order."""
        pieces = []
        for segments in self._texts:
            inputs, labels = _prepared(self._varied(segments, random), self._variation.windows)
            first = -int(random.integers(self._variation.piece))
            for start in range(first, len(inputs), self._variation.piece):
                rows = slice(max(0, start), start + self._variation.piece)
                if len(inputs[rows]) >= SHORTEST:
                    pieces.append((inputs[rows], labels[rows]))
        order = random.permutation(len(pieces))
        for start in range(0, len(pieces), self._variation.batch):
            yield _padded([pieces[place] for place in order[start : start + self._variation.batch]])

    def _varied(self, segments: list[Vectors], random: np.random.Generator) -> list[Vectors]:
        if random.random() < self._variation.shuffle:
            segments = [segments[0], *(segments[1 + place] for place in random.permutation(len(segments) - 1))]
        segments = [
            self._pool[random.integers(len(self._pool))] if random.random() < self._variation.splice else segment
            for segment in segments
        ]
        thinned = [
            segment[random.random(len(segment)) >= self._variation.thin * random.random()] for segment in segments
        ]
        return [segment for segment in thinned if len(segment)] or segments


def whole_texts(texts: Sequence[Labelled], variation: Variation) -> list[Batch]:
    """Each text of two sentences or more by itself, as it is."""
    return [_padded([_prepared(_segments(text), variation.windows)]) for text in texts if len(text.vectors) > 1]


def _segments(text: Labelled) -> list[Vectors]:
    return np.split(text.vectors, text.starts)


def _prepared(segments: Sequence[Vectors], windows: tuple[int, ...]) -> tuple[Vectors, Vectors]:
    """Features and labels of a text of these segments."""
    labels = np.zeros(sum(map(len, segments)), dtype=np.float32)
    labels[np.cumsum([len(segment) for segment in segments])[:-1]] = 1.0
    return sentence_features(np.concatenate(segments), windows), labels


def _padded(pieces: Sequence[tuple[Vectors, Vectors]]) -> Batch:
    shape = len(pieces), max(len(labels) for _, labels in pieces)
    batch = Batch(
        np.zeros((*shape, pieces[0][0].shape[1]), np.float32), np.zeros(shape, np.float32), np.zeros(shape, np.float32)
    )
    for row, (inputs, labels) in enumerate(pieces):
        batch.inputs[row, : len(labels)] = inputs
        batch.labels[row, : len(labels)] = labels
        batch.counted[row, 1 : len(labels)] = 1.0
    return batch
