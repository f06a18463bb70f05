"""Answers with real models, against the programs that publish these measures, and on real questions."""

from __future__ import annotations

from dataclasses import replace

import pytest
from chunkcore import load_benchmark
from chunkcore.answers import Answer, AnswerRun, exact_match, score_answers, squad_f1
from chunkcore.evaluation.measures import get_measure
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conftest import shared

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


@pytest.mark.parametrize(("collection", "answered"), [("covid_qa", 597), ("qmsum", 304), ("fairytaleqa", 2273)])
def test_the_right_answers_of_real_questions_score_in_full(collection: str, answered: int) -> None:
    """Those of the collection itself, given back: 1 by both measures."""
    benchmark = load_benchmark(shared(f"data/{collection}"))
    given_back = {query.id: Answer(query.metadata["answers"][0]) for query in benchmark.queries}
    assert len(given_back) == answered
    few = 60 if collection == "qmsum" else answered  # whose answers are paragraphs
    benchmark = replace(benchmark, queries=benchmark.queries[:few])
    report = score_answers(benchmark, AnswerRun("itself", given_back), ["SquadF1", "ExactMatch"])
    for name in ("SquadF1", "ExactMatch"):
        assert report.mean(get_measure(name, 5)) == 1  # type: ignore[arg-type]
