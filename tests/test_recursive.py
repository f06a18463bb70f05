"""`recursive` by hand-computed cases; integration_tests hold it to LangChain itself."""

from __future__ import annotations

import pytest
from chunkcore.chunkers.recursive import SEPARATORS, Recursive
from chunkcore.tokens import TiktokenCounter, TokenizedText
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.strategies import hard_text


def split(text: str, **options: object) -> list[str]:
    return Recursive(**{"counter": "characters", **options}).split_text(text)


def test_large_pieces_go_on_to_the_next_separator() -> None:
    text = "ab cd\n\nef gh ij kl mn\n\nop"
    # The second paragraph is split at its own first "\n", then at spaces.
    assert split(text, size=9) == ["ab cd", "ef gh ij", "kl mn", "op"]


@pytest.mark.parametrize(
    ("keep", "expected"), [("start", ["a,b,c", ",d,e"]), ("end", ["a,b,", "c,d,e"]), ("drop", ["a,b,c", "d,e"])]
)
def test_where_the_separator_goes(keep: str, expected: list[str]) -> None:
    assert split("a,b,c,d,e", size=5, separators=[","], keep=keep) == expected


def test_a_piece_of_just_the_size_counts_as_large() -> None:
    # The original merges, and so strips, what is less than the size.
    assert split("abc \nx", size=5, separators=["\n"]) == ["abc", "x"]
    assert split("abc \nx", size=4, separators=["\n"]) == ["abc ", "x"]


def test_overlap_is_whole_pieces_and_at_most_what_was_asked() -> None:
    assert split("a b c d e", size=6, overlap=4, separators=[" "]) == ["a b c", "b c d", "c d e"]
    assert split("aa bb cc dd", size=6, overlap=2, separators=[" "]) == ["aa bb", "cc dd"]


def test_a_run_of_dropped_separators_stays_inside_the_one_span() -> None:
    assert split("a\n\n\n\nb\n\nc", size=4, separators=["\n\n"], keep="drop") == ["a\n\n\n\nb", "c"]


def test_what_is_dropped_between_chunks_is_in_none() -> None:
    assert split("one;two;three", size=6, separators=[";"], keep="drop") == ["one", "two", "three"]


def test_what_no_separator_splits_is_kept_whole_with_its_white_space() -> None:
    assert split(" abcdef \nx ", size=4, separators=["\n"]) == [" abcdef ", "x"]


def test_the_empty_separator_ends_the_list() -> None:
    assert split("ab\ncd", size=2, separators=["", "\n"]) == split("ab\ncd", size=2, separators=[""])


def test_chunks_keep_their_white_space_without_strip() -> None:
    assert "".join(split("aa  \n\n bb \n", size=5, strip=False)) == "aa  \n\n bb \n"
    assert split("   ", size=5) == []
    assert split("   ", size=5, strip=False) == ["   "]


@pytest.mark.parametrize("size", [3, 10, 100])
def test_regular_expressions(size: int) -> None:
    text = "One. Two? Three"
    pieces = split(text, size=size, separators=[r"(?<=[.?])\s"], regex=True)
    assert pieces == {3: ["One.", " Two?", " Three"], 10: ["One. Two?", "Three"], 100: [text]}[size]


def test_look_behind_sees_only_the_piece_that_it_splits() -> None:
    # After the first split "b" begins its piece, so that nothing stands before it.
    assert split("aa\nbccc", size=4, separators=["\n", "(?<=\n)b"], regex=True, keep="drop") == ["aa", "bccc"]


def test_separators_that_match_nothing_split_where_they_stand() -> None:
    assert split("AaaBbbCcc", size=6, separators=["(?=[A-Z])"], regex=True) == ["AaaBbb", "Ccc"]
    assert split("AaaBbbCcc", size=5, separators=["(?=[A-Z])"], regex=True) == ["Aaa", "Bbb", "Ccc"]


def test_the_groups_of_a_dropped_regular_expression_are_kept() -> None:
    options = {"separators": [r"([.!])(\s)"], "regex": True, "keep": "drop"}
    assert split("One. Two! Three", size=5, **options) == ["One", ".", "Two", "!", "Three"]
    assert split("aaa-(b)-ccc", size=4, separators=["-((.(b).))-"], regex=True, keep="drop") == ["aaa", "(b)", "ccc"]


@given(hard_text(), st.integers(1, 25), st.sampled_from(["cl100k_base", "words", "characters"]), st.booleans())
def test_the_texts_maximum_holds_and_the_chunks_that_fit_stay(text: str, size: int, counter: str, strip: bool) -> None:
    mirrored = Recursive(size=size, counter=counter, strip=strip)
    bounded = Recursive(size=size, counter=counter, strip=strip, size_of="text")
    count = mirrored.token_counter.count
    found = bounded.split_text(text)
    assert all(count(chunk) <= size or len(chunk) == 1 for chunk in found)
    fitting = [chunk for chunk in mirrored.split_text(text) if count(chunk) <= size]
    rest = iter(found)
    assert all(chunk in rest for chunk in fitting)
    assert "".join("".join(found).split()) == "".join(text.split())


# A word, and words at whose edges the text's own tokens go on.
WORDS = ("one", "antidisestablishmentarianism", "end.\n\nNext", "so...\n", "\n\n\nnew", "!?)\n\n//two", "\nthree")


class PieceByPiece(TiktokenCounter):
    """Counts each piece by itself: nothing is known of the text around it."""

    def tokenize(self, *texts: str) -> TokenizedText:
        return TokenizedText(texts, self)


@settings(max_examples=50)
@given(
    st.lists(hard_text() | st.sampled_from(WORDS), min_size=2, max_size=24).map(" ".join),
    st.integers(1, 25),
    st.sampled_from(["cl100k_base", "o200k_base"]),
)
def test_words_are_packed_by_tokens_as_pieces_counted_one_by_one(text: str, size: int, counter: str) -> None:
    expected = Recursive(size=size, counter=PieceByPiece(counter)).spans(text)
    assert Recursive(size=size, counter=counter).spans(text) == expected


@pytest.mark.parametrize(
    ("text", "size", "separators"),
    [
        ("one two one two #?.\n\n.)\n\n\nx y x y x y ", 6, SEPARATORS),  # more tokens apart at the end of a line
        ("Accepted a b c d", 1, ("cc", " ", "")),  # and at the beginning of a text
    ],
)
def test_words_whose_tokens_go_on_in_the_text_count_by_themselves(text, size, separators):
    alone = PieceByPiece("cl100k_base")
    expected = Recursive(size=size, separators=separators, counter=alone).spans(text)
    assert Recursive(size=size, separators=separators).spans(text) == expected


def test_parts_of_a_chunk_that_was_cut_are_not_repeated() -> None:
    text = "aaaaaaaaaa bb cc"
    found = Recursive(size=6, overlap=6, separators=["\n"], size_of="text", counter="characters").split_text(text)
    assert found == ["aaaaaa", "aaaa", "bb cc"]
    found = Recursive(size=4, overlap=4, separators=["\n"], size_of="text", counter="characters").split_text("-\nbb\n")
    assert found == ["-\nbb"]


def test_many_separators_need_no_deep_recursion() -> None:
    separators = [chr(0x4E00 + i) for i in range(1100)]
    text = "".join(f"a{separator}" for separator in separators)
    assert len(split(text, size=2, separators=separators)) >= 1100


def test_chunks_that_begin_together_stay_in_order() -> None:
    # Pieces of no words, with a gap of two between them: each chunk's piece begins the next chunk too.
    chunker = Recursive(size=1, separators=["x y"], keep="drop", strip=False, counter="words")
    found = [(span.start, span.end) for (span,) in chunker.spans(" x y" * 60)]
    assert len({start for start, _ in found}) < len(found)
    assert found == sorted(found)
