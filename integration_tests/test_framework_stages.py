"""dsRAG's segments and LlamaIndex' auto-merging, as the table of passages has them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.test_stages import Fixed, passages, sentences, units

from integration_tests.benchmarks.framework_stages import AutoMerge, RelevantSegments


def best_segments(stage: RelevantSegments, counts: Sequence[int], order: Sequence[int]) -> list[tuple[int, int]]:
    """dsRAG's get_best_segments over all starts and ends, as rse.py does it."""
    bounds = np.cumsum([0, *counts])
    document = np.repeat(np.arange(len(counts)), counts)
    allowed = {int(document[hit]) for hit in order[: stage.documents]}
    value = np.full(sum(counts), -stage.penalty)
    for rank, hit in enumerate(order[: stage.hits]):
        value[hit] += math.exp(-rank / stage.decay) * float(stage.relevance)
    chosen: list[tuple[int, int]] = []
    while True:
        best, where = -1.0, None
        for i in sorted(allowed):
            for start in range(bounds[i], bounds[i + 1]):
                for end in range(start + 1, min(start + stage.longest, bounds[i + 1]) + 1):
                    free = all(end <= a or start >= b for a, b in chosen)
                    within = sum(b - a for a, b in chosen) + end - start <= stage.total
                    total = sum(value[start:end])
                    if free and within and total > best + 1e-12 and value[start] > 0:
                        best, where = total, (start, end)
        if where is None or best < stage.minimum:
            return chosen
        chosen.append(where)


SIZES = st.sampled_from([(14,), (5, 9), (1, 6, 7)])
LIMITS = (st.integers(1, most) for most in (6, 9, 3))


@settings(max_examples=60)
@given(st.permutations(range(14)), st.integers(1, 14), SIZES, *LIMITS)
def test_segments_are_those_of_dsrag(order, count, counts, longest, total, documents):
    corpus = sentences(*counts)
    method = Fixed(tuple(order[:count]))
    stage = RelevantSegments(method=method, longest=longest, total=total, documents=documents, hits=9)
    expected = best_segments(stage, counts, order[:count])
    hits, scores = method.index(corpus).search(["?"], 14).row(0)
    taken = [(int(unit), worth) for unit, worth in stage.order(stage.index(corpus)._layout, hits, scores) if worth > 0]  # type: ignore[attr-defined]
    found: dict[float, set[int]] = {}
    for unit, worth in taken:
        found.setdefault(worth, set()).add(unit)
    assert [unit for own in found.values() for unit in sorted(own)] == [i for a, b in expected for i in range(a, b)]


def merged(children: set[int], levels: list[list[int]], share: float) -> set[int]:
    """LlamaIndex' way: look at all parents until none takes the place of its children any more."""
    nodes = {(0, child) for child in children}
    while True:
        before = set(nodes)
        for level, begins in enumerate(levels):
            for parent in range(len(begins) - 1):
                own = {(level, child) for child in range(begins[parent], begins[parent + 1])}
                if len(own & nodes) / len(own) > share:
                    nodes |= own | {(level + 1, parent)}
        if nodes == before:
            break
    found = set(children)
    for level, node in nodes:
        begin, end = node, node + 1
        for begins in reversed(levels[:level]):
            begin, end = begins[begin], begins[end]
        found |= set(range(begin, end))
    return found


@given(st.permutations(range(23)), st.integers(1, 23), st.sampled_from([0.0, 0.3, 0.5, 0.9]))
def test_merging_hit_by_hit_is_merging_all_at_once(order: list[int], count: int, share: float) -> None:
    corpus = sentences(23)
    found = passages(AutoMerge(method=Fixed(tuple(order[:count])), share=share, sizes=(12, 37)), corpus, k=count)
    thirds = [*range(0, 23, 3), 23]
    expected = merged(set(order[:count]), [thirds, [0, 3, 6, 8]], share)
    assert sorted(unit for each in units(corpus, found) for unit in each) == sorted(expected)
