"""`get_segmenter`: from a string to a segmenter."""

from __future__ import annotations

from pathlib import Path

from chunkcore.errors import OptionError
from chunkcore.segmenters.base import Segmenter
from chunkcore.segmenters.tagger import SHIPPED, load_tagger
from chunkcore.segmenters.texttiling import TextTiling

__all__ = ["check_segmenter", "get_segmenter"]

_EXPECTED = (
    'expected "tagger", "tagger:<file of weights>", "texttiling", "texttiling:<window>:<deviations>" or a Segmenter'
)


def get_segmenter(spec: str | Segmenter) -> Segmenter:
    """The segmenter that a string names. A `Segmenter` is handed back as it is.

    "tagger" has the weights that ship; "tagger:" and a path has those that ``chunkcore train-segmenter`` wrote there.
    "texttiling" may be followed by its window and its deviations, as in "texttiling:10:1.5".

    Raises:
        OptionError: no such segmenter.
        DataError: a tagger's file is missing, or holds no weights of one.
        MissingExtraError: safetensors, which reads a tagger's file, is not installed.

    >>> get_segmenter("texttiling:10:1.5")
    TextTiling(window=10, deviations=1.5)
    """
    check_segmenter(spec)
    if not isinstance(spec, str):
        return spec
    kind, _, rest = spec.partition(":")
    if kind == "tagger":
        return load_tagger(Path(rest) if rest else SHIPPED)
    return _texttiling(rest)


def check_segmenter(spec: object) -> None:
    """Raise `OptionError` unless this names a segmenter or is one; no file is read."""
    if not isinstance(spec, str):
        if not isinstance(spec, Segmenter):
            raise OptionError(f"a segmenter has a name, a fingerprint and a method starts; got {type(spec).__name__}")
        return
    kind, colon, rest = spec.partition(":")
    if kind not in ("tagger", "texttiling") or bool(colon) != bool(rest):
        raise OptionError(f"unknown segmenter {spec!r}: {_EXPECTED}")
    if kind == "texttiling":
        _texttiling(rest)


def _texttiling(options: str) -> TextTiling:
    if not options:
        return TextTiling()
    window, _, deviations = options.partition(":")
    try:
        numbers = int(window), float(deviations or TextTiling.deviations)
    except ValueError:
        raise OptionError(
            f"texttiling:{options}: expected texttiling:<window>:<deviations>, a whole number of sentences and "
            "a number, as in texttiling:10:1.5"
        ) from None
    try:
        return TextTiling(window=numbers[0], deviations=numbers[1])
    except OptionError as error:
        raise OptionError(f"texttiling:{options}: {error}") from error
