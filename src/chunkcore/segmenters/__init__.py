"""Segmenters: where a text's topic changes."""

from chunkcore.segmenters.base import Segmenter, check_segmenter, get_segmenter, segment_starts, segmenters
from chunkcore.segmenters.tagger import Tagger
from chunkcore.segmenters.texttiling import TextTiling

__all__ = ["Segmenter", "Tagger", "TextTiling", "check_segmenter", "get_segmenter", "segment_starts", "segmenters"]
