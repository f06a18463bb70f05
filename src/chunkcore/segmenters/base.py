"""The `Segmenter` protocol, the registry `segmenters`, and the check of a segmenter's answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from chunkcore.errors import ModelError, OptionError, echo
from chunkcore.models.base import Embedder, ask_twice
from chunkcore.registry import Registry
from chunkcore.spans import Numbers


@runtime_checkable
class Segmenter(Protocol):
    """Divides a text's sentences into segments, each on one topic.

    Attributes:
        name: the string that `get_segmenter` accepts.
        fingerprint: changes when the segments could change.
    """

    @property
    def name(self) -> str: ...
    @property
    def fingerprint(self) -> str: ...

    def starts(self, sentences: Sequence[str], embedder: Embedder) -> Numbers:
        """Sentences that begin a segment, without the first: ascending, in ``1 .. len(sentences) - 1``.

        `embedder` is the strategy's model, for segmenters that can use it.
        """
        ...


# From the text after "name:" to a function that builds the segmenter; reads no file.
segmenters: Registry[Callable[[str], Callable[[], Segmenter]]] = Registry(
    "segmenter", "chunkcore.segmenters", modules=("chunkcore.segmenters.tagger", "chunkcore.segmenters.texttiling")
)


def get_segmenter(spec: str | Segmenter) -> Segmenter:
    """The segmenter that a string names; a `Segmenter` is returned unchanged.

    "tagger" uses the shipped weights, "tagger:PATH" those of ``chunkcore segments train``. "texttiling" takes an
    optional window and deviations.

    Raises:
        OptionError: no such segmenter.
        DataError: a tagger's file is missing or holds no weights.

    >>> get_segmenter("texttiling:10:1.5")
    TextTiling(window=10, deviations=1.5)
    """
    return _builder(spec)()


def check_segmenter(spec: str | Segmenter) -> None:
    """Raise `OptionError` unless this is a segmenter or names one; no file is read."""
    _builder(spec)


def _builder(spec: str | Segmenter) -> Callable[[], Segmenter]:
    if isinstance(spec, str):
        kind, colon, options = spec.partition(":")
        build = segmenters.find(kind)
        if build is None or bool(colon) != bool(options):
            raise OptionError(
                f'unknown segmenter {echo(spec)}: expected "tagger", "tagger:<file of weights>", "texttiling", '
                f'"texttiling:<window>:<deviations>"{"".join(f", {echo(name)}" for name in segmenters.offered)} '
                "or a Segmenter"
            )
        return build(options)
    if not isinstance(spec, Segmenter):
        raise OptionError(f"a segmenter has a name, a fingerprint and a method starts; got {type(spec).__name__}")
    return lambda: spec


def segment_starts(segmenter: Segmenter, sentences: Sequence[str], embedder: Embedder) -> Numbers:
    """A segmenter's checked answer, from at most two attempts. Raises `ModelError` if both fail."""
    name, count = segmenter.name, len(sentences)
    if count < 2:
        return np.empty(0, dtype=np.int64)

    def check(answer: Any) -> Numbers:
        try:
            array = np.asarray(answer)
        except ValueError:
            array = np.empty((0, 0))
        if not array.size and array.ndim == 1:
            return np.empty(0, dtype=np.int64)
        ascending = array.ndim == 1 and array.dtype.kind in "iu" and bool((np.diff(array.astype(np.int64)) > 0).all())
        if not ascending or not 0 < array[0] <= array[-1] < count:
            raise ModelError(
                f"the segmenter {echo(name)} was given {count} sentences and answered with {str(answer)[:80]}; "
                f"expected ascending whole numbers from 1 to {count - 1}"
            )
        return array.astype(np.int64)

    failed = f"the segmenter {name!r} failed on {count} sentences"
    return ask_twice(lambda: segmenter.starts(sentences, embedder), check, failed)
