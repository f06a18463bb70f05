"""Passages behind the retrievers that apps have: each framework's default splitter, its own store, and others' stores.

    python -m integration_tests.benchmarks.behind_stores --shared ../shared [--only lochmere] [--store pgvector]

Writes docs/evidence/data/behind.json: for each collection, framework, store the recall at four
budgets, bare and with passages behind, the paired difference with its 95 % interval, and the processor time
that passages add to a question.
The model is all-MiniLM-L6-v2. At most 150 questions of a collection, drawn with a fixed seed.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
from chunkadapters import haystack, langchain, llamaindex
from chunkadapters.behind import FETCH_K
from chunkcore.cli.options import default_cache
from chunkcore.evaluation.benchmarks.benchmark import Benchmark
from chunkcore.evaluation.comparison import shared_documents
from chunkcore.evaluation.scoring import Scorer
from chunkcore.models import CachedEmbedder, EmbeddingCache, get_embedder
from chunkcore.run import Retrieved, Run
from haystack import Document as HaystackDocument
from haystack import component
from haystack.components.preprocessors import DocumentSplitter
from haystack.components.retrievers import InMemoryEmbeddingRetriever
from haystack.document_stores.in_memory import InMemoryDocumentStore
from integration_tests.benchmarks import passages_table
from integration_tests.benchmarks.collections_table import benchmark_of
from langchain_core.documents import Document as LangChainDocument
from langchain_core.runnables import RunnableLambda
from langchain_text_splitters import RecursiveCharacterTextSplitter
from llama_index.core import Document as LlamaDocument
from llama_index.core import StorageContext, VectorStoreIndex
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.node_parser import SentenceSplitter

COLLECTIONS = ("lochmere", "chroma", "covid_qa", "cuad", "qmsum")
BUDGETS = (250, 500, 1000, 2000)
MOST = 150
DATA = Path(__file__).resolve().parents[2] / "docs" / "evidence" / "data" / "behind.json"

Search = Callable[[str], list[Any]]
Behind = Callable[[str, list[Any], int], list[Any]]
Store = tuple[str, Callable[[], Callable[[int], Search]]]


def langchain_stores(benchmark: Benchmark, embedder: CachedEmbedder, postgres: str) -> Iterator[Store]:
    sources = [
        LangChainDocument(page_content=document.text, metadata={"source": document.id})
        for document in benchmark.documents
    ]
    chunks = RecursiveCharacterTextSplitter(chunk_size=1000, chunk_overlap=200).split_documents(sources)
    model = langchain.ChunkcoreEmbeddings(embedder)

    def searching(store: Any) -> Callable[[int], Search]:
        return lambda k: store.as_retriever(search_kwargs={"k": k}).invoke

    def in_lancedb() -> Any:
        from langchain_community.vectorstores import LanceDB

        store = LanceDB(uri=mkdtemp(), embedding=model, mode="append")
        store.add_documents(chunks)
        return searching(store)

    def in_pgvector() -> Any:
        from langchain_postgres import Column, PGEngine, PGVectorStore

        engine = PGEngine.from_connection_string(postgres.replace("postgresql:", "postgresql+psycopg:", 1))
        engine.init_vectorstore_table(benchmark.name, 384, id_column=Column("id", "TEXT"), overwrite_existing=True)
        store = PGVectorStore.create_sync(engine, model, benchmark.name, id_column="id")
        store.add_documents(chunks)
        return searching(store)

    def made(module: str, kind: str, **place: str) -> Callable[[], Any]:
        return lambda: searching(getattr(import_module(module), kind).from_documents(chunks, model, **place))

    yield "LangChain, in memory", made("langchain_core.vectorstores", "InMemoryVectorStore")
    yield "LangChain, Chroma", made("langchain_chroma", "Chroma", collection_name=benchmark.name)
    yield "LangChain, FAISS", made("langchain_community.vectorstores", "FAISS")
    yield ("LangChain, Qdrant", made("langchain_qdrant", "QdrantVectorStore", location=":memory:"))
    yield "LangChain, LanceDB", in_lancedb
    yield "LangChain, pgvector", in_pgvector


def llamaindex_stores(benchmark: Benchmark, embedder: CachedEmbedder, postgres: str) -> Iterator[Store]:
    sources = [LlamaDocument(text=document.text, doc_id=document.id) for document in benchmark.documents]
    nodes = SentenceSplitter().get_nodes_from_documents(sources)

    def searching(vector_store: Any = None) -> Callable[[int], Search]:
        context = vector_store and StorageContext.from_defaults(vector_store=vector_store)
        index = VectorStoreIndex(nodes, storage_context=context, embed_model=llamaindex.ChunkcoreEmbedding(embedder))
        return lambda k: index.as_retriever(similarity_top_k=k).retrieve

    def in_lancedb() -> Any:
        from llama_index.vector_stores.lancedb import LanceDBVectorStore

        return searching(LanceDBVectorStore(mkdtemp()))

    def in_pgvector() -> Any:
        from llama_index.vector_stores.postgres import PGVectorStore

        urls = [postgres.replace("postgresql:", f"postgresql+{driver}:", 1) for driver in ("psycopg2", "asyncpg")]
        return searching(PGVectorStore(*urls, table_name=benchmark.name, embed_dim=384))

    yield "LlamaIndex, in memory", searching
    yield "LlamaIndex, LanceDB", in_lancedb
    yield "LlamaIndex, pgvector", in_pgvector


def haystack_stores(benchmark: Benchmark, embedder: CachedEmbedder, postgres: str) -> Iterator[Store]:
    sources = [HaystackDocument(id=document.id, content=document.text) for document in benchmark.documents]
    chunks = DocumentSplitter().run(sources)["documents"]

    def searching(store: Any, kind: Any) -> Callable[[int], Search]:
        store.write_documents(haystack.ChunkcoreDocumentEmbedder(embedder).run(chunks)["documents"])

        def with_hits(k: int) -> Search:
            retriever = kind(document_store=store, top_k=k)
            return lambda question: retriever.run(embedder.embed_queries([question])[0].tolist())["documents"]

        return with_hits

    def in_pgvector() -> Any:
        from haystack.utils import Secret
        from haystack_integrations.components.retrievers.pgvector import PgvectorEmbeddingRetriever
        from haystack_integrations.document_stores.pgvector import PgvectorDocumentStore

        store = PgvectorDocumentStore(
            connection_string=Secret.from_token(postgres),
            table_name=f"haystack_{benchmark.name}",
            embedding_dimension=384,
            keyword_index_name=f"words_{benchmark.name}",
            recreate_table=True,
        )
        return searching(store, PgvectorEmbeddingRetriever)

    yield ("Haystack, in memory", lambda: searching(InMemoryDocumentStore(), InMemoryEmbeddingRetriever))
    yield "Haystack, pgvector", in_pgvector


def systems(benchmark: Benchmark, embedder: CachedEmbedder, postgres: str, show: Any) -> Iterator[tuple[Store, Behind]]:
    """Each store, and the framework's passages of a question's hits."""
    sources = benchmark.documents
    compressor = langchain.PassageCompressor(documents=sources, show=show)

    def compressed(question: str, hits: list[Any], budget: int) -> list[Any]:
        compressor.max_tokens = budget
        return list(compressor.compress_documents(hits, question))

    processor = llamaindex.PassagePostprocessor(documents=sources, show=show)

    def processed(question: str, hits: list[Any], budget: int) -> list[Any]:
        processor.max_tokens = budget
        return processor.postprocess_nodes(hits, query_str=question)

    ranker = haystack.ChunkcorePassageRanker(documents=list(sources), show=show)

    def ranked(question: str, hits: list[Any], budget: int) -> list[Any]:
        ranker.max_tokens = budget
        return list(ranker.run(question, hits)["documents"])

    for store in langchain_stores(benchmark, embedder, postgres):
        yield store, compressed
    for store in llamaindex_stores(benchmark, embedder, postgres):
        yield store, processed
    for store in haystack_stores(benchmark, embedder, postgres):
        yield store, ranked


def recall(answers: dict[str, list[Any]], benchmark: Benchmark, budgets: Sequence[int]) -> list[np.ndarray]:
    """Of each budget, each question's recall, by LangChain's own hook or that of the answers' framework."""
    measures = [f"Recall@{budget}tok" for budget in budgets]
    first = next(answer[0] for answer in answers.values() if answer)
    if isinstance(first, Retrieved):
        results = {query.id: answers[query.text] for query in benchmark.queries}
        report = Scorer(benchmark).score(Run("core", results), measures)
    elif isinstance(first, LangChainDocument):
        report = langchain.evaluate_retriever(RunnableLambda(answers.__getitem__), benchmark, measures=measures)
    elif isinstance(first, HaystackDocument):
        report = haystack.evaluate_retriever(_Answers(answers), benchmark, measures=measures)
    else:
        report = llamaindex.evaluate_retriever(_Nodes(answers), benchmark, measures=measures)
    return [report.values(measure) for measure in measures]


class _Nodes(BaseRetriever):
    def __init__(self, answers: dict[str, list[Any]]) -> None:
        super().__init__()
        self.answers = answers

    def _retrieve(self, query_bundle: Any) -> list[Any]:
        return self.answers[query_bundle.query_str]


@component
class _Answers:
    def __init__(self, answers: dict[str, list[Any]]) -> None:
        self.answers = answers

    @component.output_types(documents=list[HaystackDocument])
    def run(self, query: str) -> dict[str, list[HaystackDocument]]:
        return {"documents": self.answers[query]}


def row(benchmark: Benchmark, search: Search, behind: Behind) -> dict[str, Any]:
    questions = [query.text for query in benchmark.queries]
    hits = {question: search(question) for question in questions}
    bare = recall(hits, benchmark, BUDGETS)
    behind(questions[0], hits[questions[0]], BUDGETS[0])  # what is made once
    clusters = shared_documents([query.evidence[0].document_id for query in benchmark.queries], "auto")
    result: dict[str, Any] = {}
    seconds = []
    for place, budget in enumerate(BUDGETS):
        passages = {}
        for question in questions:
            begin = time.process_time()  # of one thread: the machine may be busy
            passages[question] = behind(question, hits[question], budget)
            seconds.append(time.process_time() - begin)
        (values,) = recall(passages, benchmark, [budget])
        result[str(budget)] = {
            "bare": round(100 * float(bare[place].mean()), 1),
            "behind": round(100 * float(values.mean()), 1),
            "difference": passages_table.difference(values, bare[place], clusters),
        }
    return result | {"milliseconds": round(1000 * float(np.median(seconds)), 1)}


def collection(name: str, shared: Path) -> Benchmark:
    """300,000 characters of documents and 150 questions."""
    whole = benchmark_of(name, shared, None if name == "lochmere" else 300_000, titled=True)
    by_text = {query.text: query for query in whole.queries}  # a question that is asked twice, once
    queries = random.Random(0).sample(list(by_text.values()), min(MOST, len(by_text)))
    return Benchmark(name, whole.documents, queries)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shared", type=Path, required=True, help="the folder with data/")
    parser.add_argument("--only", action="append", choices=COLLECTIONS)
    parser.add_argument("--store", default="", help="rows whose store has this in its name, such as pgvector")
    parser.add_argument("--show", choices=["hits", "whole", "all"], default="hits", help="what passages may show")
    parser.add_argument("--output", type=Path, default=DATA)
    options = parser.parse_args(arguments)
    embedder = CachedEmbedder(get_embedder("openvino:all-MiniLM-L6-v2"), EmbeddingCache(default_cache()))
    rows = json.loads(options.output.read_text()) if options.output.exists() else []
    postgres = ""
    if options.store in "pgvector":
        pgserver: Any = import_module("pgserver")
        postgres = pgserver.get_server(mkdtemp(), cleanup_mode="stop").get_uri()
    for name in options.only or COLLECTIONS:
        benchmark = collection(name, options.shared)
        first = {"collection": name, "questions": len(benchmark.queries)}
        for (store, opened), behind in systems(benchmark, embedder, postgres, options.show):
            if options.store not in store:
                continue
            rows = [row for row in rows if (row["collection"], row["store"]) != (name, store)]
            rows.append(first | {"store": store, "hits": FETCH_K} | row(benchmark, opened()(FETCH_K), behind))
            print(json.dumps(rows[-1]), flush=True)
            rows.sort(key=lambda row: COLLECTIONS.index(row["collection"]))
            options.output.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
