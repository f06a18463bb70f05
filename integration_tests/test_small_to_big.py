"""Late vectors, chunks found by their segments, and parents with children, by each framework's own mechanism."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from chunkcore.chunkers.base import Chunker, Draft
from chunkcore.document import Document as Source
from chunkcore.document import Span
from chunkcore.errors import DataError, OptionError
from chunkcore.models import LateEmbedder
from chunkcore.tokens import TokenizedText
from integration_tests.toys import registered
from tests.fakes import FakeEmbedder
from tests.test_late_chunking import FakeTokenEmbedder

os.environ.setdefault("HAYSTACK_TELEMETRY_ENABLED", "False")  # nothing here goes online

TEXT = "Green tea is mild. Black tea is strong. Espresso is short. Filter coffee is long. The sea is deep."
SIZES = {"size": 5, "overlap": 0, "counter": "words"}


@dataclass(frozen=True, kw_only=True)
class Pairs(Chunker):
    """Two sentences a chunk, each of them a segment; the last sentence is a chunk of no segments."""

    name = "pairs"

    counter: str = "words"

    def draft(self, source: TokenizedText, document: Source | None) -> list[Draft]:
        ends = [place + 1 for place, character in enumerate(source.text) if character == "."]
        starts = [0, *(end + 1 for end in ends[:-1])]
        sentences = [Span(*each) for each in zip(starts, ends, strict=True)]
        found = []
        for i in range(0, len(sentences), 2):
            own = sentences[i : i + 2]
            segments = tuple((each,) for each in own) if len(own) > 1 else ()
            found.append(Draft((Span(own[0].start, own[-1].end),), segments=segments))
        return found


def late_rows(spans: list[tuple[Span, ...]]) -> np.ndarray:
    return LateEmbedder(FakeTokenEmbedder(max_tokens=64)).embed_spans(TEXT, spans)


SENTENCES = ["Green tea is mild.", "Black tea is strong.", "Espresso is short.", "Filter coffee is long."]


# LangChain


def langchain() -> Any:
    pytest.importorskip("langchain_core", reason="langchain-core is not installed")
    from langchain_core.documents import Document

    return Document(page_content=TEXT, metadata={"source": "drinks.md"})


def test_langchain_late_vectors_are_those_of_the_core():
    document = langchain()
    from chunkadapters.langchain import ChunkcoreTextSplitter, embed_late

    chunks = ChunkcoreTextSplitter(strategy="recursive", **SIZES).split_documents([document])
    found = embed_late(chunks, [document], FakeTokenEmbedder(max_tokens=64))
    assert [each for each, _ in found] == chunks
    spans = [(Span(each.metadata["start_index"], each.metadata["end_index"]),) for each in chunks]
    np.testing.assert_array_equal([vector for _, vector in found], late_rows(spans))


def test_langchain_late_vectors_need_the_documents_that_were_cut():
    document = langchain()
    from langchain_core.documents import Document

    from chunkadapters.langchain import ChunkcoreTextSplitter, embed_late

    model = FakeTokenEmbedder()
    chunks = ChunkcoreTextSplitter(strategy="recursive", **SIZES).split_documents([document])
    with pytest.raises(DataError, match="not among the documents"):
        embed_late(chunks, [], model)
    with pytest.raises(DataError, match=r"does not stand where it says in 'drinks\.md'"):
        embed_late(chunks, [Document(page_content=TEXT[3:], metadata=document.metadata)], model)
    with pytest.raises(DataError, match="does not say where"):
        embed_late([Document(page_content="tea")], [document], model)
    with pytest.raises(DataError, match="two documents are called"):
        embed_late(chunks, [document, Document(page_content="x", metadata=document.metadata)], model)
    with pytest.raises(OptionError, match="vectors of texts only"):
        embed_late(chunks, [document], FakeEmbedder())


def test_langchain_segments_go_to_its_multi_vector_retriever():
    retrievers = pytest.importorskip("langchain_classic.retrievers", reason="langchain-classic is not installed")
    document = langchain()
    from langchain_core.stores import InMemoryStore
    from langchain_core.vectorstores import InMemoryVectorStore

    from chunkadapters.langchain import ChunkcoreEmbeddings, ChunkcoreTextSplitter, segment_documents

    with registered(Pairs):
        chunks = ChunkcoreTextSplitter(Pairs()).split_documents([document])
    small = segment_documents(chunks)
    assert [each.page_content for each in small] == [*SENTENCES, "The sea is deep."]
    assert all(TEXT[each.metadata["start_index"] : each.metadata["end_index"]] == each.page_content for each in small)
    assert [each.metadata["doc_id"] for each in small] == [chunks[i].id for i in (0, 0, 1, 1, 2)]
    assert len({each.id for each in small}) == 5

    store = InMemoryVectorStore(ChunkcoreEmbeddings(FakeEmbedder()))
    retriever = retrievers.MultiVectorRetriever(
        vectorstore=store, docstore=InMemoryStore(), id_key="doc_id", search_kwargs={"k": 1}
    )
    store.add_documents(small)
    retriever.docstore.mset([(each.id, each) for each in chunks])
    assert [each.page_content for each in retriever.invoke("Black tea is strong.")] == [" ".join(SENTENCES[:2])]


def test_langchain_a_parent_retriever_takes_our_splitters_and_is_scored():
    retrievers = pytest.importorskip("langchain_classic.retrievers", reason="langchain-classic is not installed")
    document = langchain()
    from langchain_core.stores import InMemoryStore
    from langchain_core.vectorstores import InMemoryVectorStore

    from chunkadapters.langchain import ChunkcoreEmbeddings, ChunkcoreTextSplitter

    store = InMemoryVectorStore(ChunkcoreEmbeddings(FakeEmbedder()))
    retriever = retrievers.ParentDocumentRetriever(
        vectorstore=store,
        docstore=InMemoryStore(),
        parent_splitter=ChunkcoreTextSplitter(strategy="recursive", **{**SIZES, "size": 10}),
        child_splitter=ChunkcoreTextSplitter(strategy="recursive", **SIZES),
        search_kwargs={"k": 1},
    )
    retriever.add_documents([document])
    (parent,) = retriever.invoke("Black tea is strong.")
    assert SENTENCES[1] in parent.page_content
    assert TEXT[parent.metadata["start_index"] :].startswith(parent.page_content)
    for child in store.store.values():
        metadata = child["metadata"]
        assert (metadata["source_id"], TEXT[metadata["start_index"] : metadata["end_index"]]) == (
            "drinks.md",
            child["text"],
        )


# LlamaIndex


def llamaindex() -> Any:
    schema = pytest.importorskip("llama_index.core.schema", reason="llama-index-core is not installed")
    return schema.Document(id_="drinks", text=TEXT)


def test_llamaindex_nodes_carry_their_late_vectors():
    document = llamaindex()
    from llama_index.core import VectorStoreIndex

    from chunkadapters.llamaindex import ChunkcoreEmbedding, ChunkcoreNodeParser, embed_late

    model = FakeTokenEmbedder(max_tokens=64)
    nodes = ChunkcoreNodeParser(strategy="recursive", **SIZES).get_nodes_from_documents([document])
    found = embed_late(nodes, [document], model)
    rows = late_rows([(Span(each.start_char_idx, each.end_char_idx),) for each in nodes])
    np.testing.assert_array_equal([each.embedding for each in found], rows)
    assert all(each.embedding is None for each in nodes)
    asked = len(model.texts)
    index = VectorStoreIndex(found, embed_model=ChunkcoreEmbedding(model))
    assert len(model.texts) == asked  # no node was embedded again
    best = index.as_retriever(similarity_top_k=1).retrieve(nodes[2].text)[0].node.node_id
    assert (
        best
        == nodes[int(np.argmax(rows @ model.embed_queries([nodes[2].text])[0] / np.linalg.norm(rows, axis=1)))].node_id
    )
    with pytest.raises(DataError, match="not among the documents"):
        embed_late(nodes, [], model)


def test_llamaindex_segments_are_index_nodes():
    document = llamaindex()
    from llama_index.core import VectorStoreIndex

    from chunkadapters.llamaindex import ChunkcoreEmbedding, ChunkcoreNodeParser, segment_nodes

    with registered(Pairs):
        nodes = ChunkcoreNodeParser(Pairs()).get_nodes_from_documents([document])
    small = segment_nodes(nodes)
    assert [each.text for each in small] == [*SENTENCES, "The sea is deep."]
    assert all(TEXT[each.start_char_idx : each.end_char_idx] == each.text for each in small)
    assert [each.index_id for each in small] == [nodes[i].node_id for i in (0, 0, 1, 1, 2)]
    index = VectorStoreIndex(small, embed_model=ChunkcoreEmbedding(FakeEmbedder()))
    (found,) = index.as_retriever(similarity_top_k=1).retrieve("Black tea is strong.")
    assert (found.node.node_id, found.text) == (nodes[0].node_id, " ".join(SENTENCES[:2]))


def test_llamaindex_hierarchies_and_auto_merging_take_our_parsers():
    document = llamaindex()
    from llama_index.core import StorageContext, VectorStoreIndex
    from llama_index.core.node_parser import HierarchicalNodeParser, get_leaf_nodes
    from llama_index.core.retrievers import AutoMergingRetriever
    from llama_index.core.storage.docstore import SimpleDocumentStore

    from chunkadapters.llamaindex import ChunkcoreEmbedding, ChunkcoreNodeParser

    parsers = {
        "large": ChunkcoreNodeParser(strategy="recursive", **{**SIZES, "size": 10}),
        "small": ChunkcoreNodeParser(strategy="recursive", **SIZES),
    }
    parser = HierarchicalNodeParser.from_defaults(node_parser_ids=list(parsers), node_parser_map=parsers)
    nodes = parser.get_nodes_from_documents([document])
    assert all(TEXT[node.start_char_idx : node.end_char_idx] == node.text for node in nodes)
    assert {node.ref_doc_id for node in nodes} == {"drinks"}
    docstore = SimpleDocumentStore()
    docstore.add_documents(nodes)
    storage = StorageContext.from_defaults(docstore=docstore)
    index = VectorStoreIndex(
        get_leaf_nodes(nodes), storage_context=storage, embed_model=ChunkcoreEmbedding(FakeEmbedder())
    )
    retriever = AutoMergingRetriever(index.as_retriever(similarity_top_k=2), storage)
    (found,) = retriever.retrieve("Green tea is mild. Black tea is strong.")
    assert found.text == next(node.text for node in nodes if node.child_nodes)
    assert all(sentence in found.text for sentence in SENTENCES[:2])


# Haystack


def haystack() -> Any:
    module = pytest.importorskip("haystack", reason="haystack-ai is not installed")
    return module.Document(id="drinks", content=TEXT)


def test_haystack_documents_carry_their_late_vectors(monkeypatch):
    document = haystack()
    from haystack import Pipeline

    from chunkadapters.haystack import ChunkcoreDocumentSplitter, ChunkcoreLateEmbedder

    splitter = ChunkcoreDocumentSplitter(strategy="recursive", options=SIZES)
    embedder = ChunkcoreLateEmbedder(FakeTokenEmbedder(max_tokens=64))
    pipeline = Pipeline()
    pipeline.add_component("splitter", splitter)
    pipeline.add_component("embedder", embedder)
    pipeline.connect("splitter.documents", "embedder.documents")
    told = pipeline.run({"splitter": {"documents": [document]}, "embedder": {"sources": [document]}})
    found = told["embedder"]["documents"]
    rows = late_rows([(Span(each.meta["split_idx_start"], each.meta["split_idx_end"]),) for each in found])
    np.testing.assert_array_equal([each.embedding for each in found], rows)
    assert embedder.to_dict()["init_parameters"] == {"model": "fake-tokens"}
    with pytest.raises(ValueError, match="not among the documents"):
        embedder.run(documents=found, sources=[])


def test_haystack_embedders_of_chunkcore():
    document = haystack()
    import asyncio

    from chunkadapters.haystack import ChunkcoreDocumentEmbedder, ChunkcoreTextEmbedder

    model = FakeEmbedder()
    documents = ChunkcoreDocumentEmbedder(model, meta_fields_to_embed=["context"])
    found = documents.run([document])["documents"][0]
    assert found.embedding == pytest.approx(model.embed_documents([TEXT])[0].tolist())
    assert document.embedding is None
    asyncio.run(documents.run_async([type(document)(content="tea", meta={"context": "Of drinks."})]))
    assert model.texts[-1] == "Of drinks.\ntea"
    question = ChunkcoreTextEmbedder(model)
    assert question.run("tea") == asyncio.run(question.run_async("tea"))
    with pytest.raises(TypeError, match="expects a string"):
        question.run([document])
    with pytest.raises(TypeError, match="list of Documents"):
        documents.run("tea")
