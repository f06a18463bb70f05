"""The strategies, one file each; importing this registers them all."""

from chunkcore.chunkers.base import Chunker, build_chunker, register, strategies
from chunkcore.chunkers.cluster_semantic import ClusterSemantic
from chunkcore.chunkers.fixed_token import FixedToken
from chunkcore.chunkers.recursive import Recursive
from chunkcore.chunkers.spec import format_chunker, label, parse_chunker

__all__ = [
    "Chunker",
    "ClusterSemantic",
    "FixedToken",
    "Recursive",
    "build_chunker",
    "format_chunker",
    "label",
    "parse_chunker",
    "register",
    "strategies",
]
