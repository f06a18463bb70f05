"""Measures are values with names that can be read back; a report keeps every query's score."""

from __future__ import annotations

import doctest
import json
import math
import re
from pathlib import Path
from typing import Any, get_args
from unittest.mock import patch

import numpy as np
import pytest
from chunkcore import Benchmark, DataError, Document, Evidence, OptionError, Query, Retrieved, Run, Span, compare, score
from chunkcore.evaluation.measures import RetrievalMeasure, Unit, get_measure, known_measures, measures, parse_depth
from chunkcore.evaluation.results import ChunkStatistics, Report
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.plugins import install

_DEPTHS = st.none() | st.just("min") | st.integers(1, 10**9 - 1) | st.integers(1, 10**9 - 1).map("{}tok".format)


@given(st.sampled_from([each.kind for each in known_measures()]), _DEPTHS, st.sampled_from(get_args(Unit)))
def test_reading_is_the_inverse_of_writing(name: Any, k: Any, unit: Any) -> None:
    try:
        measure = get_measure(name, k, unit)
    except OptionError:
        assume(False)
    assert get_measure(str(measure)) == measure
    if measure.k is not None:
        assert parse_depth(str(measure.k)) == measure.k


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("Recal@10", "unknown measure 'Recal': chunkcore list measures shows all"),
        ("NDCG@10", "unknown measure 'NDCG@10': did you mean nDCG@10[document], of whole documents, or"),
        ("ndcg_cut_10", "did you mean nDCG@10[document]"),
        ("R@5", "did you mean Recall@5[document], of whole documents, or Recall@5, of tokens?"),
        ("P@5", "did you mean Precision@5[document], of whole documents, or Precision@5, of tokens?"),
        ("AP", "did you mean MAP[document], of whole documents, or MAP, of tokens?"),
        ("Recall", 'Recall needs k, a whole number from 1 to 999,999,999, "min", or a budget of tokens like "4096tok"'),
        ("Recall@0tok", "got k='0tok'"),
        (
            "ChunkPrecision@5[document]",
            "ChunkPrecision does not count 'document': expected one of token, character, sentence",
        ),
        ("Recall@0", "got k=0"),
        ("Recall@-5", "is no measure: expected something like Recall@5"),
        ("PrecisionOmega@5", "takes no k, got k=5"),
        ("Recall@5[word]", "Recall does not count 'word': expected one of token, character, sentence, document"),
        (5, "5 is no measure"),
    ],
)
def test_what_is_no_measure_is_refused_by_name(written: Any, message: str) -> None:
    with pytest.raises(OptionError) as caught:
        get_measure(written)
    assert message in str(caught.value)


def test_an_equal_budget_is_judged_by_first() -> None:
    toy = Benchmark("toy", [Document("one", "aaaa")], [Query("q", "?", (Evidence("one", Span(0, 4)),))])
    report = score(Run("r", {}), toy)
    assert str(next(iter(report.scores))) == "Recall@1000tok"
    assert str(compare([report]).measure) == "Recall@1000tok"


def test_ndcg_of_tokens_is_told_apart_from_that_of_documents() -> None:
    assert str(get_measure("nDCG@10")) == "nDCG@10[token]"
    assert get_measure("nDCG@10") == get_measure("nDCG@10[token]") != get_measure("nDCG@10[document]")


def test_all_evidence_needs_every_piece_whole() -> None:
    """Three pieces of evidence: "aaaa", "bb" and, in another document, "cc"."""
    documents = [Document("one", "aaaa bb"), Document("two", "cc dd")]
    evidence = (Evidence("one", Span(0, 4)), Evidence("one", Span(5, 7)), Evidence("two", Span(0, 2)))
    toy = Benchmark("toy", documents, [Query("q", "?", evidence), Query("r", "?", evidence[2:])])

    def both(*spans: tuple[str, int, int]) -> list[float]:
        hits = [Retrieved(name, (Span(start, end),)) for name, start, end in spans]
        report = score(Run("r", {"q": hits, "r": hits}), toy, ["AllEvidence@5[character]", "AllEvidence@9tok"])
        assert report.values("AllEvidence@9tok").tolist() == report.values("AllEvidence@5[character]").tolist()
        return report.values("AllEvidence@5[character]").tolist()

    assert both(("one", 0, 7), ("two", 0, 5)) == [1, 1]
    assert both(("one", 0, 4), ("two", 0, 5)) == [0, 1]  # "bb" is missing
    assert both(("one", 0, 4), ("two", 0, 2), ("one", 4, 7)) == [1, 1]  # two chunks together
    assert both(("one", 0, 7), ("two", 3, 5)) == [0, 0]


RECALL, OMEGA = get_measure("Recall", 5), get_measure("PrecisionOmega")
REPORT = Report(
    name="mine",
    benchmark="toy",
    query_ids=("q1", "q2", "q3"),
    collections=("b", "a", "b"),
    scores={RECALL: np.array([1.0, 0.5, 0.0]), OMEGA: np.array([0.25, math.nan, 0.75])},
    retrieved_tokens={5: np.array([10.0, 20.0, 60.0]), "min": np.array([math.nan] * 3)},
    found={5: ((1.0,), (0.5, math.nan), (0.0,))},
    located={"exact": 3},
    unanswered=("q3",),
    chunks=ChunkStatistics(np.array([3, 1, 8]), truncated=1, tokens_lost=4),
    seconds={"score": 0.5},
    min_rule="touching",
    counter="words",
)


def test_aggregates_by_collection_are_in_alphabetical_order() -> None:
    assert list(REPORT.by_collection(RECALL).items()) == [("a", (0.5, 0.0, 1)), ("b", (0.5, 0.5, 2))]
    assert str(REPORT.by_collection(OMEGA)["a"]) == "(nan, nan, 0)"


def test_a_report_survives_json() -> None:
    written = json.dumps(REPORT.to_dict(), allow_nan=False)
    again = Report.from_dict(json.loads(written))
    assert json.dumps(again.to_dict(), allow_nan=False) == written
    np.testing.assert_array_equal(again.values(OMEGA), REPORT.values(OMEGA))
    assert (list(again.scores), list(again.retrieved_tokens)) == (list(REPORT.scores), [5, "min"])
    assert math.isnan(again.found[5][1][1])
    assert getattr(again.chunks, "tokens_lost", None) == 4


BROKEN = {"scores": {"x": []}, "bounds": {str(RECALL): "1"}, "found": {"5": [{}]}, "system": {"embedder": 5}}


@pytest.mark.parametrize("broken", [{}, {"name": "x"}, [], *({**REPORT.to_dict(), key: BROKEN[key]} for key in BROKEN)])
def test_what_is_no_report_is_refused(broken: Any) -> None:
    with pytest.raises(DataError, match=r"no report that Report.to_dict wrote"):
        Report.from_dict(broken)


@patch.dict(measures.entries)
def test_the_measure_of_the_contributors_page_is_found_and_scored(tmp_path, monkeypatch):
    page = (Path(__file__).resolve().parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    [program] = re.findall(r"^```python\n([^`]*`Found`.*?)^```", page, flags=re.MULTILINE | re.DOTALL)
    assert len(program.splitlines()) < 30
    install(tmp_path, "my-found", "chunkcore.measures", "Found = my_found:Found", my_found=program)
    monkeypatch.syspath_prepend(str(tmp_path))
    story = Document("fox.txt", "The quick fox naps.")
    toy = Benchmark("toy", [story], [Query("q", "Who?", (Evidence("fox.txt", Span(4, 13)),))])
    runs = [Run("r", {"q": [Retrieved("fox.txt", (Span(4, end),))]}) for end in (13, 9)]
    assert [score(run, toy, ["Found@5"]).mean("Found@5") for run in runs] == [1, 0]
    assert get_measure("Found@5").meaning == "The share of questions for which all of the evidence was retrieved."


def test_the_reference_page_has_every_measure_of_retrieval() -> None:
    page = (Path(__file__).resolve().parents[1] / "docs" / "reference" / "measures.md").read_text(encoding="utf-8")
    kinds = [each.kind for each in known_measures() if issubclass(each, RetrievalMeasure)]
    assert len(kinds) == 13
    missing = [kind for kind in kinds if not re.search(rf"`{kind}(@\w+)?`", page)]
    assert not missing
    assert all(each.meaning and each.title for each in known_measures())


def test_the_examples_of_the_reference_page_hold() -> None:
    page = Path(__file__).resolve().parents[1] / "docs" / "reference" / "measures.md"
    found = doctest.testfile(str(page), module_relative=False, encoding="utf-8")
    assert found.attempted > 10
    assert found.failed == 0


def test_evidence_in_no_chunk_counts_in_the_released_codes_precision_omega() -> None:
    document = Document("d", "abcdefghij")
    asked = Benchmark("b", [document], [Query("q", "?", (Evidence("d", Span(0, 10)),))])
    pool = [Retrieved("d", (Span(0, 5),))]
    names = ("PrecisionOmega[character]", "PrecisionOmegaReleased[character]")
    report = score(Run("r", {"q": []}, pool=pool), asked, names)
    assert [report.mean(name) for name in names] == [1.0, 0.5]
