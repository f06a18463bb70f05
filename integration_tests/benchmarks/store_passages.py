"""Passages where not even texts are local (`StoreIndex`), over LanceDB: what they find, and what a question costs.

    python -m integration_tests.benchmarks.store_passages --shared ../shared --recall lochmere --recall chroma
    python -m integration_tests.benchmarks.store_passages --shared ../shared --units 1000000

Recall: chunks of `recursive:size=200` with vectors of all-MiniLM-L6-v2, exact search, questions and documents drawn as
in `passages_table`. The engine's hybrid search (vectors and words, its own fusion of ranks) gives 50 hits; passages are
of these and of one chunk before and after each, which one more call fetches by ids. Beside it the same hits before
an index on this machine.

Cost: small units of a collection's documents, numbered and repeated up to so many, with random vectors of 384 numbers
and the engine's indexes of vectors (IVF-PQ), words and ids. Wall time, median of 30 questions, taking turns.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
from chunkadapters.langchain import PassageRetriever, evaluate_retriever
from chunkadapters.neighbours import StoreIndex
from chunkcore import Span, chunk_corpus
from chunkcore.cli.options import default_cache
from chunkcore.locating import Hit
from chunkcore.models import CachedEmbedder, EmbeddingCache, get_embedder
from chunkcore.run import Retrieved
from integration_tests.benchmarks.passages_table import BUDGETS, COLLECTIONS, STORE, UNITS, benchmark_of
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda

if TYPE_CHECKING:
    import pyarrow as pa

HITS, BATCH, DIMENSIONS = 50, 50_000, 384


class Engine:
    """A table of chunks with their ids in reading order, document, place, text and vector."""

    def __init__(self, folder: str, batches: Iterator[pa.Table], embed: Callable[[str], Any]) -> None:
        import lancedb  # here, as the tests read every module's examples
        from lancedb.index import FTS, BTree

        self.table = lancedb.connect(folder).create_table("chunks", next(batches))
        for batch in batches:
            self.table.add(batch)
        self.table.create_index("text", config=FTS())
        self.table.create_index("id", config=BTree())
        self._embed = embed

    def hits(self, question: str) -> list[Document]:
        query = self.table.search(query_type="hybrid").vector(self._embed(question)).text(_words(question))
        rows = query.limit(HITS).to_list()
        places = [{"source": row["source"], "start_index": row["start"]} for row in rows]
        pairs = zip(rows, places, strict=True)
        return [Document(row["text"], metadata=place, id=str(row["id"])) for row, place in pairs]

    def neighbours(self, hits: Sequence[Hit]) -> Iterator[Retrieved]:
        ids = sorted({int(hit.id) + step for hit in hits for step in (-1, 0, 1)})
        rows = self.table.search().where(f"id IN ({', '.join(map(str, ids))})").limit(len(ids))
        for row in rows.select(["source", "start", "text"]).to_list():
            span = Span(row["start"], row["start"] + len(row["text"]))
            yield Retrieved(row["source"], (span,), text=row["text"])


def _words(question: str) -> str:
    return "".join(letter if letter.isalnum() else " " for letter in question)  # no operators


def table_of(
    ids: Sequence[int], sources: Sequence[str], starts: Sequence[int], texts: Sequence[str], vectors: Any
) -> pa.Table:
    import pyarrow as pa

    flat = pa.FixedSizeListArray.from_arrays(np.ascontiguousarray(vectors, np.float32).ravel(), DIMENSIONS)
    return pa.table({"id": ids, "source": sources, "start": starts, "text": texts, "vector": flat})


def recall(name: str, shared: Path) -> None:
    benchmark = benchmark_of(name, shared, 100)
    embedder = CachedEmbedder(get_embedder("openvino:all-MiniLM-L6-v2"), EmbeddingCache(default_cache()))
    chunks = [chunk for chunk in chunk_corpus(benchmark.documents, STORE) if len(chunk.spans) == 1]
    texts = [chunk.text for chunk in chunks]
    sources, starts = [chunk.document_id for chunk in chunks], [chunk.start for chunk in chunks]
    rows = table_of(range(len(chunks)), sources, starts, texts, embedder.embed_documents(texts))
    measures = [f"Recall@{budget}tok" for budget in BUDGETS]
    with TemporaryDirectory() as folder:
        engine = Engine(folder, iter([rows]), lambda question: embedder.embed_queries([question])[0])
        search: Any = RunnableLambda(engine.hits)
        systems: dict[str, Callable[[int], Any]] = {
            "the engine's hybrid search": lambda budget: search,
            "passages of its hits and their neighbours": lambda budget: PassageRetriever(
                search, max_tokens=budget, index=StoreIndex(engine.neighbours), show="whole"
            ),
            "passages before an index on this machine": lambda budget: PassageRetriever(
                search, max_tokens=budget, documents=benchmark.documents
            ),
        }
        for title, system in systems.items():
            means = [
                100 * evaluate_retriever(system(budget), benchmark, measures=[measure]).mean(measure)
                for budget, measure in zip(BUDGETS, measures, strict=True)
            ]
            print(f"| {COLLECTIONS[name]} | {title} | {' | '.join(f'{mean:.1f}' for mean in means)} |", flush=True)


def batches(units: int, shared: Path) -> Iterator[pa.Table]:
    chunks = list(chunk_corpus(benchmark_of("chroma", shared).documents, UNITS))
    rng = np.random.default_rng(0)
    for first in range(0, units, BATCH):
        ids = range(first, min(first + BATCH, units))
        rows = [chunks[number % len(chunks)] for number in ids]
        sources = [f"{number // len(chunks)}/{row.document_id}" for number, row in zip(ids, rows, strict=True)]
        texts = [
            f"{row.text[:-7]} {number:06}" if len(row.text) > 7 else row.text
            for number, row in zip(ids, rows, strict=True)
        ]
        vectors = rng.standard_normal((len(rows), DIMENSIONS), dtype=np.float32)
        yield table_of(ids, sources, [row.start for row in rows], texts, vectors)


def cost(units: int, shared: Path) -> None:
    questions = [query.text for query in benchmark_of("chroma", shared, 31).queries]
    rng = np.random.default_rng(1)
    with TemporaryDirectory() as folder:
        began = time.perf_counter()
        engine = Engine(folder, batches(units, shared), lambda question: rng.standard_normal(DIMENSIONS))
        from lancedb.index import IvfPq

        engine.table.create_index("vector", config=IvfPq())
        print(f"{units:,} units: table and indexes in {time.perf_counter() - began:.0f} s", flush=True)
        retriever = PassageRetriever(RunnableLambda(engine.hits), index=StoreIndex(engine.neighbours), show="whole")
        times: list[tuple[float, float, float]] = []
        for question in questions:
            marks = [time.perf_counter()]
            hits = engine.hits(question)
            marks.append(time.perf_counter())
            list(engine.neighbours([Hit("", id=hit.id or "") for hit in hits]))
            marks.append(time.perf_counter())
            retriever.invoke(question)
            marks.append(time.perf_counter())
            times.append((marks[1] - marks[0], marks[2] - marks[1], marks[3] - marks[2]))
        hybrid, fetch, whole = (statistics.median(column) for column in zip(*times[1:], strict=True))
        ratio = statistics.median(row[2] / row[0] for row in times[1:])
        print(f"hybrid search {1000 * hybrid:.0f} ms, neighbours {1000 * fetch:.0f} ms, in all {1000 * whole:.0f} ms")
        print(f"in all / hybrid search: {ratio:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shared", type=Path, required=True, help="the folder with data/")
    parser.add_argument("--recall", action="append", default=[], choices=list(COLLECTIONS))
    parser.add_argument("--units", type=int)
    options = parser.parse_args()
    for name in options.recall:
        recall(name, options.shared)
    if options.units:
        cost(options.units, options.shared)


if __name__ == "__main__":
    main()
