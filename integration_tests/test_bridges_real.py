"""The real model through each framework and back: the same vectors, and so the same chunks."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
from chunkcore.chunkers import get_chunker
from chunkcore.datasets import load_dataset
from chunkcore.errors import ChunkcoreError
from chunkcore.models import get_embedder

os.environ.setdefault("HAYSTACK_TELEMETRY_ENABLED", "False")  # nothing here goes online

MODEL = "all-MiniLM-L6-v2"


def through_langchain() -> Any:
    pytest.importorskip("langchain_core", reason="langchain-core is not installed")
    from chunkadapters.langchain import ChunkcoreEmbeddings, as_embedder

    return as_embedder(ChunkcoreEmbeddings(MODEL))


def through_llamaindex() -> Any:
    pytest.importorskip("llama_index.core", reason="llama-index-core is not installed")
    from chunkadapters.llamaindex import ChunkcoreEmbedding, as_embedder

    return as_embedder(ChunkcoreEmbedding(MODEL, embed_batch_size=8))


def through_haystack() -> Any:
    pytest.importorskip("haystack", reason="haystack-ai is not installed")
    from chunkadapters.haystack import ChunkcoreDocumentEmbedder, ChunkcoreTextEmbedder, as_embedder

    return as_embedder(ChunkcoreDocumentEmbedder(MODEL), ChunkcoreTextEmbedder(MODEL))


@pytest.mark.parametrize("through", [through_langchain, through_llamaindex, through_haystack])
def test_the_real_model_gives_the_same_vectors_and_chunks_through_a_framework(through):
    try:
        model = get_embedder(MODEL)
    except ChunkcoreError as error:
        pytest.skip(str(error))
    bridged = through()
    text = load_dataset("lochmere").documents[0].text[:3000]
    sentences = text.split(". ")[:12]
    np.testing.assert_allclose(bridged.embed_documents(sentences), model.embed_documents(sentences), atol=1e-5)
    np.testing.assert_allclose(bridged.embed_queries(sentences[:2]), model.embed_queries(sentences[:2]), atol=1e-5)
    options = {"size": 120, "piece_size": 30}
    chunks = get_chunker("cluster_semantic", **options, embedder=bridged).spans(text)
    assert chunks == get_chunker("cluster_semantic", **options, embedder=model).spans(text)
    assert len(chunks) > 3
