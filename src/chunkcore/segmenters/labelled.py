"""Texts whose segments are known: read, embedded, and parted into those to train on, to choose by and to test on."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from chunkcore.boundaries.sentences import sentence_ranges
from chunkcore.errors import DataError
from chunkcore.models.base import Embedder, Vectors
from chunkcore.models.checks import embed
from chunkcore.segmenters.base import Starts

__all__ = ["Labelled", "LabelledText", "Parts", "embed_texts", "load_labelled", "part_of", "split_texts"]

Part = Literal["train", "dev", "test"]


class LabelledText(NamedTuple):
    """A text's sentences, and which of them begin a segment (the first is left out)."""

    id: str
    sentences: tuple[str, ...]
    starts: Starts


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


def load_labelled(path: Path) -> list[LabelledText]:
    """The texts of a JSON-lines file: ``{"id", "text", "boundaries"}`` a line, and optionally ``"sentences"``.

    `boundaries` are the offsets in code points at which sections begin, but for the first; `sentences` are pairs of
    offsets, and found by the default splitter where they are missing. A boundary inside a sentence counts for the
    next one.

    Raises:
        DataError: the file cannot be read or a line is none of these.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{str(path)!r} cannot be read: {error}") from error
    texts = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            texts.append(_labelled(json.loads(line)))
        except (AttributeError, KeyError, TypeError, ValueError, IndexError) as error:
            raise DataError(
                f'{str(path)!r}, line {number}: expected {{"id", "text", "boundaries"}} and optionally "sentences", '
                f"got {type(error).__name__}: {error}"
            ) from error
    if not texts:
        raise DataError(f"{str(path)!r} holds no texts: expected one a line")
    return texts


def _labelled(row: dict[str, Any]) -> LabelledText:
    text = row["text"]
    given = row.get("sentences")
    ranges = sentence_ranges(text) if given is None else np.array(given, dtype=np.int64).reshape(-1, 2)
    boundaries = np.array(row["boundaries"], dtype=np.int64)
    starts = np.unique(np.searchsorted(ranges[:, 0], boundaries, side="left"))
    sentences = tuple(text[start:end] for start, end in ranges.tolist())
    return LabelledText(str(row["id"]), sentences, starts[(starts > 0) & (starts < len(ranges))])


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
