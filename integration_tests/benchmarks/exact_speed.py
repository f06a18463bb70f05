"""What `exact` costs beside the splitter that it replaces: `python -m integration_tests.benchmarks.exact_speed`.

Processor seconds of one core over one text, the beginnings of the Chroma report's corpora, the median of five runs
in turn; the original returns texts alone, ours the same texts with their spans. Ratios over 1 say that ours is faster.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import logging
import statistics
import time
from collections.abc import Callable
from typing import Any

from langchain_text_splitters import CharacterTextSplitter, RecursiveCharacterTextSplitter, TokenTextSplitter
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.node_parser import TokenTextSplitter as LlamaTokenTextSplitter
from llama_index.core.utils import globals_helper

from chunkadapters.exact import exact_chunker
from chunkcore import Document, get_counter
from integration_tests.benchmarks.chunking_speed import read_corpora

RUNS = 5
logging.disable(logging.WARNING)  # of chunks that are over their size
CHARACTERS = 100_000  # of each of the Chroma report's five corpora
SPLITTERS: dict[str, Any] = {
    "LangChain recursive, 1000 characters": lambda: RecursiveCharacterTextSplitter(chunk_size=1000, chunk_overlap=0),
    "LangChain recursive, 200 tokens": lambda: RecursiveCharacterTextSplitter.from_tiktoken_encoder(
        "cl100k_base", chunk_size=200, chunk_overlap=0
    ),
    "LangChain character, 200 tokens": lambda: CharacterTextSplitter.from_tiktoken_encoder(
        "cl100k_base", chunk_size=200, chunk_overlap=0
    ),
    "LangChain token, 200": lambda: TokenTextSplitter("cl100k_base", chunk_size=200, chunk_overlap=0),
    "LlamaIndex sentence, 200/20": lambda: SentenceSplitter(chunk_size=200, chunk_overlap=20),
    "LlamaIndex token, 200/20": lambda: LlamaTokenTextSplitter(chunk_size=200, chunk_overlap=20),
}


def seconds(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def main() -> None:
    for encoding in ("cl100k_base", "o200k_base"):
        _ = get_counter(encoding).encoding  # tiktoken knows it from here on, with its files
    assert globals_helper.punkt_tokenizer
    text = "\n\n".join(each.text[:CHARACTERS] for each in read_corpora())
    print(f"{len(text):,} characters\n\n| splitter | original | ours | ratio |\n|---|--:|--:|--:|")
    for name, build in SPLITTERS.items():
        splitter = build()
        chunker, document = exact_chunker(splitter), Document("d", text)
        theirs, ours = lambda: splitter.split_text(text), lambda: chunker.chunk(document)  # noqa: B023
        theirs(), ours()
        pairs = [(seconds(theirs), seconds(ours)) for _ in range(RUNS)]
        first, second = (statistics.median(each) for each in zip(*pairs, strict=True))
        print(f"| {name} | {first:.3f} s | {second:.3f} s | {first / second:.2f} |", flush=True)


if __name__ == "__main__":
    main()
