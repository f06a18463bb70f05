"""What a question costs: `passages:lexical`, `bm25`, and words behind ten hits, over copies of lochmere's documents.

    python -m integration_tests.benchmarks.passages_cost 10000 100000

Times are of the processor, the median of 20 questions; copies share every word, which is the worst case for postings.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence

from chunkcore import Document, chunk_corpus, get_retriever, load_dataset
from chunkcore.retrieval import WindowIndex


def milliseconds(ask: Callable[[str], object], questions: Sequence[str]) -> float:
    times = []
    for question in questions:
        began = time.process_time()
        ask(question)
        times.append(time.process_time() - began)
    return 1000 * statistics.median(times)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("units", type=int, nargs="+")
    benchmark = load_dataset("lochmere")
    questions = [query.text for query in benchmark.queries[:21]]
    print("| units | `passages:lexical` | `bm25` | behind 10 hits | the same, `words=all` |\n|--:|--:|--:|--:|--:|")
    for units in parser.parse_args(arguments).units:
        copies = range(max(1, units // 1278))
        documents = [Document(f"{name.id}-{copy}", name.text) for copy in copies for name in benchmark.documents]
        corpus = chunk_corpus(documents, "sentence:size=50")
        index = get_retriever("passages:lexical").index(corpus)
        store = get_retriever("bm25").index(chunk_corpus(documents, "recursive:size=200"))
        assert isinstance(index, WindowIndex)
        hits = {question: store.retrieve(question) for question in questions}
        asks: list[Callable[[str], object]] = [
            lambda question, index=index: index.retrieve(question, max_tokens=1000),  # type: ignore[misc]
            store.retrieve,
            lambda question, index=index, hits=hits: index.behind(question, hits[question]),  # type: ignore[misc]
            lambda question, index=index, hits=hits: index.behind(question, hits[question], words="all"),  # type: ignore[misc]
        ]
        cells = [f"{milliseconds(ask, questions):.1f}" for ask in asks]
        print(f"| {len(corpus):,} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
