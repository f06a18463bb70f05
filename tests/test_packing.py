"""The packer against its one-piece-at-a-time definition, and the hard maximum."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from chunkcore.errors import SizeError
from chunkcore.packing import fit, pack, running_sizes, trim
from chunkcore.tokens import CharacterCounter, TiktokenCounter, TokenCounter, TokenizedText, WordCounter, get_counter
from tests.strategies import hard_text


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
    found = pack(running_sizes(np.array(sizes, dtype=np.int64), gap), *limits, gap=gap)
    assert found == pack_one_by_one(sizes, *limits, gap)


@given(st.lists(st.integers(0, 50), max_size=40), st.integers(1, 30), st.integers(0, 30))
def test_packing_ends_covers_all_pieces_and_advances(sizes: list[int], size: int, overlap: int) -> None:
    found = pack(running_sizes(np.array(sizes, dtype=np.int64)), size, overlap)
    ends = [end for _, end in found]
    assert ends == sorted(set(ends))
    assert {i for begin, end in found for i in range(begin, end)} == set(range(len(sizes)))
    for begin, end in found:
        assert sum(sizes[begin:end]) <= size or sum(size > 0 for size in sizes[begin:end]) == 1


def test_only_the_asked_pieces_are_packed() -> None:
    sums = running_sizes(np.array([4, 4, 4, 4]))
    assert pack(sums, 8, first=1, last=3) == [(1, 3)]
    assert pack(sums, 8, first=2, last=2) == []


def test_trimming() -> None:
    assert trim("xx  a\u3000b\n ", 2, 9) == (4, 7)
    start, end = trim("a   b", 1, 4)
    assert start == end


counters = st.sampled_from([get_counter(name) for name in ("cl100k_base", "o200k_base", "words", "characters")])


@given(hard_text(), counters, st.integers(1, 30), st.booleans())
def test_parts_fit_and_lose_only_white_space(text: str, counter: TokenCounter, maximum: int, strip: bool) -> None:
    source = counter.tokenize(text)
    try:
        parts = fit(source, 0, len(text), maximum, strip=strip)
    except SizeError:
        assert counter.name != "words"
        return
    assert all(0 < counter.count(text[start:end]) <= maximum or not strip for start, end in parts)
    assert all(counter.count(text[start:end]) <= maximum for start, end in parts)
    if strip:
        assert "".join("".join(text[s:e] for s, e in parts).split()) == "".join(text.split())
        assert all(text[s:e] == text[s:e].strip() for s, e in parts)
    else:
        assert "".join(text[start:end] for start, end in parts) == text


def test_words_stay_whole_where_they_fit_and_graphemes_always() -> None:
    text = "one two extraordinarily 👩‍👩‍👧👩‍👩‍👧"
    source = CharacterCounter().tokenize(text)
    assert [text[s:e] for s, e in fit(source, 0, len(text), 9)] == [
        "one two",
        "extraordi",
        "narily",
        "👩‍👩‍👧",
        "👩‍👩‍👧",
    ]


def test_a_grapheme_over_the_maximum_is_an_error_that_shows_it() -> None:
    source = TiktokenCounter("cl100k_base").tokenize("ok 👩‍👩‍👧")
    with pytest.raises(SizeError, match=r"maximum is 3 \(cl100k_base\).*'👩.*' at 3 counts \d+; choose a larger size"):
        fit(source, 0, 8, 3)


class Recorder(WordCounter):
    """A word counter that is asked for each piece by itself, and records how much text that was."""

    def __init__(self) -> None:
        self.asked = 0

    def tokenize(self, text: str) -> TokenizedText:
        return TokenizedText(text, self)

    def count(self, text: str) -> int:
        self.asked += len(text)
        return super().count(text)


def asked_for(words: int) -> int:
    counter = Recorder()
    text = "word " * words
    parts = fit(counter.tokenize(text), 0, len(text), 10)
    assert len(parts) == words / 10
    return counter.asked


def test_work_grows_linearly_with_the_range() -> None:
    assert asked_for(8000) < 2.2 * asked_for(4000)
