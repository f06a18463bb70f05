"""Ways of searching chunks: by vectors, by words, by both, and read again."""

from chunkcore.retrieval.base import Hits, Index, Pool, RetrievalMethod, retrievers
from chunkcore.retrieval.dense import Dense, Late
from chunkcore.retrieval.hnsw import HNSW
from chunkcore.retrieval.hybrid import Hybrid, get_retriever
from chunkcore.retrieval.lexical import BM25
from chunkcore.retrieval.rerank import CallableReranker, CrossEncoderReranker, Reranked, Reranker, get_reranker
from chunkcore.retrieval.sharded import Sharded

__all__ = [
    "BM25",
    "HNSW",
    "CallableReranker",
    "CrossEncoderReranker",
    "Dense",
    "Hits",
    "Hybrid",
    "Index",
    "Late",
    "Pool",
    "Reranked",
    "Reranker",
    "RetrievalMethod",
    "Sharded",
    "get_reranker",
    "get_retriever",
    "retrievers",
]
