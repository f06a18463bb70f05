"""Benchmarks, runs, scores and comparisons refuse values of wrong types with the project's errors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from chunkcore import Benchmark, Document, Evidence, Query, Retrieved, Run, Span, compare, load_benchmark, score
from chunkcore.errors import ChunkcoreError
from chunkcore.evaluation.experiment import run_experiment, run_retriever
from chunkcore.evaluation.measures import get_measure
from tests.test_wrong_values import WRONG, refused

DOCUMENT = Document("d", "One two. Three.")
EVIDENCE = Evidence("d", Span(0, 3))
QUERY = Query("q", "One?", (EVIDENCE,))
TOY = Benchmark("toy", [DOCUMENT], [QUERY])
RUN = Run("run", {})

FACES: dict[str, Callable[[Any], object]] = {
    "Evidence(document_id)": lambda value: Evidence(value, Span(0, 1)),
    "Evidence(span)": lambda value: Evidence("d", value),
    "Query(id)": lambda value: Query(value, "?", (EVIDENCE,)),
    "Query(text)": lambda value: Query("q", value, (EVIDENCE,)),
    "Query(evidence)": lambda value: Query("q", "?", value),
    "Query(metadata)": lambda value: Query("q", "?", (EVIDENCE,), metadata=value),
    "Benchmark(name)": lambda value: Benchmark(value, [DOCUMENT], [QUERY]),
    "Benchmark(documents)": lambda value: Benchmark("toy", value, [QUERY]),
    "Benchmark(queries)": lambda value: Benchmark("toy", [DOCUMENT], value),
    "Retrieved(document_id)": lambda value: Retrieved(value, ()),
    "Retrieved(spans)": lambda value: Retrieved("d", value),
    "Retrieved(score)": lambda value: Retrieved("d", (), value),
    "Retrieved(text)": lambda value: Retrieved("d", (), 0.0, value),
    "Run(name)": lambda value: Run(value, {}),
    "Run(results)": lambda value: Run("run", value),
    "score(run)": lambda value: score(value, TOY),
    "score(benchmark)": lambda value: score(RUN, value),
    "score(measures)": lambda value: score(RUN, TOY, [value]),
    "compare": compare,
    "compare(one)": lambda value: compare([value]),
    "run_retriever": lambda value: run_retriever(value, TOY),
    "run_experiment": lambda value: run_experiment(value, ["sentence"], retrievers=["bm25"]),
    "get_measure": get_measure,
    "load_benchmark": lambda value: load_benchmark(value, [{"question": "?", "evidence": ["One"]}]),
    "load_benchmark(questions)": lambda value: load_benchmark([DOCUMENT], value),
}


@pytest.mark.parametrize("face", FACES)
def test_a_wrong_value_is_refused_by_the_projects_errors(face: str) -> None:
    assert len(refused(FACES[face])) >= len(WRONG) // 2


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: Benchmark("x", ["text"], []), "one of the documents of a benchmark is a Document, got str: 'text'"),
        (lambda: Retrieved("d", (), math.nan), "the score of a Retrieved is a number, got nan"),
        (lambda: score(TOY, RUN), "what is scored on is a Benchmark, as of load_benchmark, got Run"),
        (lambda: compare([RUN]), "what is compared is a Report, as of run_experiment or score, got Run"),
        (lambda: run_retriever(3, TOY), r"a retriever is an object with retrieve\(query, k\), got int: 3"),
    ],
)
def test_the_error_says_what_is_expected(call: Callable[[], object], says: str) -> None:
    with pytest.raises(ChunkcoreError, match=says):
        call()
