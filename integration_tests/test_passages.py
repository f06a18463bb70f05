"""Passages in each framework: exact, disjoint, within the budget, from hits of any retrievers and from documents."""

from __future__ import annotations

import asyncio
import json
import random
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pytest

pytest.importorskip("langchain_text_splitters", reason="langchain-text-splitters is not installed")
pytest.importorskip("llama_index.core", reason="llama-index-core is not installed")
pytest.importorskip("haystack", reason="haystack-ai is not installed")

from haystack import Document as HaystackDocument
from haystack import Pipeline
from haystack.components.embedders import MockDocumentEmbedder, MockTextEmbedder
from haystack.components.joiners import DocumentJoiner
from haystack.components.retrievers import InMemoryBM25Retriever, InMemoryEmbeddingRetriever
from haystack.document_stores.in_memory import InMemoryDocumentStore
from langchain_core.documents import Document as LangChainDocument
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.load import dumps
from langchain_core.retrievers import BaseRetriever
from langchain_core.vectorstores import InMemoryVectorStore
from llama_index.core import Document as LlamaDocument
from llama_index.core import MockEmbedding, VectorStoreIndex
from llama_index.core.base.base_retriever import BaseRetriever as LlamaRetriever
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import NodeWithScore
from llama_index.core.storage.docstore import SimpleDocumentStore

from chunkadapters import haystack, langchain, llamaindex
from chunkadapters.passages import PassageWarning
from chunkadapters.places import decode_spans
from chunkcore import Document, Mark, OptionError, Span, get_counter
from chunkcore.chunkers import get_chunker
from integration_tests.frameworks import FRAMEWORKS, Made

TEXT = "\n\n".join(
    " ".join(f"Sentence {i} of part {part} is about {'tea' if i % 3 else 'ice'}." for i in range(12))
    for part in range(6)
)
UNITS = get_chunker("sentence:size=11,counter=words")
COUNTER = get_counter("cl100k_base")


@dataclass(frozen=True)
class Maker:
    """A framework's passages of rankings of its own chunks, at once and asynchronously."""

    passages: Callable[..., list[Made]]
    apassages: Callable[..., list[Made]]


def langchain_made(found: list[LangChainDocument]) -> list[Made]:
    return [made(each, each.page_content, each.metadata, "index", each.metadata["score"]) for each in found]


def llamaindex_made(found: list[NodeWithScore]) -> list[Made]:
    return [
        made(each, each.text, each.node.metadata | each.node.model_dump(), "char_idx", each.score) for each in found
    ]


def haystack_made(found: list[HaystackDocument]) -> list[Made]:
    return [made(each, each.content or "", each.meta, "idx", each.score) for each in found]


def made(own: Any, text: str, told: dict[str, Any], key: str, score: float | None) -> Made:
    names = ("split_idx_start", "split_idx_end") if key == "idx" else (f"start_{key}", f"end_{key}")
    start, end = map(told.get, names)
    spans = decode_spans(told.get("spans")) or (() if start is None or end is None else (Span(start, end),))
    return Made(text, spans, told | {"score": score}, own)


class Fixed(BaseRetriever):
    """Answers with the same documents."""

    found: list[Any]

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Any]:
        return self.found


class FixedNodes(LlamaRetriever):
    """Answers with the same nodes."""

    def __init__(self, nodes: list[Any]) -> None:
        super().__init__()
        self.nodes = [NodeWithScore(node=each) for each in nodes]

    def _retrieve(self, query_bundle: Any) -> list[NodeWithScore]:
        return self.nodes


def langchain_retriever(rankings: list[list[Any]], **options: Any) -> langchain.PassageRetriever:
    return langchain.PassageRetriever(retrievers=[Fixed(found=each) for each in rankings], **options)


def llamaindex_retriever(rankings: list[list[Any]], **options: Any) -> llamaindex.PassageRetriever:
    return llamaindex.PassageRetriever([FixedNodes(each) for each in rankings], **options)


MAKERS = {
    "LangChain": Maker(
        lambda rankings, **options: langchain_made(langchain_retriever(rankings, **options).invoke("tea?")),
        lambda rankings, **options: langchain_made(
            asyncio.run(langchain_retriever(rankings, **options).ainvoke("tea?"))
        ),
    ),
    "LlamaIndex": Maker(
        lambda rankings, **options: llamaindex_made(llamaindex_retriever(rankings, **options).retrieve("tea?")),
        lambda rankings, **options: llamaindex_made(
            asyncio.run(llamaindex_retriever(rankings, **options).aretrieve("tea?"))
        ),
    ),
    "Haystack": Maker(
        lambda rankings, **options: haystack_made(
            haystack.ChunkcorePassageAssembler(**options).run(rankings)["documents"]
        ),
        lambda rankings, **options: haystack_made(
            asyncio.run(haystack.ChunkcorePassageAssembler(**options).run_async(rankings))["documents"]
        ),
    ),
}


def check(found: list[Made], text: str, budget: int) -> None:
    """Exact, disjoint, within the budget, best first, with parts that are in them."""
    spans = sorted(span for each in found for span in each.spans)
    assert all(one.end <= other.start for one, other in pairwise(spans))
    assert sum(COUNTER.count(each.text) for each in found) <= budget
    scores = [each.metadata["score"] for each in found]
    assert scores == sorted(scores, reverse=True)
    for each in found:
        assert each.text == " ".join(span.slice(text) for span in each.spans)
        parts = [span for part in each.metadata["parts"] for span in place(part)]
        assert parts == sorted(parts)
        assert all(any(own.start <= part.start and part.end <= own.end for own in each.spans) for part in parts)


def place(part: dict[str, Any]) -> tuple[Span, ...]:
    ends = [value for key, value in part.items() if key.startswith(("start", "end", "split_idx"))]
    return decode_spans(part.get("spans")) or (Span(*ends),)


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_passages_of_any_hits_are_exact_disjoint_and_within_the_budget(name: str) -> None:
    chance = random.Random(7)
    chunks = [each.own for each in FRAMEWORKS[name].cut(TEXT, UNITS)]
    assert len(chunks) > 60
    for budget in (12, 40, 150, 400, 5000):
        rankings = [chance.sample(chunks, chance.randint(0, 30)) for _ in range(chance.randint(1, 3))]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PassageWarning)
            found = MAKERS[name].passages(rankings, max_tokens=budget)
            again = MAKERS[name].apassages(rankings, max_tokens=budget)
        check(found, TEXT, budget)
        assert [(each.text, each.metadata) for each in again] == [(each.text, each.metadata) for each in found]
        if budget == 5000:  # there is room for all
            assert sum(len(each.metadata["parts"]) for each in found) == len(
                {id(each) for own in rankings for each in own}
            )
    assert MAKERS[name].passages([[]]) == MAKERS[name].passages([[], []]) == []


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_neighbours_become_one_passage_and_options_count(name: str) -> None:
    chunks = [each.own for each in FRAMEWORKS[name].cut(TEXT, UNITS)]
    dense, lexical = [chunks[5], chunks[30], chunks[6]], [chunks[4], chunks[50]]
    first, *others = MAKERS[name].passages([dense, lexical])
    assert first.text == " ".join(FRAMEWORKS[name].cut(TEXT, UNITS)[i].text for i in (4, 5, 6))
    assert len(first.metadata["parts"]) == len(first.metadata["merged_ids"].split(",")) == 3
    assert first.metadata["parts"][0]["score"] > 0
    assert len(others) == 2
    assert [each.text for each in MAKERS[name].passages([dense, lexical], k=1)] == [first.text]
    by_words = MAKERS[name].passages([dense, lexical], max_tokens=27, counter="words")
    assert sum(len(each.text.split()) for each in by_words) <= 27
    by_function = MAKERS[name].passages([dense, lexical], max_tokens=27, counter=lambda text: len(text.split()))
    assert [each.text for each in by_function] == [each.text for each in by_words]
    for wrong in ({"max_tokens": 0}, {"k": 0}, {"counter": "no such counter"}, {"max_tokens": "9"}):
        with pytest.raises(ValueError, match=r"max_tokens|k is|counter"):
            MAKERS[name].passages([dense], **wrong)


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_what_cannot_become_good_passages_is_told(name: str) -> None:
    chunks = [each.own for each in FRAMEWORKS[name].cut(TEXT, UNITS)]
    with pytest.warns(PassageWarning, match="index smaller chunks"):
        MAKERS[name].passages([chunks[:4]], max_tokens=30)
    plain = {
        "LangChain": LangChainDocument(page_content="Tea is hot."),
        "LlamaIndex": LlamaDocument(text="Tea is hot."),
        "Haystack": HaystackDocument(content="Tea is hot."),
    }[name]
    with pytest.warns(PassageWarning, match="let another splitter write its offsets"):
        found = MAKERS[name].passages([[plain, *chunks[:2]]])
    assert {each.text for each in found} > {"Tea is hot."}
    with warnings.catch_warnings():
        warnings.simplefilter("error", PassageWarning)
        MAKERS[name].passages([chunks])


PAGED = Document(
    "tea.pdf", TEXT, marks=tuple(Mark("page", Span(634 * i, 634 * (i + 1)), {"number": i + 1}) for i in range(4))
)


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_passages_keep_their_pages(name: str) -> None:
    framework = {
        "LangChain": lambda: langchain.ChunkcoreTextSplitter(UNITS).split_documents([langchain.from_document(PAGED)]),
        "LlamaIndex": lambda: llamaindex.ChunkcoreNodeParser(UNITS)([llamaindex.from_document(PAGED)]),
        "Haystack": lambda: haystack.ChunkcoreDocumentSplitter(UNITS).run([haystack.from_document(PAGED)])["documents"],
    }[name]
    chunks = framework()
    for found in MAKERS[name].passages([chunks[15:21]]):
        pages = PAGED.pages_of(found.spans)
        assert found.metadata["pages"] == ", ".join(map(str, pages))
        first = {"LangChain": ("page", pages[0] - 1), "LlamaIndex": ("page_label", str(pages[0]))}
        key, expected = first.get(name, ("page_number", pages[0]))
        assert found.metadata[key] == expected


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_documents_become_passages_of_one_span(name: str) -> None:
    def langchain_found(budget: int) -> list[Made]:
        documents = [langchain.from_document(PAGED), LangChainDocument(page_content="Other.", metadata={"source": "o"})]
        retriever = langchain.PassageRetriever.from_documents(
            documents, DeterministicFakeEmbedding(size=8), units=UNITS, max_tokens=budget
        )
        found = retriever.invoke("What is ice about?")
        assert asyncio.run(retriever.ainvoke("What is ice about?")) == found
        return langchain_made(found)

    def llamaindex_found(budget: int) -> list[Made]:
        documents = [llamaindex.from_document(PAGED), LlamaDocument(text="Other.")]
        retriever = llamaindex.PassageRetriever.from_documents(
            documents, MockEmbedding(embed_dim=8), units=UNITS, max_tokens=budget
        )
        found = retriever.retrieve("What is ice about?")
        assert asyncio.run(retriever.aretrieve("What is ice about?")) == found
        assert {each.node.ref_doc_id for each in found} == {"tea.pdf"}
        return llamaindex_made(found)

    def haystack_found(budget: int) -> list[Made]:
        store = InMemoryDocumentStore()
        chunks = haystack.ChunkcoreDocumentSplitter(UNITS).run([haystack.from_document(PAGED)])["documents"]
        store.write_documents(MockDocumentEmbedder(dimension=8).run(chunks)["documents"])
        retriever = haystack.ChunkcorePassageRetriever(store, MockTextEmbedder(dimension=8), max_tokens=budget)
        found = retriever.run("What is ice about?")["documents"]
        assert asyncio.run(retriever.run_async("What is ice about?"))["documents"] == found
        return haystack_made(found)

    ways = {"LangChain": langchain_found, "LlamaIndex": llamaindex_found, "Haystack": haystack_found}
    for budget in (100, 300):
        found = ways[name](budget)
        check(found, TEXT, budget)
        assert found
        assert all("pages" in each.metadata for each in found)
        if name != "Haystack":  # which reads chunks, without their source
            assert all(len(each.spans) == 1 for each in found)


# ---- What each framework does with them


def test_parts_of_a_piece_stand_where_its_passage_does() -> None:
    text = "Tea is hot. It boils at noon."
    piece = LangChainDocument(page_content=text, metadata={"source": "t", "start_index": 100, "end_index": 129})
    (found,) = langchain.PassageRetriever.from_documents([piece], units="sentence:size=4,counter=words").invoke("tea")
    assert (found.metadata["start_index"], found.metadata["end_index"]) == (100, 129)
    assert [(each["start_index"], each["end_index"]) for each in found.metadata["parts"]] == [(100, 111), (112, 129)]
    unknown = LangChainDocument(page_content=text, metadata={"source": "t", "start_index": -1})
    (found,) = langchain.PassageRetriever.from_documents([unknown], units="sentence:size=4,counter=words").invoke("tea")
    assert found.metadata["start_index"] == -1
    assert not any("start_index" in each for each in found.metadata["parts"])


def test_a_question_that_starts_with_a_title_is_asked_of_that_document() -> None:
    animals = [("Foxes", "They nap in dens."), ("Crows", "They nap in trees.")]
    given = [LangChainDocument(page_content=text, metadata={"title": title}) for title, text in animals]
    found = langchain.PassageRetriever.from_documents(given).invoke("Foxes: where do they nap?")
    assert [each.page_content for each in found] == ["They nap in dens."]
    nodes = [LlamaDocument(text=text, metadata={"title": title}) for title, text in animals]
    hits = llamaindex.PassageRetriever.from_documents(nodes).retrieve("Crows: where do they nap?")
    assert [each.node.text for each in hits] == ["They nap in trees."]
    store = InMemoryDocumentStore()
    store.write_documents(
        [
            HaystackDocument(content=text, meta={"source_id": source, "split_idx_start": start, **title})
            for source, start, text, title in [
                ("f", 0, "They nap in dens.", {"title": "Foxes"}),
                ("c", 7, "They nap in trees.", {}),
                ("c", 0, "Crows.", {}),
            ]
        ]
    )
    retriever = haystack.ChunkcorePassageRetriever(store)
    for name, text in [("Foxes", "They nap in dens."), ("Crows", "Crows. They nap in trees.")]:
        documents = retriever.run(f"{name}: where do they nap?")["documents"]
        assert [each.content for each in documents] == [text]


def test_documents_stand_in_a_list() -> None:
    both: list[tuple[Any, Any]] = [
        (langchain.PassageRetriever, LangChainDocument(page_content="Tea.")),
        (llamaindex.PassageRetriever, LlamaDocument(text="Tea.")),
    ]
    for retriever, document in both:
        for wrong in (document, None):
            with pytest.raises(ValueError, match="put it into a list"):
                retriever.from_documents(wrong)
        with pytest.raises(ValueError, match="documents, got str"):
            retriever.from_documents(["Tea."])


def test_an_option_that_is_given_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="size: given in options and as a keyword"):
        haystack.ChunkcoreDocumentSplitter(strategy="recursive", options={"size": 3}, size=5)


def test_langchain_compressors_behind_other_retrievers() -> None:
    retrievers = pytest.importorskip("langchain_classic.retrievers", reason="langchain-classic is not installed")
    from langchain_core.language_models import FakeListChatModel
    from langchain_core.stores import InMemoryStore

    source = LangChainDocument(page_content=TEXT, metadata={"source": "tea.md"})
    units = langchain.ChunkcoreTextSplitter(UNITS)
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
    store.add_documents(units.split_documents([source]))
    llm = FakeListChatModel(responses=["tea\nice"])
    several = retrievers.MultiQueryRetriever.from_llm(store.as_retriever(search_kwargs={"k": 20}), llm)
    parents = retrievers.ParentDocumentRetriever(
        vectorstore=InMemoryVectorStore(DeterministicFakeEmbedding(size=8)),
        docstore=InMemoryStore(),
        child_splitter=units,
        parent_splitter=langchain.ChunkcoreTextSplitter("recursive:size=60"),
        search_kwargs={"k": 20},
    )
    parents.add_documents([source])
    compressor = langchain.PassageCompressor(max_tokens=200)
    for inner in (several, parents, langchain.PassageRetriever(retrievers=store, hits=30, max_tokens=500)):
        chain = retrievers.ContextualCompressionRetriever(base_compressor=compressor, base_retriever=inner)
        found = chain.invoke("tea?")
        check(langchain_made(found), TEXT, 200)
        assert found
        assert asyncio.run(chain.ainvoke("tea?")) == found


def test_langchain_writes_them_down() -> None:
    compressor = langchain.PassageCompressor(max_tokens=200, k=3, counter="words")
    again = langchain.PassageCompressor.model_validate_json(compressor.model_dump_json())
    assert again.model_dump() == compressor.model_dump() == {"max_tokens": 200, "k": 3, "counter": "words"}
    with pytest.raises(ValueError, match="name a counter"):
        langchain.PassageCompressor(counter=len).model_dump()
    written = json.loads(dumps(langchain_retriever([[]], max_tokens=70)))
    assert written["id"][-1] == "PassageRetriever"
    assert written["kwargs"]["max_tokens"] == 70
    with pytest.raises(ValueError, match="retrievers are LangChain retrievers"):
        langchain.PassageRetriever(retrievers=["no retriever"])
    with pytest.raises(OptionError, match="give retrievers"):
        langchain.PassageRetriever().invoke("tea?")


def test_llamaindex_joins_hits_by_the_docstores_neighbours() -> None:
    nodes = llamaindex.ChunkcoreNodeParser(UNITS).get_nodes_from_documents([LlamaDocument(text=TEXT, id_="tea")])
    docstore = SimpleDocumentStore()
    docstore.add_documents(nodes)
    hits = [NodeWithScore(node=each) for each in (nodes[5], nodes[7], nodes[40])]
    alone = llamaindex.PassagePostprocessor().postprocess_nodes(hits)
    assert len(alone) == 3
    processor = llamaindex.PassagePostprocessor(docstore=docstore)
    joined = processor.postprocess_nodes(hits)
    check(llamaindex_made(joined), TEXT, 1000)
    assert sorted(len(each.node.metadata["parts"]) for each in joined) == [5, 7]
    assert asyncio.run(processor.apostprocess_nodes(hits)) == joined
    retriever = llamaindex.PassageRetriever([FixedNodes([each.node for each in hits])], docstore=docstore)
    assert [each.text for each in retriever.retrieve("tea?")] == [each.text for each in joined]
    best = joined[0].node
    assert best.prev_node.node_id in {each.node_id for each in nodes}
    assert "parts" not in best.get_metadata_str(mode="llm")


def test_llamaindex_in_a_query_engine_and_written_down() -> None:
    nodes = llamaindex.ChunkcoreNodeParser(UNITS).get_nodes_from_documents([LlamaDocument(text=TEXT, id_="tea")])
    index = VectorStoreIndex(nodes, embed_model=MockEmbedding(embed_dim=8))
    processor = llamaindex.PassagePostprocessor(max_tokens=150, counter="words")
    engine = index.as_query_engine(similarity_top_k=20, node_postprocessors=[processor], llm=MockLLM())
    answer = engine.query("tea?")
    assert 0 < sum(len(each.text.split()) for each in answer.source_nodes) <= 150
    engine = RetrieverQueryEngine.from_args(llamaindex.PassageRetriever(index, max_tokens=150, hits=20), llm=MockLLM())
    check(llamaindex_made(engine.query("tea?").source_nodes), TEXT, 150)
    data = processor.to_dict()
    assert data["class_name"] == "ChunkcorePassagePostprocessor"
    again = llamaindex.PassagePostprocessor.from_dict(data)
    assert again.to_dict() == data
    assert again.max_tokens == 150
    with pytest.raises(OptionError, match="LlamaIndex retrievers"):
        llamaindex.PassageRetriever(["no retriever"])


def haystack_store() -> InMemoryDocumentStore:
    store = InMemoryDocumentStore()
    chunks = haystack.ChunkcoreDocumentSplitter(UNITS).run([HaystackDocument(id="tea", content=TEXT)])["documents"]
    store.write_documents(MockDocumentEmbedder(dimension=8).run(chunks)["documents"])
    return store


@pytest.mark.parametrize("joined", [False, True])
def test_a_haystack_pipeline_from_yaml(joined: bool) -> None:
    store = haystack_store()
    pipeline = Pipeline()
    pipeline.add_component("embedder", MockTextEmbedder(dimension=8))
    pipeline.add_component("dense", InMemoryEmbeddingRetriever(store, top_k=20))
    pipeline.add_component("lexical", InMemoryBM25Retriever(store, top_k=20))
    pipeline.add_component("passages", haystack.ChunkcorePassageAssembler(max_tokens=150, document_store=store))
    pipeline.connect("embedder.embedding", "dense.query_embedding")
    if joined:
        pipeline.add_component("joiner", DocumentJoiner(join_mode="reciprocal_rank_fusion"))
        pipeline.connect("joiner", "passages")
    for each in ("dense", "lexical"):
        pipeline.connect(each, "joiner" if joined else "passages")
    question = {"embedder": {"text": "ice?"}, "lexical": {"query": "ice?"}}
    found = pipeline.run(question)["passages"]["documents"]
    check(haystack_made(found), TEXT, 150)
    assert found
    assert asyncio.run(pipeline.run_async(question))["passages"]["documents"] == found
    again = Pipeline.loads(pipeline.dumps()).get_component("passages")
    assert again.to_dict() == pipeline.get_component("passages").to_dict()
    lone = [each for each in store.filter_documents() if each.meta["split_id"] in (5, 7)]
    (one,) = haystack.ChunkcorePassageAssembler(document_store=store).run([lone])["documents"]
    assert len(one.meta["parts"]) == 7


def test_haystacks_retriever_reads_a_store() -> None:
    store = haystack_store()
    retriever = haystack.ChunkcorePassageRetriever(store, MockTextEmbedder(dimension=8), max_tokens=90, counter="words")
    pipeline = Pipeline()
    pipeline.add_component("passages", retriever)
    again = Pipeline.loads(pipeline.dumps())
    assert again.get_component("passages").to_dict() == retriever.to_dict()
    lexical = haystack.ChunkcorePassageRetriever(store, max_tokens=150)
    before = lexical.run("ice")["documents"]
    store.write_documents(
        haystack.ChunkcoreDocumentSplitter(UNITS).run([HaystackDocument(id="q", content="Quinoa.")])["documents"]
    )
    assert lexical.run("Quinoa")["documents"][0].content == "Quinoa."
    assert before
    with pytest.raises(ValueError, match="1 of 73 chunks of the store have no embedding"):
        haystack.ChunkcorePassageRetriever(store, MockTextEmbedder(dimension=8)).run("ice")
    store.write_documents([HaystackDocument(content="no place")])
    with pytest.raises(ValueError, match="does not say where"):
        lexical.run("ice")
