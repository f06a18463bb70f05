"""hierarchical makes the clusters of Nguyen et al. (2025), Table 1 included, and its chunks carry their segments."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, pairwise

import numpy as np
import pytest
from chunkcore.chunkers.hierarchical import Hierarchical, initial_clusters, merged_clusters, pair_statistics
from chunkcore.models.base import unit_rows
from chunkcore.text import Document
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes import FakeEmbedder
from tests.strategies import hard_text
from tests.test_breakpoint import REGEX, AngleEmbedder


class Given:
    """A segmenter that begins a segment at the sentences that it was given."""

    name = "given"

    def __init__(self, *starts: int) -> None:
        self.fingerprint = f"given-{starts}"
        self._starts = starts

    def starts(self, sentences: Sequence[str], embedder: object) -> np.ndarray:
        return np.array([start for start in self._starts if start < len(sentences)], dtype=np.int64)


class Each(Given):
    """A segmenter to which each sentence is a segment."""

    def starts(self, sentences, embedder):
        return np.arange(1, len(sentences))


def hierarchical(**options) -> Hierarchical:
    return Hierarchical(
        **{"embedder": AngleEmbedder(), "splitter": REGEX, "counter": "words", "segmenter": Each(), "k": 0.0, **options}
    )


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


def test_the_plain_program_over_cliques_gives_table_1():
    assert by_cliques(7, TABLE_1) == [[{1, 2}, {3, 4, 5}, {6, 7}], [{1, 2, 3, 4, 5}, {6, 7}]]


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
    strategy = hierarchical(segmenter=Given(1, 2, 3, 4), k=-0.1)
    angles = [0, 30, 335, 310, 355]
    mean, deviation = pair_statistics(np.array([[np.cos(a), np.sin(a)] for a in np.radians(angles)]))
    assert np.cos(np.radians(45)) < mean - 0.1 * deviation < np.cos(np.radians(30))
    assert segment_texts(strategy, text) == [["0.", "30.", "335.", "310."], ["355. 355."]]


def test_a_higher_k_gives_more_chunks():
    text = " ".join(f"{angle}." for angle in [0, 1, 5, 12, 22, 35, 51, 70, 92, 117, 145])
    counts = [len(hierarchical(k=k, segmenter=Each()).spans(text)) for k in (-2.0, 0.0, 0.9)]
    assert counts[0] == 1
    assert counts == sorted(counts)


def test_a_single_sentence_joins_the_neighbour_that_is_nearer():
    """Of the segments [0 0] [60] [90 90] the middle one is one sentence, nearer to the last."""
    options = {"k": 5.0}
    assert segment_texts(hierarchical(segmenter=Given(2, 3), **options), "0. 0. 60. 90. 90.") == [
        ["0. 0."],
        ["60.", "90. 90."],
    ]
    assert segment_texts(hierarchical(segmenter=Given(2, 3), **options), "0. 0. 20. 90. 90.") == [
        ["0. 0.", "20."],
        ["90. 90."],
    ]


def test_a_segment_of_several_sentences_stays_alone():
    text = "0. 0. 60. 60. 90. 90."
    assert segment_texts(hierarchical(segmenter=Given(2, 4), k=5.0), text) == [["0. 0."], ["60. 60."], ["90. 90."]]


def test_no_merge_takes_a_chunk_over_its_maximum():
    text = "0. 0. 0. 0. 0."
    assert hierarchical(k=-5.0).split_text(text) == [text]
    assert hierarchical(k=-5.0, size=3).split_text(text) == ["0. 0. 0.", "0. 0."]
    assert hierarchical(k=-5.0, size=1).split_text(text) == ["0."] * 5


def test_a_segment_over_its_maximum_is_halved_between_sentences_and_a_sentence_at_words():
    text = "1 2 3 4. 5. 6. 7. 8. 9."
    assert segment_texts(hierarchical(segmenter=Given(1), max_segment=3, k=-5.0), text) == [
        ["1 2 3", "4. 5. 6.", "7. 8. 9."]
    ]
    whole = hierarchical(segmenter=Given(1), max_segment=None, size=None, k=5.0)
    assert segment_texts(whole, text) == [["1 2 3 4.", "5. 6. 7. 8. 9."]]


@given(hard_text(), st.sampled_from(["characters", "cl100k_base"]), st.integers(40, 60), st.sampled_from([-1.0, 0.5]))
def test_segments_lie_in_their_chunk_and_maxima_hold(text, counter, most, k):
    strategy = hierarchical(
        counter=counter, size=most, max_segment=40, k=k, segmenter="texttiling:2:0", embedder=FakeEmbedder()
    )
    for chunk in strategy.chunk(Document("d", text)):
        assert strategy.token_counter.count(chunk.text) <= most
        spans = [span for spans in chunk.segments for span in spans]
        assert (spans[0].start, spans[-1].end) == (chunk.start, chunk.end)
        assert all(not text[left.end : right.start].strip() for left, right in pairwise(spans))
        assert all(strategy.token_counter.count(span.slice(text)) <= 40 for span in spans)


def test_the_segmenter_is_given_the_sentences_and_the_strategys_embedder():
    seen = []

    class Watching(Given):
        def starts(self, sentences, embedder):
            seen.append((list(sentences), embedder))
            return [1]

    model = FakeEmbedder()
    hierarchical(segmenter=Watching(), embedder=model).spans("One. Two. Three.")
    assert seen == [(["One.", "Two.", "Three."], model)]
    assert model.texts == ["One.", "Two. Three."]  # the segments: this segmenter asks for nothing


def test_by_default_the_trained_segmenter_finds_the_segments(monkeypatch):
    model = FakeEmbedder(384)
    monkeypatch.setattr("chunkcore.segmenters.tagger.get_embedder", lambda name: model)
    text = " ".join(f"Sentence {number} is here." for number in range(40))
    chunks = Hierarchical(embedder=FakeEmbedder(), max_segment=40).chunk(Document("d", text))
    assert "".join(chunk.text for chunk in chunks).replace(" ", "") == text.replace(" ", "")
    assert model.calls == 1


# --- options ----------------------------------------------------------------------------------------------------
