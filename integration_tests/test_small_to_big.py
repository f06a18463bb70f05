"""Parents with children by each framework's own mechanism, and chunkcore's embedders in Haystack."""

from __future__ import annotations

import os
from typing import Any

import pytest
from tests.fakes import FakeEmbedder

os.environ.setdefault("HAYSTACK_TELEMETRY_ENABLED", "False")  # nothing here goes online

TEXT = "Green tea is mild. Black tea is strong. Espresso is short. Filter coffee is long. The sea is deep."
SIZES = {"size": 5, "overlap": 0, "counter": "words"}


SENTENCES = ["Green tea is mild.", "Black tea is strong.", "Espresso is short.", "Filter coffee is long."]


# LangChain


def langchain() -> Any:
    pytest.importorskip("langchain_core", reason="langchain-core is not installed")
    from langchain_core.documents import Document

    return Document(page_content=TEXT, metadata={"source": "drinks.md"})


def test_langchain_a_parent_retriever_takes_our_splitters_and_is_scored():
    retrievers = pytest.importorskip("langchain_classic.retrievers", reason="langchain-classic is not installed")
    document = langchain()
    from chunkadapters.langchain import ChunkcoreEmbeddings, ChunkcoreTextSplitter
    from langchain_core.stores import InMemoryStore
    from langchain_core.vectorstores import InMemoryVectorStore

    store = InMemoryVectorStore(ChunkcoreEmbeddings(FakeEmbedder()))
    retriever = retrievers.ParentDocumentRetriever(
        vectorstore=store,
        docstore=InMemoryStore(),
        parent_splitter=ChunkcoreTextSplitter("recursive", **{**SIZES, "size": 10}),
        child_splitter=ChunkcoreTextSplitter("recursive", **SIZES),
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


def test_llamaindex_hierarchies_and_auto_merging_take_our_parsers():
    document = llamaindex()
    from chunkadapters.llamaindex import ChunkcoreEmbedding, ChunkcoreNodeParser
    from llama_index.core import StorageContext, VectorStoreIndex
    from llama_index.core.node_parser import HierarchicalNodeParser, get_leaf_nodes
    from llama_index.core.retrievers import AutoMergingRetriever
    from llama_index.core.storage.docstore import SimpleDocumentStore

    parsers = {
        "large": ChunkcoreNodeParser("recursive", **{**SIZES, "size": 10}),
        "small": ChunkcoreNodeParser("recursive", **SIZES),
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
