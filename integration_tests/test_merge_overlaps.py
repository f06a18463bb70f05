"""Overlapping hits are united in each framework, by its own kind of post-processor."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import pytest

from chunkadapters.places import decode_spans
from chunkcore.document import Span
from chunkcore.spans import length, union

os.environ.setdefault("HAYSTACK_TELEMETRY_ENABLED", "False")  # nothing here goes online

TEXT = " ".join(f"Sentence {i} is about tea." for i in range(20))
SIZES = {"size": 20, "overlap": 8}


def spans_of(found: dict[str, Any], start: str, end: str) -> tuple[Span, ...]:
    return decode_spans(found.get("spans")) or (Span(found[start], found[end]),)


def check(hits: list[tuple[str, tuple[Span, ...]]], united: list[tuple[str, tuple[Span, ...]]]) -> None:
    """Nothing is lost, nothing is twice, and every text stands where it says."""
    assert len(united) < len(hits)
    assert union(*(spans for _, spans in united)) == union(*(spans for _, spans in hits))
    assert sum(length(spans) for _, spans in united) == length(union(*(spans for _, spans in united)))
    assert all(text == "\n".join(span.slice(TEXT) for span in spans) for text, spans in united)


# LangChain


def langchain_hits() -> list[Any]:
    documents = pytest.importorskip("langchain_core.documents", reason="langchain-core is not installed")
    from chunkadapters.langchain import ChunkcoreTextSplitter

    splitter = ChunkcoreTextSplitter(strategy="recursive", **SIZES)
    source = documents.Document(page_content=TEXT, metadata={"source": "tea.md", "lang": "en"})
    chunks = splitter.split_documents([source])
    return [chunks[place] for place in (5, 1, 4, 0)]


def test_a_langchain_compressor_and_transformer():
    hits = langchain_hits()
    from langchain_core.documents import Document
    from langchain_core.runnables import RunnableLambda

    from chunkadapters.langchain import MergeOverlaps, merge_overlaps

    united = merge_overlaps(hits)
    check(
        [(each.page_content, spans_of(each.metadata, "start_index", "end_index")) for each in hits],
        [(each.page_content, spans_of(each.metadata, "start_index", "end_index")) for each in united],
    )
    assert [each.metadata["merged_ids"] for each in united] == [
        f"{hits[0].id},{hits[2].id}",
        f"{hits[1].id},{hits[3].id}",
    ]
    assert {each.metadata["lang"] for each in united} == {"en"}
    assert MergeOverlaps().compress_documents(hits, "tea?") == united
    assert asyncio.run(MergeOverlaps().acompress_documents(hits, "tea?")) == united
    assert asyncio.run(MergeOverlaps().atransform_documents(hits)) == united
    chain = RunnableLambda(lambda query: hits) | MergeOverlaps().transform_documents
    assert chain.invoke("tea?") == united
    plain = Document(page_content="no place")
    assert merge_overlaps([plain, *hits])[0] is plain


def test_langchains_own_retriever_takes_it():
    retrievers = pytest.importorskip("langchain_classic.retrievers", reason="langchain-classic is not installed")
    hits = langchain_hits()
    from langchain_core.embeddings import DeterministicFakeEmbedding
    from langchain_core.vectorstores import InMemoryVectorStore

    from chunkadapters.langchain import MergeOverlaps

    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
    store.add_documents(hits)
    retriever = retrievers.ContextualCompressionRetriever(
        base_compressor=MergeOverlaps(), base_retriever=store.as_retriever(search_kwargs={"k": 4})
    )
    assert len(retriever.invoke("tea?")) == 2


def test_pages_of_one_langchain_source_stay_apart():
    pytest.importorskip("langchain_core", reason="langchain-core is not installed")
    from langchain_core.documents import Document

    from chunkadapters.langchain import merge_overlaps

    pages = [
        Document(page_content=text, metadata={"source": "tea.pdf", "page": page, "start_index": start})
        for page, start, text in [(1, 0, "Tea is "), (2, 7, "hot. Or"), (2, 12, "Or not.")]
    ]
    assert [each.page_content for each in merge_overlaps(pages)] == ["Tea is ", "hot. Or not."]


@pytest.mark.parametrize("options", [{"max_gap": -1}, {"max_gap": "2"}, {"separator": 3}])
def test_bad_options_are_langchains_own_kind_of_error(options):
    pytest.importorskip("langchain_core", reason="langchain-core is not installed")
    from chunkadapters.langchain import MergeOverlaps

    with pytest.raises(ValueError, match=next(iter(options))):
        MergeOverlaps(**options)


# LlamaIndex


def llamaindex_hits() -> list[Any]:
    schema = pytest.importorskip("llama_index.core.schema", reason="llama-index-core is not installed")
    from chunkadapters.llamaindex import ChunkcoreNodeParser

    parser = ChunkcoreNodeParser(strategy="recursive", **SIZES)
    source = schema.Document(id_="tea", text=TEXT, metadata={"lang": "en"}, excluded_llm_metadata_keys=["lang"])
    nodes = parser.get_nodes_from_documents([source])
    return [
        schema.NodeWithScore(node=nodes[place], score=score)
        for place, score in ((5, 0.9), (1, 0.8), (4, 0.7), (0, 0.6))
    ]


def node_spans(node: Any) -> tuple[Span, ...]:
    return decode_spans(node.metadata.get("spans")) or (Span(node.start_char_idx, node.end_char_idx),)


def test_a_llamaindex_post_processor():
    hits = llamaindex_hits()
    from llama_index.core.schema import MetadataMode, NodeRelationship

    from chunkadapters.llamaindex import MergeOverlaps, merge_overlaps

    united = merge_overlaps(hits)
    check(
        [(each.text, node_spans(each.node)) for each in hits], [(each.text, node_spans(each.node)) for each in united]
    )
    assert [each.score for each in united] == [0.9, 0.8]
    best = united[0].node
    assert best.ref_doc_id == "tea"
    assert best.metadata["merged_ids"] == f"{hits[0].node.node_id},{hits[2].node.node_id}"
    assert best.relationships[NodeRelationship.PREVIOUS] == hits[2].node.relationships[NodeRelationship.PREVIOUS]
    assert best.relationships[NodeRelationship.NEXT] == hits[0].node.relationships[NodeRelationship.NEXT]
    assert best.get_content(MetadataMode.LLM) == best.text  # no metadata that the model should not read
    assert MergeOverlaps().postprocess_nodes(hits, query_str="tea?") == united
    again = MergeOverlaps.from_dict(MergeOverlaps(max_gap=0, separator="|").to_dict())
    assert (again.max_gap, again.separator) == (0, "|")
    assert len(again.postprocess_nodes(hits)) == 2


def test_a_llamaindex_query_engine_takes_it():
    hits = llamaindex_hits()
    from llama_index.core import MockEmbedding, VectorStoreIndex
    from llama_index.core.llms import MockLLM

    from chunkadapters.llamaindex import MergeOverlaps

    index = VectorStoreIndex([each.node for each in hits], embed_model=MockEmbedding(embed_dim=4))
    engine = index.as_query_engine(llm=MockLLM(), similarity_top_k=4, node_postprocessors=[MergeOverlaps()])
    assert len(engine.query("tea?").source_nodes) == 2


@pytest.mark.parametrize("options", [{"max_gap": -1}, {"max_gap": "2"}, {"separator": 3}])
def test_bad_options_are_llamaindexs_own_kind_of_error(options):
    pytest.importorskip("llama_index.core", reason="llama-index-core is not installed")
    from chunkadapters.llamaindex import MergeOverlaps

    with pytest.raises(ValueError, match=next(iter(options))):
        MergeOverlaps(**options)


# Haystack


def haystack_hits() -> list[Any]:
    haystack = pytest.importorskip("haystack", reason="haystack-ai is not installed")
    from chunkadapters.haystack import ChunkcoreDocumentSplitter

    splitter = ChunkcoreDocumentSplitter(strategy="recursive", options=SIZES)
    pages = haystack.Document(id="tea", content=TEXT, meta={"lang": "en", "page_number": 3})
    chunks = splitter.run([pages])["documents"]
    return [chunks[place] for place in (5, 1, 4, 0)]


def test_a_haystack_component():
    hits = haystack_hits()
    from haystack import Pipeline

    from chunkadapters.haystack import ChunkcoreMergeOverlaps

    united = ChunkcoreMergeOverlaps().run(hits)["documents"]
    check(
        [(each.content, spans_of(each.meta, "split_idx_start", "split_idx_end")) for each in hits],
        [(each.content, spans_of(each.meta, "split_idx_start", "split_idx_end")) for each in united],
    )
    assert [each.meta["merged_ids"] for each in united] == [f"{hits[0].id},{hits[2].id}", f"{hits[1].id},{hits[3].id}"]
    assert {(each.meta["source_id"], each.meta["lang"], each.meta["page_number"]) for each in united} == {
        ("tea", "en", 3)
    }
    assert [each.meta["split_id"] for each in united] == [4, 0]
    assert not any("_split_overlap" in each.meta for each in united)

    pipeline = Pipeline()
    pipeline.add_component("merge", ChunkcoreMergeOverlaps(max_gap=0, separator="|"))
    again = Pipeline.loads(pipeline.dumps())
    assert again.dumps() == pipeline.dumps()
    assert "max_gap: 0" in again.dumps()
    assert len(again.run({"merge": {"documents": hits}})["merge"]["documents"]) == 2


def test_haystack_hits_of_a_chain_are_united_at_their_root():
    haystack = pytest.importorskip("haystack", reason="haystack-ai is not installed")
    from chunkadapters.haystack import ChunkcoreDocumentSplitter, ChunkcoreMergeOverlaps

    chunks = [haystack.Document(id="tea", content=TEXT)]
    for size in (60, 15):
        splitter = ChunkcoreDocumentSplitter(strategy="recursive", options={"size": size, "overlap": 5})
        chunks = splitter.run(chunks)["documents"]
    united = ChunkcoreMergeOverlaps().run(chunks)["documents"]
    assert len(united) == 1
    meta = united[0].meta
    assert (meta["root_source_id"], meta["root_idx_start"], meta["root_idx_end"]) == ("tea", 0, len(TEXT))
    assert "source_id" not in meta
    places = decode_spans(meta.get("root_spans")) or (Span(0, len(TEXT)),)
    assert united[0].content == "\n".join(span.slice(TEXT) for span in places)


@pytest.mark.parametrize("given", [None, "text", [1]])
def test_what_are_no_documents_is_haystacks_own_kind_of_error(given):
    pytest.importorskip("haystack", reason="haystack-ai is not installed")
    from chunkadapters.haystack import ChunkcoreMergeOverlaps

    with pytest.raises(TypeError, match="expects a list of Documents"):
        ChunkcoreMergeOverlaps().run(given)
    with pytest.raises(ValueError, match="max_gap"):
        ChunkcoreMergeOverlaps(max_gap=-1)
