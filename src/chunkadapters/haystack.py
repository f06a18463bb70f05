"""chunkcore inside Haystack: a document splitter for any chunker, and scores for any retriever or pipeline.

splitter = ChunkcoreDocumentSplitter(strategy="recursive", options={"size": 200})
pipeline.add_component("splitter", splitter)
report = evaluate_retriever(pipeline, benchmark)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from chunkcore.errors import MissingExtraError
from chunkcore.lazy import on_first_use

try:
    import haystack  # noqa: F401
except ImportError as error:
    raise MissingExtraError.of("haystack-ai", "haystack", "split for Haystack") from error

if TYPE_CHECKING:
    from chunkadapters._haystack import (
        aevaluate_retriever,
        arun_retriever,
        as_embedder,
        as_llm,
        evaluate_retriever,
        from_document,
        run_retriever,
    )
    from chunkadapters.pages import join_pages, join_pages_by_source
    from chunkadapters.passages import PassageWarning
    from haystack_integrations.components.embedders.chunkadapters import (
        ChunkcoreDocumentEmbedder,
        ChunkcoreLateEmbedder,
        ChunkcoreTextEmbedder,
    )
    from haystack_integrations.components.evaluators.chunkadapters import ChunkcoreSpanEvaluator
    from haystack_integrations.components.preprocessors.chunkadapters import (
        ChunkcoreChildSplitter,
        ChunkcoreDocumentSplitter,
        ChunkcoreIndexUpdater,
        ClusterSemanticSplitter,
        LumberSplitter,
        RecursiveSplitter,
        SemanticSplitter,
    )
    from haystack_integrations.components.rankers.chunkadapters import ChunkcoreMergeOverlaps
    from haystack_integrations.components.retrievers.chunkadapters import (
        ChunkcorePassageAssembler,
        ChunkcorePassageRetriever,
    )
    from haystack_integrations.components.writers.chunkadapters import ChunkcoreIndexWriter
else:
    __getattr__, __dir__ = on_first_use(
        __name__,
        """
chunkadapters._haystack: aevaluate_retriever arun_retriever as_embedder as_llm evaluate_retriever from_document
    run_retriever
chunkadapters.pages: join_pages join_pages_by_source
chunkadapters.passages: PassageWarning
haystack_integrations.components.embedders.chunkadapters: ChunkcoreDocumentEmbedder ChunkcoreLateEmbedder
    ChunkcoreTextEmbedder
haystack_integrations.components.evaluators.chunkadapters: ChunkcoreSpanEvaluator
haystack_integrations.components.preprocessors.chunkadapters: ChunkcoreChildSplitter ChunkcoreDocumentSplitter
    ChunkcoreIndexUpdater ClusterSemanticSplitter LumberSplitter RecursiveSplitter SemanticSplitter
haystack_integrations.components.rankers.chunkadapters: ChunkcoreMergeOverlaps
haystack_integrations.components.retrievers.chunkadapters: ChunkcorePassageAssembler ChunkcorePassageRetriever
haystack_integrations.components.writers.chunkadapters: ChunkcoreIndexWriter
        """,
    )

__all__ = [
    "ChunkcoreChildSplitter",
    "ChunkcoreDocumentEmbedder",
    "ChunkcoreDocumentSplitter",
    "ChunkcoreIndexUpdater",
    "ChunkcoreIndexWriter",
    "ChunkcoreLateEmbedder",
    "ChunkcoreMergeOverlaps",
    "ChunkcorePassageAssembler",
    "ChunkcorePassageRetriever",
    "ChunkcoreSpanEvaluator",
    "ChunkcoreTextEmbedder",
    "ClusterSemanticSplitter",
    "LumberSplitter",
    "PassageWarning",
    "RecursiveSplitter",
    "SemanticSplitter",
    "aevaluate_retriever",
    "arun_retriever",
    "as_embedder",
    "as_llm",
    "evaluate_retriever",
    "from_document",
    "join_pages",
    "join_pages_by_source",
    "run_retriever",
]
