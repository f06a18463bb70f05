"""Measures are values with names that can be read back; a report keeps every query's score."""

from __future__ import annotations

import json
import math
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from chunkcore.errors import DataError, OptionError
from chunkcore.evaluation.measures import Measure, Unit, get_measure, known_measures, measures_at, parse_depth
from chunkcore.evaluation.results import ChunkStatistics, Report


@pytest.mark.parametrize(
    ("measure", "written"),
    [
        (get_measure("Recall", 5), "Recall@5"),
        (get_measure("IoU", "min"), "IoU@min"),
        (get_measure("F1", 10, "character"), "F1@10[character]"),
        (get_measure("PrecisionOmega"), "PrecisionOmega"),
        (get_measure("PrecisionOmega", unit="character"), "PrecisionOmega[character]"),
        (get_measure("IoU", "4096tok"), "IoU@4096tok"),
        (get_measure("nDCG", 10, "document"), "nDCG@10[document]"),
        (get_measure("MRR"), "MRR"),
        (get_measure("MAP", None, "sentence"), "MAP[sentence]"),
        (get_measure("ChunkPrecision", "min"), "ChunkPrecision@min"),
    ],
)
def test_a_measure_is_written_and_read_back(measure: Measure, written: str) -> None:
    assert str(measure) == written
    assert get_measure(written) == measure


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


def test_measures_of_documents_leave_out_what_documents_have_not() -> None:
    assert [str(measure) for measure in measures_at(["1000tok"], ["document"])] == [
        "Recall@1000tok[document]",
        "Precision@1000tok[document]",
        "IoU@1000tok[document]",
        "F1@1000tok[document]",
    ]


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("NDCG@10", "unknown measure 'NDCG': expected one of Accuracy, AnswerCosine, BertScore"),
        ("Recall", 'Recall needs k, a whole number from 1 to 999,999,999, "min", or a budget of tokens like "4096tok"'),
        ("DCG", "DCG needs k, a whole number"),
        ("HitRate", "HitRate needs k, a whole number"),
        ("Recall@0tok", "got k='0tok'"),
        ("Recall@05tok", "got k='05tok'"),
        ("Recall@4096tokens", "got k='4096tokens'"),
        (
            "ChunkPrecision@5[document]",
            "ChunkPrecision does not count documents: expected one of token, character, sentence, part",
        ),
        ("PrecisionOmega[document]", "PrecisionOmega does not count documents"),
        ("Recall@0", "got k=0"),
        ("Recall@all", "got k='all'"),
        ("Recall@-5", "is no measure: expected something like Recall@5"),
        ("PrecisionOmega@5", "takes no k, got k=5"),
        ("Recall@5[word]", "unknown unit 'word' of Recall: expected one of token, character, sentence, document"),
        ("", "'' is no measure"),
        (5, "5 is no measure"),
    ],
)
def test_what_is_no_measure_is_refused_by_name(written: Any, message: str) -> None:
    with pytest.raises(OptionError) as caught:
        get_measure(written)
    assert message in str(caught.value)


def test_the_usual_measures_are_those_of_the_issue() -> None:
    names = [str(measure) for measure in measures_at()]
    assert len(names) == len(set(names)) == 2 * (3 * 4 + 1)
    assert {"Recall@5", "Precision@10", "IoU@min[character]", "F1@5", "PrecisionOmega[character]"} <= set(names)


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
)


def test_aggregates_leave_undefined_scores_out() -> None:
    assert (REPORT.mean(RECALL), REPORT.std("Recall@5")) == (0.5, pytest.approx(math.sqrt(1 / 6)))
    assert (REPORT.mean(OMEGA), REPORT.std(OMEGA)) == (0.5, 0.25)
    assert REPORT.mean_tokens(5) == 30
    assert math.isnan(REPORT.mean_tokens("min"))
    assert math.isnan(REPORT.mean_tokens(10))


def test_aggregates_by_collection_are_in_alphabetical_order() -> None:
    assert list(REPORT.by_collection(RECALL).items()) == [("a", (0.5, 0.0, 1)), ("b", (0.5, 0.5, 2))]
    mean, std, count = REPORT.by_collection(OMEGA)["a"]
    assert math.isnan(mean)
    assert math.isnan(std)
    assert count == 0


def test_a_measure_that_was_not_evaluated_is_named() -> None:
    with pytest.raises(
        OptionError, match="mine was not evaluated with IoU@5: expected one of Recall@5, PrecisionOmega"
    ):
        REPORT.mean("IoU@5")


def test_chunk_statistics() -> None:
    chunks = REPORT.chunks
    assert chunks is not None
    assert (chunks.count, chunks.total, chunks.mean, chunks.median) == (3, 12, 4.0, 3.0)
    assert (chunks.minimum, chunks.maximum, chunks.std) == (1, 8, pytest.approx(math.sqrt(26 / 3)))
    none = ChunkStatistics(np.array([], dtype=np.int64))
    assert (none.count, none.total, none.minimum, none.maximum) == (0, 0, 0, 0)
    assert math.isnan(none.mean)


def test_a_report_survives_json() -> None:
    written = json.dumps(REPORT.to_dict(), allow_nan=False)
    again = Report.from_dict(json.loads(written))
    assert json.dumps(again.to_dict(), allow_nan=False) == written
    assert again.scores.keys() == REPORT.scores.keys()
    np.testing.assert_array_equal(again.values(OMEGA), REPORT.values(OMEGA))
    assert list(again.retrieved_tokens) == [5, "min"]
    assert math.isnan(again.found[5][1][1])
    assert again.chunks is not None
    assert again.chunks.tokens_lost == 4


@pytest.mark.parametrize("broken", [{}, {"name": "x"}, [], {**REPORT.to_dict(), "scores": {"x": []}}])
def test_what_is_no_report_is_refused(broken: Any) -> None:
    with pytest.raises(DataError, match=r"no report that Report.to_dict wrote"):
        Report.from_dict(broken)
