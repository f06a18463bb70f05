"""The three frameworks in the same words: how to cut with one, what its chunks say, how to answer with them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from chunkadapters import haystack, langchain, llamaindex
from chunkadapters.haystack.documents import KEYS, ROOT
from chunkcore.chunkers.base import Chunker
from chunkcore.locating import read_spans
from chunkcore.text import Span
from haystack import Document as HaystackDocument
from haystack import component
from langchain_core.documents import Document as LangChainDocument
from langchain_core.runnables import RunnableLambda
from llama_index.core import Document as LlamaIndexDocument
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.schema import NodeWithScore

__all__ = ["FRAMEWORKS", "Framework", "Made", "haystack_chunks", "langchain_chunks", "llamaindex_chunks"]


@dataclass(frozen=True)
class Made:
    """A chunk as a framework has it, in the same words for all three."""

    text: str
    spans: tuple[Span, ...]
    metadata: dict[str, Any]
    own: Any


@dataclass(frozen=True)
class Framework:
    """How to cut with it (chunkers one after the other), and how to answer every question with the same chunks."""

    cut: Callable[..., list[Made]]
    answer: Callable[[list[Any]], Any]
    hooks: Any


def _stated(metadata: dict[str, Any], spans: str, start: int | None, end: int | None) -> tuple[Span, ...]:
    if start is None or start < 0:
        return ()
    return read_spans(metadata.get(spans)) or (Span(start, end),)


def langchain_chunks(text: str, *chunkers: Chunker, **metadata: Any) -> list[Made]:
    found = [LangChainDocument(page_content=text, id="d", metadata=metadata)]
    for chunker in chunkers:
        found = langchain.ChunkcoreTextSplitter(chunker).split_documents(found)
    return [
        Made(each.page_content, _stated(told, "spans", told["start_index"], told["end_index"]), told, each)
        for each in found
        for told in [each.metadata]
    ]


def llamaindex_chunks(text: str, *chunkers: Chunker, **metadata: Any) -> list[Made]:
    found = [LlamaIndexDocument(text=text, id_="d", metadata=metadata)]
    for chunker in chunkers:
        found = llamaindex.ChunkcoreNodeParser(chunker)(found)
    return [
        Made(each.text, _stated(each.metadata, "spans", each.start_char_idx, each.end_char_idx), each.metadata, each)
        for each in found
    ]


def haystack_chunks(text: str, *chunkers: Chunker, **metadata: Any) -> list[Made]:
    found = [HaystackDocument(content=text, id="d", meta=metadata)]
    for chunker in chunkers:
        found = haystack.ChunkcoreDocumentSplitter(chunker, keep_white_space=False).run(found)["documents"]
    made = []
    for each in found:
        told = each.meta
        keys = ROOT if "root_source_id" in told else KEYS
        spans = _stated(told, keys.spans, told.get(keys.start), told.get(keys.end))
        made.append(Made(each.content, spans, told, each))
    return made


class _Same(BaseRetriever):
    def __init__(self, nodes: list[Any]) -> None:
        super().__init__()
        self.nodes = nodes

    def _retrieve(self, query_bundle: Any) -> list[NodeWithScore]:
        return [NodeWithScore(node=node) for node in self.nodes]


@component
class _SameDocuments:
    def __init__(self, documents: list[Any]) -> None:
        self.documents = documents

    @component.output_types(documents=list[HaystackDocument])
    def run(self, query: str):
        return {"documents": self.documents}


FRAMEWORKS = {
    "LangChain": Framework(langchain_chunks, lambda found: RunnableLambda(lambda query: found), langchain),
    "LlamaIndex": Framework(llamaindex_chunks, _Same, llamaindex),
    "Haystack": Framework(haystack_chunks, _SameDocuments, haystack),
}
