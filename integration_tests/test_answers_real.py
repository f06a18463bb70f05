"""Answers with real models, against the programs that publish these measures, and on real questions."""

from __future__ import annotations

import pytest
from chunkcore.evaluation.answer_measures import ExactMatch, SquadF1
from hypothesis import given, settings
from hypothesis import strategies as st

squad_f1, exact_match = SquadF1(5).compare, ExactMatch(5).compare
WORDS = st.lists(st.sampled_from(["the", "a", "Cat", "cat,", "sat.", "on", "x-y", "“so”", "5"]), max_size=7).map(
    " ".join
)


@pytest.mark.peers
@settings(max_examples=100)
@given(WORDS, st.lists(WORDS, min_size=1, max_size=3))
def test_squad_scores_are_those_of_torchmetrics(answer: str, right: list[str]) -> None:
    """Its functions are those of the script of SQuAD 1.1, which knows no empty answers."""
    theirs = pytest.importorskip("torchmetrics.functional.text.squad", reason="torchmetrics is not installed")
    if not theirs._normalize_text(answer) or not all(map(theirs._normalize_text, right)):
        return
    assert squad_f1(answer, right) == pytest.approx(max(theirs._compute_f1_score(answer, each) for each in right))
    assert exact_match(answer, right) == max(theirs._compute_exact_match_score(answer, each) for each in right)
