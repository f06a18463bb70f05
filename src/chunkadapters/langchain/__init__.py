"""chunkcore inside LangChain: a text splitter for any chunker, and scores for any retriever.

splitter = ChunkcoreTextSplitter(strategy="recursive", size=200, counter="cl100k_base")
chunks = splitter.split_documents(documents)
report = evaluate_retriever(store.as_retriever(), benchmark)
"""

from typing import TYPE_CHECKING

from chunkcore.errors import MissingExtraError
from chunkcore.lazy import on_first_use

try:
    import langchain_core  # noqa: F401
    import langchain_text_splitters  # noqa: F401
except ModuleNotFoundError as error:
    raise MissingExtraError.of("langchain-text-splitters", "langchain", "split for LangChain") from error

if TYPE_CHECKING:
    from chunkadapters.configuration import TruncationWarning
    from chunkadapters.langchain.models import ChunkcoreEmbeddings, as_embedder, as_llm
    from chunkadapters.langchain.passages import PassageCompressor, PassageRetriever
    from chunkadapters.langchain.retrieval import (
        MergeOverlaps,
        add_embedded,
        aevaluate_retriever,
        arun_retriever,
        embed_late,
        evaluate_retriever,
        langsmith_evaluator,
        merge_overlaps,
        run_retriever,
        segment_documents,
    )
    from chunkadapters.langchain.splitter import (
        ChunkcoreTextSplitter,
        ClusterSemanticTextSplitter,
        LumberTextSplitter,
        RecursiveTextSplitter,
        SemanticTextSplitter,
        SourceWarning,
        content_key,
        from_document,
    )
    from chunkadapters.pages import join_pages, join_pages_by_source
    from chunkadapters.passages import PassageWarning
else:
    __getattr__, __dir__ = on_first_use(
        __name__,
        """
chunkadapters.configuration: TruncationWarning
chunkadapters.langchain.models: ChunkcoreEmbeddings as_embedder as_llm
chunkadapters.langchain.passages: PassageCompressor PassageRetriever
chunkadapters.langchain.retrieval: MergeOverlaps add_embedded aevaluate_retriever arun_retriever embed_late
    evaluate_retriever langsmith_evaluator merge_overlaps run_retriever segment_documents
chunkadapters.langchain.splitter: ChunkcoreTextSplitter ClusterSemanticTextSplitter LumberTextSplitter
    RecursiveTextSplitter SemanticTextSplitter SourceWarning content_key from_document
chunkadapters.pages: join_pages join_pages_by_source
chunkadapters.passages: PassageWarning
        """,
    )

__all__ = [
    "ChunkcoreEmbeddings",
    "ChunkcoreTextSplitter",
    "ClusterSemanticTextSplitter",
    "LumberTextSplitter",
    "MergeOverlaps",
    "PassageCompressor",
    "PassageRetriever",
    "PassageWarning",
    "RecursiveTextSplitter",
    "SemanticTextSplitter",
    "SourceWarning",
    "TruncationWarning",
    "add_embedded",
    "aevaluate_retriever",
    "arun_retriever",
    "as_embedder",
    "as_llm",
    "content_key",
    "embed_late",
    "evaluate_retriever",
    "from_document",
    "join_pages",
    "join_pages_by_source",
    "langsmith_evaluator",
    "merge_overlaps",
    "run_retriever",
    "segment_documents",
]
