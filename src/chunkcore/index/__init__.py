"""Search over chunks."""

from chunkcore.index.dense import DenseIndex
from chunkcore.index.multi_vector import MultiVectorIndex
from chunkcore.index.search import top_k

__all__ = ["DenseIndex", "MultiVectorIndex", "top_k"]
