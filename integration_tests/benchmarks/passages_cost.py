"""What a question costs as units become more: `passages`, and `hybrid` over the same chunks.

    python -m integration_tests.benchmarks.passages_cost 10000 100000 1000000 [--retriever passages --retriever hybrid]

Units are texts of 35 words each, of 100,000 words by Zipf's law, 100 units a document; a question is 12 words of one
unit. Vectors are random, of 384 dimensions. Times are of the processor, the median of the questions; "memory" is what
the index holds beside the corpus and the vectors, postings included.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
import tracemalloc
from collections.abc import Callable, Sequence
from types import SimpleNamespace

import numpy as np

from chunkcore.document import Chunk, Document, Span
from chunkcore.retrieval import ChunkedCorpus, TextVectors, get_retriever

WORDS, DISTINCT, DIMENSIONS, UNITS, ASKED = 35, 100_000, 384, 100, 12


def corpus_of(units: int) -> ChunkedCorpus:
    rng = np.random.default_rng(0)
    odds = 1 / np.arange(1, DISTINCT + 1)
    numbers = rng.choice(DISTINCT, size=(units, WORDS), p=odds / odds.sum())
    documents, chunks = [], []
    for first in range(0, units, UNITS):
        texts = [" ".join(f"w{number}" for number in row) + "." for row in numbers[first : first + UNITS].tolist()]
        document = Document(f"d{first}", " ".join(texts))
        documents.append(document)
        start = 0
        for index, text in enumerate(texts):
            chunks.append(Chunk(document.id, index, (Span(start, start + len(text)),), text, 50, fingerprint="f"))
            start += len(text) + 1
    return ChunkedCorpus(chunks, documents)


def vectors_of(texts: Sequence[str]) -> np.ndarray:
    rng = np.random.default_rng(len(texts))
    rows = rng.standard_normal((len(texts), DIMENSIONS), dtype=np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("units", type=int, nargs="+")
    parser.add_argument("--retriever", action="append", help="default: passages, passages:lexical and hybrid")
    parser.add_argument("--questions", type=int, default=20)
    options = parser.parse_args(arguments)
    print("| units | retriever | built, s | memory, bytes a unit | search, ms | 1,000 tokens, ms |")
    print("|--:|---|--:|--:|--:|--:|")
    model = SimpleNamespace(
        name="hashed", fingerprint="hashed", max_tokens=None, embed_documents=vectors_of, embed_queries=vectors_of
    )
    for units in options.units:
        corpus = corpus_of(units)
        rng = np.random.default_rng(1)
        texts = [corpus[int(number)].text.split() for number in rng.integers(0, units, options.questions)]
        questions = [" ".join(rng.choice(text, ASKED, replace=False)) for text in texts]
        vectors = TextVectors(model, [corpus])
        vectors.chunks(corpus)
        for name in options.retriever or ["passages", "passages:lexical", "hybrid:fusion=ranks"]:
            tracemalloc.start()
            began = time.process_time()
            index = get_retriever(name).index(corpus, vectors)
            built = time.process_time() - began
            held = tracemalloc.get_traced_memory()[0]
            tracemalloc.stop()
            index.search(questions[:1], 10)
            searched = [timed(index.search, [question], 100) for question in questions]
            answered = [timed(index.retrieve, question, None, 1000) for question in questions]
            print(
                f"| {units:,} | {name} | {built:.1f} | {held / units:.0f} | {1000 * statistics.median(searched):.1f} "
                f"| {1000 * statistics.median(answered):.1f} |",
                flush=True,
            )
        print(f"{units:,} units done", file=sys.stderr)


def timed(ask: Callable[..., object], *given: object) -> float:
    began = time.process_time()
    ask(*given)
    return time.process_time() - began


if __name__ == "__main__":
    main()
