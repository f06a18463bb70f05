"""chunkcore inside LlamaIndex: a node parser for any chunker, passages and scores for any retriever."""

from typing import TYPE_CHECKING

from chunkcore.lazy import needed, on_first_use

needed("llama_index.core", "llamaindex", "parse nodes for LlamaIndex", "llama-index-core")

if TYPE_CHECKING:
    from chunkadapters.behind import PassageWarning as PassageWarning
    from chunkadapters.configuration import TruncationWarning as TruncationWarning
    from chunkadapters.llamaindex.models import (
        ChunkcoreEmbedding as ChunkcoreEmbedding,
        as_embedder as as_embedder,
        as_llm as as_llm,
    )
    from chunkadapters.llamaindex.node_parser import (
        ChunkcoreNodeParser as ChunkcoreNodeParser,
        PlacedNodeParser as PlacedNodeParser,
        chunk_id_func as chunk_id_func,
        from_document as from_document,
    )
    from chunkadapters.llamaindex.retrieval import (
        IndexRetriever as IndexRetriever,
        IndexUpdate as IndexUpdate,
        PassagePostprocessor as PassagePostprocessor,
        PassageRetriever as PassageRetriever,
        aevaluate_retriever as aevaluate_retriever,
        arun_retriever as arun_retriever,
        evaluate_retriever as evaluate_retriever,
        run_retriever as run_retriever,
        update_index as update_index,
    )
    from chunkadapters.places import (
        join_pages as join_pages,
        join_pages_by_source as join_pages_by_source,
    )

on_first_use(
    __name__,
    {
        "chunkadapters.behind": "PassageWarning",
        "chunkadapters.configuration": "TruncationWarning",
        "chunkadapters.llamaindex.models": "ChunkcoreEmbedding as_embedder as_llm",
        "chunkadapters.llamaindex.node_parser": (
            "ChunkcoreNodeParser PlacedNodeParser chunk_id_func from_document"
        ),
        "chunkadapters.llamaindex.retrieval": (
            "IndexRetriever IndexUpdate PassagePostprocessor PassageRetriever "
            "aevaluate_retriever arun_retriever evaluate_retriever run_retriever "
            "update_index"
        ),
        "chunkadapters.places": "join_pages join_pages_by_source",
    },
)
