"""Sentence boundaries: hand-made cases of the default, what other splitters may answer, and that nothing is lost."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import pytest
import regex
from chunkcore.boundaries.sentences import check_splitter, sentence_ranges
from chunkcore.errors import DataError, MissingExtraError, OptionError

# Each text is what its sentences, with single spaces between them, make.
SENTENCES = {
    "titles": ["Dr. Wu met Mrs. J. R. Lee at St. Mary's.", "They left."],
    "abbreviations that can end": ["It was made by Acme Inc. in 1990.", "He lives in the U.S.", "The rest do not."],
    "latin": ["Use fruit, e.g. Apples, i.e. Fruit.", "See Fig. 3 and vol. 2, No. 7."],
    "decimals and versions": ["It cost 3.50 with v1.2.3 today.", "See http://a.b/c?d=e.f now.", "In 1990. Then."][:2],
    "quotes": ['"Why?" he asked.', '"Go!"', "She said “no.”", "(It was late.)", "Done."],
    "ellipses": ["Well... maybe not.", "So it goes…", "He left . . . at noon.", "Then what?!", "Yes."],
    "years": ["It was 1990.", "In 1991 it was not.", "It took 4 h.", "I met Ian.", "3 left.", "A Dra. Ana veio."],
    "german": ["Am 3. Oktober kam ggf. Dipl.-Ing. Maier.", "Es kostet 3 Mio. Euro.", "Er ging."],
    "dates": ["Smlouva platí od 1. 3. 2024 do 31. 12. 2025.", "Az iroda 2024. 05. 03. napján nyílt.", "Vége."],
    "months": ["Le 3 févr. 24.", "(3 sett. 24.)", "A 3 fev. 24.", "El 3 ene. 24.", "Am 3. Okt. 24.", "В 3 янв. 24."],
    "ordinals": ["Das Haus im 3. Stock des 18. Jahrhunderts.", "Vom 3.–5. Mai.", "Der XIX. Kongress tagt.", "Er geht."],
    "references": ["Gem. § 4 Rn. 7.", "12 F. Supp. 2d, paras. 3-4.", "Zob. art. 3 ust. 1.", "В ст. 8 нет.", "Thm. 2."],
    "references with articles": ["Selon l’al. 2 de l'art. 5.", "L'ing. Neri, d.lgs. 50, § 5, stk. 2."],
    "titles of scripts": ["डॉ. वर्मा आए।", "Он живёт на ул. Мира.", "Ông ở TP. Vinh."],
    "clauses": ["4.2.1. The Buyer pays.", "Art. 9. The seat is Bergen.", "§ 3. It ends.", "المادة 5. يدفع."],
    "letters and verbs of India": ["ચા ગરમ છે.", "તે એમ. પટેલ.", "అది ఉంది.", "எம். ஜி. வந்தார்.", "चाय गरम है.", "के. राय आए."],
    "georgian": ["ჩაი ცხელია.", "დალიე."],
    "streets": ["Er wohnt in der Hauptstr. 5.", "O eng. Sá veio.", "Вул. Лесі, буд. 5.", "Bw. Juma alikuja."],
    "korean date": ["2024. 1. 15. 회의가 열렸다.", "끝."],
    "french quotation": ["« Venez ! » dit-il.", "Il dit : « Oui. »", "Bien."],
    "german quotation": ["„Na?“", "»Nein.«", "Er ging."],
    "notes": ["Tea is hot.¹", "It is sweet.²³", "See Ref. [5].", "It was.[2–4]", "Is it?[^1][2]", "End."],
    "degrees": ["Prof. Dr. med. Müller, geb. 1950, war da.", "Dr. rer. nat. Hahn auch."],
    "no degrees": ["Följ med.", "Hun så Phil.", "Så."],
    "signs": ["— Иди! — сказал он.", "Tél. : 01 ext. 5.", "Doe (9th Cir. 1994).", "Art. 1er. Ja.", "ماده ۵. بله."],
    "lao": ["ບ້ານໃຫຍ່", "ນ້ຳໃສ"],
    "greek": ["Πού πας;", "Στο σπίτι."],
    "fullwidth": ["水は３．５度です．", "次です．"],
    "hindi": ["यह एक वाक्य है।", "यह दूसरा है॥", "तीसरा।"],
    "arabic": ["ما هذا؟", "هذا كتاب.", "یہ کتاب ہے۔", "ہاں"],
    "armenian": ["Սա նախադասություն է։", "Սա էլ։"],
    "thai": ["สวัสดีครับ", "ผมชื่อสมชาย"],
}


def split(text: str) -> list[str]:
    return [text[start:end] for start, end in sentence_ranges(text).tolist()]


@pytest.mark.parametrize("sentences", SENTENCES.values(), ids=list(SENTENCES))
def test_sentences_are_found_in_prose(sentences: list[str]) -> None:
    assert split(" ".join(sentences)) == sentences


def test_sentences_of_a_page_end_at_its_blocks_and_headings() -> None:
    sentences = ["<!doctype html>", "<title>T</title>", "<h1>Harbour</h1>", "<p>Boats pay&nbsp;5 &amp; leave."]
    sentences.append("We close</p>")
    sentences += ["<ul><li>One", "<li>Two</ul>", "<h2>Tides</h2>", "High at <b>noon</b>", "<br>low at six", "<div>Now"]
    sentences += ["<table><tr><td>Gate <td>open", "<tr><th>Lock <td>shut</table>"]
    sentences += ["<div>then</div>", "later</div></html>"]
    assert split(" ".join(sentences)) == sentences
    assert split("To mark up, write <p>this</p> <p>that</p>") == ["To mark up, write <p>this</p> <p>that</p>"]


def test_every_full_stop_of_unicode_ends_a_sentence() -> None:
    marks = [chr(code) for code in range(sys.maxunicode) if regex.match(r"\p{Sentence_Terminal}", chr(code))]
    assert len(marks) > 150
    assert [mark for mark in marks if len(split(f"Ab{mark} Cd")) != 2] == ["\u104a"]  # a comma of Burmese


def test_lines_of_records_are_sentences_and_wrapped_lines_are_not() -> None:
    log = ["09:14 Gate open. All well.", "09:20 Boat in", "09:31 Gate shut"]
    assert split("\n".join(log)) == ["09:14 Gate open.", "All well.", *log[1:]]
    trace = ["2026-05-06 10:00:05,1 Gate. Shut", "\tat lock.py", "[06/May/2026, 10:00:07] in", "May  6 10:00:08 out"]
    assert split("\n".join(trace)) == [trace[0][:27], "Shut", "at lock.py", *trace[2:]]
    assert split("The gate of the lock\nwas shut at noon, and\nnobody came to open it.") == [
        "The gate of the lock\nwas shut at noon, and\nnobody came to open it."
    ]


def test_chinese_and_japanese_need_no_space() -> None:
    assert split("你好！这是第二句。“真的吗？”第三句") == ["你好！", "这是第二句。", "“真的吗？”", "第三句"]
    assert split("「行く。」と言った。次。") == ["「行く。」と言った。", "次。"]
    assert split("彼は「はい。行く。」と言った。「次。") == ["彼は「はい。行く。」と言った。", "「次。"]
    assert split("茶（緑茶。）を飲む。（注。）次（注。）。") == ["茶（緑茶。）を飲む。", "（注。）", "次（注。）。"]
    assert [split("เด็กๆ ชอบชา"), split("去吗?好!对")] == [["เด็กๆ ชอบชา"], ["去吗?", "好!", "对"]]
    assert len(split("「" + "行く。" * 99 + "」")) == 99
    assert split("去吗?好!いつ?と言った。Yahoo!今") == ["去吗?", "好!", "いつ?と言った。", "Yahoo!今"]


def test_lines_end_sentences_only_where_the_structure_says_so() -> None:
    text = "# A title\nText that is\nwrapped. And more\n\n- one\n- two\n1. three\r\n2. four\r\n\r\nTitle\n=====\nEnd"
    expected = ["# A title", "Text that is\nwrapped.", "And more", "- one", "- two", "1. three", "2. four"]
    assert split(text) == [*expected, "Title", "=====", "End"]


def test_what_a_callable_leaves_out_joins_its_neighbour() -> None:
    assert sentence_ranges("ab cd, ef gh", lambda text: [(3, 5), (7, 9)]).tolist() == [[0, 6], [7, 12]]
    assert sentence_ranges("ab cd", lambda text: []).tolist() == [[0, 5]]


@pytest.mark.parametrize("pairs", [[(0, 9)], [(2, 3), (0, 1)], [(0, 3), (2, 4)], [(-1, 2)], [(3, 2)]])
def test_a_callable_out_of_bounds_or_order_is_refused(pairs: Iterable[tuple[int, int]]) -> None:
    with pytest.raises(DataError, match="in order, disjoint and within the text"):
        sentence_ranges("abcd", lambda text: pairs)


def test_a_callable_that_answers_something_else_is_refused() -> None:
    with pytest.raises(DataError, match="pairs of numbers, got 'ab '"):
        sentence_ranges("ab cd", lambda text: ["ab "])  # type: ignore[list-item]


def test_a_pattern_cuts_where_its_matches_end() -> None:
    def chunk_corpus(text: str, pattern: str) -> list[str]:
        return [text[start:end] for start, end in sentence_ranges(text, f"regex:{pattern}").tolist()]

    assert chunk_corpus(" a; b ;; c;", ";") == ["a;", "b ;", ";", "c;"]
    assert chunk_corpus("One.  Two? ", r"(?<=[.?!])\s+") == ["One.", "Two?"]
    assert chunk_corpus("a:b c", "a:b") == ["a:b", "c"]  # what follows the first colon is the pattern
    assert [chunk_corpus(text, "x") for text in ("nothing here", "  ")] == [["nothing here"], []]


@pytest.mark.parametrize("splitter", ["regex:", "spacy:", "regexp:a", "", 5, None])
def test_what_names_no_splitter_is_refused(splitter: Any) -> None:
    with pytest.raises(OptionError, match=r"unknown sentence splitter .*regex:<pattern>"):
        check_splitter(splitter)


@pytest.mark.parametrize("pattern", ["(", "a{2,1}", "(?P<x>a)(?P<x>b)"])
def test_a_pattern_that_is_none_is_refused(pattern: str) -> None:
    with pytest.raises(OptionError, match=r"is no regular expression .*; correct it"):
        check_splitter(f"regex:{pattern}")


def test_unknown_splitters_and_absent_packages_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(OptionError, match="unknown sentence splitter 'spcy'"):
        check_splitter("spcy")
    monkeypatch.setitem(sys.modules, "spacy", None)
    with pytest.raises(MissingExtraError, match="spacy is needed to split sentences"):
        sentence_ranges("a", "spacy:absent")


class Sliced(str):
    """Remembers how many characters its slices had."""

    characters = 0

    def __getitem__(self, key: Any) -> str:
        piece = super().__getitem__(key)
        self.characters += len(piece)
        return piece


def test_a_long_word_before_a_full_stop_is_not_read_from_the_texts_beginning() -> None:
    text = Sliced(f"{'Abc' * 15}. " * 300)
    assert len(sentence_ranges(text)) == 300
    assert text.characters < 5 * len(text)
