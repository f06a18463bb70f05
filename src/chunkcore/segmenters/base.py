"""The `Segmenter` protocol, the registry `segmenters`, and the check of a segmenter's answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from chunkcore.errors import ModelError, OptionError, echo
from chunkcore.models.base import Embedder, Vectors, ask_twice, embed, row_lengths, unit_rows
from chunkcore.options import LARGEST, check_number
from chunkcore.registry import Registry
from chunkcore.spans import Numbers

Floats = NDArray[np.float64]


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
        """Sentences that begin a segment, ascending, without the first; `embedder` is the chunker's model."""
        ...


# From the text after "name:" to a function that builds the segmenter; reads no file.
segmenters: Registry[Callable[[str], Callable[[], Segmenter]]] = Registry(
    "segmenter",
    "chunkcore.segmenters",
    places={"tagger": "chunkcore.segmenters.tagger:_read"},
)


def get_segmenter(spec: str | Segmenter) -> Segmenter:
    """The segmenter that a string names; a `Segmenter` is returned unchanged.

    "tagger" uses the shipped weights; "texttiling" takes an optional window and deviations.
    Raises `OptionError`: no such segmenter.

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
                f'unknown segmenter {echo(spec)}: expected "tagger", "texttiling", '
                f'"texttiling:<window>:<deviations>"{"".join(f", {echo(name)}" for name in segmenters.offered)} '
                "or a Segmenter"
            )
        return build(options)
    if not isinstance(spec, Segmenter):
        raise OptionError(
            f"a segmenter has a name, a fingerprint and a method starts; got {type(spec).__name__}"
        )
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
        ascending = (
            array.ndim == 1
            and array.dtype.kind in "iu"
            and bool((np.diff(array.astype(np.int64)) > 0).all())
        )
        if not ascending or not 0 < array[0] <= array[-1] < count:
            raise ModelError(
                f"the segmenter {echo(name)} is to give numbers up to {count - 1}, ascending; got {str(answer)[:80]}"
            )
        return array.astype(np.int64)

    failed = f"the segmenter {name!r} failed on {count} sentences"
    return ask_twice(lambda: segmenter.starts(sentences, embedder), check, failed)


@dataclass(frozen=True, kw_only=True)
class TextTiling:
    """An unsupervised segmenter on sentence vectors.

    Hearst, "TextTiling" (1997), section 4. At each gap the blocks on both sides are compared by cosine. A gap's depth
    is how far its similarity lies below the nearest peaks. A segment begins at each local maximum of depth over ``mean
    + deviations · σ``. Hearst uses word counts and ``mean - σ / 2``; here a block is the mean of its sentence vectors.
    The defaults had the lowest Pk on Wikipedia articles.

    Attributes:
        window: sentences in a block; at least 1.
        deviations: standard deviations over the mean depth.

    Cost: one call of the model for the distinct sentences; O(n·d) time and memory.

    >>> TextTiling(window=1, deviations=0.0).find(np.eye(2)[[0, 0, 0, 1, 1, 1]]).tolist()
    [3]
    """

    window: int = 15
    deviations: float = 2.0

    def __post_init__(self) -> None:
        check_number("window", self.window, 1)
        check_number("deviations", self.deviations, -LARGEST, whole=False)

    @property
    def name(self) -> str:
        return f"texttiling:{self.window}:{self.deviations!r}"

    @property
    def fingerprint(self) -> str:
        return self.name

    def starts(self, sentences: Sequence[str], embedder: Embedder) -> Numbers:
        return self.find(embed(embedder, sentences))

    def find(self, vectors: Vectors | Floats) -> Numbers:
        if len(vectors) < 2:
            return np.empty(0, dtype=np.int64)
        gap_depths = depths(block_similarities(vectors, self.window))
        return peaks(gap_depths, gap_depths.mean() + self.deviations * gap_depths.std()) + 1


@segmenters.register("texttiling")
def _read(options: str) -> Callable[[], TextTiling]:
    """Depths of similarity between blocks of sentences (Hearst, 1997): texttiling:WINDOW:DEVIATIONS."""
    window, _, deviations = options.partition(":")
    try:
        tiling = TextTiling(
            window=int(window or TextTiling.window),
            deviations=float(deviations or TextTiling.deviations),
        )
    except OptionError as error:
        raise OptionError(f"texttiling:{options}: {error}") from error
    except ValueError:
        raise OptionError(
            f"texttiling:{options}: expected two numbers, as in texttiling:10:1.5"
        ) from None
    return lambda: tiling


def block_similarities(vectors: Vectors | Floats, window: int) -> Floats:
    """At each gap, the cosine of the sums of up to `window` unit rows before and after it: shape (n - 1,).

    >>> block_similarities(np.eye(2)[[0, 0, 1, 1]], 2).tolist()
    [0.7071067811865475, 0.0, 0.7071067811865475]
    """
    count = len(vectors)
    unit = unit_rows(vectors)
    sums = np.zeros((count + 1, unit.shape[1]))
    np.cumsum(unit, axis=0, out=sums[1:])
    gaps = np.arange(1, count)
    left = sums[gaps] - sums[np.maximum(0, gaps - window)]
    right = sums[np.minimum(count, gaps + window)] - sums[gaps]
    products: Floats = (
        np.einsum("ij,ij->i", left, right) / (row_lengths(left) * row_lengths(right))[:, 0]
    )
    return products


def depths(similarities: Floats) -> Floats:
    """How far each value lies below the peaks on its left and right, summed.

    >>> depths(np.array([0.9, 0.5, 0.6, 0.4, 0.8])).round(6).tolist()
    [0.0, 0.5, 0.0, 0.6, 0.0]
    """
    return _climbed(similarities) + _climbed(similarities[::-1])[::-1] - 2 * similarities


def _climbed(values: Floats) -> Floats:
    """For each value, the peak reached by stepping left while values do not fall."""
    reached = values.copy()
    for place in range(1, len(values)):
        if values[place - 1] >= values[place]:
            reached[place] = reached[place - 1]
    return reached


def peaks(values: Vectors | Floats, threshold: float) -> Numbers:
    """The places of values over the threshold without a higher neighbour; of equal neighbours, the last.

    >>> peaks(np.array([0.1, 0.4, 0.8, 0.2, 0.6], dtype=np.float32), 0.5).tolist()
    [2, 4]
    """
    before = np.concatenate(([-1.0], values[:-1]))
    after = np.concatenate((values[1:], [-1.0]))
    return np.flatnonzero((values > threshold) & (values >= before) & (values > after))
