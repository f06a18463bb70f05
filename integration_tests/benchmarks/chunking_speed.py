"""How fast the strategies cut texts, beside the limits they cannot pass and beside the frameworks' own splitters.

    python -m integration_tests.benchmarks.chunking_speed
    python -m integration_tests.benchmarks.chunking_speed --docs DIR --rounds 5 --only recursive LangChain
    python -m integration_tests.benchmarks.chunking_speed --profile recursive

The documents are the five corpora of the Chroma report and 226 contracts, papers and articles, or every text file under
DIR. Whatever is installed of LangChain, chonkie, LlamaIndex, Haystack, semchunk and semantic-text-splitter takes part.
All contestants take turns in every round; on one core, it is the processor's time that counts. Printed: megabytes a
second of the best round, and the median of each round's ratio to `recursive`, with the lowest and highest.
Ours go from Document to Chunk, with spans and token counts; theirs to their own objects or strings.
"""

from __future__ import annotations

import argparse
import cProfile
import gc
import json
import os
import pstats
import statistics
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from chunkcore import Chunk, Document, Span, get_chunker, get_counter
from chunkcore.tokens.encodings import encode

ENCODING = "cl100k_base"
SIZE = 200
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


def consume(values: Iterable[Any]) -> None:
    deque(values, maxlen=0)


def limits() -> dict[str, Work]:
    """What no strategy can be faster than."""
    counter = get_counter(ENCODING)
    encoding, recursive = counter.encoding, get_chunker("recursive", size=SIZE, counter=ENCODING)
    made: dict[str, list[Chunk]] = {}

    def objects(documents: Sequence[Document]) -> None:
        for document in documents:
            if document.id not in made:
                made[document.id] = recursive.chunk(document)
            for each in made[document.id]:
                start, end = each.spans[0].start, each.spans[0].end
                Chunk(document.id, each.index, (Span(start, end),), document.text[start:end], each.token_count)

    return {
        "limit: one pass of tiktoken": lambda documents: [encoding.encode_ordinary(each.text) for each in documents],
        f"limit: one pass of {counter.encoder}": lambda documents: [encode(ENCODING, each.text) for each in documents],
        "limit: the objects of recursive alone": objects,
    }


def ours() -> dict[str, Work]:
    """The strategies at one size."""
    works: dict[str, Work] = {}
    for name in OURS:
        options = {} if name == "fixed_sentences" else {"size": SIZE}
        chunker = get_chunker(name, counter=ENCODING, **options)
        works[name] = lambda documents, chunker=chunker: consume(chunker.chunk_many(documents))
    return works


def langchain() -> dict[str, Work]:
    from langchain_text_splitters import RecursiveCharacterTextSplitter, TokenTextSplitter

    recursive = RecursiveCharacterTextSplitter.from_tiktoken_encoder(
        ENCODING, chunk_size=SIZE, chunk_overlap=0, disallowed_special=()
    )
    token = TokenTextSplitter(ENCODING, chunk_size=SIZE, chunk_overlap=0, disallowed_special=())
    return {
        "LangChain recursive": lambda documents: [recursive.split_text(each.text) for each in documents],
        "LangChain token": lambda documents: [token.split_text(each.text) for each in documents],
    }


def chonkie() -> dict[str, Work]:
    import tiktoken
    from chonkie import RecursiveChunker, SentenceChunker, TokenChunker

    encoding = tiktoken.get_encoding(ENCODING)
    works: dict[str, Work] = {}
    for cls in (RecursiveChunker, TokenChunker, SentenceChunker):
        chunker = cls(tokenizer=encoding, chunk_size=SIZE)

        def work(documents: Sequence[Document], chunker: Any = chunker) -> None:
            forget = getattr(getattr(chunker, "_estimate_token_count", None), "cache_clear", None)
            if forget:
                forget()
            consume(chunker.chunk(each.text) for each in documents)

        works[f"chonkie {cls.__name__}"] = work
    return works


def llamaindex() -> dict[str, Work]:
    import tiktoken
    from llama_index.core import Document as TheirDocument
    from llama_index.core.node_parser import SentenceSplitter, TokenTextSplitter

    encoding = tiktoken.get_encoding(ENCODING)

    def tokenizer(text: str) -> list[int]:
        return encoding.encode(text, disallowed_special=())

    works: dict[str, Work] = {}
    for cls in (SentenceSplitter, TokenTextSplitter):
        parser = cls(chunk_size=SIZE, chunk_overlap=0, tokenizer=tokenizer, include_metadata=False)
        works[f"LlamaIndex {cls.__name__}"] = lambda documents, parser=parser: [
            parser.get_nodes_from_documents([TheirDocument(text=each.text)]) for each in documents
        ]
    return works


def haystack() -> dict[str, Work]:
    from haystack import Document as TheirDocument
    from haystack.components.preprocessors import DocumentSplitter, RecursiveDocumentSplitter

    works: dict[str, Work] = {}
    word = DocumentSplitter(split_by="word", split_length=150, split_overlap=0)
    recursive = RecursiveDocumentSplitter(
        split_length=SIZE, split_overlap=0, split_unit="token", separators=["\n\n", "\n", " "]
    )
    for name, splitter in (("word", word), ("recursive by tokens", recursive)):
        splitter.warm_up()
        works[f"Haystack {name}"] = lambda documents, splitter=splitter: [
            splitter.run([TheirDocument(content=each.text)]) for each in documents
        ]
    return works


def semchunk() -> dict[str, Work]:
    import semchunk
    import tiktoken

    encoding = tiktoken.get_encoding(ENCODING)

    def work(documents: Sequence[Document]) -> None:
        # A new one each time: it remembers the counts of its texts.
        chunker = semchunk.chunkerify(lambda text: len(encoding.encode_ordinary(text)), SIZE)
        consume(chunker(each.text) for each in documents)

    return {"semchunk": work}


def semantic_text_splitter() -> dict[str, Work]:
    from semantic_text_splitter import TextSplitter

    splitter = TextSplitter.from_tiktoken_model("gpt-4", SIZE)
    return {"semantic-text-splitter": lambda documents: [splitter.chunks(each.text) for each in documents]}


PEERS = (langchain, chonkie, llamaindex, haystack, semchunk, semantic_text_splitter)


def contestants(only: Sequence[str]) -> dict[str, Work]:
    """All that are installed, or those whose names hold a word of `only`; `recursive` always."""
    works = {**limits(), **ours()}
    get_counter("o200k_base").encoding  # noqa: B018  # peers then find tiktoken's files without a network
    for peer in PEERS:
        if only and not any(word in peer.__name__ or peer.__name__ in word.lower() for word in only):
            continue
        try:
            works |= peer()
        except ImportError as error:
            print(f"left out: {peer.__name__} ({error})")
    chosen = {name: work for name, work in works.items() if not only or any(word in name for word in only)}
    return {"recursive": works["recursive"], **chosen}


def race(works: dict[str, Work], documents: Sequence[Document], rounds: int) -> dict[str, list[float]]:
    """Processor seconds of each contestant in each round."""
    seconds: dict[str, list[float]] = {name: [] for name in works}
    for number in range(rounds + 1):
        for name in list(seconds):
            gc.collect()
            began = time.process_time()
            try:
                works[name](documents)
            except Exception as error:
                if name in OURS or name.startswith("limit"):
                    raise
                # chonkie, for one, refuses a text that names a special token.
                print(f"left out: {name} ({str(error).splitlines()[0]})", flush=True)
                del seconds[name]
                continue
            if number:  # the first loads what is loaded on first use
                seconds[name].append(time.process_time() - began)
    return seconds


def show(title: str, documents: Sequence[Document], seconds: dict[str, list[float]]) -> None:
    megabytes = sum(len(document.text.encode("utf-8", "replace")) for document in documents) / 1e6
    print(f"\n{title}: {len(documents)} documents, {megabytes:.2f} MB; {len(seconds['recursive'])} rounds")
    print(f"| {'':40} | {'MB/s':>7} | time / `recursive`     |\n|{'-' * 42}|--------:|{'-' * 24}|")
    for name, each in seconds.items():
        ratios = sorted(own / ours for own, ours in zip(each, seconds["recursive"], strict=True))
        spread = f"{statistics.median(ratios):6.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})"
        print(f"| {name:40} | {megabytes / min(each):7.1f} | {spread:22} |", flush=True)


def profile(name: str, documents: Sequence[Document]) -> None:
    """Where a strategy's time goes, by function."""
    work = ours()[name]
    work(documents)
    profiler = cProfile.Profile(time.process_time)
    profiler.runcall(work, documents)
    pstats.Stats(profiler).sort_stats("tottime").print_stats(25)


def show_cold(title: str, documents: Sequence[Document]) -> None:
    """The first pass of `recursive` in this process."""
    chunker = get_chunker("recursive", size=SIZE, counter=ENCODING)
    times = [time.process_time()]
    for part in ([Document("one", "One.")], documents):
        consume(chunker.chunk_many(part))
        times.append(time.process_time())
    megabytes = sum(len(each.text.encode("utf-8", "surrogatepass")) for each in documents) / 1e6
    speed = megabytes / (times[2] - times[1])
    print(f"cold: {title}: {speed:.1f} MB/s, after {times[1] - times[0]:.2f} s for the encoder")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--docs", type=Path, help="a folder of text files")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", nargs="+", default=[], help="parts of the names of contestants")
    parser.add_argument("--profile", choices=OURS)
    asked = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    if asked.docs:
        sets = {str(asked.docs): read_folder(asked.docs)}
    else:
        sets = {"The five corpora": read_corpora(), "Contracts, papers, articles": read_many()}
    if asked.profile:
        profile(asked.profile, list(sets.values())[-1])
        return
    show_cold(*next(iter(sets.items())))
    works = contestants(asked.only)
    print(f"contestants: {len(works)}", flush=True)
    for title, documents in sets.items():
        show(title, documents, race(works, documents, asked.rounds))


if __name__ == "__main__":
    main()
