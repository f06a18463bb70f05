"""`get_segmenter`: from a string to a segmenter."""

from __future__ import annotations

from chunkcore.errors import OptionError
from chunkcore.segmenters.base import Segmenter
from chunkcore.segmenters.texttiling import TextTiling

__all__ = ["get_segmenter"]

_EXPECTED = 'expected "texttiling", "texttiling:<window>:<deviations>" or a Segmenter'


def get_segmenter(spec: str | Segmenter) -> Segmenter:
    """The segmenter that a string names. A `Segmenter` is handed back as it is.

    "texttiling" may be followed by its window and its deviations, as in "texttiling:10:1.5".

    Raises:
        OptionError: no such segmenter.

    >>> get_segmenter("texttiling:10:1.5")
    TextTiling(window=10, deviations=1.5)
    """
    if not isinstance(spec, str):
        if isinstance(spec, Segmenter):
            return spec
        raise OptionError(f"a segmenter has a name, a fingerprint and a method starts; got {type(spec).__name__}")
    kind, _, rest = spec.partition(":")
    if kind == "texttiling":
        return _texttiling(rest) if rest else TextTiling()
    raise OptionError(f"unknown segmenter {spec!r}: {_EXPECTED}")


def _texttiling(options: str) -> TextTiling:
    window, _, deviations = options.partition(":")
    try:
        return TextTiling(window=int(window), deviations=float(deviations or TextTiling.deviations))
    except ValueError as error:
        raise OptionError(f"texttiling:{options}: {error}; {_EXPECTED}") from error
