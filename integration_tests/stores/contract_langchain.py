"""What a vector store of LangChain does with chunks. A store's test says how to make it, and where it differs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, ClassVar

import pytest
from chunkadapters.places import PlaceKeys
from chunkcore import ChunkcoreError

from integration_tests.stores import collection

KEYS = PlaceKeys("start_index", "end_index")


def chunks_of(documents: Mapping[str, str], **more: Any) -> list[Any]:
    from chunkadapters.langchain import ChunkcoreTextSplitter
    from langchain_core.documents import Document

    splitter = ChunkcoreTextSplitter(chunker=collection.STRATEGY, **collection.SIZES)
    return splitter.split_documents(
        [Document(page_content=text, id=name, metadata={"source": name, **more}) for name, text in documents.items()]
    )


def embeddings() -> Any:
    pytest.importorskip("langchain_core", reason="langchain-core is not installed")
    from chunkadapters.langchain import ChunkcoreEmbeddings

    return ChunkcoreEmbeddings(collection.model())


class LangChainContract:
    """The tests; a subclass has a fixture ``store`` and says what the store does in a way of its own."""

    # What adding the same ids once more does: they are written over, are there twice, or an exception says this.
    again = "written over"
    # What comes back of ODD; or the text of the exception with which it is refused.
    odd: ClassVar[Mapping[str, Any] | str] = collection.ODD
    # With what a filter of a question is refused, if it is.
    unfiltered = ""
    # By what index() names chunks in the store.
    key_encoder: Any = "sha256"

    def identify(self, found: Any) -> str | None:
        """The id of a chunk, as it was given, from what the store answers with; None where that has none."""
        return found.id

    def clean(self, metadata: dict[str, Any]) -> dict[str, Any]:
        """The metadata without what the store has put there."""
        return metadata

    def everything(self, store: Any, count: int) -> list[Any]:
        return store.similarity_search("tea", k=count)

    def test_what_goes_in_comes_out(self, store):
        chunks = chunks_of(collection.texts())
        assert sum("spans" in each.metadata for each in chunks) > 10
        assert sum("headings" in each.metadata for each in chunks) > 50
        store.add_documents(chunks)
        found = self.everything(store, len(chunks))
        assert by_place((each.page_content, self.clean(each.metadata)) for each in found) == (
            by_place((each.page_content, each.metadata) for each in chunks)
        )
        ids = {each.id: place(each) for each in chunks}
        assert len(ids) == len(chunks)
        assert all(ids[self.identify(each)] == place(each) for each in found if self.identify(each) is not None)

    def test_every_piece_is_located_by_its_spans(self, store):
        from chunkadapters.langchain import run_retriever

        store.add_documents(chunks_of(collection.texts()))
        collection.assert_found_by_spans(
            run_retriever(store.as_retriever(search_kwargs={"k": collection.DEPTH}), collection.benchmark())
        )

    def test_a_questions_filter_is_obeyed_or_refused(self, store):
        from chunkadapters.langchain import run_retriever

        store.add_documents(chunks_of(collection.texts(), level=2, open=True))
        (name, _) = collection.texts()
        where = {"source_id": name, "level": 2.0, "open": True}
        asked = replace(
            collection.benchmark(), queries=[replace(query, where=where) for query in collection.benchmark().queries]
        )
        retriever = store.as_retriever(search_kwargs={"k": collection.DEPTH})
        if self.unfiltered:
            with pytest.raises(ChunkcoreError, match=self.unfiltered):
                run_retriever(retriever, asked, retries=0)
            return
        answers = run_retriever(retriever, asked).results.values()
        assert {piece.document_id for pieces in answers for piece in pieces} == {name}

    def test_its_hits_become_passages(self, store):
        from chunkadapters.langchain import PassageRetriever

        store.add_documents(chunks_of(collection.texts()))
        retriever = PassageRetriever(store.as_retriever(), documents=collection.sources(), max_tokens=collection.BUDGET)
        collection.assert_passages(
            (
                passage.metadata["source_id"],
                passage.page_content,
                KEYS.stated(passage.metadata, passage.page_content).spans,
            )
            for passage in retriever.invoke(collection.benchmark().queries[0].text)
        )

    def test_the_same_chunks_again(self, store):
        chunks = chunks_of(collection.texts())
        store.add_documents(chunks)
        if self.again in ("written over", "twice"):
            store.add_documents(chunks)
        else:
            with pytest.raises(Exception, match=self.again):
                store.add_documents(chunks)
        assert len(self.everything(store, 3 * len(chunks))) == len(chunks) * (2 if self.again == "twice" else 1)

    def test_index_writes_what_is_new_and_deletes_what_is_stale(self, store):
        from langchain_core.indexing import InMemoryRecordManager, index

        records = InMemoryRecordManager("tea")
        records.create_schema()
        options = {"cleanup": "scoped_full", "source_id_key": "source_id", "key_encoder": self.key_encoder}
        before, after = chunks_of(collection.texts()), chunks_of(collection.edited())
        old, new = ({place(each) for each in chunks} for chunks in (before, after))
        assert index(before, records, store, **options)["num_added"] == len(before)
        assert index(before, records, store, **options)["num_skipped"] == len(before)
        told = index(after, records, store, **options)
        added, deleted = len(new - old), len(old - new)
        assert told == {"num_added": added, "num_updated": 0, "num_skipped": len(new & old), "num_deleted": deleted}
        assert 0 < len(new - old) < 5
        found = self.everything(store, 2 * len(before))
        assert sorted(place(each) for each in found) == sorted(new)

    def test_metadata_that_a_store_may_not_take(self, store):
        (chunk,) = chunks_of({"tea": "Tea is hot."}, **collection.ODD)
        if isinstance(self.odd, str):
            with pytest.raises(Exception, match=self.odd):
                store.add_documents([chunk])
            return
        store.add_documents([chunk])
        (found,) = self.everything(store, 1)
        own = {key: value for key, value in chunk.metadata.items() if key not in collection.ODD}
        assert self.clean(found.metadata) == {**own, **self.odd}


def by_place(rows: Iterable[tuple[str, dict[str, Any]]]) -> list[tuple[str, dict[str, Any]]]:
    return sorted(rows, key=lambda row: (row[1]["source_id"], row[1]["start_index"], row[0]))


def place(document: Any) -> tuple[Any, ...]:
    known = document.metadata
    return (known["source_id"], known["start_index"], known["end_index"], document.page_content)
