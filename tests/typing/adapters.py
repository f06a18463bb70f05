"""What a type checker reads of the adapters' public calls; `make check` reads this file, nothing runs it."""

from chunkadapters import haystack, langchain, llamaindex
from chunkadapters.exact import exact
from chunkcore import Benchmark, Embedder, Report, Run
from haystack.core.component import Component
from haystack.dataclasses import Document as HaystackDocument
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.retrievers import BaseRetriever
from langchain_text_splitters import CharacterTextSplitter, TextSplitter
from llama_index.core import Document as LlamaDocument
from llama_index.core.base.base_retriever import BaseRetriever as LlamaRetriever
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.node_parser import NodeParser
from llama_index.core.schema import BaseNode, NodeWithScore
from typing_extensions import assert_type


def for_langchain(retriever: BaseRetriever, documents: list[Document], benchmark: Benchmark, model: Embeddings) -> None:
    splitter = langchain.ChunkcoreTextSplitter("recursive", size=200)
    assert_type(splitter.split_documents(documents), list[Document])
    plain: TextSplitter = splitter
    passages = langchain.PassageRetriever(retriever, documents=documents, max_tokens=500)
    assert_type(passages.invoke("Is tea hot?"), list[Document])
    assert_type(langchain.evaluate_retriever(passages, benchmark, measures="Recall@5"), Report)
    assert_type(langchain.run_retriever(retriever, benchmark), Run)
    assert_type(langchain.IndexRetriever("index").invoke("Is tea hot?"), list[Document])
    embedder: Embedder = langchain.as_embedder(model)
    assert_type(exact(CharacterTextSplitter()), langchain.ChunkcoreTextSplitter)
    del plain, embedder


def for_llamaindex(
    retriever: LlamaRetriever, documents: list[LlamaDocument], benchmark: Benchmark, model: BaseEmbedding
) -> None:
    parser = llamaindex.ChunkcoreNodeParser("recursive", size=200)
    assert_type(parser.get_nodes_from_documents(documents), list[BaseNode])
    plain: NodeParser = parser
    passages = llamaindex.PassageRetriever(retriever, documents=documents, max_tokens=500)
    assert_type(passages.retrieve("Is tea hot?"), list[NodeWithScore])
    assert_type(llamaindex.evaluate_retriever(passages, benchmark, measures="Recall@5"), Report)
    assert_type(llamaindex.run_retriever(retriever, benchmark), Run)
    embedder: Embedder = llamaindex.as_embedder(model)
    del plain, embedder


def for_haystack(retriever: Component, documents: list[HaystackDocument], benchmark: Benchmark) -> None:
    splitter = haystack.ChunkcoreDocumentSplitter("recursive", size=200)
    assert_type(splitter.run(documents)["documents"], list[HaystackDocument])
    ranker = haystack.ChunkcorePassageRanker(documents=documents, max_tokens=500)
    assert_type(ranker.run("Is tea hot?", documents)["documents"], list[HaystackDocument])
    assert_type(haystack.evaluate_retriever(retriever, benchmark, measures="Recall@5"), Report)
    assert_type(haystack.run_retriever(retriever, benchmark), Run)
