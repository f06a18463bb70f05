"""The packer against its one-piece-at-a-time definition, and the hard maximum."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from chunkcore.chunkers import FixedSentences, Sentence, get_chunker
from chunkcore.chunkers.semantic import SemanticOverlap
from chunkcore.packing import join_ranges, join_small, pack, split_ranges_to_maximum, split_to_maximum
from chunkcore.tokens import CharacterCounter, TiktokenCounter, TokenizedText, WordCounter
from hypothesis import example, given
from hypothesis import strategies as st

from tests.fakes import FakeEmbedder


def pack_one_by_one(sizes: list[int], size: int, overlap: int, gap: int) -> list[tuple[int, int]]:
    """The definition: add pieces until one does not fit, then drop from the front down to the overlap."""
    ranges = []
    begin = end = total = 0
    for piece in sizes:
        if end > begin and total + gap + piece > size:
            ranges.append((begin, end))
            while total > overlap or (total > 0 and total + gap + piece > size):
                total -= sizes[begin] + (gap if end - begin > 1 else 0)
                begin += 1
        total += piece + (gap if end > begin else 0)
        end += 1
    return [*ranges, (begin, end)] if sizes else []


@given(
    st.lists(st.integers(0, 9), max_size=40),
    st.integers(1, 30).flatmap(lambda size: st.tuples(st.just(size), st.integers(0, size))),
    st.integers(0, 3),
)
@example([0, 0, 0, 9, 0, 0, 9], (9, 0), 0)
@example([5, 5, 5], (5, 5), 1)
def test_packing_is_what_adding_piece_by_piece_gives(sizes: list[int], limits: tuple[int, int], gap: int) -> None:
    sizes = [min(size, limits[0]) for size in sizes]
    found = pack(np.cumsum([0, *(size + gap for size in sizes)]), *limits, gap=gap)
    assert found == pack_one_by_one(sizes, *limits, gap)


@given(st.lists(st.integers(0, 50), max_size=40), st.integers(1, 30), st.integers(0, 30))
def test_packing_ends_covers_all_pieces_and_advances(sizes: list[int], size: int, overlap: int) -> None:
    found = pack(np.cumsum([0, *sizes]), size, overlap)
    ends = [end for _, end in found]
    assert ends == sorted(set(ends))
    assert {i for begin, end in found for i in range(begin, end)} == set(range(len(sizes)))
    for begin, end in found:
        assert sum(sizes[begin:end]) <= size or sum(size > 0 for size in sizes[begin:end]) == 1


def test_of_ranges_those_over_the_maximum_are_cut() -> None:
    source = WordCounter().tokenize("One. And three words.")
    rows = np.array([[0, 4], [5, 21]])
    assert split_ranges_to_maximum(source, rows, 2).tolist() == [[0, 4], [5, 14], [15, 21]]
    for maximum in (3, None):
        assert split_ranges_to_maximum(source, rows, maximum).tolist() == rows.tolist()


def test_words_stay_whole_where_they_fit_and_graphemes_always() -> None:
    text = "one two extraordinarily 👩‍👩‍👧👩‍👩‍👧"
    source = CharacterCounter().tokenize(text)
    parts = [text[s:e] for s, e in split_to_maximum(source, 0, len(text), 9)]
    assert parts == ["one two", "extraordi", "narily", "👩‍👩‍👧", "👩‍👩‍👧"]


@pytest.mark.parametrize("maximum", [1, 7, 100])
def test_parts_hold_as_many_words_as_fit(maximum: int) -> None:
    text = " ".join(f"word{number}" for number in range(1000))
    parts = split_to_maximum(WordCounter().tokenize(text), 0, len(text), maximum)
    sizes = [len(text[start:end].split()) for start, end in parts]
    assert sizes == [min(maximum, 1000 - place) for place in range(0, 1000, maximum)]


def test_a_grapheme_over_the_maximum_is_cut_at_code_points_and_a_code_point_is_kept() -> None:
    text = "ok 👩‍👩‍👧"
    source = TiktokenCounter("cl100k_base").tokenize(text)
    assert [text[s:e] for s, e in split_to_maximum(source, 0, 8, 3)] == ["ok", "👩", "\u200d", "👩", "\u200d", "👧"]
    assert source.count(3, 4) == 3
    assert [text[s:e] for s, e in split_to_maximum(source, 0, 8, 1)] == ["ok", "👩", "\u200d", "👩", "\u200d", "👧"]


@st.composite
def sizes_and_gaps(draw: st.DrawFn) -> tuple[list[int], list[int | None]]:
    sizes = draw(st.lists(st.integers(0, 12), max_size=30))
    gap = st.none() | st.integers(0, 4)
    return sizes, draw(st.lists(gap, min_size=len(sizes), max_size=len(sizes)))


def join(sizes: list[int], gaps: list[int | None], minimum: int, maximum: int | None) -> list[tuple[int, int]]:
    return join_small(sizes, gaps, minimum, maximum, lambda first, last: sum(sizes[first:last]))


@given(sizes_and_gaps(), st.integers(0, 12), st.none() | st.integers(0, 30))
def test_fragments_join_where_they_can_and_nothing_else_changes(given_sizes, minimum, maximum):
    sizes, gaps = given_sizes
    found = join(sizes, gaps, minimum, maximum)
    # Nothing is dropped, and the order stays.
    assert [place for first, last in found for place in range(first, last)] == list(range(len(sizes)))
    for place, (first, last) in enumerate(found):
        total = sum(sizes[first:last])
        assert None not in gaps[first + 1 : last]
        if last - first > 1:
            assert any(size < minimum for size in sizes[first:last])
            assert maximum is None or total <= maximum
        if total < minimum:  # no neighbour had room
            for left, right in [(place - 1, place), (place, place + 1)]:
                if left >= 0 and right < len(found) and gaps[found[right][0]] is not None:
                    assert maximum is not None
                    assert sum(sizes[found[left][0] : found[right][1]]) > maximum


def test_a_fragment_joins_across_the_smaller_gap_and_of_equal_ones_backwards() -> None:
    assert join([5, 1, 5], [0, 3, 2], 2, None) == [(0, 1), (1, 3)]
    assert join([5, 1, 5], [0, 2, 3], 2, None) == [(0, 2), (2, 3)]
    assert join([5, 1, 5], [0, 2, 2], 2, None) == [(0, 2), (2, 3)]
    # The nearer one has no room.
    assert join([5, 1, 4], [0, 2, 3], 2, 5) == [(0, 1), (1, 3)]
    # Several fragments make one.
    assert join([1, 1, 1, 5], [0, 1, 1, 9], 3, None) == [(0, 3), (3, 4)]
    # Two that are still too small together go on to the next.
    assert join([1, 1, 5], [0, 1, 9], 3, None) == [(0, 3)]


def joined(source: TokenizedText, rows: list[tuple[int, int]], minimum: int, maximum: int | None = None) -> Any:
    return [(start, end) for start, end in join_ranges(source, rows, minimum, maximum).tolist()]


def test_the_chunks_of_one_text_do_not_join_those_of_the_next() -> None:
    counter = WordCounter()
    source = counter.tokenize("one two three four", "five")
    assert joined(source, [(0, 13), (14, 18), (18, 22)], 2) == [(0, 18), (18, 22)]
    source = counter.tokenize("one two", "three four")
    assert joined(source, [(0, 7), (7, 12), (13, 17)], 2) == [(0, 7), (7, 17)]


def test_ranges_join_across_the_fewer_characters_and_end_where_the_farthest_does() -> None:
    source = WordCounter().tokenize("one two three four  five six")
    assert joined(source, [(0, 13), (14, 18)], 2) == [(0, 18)]
    assert joined(source, [(0, 13), (14, 18), (20, 28)], 2) == [(0, 18), (20, 28)]
    # "two" lies inside the range before it; with room for both they are one, which ends where that range does.
    assert joined(source, [(0, 24), (4, 7), (25, 28)], 2, maximum=5) == [(0, 24), (25, 28)]
    # Without room each keeps its own end.
    rows = [(0, 24), (4, 13), (20, 28)]
    assert joined(source, rows, 3, maximum=4) == rows


TOPICS = (
    "The cat sat on the mat. The cat sat on a mat. A cat sat on the mat. "
    "Rain fell over stone roofs. Rain fell over old roofs. Old stone roofs."
)


def semantic(threshold: float = 0.5) -> SemanticOverlap:
    return SemanticOverlap(threshold=threshold, embedder=FakeEmbedder(64))


def test_overlap_goes_back_while_the_topic_stays() -> None:
    whole = Sentence(size=13, counter="words", overlap=semantic()).split_text(TOPICS)
    assert whole == [
        "The cat sat on the mat. The cat sat on a mat.",
        # Half of the size is six words: one sentence of the cat; the rain is another topic.
        "The cat sat on a mat. A cat sat on the mat.",
        "Rain fell over stone roofs. Rain fell over old roofs. Old stone roofs.",
    ]
    sentences = FixedSentences(sentences=2, counter="words", overlap=semantic()).split_text(TOPICS)
    assert sentences == [
        "The cat sat on the mat. The cat sat on a mat.",
        "The cat sat on a mat. A cat sat on the mat. Rain fell over stone roofs.",
        "Rain fell over stone roofs. Rain fell over old roofs. Old stone roofs.",
    ]
    # Nothing is over a similarity of 1, and all over one of -1.
    assert Sentence(size=13, counter="words", overlap=semantic(1.0)).split_text(TOPICS) == Sentence(
        size=13, counter="words"
    ).split_text(TOPICS)
    assert len(FixedSentences(sentences=2, overlap=semantic(-1.0)).split_text(TOPICS)[2].split(". ")) == 3


def test_each_sentence_is_embedded_once_and_no_model_is_asked_without() -> None:
    model = FakeEmbedder()
    overlap = SemanticOverlap(embedder=model)
    for chunker in (Sentence(overlap=overlap), FixedSentences(overlap=overlap)):
        model.texts.clear()
        chunker.split_text(TOPICS + " " + TOPICS)
        assert len(model.texts) == len(set(model.texts)) == 6
    calls = model.calls
    assert len(Sentence(overlap=overlap).split_text("<html><h1>One</h1> Tea is hot. <h1>Two</h1> Ice is cold.")) == 2
    assert model.calls == calls + 1  # for all sections


def test_semantic_overlap_is_configured_by_a_string() -> None:
    assert Sentence(overlap="semantic") == Sentence(overlap=SemanticOverlap())
    chunker = get_chunker("sentence:overlap=semantic:0.45:openvino:some/model")
    assert isinstance(chunker, Sentence)
    assert chunker.overlap == SemanticOverlap(threshold=0.45, embedder="openvino:some/model")
    assert get_chunker(chunker.spec) == chunker
    assert get_chunker(chunker.to_dict()) == chunker
    assert Sentence(overlap="semantic").label == "sentence:size=200,overlap=semantic"
