"""Search over chunks."""

from chunkcore.index.dense import DenseIndex
from chunkcore.index.multi_vector import MultiVectorIndex
from chunkcore.index.search import top_k
from chunkcore.index.shards import Shard, top_k_shards
from chunkcore.index.vector_file import VectorFile

__all__ = ["DenseIndex", "MultiVectorIndex", "Shard", "VectorFile", "top_k", "top_k_shards"]
