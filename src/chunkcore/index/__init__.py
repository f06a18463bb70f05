"""Search over chunks."""

from chunkcore.index.dense import DenseIndex
from chunkcore.index.search import top_k

__all__ = ["DenseIndex", "top_k"]
