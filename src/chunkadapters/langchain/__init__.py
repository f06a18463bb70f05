"""chunkcore inside LangChain: a text splitter for any chunker, passages and scores for any retriever."""

from typing import TYPE_CHECKING

from chunkcore.lazy import needed, on_first_use

needed("langchain_text_splitters", "langchain", "split for LangChain", "langchain-text-splitters")

if TYPE_CHECKING:
    from chunkadapters.behind import PassageWarning as PassageWarning
    from chunkadapters.configuration import TruncationWarning as TruncationWarning
    from chunkadapters.langchain.models import (
        ChunkcoreEmbeddings as ChunkcoreEmbeddings,
        as_embedder as as_embedder,
        as_llm as as_llm,
    )
    from chunkadapters.langchain.retrieval import (
        IndexRetriever as IndexRetriever,
        PassageCompressor as PassageCompressor,
        PassageRetriever as PassageRetriever,
        aevaluate_retriever as aevaluate_retriever,
        arun_retriever as arun_retriever,
        evaluate_retriever as evaluate_retriever,
        langsmith_evaluator as langsmith_evaluator,
        run_retriever as run_retriever,
    )
    from chunkadapters.langchain.splitter import (
        ChunkcoreTextSplitter as ChunkcoreTextSplitter,
        SizeUnitWarning as SizeUnitWarning,
        SourceWarning as SourceWarning,
        content_key as content_key,
        from_document as from_document,
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
        "chunkadapters.langchain.models": "ChunkcoreEmbeddings as_embedder as_llm",
        "chunkadapters.langchain.retrieval": (
            "IndexRetriever PassageCompressor PassageRetriever aevaluate_retriever "
            "arun_retriever evaluate_retriever langsmith_evaluator run_retriever"
        ),
        "chunkadapters.langchain.splitter": (
            "ChunkcoreTextSplitter SizeUnitWarning SourceWarning content_key from_document"
        ),
        "chunkadapters.places": "join_pages join_pages_by_source",
    },
)
