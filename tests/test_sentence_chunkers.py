"""`sentence` and `fixed_sentences` on hand-computed cases."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import pytest
from chunkcore.boundaries.sentences import heading_numbers, sentence_ranges
from chunkcore.chunkers import FixedSentences, Sentence, get_chunker
from chunkcore.models.loading import EmbedderCounter
from chunkcore.text import Document, Mark, Span
from chunkcore.tokens import TokenizedText, WordCounter

from tests.test_late_chunking import FakeTokenEmbedder

FOUR = "One is short. Two is too. Three. Four has four words."


def numbered(count: int) -> str:
    """Sentences of the figures' count, each told by its number."""
    return " ".join(f"Sentence {number} here." for number in range(1, count + 1))


def numbers(text: str) -> list[int]:
    return [int(word) for word in text.split() if word.isdigit()]


def words(**options: Any) -> list[str]:
    return Sentence(counter="words", **options).split_text(FOUR)


def test_sentences_are_packed_whole_up_to_the_target() -> None:
    assert words(size=7) == ["One is short. Two is too. Three.", "Four has four words."]


def test_a_fragment_joins_its_neighbour_unless_the_maximum_forbids() -> None:
    text = "One two three four. Five."
    assert Sentence(size=4, minimum=2, maximum=5, counter="words").split_text(text) == [text]
    assert len(Sentence(size=4, minimum=2, counter="words").split_text(text)) == 2


def test_a_fragment_joins_the_nearer_neighbour() -> None:
    text = "One two three four.\n\nFive. Six seven eight nine."
    chunks = Sentence(size=4, minimum=2, maximum=5, counter="words").split_text(text)
    assert chunks == ["One two three four.", "Five. Six seven eight nine."]


def test_overlap_is_whole_sentences_where_they_fit() -> None:
    assert words(size=5, overlap_sentences=1)[1:] == ["Two is too. Three.", "Three. Four has four words."]
    # One sentence at least, though it is over the overlap.
    assert words(size=8, overlap=1) == ["One is short. Two is too. Three.", "Three. Four has four words."]
    assert words(size=6, overlap=1)[1] == "Two is too. Three."
    # Two asked for, and one there is before the second chunk, which has no room for it.
    assert words(size=4, overlap_sentences=2) == ["One is short.", "Two is too. Three.", "Four has four words."]


def test_a_line_of_a_record_is_whole_where_it_fits() -> None:
    log = "\n".join(f"{hour:02d}:00 Gate {hour} open. All well now." for hour in range(10))
    assert Sentence(size=10, counter="words").split_text(log) == log.split("\n")
    values = "\n".join(f'level=info msg="Gate {n} open. All well."' for n in range(4))
    assert Sentence(size=9, counter="words").split_text(values) == values.split("\n")
    said = [f"Ada — 05/06/2024 10:0{n} AM\nGate {n} open." for n in range(4)]
    assert Sentence(size=10, counter="words").split_text("\n".join(said)) == said
    captions = [f"{n}\n00:0{n}:00,000 --> 00:0{n}:09,000\nGate {n} is open. All well." for n in range(1, 9)]
    shown, unnumbered = ("\n\n".join(caption[first:] for caption in captions) for first in (0, 2))
    for text in (shown, unnumbered, shown.replace("\nGate", "\n \nGate") + "\n\nThe end of this film."):
        assert Sentence(size=14, counter="words").split_text(text) == text.split("\n\n")
    verse = "\n".join(["the river runs along", "the hill is green today", "the gate is shut again"] * 4)
    assert all("\n" not in chunk or len(chunk.split()) <= 9 for chunk in words_of(verse, size=9))
    assert [line for chunk in words_of(verse, size=9) for line in chunk.split("\n")] == verse.split("\n")


@pytest.mark.parametrize(
    "part",
    [
        "{| class=wide\n! Kind\n|-\n| Black. Hot.\n\n|}",
        "{{Infobox\n| kind = Black. Hot.\n\n| heat = 95\n}}",
        "|===\n| Kind\n\n| Black. Hot.\n|===",
        "[source]\n----\na. B. c\n\nd\n----",
        "+----+\n| Black. Hot.\n+----+\n| Green. Mild.\n+----+",
        "=====  ====\r\nKind.  Heat\r\n=====  ====\nA. B.  hot.\n=====  ====",
        "| Black. Hot. |\n|-------------|\n| Green. Mild. |",
        "\\begin{table*}\n\\begin{tabular}{l}\nA. B.\n\\end{tabular}\n\n\\end{table*}",
        "#+BEGIN_SRC r\na. B.\n\nc\n#+END_SRC",
        "BEGIN:VCARD\nNOTE:Hot. Sweet.\nEND:VCARD",
    ],
)
def test_a_table_or_code_between_marks_is_whole_where_it_fits(part: str) -> None:
    text = f"Of tea and of cups, at last.\n\n{part}\n\n{{|\n\n|}} It is never closed. So what."
    chunks = Sentence(size=len(part), maximum=99, counter="characters").split_text(text)
    assert part in chunks
    assert max(map(len, Sentence(size=12, counter="characters").split_text(text))) <= 12


def words_of(text: str, size: int) -> list[str]:
    return Sentence(size=size, counter="words").split_text(text)


HEADS = r"* R {}|\section{{R}}&\label{{{}}}|= R {} =|R {}|{} R|R {}&===|R {}&^^^|CANTO {}.|Act {}&R".replace("&", "\n")


@pytest.mark.parametrize("head", HEADS.split("|"))
def test_a_heading_is_in_the_chunk_of_its_section(head: str) -> None:
    text = "\n\n".join(f"{head.format(number)}\n\n" + "The rent is due. " * number for number in range(1, 9))
    for size in range(8, 20):
        assert not any(chunk.endswith(head.format(number)) for chunk in words_of(text, size) for number in range(1, 9))


@pytest.mark.parametrize(
    ("head", "line"), [("#+TITLE: R\n\n", "* R {}"), ("", "\\begin{{{}}}"), ("", "::: {{.{}}}"), ("", "[[{}]]")]
)
def test_a_line_that_begins_what_follows_at_once_is_in_its_chunk(head: str, line: str) -> None:
    text = head + "\n\n".join(f"{line.format(number)}\n- " + "The rent is due. " * number for number in range(1, 9))
    for size in range(10, 20):
        assert not any(chunk.endswith(line.format(number)) for chunk in words_of(text, size) for number in range(1, 9))


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("#+TITLE: Tea\n\n* Tea\nHot.", [0, 1]),
        ("Tea.\n* p < 5\nHot.", []),
        ("#+TITLE: Tea\n\n* red\n* hot\nIt is.", [0]),
        ("Tea.\n\nCHAPTER I.\n\nHot.", [1]),
        ("Q: Hot?\nA: It is.\n\nSweet?\n\nA 2. No.\nWhy?\nI ask.", [0, 2]),
        ("茶热吗？\n答：热。", [0]),
        ("Tea.\n\n[...]\n\nCHAPTER I. Tea.\n\nHot.", []),
    ],
)
def test_stars_and_full_stops_are_of_headings_where_nothing_else_has_them(text: str, numbers: list[int]) -> None:
    assert heading_numbers(text, sentence_ranges(text)) == numbers


@pytest.mark.parametrize("end", ["\n", "\n\n"])
def test_a_section_that_is_its_heading_alone_is_with_the_next(end: str) -> None:
    text = end.join(["Part one", "Rent", "The rent is due. It is low.", "Dogs", "Dogs are welcome. They bark."])
    marks = [Mark("section", Span(text.index(title), text.index(title) + 4)) for title in ("Part", "Rent", "Dogs")]
    chunks = Sentence(size=40, counter="words").chunk(Document("a.docx", text, marks=tuple(marks)))
    if end == "\n\n":
        assert [chunk.text.split("\n")[0] for chunk in chunks] == ["Part one", "Dogs"]
    assert not any(chunk.text.endswith(("one", "Rent", "\nDogs")) for chunk in chunks)


@pytest.mark.parametrize("mark", ["\u200b", "\u0f0b", "，", "\u104a"])
def test_a_word_without_spaces_ends_at_its_mark(mark: str) -> None:
    text = mark.join(["ཀཁག", "ཨོམ", "ལྷ་ས"[:2]] * 9)
    chunks = Sentence(size=20, counter="characters").split_text(text)
    assert all(chunk.endswith(mark) for chunk in chunks[:-1])


WORDS = ["ภาษา|ไทย|เป็น|ภาษา", "ມະນຸດ|ທຸກຄົນ|ເກີດ", "មនុស្ស|ទាំងអស់|កើតមក"]  # of Thai, Lao, Khmer,
WORDS += ["လူ|တိုင်း|လွတ်လပ်|သော", "人間|は|自由|で|ある", "尊严|和|权利|一律|平等"]  # Burmese, Japanese and Chinese


@pytest.mark.parametrize("words", WORDS)
@pytest.mark.parametrize("chunker", ["auto", "recursive", "sentence"])
def test_a_word_without_spaces_is_cut_only_if_it_does_not_fit(chunker: str, words: str) -> None:
    pytest.importorskip("icu4py")
    text = words.replace("|", "") * 3
    ends = set(accumulate(map(len, words.split("|") * 3)))
    for size in (8, 9, 10):
        chunks = get_chunker(chunker, size=size, counter="characters").chunk(Document("d", text))
        assert {chunk.end for chunk in chunks} <= ends
        assert "".join(chunk.text for chunk in chunks) == text
    chunks = get_chunker(chunker, size=1, counter="characters").split_text(text)
    assert "".join(chunks) == text


def test_the_maximum_cuts_a_sentence_at_words_then_graphemes() -> None:
    chunks = Sentence(size=8, counter="characters").split_text("Extraordinarily so. Yes.")
    assert chunks == ["Extraord", "inarily", "so.", "Yes."]
    chunks = Sentence(size=1, counter="characters").chunk(Document("d", "e\u0301 a"))
    assert [chunk.text for chunk in chunks] == ["e", "\u0301", "a"]


class Squares(WordCounter):
    """Counts the square of the words, so that sentences together count more than their sum."""

    def tokenize(self, *texts: str) -> TokenizedText:
        return TokenizedText(texts, self)

    def count(self, text: str) -> int:
        return super().count(text) ** 2


def test_a_chunk_whose_own_text_is_over_the_maximum_is_halved_at_sentences() -> None:
    def cut(text: str, **options: int) -> list[str]:
        return Sentence(counter=Squares(), **options).split_text(text)

    # By sum four fit into 4, together they count 16; then comes a sentence of 9.
    found = cut("Ants. Bees. Cats. Dogs. Eels find gnats. Hens.", size=4)
    assert found == ["Ants. Bees.", "Cats. Dogs.", "Eels find", "gnats.", "Hens."]
    assert cut("Ants. Bees fly. Cats.", size=5) == ["Ants.", "Bees fly.", "Cats."]
    # With what it repeats the second chunk is over the maximum: it repeats nothing.
    assert cut("Ants. Bees. Cats dig.", size=5, overlap_sentences=1) == ["Ants. Bees.", "Cats dig."]


def test_a_family_of_emoji_over_a_models_limit_stops_nothing() -> None:
    counter = EmbedderCounter(FakeTokenEmbedder(max_tokens=12))
    text = ".🏳️\u200d🌈.🏳️\u200d🌈thethethe  .🏳️\u200d🌈"
    chunks = Sentence(size=10, counter=counter).split_text(text)
    assert "".join("".join(chunks).split()) == "".join(text.split())
    assert all(counter.count(chunk) <= 10 for chunk in chunks)


def test_each_chunk_repeats_the_sentences_before_it() -> None:
    chunks = FixedSentences(sentences=2, overlap=1).split_text(numbered(5))
    assert [numbers(chunk) for chunk in chunks] == [[1, 2], [2, 3, 4], [4, 5]]


def test_a_number_of_chunks_shares_the_sentences_out() -> None:
    def found(count: int, **options: int) -> list[list[int]]:
        return [numbers(chunk) for chunk in FixedSentences(**options).split_text(numbered(count))]

    assert found(8, chunks=3) == [[1, 2, 3], [4, 5, 6], [7, 8]]
    assert found(2, chunks=5) == [[1], [2]]
    assert found(0, chunks=5) == []
    # A chunk begins later than the one before, whatever it may repeat.
    assert found(8, chunks=2, overlap=6) == [[1, 2, 3, 4], [2, 3, 4, 5, 6, 7, 8]]


def test_after_a_chunk_that_shares_nothing_the_next_ones_share_and_stay_in_order() -> None:
    """A sentence that is over the size by itself, two before which the next chunks would begin. Found by fuzzing."""
    chunker = Sentence(counter="o200k_base", size=3, minimum=1, overlap_sentences=2, splitter="regex:.")
    found = [(span.start, span.end) for (span,) in chunker.spans("\u0300\u0e33これは日本語の文章です。")]
    assert [start for start, _ in found] == sorted(start for start, _ in found)
    assert found[-2:] == [(10, 13), (11, 14)]
