"""What each framework ships itself, in memory: nothing to install."""

from __future__ import annotations

import pytest

from integration_tests.stores.contract_haystack import HaystackContract
from integration_tests.stores.contract_langchain import LangChainContract, embeddings
from integration_tests.stores.contract_llamaindex import LlamaIndexContract


class TestLangChain(LangChainContract):
    @pytest.fixture
    def store(self):
        model = embeddings()
        from langchain_core.vectorstores import InMemoryVectorStore

        return InMemoryVectorStore(model)


class TestLlamaIndex(LlamaIndexContract):
    @pytest.fixture
    def store(self):
        simple = pytest.importorskip(
            "llama_index.core.vector_stores.simple", reason="llama-index-core is not installed"
        )
        return simple.SimpleVectorStore()


class TestHaystack(HaystackContract):
    @pytest.fixture
    def store(self):
        memory = pytest.importorskip("haystack.document_stores.in_memory", reason="haystack-ai is not installed")
        return memory.InMemoryDocumentStore()

    @pytest.fixture
    def retriever(self, store):
        from haystack.components.retrievers.in_memory import InMemoryEmbeddingRetriever

        return InMemoryEmbeddingRetriever(store)
