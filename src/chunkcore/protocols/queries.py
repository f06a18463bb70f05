"""Questions as a protocol wants them: a sample of them, or with whole sentences as their evidence."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from chunkcore.boundaries.sentences import sentence_ranges
from chunkcore.document import Span
from chunkcore.errors import OptionError
from chunkcore.evaluation.benchmark import Benchmark, Evidence, Query
from chunkcore.spans import Ranges

__all__ = ["sample_queries", "whole_sentences"]


def sample_queries(benchmark: Benchmark, count: int, *, seed: int = 0) -> Benchmark:
    """The benchmark with so many of its queries, drawn without replacement and in their order; all documents stay.

    Args:
        benchmark: to draw from.
        count: at least 1; where it is more than there are, all are taken.
        seed: equal seeds draw the same.

    Raises:
        OptionError: `count` or `seed` is out of range.

    Source: Qu et al. (2024), section 3.1, which draws 100.

    >>> from chunkcore.datasets import load_dataset
    >>> len(sample_queries(load_dataset("lochmere"), 10).queries)
    10
    """
    if count < 1:
        raise OptionError(f"at least 1 question is drawn, got {count}")
    if seed < 0:
        raise OptionError(f"the seed is at least 0, got {seed}")
    if count >= len(benchmark.queries):
        return benchmark
    drawn = np.random.default_rng(seed).choice(len(benchmark.queries), count, replace=False)
    return replace(benchmark, queries=[benchmark.queries[number] for number in np.sort(drawn).tolist()])


def whole_sentences(benchmark: Benchmark) -> Benchmark:
    """The benchmark with each piece of evidence widened to the sentences that it shares a character with.

    Then what ``F1@5[sentence]`` counts as relevant are a query's evidence sentences. Evidence in white space that no
    sentence holds stays as it is.

    Source: Qu et al. (2024), section 3.2 and appendix D.

    >>> from chunkcore.document import Document
    >>> story = Document("fox.txt", "A fox naps. It dreams of a dog. It wakes.")
    >>> toy = Benchmark("toy", [story], [Query("q1", "Of whom?", (Evidence("fox.txt", Span(25, 30)),))])
    >>> whole_sentences(toy).queries[0].evidence[0].span.slice(story.text)
    'It dreams of a dog.'
    """
    sentences = {document.id: sentence_ranges(document.text) for document in benchmark.documents}

    def widened(query: Query) -> Query:
        found = tuple(
            Evidence(each.document_id, _widened(each.span, sentences[each.document_id])) for each in query.evidence
        )
        return replace(query, evidence=found)

    return replace(benchmark, queries=[widened(query) for query in benchmark.queries])


def _widened(span: Span, sentences: Ranges) -> Span:
    first = int(np.searchsorted(sentences[:, 1], span.start, side="right"))
    after = int(np.searchsorted(sentences[:, 0], span.end, side="left"))
    if first >= after:
        return span
    return Span(min(span.start, int(sentences[first, 0])), max(span.end, int(sentences[after - 1, 1])))
