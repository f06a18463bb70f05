"""What the frameworks' own pages advise, run as it is and scored through the retriever hooks.

    pip install langchain-community rank-bm25
    python -m integration_tests.benchmarks.framework_practice --shared ../shared [--only lochmere chroma]

Each system has its framework's default sizes and all-MiniLM-L6-v2. It returns enough for 2,000 tokens; every answer is
cut at the same budgets. A system whose package is missing is left out, by name.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from chunkcore.cli.options import default_cache
from chunkcore.evaluation.benchmarks.benchmark import Benchmark
from chunkcore.evaluation.results import Report
from chunkcore.models import CachedEmbedder, EmbeddingCache, get_embedder
from integration_tests.benchmarks.collections_table import benchmark_of
from integration_tests.benchmarks.passages_table import BUDGETS, COLLECTIONS

os.environ.setdefault("HAYSTACK_TELEMETRY_ENABLED", "False")  # nothing here goes online

MEASURES = [f"Recall@{budget}tok" for budget in BUDGETS]


def langchain_pages(benchmark: Benchmark) -> list[Any]:
    from langchain_core.documents import Document

    return [Document(page_content=document.text, metadata={"source": document.id}) for document in benchmark.documents]


def langchain_ensemble(benchmark: Benchmark, embedder: Any) -> Report:
    """EnsembleRetriever of BM25Retriever and vectors, over RecursiveCharacterTextSplitter with its defaults."""
    from chunkadapters.langchain import ChunkcoreEmbeddings, evaluate_retriever
    from langchain_classic.retrievers import EnsembleRetriever
    from langchain_community.retrievers import BM25Retriever
    from langchain_core.vectorstores import InMemoryVectorStore
    from langchain_text_splitters import RecursiveCharacterTextSplitter

    pieces = RecursiveCharacterTextSplitter(add_start_index=True).split_documents(langchain_pages(benchmark))
    store = InMemoryVectorStore.from_documents(pieces, ChunkcoreEmbeddings(embedder))
    parts = [BM25Retriever.from_documents(pieces, k=8), store.as_retriever(search_kwargs={"k": 8})]
    return evaluate_retriever(EnsembleRetriever(retrievers=parts, weights=[0.5, 0.5]), benchmark, measures=MEASURES)


def langchain_parents(benchmark: Benchmark, embedder: Any) -> Report:
    """ParentDocumentRetriever: children of 400 characters bring parents of 2,000."""
    from chunkadapters.langchain import ChunkcoreEmbeddings, evaluate_retriever
    from langchain_classic.retrievers import ParentDocumentRetriever
    from langchain_core.stores import InMemoryStore
    from langchain_core.vectorstores import InMemoryVectorStore
    from langchain_text_splitters import RecursiveCharacterTextSplitter

    retriever = ParentDocumentRetriever(
        vectorstore=InMemoryVectorStore(ChunkcoreEmbeddings(embedder)),
        docstore=InMemoryStore(),
        child_splitter=RecursiveCharacterTextSplitter(chunk_size=400),
        parent_splitter=RecursiveCharacterTextSplitter(chunk_size=2000, add_start_index=True),
        search_kwargs={"k": 30},
    )
    retriever.add_documents(langchain_pages(benchmark))
    return evaluate_retriever(retriever, benchmark, measures=MEASURES)


def llamaindex_pages(benchmark: Benchmark) -> list[Any]:
    from llama_index.core import Document

    return [Document(text=document.text, doc_id=document.id) for document in benchmark.documents]


def llamaindex_windows(benchmark: Benchmark, embedder: Any) -> Report:
    """SentenceWindowNodeParser (three sentences on each side) and MetadataReplacementPostProcessor."""
    from chunkadapters.llamaindex import ChunkcoreEmbedding, evaluate_retriever
    from llama_index.core import VectorStoreIndex
    from llama_index.core.llms import MockLLM
    from llama_index.core.node_parser import SentenceWindowNodeParser
    from llama_index.core.postprocessor import MetadataReplacementPostProcessor

    nodes = SentenceWindowNodeParser.from_defaults().get_nodes_from_documents(llamaindex_pages(benchmark))
    index = VectorStoreIndex(nodes, embed_model=ChunkcoreEmbedding(embedder))
    engine = index.as_query_engine(
        similarity_top_k=20,
        llm=MockLLM(),
        node_postprocessors=[MetadataReplacementPostProcessor(target_metadata_key="window")],
    )
    return evaluate_retriever(engine, benchmark, measures=MEASURES)


def llamaindex_merging(benchmark: Benchmark, embedder: Any) -> Report:
    """HierarchicalNodeParser (2,048, 512, 128 tokens) and AutoMergingRetriever over its leaves."""
    from chunkadapters.llamaindex import ChunkcoreEmbedding, evaluate_retriever
    from llama_index.core import StorageContext, VectorStoreIndex
    from llama_index.core.node_parser import HierarchicalNodeParser, get_leaf_nodes
    from llama_index.core.retrievers import AutoMergingRetriever
    from llama_index.core.storage.docstore import SimpleDocumentStore

    nodes = HierarchicalNodeParser.from_defaults().get_nodes_from_documents(llamaindex_pages(benchmark))
    store = SimpleDocumentStore()
    store.add_documents(nodes)
    context = StorageContext.from_defaults(docstore=store)
    index = VectorStoreIndex(get_leaf_nodes(nodes), storage_context=context, embed_model=ChunkcoreEmbedding(embedder))
    retriever = AutoMergingRetriever(index.as_retriever(similarity_top_k=24), context)
    return evaluate_retriever(retriever, benchmark, measures=MEASURES)


def haystack_hybrid(benchmark: Benchmark, embedder: Any) -> Report:
    """BM25 and vectors joined by reciprocal ranks, over DocumentSplitter's 200 words; SentenceWindowRetriever after."""
    from chunkadapters.haystack import ChunkcoreDocumentEmbedder, ChunkcoreTextEmbedder, evaluate_retriever
    from haystack import Document, Pipeline
    from haystack.components.joiners import DocumentJoiner
    from haystack.components.preprocessors import DocumentSplitter
    from haystack.components.retrievers import (
        InMemoryBM25Retriever,
        InMemoryEmbeddingRetriever,
        SentenceWindowRetriever,
    )
    from haystack.document_stores.in_memory import InMemoryDocumentStore

    store = InMemoryDocumentStore()
    pages = [Document(content=document.text, meta={"source": document.id}) for document in benchmark.documents]
    pieces = DocumentSplitter(split_by="word", split_length=200).run(pages)["documents"]
    store.write_documents(ChunkcoreDocumentEmbedder(embedder).run(pieces)["documents"])
    pipeline = Pipeline()
    pipeline.add_component("query", ChunkcoreTextEmbedder(embedder))
    pipeline.add_component("dense", InMemoryEmbeddingRetriever(store, top_k=8))
    pipeline.add_component("words", InMemoryBM25Retriever(store, top_k=8))
    pipeline.add_component("join", DocumentJoiner(join_mode="reciprocal_rank_fusion"))
    pipeline.add_component("window", SentenceWindowRetriever(store, window_size=1))
    pipeline.connect("query.embedding", "dense.query_embedding")
    pipeline.connect("dense", "join")
    pipeline.connect("words", "join")
    pipeline.connect("join.documents", "window.retrieved_documents")
    sockets = {"query_socket": ["query.text", "words.query"], "documents_socket": "window.context_documents"}
    return evaluate_retriever(pipeline, benchmark, measures=MEASURES, **sockets)


SYSTEMS: dict[str, Callable[[Benchmark, Any], Report]] = {
    "LangChain: ensemble, default splitter": langchain_ensemble,
    "LangChain: parent documents": langchain_parents,
    "LlamaIndex: sentence windows": llamaindex_windows,
    "LlamaIndex: auto-merging": llamaindex_merging,
    "Haystack: joined hybrid, window": haystack_hybrid,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shared", type=Path, default=Path("../shared"))
    parser.add_argument("--only", nargs="+", choices=COLLECTIONS, default=list(COLLECTIONS))
    options = parser.parse_args()
    embedder = CachedEmbedder(get_embedder(), EmbeddingCache(default_cache()))
    for name in options.only:
        benchmark = benchmark_of(name, options.shared)
        print(f"\n{name}, {len(benchmark.queries)} questions: recall in % at {BUDGETS} tokens\n", flush=True)
        for title, system in SYSTEMS.items():
            began = time.perf_counter()
            try:
                report = system(benchmark, embedder)
            except ImportError as error:
                print(f"| {title} | left out: {error} |", flush=True)
                continue
            recall = " / ".join(f"{100 * report.mean(measure):.1f}" for measure in MEASURES)
            tokens, seconds = report.mean_tokens("2000tok"), time.perf_counter() - began
            print(f"| {title} | {recall} | {tokens:,.0f} tokens at most, {seconds:.0f} s |", flush=True)


if __name__ == "__main__":
    main()
