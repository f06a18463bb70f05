"""Passages behind a retriever of each framework: exact, within the budget, of the hits' documents alone."""

from __future__ import annotations

import asyncio
import copy
import math
import os
import pickle
import random
import shutil
import threading
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

pytest.importorskip("langchain_text_splitters", reason="langchain-text-splitters is not installed")
pytest.importorskip("langchain_classic", reason="langchain-classic is not installed")
pytest.importorskip("llama_index.core", reason="llama-index-core is not installed")
pytest.importorskip("haystack", reason="haystack-ai is not installed")

from chunkadapters import haystack, langchain, llamaindex
from chunkadapters.behind import Behind, PassageWarning
from chunkadapters.haystack.documents import hit_of as haystack_hit_of
from chunkadapters.langchain.retrieval import hit_of as langchain_hit_of
from chunkadapters.llamaindex.retrieval import hit_of as llamaindex_hit_of
from chunkadapters.scores import QuestionScorer
from chunkcore import Benchmark, Document, Evidence, Mark, Query, Span, get_counter, get_retriever
from chunkcore.chunkers import get_chunker
from chunkcore.locating import Hit, Locator, read_spans
from chunkcore.retrieval import chunk_corpus
from chunkcore.retrieval.saved import Enough
from chunkcore.scale.folder_index import index_files
from chunkcore.text import text_of_spans
from haystack import Document as HaystackDocument
from haystack import Pipeline
from haystack.components.preprocessors import DocumentSplitter
from haystack.components.retrievers import InMemoryBM25Retriever
from haystack.document_stores.in_memory import InMemoryDocumentStore
from langchain_classic.retrievers import ContextualCompressionRetriever, EnsembleRetriever, MergerRetriever
from langchain_core.documents import Document as LangChainDocument
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import ConfigurableField, RunnableBinding, RunnableLambda
from langchain_core.tools import create_retriever_tool
from langchain_core.tracers.run_collector import RunCollectorCallbackHandler
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_text_splitters import RecursiveCharacterTextSplitter
from llama_index.core import Document as LlamaDocument
from llama_index.core import MockEmbedding, VectorStoreIndex
from llama_index.core.llms import MockLLM
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.query_engine import CitationQueryEngine, RetrieverQueryEngine
from llama_index.core.retrievers import BaseRetriever as LlamaRetriever
from llama_index.core.retrievers import QueryFusionRetriever, VectorIndexRetriever
from llama_index.core.schema import ImageNode, MetadataMode, NodeWithScore, QueryBundle, TextNode
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters

COUNTER = get_counter("cl100k_base")


def text_of(number: int, tenant: str) -> str:
    """Sentences that many documents share, and a word that none but this one has."""
    return "\n\n".join(
        " ".join(
            f"Sentence {line} of part {part} is about {'tea' if line % 3 else 'ice'}, says {tenant}{number}word."
            for line in range(8)
        )
        for part in range(3)
    )


TEXTS = {f"{tenant}/doc{number}.md": text_of(number, tenant) for tenant in ("ann", "bob") for number in range(4)}
TENANT = {name: {"tenant": name[:3], "source": name} for name in TEXTS}
SOURCES = [Document(name, text, TENANT[name]) for name, text in TEXTS.items()]
WORDS = {name: text.split()[-1].rstrip(".") for name, text in TEXTS.items()}


@dataclass(frozen=True)
class Framework:
    """A framework's own chunks of a text, its documents, and passages behind a retriever that gives some hits."""

    cut: Callable[[str, str], list[Any]]  # by the framework's default splitter, with the tenant as metadata
    document: Callable[..., Any]  # of text, id and metadata
    behind: Callable[..., list[Any]]
    abehind: Callable[..., list[Any]]
    text: Callable[[Any], str]
    metadata: Callable[[Any], dict[str, Any]]  # with the start and end of the place


def langchain_cut(name: str, text: str) -> list[LangChainDocument]:
    splitter = RecursiveCharacterTextSplitter(chunk_size=300, chunk_overlap=50, add_start_index=True)
    return splitter.split_documents([LangChainDocument(page_content=text, metadata=TENANT.get(name, {}))])


def langchain_passages(hits: Sequence[Any], question: str, **options: Any) -> langchain.PassageRetriever:
    return langchain.PassageRetriever(RunnableLambda(lambda _: list(hits)), fetch_k=None, **options)


def llamaindex_cut(name: str, text: str) -> list[Any]:
    source = LlamaDocument(text=text, id_=name, metadata=TENANT.get(name, {}))
    return list(SentenceSplitter(chunk_size=80, chunk_overlap=10).get_nodes_from_documents([source]))


def llamaindex_passages(hits: Sequence[Any], question: str, **options: Any) -> list[NodeWithScore]:
    nodes = [hit if isinstance(hit, NodeWithScore) else NodeWithScore(node=hit) for hit in hits]
    return llamaindex.PassagePostprocessor(**options).postprocess_nodes(nodes, query_str=question)


def haystack_cut(name: str, text: str) -> list[Any]:
    source = HaystackDocument(id=name, content=text, meta=dict(TENANT.get(name, {})))
    chunks: list[Any] = DocumentSplitter(split_by="word", split_length=40, split_overlap=5).run([source])["documents"]
    return chunks


def _place(metadata: dict[str, Any], start: str, end: str) -> dict[str, Any]:
    return metadata | {"start": metadata.get(start), "end": metadata.get(end)}


def node_of(passage: Any) -> Any:
    return getattr(passage, "node", passage)


def llamaindex_place(passage: Any) -> dict[str, Any]:
    node = node_of(passage)
    place = {"start": node.start_char_idx, "end": node.end_char_idx, "source_id": node.ref_doc_id}
    if node.source_node.metadata.get("passage") == node.node_id:
        place["spans"] = node.source_node.metadata["spans"]
    return {**node.metadata, **place}


def metadata_of(chunk: Any) -> dict[str, Any]:
    metadata: dict[str, Any] = chunk.meta if isinstance(chunk, HaystackDocument) else chunk.metadata
    return metadata


FRAMEWORKS = {
    "LangChain": Framework(
        langchain_cut,
        lambda text, name, metadata: LangChainDocument(page_content=text, metadata=metadata | {"source": name}),
        lambda hits, question, **options: langchain_passages(hits, question, **options).invoke(question),
        lambda hits, question, **options: asyncio.run(langchain_passages(hits, question, **options).ainvoke(question)),
        lambda passage: passage.page_content,
        lambda passage: _place(passage.metadata, "start_index", "end_index"),
    ),
    "LlamaIndex": Framework(
        llamaindex_cut,
        lambda text, name, metadata: LlamaDocument(text=text, id_=name, metadata=metadata),
        llamaindex_passages,
        llamaindex_passages,
        lambda passage: node_of(passage).get_content(metadata_mode=MetadataMode.NONE),
        llamaindex_place,
    ),
    "Haystack": Framework(
        haystack_cut,
        lambda text, name, metadata: HaystackDocument(id=name, content=text, meta=metadata),
        lambda hits, question, **options: haystack.ChunkcorePassageRanker(**options).run(question, list(hits))[
            "documents"
        ],
        lambda hits, question, **options: asyncio.run(
            haystack.ChunkcorePassageRanker(**options).run_async(question, list(hits))
        )["documents"],
        lambda passage: passage.content,
        lambda passage: _place(passage.meta, "split_idx_start", "split_idx_end"),
    ),
}
INDEX = get_retriever("passages:lexical").index(chunk_corpus(SOURCES, get_chunker("sentence:size=50")))

every = pytest.mark.parametrize("name", FRAMEWORKS)


@every
def test_passages_are_exact_within_the_budget_and_of_the_hits_alone(name: str) -> None:
    """Whatever hits a retriever let through: their own text by default, else their documents', and no other's."""
    framework, chance = FRAMEWORKS[name], random.Random(7)
    chunks = {source: framework.cut(source, text) for source, text in TEXTS.items()}
    for turn in range(40):
        sources = chance.sample(sorted(TEXTS), chance.randint(0, 3))
        hits = [chance.choice(chunks[source]) for source in sources for _ in range(chance.randint(1, 3))]
        shown = {(metadata_of(hit)["source"], place) for hit in hits for place in places_of(framework, hit)}
        budget = chance.choice([10, 60, 300, 2000])
        question = f"What about tea, ice and {' '.join(WORDS.values())}?"
        options = {"documents": SOURCES} if turn % 4 == 0 else {"index": INDEX}
        show = "whole" if turn % 2 else "hits"
        passages = framework.behind(hits, question, max_tokens=budget, show=show, **options)
        assert sum(COUNTER.count(framework.text(passage)) for passage in passages) <= budget
        places = set()
        for passage in passages:
            metadata = framework.metadata(passage)
            source, spans = metadata["source_id"], spans_of(metadata)
            assert framework.text(passage) == text_of_spans(TEXTS[source], spans)
            assert source in sources
            assert metadata["tenant"] == metadata["source"][:3]
            for span in spans:
                assert show == "whole" or shown.issuperset((source, place) for place in range(span.start, span.end))
            places.add((source, spans))
        assert len(places) == len(passages)
        again = framework.abehind(hits, question, max_tokens=budget, show=show, **options)
        assert list(map(framework.text, again)) == list(map(framework.text, passages))
        assert bool(passages) == bool(hits)


def spans_of(metadata: dict[str, Any]) -> tuple[Span, ...]:
    return read_spans(metadata.get("spans")) or (Span(metadata["start"], metadata["end"]),)


def places_of(framework: Framework, hit: Any) -> range:
    """The characters of a hit, which names its document as its source."""
    text, source = framework.text(hit), TEXTS[metadata_of(hit)["source"]]
    assert source.count(text) == 1
    start = source.index(text)
    return range(start, start + len(text))


@every
def test_text_of_all_documents_is_shown_where_that_is_chosen(name: str) -> None:
    framework = FRAMEWORKS[name]
    hits = framework.cut("ann/doc1.md", TEXTS["ann/doc1.md"])[:1]
    safe, wide = (
        framework.behind(hits, "bob2word", index=INDEX, show=show, max_tokens=300) for show in ("whole", "all")
    )
    assert not any("bob2word" in framework.text(passage) for passage in safe)
    assert any("bob2word" in framework.text(passage) for passage in wide)


@every
def test_a_function_of_metadata_says_which_documents_are_shown_whole(name: str) -> None:
    framework = FRAMEWORKS[name]
    hits = [framework.cut(source, TEXTS[source])[0] for source in ("ann/doc1.md", "bob/doc1.md")]
    passages = framework.behind(hits, "ice", index=INDEX, show=lambda metadata: metadata["tenant"] == "ann")
    sizes = dict.fromkeys(("ann/doc1.md", "bob/doc1.md"), 0)
    for passage in passages:
        sizes[framework.metadata(passage)["source_id"]] += len(framework.text(passage))
    assert sizes["ann/doc1.md"] > len(framework.text(hits[0])) + 100
    assert sizes["bob/doc1.md"] <= len(framework.text(hits[1]))

    async def is_public(metadata: Any) -> bool:
        return True

    def are_public(metadata: Any) -> Any:
        yield True

    for wrong in (is_public, are_public, dict, lambda metadata: is_public(metadata)):
        with pytest.raises(ValueError, match=r"show .* returns True or False"):
            framework.behind(hits, "ice", index=INDEX, show=wrong)


# ---- Canaries: nothing comes out that the retriever did not return

CANARY = "CANARY"
OPEN = "The pump is primed with clean water before each start. Turn the valve slowly until it hisses."
CLOSED = f"{CANARY} the key of the pump room is in drawer nine, behind the pump and the old valve."
TABLE_OF_TWO = f"| part | {CANARY} price |\n|---|---|\n| pump | is primed |\n"
PUMPS = {
    tenant: Document(
        f"{tenant}/pump.md",
        f"{OPEN}\n\n{CLOSED}\n\n{TABLE_OF_TWO}",
        {"title": f"{CANARY} title", "url": "https://x/pump", "path": f"{tenant}/pump", "note": {"by": CANARY}},
        marks=(Mark("page", Span(0, len(OPEN) + len(CLOSED)), {"number": 1, "label": f"{CANARY} page"}),),
    )
    for tenant in ("ann", "bob")
}
ROWS = [(OPEN, "open"), (CLOSED, "closed"), ("| pump | is primed |", "open")]
SUMMARY = "A summary for all: where keys are is written elsewhere."


def chunks_of_pumps(framework: Framework) -> list[Any]:
    """Chunks in which level, url and path say what is hidden; a public summary of a hidden chunk; both tenants."""
    chunks = []
    for tenant, document in PUMPS.items():
        for text, level in ROWS:
            hidden = level == "closed" or tenant == "bob"
            start = document.text.index(text)
            place = {"start_index": start, "split_idx_start": start, "end_index": start + len(text)}
            told: dict[str, Any] = {
                "level": "closed" if hidden else "open",
                "url": f"https://x/pump#{hidden}",
                "path": f"p/{hidden}",
            }
            text = text if tenant == "ann" else f"{text} {CANARY}"
            chunks.append(framework.document(text, "pump.md", {**place, **told, "derived": tenant == "bob"}))
        start = document.text.index(CLOSED)
        place = {"start_index": start, "end_index": start + len(CLOSED), "split_idx_start": start}
        told = {"level": "open", "url": "https://x/pump#False", "path": "p/False", "derived": True}
        chunks.append(framework.document(SUMMARY, f"{tenant}/pump.md", {**place, **told}))
    return [unnamed(chunk, number) for number, chunk in enumerate(chunks)]


def unnamed(chunk: Any, number: int) -> Any:
    """The chunk with an id of its own in a store."""
    number_id = f"00000000-0000-0000-0000-{number:012}"
    if isinstance(chunk, HaystackDocument):
        return replace(chunk, id=number_id, meta={**chunk.meta, "file_path": chunk.id})
    if isinstance(chunk, LangChainDocument):
        return chunk.model_copy(update={"id": number_id})
    place = {"start_char_idx": chunk.metadata["start_index"], "end_char_idx": chunk.metadata["end_index"]}
    metadata = {**chunk.metadata, "file_path": chunk.node_id}
    return TextNode(id_=number_id, text=chunk.text, metadata=metadata, **place)


Ask = Callable[[str], Any]


def awaited(ask: Callable[[str], Any]) -> Ask:
    return lambda question: asyncio.run(ask(question))


def is_open(row: Any) -> bool:
    return bool(row.metadata["level"] == "open")


class FirstRows(BaseRetriever):
    """Has the number of its hits in a field, as LangChain's BM25Retriever."""

    rows: list[Any]
    k: int = 2

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Any]:
        return self.rows[: self.k]


def langchain_asks(chunks: list[Any]) -> list[Ask]:
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
    store.add_documents(chunks)
    sources = list(PUMPS.values())
    plain, fixed = store.as_retriever(), store.as_retriever(search_kwargs={"filter": is_open})
    configurable = plain.configurable_fields(search_kwargs=ConfigurableField(id="top_k"))
    config: Any = {"configurable": {"top_k": {"filter": is_open}}}
    of_allowed = FirstRows(rows=list(filter(is_open, chunks)))
    lone = RunnableLambda(lambda question: store.similarity_search(question, filter=is_open))  # type: ignore[var-annotated]
    by_section = [
        store.as_retriever(search_kwargs={"filter": lambda row, key=key: "False" in row.metadata[key]})
        for key in ("url", "path")
    ]
    retrievers: list[Any] = [fixed, plain.bind(filter=is_open), lone, of_allowed, *by_section]
    retrievers += [configurable.with_config(config), EnsembleRetriever(retrievers=[fixed, lone], weights=[0.5, 0.5])]
    retrievers.append(RunnableBinding(bound=configurable, config_factories=[lambda _: config]))
    asks: list[Ask] = []
    for retriever in retrievers:
        passages = langchain.PassageRetriever(retriever, documents=sources)
        asks += [passages.invoke, awaited(passages.ainvoke), lambda question, asked=passages: asked.batch([question])]
    called = langchain.PassageRetriever(plain, documents=sources)
    compressor = langchain.PassageCompressor(documents=sources)
    compressed = ContextualCompressionRetriever(base_compressor=compressor, base_retriever=plain)
    nested = langchain.PassageRetriever(compressed, documents=sources)
    for retriever in (called, compressed, nested, called.with_retry(), nested.with_fallbacks([called])):
        asks.append(partial(retriever.invoke, filter=is_open))
    # The run's context: a configurable field that reaches the retriever by no argument.
    asked = langchain.PassageRetriever(configurable, documents=sources)
    around = ContextualCompressionRetriever(base_compressor=compressor, base_retriever=configurable)
    inner = langchain.PassageRetriever(around, documents=sources)
    for retriever in (asked, inner):
        tool = create_retriever_tool(retriever, "pumps", "about pumps")
        asks += [
            partial(retriever.invoke, config=config),
            awaited(partial(retriever.ainvoke, config=config)),
            partial(RunnableLambda(retriever.invoke).invoke, config=config),
            partial(RunnableLambda(lambda question, tool=tool: tool.invoke({"query": question})).invoke, config=config),
            awaited(partial(RunnableLambda(retriever.ainvoke).ainvoke, config=config)),
        ]
    return asks


def llamaindex_asks(chunks: list[Any]) -> list[Ask]:
    allowed = MetadataFilters(filters=[MetadataFilter(key="level", value="open")])
    index = VectorStoreIndex(chunks, embed_model=MockEmbedding(embed_dim=8))
    fixed = index.as_retriever(similarity_top_k=5, filters=allowed)
    chosen = VectorIndexRetriever(index, node_ids=[node.node_id for node in chunks if is_open(node)])
    few = VectorStoreIndex([node for node in chunks if is_open(node)], embed_model=MockEmbedding(embed_dim=8))
    fused = QueryFusionRetriever([fixed], llm=MockLLM(), num_queries=1)
    sources = list(PUMPS.values())
    asks: list[Ask] = []
    for retriever in (fixed, chosen, few.as_retriever(), fused):
        passages = llamaindex.PassageRetriever(retriever, documents=sources)
        asks += [passages.retrieve, awaited(passages.aretrieve)]
    processor = llamaindex.PassagePostprocessor(documents=sources)
    engine = RetrieverQueryEngine.from_args(fixed, llm=MockLLM(), node_postprocessors=[processor])
    return [*asks, lambda question: engine.retrieve(QueryBundle(question)), engine.query]


def haystack_asks(chunks: list[Any]) -> list[Ask]:
    store = InMemoryDocumentStore()
    store.write_documents(chunks)
    public = {"field": "meta.level", "operator": "==", "value": "open"}
    pipeline = Pipeline()
    pipeline.add_component("retriever", InMemoryBM25Retriever(store, top_k=100))
    pipeline.add_component("passages", haystack.ChunkcorePassageRanker(documents=list(PUMPS.values())))
    pipeline.connect("retriever", "passages")

    def data(question: str) -> dict[str, Any]:
        return {"retriever": {"query": question, "filters": public}, "passages": {"query": question}}

    return [lambda question: pipeline.run(data(question)), awaited(lambda question: pipeline.run_async(data(question)))]


ASKS = {"LangChain": langchain_asks, "LlamaIndex": llamaindex_asks, "Haystack": haystack_asks}


@every
def test_nothing_comes_back_that_the_retriever_did_not_return(name: str) -> None:
    """By every way in which a filter reaches a retriever; neither text nor metadata, nor in a warning."""
    chunks = chunks_of_pumps(FRAMEWORKS[name])
    for ask in ASKS[name](chunks):
        for question in ("How is the pump primed?", f"Where is the {CANARY} key of the pump room?"):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                answer = ask(question)
            assert "primed" in str(answer)
            assert CANARY not in str(answer).replace(question, "")
            assert CANARY not in str([warning.message for warning in caught])


def test_what_a_call_brings_reaches_every_retriever_inside_or_is_refused() -> None:
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
    store.add_documents(chunks_of_pumps(FRAMEWORKS["LangChain"]))
    one = store.as_retriever(search_kwargs={"k": 4})
    both: Any = EnsembleRetriever(retrievers=[one, one], weights=[0.5, 0.5])
    compressor = langchain.PassageCompressor(documents=list(PUMPS.values()))
    compressed = ContextualCompressionRetriever(base_compressor=compressor, base_retriever=both)
    dropping = [both, MergerRetriever(retrievers=[one, one]), compressed, {"answer": one} | RunnableLambda(dict)]
    wrapped = [both.with_retry(), both.with_config(tags=["t"]), one.with_fallbacks([both]), both.bind(), both | list]
    chosen: Any = one.configurable_alternatives(ConfigurableField("which"), default_key="one", both=both)
    deep = chosen.with_retry().with_fallbacks([one]).with_config(configurable={"which": "both"}).with_retry()
    holding = [Holding(held={"a": [(one, both)]}), Holding(held={"a": one}) | both, Holding(held={"a": [deep]})]
    for child in (*dropping, *wrapped, *holding, deep, RunnableLambda(lambda question, **_: question) | one):
        retriever = langchain.PassageRetriever(child, documents=list(PUMPS.values()))
        with pytest.raises(ValueError, match="takes no filter in a call"):
            retriever.invoke("pump", filter=is_open)
    held = Holding(held={"a": [chosen.with_retry().with_config(configurable={"which": "one"})]})
    takes = (one.with_retry(), one.with_config(tags=["t"]), one.with_fallbacks([held]), one.bind(k=9), one | list)
    for taking in takes:
        retriever = langchain.PassageRetriever(taking, documents=list(PUMPS.values()))
        assert CANARY not in str(retriever.invoke("pump", filter=is_open))


class Holding(BaseRetriever):
    """Hands a call's arguments on to the retriever that it holds first."""

    held: dict[str, Any]

    def _get_relevant_documents(self, query: str, *, run_manager: Any, **arguments: Any) -> list[Any]:
        (retriever,) = self.held["a"]
        documents: list[Any] = retriever.invoke(query, **arguments)
        return documents


class Store(InMemoryVectorStore):
    """Tells for how many hits it was asked."""

    numbers: ClassVar[list[int]] = []

    def similarity_search(self, query: str, k: int = 4, fetch_k: int = 20, **options: Any) -> list[Any]:
        self.numbers.append(min(k, fetch_k))
        return super().similarity_search(query, min(k, fetch_k), **options)


def test_a_retriever_is_asked_for_more_hits_where_it_takes_their_number() -> None:
    rows = [LangChainDocument(page_content=f"Tea {number} is hot.", metadata={"source": "tea"}) for number in range(60)]
    tea = Document("tea", " ".join(row.page_content for row in rows))
    store = Store(DeterministicFakeEmbedding(size=8))
    store.add_documents(rows)
    one = store.as_retriever(search_kwargs={"k": 2})
    configurable = one.configurable_fields(search_kwargs=ConfigurableField(id="search"))
    for child in (one, one.bind(k=3), one.with_retry(), one.with_fallbacks([one]), configurable):
        for fetch_k in (100, 1, None):
            langchain.PassageRetriever(child, documents=[tea], fetch_k=fetch_k).invoke("tea")
        assert store.numbers in ([100, 2, 2], [100, 3, 3])
        store.numbers.clear()
    by_field = FirstRows(rows=rows)
    diverse = InMemoryVectorStore.from_documents(rows, store.embedding).as_retriever(search_type="mmr").with_retry()
    for child in (by_field, diverse):
        asks = (langchain.PassageRetriever(child, documents=[tea], fetch_k=k).invoke for k in (None, 20, 100))
        few, some, many = (sum(len(passage.page_content) for passage in ask("tea")) for ask in asks)
        assert few < some < many
    assert by_field.k == 2
    ours = (langchain.IndexRetriever(documents=[tea], k=1), langchain.PassageRetriever(by_field, documents=[tea], k=1))
    for inner in ours:  # their k is a limit
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert len(langchain.PassageRetriever(inner, documents=[tea]).invoke("tea")) == 1
            assert inner.k == 1
        asked = inner.configurable_fields(max_tokens=ConfigurableField(id="most"))
        assert len(asked.invoke("tea", {"configurable": {"most": 4}})[0].page_content) < 20
    with pytest.warns(PassageWarning, match="EnsembleRetriever takes no number of hits in a call, and gave 2"):
        langchain.PassageRetriever(EnsembleRetriever(retrievers=[one], weights=[1.0]), documents=[tea]).invoke("tea")
    nodes = [TextNode(text=row.page_content, metadata={"file_name": "tea"}) for row in rows]
    child = VectorStoreIndex(nodes, embed_model=MockEmbedding(8)).as_retriever(similarity_top_k=2)
    sizes = [
        sum(len(node.text) for node in llamaindex.PassageRetriever(child, documents=[tea], fetch_k=k).retrieve("tea"))
        for k in (None, 50)
    ]
    assert sizes[0] * 5 < sizes[1]
    assert child.similarity_top_k == 2

    class Plainly(LlamaRetriever):
        def _retrieve(self, query_bundle: Any) -> list[Any]:
            return child.retrieve(query_bundle)

    with pytest.warns(PassageWarning, match="Plainly takes no number of hits in a call, and gave 2"):
        llamaindex.PassageRetriever(Plainly(), documents=[tea]).retrieve("tea")
    for parts, is_asked in (([child, child], True), ([child, Plainly()], False)):
        fused = QueryFusionRetriever(parts, llm=MockLLM(), num_queries=1, similarity_top_k=3, use_async=False)
        retriever = llamaindex.PassageRetriever(fused, documents=[tea])
        with nullcontext() if is_asked else pytest.warns(PassageWarning, match="QueryFusionRetriever"):
            assert sum(len(node.text) for node in retriever.retrieve("tea")) >= sizes[1]
        assert [part.similarity_top_k for part in (fused, child)] == [3, 2]


def finished(ask: Callable[[str], Any]) -> Callable[[str], Any]:
    return lambda question: asyncio.run(ask(question))


@pytest.mark.parametrize("way", ["at once", "awaited"])
def test_a_retriever_that_refuses_so_many_hits_is_asked_for_its_own_number(way: str) -> None:
    tea = Document("tea", "Tea is hot.")

    class Strict(InMemoryVectorStore):
        def similarity_search(self, query: str, k: int = 4, **options: Any) -> list[Any]:
            if k > 60 or options:
                raise ValueError(f"expected at most 60, got {k} with sk-abcdefgh1234")
            return super().similarity_search(query, k)

        async def asimilarity_search(self, query: str, k: int = 4, **options: Any) -> list[Any]:
            return self.similarity_search(query, k, **options)

    class StrictNodes(LlamaRetriever):
        similarity_top_k = 2

        def _retrieve(self, query_bundle: Any) -> list[Any]:
            if self.similarity_top_k > 60:
                raise ValueError("expected at most 60")
            return [NodeWithScore(node=TextNode(text="Tea is hot.", metadata={"file_name": "tea"}))]

    store = Strict(DeterministicFakeEmbedding(size=8))
    store.add_documents([LangChainDocument(page_content="Tea is hot.", metadata={"source": "tea"})])
    lines = langchain.PassageRetriever(store.as_retriever(), documents=[tea])
    nodes = llamaindex.PassageRetriever(StrictNodes(), documents=[tea])
    awaited: list[Any] = [lines.ainvoke, nodes.aretrieve]
    asks: list[Any] = [lines.invoke, nodes.retrieve] if way == "at once" else [finished(ask) for ask in awaited]
    for ask, name in zip(asks, ("VectorStoreRetriever", "StrictNodes"), strict=True):
        with pytest.warns(
            PassageWarning, match=rf"{name} gives no 100 hits \(expected at most 60.*fetch_k=None"
        ) as told:
            assert len(ask("tea")) == 1
        assert "abcdefgh" not in str(told[0].message)
    with pytest.raises(ValueError, match="expected at most 60"):
        lines.invoke("tea", filter={"level": 1})


def test_a_retriever_that_fails_by_itself_is_asked_once() -> None:
    asked = []

    def fail(question: Any) -> list[Any]:
        asked.append(question)
        raise ValueError("there is no collection")

    class Broken(LlamaRetriever):
        similarity_top_k = 2

        def _retrieve(self, query_bundle: Any) -> list[Any]:
            return fail(query_bundle)

    documents = [Document("tea", "Tea is hot.")]
    lines = langchain.PassageRetriever(RunnableLambda(fail), documents=documents)
    nodes = llamaindex.PassageRetriever(Broken(), documents=documents, fetch_k=None)
    for ask in (lines.invoke, finished(lines.ainvoke), nodes.retrieve, finished(nodes.aretrieve)):
        with pytest.raises(ValueError, match="there is no collection"):
            ask("tea")
    assert len(asked) == 4


# ---- Where hits stand


@every
def test_hits_in_no_document_stay_at_their_rank(name: str) -> None:
    framework = FRAMEWORKS[name]
    summary = framework.document("A summary, which a model wrote of tea and ice.", "summary", {"level": 2})
    chunks = framework.cut("ann/doc0.md", TEXTS["ann/doc0.md"])
    hits = [summary, *chunks[:2]]
    with pytest.warns(PassageWarning, match="1 of 3 hits have no certain place in the index"):
        passages = framework.behind(hits, "ann0word", index=INDEX, max_tokens=400)
    assert "A summary, which a model wrote of tea and ice." in [framework.text(passage) for passage in passages]
    empty = framework.document("", "picture.png", {})
    passages = framework.behind([chunks[0], empty, chunks[1]], "ann0word", index=INDEX, max_tokens=400)
    assert [framework.text(passage) for passage in passages].count("") == 1
    with pytest.warns(PassageWarning):  # nothing has a place, and two retrievers gave the same
        (passage,) = framework.behind([summary, summary], "tea", index=INDEX)
    assert framework.text(passage).startswith("A summary")
    with pytest.warns(PassageWarning):
        (cut,) = framework.behind([summary], "tea", index=INDEX, max_tokens=3)
    assert framework.text(cut) == "A summary,"


@every
def test_a_document_that_has_changed_is_not_answered_from_the_index(name: str) -> None:
    framework = FRAMEWORKS[name]
    old = "The house has a door. " * 20 + "The code of the door is 1234. Ask at the gate. " + "Tea is hot. " * 20
    new = old.replace("1234", "9876")
    index = get_retriever("passages:lexical").index(
        chunk_corpus([Document("door.md", old)], get_chunker("sentence:size=50"))
    )
    hits = [chunk for chunk in framework.cut("door.md", new) if "9876" in framework.text(chunk)]
    assert hits
    for hit in hits:
        metadata_of(hit)["source"] = "door.md"
    for show in ("hits", "whole"):
        with pytest.warns(PassageWarning, match=r"hits have no certain place .*: its document does not have its"):
            passages = framework.behind(hits, "What is the code of the door?", index=index, show=show)
        text = " ".join(framework.text(passage) for passage in passages)
        assert "9876" in text
        assert "1234" not in text


@every
def test_a_file_that_has_changed_where_no_hit_is_is_not_answered_from_the_index(name: str, tmp_path: Path) -> None:
    framework, docs, folder = FRAMEWORKS[name], tmp_path / "docs", tmp_path / "index"
    docs.mkdir()
    old = "The house has a door. " * 20 + "The code of the door is 1234. " + "Tea is hot. " * 20
    other = old.replace("house", "park")  # else it would be a copy
    (docs / "door.md").write_text(old)
    (docs / "gate.md").write_text(other)
    (docs / "east.md").write_text("The code of the door is 1234.")
    (docs / "hall.md").write_text("The hall is white.")  # it stays: files of another machine are not looked at
    index_files(docs, folder)
    alone = langchain.IndexRetriever(str(folder))
    chunks = framework.cut("door.md", old)
    hits = [chunks[0], framework.cut("gate.md", other)[0]]
    for hit, file in zip(hits, ("door.md", "gate.md"), strict=True):
        metadata_of(hit)["source"] = file

    def answer(show: str) -> int:
        """In how many documents the old code was found."""
        passages = framework.behind(hits, "What is the code of the door?", index=folder, show=show)
        return " ".join(map(framework.text, passages)).count("1234")

    kept = langchain.PassageRetriever(RunnableLambda(lambda _: [gate]), index=str(folder), fetch_k=None, show="whole")  # type: ignore[has-type]
    gate = LangChainDocument(page_content=other[:300], metadata={"source": "gate.md", "start_index": 0})
    os.utime(docs / "gate.md", (1, 1))  # another stamp, the same text
    assert answer("whole") == 2
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for text in (other[:40], other, "", other):  # half written, whole, empty
            (docs / "gate.md").write_text(text)
            assert ("1234" in kept.invoke("What is the code of the door?")[0].page_content) is (text == other)
    assert sum(each.category is PassageWarning for each in caught) == 1  # said once
    for file in ("door.md", "east.md"):
        (docs / file).write_text(old.replace("1234", "9876"))
    short = langchain.PassageRetriever(kept.retriever, index=str(folder), fetch_k=None, show="all", max_tokens=12)
    with pytest.warns(PassageWarning, match=r"'door.md'"):
        assert "gate.md" in str(short.invoke("What is the code of the door?")[0].metadata)
    for show in ("whole", "all"):
        with pytest.warns(PassageWarning, match=r"1 documents have changed .*'door.md'.*chunkcore index"):
            assert answer(show) == 1
    del hits[0]
    with pytest.warns(PassageWarning, match=r"2 documents have changed .*'door.md'"):
        assert answer("all") == 1  # and no hit in them
    index_files(docs, folder)
    assert answer("all") == 1
    (docs / "gate.md").unlink()
    with pytest.warns(PassageWarning, match=r"'gate.md'.*have the old text"):  # it has opened the newer index
        assert alone.invoke("What is the code of the door?")
    with pytest.warns(PassageWarning, match=r"'gate.md'.*stay as they are"):
        assert answer("whole") == 0
    shutil.rmtree(docs)  # the files are on another machine
    assert answer("whole") == 1


@every
def test_pages_and_the_callers_metadata_are_kept(name: str) -> None:
    text = "\n".join(TEXTS.values())
    pages = tuple(
        Mark("page", Span(start, min(start + 500, len(text))), {"number": number + 1})
        for number, start in enumerate(range(0, len(text), 500))
    )
    source = Document("tea.pdf", text, {"title": "Tea"}, marks=pages)
    framework = FRAMEWORKS[name]
    hit = framework.document(text[1700:2100], "tea.pdf", {"score": "A+", "parts": 7, "page_number": 3})
    if name == "LlamaIndex":
        hit = TextNode(text=text[1700:2100], metadata={"file_name": "tea.pdf", "score": "A+", "parts": 7})
    elif name == "Haystack":
        hit = replace(hit, id="x", meta={**hit.meta, "file_path": "tea.pdf"})
    for passage in framework.behind([hit], "ann1word", documents=[source], max_tokens=600, show="whole"):
        metadata = framework.metadata(passage)
        numbers = source.pages_of(Span(metadata["start"], metadata["end"]))
        assert metadata["pages"] == ", ".join(map(str, numbers))
        first = {"LangChain": ("page", numbers[0] - 1), "LlamaIndex": ("page_label", str(numbers[0]))}
        key, expected = first.get(name, ("page_number", numbers[0]))
        assert (metadata[key], metadata["title"]) == (expected, "Tea")
        assert (metadata["score"], metadata["parts"]) == ("A+", 7)


BEHIND: dict[str, Any] = {
    "LangChain": langchain.PassageCompressor,
    "LlamaIndex": llamaindex.PassagePostprocessor,
    "Haystack": haystack.ChunkcorePassageRanker,
}
ALONE: dict[str, Any] = {
    "LangChain": langchain.IndexRetriever,
    "LlamaIndex": llamaindex.IndexRetriever,
    "Haystack": haystack.ChunkcoreIndexRetriever,
}


def alone(name: str, index: Any, question: str, **options: Any) -> list[str]:
    """The texts of an index without a retriever."""
    retriever = ALONE[name](index, **options)
    ask = {"LangChain": "invoke", "LlamaIndex": "retrieve", "Haystack": "run"}[name]
    found = getattr(retriever, ask)(question)
    return list(map(FRAMEWORKS[name].text, found["documents"] if name == "Haystack" else found))


@every
def test_wrong_options_are_refused_and_assigned_ones_honoured(name: str) -> None:
    framework = FRAMEWORKS[name]
    sources: Any = (
        ({}, "give either an index"),
        ({"index": INDEX, "documents": SOURCES}, "give either an index"),
        ({"index": 5}, "index is a saved index's folder or an index, got int"),
        ({"index": "no/such/folder"}, "holds no index"),
        ({"documents": "docs"}, "load_documents"),
        ({"documents": [5]}, "documents, got int"),
    )
    with pytest.raises((ValueError, TypeError), match="no_option"):
        framework.behind([], "tea", index=INDEX, no_option=9)
    for wrong, message in sources:
        for construct in (BEHIND[name], ALONE[name]):
            with pytest.raises(ValueError, match=message):
                construct(**wrong)
    with pytest.raises(ValueError, match="passages behind a retriever need an index of the retriever passages"):
        framework.behind(
            [], "tea", index=get_retriever("bm25").index(chunk_corpus(SOURCES, get_chunker("sentence:size=50")))
        )
    for retriever in (ALONE["LlamaIndex"](INDEX), llamaindex.PassageRetriever(ALONE["LlamaIndex"](INDEX), index=INDEX)):
        for option, value in (("max_tokens", None), ("k", 0), ("counter", "none such"), ("fetch_k", 0)):
            with pytest.raises(ValueError, match=option):
                setattr(retriever, option, value)
    for fixed in (llamaindex.PassageRetriever(ALONE["LlamaIndex"](INDEX), index=INDEX), ALONE["Haystack"](INDEX)):
        with pytest.raises(ValueError, match="documents"):
            fixed.documents = SOURCES
    hits = framework.cut("ann/doc0.md", TEXTS["ann/doc0.md"])[:2]
    words = type("Words", (), {"__hash__": None, "__call__": lambda self, text: len(text.split())})()
    by_function = framework.behind(hits, "tea", index=INDEX, max_tokens=30, counter=words)
    assert 0 < sum(len(framework.text(passage).split()) for passage in by_function) <= 30
    assert len(framework.behind(hits, "tea", index=INDEX, k=1)) == 1


@every
def test_passages_of_chunks_that_were_given_as_documents_have_the_documents_places(name: str) -> None:
    framework = FRAMEWORKS[name]
    text = TEXTS["ann/doc0.md"]
    chunks = framework.cut("ann/doc0.md", text)
    for passage in framework.behind(chunks[1:], "tea", documents=chunks):
        (span,) = HIT_OF[name](passage).spans
        assert span.slice(text) == framework.text(passage)


@pytest.mark.parametrize("count", [-1, "9", None, float("nan")])
def test_a_counter_that_counts_no_tokens_is_refused(count: Any) -> None:
    """Else a budget would hold nothing back."""
    with pytest.raises(ValueError, match="returns a number of 0 or more"):
        langchain.IndexRetriever(INDEX, counter=lambda text: count).invoke("tea")
    with pytest.raises(ValueError, match="takes one question as a string, got"):
        langchain.IndexRetriever(INDEX).invoke(5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="takes one question as a string, got"):
        langchain.PassageCompressor(index=INDEX).compress_documents([], {"question": "tea"})  # type: ignore[arg-type]
    chunks = get_retriever("bm25").index(chunk_corpus(SOURCES, "sentence:size=50"))
    few, many = (langchain.IndexRetriever(chunks, max_tokens=most, counter="words").invoke("tea") for most in (40, 200))
    assert 150 < sum(len(passage.page_content.split()) for passage in many) <= 200  # more tokens of the chunker's
    assert len(few) < len(many)
    with pytest.raises(ValueError, match="filter is a mapping of metadata"):
        langchain.IndexRetriever(INDEX).invoke("tea", filter="tenant = 'a'")
    with pytest.raises(AttributeError, match="page_content"):  # an empty text would hide nothing
        langchain.IndexRetriever(INDEX).invoke("tea", filter=lambda row: "secret" not in row.page_content)
    with pytest.raises(ValueError, match="filters is a mapping, as of Haystack's filters"):
        haystack.ChunkcoreIndexRetriever(INDEX).run("tea", filters=5)


def test_documents_of_one_id_get_names_that_no_other_has() -> None:
    names = ("tea.md", "tea.md", "tea.md#1")
    documents = [LangChainDocument(page_content=f"Tea {number} is hot.", id=name) for number, name in enumerate(names)]
    found = langchain.IndexRetriever(documents=documents, max_tokens=200).invoke("tea hot 0 1 2")
    assert {passage.metadata["source_id"] for passage in found} == {"tea.md#1", "tea.md#2", "tea.md#3"}
    path = LangChainDocument(page_content="Tea is hot.", metadata={"source": Path("tea.md")})
    assert langchain.IndexRetriever(documents=[path]).invoke("tea")[0].metadata["source_id"] == "tea.md"


# ---- What each framework does with them


class Filtered(BaseRetriever):
    """Has a filter by call and a depth by configuration."""

    depth: int = 2

    def _get_relevant_documents(self, query: str, *, run_manager: Any, tenant: str = "", **others: Any) -> list[Any]:
        assert not others
        names = [name for name in TEXTS if name.startswith(tenant)][: self.depth]
        return [chunk for name in names for chunk in langchain_cut(name, TEXTS[name])[:1]]

    async def _aget_relevant_documents(self, query: str, *, run_manager: Any, **arguments: Any) -> list[Any]:
        return self._get_relevant_documents(query, run_manager=None, **arguments)


class Plain(BaseRetriever):
    """Takes a question alone."""

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Any]:
        return langchain_cut("ann/doc0.md", TEXTS["ann/doc0.md"])


def test_langchain_gives_the_retriever_what_a_call_brings_or_refuses_it() -> None:
    child = Filtered().configurable_fields(depth=ConfigurableField(id="depth"))
    retriever = langchain.PassageRetriever(child, index=INDEX, max_tokens=400)
    for tenant in ("ann", "bob"):
        for passages in (retriever.invoke("tea", tenant=tenant), asyncio.run(retriever.ainvoke("tea", tenant=tenant))):
            assert {passage.metadata["tenant"] for passage in passages} == {tenant}
    deep = retriever.invoke("tea", {"configurable": {"depth": 8}}, max_tokens=5000)
    assert {passage.metadata["tenant"] for passage in deep} == {"ann", "bob"}
    assert len(retriever.invoke("tea", k=1)) == 1
    assert sum(COUNTER.count(passage.page_content) for passage in retriever.invoke("tea", max_tokens=40)) <= 40
    traced = RunCollectorCallbackHandler()
    RunnableLambda(lambda question: retriever.invoke(question)).invoke("tea", {"callbacks": [traced]})
    assert [run.name for run in traced.traced_runs[0].child_runs] == ["PassageRetriever"]
    with pytest.raises(ValueError, match="Plain takes no tenant"):
        langchain.PassageRetriever(Plain(), index=INDEX).invoke("tea", tenant="ann")
    with pytest.raises(ValueError, match="InMemoryVectorStore is no retriever"):
        langchain.PassageRetriever(InMemoryVectorStore(DeterministicFakeEmbedding(size=4)), index=INDEX)
    with pytest.raises(ValueError, match=r"retriever: .* instance of Runnable; got 'no retriever'"):
        langchain.PassageRetriever("no retriever", index=INDEX)


def test_langchain_limits_that_are_assigned_or_copied_count() -> None:
    retriever = langchain.PassageRetriever(Plain(), index=INDEX)
    copied = retriever.model_copy(update={"max_tokens": 40})
    retriever.max_tokens = 40
    for changed in (retriever, copied):
        assert sum(COUNTER.count(passage.page_content) for passage in changed.invoke("tea")) <= 40
    retriever = langchain.PassageRetriever(Plain(), documents=SOURCES)
    refused = {"max_tokens": None, "show": "some", "balance": 2, "index": INDEX, "fetch_k": 0, "retriever": None}
    for name, value in refused.items():
        before = getattr(retriever, name)
        with pytest.raises(ValueError, match=name):
            setattr(retriever, name, value)
        assert getattr(retriever, name) == before


@every
def test_an_answer_shares_nothing_with_the_hits(name: str) -> None:
    """Neither lists that a caller may change, nor arrays, which have no one truth."""
    framework = FRAMEWORKS[name]
    placed = framework.cut("ann/doc0.md", TEXTS["ann/doc0.md"])[:2]
    lost = framework.document("It is in none of the documents.", "lost", {})
    for hit in (*placed, lost):
        metadata_of(hit).update(tags=["tea"], vector=np.ones(2))
    passages = framework.behind([lost, *placed], "tea", index=INDEX)
    for passage in passages:
        metadata = metadata_of(node_of(passage))
        assert (metadata["vector"] == 1).all()
        metadata["tags"].append("ice")
    assert len(passages) > 1
    assert [metadata_of(hit)["tags"] for hit in (*placed, lost)] == [["tea"]] * 3


def test_langchains_own_tests_of_retrievers() -> None:
    tests = pytest.importorskip("langchain_tests.integration_tests", reason="langchain-tests is not installed")

    class Suite(tests.RetrieversIntegrationTests):  # type: ignore[misc, name-defined]
        retriever_query_example = "What is ice about?"
        retriever_constructor = staticmethod(
            lambda k=None, **options: langchain.PassageRetriever(
                Filtered(depth=8), index=INDEX, max_tokens=4000, k=k, **options
            )
        )
        retriever_constructor_params = property(lambda self: {})

    suite = Suite()
    suite.test_k_constructor_param()
    suite.test_invoke_with_k_kwarg(suite.retriever_constructor())
    suite.test_invoke_returns_documents(suite.retriever_constructor())
    asyncio.run(suite.test_ainvoke_returns_documents(suite.retriever_constructor()))


def test_llamaindex_filters_images_and_query_engines() -> None:
    nodes = [node for name, text in TEXTS.items() for node in llamaindex_cut(name, text)]
    index = VectorStoreIndex(nodes, embed_model=MockEmbedding(embed_dim=8))
    allowed = MetadataFilters(filters=[MetadataFilter(key="tenant", value="ann")])
    child = index.as_retriever(similarity_top_k=6, filters=allowed)
    retriever = llamaindex.PassageRetriever(child, index=INDEX, max_tokens=200)
    passages = retriever.retrieve("bob1word")
    assert {passage.node.metadata["tenant"] for passage in passages} == {"ann"}
    assert {passage.node.ref_doc_id for passage in passages} <= {name for name in TEXTS if name.startswith("ann")}
    assert [passage.text for passage in asyncio.run(retriever.aretrieve("bob1word"))] == [
        passage.text for passage in passages
    ]
    retriever.max_tokens = 50
    assert sum(COUNTER.count(passage.text) for passage in retriever.retrieve("ice")) <= 50
    processor = llamaindex.PassagePostprocessor(documents=SOURCES, max_tokens=150)
    engine = index.as_query_engine(similarity_top_k=5, node_postprocessors=[processor], llm=MockLLM())
    assert sum(COUNTER.count(node.text) for node in engine.query("tea?").source_nodes) <= 150
    picture = NodeWithScore(node=ImageNode(image_path="a.png"), score=0.5)
    assert picture in processor.postprocess_nodes([picture, NodeWithScore(node=nodes[0])], query_str="tea")
    with pytest.raises(ValueError, match="VectorStoreIndex is no retriever"):
        llamaindex.PassageRetriever(index, index=INDEX)
    with pytest.raises(ValueError, match="give query_str"):
        processor.postprocess_nodes([NodeWithScore(node=nodes[0])])


def test_haystack_in_a_pipeline_opens_its_index_once() -> None:
    store = InMemoryDocumentStore()
    store.write_documents([chunk for name, text in TEXTS.items() for chunk in haystack_cut(name, text)])
    pipeline = Pipeline()
    pipeline.add_component("retriever", InMemoryBM25Retriever(store, top_k=5))
    opened: list[int] = []

    class Sources(list):  # type: ignore[type-arg]
        def __iter__(self) -> Any:
            opened.append(threading.get_ident())
            return super().__iter__()

    ranker = haystack.ChunkcorePassageRanker(documents=Sources(SOURCES), max_tokens=200)
    pipeline.add_component("passages", ranker)
    pipeline.connect("retriever", "passages")
    allowed = {"field": "meta.tenant", "operator": "==", "value": "bob"}
    asked = {"retriever": {"query": "ice", "filters": allowed}, "passages": {"query": "ice ann1word"}}
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: pipeline.run(asked)["passages"]["documents"], range(8)))
    assert len(opened) == 1
    assert all(answer == answers[0] for answer in answers)
    assert {passage.meta["tenant"] for passage in answers[0]} == {"bob"}
    with pytest.raises(ValueError, match="only a saved index can be written down"):
        pipeline.dumps()


# ---- A saved index


def test_a_saved_index_behind_and_alone_in_each_framework(tmp_path: Any) -> None:
    INDEX.save(tmp_path / "index")
    folder = str(tmp_path / "index")
    hits = langchain_cut("ann/doc0.md", TEXTS["ann/doc0.md"])[:2]
    expected = langchain.PassageCompressor(index=INDEX).compress_documents(hits, "ice")
    assert langchain.PassageCompressor(index=folder).compress_documents(hits, "ice") == expected
    processor = llamaindex.PassagePostprocessor(index=folder, max_tokens=99, counter=len, show="whole")
    assert llamaindex.PassagePostprocessor.from_dict(processor.to_dict()).to_dict() == processor.to_dict()
    pipeline = Pipeline()
    pipeline.add_component("passages", haystack.ChunkcorePassageRanker(folder, show="all", k=2))
    pipeline.add_component("index", haystack.ChunkcoreIndexRetriever(folder, counter=len))
    assert Pipeline.loads(pipeline.dumps()).dumps() == pipeline.dumps()
    expected = [passage.text for passage in INDEX.retrieve("bob1word", max_tokens=100)]
    assert [alone(name, folder, "bob1word", max_tokens=100) for name in ALONE] == [expected] * 3
    with pytest.raises(ValueError, match="nothing"):
        langchain.IndexRetriever(str(tmp_path / "nothing"))


def test_a_calibrated_index_gives_each_framework_what_a_question_needs(tmp_path: Any) -> None:
    def saved(*, behind: bool) -> tuple[Any, str]:
        index = get_retriever("passages:lexical").index(INDEX.corpus)
        index.enough = Enough(miss=0.1, refuse=0.05, level=1.0, least=0.0, questions=20, tokens=200, behind=behind)
        return index, str(index.save(tmp_path / str(behind)))

    question = "What says bob1word of ice?"
    index, folder = saved(behind=False)
    expected = [passage.text for passage in index.retrieve(question, max_tokens="auto")]
    assert [alone(name, folder, question, max_tokens="auto") for name in ALONE] == [expected] * 3
    index, folder = saved(behind=True)
    for framework in FRAMEWORKS.values():
        hits = [chunk for name in TEXTS for chunk in framework.cut(name, TEXTS[name])]
        passages = framework.behind(hits, question, index=folder, max_tokens="auto")
        assert "bob1word" in framework.text(passages[0])
        tokens = sum(COUNTER.count(framework.text(passage)) for passage in passages)
        assert tokens < sum(COUNTER.count(text) for text in TEXTS.values()) / 2
        with pytest.raises(ValueError, match="calibrate the index"):
            framework.behind(hits, question, index=INDEX, max_tokens="auto")


def test_a_folder_that_another_process_saves_into_is_opened_again(tmp_path: Any, monkeypatch: Any) -> None:
    """An old text, or one that was deleted, is not answered from a copy, wherever the app works meanwhile."""
    source = Document("code.md", "The door is blue. The old code is 1234. Rain falls.")
    index = get_retriever("passages:lexical").index(chunk_corpus([source], "sentence:size=50"))
    index.save(tmp_path)
    monkeypatch.chdir(tmp_path)
    behind, hit = Behind(".", show="whole"), Hit("The door is blue.", names=("code.md",))
    monkeypatch.chdir(tmp_path.parent)
    assert "1234" in behind.passages("code", [hit])[0].retrieved.text
    index.update([replace(source, text=source.text.replace("old code is 1234", "new code is 5678"))]).save(tmp_path)
    assert "5678" in behind.passages("code", [hit])[0].retrieved.text
    (tmp_path / "manifest.json").unlink()
    with pytest.raises(ValueError, match="holds no index"):
        behind.passages("code", [hit])


@every
def test_an_index_that_was_updated_says_so_where_it_still_answers(name: str) -> None:
    framework = FRAMEWORKS[name]
    source = Document("tea.md", "Tea is hot. Rain falls, and no crow sings.")
    index = get_retriever("passages:lexical").index(chunk_corpus([source], "sentence:size=50"))
    index.update([replace(source, text="Tea is mild. Rain falls, and no crow sings.")])
    hits = [framework.document("Rain falls, and no crow sings.", "tea.md", {"source_id": "tea.md"})]
    with pytest.warns(PassageWarning, match="this index was updated"):
        framework.behind(hits, "tea", index=index)


def test_adapters_are_pickled_and_copied(tmp_path: Any) -> None:
    INDEX.save(tmp_path)
    hit = langchain_cut("ann/doc0.md", TEXTS["ann/doc0.md"])[0]
    compressor = langchain.PassageCompressor(index=tmp_path, max_tokens=99)
    expected = compressor.compress_documents([hit], "tea")
    assert pickle.loads(pickle.dumps(compressor)).compress_documents([hit], "tea") == expected
    node = NodeWithScore(node=llamaindex_cut("ann/doc0.md", TEXTS["ann/doc0.md"])[0])
    alone: list[Any] = [llamaindex.IndexRetriever(tmp_path), haystack.ChunkcoreIndexRetriever(str(tmp_path))]
    for row in alone:
        for other in (pickle.loads(pickle.dumps(row)), copy.deepcopy(row)):
            ask = getattr(other, "retrieve", None) or other.run
            assert ask("tea")
    ranker = haystack.ChunkcorePassageRanker(index=str(tmp_path))
    ranker.warm_up()
    assert copy.deepcopy(ranker).run("tea", haystack_cut("ann/doc0.md", TEXTS["ann/doc0.md"]))["documents"]
    assert pickle.loads(pickle.dumps(llamaindex.PassagePostprocessor(index=tmp_path))).postprocess_nodes(
        [node], query_str="tea"
    )
    nodes = llamaindex.PassageRetriever(alone[0], index=tmp_path)
    copy.copy(nodes).max_tokens = 9
    assert nodes.max_tokens == alone[0].max_tokens == 1000
    tea = Document("tea.md", "Tea is hot. It boils.")
    copied = compressor.model_copy(update={"index": None, "documents": [tea], "show": "whole"})
    (passage,) = copied.compress_documents(
        [LangChainDocument(page_content="Tea is hot.", metadata={"source": "tea.md"})], ""
    )
    assert passage.page_content == tea.text


def test_filters_that_an_index_cannot_obey_are_refused() -> None:
    """The index knows documents' metadata, not a store's own fields."""
    retriever = haystack.ChunkcoreIndexRetriever(INDEX)
    by_id = {"field": "id", "operator": "!=", "value": "ann/doc0.md"}
    for filters in (by_id, {"operator": "AND", "conditions": [by_id]}):
        with pytest.raises(ValueError, match="filters are on metadata"):
            retriever.run("tea", filters)
    wrong: Any = {"tenant": "ann"}
    with pytest.raises(ValueError, match="filters are MetadataFilters, got dict"):
        llamaindex.IndexRetriever(INDEX, filters=wrong)
    for filters in ("junk", [], by_id, wrong, {"operator": "AND"}, {"field": "meta.year", "operator": "?", "value": 1}):
        with pytest.raises(ValueError, match="filters"):
            haystack.ChunkcoreIndexRetriever(INDEX, filters=filters)


@pytest.mark.parametrize("value", [10**5000, math.nan, b"a", np.array([44])], ids=lambda value: type(value).__name__)
def test_a_filter_s_value_that_no_metadata_can_equal_is_refused(value: Any) -> None:
    condition = {"field": "meta.year", "operator": "==", "value": value}
    with pytest.raises(ValueError, match="where names metadata and their values"):
        haystack.ChunkcoreIndexRetriever(INDEX, filters={"operator": "AND", "conditions": [condition]})
    with pytest.raises(ValueError, match="where names metadata and their values"):
        langchain.IndexRetriever(INDEX).invoke("tea", filter={"year": value})
    if not isinstance(value, np.ndarray):  # which LlamaIndex takes as a list
        with pytest.raises(ValueError, match=r"where names metadata|valid"):
            llamaindex.IndexRetriever(INDEX, filters=MetadataFilters(filters=[MetadataFilter(key="year", value=value)]))
    for wrong in (value, [value]):
        with pytest.raises(ValueError, match="filter"):
            haystack.ChunkcoreIndexRetriever(INDEX, filters=wrong)


def test_an_index_alone_shows_no_document_that_a_filter_excludes() -> None:
    question = f"tea, ice {' '.join(WORDS.values())}"
    store = langchain.IndexRetriever(INDEX)

    def by_function(tenant: str) -> list[Any]:
        return asyncio.run(store.ainvoke(question, filter=lambda row: row.metadata["tenant"] == tenant))

    def by_metadata(tenant: str) -> list[str]:
        filters = MetadataFilters(filters=[MetadataFilter(key="tenant", value=tenant)])
        return alone("LlamaIndex", INDEX, question, filters=filters)

    def by_field(tenant: str) -> list[Any]:
        filters = {"field": "meta.tenant", "operator": "==", "value": tenant}
        found: list[Any] = haystack.ChunkcoreIndexRetriever(INDEX).run(question, filters)["documents"]
        return [passage.content for passage in found]

    ways: list[Callable[[str], list[Any]]] = [by_function, by_metadata, by_field]
    ways.append(lambda tenant: store.invoke(question, filter={"tenant": tenant}))
    for way in ways:
        for tenant, other in (("ann", "bob"), ("bob", "ann")):
            texts = list(map(str, way(tenant)))
            assert any(WORDS[name] in text for name in WORDS for text in texts if name.startswith(tenant))
            assert not [text for name in WORDS for text in texts if name.startswith(other) and WORDS[name] in text]
        assert way("nobody") == []
    with pytest.raises(TypeError, match="tenant"):
        langchain.IndexRetriever(INDEX).invoke("tea", tenant="ann")


def test_documents_that_share_a_source_are_told_apart() -> None:
    """A loader's pages of one file: a hit's place is in its page."""
    pages = [
        LangChainDocument(page_content=text, metadata={"source": "tea.pdf", "page": number})
        for number, text in enumerate(["Ice is cold. It forms at noon, every day.", "Ice is cold. It melts at noon."])
    ]
    for number in (1, 1.0):  # as some stores give it back
        place = {"source": "tea.pdf", "page": number, "start_index": 0}
        hit = LangChainDocument(page_content="Ice is cold.", metadata=place)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            (passage,) = langchain.PassageCompressor(documents=pages, show="whole").compress_documents([hit], "noon")
        assert passage.page_content == pages[1].page_content
    unnamed = [LangChainDocument(page_content=page.page_content, metadata={"source": "tea.pdf"}) for page in pages]
    (passage,) = langchain.PassageCompressor(documents=unnamed, show="whole").compress_documents([unnamed[0]], "noon")
    assert passage.page_content == pages[0].page_content


def cut_again(name: str, passages: list[Any]) -> list[Any]:
    """Passages as the framework's own splitter cuts them."""
    if name == "LangChain":
        return RecursiveCharacterTextSplitter(chunk_size=90, chunk_overlap=0).split_documents(passages)
    if name == "Haystack":
        splitter = DocumentSplitter(split_by="word", split_length=14, split_overlap=0)
        documents: list[Any] = splitter.run(passages)["documents"]
        return documents
    nodes = [passage.node for passage in passages]
    return list(SentenceSplitter(chunk_size=40, chunk_overlap=0).get_nodes_from_documents(nodes))


HIT_OF: dict[str, Callable[[Any], Hit]] = {
    "LangChain": langchain_hit_of,
    "LlamaIndex": llamaindex_hit_of,
    "Haystack": haystack_hit_of,
}


@every
def test_a_piece_that_is_cut_from_a_passage_does_not_have_the_passages_place(name: str) -> None:
    framework = FRAMEWORKS[name]
    text = " ".join(f"Tenant a rinses valve {number} at noon." for number in range(60))
    other = text.replace("Tenant a", "Tenant b")
    chunks = [Span(start, start + 99) for start in (99, 300, 401, 1200)]
    hits = [framework.document(span.slice(text), f"{span.start}", {"source": "a.md"}) for span in chunks]
    if name == "Haystack":
        hits = [replace(hit, meta={"source_id": "a.md"}) for hit in hits]
    elif name == "LlamaIndex":
        hits = [TextNode(text=hit.text, metadata={"file_path": "a.md"}) for hit in hits]
    documents = {key: Document(key, source) for key, source in {"a.md": text, "b.md": other}.items()}
    passages = framework.behind(hits, "valve 17", documents=list(documents.values()))
    assert any(len(spans_of(framework.metadata(passage))) > 1 for passage in passages)
    pieces = cut_again(name, passages)
    assert len(pieces) > len(passages)
    hit_of, locator = HIT_OF[name], Locator(documents)
    for passage in passages:
        assert hit_of(passage).spans == spans_of(framework.metadata(passage))
    for piece in pieces:
        found = locator.locate(hit_of(piece)).piece
        assert not found.spans or text_of_spans(text, found.spans).strip() == framework.text(piece).strip()
        if name == "LlamaIndex":
            assert "spans" not in piece.metadata
            assert "spans" not in framework.metadata(piece)
            assert piece.start_char_idx is None  # or it would be its place in the passage
            assert piece.ref_doc_id in documents


@every
def test_a_piece_of_a_passage_does_not_stand_for_the_passages_copies(name: str) -> None:
    framework = FRAMEWORKS[name]
    words = "Rinse it twice with cold water afterwards."
    text = " ".join([*(f"The kettle is descaled by way {number}." for number in range(12)), words])
    hits = [framework.document(text, key, {}) for key in ("a.md", "b.md")]
    if name == "LlamaIndex":
        hits = [TextNode(text=text, metadata={"file_path": key}) for key in ("a.md", "b.md")]
    sources = [Document(key, text) for key in ("a.md", "b.md")]
    passages = framework.behind(hits, "kettle", documents=sources)
    ours: dict[str, Any] = {
        "LangChain": lambda: langchain.ChunkcoreTextSplitter("sentence", size=15).split_documents(passages),
        "LlamaIndex": lambda: llamaindex.ChunkcoreNodeParser("sentence", size=15)([row.node for row in passages]),
        "Haystack": lambda: haystack.ChunkcoreDocumentSplitter("sentence", size=15).run(passages)["documents"],
    }
    evidence = tuple(Evidence(source.id, Span(text.index(words), len(text))) for source in sources)
    scorer = QuestionScorer(Benchmark("copies", sources, [Query("q", "kettle", evidence)]))
    few = framework.behind(passages, "way 3", documents=sources, max_tokens=20)
    for shown, score in ((passages, 1.0), (cut_again(name, passages)[:1], 0.0), (ours[name]()[:1], 0.0), (few, 0.0)):
        assert scorer.scores("q", list(map(HIT_OF[name], shown)), ["Recall@200tok"]) == [score]


def test_the_places_of_copies_cost_no_model_a_token() -> None:
    text = "The kettle is descaled with vinegar each month. Rinse it twice with cold water afterwards. " * 2
    paths = "/srv/a.md", "/srv/b.md"
    documents = [LlamaDocument(text=f"{path} {text}", metadata={"file_path": path, "url": "bob"}) for path in paths]
    rows = zip(documents, paths, strict=True)
    hits = [NodeWithScore(node=TextNode(text=row.text, metadata={"file_path": path})) for row, path in rows]
    passages = llamaindex.PassagePostprocessor(documents=documents).postprocess_nodes(hits, query_str="kettle")
    assert any("also_in" in passage.node.source_node.metadata for passage in passages)
    for passage in passages:
        assert "bob" not in str(passage.node.source_node.metadata)  # of the index, not of a hit
        assert "also_in" not in passage.node.get_content(metadata_mode=MetadataMode.ALL)
    sources = [Document(row.metadata["file_path"][5:], row.text) for row in documents]
    query = Query("q", "kettle", tuple(Evidence(row.id, Span(10, 54)) for row in sources))
    scorer = QuestionScorer(Benchmark("copies", sources, [query]))
    assert scorer.scores("q", [*map(llamaindex_hit_of, passages)], ["AllEvidence@200tok"]) == [1.0]


def test_a_citation_does_not_have_its_passages_place() -> None:
    nodes = [node for name, text in TEXTS.items() for node in llamaindex_cut(name, text)]
    index = VectorStoreIndex(nodes, embed_model=MockEmbedding(embed_dim=8))
    retriever = llamaindex.PassageRetriever(index.as_retriever(similarity_top_k=6), index=INDEX, max_tokens=300)
    several = [each for each in retriever.retrieve("ice") if "spans" in llamaindex_place(each)]
    assert several
    stored = [TextNode.from_dict(each.node.to_dict()) for each in several]
    assert [llamaindex_hit_of(node).spans for node in stored] == [llamaindex_hit_of(each).spans for each in several]
    engine = CitationQueryEngine.from_args(index, retriever=retriever, llm=MockLLM(), citation_chunk_size=64)
    for citation in engine.query("ice").source_nodes:
        assert "spans" not in citation.node.metadata
        assert llamaindex_hit_of(citation).spans == ()
