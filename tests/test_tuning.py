"""Tuning: grids, folds by document, a choice that its own questions do not flatter, and what page and command show."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from chunkcore import ChunkcoreError, DataError, OptionError, Report, compare, get_measure, load_dataset, tune
from chunkcore.cli import main
from chunkcore.evaluation.benchmarks.benchmark import Benchmark, Evidence, Query
from chunkcore.study.tuning import (
    DEFAULT_CHUNKERS,
    DEFAULT_RETRIEVERS,
    TuneOptions,
    assign_folds,
    default_configuration,
    expand_grid,
    hold_out,
    plan,
)
from chunkcore.text import Document, Span
from hypothesis import given
from hypothesis import strategies as st
from integration_tests.benchmarks.tuning_simulation import advises_another

from tests.fakes import RaisingEmbedder

ANIMALS = ("fox", "dog", "owl", "cat", "elk", "bee")
FAST = TuneOptions(resamples=200)


def make_benchmark(sentences: int = 12, animals: tuple[str, ...] = ANIMALS) -> Benchmark:
    """A document an animal with two questions each, about sentences that only their documents have."""
    documents, queries = [], []
    for animal in animals:
        lines = [f"The {animal} number {i} has a {animal} house with {i * 7} rooms." for i in range(sentences)]
        text = "\n".join(lines)
        documents.append(Document(animal, text))
        for i in (2, 9):
            start = text.index(lines[i])
            span = Span(start, start + len(lines[i]))
            question = f"How many rooms has the {animal} number {i}?"
            queries.append(Query(f"{animal}-{i}", question, (Evidence(animal, span),)))
    return Benchmark("animals", documents, queries)


GRIDS = {"sentence": 1, "recursive:size={50, 100},overlap={0,20}": 4, "passages:lexical,words={whole,first5}": 2}
GRIDS |= {'recursive:separators=["{a,b}"],size={50,60}': 2, "hybrid+window:{1,2}": 1}


@pytest.mark.parametrize(("grid", "count"), GRIDS.items())
def test_values_in_braces_make_a_grid(grid: str, count: int) -> None:
    specs = expand_grid(grid)
    assert len(specs) == len(set(specs)) == count


@pytest.mark.parametrize("grid", ["recursive:size={}", "recursive:size={50,,60}", "recursive:size={50,", "a=={"])
def test_a_broken_grid_is_an_error_of_the_project(grid: str) -> None:
    with pytest.raises(ChunkcoreError):
        plan([grid], ["bm25"], FAST)


def test_a_large_grid_is_refused_before_anything_is_built() -> None:
    with pytest.raises(OptionError, match="20,000 configurations: narrow it to 10,000"):
        expand_grid(f"recursive:size={{{','.join(map(str, range(20_000)))}}}")


def test_the_plan_has_the_default_first_and_each_configuration_once() -> None:
    default, configurations = plan(["recursive:size={100,200}", "recursive:size=100"], ["bm25", "bm25"], FAST)
    assert configurations[0] == default == default_configuration("bm25")
    assert [each.chunker for each in configurations] == ["recursive:size=200", "recursive:size=100"]
    named = TuneOptions(default="sentence:size=50", default_retriever="bm25:k1=2.0")
    assert plan("recursive", "bm25", named)[0].name == "sentence:size=50 · bm25:k1=2.0"


def test_by_default_three_balances_of_passages_are_tried_beside_the_default() -> None:
    default, configurations = plan(DEFAULT_CHUNKERS, DEFAULT_RETRIEVERS, FAST)
    assert default.name == "sentence:size=50 · passages"
    with_default = [item.retriever for item in configurations if item.chunker == default.chunker]
    assert with_default == ["passages", *(f"passages:balance={share}" for share in (0.3, 0.5, 0.9)), "hybrid"]


def test_so_many_random_draws_are_of_the_grid_and_follow_the_seed() -> None:
    grid = "recursive:size={10,20,30,40,50,60,70,80,90}"

    def drawn(seed: int) -> list[str]:
        return [each.name for each in plan(grid, "bm25", TuneOptions(draws=3, seed=seed))[1]]

    assert len(drawn(0)) == 4  # with the default
    assert drawn(0) == drawn(0)
    assert len({tuple(drawn(seed)) for seed in range(5)}) > 1


def benchmark_of(sizes: list[int]) -> Benchmark:
    """Documents with so many questions each."""
    documents = [Document(f"d{n}", "One fox naps.") for n in range(len(sizes))]
    queries = [
        Query(f"q{n}-{i}", "Who?", (Evidence(f"d{n}", Span(0, 3)),))
        for n, size in enumerate(sizes)
        for i in range(size)
    ]
    return Benchmark("b", documents, queries)


@given(st.lists(st.integers(1, 6), min_size=2, max_size=12), st.integers(2, 6), st.integers(0, 3))
def test_folds_keep_a_documents_questions_together_and_none_is_empty(sizes: list[int], folds: int, seed: int) -> None:
    fold_of, clusters = assign_folds(benchmark_of(sizes), TuneOptions(folds=folds, seed=seed, by="document"))
    assert set(fold_of.tolist()) == set(range(min(folds, len(sizes))))
    assert clusters is not None
    folds_of: dict[str, set[int]] = {}
    for document, fold in zip(clusters, fold_of.tolist(), strict=True):
        folds_of.setdefault(document, set()).add(fold)
    assert all(len(each) == 1 for each in folds_of.values())


@pytest.mark.parametrize(("sizes", "by"), [([2] * 6, "document"), ([2] * 5, "question"), ([1] * 9, "question")])
def test_questions_are_split_as_compare_resamples_them(sizes: list[int], by: str) -> None:
    benchmark = benchmark_of(sizes)
    _, clusters = assign_folds(benchmark, FAST)
    assert (clusters is not None) == (by == "document")
    ids, documents = zip(*((query.id, query.evidence[0].document_id) for query in benchmark.queries), strict=True)
    values = {get_measure("Recall@5"): np.ones(len(ids))}
    report = Report("a", "b", ids, ("",) * len(ids), values, documents=documents)
    assert compare([report], resamples=100).by == by


def test_no_question_chooses_its_own_configuration() -> None:
    """Of pure noise, the highest mean is far over the truth, and the held-out mean is not."""
    draw = np.random.default_rng(0)
    highest, held_out = [], []
    for _ in range(200):
        scores = draw.random((60, 40))
        held, _ = hold_out(scores, np.arange(60) % 5)
        highest.append(scores.mean(axis=0).max())
        held_out.append(held.mean())
    assert np.mean(highest) > 0.56
    assert abs(np.mean(held_out) - 0.5) < 0.01


@pytest.mark.parametrize(("documents", "each"), [(40, 1), (12, 4)])
def test_where_nothing_is_better_another_than_the_default_is_seldom_advised(documents: int, each: int) -> None:
    draw = np.random.default_rng(1)
    wrong = sum(advises_another(draw, documents, each, better=0.0) for _ in range(80))
    assert wrong <= 80 * 0.05 + 3 * (80 * 0.05 * 0.95) ** 0.5


def test_a_gain_on_held_out_questions_is_used() -> None:
    lochmere = load_dataset("lochmere")
    drawn = np.sort(np.random.default_rng(0).permutation(90)[:45])
    benchmark = replace(lochmere, queries=[lochmere.queries[number] for number in drawn])
    found = tune(benchmark, "recursive:size={50,400}", retrievers=["bm25", "passages:lexical"], options=FAST)
    assert found.default == "recursive:size=200 · bm25"
    assert len(found.reports) == 5
    assert found.gain
    assert found.use == found.winner == "recursive:size=50 · passages:lexical"
    low, high = found.comparison.intervals["the choice"]
    assert low < found.held_out.mean("Recall@1000tok") < high
    assert {found.winner} <= set(found.choices) <= {report.name for report in found.reports}
    assert found.use in found.verdict


def test_a_configuration_that_cannot_run_is_a_failure_with_its_reason() -> None:
    options = {"retrievers": "{bm25,dense}", "options": FAST}
    for chunker, failing in (("sentence", ["dense"]), ("breakpoint", ["bm25", "dense"])):
        found = tune(make_benchmark(), ["recursive:size=60", chunker], RaisingEmbedder(), **options)
        assert [name for name in found.failures if name.startswith(chunker)] == [f"{chunker} · {it}" for it in failing]
    with pytest.raises(DataError, match="no configuration besides the default was scored"):
        tune(make_benchmark(), "breakpoint", RaisingEmbedder(), retrievers="bm25", options=FAST)


def test_one_question_cannot_choose() -> None:
    one = make_benchmark(animals=("fox",))
    with pytest.raises(DataError, match="two questions"):
        tune(Benchmark("b", one.documents, one.queries[:1]), "sentence", retrievers="bm25", options=FAST)
    with pytest.raises(OptionError, match="expected a Benchmark, got list"):
        tune(one.documents, "sentence")  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [{"folds": 1}, {"by": "page"}, {"measure": "SquadF1"}, {"draws": -1}])
def test_wrong_options_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(OptionError):
        TuneOptions(**wrong)  # type: ignore[arg-type]


def test_the_command_says_what_to_use_and_writes_the_page(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    arguments = ["tune", "-s", "recursive:size={50,200}", "-r", "bm25", "-r", "passages:lexical"]
    assert main([*arguments, "--resamples", "200", "--folds", "3", "-o", str(tmp_path)]) == 0
    out = " ".join(capfd.readouterr().out.split())
    assert "lead over the default" in out
    data = json.loads((tmp_path / "report.json").read_text())["tuning"]
    assert data["use"] in out
    assert len(data["configurations"]["score"]) == 4
    page = (tmp_path / "report.html").read_text("utf-8")
    assert 'href="#tuning"' in page
    assert re.search(r"chosen \d of 3 times", page)
    assert data["verdict"] in (tmp_path / "report.md").read_text("utf-8").replace("\\", "")


def test_a_dry_run_lists_the_configurations(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["tune", "-s", "fixed_token:size={9,20}", "-r", "bm25", "--dry-run"]) == 0
    lines = capfd.readouterr().out.splitlines()
    assert lines[:3] == [
        f"{spec} · bm25" for spec in ("recursive:size=200", "fixed_token:size=9", "fixed_token:size=20")
    ]
    assert lines[-1] == "3 configurations, 90 questions"
