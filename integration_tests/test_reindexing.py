"""After an edit in one place only the chunks that it touched are embedded and written again, and stale ones deleted."""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np
import pytest
from chunkcore.models import CachedEmbedder
from tests.fakes import FakeEmbedder

os.environ.setdefault("HAYSTACK_TELEMETRY_ENABLED", "False")  # nothing here goes online

SENTENCES = [
    f"Sentence {i} of the {name} tells of tea.\n\n" for name in ("first", "second", "third") for i in range(10)
]
TEXTS = {name: "".join(SENTENCES[at : at + 10]) for name, at in (("a", 0), ("b", 10), ("c", 20))}
SIZES = {"size": 12, "overlap": 0}
# One sentence says something else, of the same length; and a sentence is put before all others.
EDITED = {
    **TEXTS,
    "b": TEXTS["b"].replace("Sentence 4 of the second tells of tea", "Sentence 4 of the second tells of sea"),
}
SHIFTED = {**TEXTS, "b": "This sentence is a new one.\n\n" + TEXTS["b"]}


# LangChain


class LangChain:
    """A collection that is indexed by LangChain's own ``index()``, and the texts that the model was given."""

    def __init__(self, key_encoder: Any) -> None:
        pytest.importorskip("langchain_core", reason="langchain-core is not installed")
        from chunkadapters.langchain import ChunkcoreEmbeddings, ChunkcoreTextSplitter
        from langchain_core.indexing import InMemoryRecordManager
        from langchain_core.vectorstores import InMemoryVectorStore

        self.model = FakeEmbedder()
        self.store = InMemoryVectorStore(ChunkcoreEmbeddings(CachedEmbedder(self.model)))
        self.records = InMemoryRecordManager("tea")
        self.records.create_schema()
        self.splitter = ChunkcoreTextSplitter("recursive", **SIZES)
        self.key_encoder = key_encoder

    def index(self, texts: dict[str, str], cleanup: str = "incremental") -> dict[str, int]:
        from langchain_core.documents import Document
        from langchain_core.indexing import index

        before = len(self.model.texts)
        documents = [Document(page_content=text, metadata={"source": name}) for name, text in texts.items()]
        chunks, keys = self.splitter.split_documents(documents), {"key_encoder": self.key_encoder}
        counts = index(chunks, self.records, self.store, cleanup=cleanup, source_id_key="source_id", **keys)
        return {**dict(counts), "embedded": len(self.model.texts) - before}

    def held(self) -> dict[str, set[tuple[str, int]]]:
        found: dict[str, set[tuple[str, int]]] = {}
        for each in self.store.store.values():
            metadata = each["metadata"]
            found.setdefault(metadata["source_id"], set()).add((each["text"], metadata["start_index"]))
        return found


def counts(added: int, skipped: int, deleted: int, embedded: int) -> dict[str, int]:
    return {"num_added": added, "num_updated": 0, "num_skipped": skipped, "num_deleted": deleted, "embedded": embedded}


def test_langchain_an_edit_and_a_sentence_before_all_others_embed_one_text():
    collection = LangChain("sha256")
    assert collection.index(TEXTS) == counts(added=30, skipped=0, deleted=0, embedded=30)
    assert collection.index(TEXTS) == counts(added=0, skipped=30, deleted=0, embedded=0)
    edited = counts(added=1, skipped=29, deleted=1, embedded=1)
    shifted = counts(added=11, skipped=20, deleted=10, embedded=1)
    for texts, expected in ((EDITED, edited), (SHIFTED, shifted)):
        assert collection.index(texts) == expected
        for name, chunks in collection.held().items():
            assert all(texts[name][start:].startswith(text) for text, start in chunks)


def test_langchain_by_content_what_has_moved_is_left_alone():
    from chunkadapters.langchain import content_key

    collection = LangChain(content_key)
    collection.index(TEXTS)
    found = collection.index(SHIFTED)
    assert found == counts(added=1, skipped=30, deleted=0, embedded=1)
    assert {text for text, _ in collection.held()["b"]} == {part for part in SHIFTED["b"].split("\n\n") if part}
    found = collection.index(EDITED)
    assert (found["num_added"], found["num_deleted"], found["embedded"]) == (1, 2, 1)


# LlamaIndex


def llamaindex_documents(texts: dict[str, str]) -> list[Any]:
    schema = pytest.importorskip("llama_index.core.schema", reason="llama-index-core is not installed")
    return [schema.Document(id_=name, text=text) for name, text in texts.items()]


def test_llamaindex_update_index():
    documents = llamaindex_documents(TEXTS)
    from chunkadapters.llamaindex import ChunkcoreEmbedding, ChunkcoreNodeParser, IndexUpdate, update_index
    from llama_index.core import VectorStoreIndex

    model = FakeEmbedder()
    parser = ChunkcoreNodeParser("recursive", **SIZES)
    index = VectorStoreIndex([], embed_model=ChunkcoreEmbedding(model))
    assert update_index(index, documents, parser) == IndexUpdate(new=30)
    assert update_index(index, documents, parser) == IndexUpdate(kept=30)
    assert len(model.texts) == 30

    found = update_index(index, llamaindex_documents(EDITED), parser)
    assert found == IndexUpdate(kept=29, new=1)
    assert len(model.texts) == 31

    found = update_index(index, llamaindex_documents({"b": SHIFTED["b"]}), parser)
    assert found == IndexUpdate(moved=9, new=2, deleted=10)  # the sentence that was edited is as it was again
    assert len(model.texts) == 33

    held = index.docstore.docs.values()
    assert all(SHIFTED[node.ref_doc_id][node.start_char_idx : node.end_char_idx] == node.text for node in held)  # type: ignore[index]
    assert set(index.vector_store.data.embedding_dict) == {node.node_id for node in held}
    ids = {node.node_id for node in held}
    assert all(related.node_id in ids for node in held for related in (node.prev_node, node.next_node) if related)
    by_text = {node.text: index.vector_store.get(node.node_id) for node in held}
    assert all(by_text[text] == pytest.approx(model.embed_documents([text])[0].tolist()) for text in by_text)

    assert update_index(index, llamaindex_documents({"b": ""}), parser) == IndexUpdate(deleted=11)
    assert len(index.docstore.docs) == 20


def test_llamaindex_a_model_that_fails_leaves_the_index_as_it_was():
    documents = llamaindex_documents(TEXTS)
    from chunkadapters.llamaindex import ChunkcoreEmbedding, ChunkcoreNodeParser, IndexUpdate, update_index
    from llama_index.core import VectorStoreIndex

    parser = ChunkcoreNodeParser("recursive", **SIZES)
    model = FakeEmbedder()
    index = VectorStoreIndex([], embed_model=ChunkcoreEmbedding(model))
    update_index(index, documents, parser)
    nodes, vectors = dict(index.docstore.docs), dict(index.vector_store.data.embedding_dict)
    # Documents' metadata are embedded with the text: every node is another one, at the place of an old one.
    titled = llamaindex_documents(TEXTS)
    for each in titled:
        each.metadata["title"] = "Tea"

    def fail(texts: Any) -> Any:
        raise ConnectionError("nobody there")

    answer, model.embed_documents = model.embed_documents, fail
    with pytest.raises(Exception, match="nobody there"):
        update_index(index, titled, parser)
    assert index.docstore.docs == nodes
    assert index.vector_store.data.embedding_dict == vectors
    model.embed_documents = answer
    assert update_index(index, titled, parser) == IndexUpdate(new=30)
    assert len(index.docstore.docs) == len(index.vector_store.data.embedding_dict) == 30


def test_llamaindex_an_index_that_cannot_be_told_says_so():
    documents = llamaindex_documents(TEXTS)
    from chunkadapters.llamaindex import ChunkcoreNodeParser, update_index
    from llama_index.core import MockEmbedding, VectorStoreIndex
    from llama_index.core.vector_stores.simple import SimpleVectorStore

    class Full(SimpleVectorStore):
        stores_text: bool = True

    index = VectorStoreIndex.from_vector_store(Full(), embed_model=MockEmbedding(embed_dim=2))
    with pytest.raises(ValueError, match="store_nodes_override=True"):
        update_index(index, documents, ChunkcoreNodeParser("recursive", **SIZES))


# Haystack


def test_haystack_a_pipeline_with_an_updater():
    haystack = pytest.importorskip("haystack", reason="haystack-ai is not installed")
    from chunkadapters.haystack import ChunkcoreDocumentSplitter, ChunkcoreIndexUpdater, ChunkcoreIndexWriter
    from haystack import Pipeline
    from haystack.components.embedders import MockDocumentEmbedder
    from haystack.document_stores.in_memory import InMemoryDocumentStore

    model = FakeEmbedder()
    down = False

    def embed(text: str) -> list[float]:
        if down:
            raise ConnectionError("nobody there")
        return model.embed_documents([text])[0].tolist()

    store = InMemoryDocumentStore()
    pipeline = Pipeline()
    pipeline.add_component("splitter", ChunkcoreDocumentSplitter("recursive", options=SIZES))
    pipeline.add_component("updater", ChunkcoreIndexUpdater(store))
    embedder = MockDocumentEmbedder(embedding_fn=lambda text: embed(text))
    pipeline.add_component("embedder", embedder)
    pipeline.add_component("writer", ChunkcoreIndexWriter(store))
    pipeline.connect("splitter", "updater")
    pipeline.connect("updater.documents", "embedder")
    pipeline.connect("embedder", "writer.documents")
    pipeline.connect("updater.moved", "writer.moved")
    pipeline.connect("updater.stale", "writer.stale")

    def index(texts: dict[str, str], **more: Any) -> dict[str, int]:
        before = len(model.texts)
        documents = [haystack.Document(id=name, content=text) for name, text in texts.items()]
        told = pipeline.run({"splitter": {"documents": documents}, "updater": more})
        return {
            "embedded": len(model.texts) - before,
            "moved": told["writer"]["documents_written"] - (len(model.texts) - before),
            "unchanged": told["updater"]["unchanged"],
            "deleted": told["writer"]["documents_deleted"],
        }

    assert index(TEXTS) == {"embedded": 30, "moved": 0, "unchanged": 0, "deleted": 0}
    assert index(TEXTS) == {"embedded": 0, "moved": 0, "unchanged": 30, "deleted": 0}
    found = index(EDITED)
    assert found == {"embedded": 1, "moved": 0, "unchanged": 29, "deleted": 1}
    index(TEXTS)
    before = store.filter_documents()
    down = True
    with pytest.raises(Exception, match="nobody there"):  # Haystack's own, around the embedder's
        index(SHIFTED)
    assert store.filter_documents() == before
    down = False
    found = index(SHIFTED)
    assert found == {"embedded": 1, "moved": 10, "unchanged": 20, "deleted": 10}
    for each in store.filter_documents():
        meta = each.meta
        assert SHIFTED[meta["source_id"]][meta["split_idx_start"] : meta["split_idx_end"]] == each.content
        assert each.embedding == pytest.approx(model.embed_documents([each.content])[0].tolist())
    gone = {key: TEXTS[key] for key in ("a", "c")}
    assert index(gone, source_ids=["b"]) == {"embedded": 0, "moved": 0, "unchanged": 20, "deleted": 11}
    for each in ("updater", "writer"):
        part = pipeline.get_component(each)
        assert type(part).from_dict(part.to_dict()).document_store is not None


def test_haystack_other_metadata_are_embedded_again_and_bad_input_is_refused():
    haystack = pytest.importorskip("haystack", reason="haystack-ai is not installed")
    from chunkadapters.haystack import ChunkcoreIndexUpdater
    from haystack.document_stores.in_memory import InMemoryDocumentStore

    store = InMemoryDocumentStore()
    updater = ChunkcoreIndexUpdater(store)
    meta = {"source_id": "a", "split_idx_start": 0, "title": "Tea"}
    store.write_documents([haystack.Document(id="1", content="tea", meta=meta, embedding=[1.0])])
    found = updater.run([haystack.Document(id="1", content="tea", meta={**meta, "title": "Sea"})])
    assert [each.id for each in found["documents"]] == ["1"]
    found = updater.run([haystack.Document(id="1", content="tea", meta={**meta, "split_idx_start": 3})])
    assert [each.embedding for each in found["moved"]] == [[1.0]]
    with pytest.raises(TypeError, match="list of Documents"):
        updater.run("tea")
    with pytest.raises(ValueError, match="has no source_id"):
        updater.run([haystack.Document(content="tea")])


@pytest.mark.parametrize("kept", ["as lists", "as floats", "as text", "as decimals", "by NumPy", "not at all"])
def test_haystack_a_store_that_keeps_no_tuples_has_its_chunks_unchanged(kept):
    haystack = pytest.importorskip("haystack", reason="haystack-ai is not installed")
    from chunkadapters.exact import exact
    from chunkadapters.haystack import ChunkcoreIndexUpdater
    from haystack.components.preprocessors import DocumentSplitter
    from haystack.document_stores.in_memory import InMemoryDocumentStore

    splitter = exact(DocumentSplitter(split_by="word", split_length=8, split_overlap=3))
    chunks = splitter.run([haystack.Document(id="a", content=TEXTS["a"])])["documents"]
    assert any(each.meta["_split_overlap"] for each in chunks)
    store = InMemoryDocumentStore()
    for each in chunks:
        meta = json.loads(json.dumps(each.meta))
        if kept == "not at all":
            del meta["_split_overlap"]
        kinds = {"as floats": float, "as text": str, "as decimals": lambda x: f"{x}.0", "by NumPy": np.int64}
        kind: Any = kinds.get(kept, int)
        meta |= {key: kind(value) for key, value in meta.items() if type(value) is int}
        store.write_documents([haystack.Document(id=each.id, content=each.content, meta=meta, embedding=[1.0])])
    found = ChunkcoreIndexUpdater(store).run(chunks)
    assert found == {"documents": [], "moved": [], "stale": [], "unchanged": len(chunks)}
    elsewhere = haystack.Document(id=chunks[0].id, content=chunks[0].content, meta={**chunks[0].meta, "page_number": 7})
    assert len(ChunkcoreIndexUpdater(store).run([elsewhere])["moved"]) == 1
