"""Chroma, embedded in the process."""

from __future__ import annotations

from typing import Any, ClassVar
from uuid import uuid4

import pytest

from integration_tests.stores.collection import ODD
from integration_tests.stores.contract_haystack import HaystackContract
from integration_tests.stores.contract_langchain import LangChainContract, embeddings
from integration_tests.stores.contract_llamaindex import LlamaIndexContract

chroma = pytest.importorskip("chromadb", reason="chromadb is not installed")


class TestLangChain(LangChainContract):
    odd = "Expected metadata value to be a str"

    @pytest.fixture
    def store(self, tmp_path):
        stores = pytest.importorskip("langchain_chroma", reason="langchain-chroma is not installed")
        return stores.Chroma("lochmere", embeddings(), persist_directory=str(tmp_path))


class TestLlamaIndex(LlamaIndexContract):
    odd = "Value for metadata tags must be one of"

    @pytest.fixture
    def store(self, tmp_path):
        stores = pytest.importorskip(
            "llama_index.vector_stores.chroma", reason="llama-index-vector-stores-chroma is not installed"
        )
        collection = chroma.PersistentClient(str(tmp_path)).create_collection("lochmere", embedding_function=None)
        return stores.ChromaVectorStore(chroma_collection=collection)


class TestHaystack(HaystackContract):
    odd: ClassVar[dict[str, Any]] = {key: value for key, value in ODD.items() if key not in ("nested", "nothing")}

    @pytest.fixture
    def store(self):
        stores = pytest.importorskip(
            "haystack_integrations.document_stores.chroma", reason="chroma-haystack is not installed"
        )
        return stores.ChromaDocumentStore(f"c{uuid4().hex}")

    @pytest.fixture
    def retriever(self, store):
        from haystack_integrations.components.retrievers.chroma import ChromaEmbeddingRetriever

        return ChromaEmbeddingRetriever(store)
