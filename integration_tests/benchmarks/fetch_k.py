"""How many hits to ask the app's retriever for: the default of `fetch_k`, by the hits' own text.

    python -m integration_tests.benchmarks.fetch_k --shared ../shared

Dense search by all-MiniLM-L6-v2 over `recursive:size=200`, and over LangChain's default splitter (1,000 characters,
200 of overlap); passages behind its first 10, 50 and 100 hits by their own text, and behind ten hits with whole
documents. Documents and questions are drawn as in `passages_table`, 100 questions at most. The recall at each budget
goes to docs/evidence/data/fetch_k.json, a collection at a time.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from chunkcore import Benchmark, Chunk, ChunkedCorpus, Index, Span
from chunkcore.cli.options import default_cache
from chunkcore.evaluation.scoring import Scorer
from chunkcore.models import CachedEmbedder, Embedder, EmbeddingCache, get_embedder
from chunkcore.retrieval import TextVectors, chunk_corpus, get_retriever
from chunkcore.run import Retrieved
from chunkcore.study.experiment import run_retriever
from integration_tests.benchmarks.passages_table import BUDGETS, COLLECTIONS, STORE, UNITS, Behind, benchmark_of
from langchain_text_splitters import RecursiveCharacterTextSplitter

CHARACTERS = "1,000 characters"
WAYS = ((10, "hits"), (50, "hits"), (100, "hits"), (10, "whole"))
DATA = Path(__file__).resolve().parents[2] / "docs" / "evidence" / "data" / "fetch_k.json"


def corpus_of(benchmark: Benchmark, label: str) -> ChunkedCorpus:
    """The chunks that an app would have in its store."""
    if label != CHARACTERS:
        return chunk_corpus(benchmark.documents, STORE)
    splitter = RecursiveCharacterTextSplitter(chunk_size=1000, chunk_overlap=200, add_start_index=True)
    chunks = []
    for document in benchmark.documents:
        for number, piece in enumerate(splitter.create_documents([document.text])):
            start, text = piece.metadata["start_index"], piece.page_content
            chunks.append(Chunk(document.id, number, (Span(start, start + len(text)),), text, len(text)))
    return ChunkedCorpus(chunks, benchmark.documents)


class Alone:
    """The retriever's own hits, more than any budget here holds."""

    def __init__(self, index: Index) -> None:
        self._index = index

    def retrieve(self, query: str, k: int | None = None, max_tokens: int | None = None) -> Sequence[Retrieved]:
        return self._index.retrieve(query, 100)


def systems(benchmark: Benchmark, embedder: Embedder) -> Iterator[tuple[str, Any]]:
    words: Any = get_retriever("passages:lexical").index(chunk_corpus(benchmark.documents, UNITS))
    for label in ("200 tokens", CHARACTERS):
        corpus = corpus_of(benchmark, label)
        dense: Index = get_retriever("dense").index(corpus, TextVectors(embedder, [corpus]))
        yield f"{label}, alone", Alone(dense)
        for hits, documents in WAYS:
            yield f"{label}, {hits} {documents}", Behind(dense, words, hits, documents)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shared", type=Path, required=True, help="the folder with data/")
    parser.add_argument("--only", action="append", choices=[*COLLECTIONS])
    options = parser.parse_args(arguments)
    embedder = CachedEmbedder(get_embedder("openvino:all-MiniLM-L6-v2"), EmbeddingCache(default_cache()))
    rows = json.loads(DATA.read_text()) if DATA.exists() else {}
    for name in options.only or COLLECTIONS:
        benchmark = benchmark_of(name, options.shared, 100)
        scorer = Scorer(benchmark)
        rows[name] = {}
        for label, retriever in systems(benchmark, embedder):
            means = []
            for budget in BUDGETS:
                run = run_retriever(retriever, benchmark, None, budget)
                means.append(round(100 * scorer.score(run, [f"Recall@{budget}tok"]).mean(f"Recall@{budget}tok"), 1))
            rows[name][label] = means
            print(name, label, means, flush=True)
        DATA.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
