"""A comparison whose chunks are embedded and searched by two Ray workers: the scores of one process."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ray = pytest.importorskip("ray", reason="ray is not installed: make test-engines")

from chunkadapters.ray import RayMap  # noqa: E402
from chunkcore import get_chunker, load_dataset, run_experiment  # noqa: E402
from chunkcore.errors import ModelError, OptionError  # noqa: E402
from chunkcore.evaluation.measures import measures_at  # noqa: E402
from chunkcore.retrieval import Passages, Sharded, TextVectors, chunk_corpus  # noqa: E402
from tests.fakes import FakeEmbedder, NanEmbedder  # noqa: E402


@pytest.fixture(scope="module", autouse=True)
def _cluster() -> Iterator[None]:
    ray.init(num_cpus=2, include_dashboard=False, object_store_memory=100_000_000, logging_level="error")
    yield
    ray.shutdown()


def reports(model: Any, *methods: Any) -> list[dict[str, Any]]:
    chunkers = [get_chunker("recursive:size=60,counter=words")]
    made = run_experiment(
        load_dataset("lochmere"), chunkers, model, measures=measures_at((5, "200tok")), retrievers=methods
    )
    plain = [report.to_dict() for report in made]
    for each in plain:
        each["cost"]["seconds"] = each["seconds"] = 0
    return plain


def test_two_workers_find_what_one_process_finds(tmp_path: Path) -> None:
    model = FakeEmbedder()
    method = Sharded(mapper=RayMap(in_flight=3, options={"num_cpus": 1}), folder=tmp_path, size=40)
    assert reports(model, method) == reports(FakeEmbedder(), "dense")
    questions = {query.text for query in load_dataset("lochmere").queries}
    assert set(model.texts) == questions, "chunks are embedded by the workers"


def test_two_workers_find_the_passages_that_one_process_finds(tmp_path: Path) -> None:
    benchmark = load_dataset("lochmere")
    corpus = chunk_corpus(benchmark.documents, get_chunker("sentence:size=50"))
    questions = [query.text for query in benchmark.queries][:20]
    method = Sharded(method=Passages(), mapper=RayMap(in_flight=3, options={"num_cpus": 1}), folder=tmp_path, size=60)
    found, expected = (
        each.index(corpus, TextVectors(FakeEmbedder())).answers(questions, None, 500) for each in (method, Passages())
    )
    assert [[piece.spans for piece in own] for own in found] == [[piece.spans for piece in own] for own in expected]


def test_answers_come_as_they_are_done_and_items_are_taken_as_there_is_room() -> None:
    taken: list[int] = []

    def items() -> Iterator[int]:
        for number in range(20):
            taken.append(number)
            yield number

    answers, most = [], 0
    for number, pid in RayMap(in_flight=3)(lambda item: (item, os.getpid()), items()):
        most = max(most, len(taken) - len(answers))
        answers.append(number)
        assert pid != os.getpid()
    assert sorted(answers) == list(range(20))
    assert most <= 5, "whoever asks holds few items"


def test_a_workers_error_is_the_error(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="NaN or infinity"):
        reports(NanEmbedder(), Sharded(mapper=RayMap(), folder=tmp_path))
    with pytest.raises(OptionError, match="in_flight is at least 1"):
        RayMap(in_flight=0)
