"""Where a text's topic changes: the unsupervised segmenter and the trained one."""

from chunkcore.segmenters.base import Segmenter, segment_starts
from chunkcore.segmenters.loading import get_segmenter
from chunkcore.segmenters.tagger import Tagger
from chunkcore.segmenters.texttiling import TextTiling

__all__ = ["Segmenter", "Tagger", "TextTiling", "get_segmenter", "segment_starts"]
