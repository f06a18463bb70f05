"""chunkcore inside LlamaIndex: a node parser for any chunker, passages and scores for any retriever."""

from typing import TYPE_CHECKING

from chunkcore.lazy import needed, on_first_use

needed("llama_index.core", "llamaindex", "parse nodes for LlamaIndex", "llama-index-core")

if TYPE_CHECKING or on_first_use(__name__):
    from chunkadapters.behind import PassageWarning as PassageWarning
    from chunkadapters.configuration import TruncationWarning as TruncationWarning
    from chunkadapters.llamaindex.models import ChunkcoreEmbedding as ChunkcoreEmbedding
    from chunkadapters.llamaindex.models import as_embedder as as_embedder
    from chunkadapters.llamaindex.models import as_llm as as_llm
    from chunkadapters.llamaindex.node_parser import ChunkcoreNodeParser as ChunkcoreNodeParser
    from chunkadapters.llamaindex.node_parser import PlacedNodeParser as PlacedNodeParser
    from chunkadapters.llamaindex.node_parser import chunk_id_func as chunk_id_func
    from chunkadapters.llamaindex.node_parser import from_document as from_document
    from chunkadapters.llamaindex.retrieval import IndexRetriever as IndexRetriever
    from chunkadapters.llamaindex.retrieval import IndexUpdate as IndexUpdate
    from chunkadapters.llamaindex.retrieval import PassagePostprocessor as PassagePostprocessor
    from chunkadapters.llamaindex.retrieval import PassageRetriever as PassageRetriever
    from chunkadapters.llamaindex.retrieval import aevaluate_retriever as aevaluate_retriever
    from chunkadapters.llamaindex.retrieval import arun_retriever as arun_retriever
    from chunkadapters.llamaindex.retrieval import evaluate_retriever as evaluate_retriever
    from chunkadapters.llamaindex.retrieval import run_retriever as run_retriever
    from chunkadapters.llamaindex.retrieval import update_index as update_index
    from chunkadapters.places import join_pages as join_pages
    from chunkadapters.places import join_pages_by_source as join_pages_by_source
