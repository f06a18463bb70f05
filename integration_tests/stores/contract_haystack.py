"""What a document store of Haystack does with chunks. A store's test says how to make it, and where it differs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import pytest

from integration_tests.stores import collection


def chunks_of(documents: Mapping[str, str], **meta: Any) -> list[Any]:
    """Chunks with their vectors."""
    from chunkadapters.haystack import ChunkcoreDocumentEmbedder, ChunkcoreDocumentSplitter
    from haystack import Document

    whole = [Document(id=name, content=text, meta=dict(meta)) for name, text in documents.items()]
    chunks = ChunkcoreDocumentSplitter(
        chunker=collection.STRATEGY, options=collection.SIZES, keep_white_space=False
    ).run(whole)["documents"]
    return ChunkcoreDocumentEmbedder(collection.model()).run(chunks)["documents"]


class HaystackContract:
    """The tests; a subclass has the fixtures ``store`` and ``retriever`` and says what the store does otherwise."""

    # What comes back of ODD; or the text of the exception with which it is refused.
    odd: ClassVar[Mapping[str, Any] | str] = collection.ODD

    def test_what_goes_in_comes_out(self, store):
        chunks = chunks_of(collection.texts())
        assert sum("spans" in each.meta for each in chunks) > 10
        assert sum("headings" in each.meta for each in chunks) > 50
        write(store, chunks)
        found = {each.id: (each.content, each.meta) for each in store.filter_documents()}
        assert found == {each.id: (each.content, each.meta) for each in chunks}

    def test_every_piece_is_located_by_its_spans(self, store, retriever):
        from chunkadapters.haystack import ChunkcoreTextEmbedder, run_retriever
        from haystack import Pipeline

        write(store, chunks_of(collection.texts()))
        pipeline = Pipeline()
        pipeline.add_component("embedder", ChunkcoreTextEmbedder(collection.model()))
        pipeline.add_component("retriever", retriever)
        pipeline.connect("embedder.embedding", "retriever.query_embedding")
        collection.assert_found_by_spans(
            run_retriever(pipeline, collection.benchmark(), inputs={"retriever": {"top_k": collection.DEPTH}})
        )

    def test_its_hits_become_passages(self, store, retriever):
        from chunkadapters.haystack import ChunkcorePassageRanker
        from chunkadapters.haystack.documents import KEYS

        write(store, chunks_of(collection.texts()))
        question = collection.benchmark().queries[0].text
        vector = collection.model().embed_queries([question])[0].tolist()
        hits = retriever.run(query_embedding=vector, top_k=10)["documents"]
        passages = ChunkcorePassageRanker(documents=collection.sources(), max_tokens=collection.BUDGET).run(
            question, hits
        )["documents"]
        collection.assert_passages(
            (passage.meta["source_id"], passage.content, KEYS.stated(passage.meta, passage.content).spans)
            for passage in passages
        )

    def test_the_same_chunks_again(self, store):
        from haystack.document_stores.errors import DuplicateDocumentError
        from haystack.document_stores.types import DuplicatePolicy

        chunks = chunks_of(collection.texts())
        write(store, chunks)
        write(store, chunks)
        assert store.count_documents() == len(chunks)
        store.write_documents(chunks, policy=DuplicatePolicy.SKIP)
        assert store.count_documents() == len(chunks)
        with pytest.raises(DuplicateDocumentError):
            store.write_documents(chunks, policy=DuplicatePolicy.FAIL)
        assert store.count_documents() == len(chunks)

    def test_only_what_is_new_is_embedded_and_what_is_stale_is_deleted(self, store):
        from chunkadapters.haystack import ChunkcoreIndexUpdater, ChunkcoreIndexWriter

        before, after = chunks_of(collection.texts()), chunks_of(collection.edited())
        updater = ChunkcoreIndexUpdater(store)
        assert len(updater.run(before)["documents"]) == len(before)
        write(store, before)
        told = updater.run(before)
        assert (told["unchanged"], told["moved"], told["documents"]) == (len(before), [], [])
        told = updater.run(after)
        del told["unchanged"]
        old, new = ({each.id for each in chunks} for chunks in (before, after))
        assert ({each.id for each in told["documents"]}, set(told["stale"])) == (new - old, old - new)
        assert 0 < len(new - old) < 5
        ChunkcoreIndexWriter(store).run(**told)
        found = sorted((each.id, each.content) for each in store.filter_documents())
        assert found == sorted((each.id, each.content) for each in after)

    def test_metadata_that_a_store_may_not_take(self, store):
        (chunk,) = chunks_of({"tea": "Tea is hot."}, **collection.ODD)
        if isinstance(self.odd, str):
            with pytest.raises(Exception, match=self.odd):
                write(store, [chunk])
            return
        write(store, [chunk])
        (found,) = store.filter_documents()
        own = {key: value for key, value in chunk.meta.items() if key not in collection.ODD}
        assert found.meta == {**own, **self.odd}


def write(store: Any, chunks: list[Any]) -> None:
    from haystack.document_stores.types import DuplicatePolicy

    store.write_documents(chunks, policy=DuplicatePolicy.OVERWRITE)
