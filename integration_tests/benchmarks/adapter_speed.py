"""How fast the adapters cut, beside the frameworks' own splitters: from the framework's documents to its chunks.

    python -m integration_tests.benchmarks.adapter_speed

The five corpora of the Chroma report whole, then 2,000 documents of 2,000 characters of them; 200 tokens of cl100k_base
a chunk. All take turns in each round, in processor time; the ratio is the median of the rounds'.
"""

from __future__ import annotations

import gc
import os
import statistics
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault("HAYSTACK_TELEMETRY_ENABLED", "False")  # nothing here goes online

import tiktoken
from chunkadapters.haystack import ChunkcoreDocumentSplitter
from chunkadapters.langchain import ChunkcoreTextSplitter
from chunkadapters.llamaindex import ChunkcoreNodeParser
from chunkcore.tokens import TiktokenCounter
from haystack import Document as HaystackDocument
from haystack.components.preprocessors import RecursiveDocumentSplitter
from integration_tests.benchmarks.chunking_speed import read_corpora
from langchain_core.documents import Document as LangChainDocument
from langchain_text_splitters import RecursiveCharacterTextSplitter
from llama_index.core import Document as LlamaIndexDocument
from llama_index.core.node_parser import SentenceSplitter
from tests.results import keep_result

SIZE, ROUNDS = 200, 3


def contestants(texts: dict[str, str]) -> dict[str, Callable[[], Any]]:
    """What is timed: of each framework ours, then theirs."""
    for name in ("cl100k_base", "o200k_base"):
        TiktokenCounter(name).encoding  # noqa: B018  # theirs then find tiktoken's files without a network
    spec = f"recursive:size={SIZE}"
    chain = [LangChainDocument(id=name, page_content=text, metadata={"source": name}) for name, text in texts.items()]
    llama = [LlamaIndexDocument(id_=name, text=text, metadata={"file_name": name}) for name, text in texts.items()]
    hay = [HaystackDocument(id=name, content=text, meta={"file_path": name}) for name, text in texts.items()]
    recursive = RecursiveCharacterTextSplitter.from_tiktoken_encoder(
        "cl100k_base", chunk_size=SIZE, chunk_overlap=0, add_start_index=True
    )
    encode = tiktoken.get_encoding("cl100k_base").encode
    sentences = SentenceSplitter(chunk_size=SIZE, chunk_overlap=0, tokenizer=encode)
    words = RecursiveDocumentSplitter(split_length=SIZE, split_unit="token", separators=["\n\n", "\n", " "])
    words.warm_up()
    return {
        "LangChain, ours": lambda: ChunkcoreTextSplitter(spec).split_documents(chain),
        "LangChain, from_tiktoken_encoder": lambda: recursive.split_documents(chain),
        "LlamaIndex, ours": lambda: ChunkcoreNodeParser(spec).get_nodes_from_documents(llama),
        "LlamaIndex, SentenceSplitter": lambda: sentences.get_nodes_from_documents(llama),
        "Haystack, ours": lambda: ChunkcoreDocumentSplitter(spec).run(hay),
        "Haystack, RecursiveDocumentSplitter": lambda: words.run(hay),
    }


def race(title: str, texts: dict[str, str]) -> None:
    print(f"\n{title}: {len(texts)} documents, {sum(map(len, texts.values())) / 1e6:.2f} million characters")
    works = contestants(texts)
    seconds: dict[str, list[float]] = {name: [] for name in works}
    for number in range(ROUNDS + 1):
        for name, work in works.items():
            gc.collect()
            began = time.process_time()
            work()
            if number:  # the first loads what is loaded on first use
                seconds[name].append(time.process_time() - began)
    names = list(works)
    for ours, theirs in zip(names[::2], names[1::2], strict=True):
        ratio = statistics.median(b / a for a, b in zip(seconds[ours], seconds[theirs], strict=True))
        keep_result(title, theirs.split(", ")[1], f"{ratio:.1f}")
        print(f"  {theirs}: {ratio:.1f} x the time of ours, {statistics.median(seconds[ours]):.3f} s", flush=True)


def main() -> None:
    texts = {document.id: document.text for document in read_corpora()}
    race("The five corpora", texts)
    joined = "\n".join(texts.values())
    step = (len(joined) - 2000) // 2000
    race("Short documents", {f"piece-{i}": joined[i * step : i * step + 2000] for i in range(2000)})


if __name__ == "__main__":
    main()
