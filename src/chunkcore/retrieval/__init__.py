"""Retrieval: a corpus of chunks, and the methods that index and search it (vectors, words, both, reranked)."""

from chunkcore.retrieval.assembly import assemble
from chunkcore.retrieval.base import Hits, Index, PassageIndex, RetrievalMethod, SearchRecall, retrievers
from chunkcore.retrieval.corpus import ChunkedCorpus, cut
from chunkcore.retrieval.dense import Dense, Late, Sharded
from chunkcore.retrieval.hnsw import HNSW
from chunkcore.retrieval.hybrid import Hybrid, Reranked, get_retriever
from chunkcore.retrieval.lexical import BM25
from chunkcore.retrieval.rerank import CallableReranker, CrossEncoderReranker, Reranker, get_reranker
from chunkcore.retrieval.vectors import TextVectors

__all__ = [
    "BM25",
    "HNSW",
    "CallableReranker",
    "ChunkedCorpus",
    "CrossEncoderReranker",
    "Dense",
    "Hits",
    "Hybrid",
    "Index",
    "Late",
    "PassageIndex",
    "Reranked",
    "Reranker",
    "RetrievalMethod",
    "SearchRecall",
    "Sharded",
    "TextVectors",
    "assemble",
    "cut",
    "get_reranker",
    "get_retriever",
    "retrievers",
]
