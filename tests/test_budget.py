"""Strategies retrieve as many chunks as a budget of tokens takes, and are scored where it ends."""

from __future__ import annotations

import numpy as np
import pytest
from chunkcore import Benchmark, Document, Evidence, Query, Run, Span, get_chunker, run_experiment
from chunkcore.evaluation.measures import measures_at
from chunkcore.evaluation.scoring import Scorer, score

from tests.fakes import FakeEmbedder, index_of

TEXT = "".join(f"The valve {number} is red and stays shut. " for number in range(60))
BENCHMARK = Benchmark(
    "valves",
    [Document("a", TEXT), Document("b", TEXT.replace("red", "blue"))],
    [
        Query("q0", "red valve 7", (Evidence("a", Span(TEXT.index("The valve 7"), TEXT.index("The valve 9"))),)),
        Query("q1", "blue valve 41", (Evidence("b", Span(TEXT.index("The valve 41"), TEXT.index("The valve 42"))),)),
    ],
)
SPECS = ("fixed_token:counter=words,size=3", "fixed_token:counter=words,size=50", "sentence:counter=words,size=11")


@pytest.mark.parametrize("budget", [1, 40, 333])
def test_every_strategy_retrieves_the_whole_budget(budget: int) -> None:
    chunkers = [get_chunker(spec) for spec in SPECS]
    found = run_experiment(
        Scorer(BENCHMARK, counter="words"), chunkers, FakeEmbedder(), measures=measures_at([f"{budget}tok"])
    )
    for report, chunker in zip(found, chunkers, strict=True):
        assert report.retrieved_tokens[f"{budget}tok"].tolist() == [budget, budget]
        index = index_of([*chunker.chunk_many(BENCHMARK.documents)], FakeEmbedder())
        whole = Run("all", {query.id: index.retrieve(query.text, 10_000) for query in BENCHMARK.queries})
        by_hand = score(whole, BENCHMARK, [f"IoU@{budget}tok"], counter="words")
        np.testing.assert_array_equal(report.values(f"IoU@{budget}tok"), by_hand.values(f"IoU@{budget}tok"))


def test_a_budget_over_everything_retrieves_everything() -> None:
    (report,) = run_experiment(
        Scorer(BENCHMARK, counter="words"), [get_chunker(SPECS[0])], FakeEmbedder(), measures=measures_at(["99999tok"])
    )
    assert report.retrieved_tokens["99999tok"].tolist() == [2 * len(TEXT.split())] * 2
    assert report.mean("Recall@99999tok") == 1


def test_further_measures_are_scored_as_deep_as_they_say() -> None:
    measures = [*measures_at([2]), "nDCG@30", "MRR", "HitRate@80tok"]
    (report,) = run_experiment(BENCHMARK, [get_chunker(SPECS[0])], FakeEmbedder(), measures=measures)
    assert [str(measure) for measure in report.scores][-3:] == ["nDCG@30[token]", "MRR", "HitRate@80tok"]
    assert report.retrieved_tokens["80tok"].min() >= 78  # a token may be cut off at the end
    assert report.retrieved_tokens[30].min() > 80
