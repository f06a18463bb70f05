"""How fast the Haystack component splits, next to the core alone and to Haystack's own splitters.

    python -m integration_tests.benchmarks.haystack_speed

Every round runs each contestant once, one after the other, so that a machine that slows down slows all of
them; the median of the rounds is printed, and ratios to compare. Time is the process's own, on one core, so
that what else runs on the machine counts little. Nothing is asserted.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from haystack import Document
from haystack.components.preprocessors import DocumentSplitter, RecursiveDocumentSplitter

from chunkadapters.haystack import ChunkcoreDocumentSplitter
from chunkcore.chunkers.base import Chunker, build_chunker
from chunkcore.document import Document as Source
from chunkcore.tokens import get_counter

CORPORA = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "chroma" / "corpora"
ROUNDS = 5


def core_alone(chunker: Chunker, sources: Iterable[Source]) -> int:
    """Keeps what it makes until it is done, as a component does."""
    return len([chunk for source in sources for chunk in chunker.chunk(source)])


def contestants(texts: dict[str, str]) -> dict[str, Callable[[], int]]:
    """What is timed: each returns how many chunks it made."""
    documents = [Document(id=key, content=text) for key, text in texts.items()]
    sources = [Source(key, text) for key, text in texts.items()]
    chunker = build_chunker("recursive", {"size": 200, "overlap": 0, "counter": "cl100k_base"})
    components = {
        "ours: recursive, 200 cl100k tokens": ChunkcoreDocumentSplitter(chunker),
        "RecursiveDocumentSplitter, 200 o200k tokens": RecursiveDocumentSplitter(
            split_length=200, split_unit="token", separators=["\n\n", "\n", " "]
        ),
        "DocumentSplitter, 200 o200k tokens": DocumentSplitter(split_by="token", split_length=200),
        "DocumentSplitter, 150 words": DocumentSplitter(split_by="word", split_length=150),
    }
    get_counter("o200k_base").count("")  # tiktoken then has it, offline too
    for component in components.values():
        component.warm_up()
    return {
        "chunkcore alone: recursive, 200 cl100k tokens": lambda: core_alone(chunker, sources),
        **{name: lambda each=each: len(each.run(documents)["documents"]) for name, each in components.items()},
    }


def race(title: str, texts: dict[str, str], rounds: int = ROUNDS) -> None:
    """Time every contestant in turn, `rounds` times, and print medians and ratios."""
    size = sum(map(len, texts.values())) / 1e6
    print(f"\n{title}: {len(texts)} documents, {size:.2f} million characters, median of {rounds} rounds")
    running = contestants(texts)
    seconds: dict[str, list[float]] = {name: [] for name in running}
    chunks = {name: run() for name, run in running.items()}  # once for what is loaded on first use
    for _ in range(rounds):
        for name, run in running.items():
            began = time.process_time()
            run()
            seconds[name].append(time.process_time() - began)
    core = statistics.median(next(iter(seconds.values())))
    for name, each in seconds.items():
        median = statistics.median(each)
        print(
            f"  {name:46} {median:8.3f} s {size / median:7.2f} M/s {median / core:7.2f} x core {chunks[name]:8} chunks"
        )


def pieces(texts: dict[str, str], length: int, count: int) -> dict[str, str]:
    """So many documents of one length, cut from the texts, each with its own beginning."""
    joined = "\n".join(texts.values())
    step = max(1, (len(joined) - length) // count)
    return {f"piece-{i}": joined[i * step : i * step + length] for i in range(count)}


def main() -> None:
    """Race over the five corpora whole, then over 10,000 documents of 2,000 characters."""
    if not CORPORA.is_dir():
        raise SystemExit(f"the collection data/chroma is not at {CORPORA}: nothing to measure")
    texts = {path.name: path.read_text(encoding="utf-8") for path in sorted(CORPORA.iterdir())}
    race("data/chroma", texts)
    race("10,000 documents", pieces(texts, 2000, 10_000), rounds=3)


if __name__ == "__main__":
    main()
