"""How fast the LangChain and LlamaIndex adapters cut, next to the core alone and to the frameworks' own splitters.

    python -m integration_tests.benchmarks.adapter_speed

Every round runs each contestant once, one after the other, so that a machine that slows down slows all of
them. Seconds are of wall time: where there are several documents, the core and the adapters tokenize in
threads, as they do for their users. Medians and ratios are printed, and nothing is asserted.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from pathlib import Path

import tiktoken
from langchain_core.documents import Document as LangChainDocument
from langchain_text_splitters import RecursiveCharacterTextSplitter
from llama_index.core import Document as LlamaIndexDocument
from llama_index.core.node_parser import SentenceSplitter, TokenTextSplitter

from chunkadapters._configuration import workers_for
from chunkadapters.langchain import ChunkcoreTextSplitter
from chunkadapters.llamaindex import ChunkcoreNodeParser
from chunkcore.chunkers.base import build_chunker
from chunkcore.document import Document
from chunkcore.tokens import get_counter

CORPORA = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "chroma" / "corpora"
ROUNDS = 5
SIZE = 200

Contestants = dict[str, Callable[[], int]]


def contestants(texts: dict[str, str]) -> Contestants:
    """What is timed, from the framework's documents to its chunks: each returns how many it made."""
    counter = get_counter("cl100k_base")
    counter.count("")  # loads the encoding from wherever it is
    encode = tiktoken.get_encoding("cl100k_base").encode
    chunker = build_chunker("recursive", {"size": SIZE, "overlap": 0, "counter": counter})
    core = [Document(name, text) for name, text in texts.items()]
    chain = [LangChainDocument(id=name, page_content=text, metadata={"source": name}) for name, text in texts.items()]
    llama = [LlamaIndexDocument(id_=name, text=text, metadata={"file_name": name}) for name, text in texts.items()]
    parsers = {
        "LlamaIndex, ours": ChunkcoreNodeParser(chunker),
        "LlamaIndex, SentenceSplitter": SentenceSplitter(chunk_size=SIZE, chunk_overlap=0, tokenizer=encode),
        "LlamaIndex, TokenTextSplitter": TokenTextSplitter(chunk_size=SIZE, chunk_overlap=0, tokenizer=encode),
    }
    splitters = {
        "LangChain, ours": ChunkcoreTextSplitter(chunker),
        "LangChain, from_tiktoken_encoder": RecursiveCharacterTextSplitter.from_tiktoken_encoder(
            "cl100k_base", chunk_size=SIZE, chunk_overlap=0, add_start_index=True
        ),
    }
    return {
        "core alone": lambda: len(list(chunker.chunk_many(core, workers=workers_for(chunker, len(core))))),
        **{name: lambda each=each: len(each.get_nodes_from_documents(llama)) for name, each in parsers.items()},
        **{name: lambda each=each: len(each.split_documents(chain)) for name, each in splitters.items()},
    }


def race(title: str, texts: dict[str, str], rounds: int) -> None:
    """Time every contestant in turn, and print medians and ratios."""
    characters = sum(map(len, texts.values())) / 1e6
    print(f"\n{title}: {len(texts)} documents, {characters:.2f} million characters, median of {rounds} rounds")
    running = contestants(texts)
    chunks = {name: run() for name, run in running.items()}  # once for what is loaded on first use
    seconds: dict[str, list[float]] = {name: [] for name in running}
    for _ in range(rounds):
        for name, run in running.items():
            began = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - began)
    medians = {name: statistics.median(each) for name, each in seconds.items()}
    for name, median in medians.items():
        framework = name.partition(",")[0]
        against = median / medians.get(f"{framework}, ours", median)
        print(
            f"  {name:34} {median:8.3f} s {characters / median:7.2f} M/s {median / medians['core alone']:7.2f} x core "
            f"{against:7.2f} x ours {chunks[name]:7} chunks"
        )


def pieces(texts: dict[str, str], length: int, count: int) -> dict[str, str]:
    """So many documents of one length, each cut from another place of the texts."""
    joined = "\n".join(texts.values())
    step = max(1, (len(joined) - length) // count)
    return {f"piece-{i}": joined[i * step : i * step + length] for i in range(count)}


def main() -> None:
    """Race over the five corpora whole, then over 2,000 documents of 2,000 characters."""
    if not CORPORA.is_dir():
        raise SystemExit(f"the collection data/chroma is not at {CORPORA}: nothing to measure")
    texts = {path.name: path.read_text(encoding="utf-8") for path in sorted(CORPORA.iterdir())}
    race("data/chroma", texts, ROUNDS)
    race("2,000 documents", pieces(texts, 2000, 2_000), 3)


if __name__ == "__main__":
    main()
