"""Texts whose segments are known: read, embedded, and parted into those to train on, to choose by and to test on."""

from __future__ import annotations

import json
import reprlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np

from chunkcore.boundaries.sentences import sentence_ranges
from chunkcore.document import Document
from chunkcore.errors import DataError
from chunkcore.evaluation.benchmarks.loading import segmented_rows
from chunkcore.models.base import Embedder, Vectors, embed
from chunkcore.segmenters.base import Starts
from chunkcore.segmenters.tagger import sentence_features

__all__ = [
    "SHORTEST",
    "Batch",
    "Labelled",
    "LabelledText",
    "Parts",
    "Pieces",
    "embed_texts",
    "labelled_texts",
    "load_labelled",
    "part_of",
    "split_texts",
    "whole_texts",
]

Part = Literal["train", "dev", "test"]


class LabelledText(NamedTuple):
    """A text's sentences, and which of them begin a segment (the first is left out).

    `ranges` are the sentences' offsets in `text`, int64, shape (sentences, 2), and `boundaries` those at which segments
    begin, but for the first.
    """

    id: str
    sentences: tuple[str, ...]
    starts: Starts
    text: str
    ranges: Starts
    boundaries: Starts


class Labelled(NamedTuple):
    """The same with vectors in the place of sentences: shape (n, d)."""

    id: str
    vectors: Vectors
    starts: Starts


class Parts(NamedTuple):
    """Texts to train on, to choose the best epoch and threshold by, and to test on."""

    train: list[Labelled]
    dev: list[Labelled]
    test: list[Labelled]


def load_labelled(path: Path, *, layout: str = "auto") -> list[LabelledText]:
    """The texts of a JSON-lines file: ``{"id", "text", "boundaries"}`` a line, and optionally ``"sentences"``.

    A path of another layout whose sections are known is read as `load_segmented` does: Wiki-727k, WIKI-50, Choi, QMSum.

    `boundaries` are the offsets in code points at which sections begin, but for the first; `sentences` are pairs of
    offsets, and found by the default splitter where they are missing. Both ascend. A boundary inside a sentence counts
    for the next one.

    Raises:
        DataError: the file cannot be read, a line is none of these, or its offsets are not in its text or not in order.
        OptionError: no layout has this name, or it tells no sections.
    """
    texts = [_labelled(row, place) for place, row in segmented_rows(path, layout)]
    if not texts:
        raise DataError(f"{path} holds no texts: expected one a line")
    return texts


def labelled_texts(documents: Iterable[Document]) -> list[LabelledText]:
    """The same of documents with ``metadata["boundaries"]``, and optionally ``"sentences"``, as `load_segmented` gives.

    Raises:
        DataError: a document has no boundaries, or offsets that are not in its text or not in order.
    """
    keys = ("boundaries", "sentences")
    rows = [
        {"id": each.id, "text": each.text, **{key: each.metadata[key] for key in keys if key in each.metadata}}
        for each in documents
    ]
    return [_labelled(row, f"document {row['id']!r}") for row in rows]


def _labelled(row: Mapping[str, Any], place: str) -> LabelledText:
    missing = [key for key in ("id", "text", "boundaries") if key not in row]
    if missing:
        raise DataError(
            f'{place}: expected {{"id", "text", "boundaries"}}, got no {" and no ".join(missing)}; '
            f"there is {', '.join(row) or 'nothing'}"
        )
    name, text = row["id"], row["text"]
    if not isinstance(name, str) and type(name) is not int:
        raise DataError(f'{place}: expected "id" to be a string or a whole number, got {_shown(name)}')
    if not isinstance(text, str):
        raise DataError(f'{place}: expected "text" to be a string, got {_shown(text)}')
    boundaries = np.array(_boundaries(row["boundaries"], text, place), dtype=np.int64)
    given = row.get("sentences")
    ranges = sentence_ranges(text) if given is None else np.array(_sentences(given, text, place), dtype=np.int64)
    ranges = ranges.reshape(-1, 2)
    starts = np.unique(np.searchsorted(ranges[:, 0], boundaries, side="left"))
    sentences = tuple(text[start:end] for start, end in ranges.tolist())
    starts = starts[(starts > 0) & (starts < len(ranges))]
    return LabelledText(str(name), sentences, starts, text, ranges, boundaries)


def _boundaries(given: object, text: str, place: str) -> list[int]:
    expected = (
        f'{place}: expected "boundaries" to be ascending offsets inside the text, which has {len(text)} characters'
    )
    if not isinstance(given, list):
        raise DataError(f"{expected}; got {_shown(given)}")
    before = -1
    for each in given:
        if type(each) is not int or not before < each < len(text):
            raise DataError(f"{expected}; got {_shown(each)}{f' after {before}' if before >= 0 else ''}")
        before = each
    return given


def _sentences(given: object, text: str, place: str) -> list[list[int]]:
    expected = (
        f'{place}: expected "sentences" to be pairs [start, end] of offsets, in order, that do not overlap or lie '
        f"outside the text, which has {len(text)} characters"
    )
    if not isinstance(given, list):
        raise DataError(f"{expected}; got {_shown(given)}")
    before = 0
    for pair in given:
        numbers = isinstance(pair, list) and [type(each) for each in pair] == [int, int]
        if not numbers or not before <= pair[0] < pair[1] <= len(text):
            raise DataError(f"{expected}; got {_shown(pair)}{f' after one that ends at {before}' if before else ''}")
        before = pair[1]
    return given


def _shown(value: object) -> str:
    """A JSON value, cut where it is long."""
    if isinstance(value, list | dict):
        return reprlib.repr(value)  # which also stops at a depth
    written = json.dumps(value)
    return written if len(written) <= 40 else f"{written[:39]}…"


def embed_texts(texts: Sequence[LabelledText], embedder: Embedder) -> list[Labelled]:
    """The texts with their sentences' vectors, from one call of the model for all of them.

    Raises:
        ModelError: the model failed, or answered with something that is no answer, twice.
    """
    vectors = embed(embedder, [sentence for text in texts for sentence in text.sentences])
    ends = np.cumsum([len(text.sentences) for text in texts])
    parts = np.split(vectors, ends[:-1])
    return [Labelled(text.id, part, text.starts) for text, part in zip(texts, parts, strict=True)]


def split_texts(texts: Iterable[Labelled], seed: int) -> Parts:
    """Six tenths of the texts to train on, two to choose by, two to test on: by a hash of the seed and the id.

    A text's part depends on no other text, so that more texts move none from one part to another.

    >>> none = np.empty((0, 2), dtype=np.float32)
    >>> parts = split_texts([Labelled(str(n), none, np.empty(0, dtype=np.int64)) for n in range(1000)], seed=0)
    >>> [len(part) for part in parts]
    [609, 186, 205]
    """
    parts = Parts([], [], [])
    for text in texts:
        getattr(parts, part_of(text.id, seed)).append(text)
    return parts


def part_of(name: str, seed: int) -> Part:
    """Which part a text of this id is in."""
    hashed = blake2b(name.encode("utf-8", "surrogatepass"), digest_size=4, salt=seed.to_bytes(8, "little"))
    tenth = int.from_bytes(hashed.digest(), "big") % 10
    return "train" if tenth < 6 else "dev" if tenth < 8 else "test"


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
