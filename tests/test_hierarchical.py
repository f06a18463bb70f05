"""hierarchical makes the clusters of Nguyen et al. (2025), Table 1 included, and its chunks carry their segments."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pytest
from chunkcore.chunkers.hierarchical import (
    Hierarchical,
    block_similarities,
    depths,
    initial_clusters,
    merged_clusters,
    pair_statistics,
    segment_starts,
)
from chunkcore.models.base import unit_rows
from chunkcore.text import Document
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes import FakeEmbedder
from tests.strategies import hard_text
from tests.test_breakpoint import REGEX, AngleEmbedder


def hierarchical(**options) -> Hierarchical:
    """By default each sentence of one word is a segment, as of more than one the segments are too large."""
    defaults = {"embedder": AngleEmbedder(), "splitter": REGEX, "counter": "words", "max_segment": 1, "k": 0.0}
    return Hierarchical(**{**defaults, **options})


def segment_texts(strategy: Hierarchical, text: str) -> list[list[str]]:
    chunks = strategy.chunk(Document("d", text))
    return [[" ".join(span.slice(text) for span in spans) for spans in chunk.segments] for chunk in chunks]


TABLE_1 = [{1, 2, 6}, {2, 4, 7}, {3, 4, 5}, {1, 6, 7}]


def always(left: object, right: object) -> bool:
    return True


def by_edges(count: int, edges: set[frozenset[int]]):
    """Initial and merged clusters of segments 1 to count, as sets."""

    def related(left: tuple[int, int], right: tuple[int, int]) -> bool:
        return any(frozenset((a + 1, b + 1)) in edges for a in range(*left) for b in range(*right))

    initial = initial_clusters(count, related, always)
    merged = merged_clusters(initial, related, always)
    return [[set(range(first + 1, end + 1)) for first, end in clusters] for clusters in (initial, merged)]


def test_the_clusters_are_those_of_table_1():
    edges = {frozenset(pair) for clique in TABLE_1 for pair in combinations(clique, 2)}
    assert by_edges(7, edges) == [[{1, 2}, {3, 4, 5}, {6, 7}], [{1, 2, 3, 4, 5}, {6, 7}]]


def by_cliques(count: int, cliques: list[set[int]]) -> list[list[set[int]]]:
    """Steps 3 and 4 of section 3.2 to the letter, over listed cliques; a cluster is merged once at most (Table 1)."""
    initial = [{1}]
    for segment in range(2, count + 1):
        if any({segment - 1, segment} <= clique for clique in cliques):
            initial[-1].add(segment)
        else:
            initial.append({segment})
    merged, waiting = [], list(initial)
    while waiting:
        cluster = waiting.pop(0)
        if waiting and any(cluster & clique and waiting[0] & clique for clique in cliques):
            cluster = cluster | waiting.pop(0)
        merged.append(cluster)
    return [initial, merged]


@given(st.integers(1, 12).flatmap(lambda n: st.tuples(st.just(n), st.sets(st.tuples(*[st.integers(1, n)] * 2)))))
def test_related_pairs_say_all_that_maximal_cliques_do(graph):
    networkx = pytest.importorskip("networkx")
    count, pairs = graph
    edges = {frozenset(pair) for pair in pairs if pair[0] != pair[1]}
    drawn = networkx.Graph()
    drawn.add_nodes_from(range(1, count + 1))
    drawn.add_edges_from(map(tuple, edges))
    assert by_edges(count, edges) == by_cliques(count, [set(clique) for clique in networkx.find_cliques(drawn)])


@given(st.integers(0, 10**6), st.integers(2, 40), st.booleans())
def test_the_statistics_are_those_of_all_pairs(seed, count, alike):
    rows = np.random.default_rng(seed).standard_normal((count, 5)).astype(np.float32)
    unit = unit_rows(rows[:1].repeat(count, axis=0) if alike else rows)
    products = [float(a @ b) for a, b in combinations(unit, 2)]
    assert pair_statistics(unit) == pytest.approx((np.mean(products), np.std(products)), abs=1e-7)


def test_related_neighbours_make_a_chunk_that_keeps_them_as_segments():
    """Cosines 1 and 0: the mean over the ten pairs is 0.4."""
    assert segment_texts(hierarchical(), "0. 0. 90. 90. 90.") == [["0.", "0."], ["90.", "90.", "90."]]


def test_neighbouring_clusters_with_related_segments_are_merged_in_one_pass():
    """Up to about 40° apart is related. 0-30 and 335-310 are the initial clusters, merged by 0-335. 355 is related to
    0 and 335, too, but not to its neighbour 310, and the cluster before it has been merged already."""
    text = "0. 30. 335. 310. 355. 355."
    strategy = hierarchical(k=-0.1)
    angles = [0, 30, 335, 310, 355]
    mean, deviation = pair_statistics(np.array([[np.cos(a), np.sin(a)] for a in np.radians(angles)]))
    assert np.cos(np.radians(45)) < mean - 0.1 * deviation < np.cos(np.radians(30))
    assert segment_texts(strategy, text) == [["0.", "30.", "335.", "310."], ["355.", "355."]]


def test_a_higher_k_gives_more_chunks():
    text = " ".join(f"{angle}." for angle in [0, 1, 5, 12, 22, 35, 51, 70, 92, 117, 145])
    counts = [len(hierarchical(k=k).spans(text)) for k in (-2.0, 0.0, 0.9)]
    assert counts[0] == 1
    assert counts == sorted(counts)


def test_a_single_sentence_joins_the_neighbour_that_is_nearer():
    """Of the segments [0 0] [60] [90 90] the middle one is one sentence, nearer to the last."""
    assert segment_texts(hierarchical(max_segment=2, k=5.0), "0. 0. 60. 90. 90.") == [["0. 0."], ["60.", "90. 90."]]
    assert segment_texts(hierarchical(max_segment=2, k=5.0), "0. 0. 20. 90. 90.") == [["0. 0.", "20."], ["90. 90."]]


def test_a_segment_of_several_sentences_stays_alone():
    text = "0. 0. 60. 60. 90. 90."
    chunker = hierarchical(window=1, deviations=0.0, max_segment=200, k=5.0)
    assert segment_texts(chunker, text) == [["0. 0."], ["60. 60."], ["90. 90."]]


def test_no_merge_takes_a_chunk_over_its_maximum():
    text = "0. 0. 0. 0. 0."
    assert hierarchical(k=-5.0).split_text(text) == [text]
    assert hierarchical(k=-5.0, size=3).split_text(text) == ["0. 0. 0.", "0. 0."]
    assert hierarchical(k=-5.0, size=1).split_text(text) == ["0."] * 5


def test_a_segment_over_its_maximum_is_halved_between_sentences_and_a_sentence_at_words():
    text = "1 2 3 4. 5. 6. 7. 8. 9."
    assert segment_texts(hierarchical(max_segment=3, k=-5.0), text) == [["1 2 3", "4. 5. 6.", "7. 8. 9."]]
    whole = hierarchical(max_segment=None, size=None, k=5.0)
    assert segment_texts(whole, text) == [[text]]


@given(hard_text(), st.sampled_from(["characters", "cl100k_base"]), st.integers(40, 60), st.sampled_from([-1.0, 0.5]))
def test_segments_lie_in_their_chunk_and_maxima_hold(text, counter, most, k):
    strategy = hierarchical(
        counter=counter, size=most, max_segment=40, k=k, window=2, deviations=0.0, embedder=FakeEmbedder()
    )
    for chunk in strategy.chunk(Document("d", text)):
        assert strategy.token_counter.count(chunk.text) <= most
        spans = [span for spans in chunk.segments for span in spans]
        assert (spans[0].start, spans[-1].end) == (chunk.start, chunk.end)
        assert all(not text[left.end : right.start].strip() for left, right in pairwise(spans))
        assert all(strategy.token_counter.count(span.slice(text)) <= 40 for span in spans)


def test_sentences_and_then_segments_are_embedded():
    model = AngleEmbedder()
    hierarchical(embedder=model, max_segment=200, window=1, deviations=0.0).spans("0. 0. 90. 90.")
    assert model.texts == ["0.", "90.", "0. 0.", "90. 90."]


def test_blocks_are_compared_across_each_gap():
    """Two at 0°, then two at 90°: of blocks of two the middle gap parts what has nothing in common."""
    vectors = np.eye(2)[[0, 0, 1, 1]]
    assert block_similarities(vectors, 1).tolist() == [1.0, 0.0, 1.0]
    assert block_similarities(vectors, 2) == pytest.approx([np.sqrt(0.5), 0.0, np.sqrt(0.5)])
    assert block_similarities(vectors * 7, 2) == pytest.approx(block_similarities(vectors, 2))


def test_a_depth_is_measured_from_the_peaks_that_are_climbed_to():
    """From 0.2 one climbs left over 0.5 to 0.9 and right to 0.6, not over the valley to 1.0."""
    assert depths(np.array([0.9, 0.5, 0.2, 0.6, 0.4, 1.0])) == pytest.approx([0, 0.4, 1.1, 0, 0.8, 0])


def test_segments_begin_at_deep_local_maxima():
    vectors = np.eye(3)[[0] * 6 + [1] * 6 + [2] * 6]
    assert segment_starts(vectors, 3, 1.0).tolist() == [6, 12]
    assert segment_starts(vectors, 3, 9.0).tolist() == []
    assert segment_starts(np.ones((12, 2)), 3, 2.0).tolist() == []
    # A lone sentence between two topics: similarities 1, 0, 0, 1, so both gaps around it are 2 deep. The last counts.
    assert segment_starts(np.eye(3)[[0, 0, 1, 2, 2]], 1, 0.5).tolist() == [3]


@given(st.integers(0, 10**6), st.integers(0, 40), st.integers(1, 8), st.floats(-3, 3))
def test_any_vectors_give_a_segmentation(seed, count, window, deviations):
    random = np.random.default_rng(seed)
    vectors = random.standard_normal((count, 3)) * random.integers(0, 2, (count, 1))  # some are zeros
    starts = segment_starts(vectors.astype(np.float32), window, deviations)
    assert starts.dtype == np.int64
    assert sorted(set(starts.tolist())) == starts.tolist()
    assert all(0 < start < count for start in starts.tolist())
