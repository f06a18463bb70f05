"""What each framework ships itself, in memory: nothing to install."""

from __future__ import annotations

import pytest

from integration_tests.stores.collection import texts
from integration_tests.stores.contract_haystack import HaystackContract
from integration_tests.stores.contract_langchain import LangChainContract, chunks_of, embeddings
from integration_tests.stores.contract_llamaindex import LlamaIndexContract


class TestLangChain(LangChainContract):
    @pytest.fixture
    def store(self):
        model = embeddings()
        from langchain_core.vectorstores import InMemoryVectorStore

        return InMemoryVectorStore(model)

    def test_incremental_cleanup_writes_again_what_a_batch_cuts_through(self, store):
        """LangChain's `incremental` deletes after each batch what the batch's sources had, though more of them come."""
        from langchain_core.indexing import InMemoryRecordManager, index

        records = InMemoryRecordManager("tea")
        records.create_schema()
        options = {"source_id_key": "source_id", "key_encoder": "sha256", "cleanup": "incremental"}
        chunks = chunks_of(texts())
        index(chunks, records, store, **options)
        assert index(chunks, records, store, batch_size=100, **options)["num_added"] == len(chunks) - 100
        assert index(chunks, records, store, batch_size=len(chunks), **options)["num_added"] == 0


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
