"""What finds the places where a text's topic changes, as a protocol, and the check of what it answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from chunkcore.errors import ChunkcoreError, ModelError
from chunkcore.models.base import Embedder
from chunkcore.spans import Numbers

__all__ = ["Segmenter", "segment_starts"]


@runtime_checkable
class Segmenter(Protocol):
    """Parts a text's sentences into segments, each on one topic.

    Attributes:
        name: what it was built from, so that a configuration can name it.
        fingerprint: changes when its segments could change.
    """

    @property
    def name(self) -> str: ...
    @property
    def fingerprint(self) -> str: ...

    def starts(self, sentences: Sequence[str], embedder: Embedder) -> Numbers:
        """The sentences that begin a segment, but for the first: ascending, in ``1 .. len(sentences) - 1``.

        `embedder` is the asking strategy's; using it, where its vectors will do, saves loading another.
        """
        ...


def segment_starts(segmenter: Segmenter, sentences: Sequence[str], embedder: Embedder) -> Numbers:
    """A segmenter's answer, looked at. Fewer than two sentences are one segment without asking.

    Raises:
        ModelError: it failed, or what it answered is no ascending list of sentences, twice.
    """
    if len(sentences) < 2:
        return np.empty(0, dtype=np.int64)
    try:
        return _ask(segmenter, sentences, embedder)
    except ModelError:
        return _ask(segmenter, sentences, embedder)


def _ask(segmenter: Segmenter, sentences: Sequence[str], embedder: Embedder) -> Numbers:
    try:
        answer = segmenter.starts(sentences, embedder)
    except ChunkcoreError:
        raise
    except Exception as error:
        raise ModelError(
            f"the segmenter {segmenter.name!r} failed on {len(sentences)} sentences: {type(error).__name__}: {error}"
        ) from error
    return _checked(answer, len(sentences), segmenter.name)


def _checked(answer: Any, count: int, name: str) -> Numbers:
    try:
        array = np.asarray(answer)
    except ValueError:
        array = np.empty((0, 0))
    if not array.size and array.ndim == 1:
        return np.empty(0, dtype=np.int64)
    ascending = array.ndim == 1 and array.dtype.kind in "iu" and bool((np.diff(array.astype(np.int64)) > 0).all())
    if not ascending or not 0 < array[0] <= array[-1] < count:
        raise ModelError(
            f"the segmenter {name!r} was given {count} sentences and answered with {str(answer)[:80]}; expected "
            f"ascending whole numbers from 1 to {count - 1}"
        )
    return array.astype(np.int64)
