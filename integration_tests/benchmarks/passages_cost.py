"""What a question costs as units become more: `passages`, and `hybrid` over the same chunks; and what `hits` loses.

    python -m integration_tests.benchmarks.passages_cost 10000 100000 1000000 [--retriever passages --retriever hybrid]
    python -m integration_tests.benchmarks.passages_cost 1000000 --grown covid_qa --shared ../shared

Units are texts of 35 words each, of 100,000 words by Zipf's law, 100 units a document; a question is 12 words of one
unit. Vectors are random, of 384 dimensions. Times are of the processor, the median of the questions; "memory" is what
the index holds beside the corpus and the vectors, postings included.

With `--grown`, units are a collection's, sentences of up to 50 tokens, and those of copies of the documents of five
collections, in which 40 % of the words are others and vectors have a cosine of 0.75 with the true ones. Recall is of
1,000 tokens, in characters of evidence; the loss is that against the first retriever, with a 95 % interval. Building
is compared with embedding as many units with the model, as measured on 256.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
import time
import tracemalloc
from collections.abc import Callable, Sequence
from itertools import chain, cycle, pairwise
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from chunkcore.chunkers import get_chunker
from chunkcore.cli.options import default_cache
from chunkcore.columns import text_keys
from chunkcore.document import Chunk, Document, Span
from chunkcore.evaluation.benchmarks import Query
from chunkcore.models import CachedEmbedder, EmbeddingCache, get_embedder
from chunkcore.retrieval import ChunkedCorpus, Postings, TextVectors, chunk_corpus, get_retriever, word_keys
from chunkcore.retrieval.corpus import Titles
from chunkcore.run import Retrieved
from integration_tests.benchmarks.collections_table import benchmark_of
from integration_tests.benchmarks.passages_table import COLLECTIONS
from integration_tests.benchmarks.passages_table import UNITS as STRATEGY

WORDS, DISTINCT, DIMENSIONS, UNITS, ASKED = 35, 100_000, 384, 100, 12
POOL = ("covid_qa", "chroma", "cuad", "qmsum", "evidence_inference")


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


def grown(name: str, units: int, shared: Path) -> tuple[ChunkedCorpus, TextVectors, list[Query]]:
    """A collection's units and those of changed copies, their vectors, and the collection's questions."""
    rng = np.random.default_rng(0)
    model = CachedEmbedder(get_embedder(), EmbeddingCache(default_cache()))
    keys: dict[str, int] = {}
    sources: list[tuple[Document, np.ndarray, list[list[int]], np.ndarray]] = []
    first = benchmark_of(name, shared)
    for each in (name, *POOL):
        corpus = chunk_corpus((first if each == name else benchmark_of(each, shared)).documents, get_chunker(STRATEGY))
        rows = _unit(np.asarray(TextVectors(model, [corpus]).chunks(corpus)[0][:]))
        own = [[keys.setdefault(key, len(keys)) for key in word_keys(text, "first5")] for text in corpus.texts]
        held = np.column_stack((corpus.extents, corpus.token_counts))
        edges = np.flatnonzero(np.diff(corpus.document_numbers, prepend=-1, append=-1))
        for begin, end in pairwise(edges.tolist()):
            document = corpus.documents[corpus.document_numbers[begin]]
            sources.append((document, held[begin:end], own[begin:end], rows[begin:end]))
    drawn = np.concatenate([np.array(words, dtype=np.int64) for *_, texts, _ in sources for words in texts])
    documents: list[Document] = []
    columns: list[np.ndarray] = []
    words: list[np.ndarray] = []
    counts: list[int] = []
    vectors: list[np.ndarray] = []
    size = 0
    kept = len(first.documents)
    for copy, (document, places, texts, rows) in enumerate(chain(sources[:kept], cycle(sources))):
        number = np.concatenate([np.array(text, dtype=np.int64) for text in texts])
        if copy >= kept:
            number = np.where(rng.random(len(number)) < 0.4, rng.choice(drawn, len(number)), number)
            noise = _unit(rng.standard_normal(rows.shape, dtype=np.float32))
            rows = 0.75 * rows + math.sqrt(1 - 0.75**2) * noise
            document = Document(f"{document.id}/{copy}", document.text)
        indices = np.arange(len(places))
        columns.append(np.column_stack((np.full(len(places), len(documents)), indices, places)))
        documents.append(document)
        words.append(number)
        counts += map(len, texts)
        vectors.append(rows.astype(np.float32))
        size += len(places)
        if copy + 1 >= kept and size >= units:
            break
    names = text_keys(keys)
    rank = np.argsort(np.argsort(names))
    postings = Postings.counted(np.sort(names), rank[np.concatenate(words)], np.array(counts, dtype=np.int64))
    corpus = ChunkedCorpus.of_columns(documents, np.concatenate(columns).T, {"first5": postings}, Titles(()))
    return corpus, _Known(model, np.concatenate(vectors)), list(first.queries)


class _Known(TextVectors):
    def __init__(self, model: CachedEmbedder, rows: np.ndarray) -> None:
        super().__init__(model)
        self._rows = rows

    def chunks(self, corpus: ChunkedCorpus, *, cluster_only: bool = False) -> tuple[np.ndarray, np.ndarray]:
        return self._rows, np.arange(len(self._rows))


def _unit(rows: np.ndarray) -> np.ndarray:
    found: np.ndarray = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)
    return found


def recall(found: Sequence[Retrieved], query: Query) -> float:
    """The share of the evidence's characters in passages, which are disjoint."""
    shared = sum(
        max(0, min(evidence.span.end, span.end) - max(evidence.span.start, span.start))
        for evidence in query.evidence
        for piece in found
        if piece.document_id == evidence.document_id
        for span in piece.spans
    )
    return shared / sum(len(evidence.span) for evidence in query.evidence)


def tell_losses(units: int, name: str, shared: Path, retrievers: Sequence[str], asked: int) -> None:
    corpus, vectors, queries = grown(name, units, shared)
    queries = [queries[i] for i in np.random.default_rng(1).permutation(len(queries))[:asked]]
    embedding = timed(get_embedder().embed_documents, [corpus[i].text for i in range(256)]) * len(corpus) / 256
    first: np.ndarray | None = None
    for retriever in retrievers:
        began = time.process_time()
        index = get_retriever(retriever).index(corpus, vectors)
        built = time.process_time() - began
        vectors.queries([queries[0].text])
        times, found = [], []
        for query in queries:
            vectors.queries([query.text])
            began = time.process_time()
            found.append(recall(index.retrieve(query.text, None, 1000), query))
            times.append(time.process_time() - began)
        values = 100 * np.array(found)
        first = values if first is None else first
        loss, bound = first - values, 1.96 / math.sqrt(len(values))
        print(
            f"| {len(corpus):,} | {retriever} | {built:.1f} ({100 * built / embedding:.1f} %) | {values.mean():.1f} "
            f"| {loss.mean():+.1f} ± {bound * loss.std():.1f} | {1000 * statistics.median(times):.1f} |",
            flush=True,
        )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("units", type=int, nargs="+")
    parser.add_argument("--retriever", action="append", help="default: passages, passages:lexical and hybrid")
    parser.add_argument("--questions", type=int, default=20)
    parser.add_argument("--grown", choices=COLLECTIONS, help="the collection whose questions are asked")
    parser.add_argument("--shared", type=Path, help="the folder with data/")
    options = parser.parse_args(arguments)
    if options.grown:
        print("| units | retriever | built, s (of embedding) | recall | loss | 1,000 tokens, ms |")
        print("|--:|---|--:|--:|--:|--:|")
        retrievers = options.retriever or ["passages", *(f"passages:hits={hits}" for hits in (50, 100, 200))]
        for units in options.units:
            tell_losses(units, options.grown, options.shared, retrievers, options.questions)
        return
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
