"""How fast the Haystack component splits, next to the core alone and to Haystack's own splitters.

    python -m integration_tests.benchmarks.haystack_speed

Time is the process's own, so that what else runs on the machine counts little.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

from haystack import Document
from haystack.components.preprocessors import DocumentSplitter, RecursiveDocumentSplitter

from chunkadapters.haystack import ChunkcoreDocumentSplitter
from chunkcore.chunkers.base import Chunker, get_chunker
from chunkcore.document import Document as Source
from chunkcore.tokens import get_counter
from integration_tests.benchmarks.racing import Contestants, corpora, pieces, race


def core_alone(chunker: Chunker, sources: Iterable[Source]) -> int:
    """Keeps what it makes until it is done, as a component does."""
    return len([chunk for source in sources for chunk in chunker.chunk(source)])


def contestants(texts: dict[str, str]) -> Contestants:
    """What is timed: each returns how many chunks it made."""
    documents = [Document(id=key, content=text) for key, text in texts.items()]
    sources = [Source(key, text) for key, text in texts.items()]
    chunker = get_chunker("recursive", size=200, overlap=0, counter="cl100k_base")
    components = {
        "ours: recursive, 200 cl100k tokens": ChunkcoreDocumentSplitter(chunker),
        "RecursiveDocumentSplitter, 200 o200k tokens": RecursiveDocumentSplitter(
            split_length=200, split_unit="token", separators=["\n\n", "\n", " "]
        ),
        "DocumentSplitter, 200 o200k tokens": DocumentSplitter(split_by="token", split_length=200),
        "DocumentSplitter, 150 words": DocumentSplitter(split_by="word", split_length=150),
    }
    _ = get_counter("o200k_base").encoding  # tiktoken then has it, offline too
    for component in components.values():
        component.warm_up()
    return {
        "chunkcore alone: recursive, 200 cl100k tokens": lambda: core_alone(chunker, sources),
        **{name: lambda each=each: len(each.run(documents)["documents"]) for name, each in components.items()},
    }


def main() -> None:
    """Race over the five corpora whole, then over 10,000 documents of 2,000 characters."""
    texts = corpora()
    race("data/chroma", texts, contestants(texts), 5, time.process_time)
    many = pieces(texts, 2000, 10_000)
    race("10,000 documents", many, contestants(many), 3, time.process_time)


if __name__ == "__main__":
    main()
