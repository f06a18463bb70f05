"""What a question costs over copies of lochmere's documents, and what a saved index costs.

    python -m integration_tests.benchmarks.passages_cost 10000 100000 > docs/evidence/data/passages_cost.txt

Times are of the processor: the median of 20 questions, which are asked in three rounds, of which the least counts, as
other programs only add. Copies share every word, which is the worst case for postings. Opening is `load_index`, in
the same way, with the files in the system's cache; vectors of 384 numbers.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from chunkadapters.langchain import PassageRetriever
from chunkcore import Document, chunk_corpus, get_retriever, load_dataset
from chunkcore.retrieval import ChunkedCorpus, Passages, TextVectors, WindowIndex, load_index
from chunkcore.run import Retrieved
from langchain_core.documents import Document as LangChainDocument
from langchain_core.runnables import RunnableLambda


def milliseconds(ask: Callable[[Any], object], questions: Sequence[Any]) -> float:
    def seconds(question: Any) -> float:
        began = time.process_time()
        ask(question)
        return time.process_time() - began

    rounds = [list(map(seconds, questions)) for _ in range(3)]
    return 1000 * statistics.median(map(min, zip(*rounds, strict=True)))


def saved(corpus: ChunkedCorpus) -> str:
    """The milliseconds in which each retriever's saved index opens, and its megabytes."""
    cells = []
    vectors = TextVectors("openvino:all-MiniLM-L6-v2", [corpus])
    for name in ("dense", "bm25", "hybrid", "passages"):
        with TemporaryDirectory() as root:
            folder = get_retriever(name).index(corpus, vectors).save(Path(root) / "index")
            size = sum(file.stat().st_size for file in folder.rglob("*"))
            cells.append(f"{milliseconds(load_index, [folder] * 7):.0f}, {size / 1e6:.0f} MB")
    return " | ".join(cells)


def asked(corpus: ChunkedCorpus, questions: Sequence[str]) -> str:
    """The milliseconds of a question, as in the table's columns; behind hits through LangChain's retriever."""
    index = Passages(kinds=("lexical",)).index(corpus)
    assert isinstance(index, WindowIndex)
    index.questions_kept = 1  # a question of the round before is asked anew
    store = get_retriever("bm25").index(chunk_corpus(corpus.documents, "recursive:size=200"))
    hits = {question: list(map(langchain_document, store.retrieve(question, 50))) for question in questions}
    cells = [
        milliseconds(lambda question: index.retrieve(question, max_tokens=1000), questions),
        milliseconds(store.retrieve, questions),
    ]
    for k, words in ((10, "whole"), (50, "whole"), (50, "hits"), (10, "all")):
        first = RunnableLambda(lambda question, k=k: hits[question][:k])  # type: ignore[var-annotated]
        behind = PassageRetriever(first, index=index, fetch_k=None, show=words)
        cells.append(milliseconds(behind.invoke, questions))
    return " | ".join(f"{cell:.1f}" for cell in cells)


def langchain_document(hit: Retrieved) -> LangChainDocument:
    metadata = {"source": hit.document_id, "start_index": hit.spans[0].start}
    return LangChainDocument(page_content=hit.text, metadata=metadata)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("units", type=int, nargs="+")
    benchmark = load_dataset("lochmere")
    questions = [query.text for query in benchmark.queries[:20]]
    print(
        '| units | `passages:lexical` | `bm25` | behind 10 hits | 50 hits | 50, their own text | 10, `show="all"` |',
        end="",
    )
    print(" opens: `dense` | `bm25` | `hybrid` | `passages` |\n|" + "--:|" * 11)
    for units in parser.parse_args(arguments).units:
        copies = range(max(1, units // 1278))
        documents = [Document(f"{name.id}-{copy}", name.text) for copy in copies for name in benchmark.documents]
        corpus = chunk_corpus(documents, "sentence:size=50")
        print(f"| {len(corpus):,} | {asked(corpus, questions)} | {saved(corpus)} |", flush=True)


if __name__ == "__main__":
    main()
