"""chunkcore inside LlamaIndex: a node parser for any chunker, and scores for any retriever.

parser = ChunkcoreNodeParser(strategy="recursive", size=200, counter="cl100k_base")
nodes = parser.get_nodes_from_documents(documents)
report = evaluate_retriever(index.as_retriever(), benchmark)
"""

from typing import TYPE_CHECKING

from chunkcore.errors import MissingExtraError
from chunkcore.lazy import on_first_use

try:
    import llama_index.core  # noqa: F401
except ModuleNotFoundError as error:
    raise MissingExtraError.of("llama-index-core", "llamaindex", "parse nodes for LlamaIndex") from error

if TYPE_CHECKING:
    from chunkadapters.configuration import TruncationWarning
    from chunkadapters.llamaindex.models import ChunkcoreEmbedding, as_embedder, as_llm
    from chunkadapters.llamaindex.node_parser import (
        ChunkcoreNodeParser,
        ClusterSemanticNodeParser,
        LumberNodeParser,
        RecursiveNodeParser,
        SemanticNodeParser,
        chunk_id_func,
        from_document,
    )
    from chunkadapters.llamaindex.passages import PassagePostprocessor, PassageRetriever
    from chunkadapters.llamaindex.retrieval import (
        MergeOverlaps,
        SpanF1,
        SpanIoU,
        SpanPrecision,
        SpanRecall,
        SpanRetrieverEvaluator,
        aevaluate_retriever,
        arun_retriever,
        embed_late,
        evaluate_retriever,
        merge_overlaps,
        run_retriever,
        segment_nodes,
    )
    from chunkadapters.llamaindex.updating import IndexUpdate, update_index
    from chunkadapters.pages import join_pages, join_pages_by_source
    from chunkadapters.passages import PassageWarning
else:
    __getattr__, __dir__ = on_first_use(
        __name__,
        """
chunkadapters.configuration: TruncationWarning
chunkadapters.llamaindex.models: ChunkcoreEmbedding as_embedder as_llm
chunkadapters.llamaindex.node_parser: ChunkcoreNodeParser ClusterSemanticNodeParser LumberNodeParser
    RecursiveNodeParser SemanticNodeParser chunk_id_func from_document
chunkadapters.llamaindex.passages: PassagePostprocessor PassageRetriever
chunkadapters.llamaindex.retrieval: MergeOverlaps SpanF1 SpanIoU SpanPrecision SpanRecall SpanRetrieverEvaluator
    aevaluate_retriever arun_retriever embed_late evaluate_retriever merge_overlaps run_retriever segment_nodes
chunkadapters.llamaindex.updating: IndexUpdate update_index
chunkadapters.pages: join_pages join_pages_by_source
chunkadapters.passages: PassageWarning
        """,
    )

__all__ = [
    "ChunkcoreEmbedding",
    "ChunkcoreNodeParser",
    "ClusterSemanticNodeParser",
    "IndexUpdate",
    "LumberNodeParser",
    "MergeOverlaps",
    "PassagePostprocessor",
    "PassageRetriever",
    "PassageWarning",
    "RecursiveNodeParser",
    "SemanticNodeParser",
    "SpanF1",
    "SpanIoU",
    "SpanPrecision",
    "SpanRecall",
    "SpanRetrieverEvaluator",
    "TruncationWarning",
    "aevaluate_retriever",
    "arun_retriever",
    "as_embedder",
    "as_llm",
    "chunk_id_func",
    "embed_late",
    "evaluate_retriever",
    "from_document",
    "join_pages",
    "join_pages_by_source",
    "merge_overlaps",
    "run_retriever",
    "segment_nodes",
    "update_index",
]
