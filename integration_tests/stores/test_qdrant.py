"""Qdrant, embedded in the process."""

from __future__ import annotations

import pytest

from integration_tests.stores.collection import DIMENSION
from integration_tests.stores.contract_haystack import HaystackContract
from integration_tests.stores.contract_langchain import LangChainContract, embeddings
from integration_tests.stores.contract_llamaindex import LlamaIndexContract

qdrant = pytest.importorskip("qdrant_client", reason="qdrant-client is not installed")


class TestLangChain(LangChainContract):
    @property
    def key_encoder(self):
        from chunkadapters.langchain import content_key

        return content_key  # ids must be UUIDs, and 32 hexadecimal digits are one

    def identify(self, found):
        return found.metadata["_id"].replace("-", "")

    def clean(self, metadata):
        return {key: value for key, value in metadata.items() if key not in ("_id", "_collection_name")}

    @pytest.fixture
    def store(self):
        stores = pytest.importorskip("langchain_qdrant", reason="langchain-qdrant is not installed")
        client = qdrant.QdrantClient(":memory:")
        vectors = qdrant.models.VectorParams(size=DIMENSION, distance=qdrant.models.Distance.COSINE)
        client.create_collection("lochmere", vectors_config=vectors)
        return stores.QdrantVectorStore(client, "lochmere", embeddings())


class TestLlamaIndex(LlamaIndexContract):
    @pytest.fixture
    def store(self):
        stores = pytest.importorskip(
            "llama_index.vector_stores.qdrant", reason="llama-index-vector-stores-qdrant is not installed"
        )
        return stores.QdrantVectorStore("lochmere", client=qdrant.QdrantClient(":memory:"))


class TestHaystack(HaystackContract):
    @pytest.fixture
    def store(self):
        stores = pytest.importorskip(
            "haystack_integrations.document_stores.qdrant", reason="qdrant-haystack is not installed"
        )
        return stores.QdrantDocumentStore(":memory:", embedding_dim=DIMENSION, return_embedding=True)

    @pytest.fixture
    def retriever(self, store):
        from haystack_integrations.components.retrievers.qdrant import QdrantEmbeddingRetriever

        return QdrantEmbeddingRetriever(store)
