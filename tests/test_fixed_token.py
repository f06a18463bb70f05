"""Windows of the document's own tokens, snapped to whole characters."""

from __future__ import annotations

from itertools import pairwise

from chunkcore.chunkers.sentence import FixedToken
from chunkcore.tokens import TiktokenCounter
from hypothesis import given
from hypothesis import strategies as st

from tests.strategies import hard_text, prose

windows = st.integers(1, 12).flatmap(lambda size: st.tuples(st.just(size), st.integers(0, size - 1)))


def test_windows_of_words_advance_by_size_less_overlap_and_stop_at_the_end() -> None:
    chunker = FixedToken(size=4, overlap=2, counter="words")
    assert chunker.split_text("a b c d e f") == ["a b c d ", "c d e f"]
    assert chunker.split_text("a b c d e f g") == ["a b c d ", "c d e f ", "e f g"]
    assert chunker.split_text("a b") == ["a b"]


def test_white_space_at_both_ends_is_kept_as_the_original_keeps_it() -> None:
    assert FixedToken(size=2, counter="words").split_text("  a b  c ") == ["  a b  ", "c "]


@given(prose(), windows)
def test_ascii_windows_are_the_decoded_tokens(text: str, sizes: tuple[int, int]) -> None:
    size, overlap = sizes
    encoding = TiktokenCounter("cl100k_base").encoding
    ids = encoding.encode_ordinary(text)
    expected = [encoding.decode(ids[:size])]
    start = 0
    while start + size < len(ids):
        start += size - overlap
        expected.append(encoding.decode(ids[start : start + size]))
    assert FixedToken(size=size, overlap=overlap).split_text(text) == expected


def test_a_character_of_several_tokens_goes_whole_to_the_windows_with_its_last_token() -> None:
    text = "x𠮷y"  # tokens: x, four for the character, y
    assert len(TiktokenCounter("cl100k_base").boundaries(text)) == 6
    assert FixedToken(size=2).split_text(text) == ["x", "𠮷y"]
    assert FixedToken(size=5).split_text(text) == ["x𠮷", "y"]
    assert FixedToken(size=1).split_text(text) == ["x", "𠮷", "y"]


@given(hard_text(), windows)
def test_windows_cover_the_text_and_both_their_ends_advance(text: str, sizes: tuple[int, int]) -> None:
    found = [(span.start, span.end) for (span,) in FixedToken(size=sizes[0], overlap=sizes[1]).spans(text)]
    assert found == sorted(set(found))
    assert not text or (found[0][0] == 0 and found[-1][1] == len(text))
    for (start, end), (next_start, next_end) in pairwise(found):
        assert start <= next_start <= end <= next_end
        if sizes[1] == 0:
            assert next_start == end


def test_text_without_any_token_is_kept_unless_it_is_white_space() -> None:
    class Deaf(TiktokenCounter):
        name = "deaf"

        def boundaries(self, text: str):
            return super().boundaries("")

    chunker = FixedToken(size=3, counter=Deaf())
    assert chunker.split_text("\x00a") == ["\x00a"]
    assert chunker.split_text(" \n") == []


def test_a_text_of_one_window_is_one_chunk() -> None:
    assert FixedToken(size=2, overlap=1, counter="words").split_text("one two") == ["one two"]
    assert FixedToken(size=2, overlap=1, counter="words").split_text("one") == ["one"]
