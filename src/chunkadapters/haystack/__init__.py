"""chunkcore inside Haystack: a document splitter for any chunker, passages and scores for any retriever or pipeline."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chunkcore.lazy import needed, on_first_use

needed("haystack", "haystack", "split for Haystack", "haystack-ai")

if TYPE_CHECKING:
    from chunkadapters.behind import PassageWarning as PassageWarning
    from chunkadapters.haystack.documents import from_document as from_document
    from chunkadapters.haystack.models import as_embedder as as_embedder, as_llm as as_llm
    from chunkadapters.haystack.retrieval import (
        aevaluate_retriever as aevaluate_retriever,
        arun_retriever as arun_retriever,
        evaluate_retriever as evaluate_retriever,
        run_retriever as run_retriever,
    )
    from chunkadapters.places import (
        join_pages as join_pages,
        join_pages_by_source as join_pages_by_source,
    )
    from haystack_integrations.components.embedders.chunkadapters import (
        ChunkcoreDocumentEmbedder as ChunkcoreDocumentEmbedder,
        ChunkcoreTextEmbedder as ChunkcoreTextEmbedder,
    )
    from haystack_integrations.components.evaluators.chunkadapters import (
        ChunkcoreSpanEvaluator as ChunkcoreSpanEvaluator,
    )
    from haystack_integrations.components.preprocessors.chunkadapters import (
        ChunkcoreDocumentSplitter as ChunkcoreDocumentSplitter,
        ChunkcoreExactSplitter as ChunkcoreExactSplitter,
        ChunkcoreIndexUpdater as ChunkcoreIndexUpdater,
    )
    from haystack_integrations.components.rankers.chunkadapters import (
        ChunkcorePassageRanker as ChunkcorePassageRanker,
    )
    from haystack_integrations.components.retrievers.chunkadapters import (
        ChunkcoreIndexRetriever as ChunkcoreIndexRetriever,
    )
    from haystack_integrations.components.writers.chunkadapters import (
        ChunkcoreIndexWriter as ChunkcoreIndexWriter,
    )

on_first_use(
    __name__,
    {
        "chunkadapters.behind": "PassageWarning",
        "chunkadapters.haystack.documents": "from_document",
        "chunkadapters.haystack.models": "as_embedder as_llm",
        "chunkadapters.haystack.retrieval": (
            "aevaluate_retriever arun_retriever evaluate_retriever run_retriever"
        ),
        "chunkadapters.places": "join_pages join_pages_by_source",
        "haystack_integrations.components.embedders.chunkadapters": (
            "ChunkcoreDocumentEmbedder ChunkcoreTextEmbedder"
        ),
        "haystack_integrations.components.evaluators.chunkadapters": "ChunkcoreSpanEvaluator",
        "haystack_integrations.components.preprocessors.chunkadapters": (
            "ChunkcoreDocumentSplitter ChunkcoreExactSplitter ChunkcoreIndexUpdater"
        ),
        "haystack_integrations.components.rankers.chunkadapters": "ChunkcorePassageRanker",
        "haystack_integrations.components.retrievers.chunkadapters": "ChunkcoreIndexRetriever",
        "haystack_integrations.components.writers.chunkadapters": "ChunkcoreIndexWriter",
    },
)
