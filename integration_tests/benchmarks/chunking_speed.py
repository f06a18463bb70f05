"""How fast `recursive` and `fixed_token` are, against one pass of the tokenizer and against peers.

    python -m integration_tests.benchmarks.chunking_speed [repeats]

Everything is timed in turn, round after round, so that a busy machine slows all alike; medians and their
ratios are printed. On one core it is the processor's time that counts, on several the clock's. Ours includes
Document -> Chunk, with spans and token counts. Peers give strings (LangChain) or their own chunks (chonkie);
what they remember is forgotten between rounds, as is ours.
"""

from __future__ import annotations

import gc
import json
import os
import statistics
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from chunkcore.chunkers.fixed_token import FixedToken
from chunkcore.chunkers.recursive import Recursive
from chunkcore.document import Document
from chunkcore.tokens import counters

ENCODING = "cl100k_base"
DATA = Path(__file__).resolve().parents[2] / "../shared/data"


def read_corpora() -> list[Document]:
    """The five corpora of the report, each one document."""
    folder = DATA / "chroma/corpora"
    if not folder.exists():
        raise SystemExit(f"the five corpora of the report are needed, and not there: {folder}")
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


def median_times(
    works: dict[str, Callable[[], Any]], repeats: int, clock: Callable[[], float] = time.perf_counter
) -> dict[str, float]:
    times: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(repeats):
        for name, work in works.items():
            gc.collect()
            began = clock()
            work()
            times[name].append(clock() - began)
    return {name: statistics.median(values) for name, values in times.items()}


def consume(values: Iterable[Any]) -> None:
    deque(values, maxlen=0)


def on_one_core(pairs: dict[str, Callable[[], Any]], repeats: int) -> dict[str, float]:
    """Timed with this process, all its threads, on one core, where the system can do that."""
    if not hasattr(os, "sched_setaffinity"):
        return median_times(pairs, repeats, time.process_time)
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    try:
        return median_times(pairs, repeats, time.process_time)
    finally:
        os.sched_setaffinity(0, allowed)


def peers(documents: list[Document]) -> dict[str, Callable[[], Any]]:
    encoding = counters.TiktokenCounter(ENCODING).encoding  # loads the files, so that peers need no network
    works: dict[str, Callable[[], Any]] = {
        "tiktoken, one pass": lambda: [encoding.encode_ordinary(document.text) for document in documents]
    }
    try:
        from langchain_text_splitters import RecursiveCharacterTextSplitter
    except ImportError:
        print("langchain-text-splitters is not installed: left out")
    else:
        splitter = RecursiveCharacterTextSplitter.from_tiktoken_encoder(
            ENCODING, chunk_size=200, chunk_overlap=0, disallowed_special=()
        )
        works["LangChain recursive 200"] = lambda: [splitter.split_text(document.text) for document in documents]
    try:
        from chonkie import RecursiveChunker
    except ImportError:
        print("chonkie is not installed: left out")
    else:
        chonkie = RecursiveChunker(tokenizer=encoding, chunk_size=200)

        def chonkie_all() -> None:
            chonkie._estimate_token_count.cache_clear()
            consume(chonkie.chunk(document.text) for document in documents)

        works["chonkie recursive 200"] = chonkie_all
    return works


def show(title: str, seconds: dict[str, float], megabytes: float) -> None:
    print(f"\n{title}")
    single = seconds["tiktoken, one pass"]
    for name, value in seconds.items():
        print(f"  {name:34}{value * 1000:8.1f} ms {megabytes / value:7.1f} MB/s {value / single:6.2f} x one pass")


def ratio(name: str, value: float, wanted: float, *, at_least: bool) -> None:
    reached = value >= wanted if at_least else value <= wanted
    print(f"  {name:58}{value:6.2f}  wanted {'>=' if at_least else '<='} {wanted:<5g}{'yes' if reached else 'NO'}")


def main() -> None:
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 9
    documents = read_corpora()
    collection = read_many()
    megabytes = sum(len(document.text.encode()) for document in documents) / 1e6
    recursive, fixed = Recursive(size=200, counter=ENCODING), FixedToken(size=200, counter=ENCODING)

    ours: dict[str, Callable[[], Any]] = {
        "recursive 200": lambda: [recursive.chunk(document) for document in documents],
        "fixed_token 200": lambda: [fixed.chunk(document) for document in documents],
    }
    works = {**peers(documents), **ours}
    for work in works.values():
        work()
    one = on_one_core(works, repeats)
    show(f"{len(documents)} documents, {megabytes:.2f} MB, one core", one, megabytes)

    encoding = counters.TiktokenCounter(ENCODING).encoding
    many: dict[str, Callable[[], Any]] = {
        "tiktoken, one pass": lambda: [encoding.encode_ordinary(document.text) for document in collection]
    }
    for workers in (1, 2):
        many[f"recursive 200, workers={workers}"] = lambda w=workers: consume(
            recursive.chunk_many(collection, workers=w)
        )
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    several = median_times(many, repeats)
    megabytes = sum(len(document.text.encode()) for document in collection) / 1e6
    show(f"{len(collection)} documents, {megabytes:.2f} MB, {cores} cores", several, megabytes)

    print(f"\nRatios of medians of {repeats} interleaved rounds")
    single = one["tiktoken, one pass"]
    if "LangChain recursive 200" in one:
        ratio("LangChain / recursive", one["LangChain recursive 200"] / one["recursive 200"], 4, at_least=True)
    if "chonkie recursive 200" in one:
        ratio("chonkie / recursive", one["chonkie recursive 200"] / one["recursive 200"], 1.3, at_least=True)
    ratio("fixed_token / one pass", one["fixed_token 200"] / single, 1.3, at_least=False)
    two = several["tiktoken, one pass"] / several["recursive 200, workers=2"]
    ratio("one pass / recursive on two cores", two, 1, at_least=True)


if __name__ == "__main__":
    main()
