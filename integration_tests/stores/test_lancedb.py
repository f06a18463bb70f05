"""LanceDB, embedded in the process."""

from __future__ import annotations

import pytest

from integration_tests.stores.collection import benchmark, texts
from integration_tests.stores.contract_langchain import LangChainContract, chunks_of, embeddings
from integration_tests.stores.contract_llamaindex import LlamaIndexContract

pytest.importorskip("lancedb", reason="lancedb is not installed")
pytest.importorskip("langchain_core", reason="langchain-core is not installed")

from chunkadapters.langchain import PassageRetriever


class TestLangChain(LangChainContract):
    """Answers without ids. A table has the keys of what was added first: others are refused, absent ones are None."""

    again = "twice"
    unfiltered = r"No field named source_id.*form_of\(filter\)"

    def identify(self, found):
        return None

    def clean(self, metadata):
        return {key: value for key, value in metadata.items() if key == "nothing" or value is not None}

    @pytest.fixture
    def store(self, tmp_path):
        stores = pytest.importorskip("langchain_community.vectorstores", reason="langchain-community is not installed")
        return stores.LanceDB(uri=str(tmp_path), embedding=embeddings(), mode="append")

    def test_the_default_mode_empties_the_table_each_time(self, tmp_path, store):
        chunks = chunks_of(texts())[:4]
        store = type(store)(uri=str(tmp_path), embedding=embeddings())
        store.add_documents(chunks[:3])
        store.add_documents(chunks[3:])
        assert len(self.everything(store, 10)) == 1

    def test_later_metadata_are_refused(self, store):
        chunks = chunks_of(texts())
        store.add_documents([each for each in chunks if "spans" not in each.metadata])
        with pytest.raises(ValueError, match="field 'spans' does not exist"):
            store.add_documents([each for each in chunks if "spans" in each.metadata])


class TestLangChainsOwnPackage(LangChainContract):
    """Answers without ids; the database's address stands over each chunk's source; arguments of a call are ignored."""

    again = "twice"
    unfiltered = "the retriever ignored the filter"

    def identify(self, found):
        return None

    def clean(self, metadata):
        kept = {key: value for key, value in metadata.items() if key == "nothing" or value is not None}
        return kept | {"source": metadata["source_id"]}

    @pytest.fixture
    def store(self, tmp_path):
        package = pytest.importorskip("langchain_lancedb", reason="langchain-lancedb is not installed")
        return package.LanceDB(uri=str(tmp_path), embedding_function=embeddings())

    def test_a_filter_in_a_call_is_ignored(self, store):
        chunks = chunks_of(texts())[:3]
        store.add_documents(chunks)
        chosen = {"filter": {"source_id": "none"}}
        assert len(store.as_retriever().invoke("tea", **chosen)) == len(chunks)
        with pytest.raises(ValueError, match="the retriever ignored the filter"):
            PassageRetriever(store.as_retriever(), documents=benchmark().documents).invoke("tea", **chosen)


class TestLlamaIndex(LlamaIndexContract):
    again = "twice"
    odd = "Value for metadata tags must be one of"

    @pytest.fixture
    def store(self, tmp_path):
        stores = pytest.importorskip(
            "llama_index.vector_stores.lancedb", reason="llama-index-vector-stores-lancedb is not installed"
        )
        return stores.LanceDBVectorStore(str(tmp_path))

    @pytest.mark.xfail(strict=True, raises=ValueError, reason="names in its deletions are quoted as columns")
    def test_a_pipelines_upserts_delete_what_is_stale(self, store):
        super().test_a_pipelines_upserts_delete_what_is_stale(store)

    @pytest.mark.xfail(strict=True, raises=ValueError, reason="names in its deletions are quoted as columns")
    def test_update_index_writes_what_is_new_and_deletes_what_is_stale(self, store):
        super().test_update_index_writes_what_is_new_and_deletes_what_is_stale(store)
