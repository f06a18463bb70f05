"""The collections of docs/evidence/protocols.md as folders that `chunkcore datasets stitch` and `chunkcore tune` read.

    python -m integration_tests.benchmarks.short_documents --shared ../shared --output protocol-data

fairytaleqa-sections  the sections of stories, each a short document (seven sentences on average), to be stitched
fairytaleqa           the same stories whole
covid_qa              papers, whole

Of each collection as many stories or papers as come to about so many characters, drawn with a fixed seed, with all of
their questions. Questions of FairytaleQA do not name their story: its name stands before them.
"""

from __future__ import annotations

import argparse
import sys
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from chunkcore import Benchmark, Document, Evidence, Query, Span, load_benchmark
from chunkcore.evaluation.benchmarks.benchmark import write_benchmark
from integration_tests.benchmarks.collections_table import sampled


def some(whole: Benchmark, characters: int) -> Benchmark:
    """As many documents as come to about so many characters, and their questions."""
    documents = list(sampled(whole.documents, characters))
    kept = {item.id for item in documents}
    queries = [item for item in whole.queries if item.evidence[0].document_id in kept]
    return Benchmark(whole.name, documents, queries)


def named(stories: Benchmark) -> Benchmark:
    """The story's name before each question, as its id spells it."""
    return replace(stories, queries=[replace(item, text=f"{_name(item)}: {item.text}") for item in stories.queries])


def _name(query: Query) -> str:
    return query.evidence[0].document_id.removeprefix("ftqa-").replace("-", " ")


def sections(stories: Benchmark) -> Benchmark:
    """Every section a document; evidence that spans several is evidence in each of them."""
    edges = {item.id: [0, *item.metadata["boundaries"], len(item.text)] for item in stories.documents}
    documents = [short for item in stories.documents for short in _cut(item, edges[item.id])]
    by_id = {item.id: item for item in documents}
    queries = []
    for query in stories.queries:
        parts = dict.fromkeys(part for item in query.evidence for part in _parts(item, edges[item.document_id]))
        evidence = tuple(_trimmed(by_id[part], span) for part, span in parts if part in by_id)
        metadata = {key: value for key, value in query.metadata.items() if key != "document_id"}
        queries.append(replace(query, evidence=evidence, metadata=metadata))
    return Benchmark(f"{stories.name}-sections", documents, queries)


def _cut(story: Document, edges: Sequence[int]) -> Iterator[Document]:
    for number, (start, end) in enumerate(pairwise(edges)):
        if text := story.text[start:end].rstrip():
            yield Document(f"{story.id}#{number}", text)


def _parts(evidence: Evidence, edges: Sequence[int]) -> Iterator[tuple[str, tuple[int, int]]]:
    """The evidence in each section that it meets, in the section's own offsets."""
    start = evidence.span.start
    while start < evidence.span.end:
        number = bisect_right(edges, start) - 1
        end = min(evidence.span.end, edges[number + 1])
        yield f"{evidence.document_id}#{number}", (start - edges[number], end - edges[number])
        start = end


def _trimmed(section: Document, place: tuple[int, int]) -> Evidence:
    return Evidence(section.id, Span(place[0], min(place[1], len(section.text))))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shared", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--characters", type=int, default=300_000)
    options = parser.parse_args()
    stories = named(some(load_benchmark(options.shared / "data" / "fairytaleqa"), options.characters))
    papers = some(load_benchmark(options.shared / "data" / "covid_qa"), options.characters)
    for name, benchmark in (
        ("fairytaleqa-sections", sections(stories)),
        ("fairytaleqa", stories),
        ("covid_qa", papers),
    ):
        write_benchmark(benchmark, options.output / name)
        line = f"{name}: {len(benchmark.documents):,} documents, {len(benchmark.queries):,} questions"
        sys.stdout.write(f"{line}\n")


if __name__ == "__main__":
    main()
