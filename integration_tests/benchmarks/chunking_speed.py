"""How fast the strategies cut texts, beside the limits they cannot pass and beside the frameworks' own splitters.

    python -m integration_tests.benchmarks.chunking_speed
    python -m integration_tests.benchmarks.chunking_speed --docs DIR

The documents are the five corpora of the Chroma report and 226 contracts, papers and articles, or every text file under
DIR. Whatever is installed of LangChain, LlamaIndex and Haystack takes part.
All contestants take turns in every round; on one core, it is the processor's time that counts. Printed: megabytes a
second of the best round, and the median of each round's ratio to `recursive`, with the lowest and highest.
Ours go from Document to Chunk, with spans and token counts; theirs to their own objects or strings.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from chunkcore import Document, get_chunker
from chunkcore.tokens import TiktokenCounter
from chunkcore.tokens.encodings import encode

ENCODING = "cl100k_base"
SIZE, ROUNDS = 200, 5
DATA = Path(__file__).resolve().parents[2] / "../shared/data"
OURS = ("recursive", "fixed_token", "sentence", "fixed_sentences", "markdown", "code", "html")

Work = Callable[[Sequence[Document]], Any]


def read_corpora() -> list[Document]:
    """The five corpora of the report, each one document."""
    folder = DATA / "chroma/corpora"
    if not folder.exists():
        raise SystemExit(f"the five corpora of the report are needed, and not there: {folder}; name others by --docs")
    return [Document(path.stem, path.read_text(encoding="utf-8")) for path in sorted(folder.rglob("*.md"))]


def read_many(names: tuple[str, ...] = ("cuad", "covid_qa", "wiki300")) -> list[Document]:
    """Contracts, papers and articles: documents of usual lengths."""
    documents = []
    for name in names:
        with (DATA / name / "documents.jsonl").open(encoding="utf-8") as lines:
            for line in lines:
                data = json.loads(line)
                documents.append(Document(f"{name}/{data['id']}", data["text"]))
    return documents


def read_folder(folder: Path) -> list[Document]:
    """Every file under a folder that is UTF-8 text."""
    documents = []
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        try:
            text = path.read_text(encoding="utf-8")
        except (UnicodeDecodeError, OSError):
            continue
        if text and "\0" not in text:
            documents.append(Document(str(path.relative_to(folder)), text))
    if not documents:
        raise SystemExit(f"no text files under {folder}")
    return documents


def limits() -> dict[str, Work]:
    """What no strategy can be faster than."""
    counter = TiktokenCounter(ENCODING)
    encoding = counter.encoding
    return {
        "limit: one pass of tiktoken": lambda documents: [encoding.encode_ordinary(d.text) for d in documents],
        f"limit: one pass of {counter.encoder}": lambda documents: [encode(ENCODING, d.text) for d in documents],
    }


def ours() -> dict[str, Work]:
    """The strategies at one size."""
    works: dict[str, Work] = {}
    for name in OURS:
        options = {} if name == "fixed_sentences" else {"size": SIZE}
        chunker = get_chunker(name, counter=ENCODING, **options)
        works[name] = lambda documents, chunker=chunker: deque(chunker.chunk_many(documents), maxlen=0)
    return works


def langchain() -> dict[str, Work]:
    from langchain_text_splitters import RecursiveCharacterTextSplitter

    recursive = RecursiveCharacterTextSplitter.from_tiktoken_encoder(
        ENCODING, chunk_size=SIZE, chunk_overlap=0, disallowed_special=()
    )
    return {"LangChain recursive": lambda documents: [recursive.split_text(document.text) for document in documents]}


def llamaindex() -> dict[str, Work]:
    import tiktoken
    from llama_index.core import Document as TheirDocument
    from llama_index.core.node_parser import SentenceSplitter

    encoding = tiktoken.get_encoding(ENCODING)

    def tokenizer(text: str) -> list[int]:
        return encoding.encode(text, disallowed_special=())

    parser = SentenceSplitter(chunk_size=SIZE, chunk_overlap=0, tokenizer=tokenizer, include_metadata=False)
    return {
        "LlamaIndex sentence": lambda documents: [
            parser.get_nodes_from_documents([TheirDocument(text=document.text)]) for document in documents
        ]
    }


def haystack() -> dict[str, Work]:
    from haystack import Document as TheirDocument
    from haystack.components.preprocessors import RecursiveDocumentSplitter

    recursive = RecursiveDocumentSplitter(
        split_length=SIZE, split_overlap=0, split_unit="token", separators=["\n\n", "\n", " "]
    )
    recursive.warm_up()
    return {
        "Haystack recursive by tokens": lambda documents: [
            recursive.run([TheirDocument(content=document.text)]) for document in documents
        ]
    }


PEERS = (langchain, llamaindex, haystack)


def contestants() -> dict[str, Work]:
    """All that are installed."""
    works = {**limits(), **ours()}
    TiktokenCounter("o200k_base").encoding  # noqa: B018  # peers then find tiktoken's files without a network
    for peer in PEERS:
        try:
            works |= peer()
        except ImportError as error:
            print(f"left out: {peer.__name__} ({error})")
    return works


def race(works: dict[str, Work], documents: Sequence[Document]) -> dict[str, list[float]]:
    """Processor seconds of each contestant in each round."""
    seconds: dict[str, list[float]] = {name: [] for name in works}
    for number in range(ROUNDS + 1):
        for name in works:
            gc.collect()
            began = time.process_time()
            works[name](documents)
            if number:  # the first loads what is loaded on first use
                seconds[name].append(time.process_time() - began)
    return seconds


def show(title: str, documents: Sequence[Document], seconds: dict[str, list[float]]) -> None:
    megabytes = sum(len(document.text.encode("utf-8", "replace")) for document in documents) / 1e6
    print(f"\n{title}: {len(documents)} documents, {megabytes:.2f} MB; {len(seconds['recursive'])} rounds")
    print(f"| {'':40} | {'MB/s':>7} | time / `recursive`     |\n|{'-' * 42}|--------:|{'-' * 24}|")
    for name, rounds in seconds.items():
        ratios = sorted(time / ours for time, ours in zip(rounds, seconds["recursive"], strict=True))
        spread = f"{statistics.median(ratios):6.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})"
        print(f"| {name:40} | {megabytes / min(rounds):7.1f} | {spread:22} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--docs", type=Path, help="a folder of text files")
    options = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    if options.docs:
        sets = {str(options.docs): read_folder(options.docs)}
    else:
        sets = {"The five corpora": read_corpora(), "Contracts, papers, articles": read_many()}
    works = contestants()
    print(f"contestants: {len(works)}", flush=True)
    for title, documents in sets.items():
        show(title, documents, race(works, documents))


if __name__ == "__main__":
    main()
