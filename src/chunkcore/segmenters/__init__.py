"""Segmenters: where a text's topic changes."""

from chunkcore.segmenters.base import (
    Segmenter,
    TextTiling,
    check_segmenter,
    get_segmenter,
    segment_starts,
    segmenters,
)
from chunkcore.segmenters.tagger import Tagger

__all__ = [
    "Segmenter",
    "Tagger",
    "TextTiling",
    "check_segmenter",
    "get_segmenter",
    "segment_starts",
    "segmenters",
]
