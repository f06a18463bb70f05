"""Sizes in the embedder's own tokens, and those that were left out."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from chunkcore import Benchmark, Document, OptionError, get_chunker, get_counter, load_benchmark, run_experiment
from chunkcore.chunkers.base import sized_options
from chunkcore.evaluation.scoring import Scorer
from chunkcore.models import CachedEmbedder
from chunkcore.models.loading import EmbedderCounter
from hypothesis import given, settings

from tests.fakes import FakeEmbedder
from tests.strategies import hard_text
from tests.test_late_chunking import FakeTokenEmbedder


def test_a_size_that_was_left_out_is_60_percent_of_what_the_model_reads_in_its_own_tokens() -> None:
    model = FakeTokenEmbedder(max_tokens=256)
    assert sized_options("recursive", {}, model) == {"size": 153, "counter": "embedder"}
    assert sized_options("cluster_semantic", {}, model) == {"size": 153, "counter": "embedder"}
    expected = {"overlap": 20, "size": 153, "counter": "embedder"}
    assert sized_options("fixed_token", {"overlap": 20}, CachedEmbedder(model)) == expected


def test_a_counter_that_was_chosen_stays_and_the_size_is_about_as_long() -> None:
    model = FakeTokenEmbedder(max_tokens=100)
    assert sized_options("recursive", {"counter": "o200k_base"}, model)["size"] == 60
    assert sized_options("recursive", {"counter": get_counter("characters")}, model)["size"] == 240
    assert sized_options("recursive", {"counter": "words"}, model) == {"counter": "words", "size": 45}
    # A model that does not tell its tokens leaves the counter as it is.
    assert sized_options("recursive", {}, FakeEmbedder(max_tokens=100)) == {"size": 60}


def test_nothing_is_added_where_nothing_was_left_out() -> None:
    model = FakeTokenEmbedder(max_tokens=256)
    assert sized_options("recursive", {"size": 10}, model) == {"size": 10}
    assert sized_options("breakpoint", {}, model) == {}  # no maximum is what it has by default
    assert sized_options("fixed_sentences", {}, model) == {}
    assert sized_options("nonesuch", {}, model) == {}
    assert sized_options("recursive", {}, FakeTokenEmbedder(max_tokens=None)) == {}


def test_a_model_of_few_tokens_gets_chunks_of_a_piece() -> None:
    assert sized_options("cluster_semantic", {}, FakeTokenEmbedder(max_tokens=40))["size"] == 50
    for piece_size in (10, "10"):  # the chunker refuses the text
        model = FakeTokenEmbedder(max_tokens=40)
        assert sized_options("cluster_semantic", {"piece_size": piece_size}, model)["size"] == 24


@given(hard_text())
@settings(deadline=None, max_examples=50)
def test_counting_many_texts_is_counting_each(text: str) -> None:
    counter = EmbedderCounter(FakeTokenEmbedder())
    begins = counter.boundaries(text)
    assert (np.diff(begins) >= 0).all()
    parts = text.split(" ")
    assert counter.count_many([*parts, text]).tolist() == [len(counter.boundaries(each)) for each in [*parts, text]]
    assert counter.count(text) == len(begins)


@given(hard_text())
@settings(deadline=None, max_examples=50)
def test_a_hard_maximum_holds_in_the_models_own_tokens(text: str) -> None:
    model = FakeTokenEmbedder(max_tokens=12)
    chunker = get_chunker("sentence", size=10, counter=EmbedderCounter(model))
    assert all(count <= 12 for count in model.count_tokens(chunker.split_text(text)).tolist())


def test_counters_of_models_are_told_apart_by_name_and_loaded_when_used() -> None:
    assert get_counter("embedder") == EmbedderCounter()
    assert get_counter("embedder:no/such-model").name == "embedder:no/such-model"  # and nothing is loaded
    assert EmbedderCounter(FakeTokenEmbedder()).name == "embedder:fake-tokens"
    assert EmbedderCounter("a") != EmbedderCounter("b")
    assert pickle.loads(pickle.dumps(get_counter("embedder:a"))) == EmbedderCounter("a")
    with pytest.raises(OptionError, match="'fake' does not give its tokens.*choose another counter"):  # noqa: RUF043
        EmbedderCounter(FakeEmbedder()).count("one")
    assert EmbedderCounter(FakeTokenEmbedder()).count_many([]).tolist() == []


@pytest.fixture
def benchmark() -> Benchmark:
    documents = [Document("a", "The fox naps under the oak. " * 30)]
    rows = [{"question": "fox", "evidence": [{"document": "a", "text": "The fox", "occurrence": 1}]}]
    return load_benchmark(documents, rows, name="fox")


def test_a_run_counts_the_tokens_of_its_own_embedder_and_says_so(benchmark: Benchmark) -> None:
    model = FakeTokenEmbedder(max_tokens=20)
    (report,) = run_experiment(
        Scorer(benchmark, counter="words"), [get_chunker("fixed_token:counter=embedder,size=12")], model
    )
    assert report.name == "fixed_token:counter=embedder,size=12"
    assert report.chunks is not None
    assert report.chunks.truncated == 0
    assert report.chunks.count == 18  # 210 tokens of this model in twelves


def test_a_run_shares_its_embedder_with_semantic_overlap(benchmark: Benchmark) -> None:
    model = FakeTokenEmbedder(max_tokens=None)
    (report,) = run_experiment(
        Scorer(benchmark, counter="words"), [get_chunker("fixed_sentences:sentences=2,overlap=semantic:-1")], model
    )
    assert report.chunks is not None
    assert report.chunks.tokens.tolist() == [12] + [18] * 14
