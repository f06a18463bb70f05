"""Retrieval: a corpus of chunks, the methods that index and search it, and the stages after them."""

from typing import TYPE_CHECKING

from chunkcore.lazy import on_first_use

if TYPE_CHECKING or on_first_use(__name__):
    from chunkcore.retrieval.base import Hits as Hits
    from chunkcore.retrieval.base import Index as Index
    from chunkcore.retrieval.base import PassageIndex as PassageIndex
    from chunkcore.retrieval.base import RetrievalMethod as RetrievalMethod
    from chunkcore.retrieval.base import retrievers as retrievers
    from chunkcore.retrieval.corpus import ChunkedCorpus as ChunkedCorpus
    from chunkcore.retrieval.corpus import chunk_corpus as chunk_corpus
    from chunkcore.retrieval.methods import BM25 as BM25
    from chunkcore.retrieval.methods import Dense as Dense
    from chunkcore.retrieval.methods import Hybrid as Hybrid
    from chunkcore.retrieval.methods import Late as Late
    from chunkcore.retrieval.passages.assembly import join as join
    from chunkcore.retrieval.passages.index import Passages as Passages
    from chunkcore.retrieval.passages.index import WindowIndex as WindowIndex
    from chunkcore.retrieval.rerank import Reranked as Reranked
    from chunkcore.retrieval.rerank import get_reranker as get_reranker
    from chunkcore.retrieval.stage import Merge as Merge
    from chunkcore.retrieval.stage import PassageStage as PassageStage
    from chunkcore.retrieval.stage import Stage as Stage
    from chunkcore.retrieval.stage import UnitLayout as UnitLayout
    from chunkcore.retrieval.stage import Window as Window
    from chunkcore.retrieval.stage import get_retriever as get_retriever
    from chunkcore.retrieval.stage import load_index as load_index
    from chunkcore.retrieval.stage import stages as stages
    from chunkcore.retrieval.vectors import TextVectors as TextVectors
