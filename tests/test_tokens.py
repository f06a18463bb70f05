"""Counts of pieces equal encoding each piece alone; boundaries are code points, one a token."""

from __future__ import annotations

import sys
import unicodedata
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import regex
from chunkcore.chunkers.base import get_chunker
from chunkcore.errors import OptionError
from chunkcore.tokens import HuggingFaceCounter, TiktokenCounter, TokenizedText, WordCounter, encodings, get_counter
from chunkcore.tokens.tokenized import SpacedText, WordText, context_free_boundaries, splits_at_space
from hypothesis import example, given
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

from tests.processes import peak
from tests.strategies import LOOK_ALIKES, hard_text, text_with_pieces

ENCODINGS = ["cl100k_base", "o200k_base"]


def counts_of(source: TokenizedText, starts: list[int], ends: list[int]) -> list[int]:
    return source.counts(np.array(starts, dtype=np.int64), np.array(ends, dtype=np.int64)).tolist()


def encoded_alone(counter: TiktokenCounter, piece: str) -> int:
    """What tiktoken itself says, with each lone surrogate as U+FFFD."""
    return len(counter.encoding.encode_ordinary("".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in piece)))


@pytest.mark.parametrize("name", ENCODINGS)
@given(text=hard_text(max_parts=12))
def test_every_piece_of_a_short_text_counts_as_if_encoded_alone(name: str, text: str) -> None:
    text = text[:24]
    pairs = [(start, end) for start in range(len(text) + 1) for end in range(start, len(text) + 1)]
    counter = TiktokenCounter(name)
    found = counts_of(counter.tokenize(text), [start for start, _ in pairs], [end for _, end in pairs])
    assert found == [encoded_alone(counter, text[start:end]) for start, end in pairs]


def test_a_long_text_is_never_held_as_numbers_of_four_bytes() -> None:
    source = TiktokenCounter().tokenize("Tea is hot – and sweet. " * 500_000)
    assert peak(lambda: source.flags) < 5 * len(source.text)


def test_a_word_does_not_go_on_from_one_joined_text_into_the_next():
    source = WordCounter().tokenize("green te", "a", "", "b c")
    assert source.text == "green teab c"
    assert counts_of(source, [0, 8, 9, 9], [8, 9, 9, 12]) == [2, 1, 0, 2]


def test_each_piece_of_one_long_word_is_counted_once_and_words_without_their_counter(monkeypatch):
    asked: list[str] = []

    def count_many(counter: WordCounter, texts: list[str]) -> Any:
        asked.extend(texts)
        return np.ones(16, int)

    monkeypatch.setattr(WordCounter, "count_many", count_many)
    places = list(range(1, 17))
    for kind, texts in ((TokenizedText, ["a"] * 16), (WordText, [])):
        asked.clear()
        assert counts_of(kind(["a" * 20], WordCounter()), places, [place + 1 for place in places]) == [1] * 16
        assert asked == texts


@given(text=hard_text())
def test_a_boundary_is_the_character_in_which_the_token_begins(text: str) -> None:
    text = text.encode("utf-8", "replace").decode()
    counter = TiktokenCounter("o200k_base")
    ids = counter.encoding.encode_ordinary(text)
    whole, place, expected = text.encode(), 0, []
    for token in counter.encoding.decode_tokens_bytes(ids):
        # The character whose bytes hold this place: those that are complete before it, counted.
        expected.append(len(whole[:place].decode("utf-8", "ignore")))
        place += len(token)
    assert counter.boundaries(text).tolist() == expected


def test_surrogates_count_as_the_replacement_character_each() -> None:
    counter = TiktokenCounter("cl100k_base")
    assert counter.count("a\ud83d\ude00b") == counter.count("a\ufffd\ufffdb")
    assert counter.boundaries("a\ud83d\ude00 b").tolist() == counter.boundaries("a\ufffd\ufffd b").tolist()


@pytest.mark.parametrize("look_alike", LOOK_ALIKES)
@pytest.mark.parametrize("name", ENCODINGS)
def test_text_that_looks_like_a_special_token_is_text(name: str, look_alike: str) -> None:
    counter = TiktokenCounter(name)
    assert counter.count(look_alike) == len(counter.encoding.encode_ordinary(look_alike)) > 1


def members(pattern: str, text: str) -> np.ndarray:
    """For each character whether the pattern matches it."""
    found = np.zeros(len(text), dtype=bool)
    for run in regex.finditer(f"(?:{pattern})+", text):
        found[run.start() : run.end()] = True
    return found


def test_the_rules_read_every_character_as_the_patterns_do() -> None:
    """Over all of Unicode that Python knows, with the tables of the `regex` library, which are newer."""
    known = [c for c in map(chr, range(sys.maxunicode + 1)) if unicodedata.category(c) not in ("Cn", "Cs")]
    characters = "".join(known)
    text = np.full((len(known), 3), ord(" "), dtype=np.uint32)
    text[:, 0] = ord("a")
    text[:, 1] = np.frombuffer(characters.encode("utf-32-le"), dtype=np.uint32)
    found = context_free_boundaries("cl100k_base", text.ravel())[:-1].reshape(-1, 3)
    np.testing.assert_array_equal(found[:, 1], ~members(r"[\p{L}\p{N}\p{M}']", characters))
    np.testing.assert_array_equal(found[:, 2], ~members(r"\p{White_Space}", characters))


@pytest.mark.parametrize("name", ENCODINGS)
def test_white_space_that_an_encoding_refuses_is_counted_in_pieces(name: str, monkeypatch) -> None:
    encoding = encodings.load_encoding(name)

    def encode(text: str, **options: Any) -> Any:
        if " " * 100 in text:
            raise ValueError("as tiktoken does at a million")
        return encoding.encode_to_numpy(text, **options)

    monkeypatch.setattr(encodings, "GIANT", 100)
    monkeypatch.setattr(encodings, "load_encoding", lambda _: SimpleNamespace(encode_to_numpy=encode))
    text = "a" + " " * 250 + "b"
    assert encoding.decode(encodings.encode(name, text)) == text
    assert TiktokenCounter(name).count(text) > 3


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tokenizers")


@pytest.fixture(scope="module")
def byte_level(folder: Path) -> HuggingFaceCounter:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=True)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    options = {"initial_alphabet": alphabet, "special_tokens": ["<s>"], "show_progress": False}
    trainer = trainers.BpeTrainer(vocab_size=300, **options)
    tokenizer.train_from_iterator(["hello world the café "] * 10, trainer)
    tokenizer.save(str(folder / "bytes.json"))
    return HuggingFaceCounter(str(folder / "bytes.json"))


@pytest.fixture(scope="module")
def lower_casing(folder: Path) -> HuggingFaceCounter:
    pieces = ["[UNK]", "[CLS]", "[", "]", "cl", "##s", "unico", "##de", "e", "a", "##b", "漢"]
    tokenizer = Tokenizer(models.WordPiece({piece: i for i, piece in enumerate(pieces)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.add_special_tokens(["[CLS]"])
    tokenizer.save(str(folder / "tokenizer.json"))
    return HuggingFaceCounter(str(folder))


def test_byte_level_tokens_begin_at_their_space_and_at_their_character(byte_level: HuggingFaceCounter) -> None:
    #           hello| world| |👩        |‍    |x
    assert byte_level.boundaries("hello world 👩\u200dx").tolist() == [0, 5, 11, 12, 12, 12, 12, 13, 13, 13, 14]


def test_a_normalising_tokenizer_gives_the_source_offsets(lower_casing: HuggingFaceCounter) -> None:
    # The accent is stripped, the decomposed one too (two code points, one token), NUL vanishes.
    assert lower_casing.boundaries("  ÜnicoDe e\u0301 漢 a\x00b").tolist() == [2, 7, 10, 13, 15, 17]


def test_a_hugging_face_tokenizer_takes_look_alikes_as_text(byte_level, lower_casing):
    assert byte_level.count("<s>") == 3
    assert lower_casing.boundaries("e [CLS]").tolist() == [0, 2, 3, 5, 6]


@given(case=text_with_pieces())
def test_pieces_of_a_hugging_face_tokenizer(byte_level, case):
    text, starts, ends = case
    source = byte_level.tokenize(text)
    assert counts_of(source, starts, ends) == [byte_level.count(text[s:e]) for s, e in zip(starts, ends, strict=True)]
    found = source.boundaries
    assert len(found) == byte_level.count(text)
    assert (np.diff(found) >= 0).all()


@given(case=text_with_pieces())
@example(case=("a\x0bb c\x1cab\xa0ab \x00\n\ufffd e", [0, 2, 3], [11, 9, 4]))
@example(case=(" [CLS] cl [CL\tS]" + "a" * 101, [0, 3, 9], [8, 14, 40]))
@example(case=("\x00 e e  a \x1c \ufffd  \x00ab ab   e  \x00 \x00 abe", [0], [9]))
@example(case=("e\u0301 \u0301e ΟΔΟΣ ΟΣ\ta", [0, 1, 8], [5, 9, 13]))
def test_a_tokenizer_that_splits_at_white_space_is_given_each_word_once(lower_casing, case):
    text, starts, ends = case
    source = lower_casing.tokenize(text)
    assert isinstance(source, SpacedText)
    assert source.boundaries.tolist() == lower_casing.boundaries(text).tolist()
    twice = lower_casing.tokenize(text, text).boundaries - len(text) * np.repeat([0, 1], len(source.boundaries))
    assert twice.tolist() == source.boundaries.tolist() * 2
    alone = TokenizedText([text], lower_casing)
    assert counts_of(source, starts, ends) == counts_of(alone, starts, ends)
    assert [source.count(*each) for each in zip(starts, ends, strict=True)] == counts_of(alone, starts, ends)
    for options in ("size=3", "size=2,strip=false", "size=4,size_of=text"):
        recursive = get_chunker(f"recursive:{options}", counter=lower_casing)
        assert np.array_equal(recursive.cut(source), recursive.cut(alone))


def test_only_tokenizers_like_berts_split_at_white_space(byte_level, lower_casing):
    assert splits_at_space(lower_casing.tokenizer)
    assert not splits_at_space(byte_level.tokenizer)
    reaching = Tokenizer.from_str(lower_casing.tokenizer.to_str())
    reaching.add_tokens(["e a"])
    assert not splits_at_space(reaching)


def test_counters_are_equal_by_name_and_found_by_it() -> None:
    for name in ("characters", "words", "cl100k_base", "hf:some/model"):
        counter = get_counter(name)
        assert counter.name == name
        assert counter == get_counter(name)
        assert hash(counter) == hash(get_counter(name))
        assert get_counter(counter) is counter
    assert get_counter("words") != get_counter("characters")


def test_an_unknown_counter_is_an_error_that_lists_the_known() -> None:
    with pytest.raises(OptionError, match=r"unknown token counter 'cl200k'.*characters, words, hf:.*cl100k_base"):
        get_counter("cl200k")
    with pytest.raises(OptionError, match="unknown token counter 200"):
        get_counter(200)  # type: ignore[arg-type]


def test_a_tokenizer_that_is_not_there_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(OptionError, match=r"no tokenizer at .*expected a folder with tokenizer.json"):
        HuggingFaceCounter(str(tmp_path)).count("x")
