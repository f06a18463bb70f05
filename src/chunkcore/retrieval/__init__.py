"""Ways of searching chunks: by vectors, by words, by both, and read again."""

from chunkcore.retrieval.base import Searcher, SearchMethod, searches
from chunkcore.retrieval.bm25 import BM25
from chunkcore.retrieval.dense import Dense, Late
from chunkcore.retrieval.hnsw import HNSW
from chunkcore.retrieval.hybrid import Hybrid
from chunkcore.retrieval.pool import Pool
from chunkcore.retrieval.ranked import Ranked
from chunkcore.retrieval.rerank import Reranked
from chunkcore.retrieval.rerankers import CallableReranker, CrossEncoderReranker, Reranker, get_reranker
from chunkcore.retrieval.sharded import Sharded
from chunkcore.retrieval.spec import get_search, parse_search

__all__ = [
    "BM25",
    "HNSW",
    "CallableReranker",
    "CrossEncoderReranker",
    "Dense",
    "Hybrid",
    "Late",
    "Pool",
    "Ranked",
    "Reranked",
    "Reranker",
    "SearchMethod",
    "Searcher",
    "Sharded",
    "get_reranker",
    "get_search",
    "parse_search",
    "searches",
]
