"""Retrievers that are made of others, scored as they are deployed: every place that they return is known."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import pytest
from chunkcore import Benchmark, DataError, Document, Evidence, OptionError, Query, Report, Span

os.environ.setdefault("HAYSTACK_TELEMETRY_ENABLED", "False")  # nothing here goes online

TEXT = "Green tea is mild.\n\nBlack tea is strong.\n\nEspresso is short.\n\nCoffee is long.\n\nGreen tea is mild."
SECOND = "Green tea is mild.\n\nThe sea is deep.\n\nThe harbour is shallow."
SIZES = {"size": 5, "overlap": 0, "counter": "words"}
BENCHMARK = Benchmark(
    name="drinks",
    documents=(Document("drinks", TEXT), Document("sea", SECOND)),
    queries=(
        # The same sentence stands at three places: only a place that is known to the letter finds the wanted one.
        Query(id="deep", text="deep sea", evidence=(Evidence("sea", Span(20, 36)),)),
        Query(id="espresso", text="short espresso", evidence=(Evidence("drinks", Span(42, 60)),)),
    ),
)


def words(text: str) -> set[str]:
    return set(text.lower().replace(".", "").split())


def found_all(report: Report) -> None:
    """Each question's evidence was found, and every piece was placed by what it says of itself."""
    assert not report.unanswered
    assert report.mean("Recall@5") == 1
    assert set(report.located) == {"spans"}


# LangChain


@pytest.fixture
def langchain() -> Any:
    """LangChain's retrievers, and one of ours: chunks by the words that they share with a question."""
    retrievers = pytest.importorskip("langchain_classic.retrievers", reason="langchain-classic is not installed")
    return retrievers, langchain_chunks(), langchain_retriever


def langchain_chunks() -> list[Any]:
    from chunkadapters.langchain import ChunkcoreTextSplitter
    from langchain_core.documents import Document as Page

    pages = [Page(page_content=each.text, metadata={"source": each.id}) for each in BENCHMARK.documents]
    return ChunkcoreTextSplitter("recursive", **SIZES).split_documents(pages)


def langchain_retriever(chunks: list[Any], k: int = 2) -> Any:
    from langchain_core.retrievers import BaseRetriever

    class ByWords(BaseRetriever):
        def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Any]:
            return sorted(chunks, key=lambda each: -len(words(each.page_content) & words(query)))[:k]

    return ByWords()


def test_langchains_ensemble_also_asynchronously(langchain: Any) -> None:
    retrievers, chunks, made = langchain
    from chunkadapters.langchain import aevaluate_retriever, evaluate_retriever

    ensemble = retrievers.EnsembleRetriever(retrievers=[made(chunks), made(chunks[::-1])], weights=[0.5, 0.5])
    found_all(evaluate_retriever(ensemble, BENCHMARK, measures="Recall@5"))
    found_all(asyncio.run(aevaluate_retriever(ensemble, BENCHMARK, measures="Recall@5")))


# LlamaIndex


def llamaindex() -> tuple[list[Any], Any]:
    pytest.importorskip("llama_index.core", reason="llama-index-core is not installed")
    from chunkadapters.llamaindex import ChunkcoreNodeParser
    from llama_index.core import Document as Source

    sources = [Source(id_=each.id, text=each.text) for each in BENCHMARK.documents]
    nodes = ChunkcoreNodeParser("recursive", **SIZES).get_nodes_from_documents(sources)
    return nodes, llamaindex_retriever


def llamaindex_retriever(nodes: list[Any], k: int = 2) -> Any:
    from llama_index.core.retrievers import BaseRetriever
    from llama_index.core.schema import NodeWithScore

    class ByWords(BaseRetriever):
        def _retrieve(self, query_bundle: Any) -> list[Any]:
            asked = words(query_bundle.query_str)
            scored = [NodeWithScore(node=each, score=float(len(words(each.get_content()) & asked))) for each in nodes]
            return sorted(scored, key=NodeWithScore.get_score, reverse=True)[:k]

    return ByWords()


def test_llamaindexs_fusion() -> None:
    nodes, made = llamaindex()
    from chunkadapters.llamaindex import aevaluate_retriever, evaluate_retriever
    from llama_index.core.llms import MockLLM
    from llama_index.core.retrievers import QueryFusionRetriever

    fused = QueryFusionRetriever(
        [made(nodes), made(nodes[::-1])], llm=MockLLM(), mode="reciprocal_rerank", num_queries=1, use_async=False
    )
    found_all(evaluate_retriever(fused, BENCHMARK, measures="Recall@5"))
    found_all(asyncio.run(aevaluate_retriever(fused, BENCHMARK, measures="Recall@5")))


def test_a_query_engine_is_scored_after_its_post_processors() -> None:
    nodes, made = llamaindex()
    from chunkadapters.llamaindex import aevaluate_retriever, evaluate_retriever
    from llama_index.core.llms import MockLLM
    from llama_index.core.postprocessor import SimilarityPostprocessor
    from llama_index.core.query_engine import RetrieverQueryEngine

    class Unasked(MockLLM):
        def complete(self, *args: Any, **kwargs: Any) -> Any:
            raise AssertionError("a language model was asked")

    def engine(*after: Any) -> Any:
        return RetrieverQueryEngine.from_args(
            made(nodes, k=5), llm=Unasked(max_tokens=None), node_postprocessors=list(after)
        )

    plain, strict = engine(), engine(SimilarityPostprocessor(similarity_cutoff=1.5))
    precise = evaluate_retriever(strict, BENCHMARK, measures=["Recall@5", "Precision@5"])
    found_all(precise)
    assert precise.mean("Precision@5") == 1
    assert evaluate_retriever(plain, BENCHMARK, measures="Precision@5").mean("Precision@5") < 0.5
    awaited = asyncio.run(aevaluate_retriever(strict, BENCHMARK, measures=["Recall@5", "Precision@5"]))
    assert awaited.mean("Precision@5") == 1


def test_a_query_engine_that_does_not_retrieve_is_told() -> None:
    llamaindex()
    from chunkadapters.llamaindex import evaluate_retriever
    from llama_index.core.base.base_query_engine import BaseQueryEngine

    class Closed(BaseQueryEngine):
        def _query(self, query_bundle: Any) -> Any: ...
        async def _aquery(self, query_bundle: Any) -> Any: ...
        def _get_prompt_modules(self) -> Any: ...

    with pytest.raises(DataError, match="Closed does not tell what it retrieves"):
        evaluate_retriever(Closed(None), BENCHMARK)


# Haystack


def test_haystacks_joined_pipeline_with_passages() -> None:
    pytest.importorskip("haystack", reason="haystack-ai is not installed")
    from chunkadapters.haystack import ChunkcoreDocumentSplitter, ChunkcorePassageRanker, evaluate_retriever
    from haystack import Document as Page
    from haystack import Pipeline
    from haystack.components.joiners import DocumentJoiner
    from haystack.components.retrievers import InMemoryBM25Retriever
    from haystack.document_stores.in_memory import InMemoryDocumentStore

    splitter = ChunkcoreDocumentSplitter("recursive", options=SIZES)
    store = InMemoryDocumentStore()
    pages = [Page(id=each.id, content=each.text) for each in BENCHMARK.documents]
    store.write_documents(splitter.run(documents=pages)["documents"])
    pipeline = Pipeline()
    pipeline.add_component("few", InMemoryBM25Retriever(store, top_k=1))
    pipeline.add_component("more", InMemoryBM25Retriever(store, top_k=3))
    pipeline.add_component("join", DocumentJoiner())
    pipeline.add_component("passages", ChunkcorePassageRanker(documents=BENCHMARK.documents))
    pipeline.connect("few", "join")
    pipeline.connect("more", "join")
    pipeline.connect("join", "passages")
    asked = ["few.query", "more.query", "passages.query"]
    found_all(evaluate_retriever(pipeline, BENCHMARK, measures="Recall@5", query_socket=asked))


# A question's filter beside the app's own


TENANTS = {f"{number}.md": {"tenant": "ab"[number % 2], "year": 2000 + number % 3} for number in range(6)}
FILTERED = Benchmark(
    "filtered",
    [Document(name, f"Tea number {name[0]} is hot.", metadata) for name, metadata in TENANTS.items()],
    [Query("q", "tea", (Evidence("3.md", Span(0, 3)),), where={"year": 2000})],
)


def names(run: Any) -> set[str]:
    assert not run.failures
    return {piece.document_id for piece in run.results["q"]}


def test_llamaindexs_own_filters_stay_beside_a_questions() -> None:
    pytest.importorskip("llama_index.core", reason="llama-index-core is not installed")
    from chunkadapters.llamaindex import IndexRetriever, PassageRetriever, run_retriever
    from llama_index.core import Document as Source
    from llama_index.core import MockEmbedding, VectorStoreIndex
    from llama_index.core.retrievers import BaseRetriever, VectorIndexRetriever
    from llama_index.core.vector_stores import FilterCondition, MetadataFilter, MetadataFilters

    sources = [Source(id_=row.id, text=row.text, metadata=dict(row.metadata)) for row in FILTERED.documents]
    index = VectorStoreIndex.from_documents(sources, embed_model=MockEmbedding(8))
    of_a = MetadataFilters(filters=[MetadataFilter(key="tenant", value="b")])
    negative = MetadataFilters(filters=of_a.filters, condition=FilterCondition.NOT)

    class Ignoring(BaseRetriever):
        _filters = None

        def _retrieve(self, query_bundle: Any) -> list[Any]:
            return index.as_retriever().retrieve(query_bundle)

    class Other(VectorIndexRetriever):
        pass

    own = index.as_retriever(similarity_top_k=9, filters=of_a)
    for retriever, expected in (
        (index.as_retriever(similarity_top_k=9), {"0.md", "3.md"}),
        (own, {"3.md"}),
        (PassageRetriever(own, documents=sources, show="whole"), {"3.md"}),
        (IndexRetriever(documents=sources, filters=of_a), {"3.md"}),
    ):
        assert names(run_retriever(retriever, FILTERED)) == expected
    assert own._filters is of_a
    for refused in (
        index.as_retriever(filters=negative),
        IndexRetriever(documents=sources, filters=negative),
        PassageRetriever(own, documents=sources, show="all"),
        PassageRetriever(Ignoring(), documents=sources),
        Ignoring(),
        Other(index),
    ):
        with pytest.raises(OptionError, match=r"\(where\)"):
            run_retriever(refused, FILTERED)


def test_a_questions_filter_reaches_every_haystack_retriever_or_is_refused() -> None:
    pytest.importorskip("haystack", reason="haystack-ai is not installed")
    from chunkadapters.haystack import ChunkcoreIndexRetriever, ChunkcorePassageRanker, run_retriever
    from haystack import Document as Page
    from haystack import Pipeline, SuperComponent, component
    from haystack.components.joiners import DocumentJoiner
    from haystack.components.retrievers import InMemoryBM25Retriever
    from haystack.document_stores.in_memory import InMemoryDocumentStore

    store = InMemoryDocumentStore()
    pages = [Page(id=row.id, content=row.text, meta=dict(row.metadata)) for row in FILTERED.documents]
    store.write_documents(pages)
    of_b = {"field": "meta.tenant", "operator": "==", "value": "b"}

    @component
    class Unfiltered:
        @component.output_types(documents=list[Page])
        def run(self, query: str) -> Any:
            return {"documents": pages}

    @component
    class Holder:
        def __init__(self, parts: Any, filters: Any = None) -> None:
            self.parts, self.filters = parts, filters

        @component.output_types(documents=list[Page])
        def run(self, query: str, filters: dict[str, Any] | None = None) -> Any:
            assert len((filters or {}).get("conditions", "two")) > 1  # as Chroma wants it
            return self.parts["one"][0].run(query, filters or self.filters)

    def joined(*retrievers: Any, **passages: Any) -> Any:
        pipeline = Pipeline()
        pipeline.add_component("join", DocumentJoiner())
        pipeline.add_component("passages", ChunkcorePassageRanker(documents=pages, **passages))
        pipeline.connect("join", "passages")
        for number, retriever in enumerate(retrievers):
            pipeline.add_component(f"part{number}", retriever)
            pipeline.connect(f"part{number}", "join")
        return pipeline

    def wrapped(*reached: str) -> Any:
        asked = ["part0.query", "part1.query", "passages.query"]
        inner = joined(InMemoryBM25Retriever(store), InMemoryBM25Retriever(store))
        return SuperComponent(inner, {"query": asked, "filters": [f"{name}.filters" for name in reached]})

    def plain(**options: Any) -> Any:
        return InMemoryBM25Retriever(store, **options)

    several = ["part0.query", "part1.query", "passages.query"]
    for retriever, options, expected in (
        (plain(), {}, {"0.md", "3.md"}),
        (plain(filters=of_b), {}, {"3.md"}),
        (plain(), {"inputs": {"filters": of_b}}, {"3.md"}),
        (ChunkcoreIndexRetriever(documents=pages, filters=of_b), {}, {"3.md"}),
        (joined(plain(filters=of_b), plain(filters=of_b)), {"query_socket": several}, {"3.md"}),
        (wrapped("part0", "part1"), {}, {"0.md", "3.md"}),
        (Holder({"one": [plain()]}, of_b), {}, {"3.md"}),
        (Holder({"one": [plain()]}), {}, {"0.md", "3.md"}),
    ):
        assert names(run_retriever(retriever, FILTERED, **options)) == expected
    for refused, named in (
        (joined(plain(), Unfiltered()), "part1"),
        (joined(plain(), plain(), show="all"), "leave one out"),
        (wrapped("part0"), "retriever inside"),
        (Unfiltered(), "Unfiltered"),
    ):
        options = {"query_socket": several} if isinstance(refused, Pipeline) else {}
        with pytest.raises(OptionError, match=rf"filter.*{named}"):
            run_retriever(refused, FILTERED, **options)
