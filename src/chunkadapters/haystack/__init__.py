"""chunkcore inside Haystack: a document splitter for any chunker, passages and scores for any retriever or pipeline."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chunkcore.lazy import needed, on_first_use

needed("haystack", "haystack", "split for Haystack", "haystack-ai")

if TYPE_CHECKING or on_first_use(__name__):
    from chunkadapters.behind import PassageWarning as PassageWarning
    from chunkadapters.haystack.documents import from_document as from_document
    from chunkadapters.haystack.models import as_embedder as as_embedder
    from chunkadapters.haystack.models import as_llm as as_llm
    from chunkadapters.haystack.retrieval import aevaluate_retriever as aevaluate_retriever
    from chunkadapters.haystack.retrieval import arun_retriever as arun_retriever
    from chunkadapters.haystack.retrieval import evaluate_retriever as evaluate_retriever
    from chunkadapters.haystack.retrieval import run_retriever as run_retriever
    from chunkadapters.places import join_pages as join_pages
    from chunkadapters.places import join_pages_by_source as join_pages_by_source
    from haystack_integrations.components.embedders.chunkadapters import (
        ChunkcoreDocumentEmbedder as ChunkcoreDocumentEmbedder,
    )
    from haystack_integrations.components.embedders.chunkadapters import (
        ChunkcoreTextEmbedder as ChunkcoreTextEmbedder,
    )
    from haystack_integrations.components.evaluators.chunkadapters import (
        ChunkcoreSpanEvaluator as ChunkcoreSpanEvaluator,
    )
    from haystack_integrations.components.preprocessors.chunkadapters import (
        ChunkcoreDocumentSplitter as ChunkcoreDocumentSplitter,
    )
    from haystack_integrations.components.preprocessors.chunkadapters import (
        ChunkcoreExactSplitter as ChunkcoreExactSplitter,
    )
    from haystack_integrations.components.preprocessors.chunkadapters import (
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
