"""FAISS, embedded in the process."""

from __future__ import annotations

import pytest

from integration_tests.stores.collection import DIMENSION, texts
from integration_tests.stores.contract_haystack import HaystackContract
from integration_tests.stores.contract_langchain import LangChainContract, chunks_of, embeddings
from integration_tests.stores.contract_llamaindex import LlamaIndexContract

faiss = pytest.importorskip("faiss", reason="faiss-cpu is not installed")


class TestLangChain(LangChainContract):
    @pytest.fixture
    def store(self):
        stores = pytest.importorskip("langchain_community.vectorstores", reason="langchain-community is not installed")
        docstore = pytest.importorskip("langchain_community.docstore.in_memory")
        return stores.FAISS(embeddings(), faiss.IndexFlatL2(DIMENSION), docstore.InMemoryDocstore(), {})

    def test_the_same_chunks_again(self, store):
        """They are refused when their vectors are in already, and no search works from then on."""
        chunks = chunks_of(texts())
        store.add_documents(chunks)
        with pytest.raises(ValueError, match="ids that already exist"):
            store.add_documents(chunks)
        with pytest.raises(KeyError):
            store.similarity_search("tea", k=2 * len(chunks))


class TestLlamaIndex(LlamaIndexContract):
    again = "twice"

    @pytest.fixture
    def store(self):
        stores = pytest.importorskip(
            "llama_index.vector_stores.faiss", reason="llama-index-vector-stores-faiss is not installed"
        )
        return stores.FaissMapVectorStore(faiss.IndexIDMap2(faiss.IndexFlatL2(DIMENSION)))

    @pytest.mark.xfail(strict=True, raises=AssertionError, reason="a document's nodes are not deleted with it")
    def test_a_pipelines_upserts_delete_what_is_stale(self, store):
        super().test_a_pipelines_upserts_delete_what_is_stale(store)

    @pytest.mark.xfail(strict=True, raises=AssertionError, reason="after a deletion new nodes get numbers of others")
    def test_update_index_writes_what_is_new_and_deletes_what_is_stale(self, store):
        super().test_update_index_writes_what_is_new_and_deletes_what_is_stale(store)


class TestHaystack(HaystackContract):
    @pytest.fixture
    def store(self):
        stores = pytest.importorskip(
            "haystack_integrations.document_stores.faiss", reason="faiss-haystack is not installed"
        )
        return stores.FAISSDocumentStore(embedding_dim=DIMENSION)

    @pytest.fixture
    def retriever(self, store):
        from haystack_integrations.components.retrievers.faiss import FAISSEmbeddingRetriever

        return FAISSEmbeddingRetriever(document_store=store)
