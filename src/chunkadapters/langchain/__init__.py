"""chunkcore inside LangChain: a text splitter for any chunker, passages and scores for any retriever."""

from typing import TYPE_CHECKING

from chunkcore.lazy import needed, on_first_use

needed("langchain_text_splitters", "langchain", "split for LangChain", "langchain-text-splitters")

if TYPE_CHECKING or on_first_use(__name__):
    from chunkadapters.behind import PassageWarning as PassageWarning
    from chunkadapters.configuration import TruncationWarning as TruncationWarning
    from chunkadapters.langchain.models import ChunkcoreEmbeddings as ChunkcoreEmbeddings
    from chunkadapters.langchain.models import as_embedder as as_embedder
    from chunkadapters.langchain.models import as_llm as as_llm
    from chunkadapters.langchain.retrieval import IndexRetriever as IndexRetriever
    from chunkadapters.langchain.retrieval import PassageCompressor as PassageCompressor
    from chunkadapters.langchain.retrieval import PassageRetriever as PassageRetriever
    from chunkadapters.langchain.retrieval import aevaluate_retriever as aevaluate_retriever
    from chunkadapters.langchain.retrieval import arun_retriever as arun_retriever
    from chunkadapters.langchain.retrieval import evaluate_retriever as evaluate_retriever
    from chunkadapters.langchain.retrieval import langsmith_evaluator as langsmith_evaluator
    from chunkadapters.langchain.retrieval import run_retriever as run_retriever
    from chunkadapters.langchain.splitter import ChunkcoreTextSplitter as ChunkcoreTextSplitter
    from chunkadapters.langchain.splitter import SizeUnitWarning as SizeUnitWarning
    from chunkadapters.langchain.splitter import SourceWarning as SourceWarning
    from chunkadapters.langchain.splitter import content_key as content_key
    from chunkadapters.langchain.splitter import from_document as from_document
    from chunkadapters.places import join_pages as join_pages
    from chunkadapters.places import join_pages_by_source as join_pages_by_source
