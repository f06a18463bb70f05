"""How fast the adapters cut, next to the core alone, the frameworks' own splitters, and their objects alone.

    python -m integration_tests.benchmarks.adapter_speed

Seconds are of wall time: where there are several documents, the core and the adapters tokenize in threads, as they
do for their users. The last race is of processor time. "Objects" is the framework's own part of an adapter's time,
which nobody who hands it chunks can save: its objects for the same chunks, made by their constructors with text, id and
metadata, and for LlamaIndex related to their source and their neighbours.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from itertools import pairwise

os.environ.setdefault("HAYSTACK_TELEMETRY_ENABLED", "False")  # nothing here goes online

import tiktoken
from haystack import Document as HaystackDocument
from langchain_core.documents import Document as LangChainDocument
from langchain_text_splitters import RecursiveCharacterTextSplitter
from llama_index.core import Document as LlamaIndexDocument
from llama_index.core.node_parser import SentenceSplitter, TokenTextSplitter
from llama_index.core.schema import NodeRelationship, TextNode

from chunkadapters.configuration import workers_for
from chunkadapters.haystack import ChunkcoreDocumentSplitter
from chunkadapters.langchain import ChunkcoreTextSplitter
from chunkadapters.llamaindex import ChunkcoreNodeParser
from chunkcore.chunkers.base import get_chunker
from chunkcore.document import Chunk, Document
from chunkcore.tokens import get_counter
from integration_tests.benchmarks.racing import Contestants, corpora, pieces, race

SIZE = 200


def contestants(texts: dict[str, str]) -> Contestants:
    """What is timed, from the framework's documents to its chunks."""
    counter = get_counter("cl100k_base")
    _ = counter.encoding  # loads the encoding from wherever it is
    chunker = get_chunker("recursive", size=SIZE, overlap=0, counter=counter)
    core = [Document(name, text) for name, text in texts.items()]
    chain = [LangChainDocument(id=name, page_content=text, metadata={"source": name}) for name, text in texts.items()]
    llama = [LlamaIndexDocument(id_=name, text=text, metadata={"file_name": name}) for name, text in texts.items()]
    hay = [HaystackDocument(id=name, content=text, meta={"file_path": name}) for name, text in texts.items()]
    by_document = list(chunker.chunks_per_document(core))
    chunks = [(chunk, chunk.id) for each in by_document for chunk in each]
    encode = tiktoken.get_encoding("cl100k_base").encode
    parse: dict[str, Callable[[], int]] = {
        name: lambda each=each: len(each.get_nodes_from_documents(llama))
        for name, each in {
            "LlamaIndex, ours": ChunkcoreNodeParser(chunker),
            "LlamaIndex, SentenceSplitter": SentenceSplitter(chunk_size=SIZE, chunk_overlap=0, tokenizer=encode),
            "LlamaIndex, TokenTextSplitter": TokenTextSplitter(chunk_size=SIZE, chunk_overlap=0, tokenizer=encode),
        }.items()
    }
    native = RecursiveCharacterTextSplitter.from_tiktoken_encoder(
        "cl100k_base", chunk_size=SIZE, chunk_overlap=0, add_start_index=True
    )
    return {
        "core alone": lambda: len(list(chunker.chunk_many(core, workers=workers_for(chunker, len(core))))),
        "LangChain, ours": lambda: len(ChunkcoreTextSplitter(chunker).split_documents(chain)),
        "LangChain, objects": lambda: len(list(map(_langchain, chunks))),
        "LangChain, from_tiktoken_encoder": lambda: len(native.split_documents(chain)),
        "Haystack, ours": lambda: len(ChunkcoreDocumentSplitter(chunker).run(hay)["documents"]),
        "Haystack, objects": lambda: len(list(map(_haystack, chunks))),
        "LlamaIndex, ours": parse.pop("LlamaIndex, ours"),
        "LlamaIndex, objects": lambda: len(
            [node for pair in zip(llama, by_document, strict=True) for node in _llamaindex(*pair)]
        ),
        **parse,
    }


def _langchain(found: tuple[Chunk, str]) -> LangChainDocument:
    chunk, name = found
    told = {"source": chunk.document_id, "start_index": chunk.spans[0].start, "end_index": chunk.spans[0].end}
    return LangChainDocument(id=name, page_content=chunk.text, metadata=told)


def _haystack(found: tuple[Chunk, str]) -> HaystackDocument:
    chunk, name = found
    told = {"source_id": chunk.document_id, "split_id": chunk.index, "split_idx_start": chunk.spans[0].start}
    return HaystackDocument(id=name, content=chunk.text, meta=told)


def _llamaindex(document: LlamaIndexDocument, chunks: list[Chunk]) -> list[TextNode]:
    source = document.as_related_node_info()
    nodes = [
        TextNode(
            id_=str(chunk.index),
            text=chunk.text,
            metadata=document.metadata,
            relationships={NodeRelationship.SOURCE: source},
            start_char_idx=chunk.spans[0].start,
            end_char_idx=chunk.spans[0].end,
        )
        for chunk in chunks
    ]
    told = [node.as_related_node_info() for node in nodes]
    for (before, before_told), (after, after_told) in pairwise(zip(nodes, told, strict=True)):
        before.relationships[NodeRelationship.NEXT] = after_told
        after.relationships[NodeRelationship.PREVIOUS] = before_told
    return nodes


def main() -> None:
    """Race over the five corpora whole, then over 2,000 and 10,000 documents of 2,000 characters."""
    texts = corpora()
    race("data/chroma", texts, contestants(texts), 5)
    some, many = pieces(texts, 2000, 2_000), pieces(texts, 2000, 10_000)
    race("2,000 documents", some, contestants(some), 3)
    # The frameworks' own splitters would take minutes for these.
    running = {name: run for name, run in contestants(many).items() if name.endswith(("core alone", "ours", "objects"))}
    best = {name: min(each) for name, each in race("10,000 documents", many, running, 7, time.process_time).items()}
    for name in ("LangChain", "Haystack", "LlamaIndex"):
        core, own, objects = best["core alone"], best[f"{name}, ours"], best[f"{name}, objects"]
        print(
            f"  {name}: beyond the core {(own - core) / objects:.2f} x the objects; "
            f"in all {own / (core + objects):.2f} x the core and the objects"
        )


if __name__ == "__main__":
    main()
