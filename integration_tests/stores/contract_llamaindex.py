"""What a vector store of LlamaIndex does with nodes. A store's test says how to make it, and where it differs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import pytest

from integration_tests.stores import collection


def documents_of(documents: Mapping[str, str], **metadata: Any) -> list[Any]:
    from llama_index.core.schema import Document

    return [Document(id_=name, text=text, metadata=dict(metadata)) for name, text in documents.items()]


def parser() -> Any:
    from chunkadapters.llamaindex import ChunkcoreNodeParser

    return ChunkcoreNodeParser(chunker=collection.STRATEGY, **collection.SIZES)


def nodes_of(documents: Mapping[str, str], **metadata: Any) -> list[Any]:
    return parser().get_nodes_from_documents(documents_of(documents, **metadata))


class LlamaIndexContract:
    """The tests; a subclass has a fixture ``store`` and says what the store does in a way of its own."""

    # What inserting the same ids once more does: they are written over, or are there twice.
    again = "written over"
    # What comes back of ODD; or the text of the exception with which it is refused.
    odd: ClassVar[Mapping[str, Any] | str] = collection.ODD

    @pytest.fixture
    def index(self, store):
        return self.index_of(store)

    def index_of(self, store: Any, **options: Any) -> Any:
        from chunkadapters.llamaindex import ChunkcoreEmbedding
        from llama_index.core import StorageContext, VectorStoreIndex

        storage = StorageContext.from_defaults(vector_store=store)
        return VectorStoreIndex(
            [], storage_context=storage, embed_model=ChunkcoreEmbedding(collection.model()), **options
        )

    def everything(self, index: Any, count: int) -> list[Any]:
        return [each.node for each in index.as_retriever(similarity_top_k=count).retrieve("tea")]

    def test_what_goes_in_comes_out(self, index):
        nodes = nodes_of(collection.texts())
        assert sum("spans" in each.metadata for each in nodes) > 10
        assert sum("headings" in each.metadata for each in nodes) > 50
        index.insert_nodes(nodes)
        found = {each.node_id: told(each) for each in self.everything(index, len(nodes))}
        assert found == {each.node_id: told(each) for each in nodes}

    def test_its_hits_become_passages(self, index):
        from chunkadapters.llamaindex import PassageRetriever
        from chunkadapters.llamaindex.node_parser import KEYS, stated_place

        index.insert_nodes(nodes_of(collection.texts()))
        retriever = PassageRetriever(index.as_retriever(), documents=collection.sources(), max_tokens=collection.BUDGET)
        passages = retriever.retrieve(collection.benchmark().queries[0].text)
        collection.assert_passages(
            (passage.node.ref_doc_id, passage.text, KEYS.stated(stated_place(passage.node), passage.text).spans)
            for passage in passages
        )

    def test_every_piece_is_located_by_its_spans(self, index):
        from chunkadapters.llamaindex import run_retriever

        index.insert_nodes(nodes_of(collection.texts()))
        collection.assert_found_by_spans(
            run_retriever(index.as_retriever(similarity_top_k=collection.DEPTH), collection.benchmark())
        )

    def test_the_same_nodes_again(self, index, store):
        nodes = nodes_of(collection.texts())
        index.insert_nodes(nodes)
        index.insert_nodes(nodes)
        assert len(held(store)) == len(nodes) * (2 if self.again == "twice" else 1)

    def test_a_pipelines_upserts_delete_what_is_stale(self, store):
        from chunkadapters.llamaindex import ChunkcoreEmbedding
        from llama_index.core.ingestion import DocstoreStrategy, IngestionPipeline
        from llama_index.core.storage.docstore import SimpleDocumentStore

        pipeline = IngestionPipeline(
            transformations=[parser(), ChunkcoreEmbedding(collection.model())],
            docstore=SimpleDocumentStore(),
            docstore_strategy=DocstoreStrategy.UPSERTS,
            vector_store=store,
        )
        pipeline.run(documents=documents_of(collection.texts()))
        assert sorted(held(store)) == sorted(each.node_id for each in nodes_of(collection.texts()))
        assert pipeline.run(documents=documents_of(collection.texts())) == []
        pipeline.run(documents=documents_of(collection.edited()))
        assert sorted(held(store)) == sorted(each.node_id for each in nodes_of(collection.edited()))

    def test_update_index_writes_what_is_new_and_deletes_what_is_stale(self, store):
        from chunkadapters.llamaindex import IndexUpdate, update_index

        index = self.index_of(store, store_nodes_override=True)
        before, after = nodes_of(collection.texts()), nodes_of(collection.edited())
        assert update_index(index, documents_of(collection.texts()), parser()) == IndexUpdate(new=len(before))
        assert update_index(index, documents_of(collection.texts()), parser()) == IndexUpdate(kept=len(before))
        told = update_index(index, documents_of(collection.edited()), parser())
        assert told.kept > 0.9 * len(before)
        assert told.kept + told.moved + told.new == len(after)
        assert sorted(held(store)) == sorted(each.node_id for each in after)
        found = self.everything(index, len(after))
        assert sorted(place(each) for each in found) == sorted(place(each) for each in after)

    def test_metadata_that_a_store_may_not_take(self, index):
        (node,) = nodes_of({"tea": "Tea is hot."}, **collection.ODD)
        if isinstance(self.odd, str):
            with pytest.raises(Exception, match=self.odd):
                index.insert_nodes([node])
            return
        index.insert_nodes([node])
        (found,) = self.everything(index, 1)
        own = {key: value for key, value in node.metadata.items() if key not in collection.ODD}
        assert found.metadata == {**own, **self.odd}


def held(store: Any) -> list[str]:
    """The ids of all nodes that a store has, as they were given."""
    from llama_index.core.vector_stores import VectorStoreQuery

    vector = collection.model().embed_queries(["tea"])[0].tolist()
    found: list[str] = store.query(VectorStoreQuery(query_embedding=vector, similarity_top_k=1000)).ids
    return [each.replace("-", "") for each in found]  # Qdrant's way to write them


def told(node: Any) -> tuple[Any, ...]:
    """All that a node says but its vector."""
    related = {kind.name: other.node_id for kind, other in node.relationships.items()}
    unread = (sorted(node.excluded_embed_metadata_keys), sorted(node.excluded_llm_metadata_keys))
    return (node.text, node.metadata, node.start_char_idx, node.end_char_idx, node.ref_doc_id, related, unread)


def place(node: Any) -> tuple[Any, ...]:
    return node.ref_doc_id, node.start_char_idx, node.end_char_idx, node.text
