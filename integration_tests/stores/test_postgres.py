"""PostgreSQL with pgvector: a real server."""

from __future__ import annotations

import os
from importlib.util import find_spec
from uuid import uuid4

import pytest

from integration_tests.stores.collection import DIMENSION
from integration_tests.stores.contract_haystack import HaystackContract
from integration_tests.stores.contract_langchain import LangChainContract, embeddings
from integration_tests.stores.contract_llamaindex import LlamaIndexContract

if find_spec("pgserver") is None and "CHUNKADAPTERS_POSTGRES" not in os.environ:
    pytest.skip("pgserver is not installed, nor CHUNKADAPTERS_POSTGRES set", allow_module_level=True)


class TestLangChain(LangChainContract):
    """`PGVectorStore`, which LangChain recommends."""

    @pytest.fixture
    def store(self, postgres):
        stores = pytest.importorskip("langchain_postgres", reason="langchain-postgres is not installed")
        engine = stores.PGEngine.from_connection_string(postgres.replace("postgresql://", "postgresql+psycopg://", 1))
        table = f"t{uuid4().hex}"
        engine.init_vectorstore_table(table, DIMENSION, id_column=stores.Column("langchain_id", "TEXT"))
        yield stores.PGVectorStore.create_sync(engine, embeddings(), table)
        engine.drop_table(table)


class TestLangChainJson(LangChainContract):
    """`PGVector`, which it replaces."""

    @pytest.fixture
    def store(self, postgres):
        stores = pytest.importorskip("langchain_postgres", reason="langchain-postgres is not installed")
        url = postgres.replace("postgresql://", "postgresql+psycopg://", 1)
        store = stores.PGVector(embeddings(), connection=url, collection_name=uuid4().hex)
        yield store
        store.delete_collection()


class TestLlamaIndex(LlamaIndexContract):
    again = "twice"

    @pytest.fixture
    def store(self, postgres):
        stores = pytest.importorskip(
            "llama_index.vector_stores.postgres", reason="llama-index-vector-stores-postgres is not installed"
        )
        store = stores.PGVectorStore(
            connection_string=postgres.replace("postgresql://", "postgresql+psycopg2://", 1),
            async_connection_string=postgres.replace("postgresql://", "postgresql+asyncpg://", 1),
            table_name=uuid4().hex,
            embed_dim=DIMENSION,
        )
        yield store
        store.clear()


class TestHaystack(HaystackContract):
    @pytest.fixture
    def store(self, postgres):
        stores = pytest.importorskip(
            "haystack_integrations.document_stores.pgvector", reason="pgvector-haystack is not installed"
        )
        from haystack.utils import Secret

        store = stores.PgvectorDocumentStore(
            connection_string=Secret.from_token(postgres),
            table_name=f"t{uuid4().hex}",
            embedding_dimension=DIMENSION,
            keyword_index_name=f"k{uuid4().hex}",
        )
        yield store
        store.delete_table()

    @pytest.fixture
    def retriever(self, store):
        from haystack_integrations.components.retrievers.pgvector import PgvectorEmbeddingRetriever

        return PgvectorEmbeddingRetriever(document_store=store)
