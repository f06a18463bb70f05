"""Measures of documents are trec_eval's, run by pytrec_eval, on any run and any judgements."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from chunkcore import Benchmark, Document, Evidence, Query, Retrieved, Run, Span, score
from hypothesis import example, given
from hypothesis import strategies as st

pytrec_eval: Any = pytest.importorskip("pytrec_eval", reason="pytrec_eval-terrier, which runs trec_eval, is missing")
pytestmark = pytest.mark.peers

DOCUMENTS = [Document(f"d{number}", f"Document {number}.") for number in range(30)]
NUMBERS = range(len(DOCUMENTS))
# Ours and trec_eval's name for it. Its precision is over k, whatever was retrieved; ours over what was retrieved,
# which is the same where k documents were.
SAME = {
    "MRR[document]": "recip_rank",
    "MAP[document]": "map",
    "nDCG[document]": "ndcg",
    **{
        f"{ours}@{k}[document]": f"{theirs}_{k}"
        for k in (1, 3, 10)
        for ours, theirs in (("MAP", "map_cut"), ("nDCG", "ndcg_cut"), ("Recall", "recall"), ("HitRate", "success"))
    },
}
ALL = {"Recall@30[document]": "set_recall", "Precision@30[document]": "set_P", "F1@30[document]": "set_F"}

Judged = list[tuple[set[int], list[int]]]
_numbers = st.sampled_from(NUMBERS)
_rankings = st.lists(_numbers, unique=True, min_size=1, max_size=30)
_judged = st.lists(st.tuples(st.sets(_numbers, min_size=1, max_size=12), _rankings), min_size=1, max_size=4)


def theirs(judged: Judged) -> dict[str, dict[str, float]]:
    qrels = {f"q{i}": {f"d{number}": 1 for number in relevant} for i, (relevant, _) in enumerate(judged)}
    runs = {f"q{i}": {f"d{n}": -float(rank) for rank, n in enumerate(found)} for i, (_, found) in enumerate(judged)}
    cuts = {"map_cut.1,3,10", "ndcg_cut.1,3,10", "recall.1,3,10", "success.1,3,10", "P.1,3,10"}
    names = {"recip_rank", "map", "ndcg", "set_recall", "set_P", "set_F", *cuts}
    return dict(pytrec_eval.RelevanceEvaluator(qrels, names).evaluate(runs))


def benchmark(judged: Judged) -> Benchmark:
    queries = [
        Query(f"q{i}", "?", tuple(Evidence(f"d{number}", Span(0, 8)) for number in sorted(relevant)))
        for i, (relevant, _) in enumerate(judged)
    ]
    return Benchmark("random", DOCUMENTS, queries)


@given(_judged)
@example([({1, 2, 3}, [5, 1, 9, 2])])
def test_documents_are_scored_as_trec_eval_does(judged: Judged) -> None:
    results = {f"q{i}": [Retrieved(f"d{n}", ()) for n in found] for i, (_, found) in enumerate(judged)}
    precise = {f"Precision@{k}[document]": f"P_{k}" for k in (1, 3, 10) if all(len(found) >= k for _, found in judged)}
    names = SAME | ALL | precise
    report = score(Run("r", results), benchmark(judged), names, counter="characters")
    expected = theirs(judged)
    for ours, name in names.items():
        np.testing.assert_allclose(
            report.values(ours), [expected[query][name] for query in report.query_ids], err_msg=ours
        )


@given(_judged, st.randoms(use_true_random=False))
def test_chunks_are_ranked_by_the_document_that_they_are_of(judged: Judged, random: Any) -> None:
    """More chunks of documents that came up already change no measure of documents."""
    results = {}
    for i, (_, found) in enumerate(judged):
        ranking: list[Retrieved] = []
        for place, number in enumerate(found):
            ranking.append(Retrieved(f"d{number}", (Span(2, 6),)))
            again = random.choices(found[: place + 1], k=random.randrange(3))
            ranking += [Retrieved(f"d{earlier}", (Span(random.randrange(5), 9),)) for earlier in again]
        results[f"q{i}"] = ranking
    names = {ours: name for ours, name in SAME.items() if "@" not in ours}
    report = score(Run("r", results), benchmark(judged), names, counter="characters")
    expected = theirs(judged)
    for ours, name in names.items():
        np.testing.assert_allclose(
            report.values(ours), [expected[query][name] for query in report.query_ids], err_msg=ours
        )
