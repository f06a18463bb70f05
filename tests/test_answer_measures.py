"""How good an answer is: published examples, hand-computed cases, and what must hold for any text."""

from __future__ import annotations

import pytest
from chunkcore.evaluation.answer_measures import ExactMatch, SquadF1, squad_words
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.strategies import hard_text

squad_f1, exact_match = SquadF1(5).compare, ExactMatch(5).compare


def test_normalisation_is_the_squad_scripts():
    """The script lowers, strips punctuation, then articles, then white space: so "a.n." is an article."""
    assert squad_words("  The An\tANSWER, (a test) ") == ["answer", "test"]
    assert squad_words("a.n. other") == ["other"]
    assert squad_words("the-rapist") == ["therapist"]
    assert squad_words("“Quoted” – 5 %") == ["“quoted”", "–", "5"]  # not ASCII: it stays, as in the script
    assert squad_words("「東京」。") == ["東", "京"]


def test_squad_f1_by_hand():
    assert squad_f1("Denver Broncos", ["Denver Broncos", "The Broncos"]) == 1
    assert squad_f1("the Denver team", ["Denver Broncos"]) == 1 / 2  # one of two words on each side
    assert squad_f1("Broncos Broncos", ["Broncos"]) == pytest.approx(2 / 3)  # a word counts as often as both have it
    assert squad_f1("Paris", ["London"]) == 0
    assert squad_f1("19 76", ["1976"]) == 0


def test_the_best_reference_counts():
    assert squad_f1("gold confetti", ["gold", "confetti of gold paper"]) == pytest.approx(2 / 3)
    assert exact_match("gold!", ["silver", "Gold"]) == 1
    assert exact_match("golden", ["silver", "Gold"]) == 0


def test_nothing_is_right_where_no_reference_says_anything():
    """SQuAD 2.0: a question without an answer has F1 1 for an empty answer."""
    for measure in (squad_f1, exact_match):
        assert measure("", [""]) == measure("the", [""]) == measure("", ["the"]) == 1
        assert measure("Paris", [""]) == measure("", ["Paris"]) == measure("", ["the", "Paris"]) == 0


@settings(max_examples=40)
@given(
    st.sampled_from([squad_f1, exact_match]),
    hard_text(max_parts=12),
    st.lists(hard_text(max_parts=12), min_size=1, max_size=3),
)
def test_any_texts_score_from_0_to_1_and_the_references_order_is_nothing(measure, answer, references):
    score = measure(answer, references)
    assert 0 <= score <= 1
    assert measure(answer, references[::-1]) == score
