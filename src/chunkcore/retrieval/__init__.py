"""Retrieval: a corpus of chunks, the methods that index and search it, and the stages after them."""

from chunkcore.retrieval.assembly import assemble, combine, expand, fit_to_budget
from chunkcore.retrieval.base import Hits, Index, PassageIndex, RetrievalMethod, SearchRecall, retrievers
from chunkcore.retrieval.corpus import ChunkedCorpus, cut
from chunkcore.retrieval.dense import Dense, Late
from chunkcore.retrieval.hnsw import HNSW
from chunkcore.retrieval.hybrid import Hybrid, get_retriever
from chunkcore.retrieval.lexical import BM25
from chunkcore.retrieval.lexicon import Postings, word_keys, words
from chunkcore.retrieval.passages import Passages
from chunkcore.retrieval.rerank import CallableReranker, CrossEncoderReranker, Reranked, Reranker, get_reranker
from chunkcore.retrieval.sharded import Sharded
from chunkcore.retrieval.stage import (
    Assembled,
    AutoMerge,
    Layout,
    Merge,
    Named,
    PassageStage,
    RelevantSegments,
    Stage,
    Window,
    stages,
)
from chunkcore.retrieval.vectors import TextVectors

__all__ = [
    "BM25",
    "HNSW",
    "Assembled",
    "AutoMerge",
    "CallableReranker",
    "ChunkedCorpus",
    "CrossEncoderReranker",
    "Dense",
    "Hits",
    "Hybrid",
    "Index",
    "Late",
    "Layout",
    "Merge",
    "Named",
    "PassageIndex",
    "PassageStage",
    "Passages",
    "Postings",
    "RelevantSegments",
    "Reranked",
    "Reranker",
    "RetrievalMethod",
    "SearchRecall",
    "Sharded",
    "Stage",
    "TextVectors",
    "Window",
    "assemble",
    "combine",
    "cut",
    "expand",
    "fit_to_budget",
    "get_reranker",
    "get_retriever",
    "retrievers",
    "stages",
    "word_keys",
    "words",
]
