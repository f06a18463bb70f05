"""Retrieval: a corpus of chunks, the methods that index and search it, and the stages after them."""

from typing import TYPE_CHECKING

from chunkcore.lazy import on_first_use

if TYPE_CHECKING:
    from chunkcore.retrieval.base import (
        Hits as Hits,
        Index as Index,
        PassageIndex as PassageIndex,
        RetrievalMethod as RetrievalMethod,
        retrievers as retrievers,
    )
    from chunkcore.retrieval.corpus import (
        ChunkedCorpus as ChunkedCorpus,
        chunk_corpus as chunk_corpus,
    )
    from chunkcore.retrieval.methods import (
        BM25 as BM25,
        Dense as Dense,
        Hybrid as Hybrid,
        Late as Late,
    )
    from chunkcore.retrieval.passages.index import Passages as Passages, WindowIndex as WindowIndex
    from chunkcore.retrieval.stage import (
        Merge as Merge,
        PassageStage as PassageStage,
        Reranked as Reranked,
        Stage as Stage,
        UnitLayout as UnitLayout,
        Window as Window,
        get_reranker as get_reranker,
        get_retriever as get_retriever,
        load_index as load_index,
        stages as stages,
    )
    from chunkcore.retrieval.vectors import TextVectors as TextVectors

on_first_use(
    __name__,
    {
        "chunkcore.retrieval.base": "Hits Index PassageIndex RetrievalMethod retrievers",
        "chunkcore.retrieval.corpus": "ChunkedCorpus chunk_corpus",
        "chunkcore.retrieval.methods": "BM25 Dense Hybrid Late",
        "chunkcore.retrieval.passages.index": "Passages WindowIndex",
        "chunkcore.retrieval.stage": (
            "Reranked get_reranker Merge PassageStage Stage UnitLayout Window get_retriever "
            "load_index stages "
        ),
        "chunkcore.retrieval.vectors": "TextVectors",
    },
)
