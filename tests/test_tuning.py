"""Tuning: spaces that hold only what can be built, honest scores, and studies that go on where they were stopped."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from textwrap import indent
from types import SimpleNamespace
from zlib import crc32

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chunkcore.chunkers import Sentence, get_chunker, strategies
from chunkcore.cli import main
from chunkcore.document import Document, Span
from chunkcore.errors import DataError, ModelError, OptionError, SizeError
from chunkcore.evaluation.benchmarks.benchmark import Benchmark, Evidence, Query
from chunkcore.tokens import TokenizedText
from chunkcore.tuning import Branch, Range, Space, TuneOptions, Values, default_space, known_space, snippets, tune
from chunkcore.tuning.choosing import Outcomes, Spread, choose, hold_out, rechosen
from chunkcore.tuning.result import pareto_trials
from chunkcore.tuning.space import load_space, usual_spaces
from chunkcore.tuning.trials import Trial, assign_folds
from chunkcore.tuning.tuner import Proposal, Seen, propose
from tests.fakes import FakeEmbedder, FakeLLM, RaisingEmbedder
from tests.processes import started, wait_for

pytest.importorskip("optuna")

ROOT = Path(__file__).resolve().parents[1]
ANIMALS = ("fox", "dog", "owl", "cat", "elk", "bee")
LLM_STRATEGIES = ("agentic", "contextual", "llm_semantic", "lumber", "propositions")


def make_benchmark(sentences: int = 12) -> Benchmark:
    """Six documents with two questions each, about sentences that only their documents have."""
    documents, queries = [], []
    for animal in ANIMALS:
        lines = [
            f"The {animal} number {i} has a {animal} house with {i * 7} rooms and a door." for i in range(sentences)
        ]
        text = "\n".join(lines)
        documents.append(Document(animal, text))
        for i in (2, 9):
            start = text.index(lines[i])
            span = Span(start, start + len(lines[i]))
            queries.append(
                Query(f"{animal}-{i}", f"How many rooms has the {animal} number {i}?", (Evidence(animal, span),))
            )
    return Benchmark("animals", documents, queries)


SMALL = Space(
    branches=(
        Branch(
            strategy="recursive",
            parameters={
                "size": Values(values=(10, 20, 40, 60, 80)),
                "overlap": Values(values=(0, 0.25, 0.5), share_of="size"),
            },
        ),
        Branch(strategy="sentence", parameters={"size": Values(values=(30, 40, 60, 80))}),
    )
)
EMBEDDER_NAMES = ("name", "fingerprint", "max_tokens", "embed_documents", "embed_queries")
OPTIONS = TuneOptions(trials=9, folds=3, measure="Recall@60tok", resamples=200)


def run(space=SMALL, embedder=None, benchmark=None, study=None, **options):
    chosen = TuneOptions(**{**{"trials": 9, "folds": 3, "measure": "Recall@60tok", "resamples": 200}, **options})
    return tune(benchmark or make_benchmark(), space, embedder or FakeEmbedder(), options=chosen, study=study)


# ---- what is searched


def test_every_strategy_has_a_row_and_no_row_is_of_another() -> None:
    own = {name for name, cls in strategies.items() if cls.__module__.startswith("chunkcore.")}
    assert set(usual_spaces()) == own


@pytest.mark.parametrize("name", sorted(usual_spaces()))
def test_whatever_is_drawn_from_a_row_can_be_built(name: str) -> None:
    llm = ":llm=openai:any@http://localhost:1/v1" if name in LLM_STRATEGIES else ""
    space = known_space(name + llm)
    for branch in space.branches:
        chance = np.random.default_rng(7)
        for _ in range(60):
            drawn = {option: int(chance.integers(0, len(each.values))) for option, each in branch.parameters.items()}
            chunker = get_chunker(branch.spec(drawn))
            assert chunker.name == name


@pytest.mark.parametrize(
    "name", sorted(set(usual_spaces()) - set(LLM_STRATEGIES) - {"breakpoint", "kamradt", "contextual"})
)
def test_a_strategys_defaults_are_in_its_row_so_that_they_are_tried(name: str) -> None:
    (branch,) = known_space(name).branches
    drawn = branch.default()
    assert drawn is not None
    assert get_chunker(branch.spec(drawn)) == get_chunker(name)


def test_the_usual_space_asks_no_language_model() -> None:
    assert not {branch.strategy for branch in default_space().branches} & set(LLM_STRATEGIES)


def test_an_option_that_is_stated_is_not_searched() -> None:
    (branch,) = known_space("recursive:keep=end,regex=false").branches
    assert branch.parameters["keep"] == Values(values=("end",))
    assert branch.options({"size": 0, "overlap": 0, "keep": 0, "regex": 0})["regex"] is False


def test_a_stated_threshold_leaves_only_the_branch_with_amounts_for_it() -> None:
    (branch,) = known_space("breakpoint:threshold=distance").branches
    assert max(branch.parameters["amount"].values) < 1
    with pytest.raises(OptionError, match="write a file"):
        known_space("breakpoint:threshold=gradient")


def test_a_language_model_has_to_be_named() -> None:
    with pytest.raises(OptionError, match="llm names the model to ask"):
        known_space("llm_semantic")


def test_options_that_do_not_fit_together_are_told_before_anything_is_run() -> None:
    with pytest.raises(OptionError, match=r"fixed_token:size=50,overlap=60.*overlap is at least 0.*as a share"):
        Space(
            branches=(
                Branch(
                    strategy="fixed_token",
                    parameters={"size": Range(low=50, high=90), "overlap": Values(values=(0, 60))},
                ),
            )
        )


@pytest.mark.parametrize(
    ("parameter", "message"),
    [
        (lambda: Values(values=()), "one or more"),
        (lambda: Values(values=(1, 1)), "each once"),
        (lambda: Values(values=(0, 2), share_of="size"), "from 0 to 1"),
        (lambda: Range(low=5, high=5), "to a greater one"),
        (lambda: Range(low=0, high=5, log=True), "begins over 0"),
        (lambda: Range(low=float("nan"), high=5), "from a number"),
        (lambda: Range(low=0.5, high=2.0, share_of="size"), "from 0 to 1"),
        (lambda: Range(low="a", high="b"), "from a number"),  # type: ignore[arg-type]
    ],
)
def test_a_parameter_that_is_none_is_refused(parameter, message) -> None:
    with pytest.raises(OptionError, match=message):
        parameter()


def test_a_share_is_rounded_down_so_that_it_stays_under_its_size() -> None:
    branch = Branch(
        strategy="fixed_token",
        parameters={"size": Values(values=(3, 10)), "overlap": Range(low=0.0, high=0.99, share_of="size")},
    )
    assert branch.options({"size": 0, "overlap": 0.99}) == {"size": 3, "overlap": 2}
    Space(branches=(branch,))


def test_a_share_of_an_option_that_is_not_searched_is_one_of_its_default() -> None:
    branch = Branch(strategy="recursive", parameters={"overlap": Values(values=(0.25,), share_of="size")})
    assert branch.options({"overlap": 0}) == {"overlap": 50}


@given(low=st.integers(1, 500), more=st.integers(1, 500), seed=st.integers(0, 99), log=st.booleans())
@settings(max_examples=15)
def test_proposals_lie_in_the_space(low: int, more: int, seed: int, log: bool) -> None:
    space = Space(
        branches=(
            Branch(
                strategy="sentence",
                parameters={
                    "size": Range(low=low, high=low + more, log=log),
                    "minimum": Range(low=0.0, high=1.0, share_of="size"),
                },
            ),
        )
    )
    found = propose(space, [], seed=seed, blind=True)
    options = space.branch(found.branch).options(found.drawn)
    assert low <= options["size"] <= low + more
    assert 0 <= options["minimum"] <= options["size"]


# ---- a space in a file


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "space.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_says_what_to_search(tmp_path: Path) -> None:
    text = """
    recursive:
      size: [100, 200]
      overlap: {share_of: size, values: [0, 0.25]}
      keep: end
      separators: [["\\n\\n", " "]]
    breakpoint:
      - {threshold: percentile, amount: {from: 50, to: 98}}
      - {threshold: distance, amount: {from: 0.1, to: 0.7}}
    lumber: {llm: "openai:m@http://localhost:1/v1", window: {from: 100, to: 900, log: true}}
    sentence:
    """
    space = load_space(write(tmp_path, text))
    assert [branch.name for branch in space.branches] == [
        "recursive",
        "breakpoint",
        "breakpoint#2",
        "lumber",
        "sentence",
    ]
    spec = space.branch("recursive").spec({"size": 1, "overlap": 1, "keep": 0, "separators": 0})
    assert get_chunker(spec) == get_chunker('recursive:size=200,overlap=50,keep=end,separators=["\\n\\n"," "]')
    assert space.branch("breakpoint#2").parameters["amount"] == Range(low=0.1, high=0.7)
    assert space.branch("lumber").parameters["window"] == Range(low=100, high=900, log=True)
    assert space.branch("sentence").options({}) == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("recursive", "names no strategy"),
        ("{}", "names no strategy"),
        ("recursion:\n  size: 5", "line 1: unknown strategy 'recursion'"),
        ("recursive:\n  length: 5", "line 1: .*no option 'length'"),
        ("recursive: 200", "line 1: recursive is followed by its options"),
        ("recursive:\n  size: {from: 9}", "line 2: size is one of"),
        ("recursive:\n  size: {from: 9, to: 3}", "line 2: a range goes from"),
        ("recursive:\n  size: {from: 1, to: x}", "line 2: a range goes from"),
        ("recursive:\n  size: {one_of: [3]}", "line 2: size is one of"),
        ("recursive:\n  size: []", "line 2: values are one or more"),
        ("recursive:\n  size: [0]", "line 1: .*size is at least 1"),
        ("recursive:\n  size: 5\n  size: 6", "line 3: size is given twice"),
        ("sentence:\nsentence:", "line 2: sentence is given twice"),
        ("recursive:\n  size: 2020-13-45", "line 2: month must be"),
        ("recursive:\n  size: 2020-01-05", "line 2: size may be strings"),
        ("recursive: !!python/object/apply:os.system [echo]", "line 1: could not determine a constructor|options"),
        ("recursive:\n  size: !!python/object/apply:os.system [echo]", "line 2: could not determine a constructor"),
        ("recursive: [", "line 1: "),
        ("recursive:\n  overlap: {share_of: sizes, values: [0]}", "line 1: .*'sizes', which is no other option"),
        ("recursive:\n  overlap: {share_of: keep, values: [0]}", "line 1: .*not always a whole number"),
        ("a\x00b: 1", "take it out"),
    ],
)
def test_what_is_wrong_in_a_file_is_told_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        load_space(write(tmp_path, text))


# ---- what is held out


def test_questions_are_dealt_out_evenly_and_by_the_seed() -> None:
    benchmark = make_benchmark()
    folds = assign_folds(benchmark, 5, seed=1)
    assert sorted(np.bincount(folds).tolist()) == [2, 2, 2, 3, 3]
    assert (folds == assign_folds(benchmark, 5, seed=1)).all()
    assert (folds != assign_folds(benchmark, 5, seed=2)).any()


def test_by_document_no_document_is_on_both_sides() -> None:
    benchmark = make_benchmark()
    folds = assign_folds(benchmark, 4, by="document")
    for animal in ANIMALS:
        own = {int(fold) for fold, query in zip(folds, benchmark.queries, strict=True) if query.id.startswith(animal)}
        assert len(own) == 1
    assert sorted(np.bincount(folds).tolist()) == [2, 2, 4, 4]


def test_more_folds_than_there_is_to_hold_out_are_refused() -> None:
    with pytest.raises(OptionError, match=r"number of documents that are asked about \(6\), got 7"):
        assign_folds(make_benchmark(), 7, by="document")
    with pytest.raises(OptionError, match="at least 2"):
        assign_folds(make_benchmark(), 1)
    with pytest.raises(OptionError, match="question or document"):
        assign_folds(make_benchmark(), 3, by="page")  # type: ignore[arg-type]


def test_held_out_scores_of_a_hand_computed_case() -> None:
    """Three configurations, three folds of two questions; the second may not be chosen for the first fold."""
    quality = np.array(
        [[0.0, 1.0, 0.2], [0.0, 1.0, 0.4], [0.0, 1.0, 0.6], [1.0, 1.0, 0.6], [1.0, 0.0, 0.6], [1.0, 0.0, 0.6]]
    )
    allowed = np.array([[True, False, True], [True, True, True], [True, True, True]])
    found = hold_out(Outcomes(quality, np.full_like(quality, 9.0), np.zeros(3)), np.array([0, 0, 1, 1, 2, 2]), allowed)
    # Means without fold 0: 0.75, (0.5), 0.6; without 1: 0.5, 0.5, 0.45, the first of equals; without 2: 0.25, 1, 0.45.
    assert found.picks == (0, 0, 1)
    assert found.training == (0.75, 0.5, 1.0)
    assert found.scores.tolist() == [0.0, 0.0, 0.0, 1.0, 0.0, 0.0]
    assert found.means == (0.0, 0.5, 0.0)


def test_undefined_scores_count_neither_way() -> None:
    quality = np.array([[np.nan, np.nan], [0.4, 0.5], [np.nan, np.nan], [0.6, 0.5]])
    outcomes = Outcomes(quality, np.ones_like(quality), np.zeros(2))
    found = hold_out(outcomes, np.array([0, 0, 1, 1]), np.ones((2, 2), dtype=bool))
    assert found.picks == (0, 1)
    assert found.training == (0.6, 0.5)
    assert np.isnan(found.scores).tolist() == [True, False, True, False]


def test_the_rule_of_choice() -> None:
    quality, tokens, cost = np.array([0.5, 0.6, 0.6, np.nan]), np.array([1.0, 8, 8.4, 0]), np.array([1.0, 5, 3, 0])
    assert choose(quality, tokens, cost) == 2  # as many tokens, to a whole one, at a lower cost
    assert choose(quality, tokens, cost, margin=0.1) == 0
    assert choose(np.array([np.nan, 0.0]), tokens[:2], cost[:2]) == 1
    assert choose(np.array([0.5, 0.5]), np.full(2, np.nan), np.ones(2)) == 0


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=12))
def test_the_front_is_what_nothing_beats(rows) -> None:
    trials = [
        Trial(
            number=number, origin="random", spec="", scores=np.array([row[0]]), tokens=np.array([row[1]]), asked=row[2]
        )
        for number, row in enumerate(rows)
    ]
    front = {rows[trial.number] for trial in pareto_trials(trials)}
    for one in rows:
        beaten = any(
            other[0] >= one[0] and other[1] <= one[1] and other[2] <= one[2] and other != one for other in rows
        )
        assert (one in front) is not beaten
    assert len(front) == len(pareto_trials(trials))  # each stands there once


def test_on_noise_the_picked_score_is_too_high_and_the_held_out_one_is_not() -> None:
    """40 configurations that are all worth 0.5, chosen by 100 questions, 400 times over."""
    chance = np.random.default_rng(0)
    picked, held = [], []
    fold_of = np.arange(100) % 5
    everything = np.ones((5, 40), dtype=bool)
    for _ in range(400):
        quality = chance.normal(0.5, 0.3, size=(100, 40))
        outcomes = Outcomes(quality, np.ones_like(quality), np.zeros(40))
        picked.append(quality.mean(axis=0).max())
        held.append(hold_out(outcomes, fold_of, everything).scores.mean())
    assert np.mean(picked) - 0.5 > 0.05  # two standard errors of a mean of 100
    error = np.std(held) / np.sqrt(len(held))
    assert abs(np.mean(held) - 0.5) < 3 * error < 0.01


def test_the_spread_is_wide_where_choices_are_chance_and_the_scores_own_where_they_are_not() -> None:
    chance = np.random.default_rng(1)
    quality = chance.normal(0.5, 0.3, size=(80, 30))
    baseline, fold_of, allowed = chance.normal(0.5, 0.3, size=80), np.arange(80) % 5, np.ones((5, 30), dtype=bool)

    def ratio(quality) -> float:
        outcomes = Outcomes(quality, np.ones_like(quality), np.zeros(30))
        spread = rechosen(outcomes, baseline, fold_of, allowed, resamples=500)
        again = rechosen(outcomes, baseline, fold_of, allowed, resamples=500)
        assert (spread.mean, spread.lead) == (again.mean, again.lead)
        assert spread.units == 80
        return spread.mean / (hold_out(outcomes, fold_of, allowed).scores.std() / np.sqrt(80))

    assert ratio(quality) > 1.2
    quality[:, 7] += 1.0
    assert ratio(quality) == pytest.approx(1.0, abs=0.08)


def test_documents_are_resampled_whole() -> None:
    """All questions of a document score alike, so that there are no more witnesses than documents."""
    chance = np.random.default_rng(2)
    scores = np.repeat(chance.normal(0.5, 0.3, size=(10, 1)), 8, axis=0)
    documents = [str(i // 8) for i in range(80)]
    found = {}
    for clusters in (None, documents):
        outcomes = Outcomes(scores, np.ones_like(scores), np.zeros(1))
        fold_of = np.arange(80) // 16
        found[clusters is None] = rechosen(
            outcomes, scores[:, 0] * 0, fold_of, np.ones((5, 1), dtype=bool), clusters=clusters
        )
    assert found[False].units == 10
    assert found[False].mean > 2 * found[True].mean
    assert found[False].mean == pytest.approx(scores.std() / np.sqrt(10), rel=0.1)


def test_the_interval_is_students() -> None:
    low, high = Spread(0.1, 0.2, 30).interval(0.5, 0.1)
    assert (low, high) == pytest.approx((0.5 - 0.2045, 0.5 + 0.2045), abs=2e-4)  # 2.045 for 29 degrees of freedom
    assert all(np.isnan(Spread(0.1, 0.2, 1).interval(0.5, 0.1)))


@pytest.mark.slow
def test_an_equal_baseline_is_seldom_told_from_the_choice() -> None:
    told = []
    for seed in range(400):
        chance = np.random.default_rng(seed)
        scores = chance.normal(0.5, 0.3, size=(60, 31))
        fold_of, allowed = np.arange(60) % 5, np.ones((5, 30), dtype=bool)
        outcomes = Outcomes(scores[:, 1:], np.ones((60, 30)), np.zeros(30))
        spread = rechosen(outcomes, scores[:, 0], fold_of, allowed, resamples=200, seed=seed)
        lead = (hold_out(outcomes, fold_of, allowed).scores - scores[:, 0]).mean()
        low, high = spread.interval(lead, spread.lead)
        told.append(not low <= 0 <= high)
    assert np.mean(told) <= 0.07


# ---- what comes next


def seen_quality(best: int, count: int) -> list[Seen]:
    """Sizes 0 to 99, the better the nearer to the best."""
    chance = np.random.default_rng(3)
    return [
        Seen(Proposal("sentence", {"size": size}), (-abs(size - best) / 100, 1.0))
        for size in chance.permutation(100)[:count].tolist()
    ]


WIDE = Space(branches=(Branch(strategy="sentence", parameters={"size": Values(values=tuple(range(1, 101)))}),))


def test_a_proposal_is_a_function_of_what_was_seen_and_the_seed() -> None:
    seen = seen_quality(30, 20)
    assert propose(WIDE, seen, seed=1, blind=False) == propose(WIDE, seen, seed=1, blind=False)
    others = {propose(WIDE, seen, seed=seed, blind=False).drawn["size"] for seed in range(5)}
    assert len(others) > 1


def test_proposals_follow_the_quality_and_blind_ones_do_not() -> None:
    led = [propose(WIDE, seen_quality(80, 30), seed=seed, blind=False).drawn["size"] for seed in range(12)]
    blind = [propose(WIDE, seen_quality(80, 30), seed=seed, blind=True).drawn["size"] for seed in range(12)]
    assert abs(np.mean(led) - 80) < 15 < abs(np.mean(blind) - 80)


def test_nothing_that_was_seen_is_proposed_again_while_there_is_anything_else() -> None:
    seen = [each for each in seen_quality(80, 100) if each.proposal.drawn["size"] > 29]
    for seed in range(3):
        assert propose(WIDE, seen, seed=seed, blind=False).drawn["size"] <= 29


def test_optunas_own_settings_stay_as_they_are() -> None:
    import optuna

    before = optuna.logging.get_verbosity()
    propose(SMALL, [], seed=0, blind=True)
    assert optuna.logging.get_verbosity() == before


def test_who_proposes_for_a_fold_has_not_seen_its_scores(monkeypatch) -> None:
    """Whatever the held-out questions scored, the trials that a fold may choose from are the same."""
    benchmark = make_benchmark()
    fold_of = assign_folds(benchmark, 3, seed=0)

    def candidates(fold: int, disturbed: bool) -> list[str]:
        from chunkcore.tuning import tuner

        def fake_trial(trial, chunker, benchmark, *_):
            chance = np.random.default_rng(crc32(trial.spec.encode()))
            scores = chance.random(len(benchmark.queries))
            if disturbed:
                scores[fold_of == fold] = chance.random(int((fold_of == fold).sum())) ** 9
            return Trial(**{**vars(trial), "scores": scores, "tokens": np.full(len(scores), 60.0), "embedded": 5})

        monkeypatch.setattr(tuner, "run_trial", fake_trial)
        space = Space(branches=(Branch(strategy="sentence", parameters={"size": Range(low=10, high=900)}),))
        found = run(space, benchmark=benchmark, trials=60, seed=0)
        assert len(found.trials) == 60
        return [trial.spec for trial in found.trials if trial.fold in (None, fold)]

    for fold in range(3):
        assert candidates(fold, disturbed=True) == candidates(fold, disturbed=False)


# ---- a search


def test_a_search_tries_the_defaults_first_and_finds_what_the_runs_say(tmp_path: Path) -> None:
    from chunkcore.evaluation.experiment import run_experiment

    benchmark = make_benchmark()
    found = run(known_space("sentence"), benchmark=benchmark, trials=6)
    assert get_chunker(found.trials[0].spec) == get_chunker("sentence")
    (report,) = run_experiment(benchmark, [get_chunker(found.winner.spec)], FakeEmbedder(), measures=["Recall@60tok"])
    assert report.mean("Recall@60tok") == found.picked == max(trial.quality for trial in found.trials)
    assert found.winner in found.front
    assert found.optimism == found.picked - found.held_out
    low, high = found.interval
    assert low <= found.held_out <= high
    assert sum(fold.questions for fold in found.folds) == len(benchmark.queries)
    weighted = sum(fold.held_out * fold.questions for fold in found.folds) / len(benchmark.queries)
    assert weighted == pytest.approx(found.held_out)


def test_each_fold_chooses_from_what_nobody_proposed_who_had_seen_it() -> None:
    space = Space(branches=(Branch(strategy="fixed_token", parameters={"size": Range(low=10, high=60)}),))
    found = run(space, trials=14)
    for number, fold in enumerate(found.folds):
        allowed = {trial.spec for trial in found.trials if trial.fold in (None, number)}
        assert fold.spec in allowed
        assert fold.candidates == len(allowed) < len({trial.spec for trial in found.trials})


def test_cost_is_the_models_tokens_of_every_distinct_text_however_much_was_kept() -> None:
    benchmark = make_benchmark()
    embedder = FakeEmbedder()
    found = run(known_space("fixed_sentences"), embedder, benchmark, trials=1)
    chunks = {chunk.text for chunk in get_chunker("fixed_sentences").chunk_many(benchmark.documents)}
    assert found.trials[0].cost == embedder.count_tokens(sorted(chunks)).sum()
    again = run(known_space("fixed_sentences"), embedder, benchmark, trials=1)
    assert again.trials[0].cost == found.trials[0].cost


def test_what_a_strategy_embeds_to_find_its_chunks_is_cost_too() -> None:
    benchmark = make_benchmark()
    chunker = get_chunker("dual_semantic:k=0")
    found = run(
        Space(branches=(Branch(strategy="dual_semantic", parameters={"k": Values(values=(0,))}),)), None, benchmark
    )
    chunks = {chunk.text for chunk in chunker.chunk_many(benchmark.documents)}
    alone = sum(FakeEmbedder().count_tokens(sorted(chunks)))
    assert found.trials[0].cost > alone
    assert found.stopped == "exhausted"


def test_a_model_that_does_not_tell_its_tokens_is_counted_as_the_scores_are() -> None:
    benchmark = make_benchmark()
    silent = SimpleNamespace(**{name: getattr(FakeEmbedder(), name) for name in EMBEDDER_NAMES})
    found = run(known_space("fixed_sentences"), silent, benchmark, trials=1)
    chunks = list(get_chunker("fixed_sentences").chunk_many(benchmark.documents))
    assert found.trials[0].cost == sum(chunk.token_count for chunk in chunks)


def test_chunks_can_be_searched_by_their_words() -> None:
    pytest.importorskip("bm25s")
    found = run(known_space("sentence"), trials=3, retriever="bm25")
    assert {trial.cost for trial in found.trials} == {0}
    assert found.picked > 0


def test_each_configuration_is_run_once() -> None:
    embedder = FakeEmbedder()
    found = run(embedder=embedder, trials=30)
    assert len(embedder.texts) == len(set(embedder.texts))  # chunks and questions differ
    assert len({trial.spec for trial in found.trials}) == 19  # 5 · 3 + 4: all that there is
    assert found.stopped == "exhausted"


def test_the_same_search_gives_the_same_result_and_another_seed_another() -> None:
    one, two, other = run(seed=4), run(seed=4), run(seed=5)
    assert told(one) == told(two) != told(other)


def told(tuning) -> dict:
    data = tuning.to_dict()
    for trial in [data["winner"], data["baseline"], *data["front"], *data["trials"]]:
        trial.pop("seconds")
    return data


def test_retrieved_tokens_are_told_at_a_number_of_chunks() -> None:
    found = run(measure="Recall@2")
    assert found.winner.mean_tokens > 0
    assert found.rule.startswith("the highest mean Recall@2")


def test_a_measure_of_the_whole_ranking_has_no_retrieved_tokens() -> None:
    found = run(measure="MRR")
    assert np.isnan(found.winner.tokens).all()
    assert found.to_dict()["winner"]["retrieved_tokens"] is None
    assert 0 < found.picked <= 1


def test_no_difference_told_from_chance_is_said() -> None:
    found = run(Space(branches=(Branch(strategy="recursive", parameters={"size": Values(values=(200,))}),)))
    assert found.difference.mean == 0
    assert not found.difference.distinct
    assert "recursive:size=200 scores the same on every question" in found.verdict


def test_what_does_not_fit_is_a_failed_trial_with_its_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text, split = "The fox naps. The owl sings. The dog barks.", Sentence.split

    def strict(self: Sentence, source: TokenizedText) -> list[tuple[Span, ...]]:
        if self.size == 2:
            raise SizeError("the maximum is 2 (characters), but the single character 'e' counts 3")
        return split(self, source)

    monkeypatch.setattr(Sentence, "split", strict)
    queries = [Query(str(i), "Who naps?", (Evidence("fox", Span(i, 7)),)) for i in range(4)]
    benchmark = Benchmark("families", [Document("fox", text)], queries)
    space = Space(
        branches=(
            Branch(
                strategy="sentence",
                parameters={"size": Values(values=(2, 40)), "counter": Values(values=("characters",))},
            ),
        )
    )
    study = tmp_path / "study.jsonl"
    found = run(space, benchmark=benchmark, folds=2, trials=8, study=study)
    (failed,) = found.failed
    assert failed.spec.startswith("sentence:size=2")
    assert "the maximum is 2 (characters), but the single character" in failed.failure
    assert found.winner.spec.startswith("sentence:size=40")
    assert failed.spec in study.read_text()
    hopeless = Space(
        branches=(
            Branch(
                strategy="sentence", parameters={"size": Values(values=(2,)), "counter": Values(values=("characters",))}
            ),
        )
    )
    with pytest.raises(
        DataError, match=r"none of the 1 configurations could be run; the first, sentence:size=2.*the maximum is 2"
    ):
        run(hopeless, benchmark=benchmark, folds=2)


def test_a_model_that_is_gone_ends_the_search_and_its_failures_are_tried_again(tmp_path: Path) -> None:
    study = tmp_path / "study.jsonl"
    benchmark = make_benchmark()
    space = Space(branches=(Branch(strategy="fixed_token", parameters={"size": Range(low=10, high=40)}),))
    dying = RaisingEmbedder(allowed=4)
    with pytest.raises(ModelError, match="hung up"):
        run(space, dying, benchmark, study)
    kept = study.read_text().splitlines()
    assert 3 <= len(kept) <= 5
    assert "hung up" not in "".join(kept)
    assert told(run(space, FakeEmbedder(), benchmark, study)) == told(run(space, benchmark=benchmark))


def test_time_that_is_over_leaves_a_result(monkeypatch, tmp_path: Path) -> None:
    clock = iter(range(1000))
    monkeypatch.setattr("chunkcore.tuning.tuner.time", SimpleNamespace(monotonic=lambda: float(next(clock))))
    found = run(timeout=4.5, trials=9)
    assert found.stopped == "time"
    assert 0 < len(found.trials) < 9


def test_ctrl_c_leaves_a_result_and_the_study_goes_on(tmp_path: Path) -> None:
    benchmark = make_benchmark()
    study = tmp_path / "study.jsonl"

    def stop(step: str, done: int, total: int) -> None:
        if step == "trials" and done == 5:
            raise KeyboardInterrupt

    found = tune(benchmark, SMALL, FakeEmbedder(), options=OPTIONS, study=study, progress=stop)
    assert found.stopped == "interrupted"
    assert len(found.trials) == 5
    assert told(run(benchmark=benchmark, study=study)) == told(run(benchmark=benchmark))


def test_ctrl_c_before_anything_is_done_is_passed_on() -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tune(make_benchmark(), SMALL, FakeEmbedder(), options=OPTIONS, progress=stop)


# ---- language models


ASKING = Branch(
    strategy="llm_semantic",
    parameters={
        "llm": Values(values=("openai:m@http://localhost:1/v1",)),
        "window": Values(values=(100, 200)),
        "piece_size": Values(values=(25,)),
    },
)
PAID = Space(branches=(ASKING, Branch(strategy="sentence", parameters={"size": Values(values=(40, 60))})))


def test_a_language_model_is_not_asked_without_a_word_on_how_much() -> None:
    with pytest.raises(OptionError, match="llm_semantic asks a language model: say with llm_tokens"):
        run(PAID)


def test_what_is_over_the_cap_is_not_asked_and_tried_once_there_is_more(tmp_path: Path, monkeypatch) -> None:
    fake = FakeLLM(broken=0.0)
    benchmark = make_benchmark()
    study = tmp_path / "study.jsonl"

    def keeping(chunker):
        from dataclasses import replace

        return replace(chunker, llm=fake) if hasattr(chunker, "llm") else chunker

    def search(most: int):
        options = TuneOptions(trials=9, folds=3, measure="Recall@60tok", resamples=200, llm_tokens=most)
        return tune(benchmark, PAID, FakeEmbedder(), options=options, study=study, keeping=keeping)  # of the moment

    poor = search(10)
    assert not fake.asked
    assert {trial.spec.split(":")[0] for trial in poor.failed} == {"llm_semantic"}
    assert "of 10 are spent" in poor.failed[0].failure
    rich = search(1_000_000)
    assert fake.asked
    assert not rich.failed
    asking = [trial for trial in rich.trials if trial.spec.startswith("llm_semantic")]
    assert all(trial.cost == trial.embedded + trial.asked > trial.asked > 0 for trial in asking)
    study = tmp_path / "other.jsonl"
    once = search(max(trial.asked for trial in asking))
    assert len({trial.spec for trial in once.trials if trial.asked}) == 1  # the second would be too much
    assert {trial.spec for trial in once.failed}


# ---- the study's file


def test_a_study_that_is_done_is_only_read(tmp_path: Path) -> None:
    study = tmp_path / "study.jsonl"
    first = run(study=study)
    size = study.stat().st_size
    embedder = FakeEmbedder()
    assert told(run(study=study, embedder=embedder)) == told(first)
    assert not embedder.texts
    assert study.stat().st_size == size


def test_more_trials_go_on_where_fewer_ended(tmp_path: Path) -> None:
    study = tmp_path / "study.jsonl"
    run(study=study, trials=5)
    assert told(run(study=study, trials=12)) == told(run(trials=12))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"measure": "Recall@3"}, "begun with measure 'Recall@60tok', and now it is 'Recall@3'"),
        ({"seed": 9}, "begun with seed 0, and now it is 9"),
        ({"folds": 4}, "begun with folds 3"),
        ({"retriever": "bm25"}, "begun with retriever 'dense'"),
        ({"by": "document"}, "begun with by 'question'"),
        ({"baseline": "sentence"}, "begun with baseline"),
        ({"space": default_space()}, "begun with another space"),
        ({"benchmark": make_benchmark(11)}, "begun with another benchmark"),
        ({"embedder": FakeEmbedder(8)}, "begun with another embedder"),
    ],
)
def test_a_study_of_another_search_is_refused(tmp_path: Path, options, message: str) -> None:
    study = tmp_path / "study.jsonl"
    run(study=study, trials=1)
    with pytest.raises(DataError, match=f"{message}.*give another folder"):
        run(study=study, **options)


def damage(lines: list[str], line: int, /, **changes: object) -> list[str]:
    data = json.loads(lines[line]) | changes
    return [*lines[:line], json.dumps(data), *lines[line + 1 :]]


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda lines: ["hello", *lines], "no study that chunkcore tune wrote"),
        (lambda lines: ['{"a": 1}', *lines], "no study that chunkcore tune wrote"),
        (lambda lines: [lines[0], "{broken", *lines[1:]], "line 2: damaged, expected one JSON object"),
        (lambda lines: [*lines, "[1]", lines[-1]], "line 5: damaged, expected one JSON object"),
        (lambda lines: [*lines, lines[-1]], "line 5: trial 1 .* none of this search"),
        (lambda lines: damage(lines, 2, scores=[1.0]), "line 3: scores is a list of 12 numbers"),
        (lambda lines: damage(lines, 2, scores=["x"] * 12), "line 3: scores holds numbers"),
        (lambda lines: damage(lines, 2, tokens=None), "line 3: tokens is a list"),
        (lambda lines: damage(lines, 2, spec="recursive:size=7"), "line 3: trial 0 .* none of this search"),
        (lambda lines: damage(lines, 2, branch="lumber"), "none of this search"),
        (lambda lines: damage(lines, 2, drawn={"size": 99, "overlap": 0}), "none of this search"),
        (lambda lines: damage(lines, 2, drawn={}), "none of this search"),
        (lambda lines: damage(lines, 2, drawn=[1]), "drawn is an object"),
        (lambda lines: damage(lines, 2, number="0"), "number is a whole number"),
        (lambda lines: damage(lines, 2, embedded=10**400), "embedded is a whole number"),
        (lambda lines: damage(lines, 2, seconds=float("nan")), "seconds is a number"),
        (lambda lines: damage(lines, 2, scores=[10**400] * 12), "scores holds numbers"),
        (lambda lines: damage(lines, 2, tokens=[float("inf")] * 12), "tokens holds numbers"),
        (lambda lines: damage(lines, 2, number=-4), "none of this search"),
        (lambda lines: damage(lines, 2, origin="fold 7"), "none of this search"),
        (lambda lines: damage(lines, 2, origin="elsewhere"), "origin is one of"),
        (lambda lines: damage(lines, 1, spec="sentence"), "line 2: trial -1"),
    ],
)
def test_a_damaged_study_is_told_with_its_line_and_stays_as_it_is(tmp_path: Path, spoil, message: str) -> None:
    study = tmp_path / "study.jsonl"
    run(study=study, trials=2)
    spoilt = "\n".join(spoil(study.read_text().splitlines())) + "\n"
    study.write_text(spoilt)
    with pytest.raises(DataError, match=message):
        run(study=study, trials=2)
    assert study.read_text() == spoilt


@given(cut=st.floats(0, 1))
@settings(max_examples=6)
def test_a_study_that_was_cut_off_anywhere_goes_on_to_the_same_result(tmp_path_factory, cut: float) -> None:
    folder = tmp_path_factory.mktemp("cut")
    whole = run(study=folder / "study.jsonl", trials=3)
    data = (folder / "study.jsonl").read_bytes()
    (folder / "study.jsonl").write_bytes(data[: int(cut * len(data))])
    assert told(run(study=folder / "study.jsonl", trials=3)) == told(whole)


def test_a_file_of_somebody_elses_is_neither_read_nor_changed(tmp_path: Path) -> None:
    study = tmp_path / "study.jsonl"
    study.write_bytes(b"Dear diary,\nno end of line")
    with pytest.raises(DataError, match="no study that chunkcore tune wrote"):
        run(study=study)
    assert study.read_bytes() == b"Dear diary,\nno end of line"


@pytest.mark.skipif(sys.platform == "win32", reason="has no flock")
def test_two_processes_do_not_write_to_one_study(tmp_path: Path) -> None:
    study = tmp_path / "study.jsonl"

    def second(step: str, done: int, total: int) -> None:
        with pytest.raises(OptionError, match="another process is at work"):
            run(study=study)

    tune(make_benchmark(), SMALL, FakeEmbedder(), options=TuneOptions(trials=1, folds=3), study=study, progress=second)


PROGRAM = """
import sys, time
from pathlib import Path
from chunkcore.models import EmbeddingCache
from chunkcore.tuning import TuneOptions, tune
from tests.fakes import FakeEmbedder
from tests.test_tuning import SMALL, make_benchmark

class Telling(FakeEmbedder):
    def embed_documents(self, texts):
        with (folder / "embedded.txt").open("a") as file:
            file.writelines(repr(text) + "\\n" for text in texts)
        while study.read_bytes().count(b"\\n") >= int(sys.argv[2]):  # until it is killed
            time.sleep(0.01)
        return super().embed_documents(texts)

folder = Path(sys.argv[1])
study = folder / "study.jsonl"
options = TuneOptions(trials=9, folds=3, measure="Recall@60tok", resamples=200)
cache = EmbeddingCache(folder / "cache.sqlite")
tune(make_benchmark(), SMALL, Telling(), options=options, study=study, cache=cache)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="has no SIGKILL")
def test_a_process_that_is_killed_goes_on_without_running_or_embedding_anything_twice(tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    command = [sys.executable, "-c", PROGRAM, str(tmp_path)]
    study = tmp_path / "study.jsonl"
    with started([*command, "5"], env=environment) as process:
        wait_for(lambda: study.exists() and study.read_bytes().count(b"\n") >= 5, process)
        process.send_signal(signal.SIGKILL)
    before = study.read_bytes()
    before = before[: before.rfind(b"\n") + 1]
    assert 5 <= before.count(b"\n") < 11
    subprocess.run([*command, "99"], env=environment, check=True)
    after = study.read_bytes()
    assert after.startswith(before)
    assert after.count(b"\n") == 11  # the head, the baseline and nine trials
    embedded = (tmp_path / "embedded.txt").read_text().splitlines()
    # What was asked for at the moment of the kill may be asked for once more.
    assert len(embedded) - len(set(embedded)) <= 256
    assert told(run(study=study)) == told(run())


# ---- the command


@pytest.fixture
def collection(tmp_path: Path) -> list[str]:
    benchmark = make_benchmark()
    (tmp_path / "docs").mkdir()
    lines = []
    for document in benchmark.documents:
        (tmp_path / "docs" / f"{document.id}.txt").write_text(document.text)
    for query in benchmark.queries:
        (evidence,) = query.evidence
        text = benchmark.document(evidence.document_id).text
        quoted = text[evidence.span.start : evidence.span.end]
        lines.append(json.dumps({"id": query.id, "question": query.text, "evidence": [quoted]}))
    (tmp_path / "questions.jsonl").write_text("\n".join(lines))
    return ["--docs", str(tmp_path / "docs"), "--questions", str(tmp_path / "questions.jsonl"), "--no-cache"]


QUICK = ["--trials", "6", "--folds", "3", "--measure", "Recall@60tok", "--resamples", "200"]


def test_the_command_prints_front_winner_verdict_and_what_to_paste(collection, fake, tmp_path: Path, capfd) -> None:
    output = tmp_path / "out"
    assert main(["tune", *collection, *QUICK, "-s", "sentence", "-s", "recursive:keep=end", "-o", str(output)]) == 0
    shown, progress = capfd.readouterr()
    data = json.loads((output / "tune.json").read_text())
    assert data["format"] == "chunkcore-tune-1"
    assert len(data["trials"]) == 6
    assert all(trial["spec"].startswith("sentence") or "keep=end" in trial["spec"] for trial in data["trials"])
    winner = data["winner"]
    for part in ("(baseline)", winner["spec"], f"Held out: {100 * winner['held_out']:.1f} %", "Optimism: "):
        assert part in shown
    assert data["verdict"].split()[0] in shown
    assert shown.rstrip().endswith("tune.json")
    for text in data["snippets"].values():
        assert indent(text, "    ") in shown
    assert (output / "winner.yaml").read_text().startswith("- strategy: ")
    assert "trials: 6 of 6" in progress
    assert (
        main(["compare", *collection, "--config", str(output / "winner.yaml"), "-o", str(tmp_path / "r"), "-k", "3"])
        == 0
    )


def test_the_command_goes_on_and_its_documents_are_not_its_own_files(collection, fake, tmp_path: Path, capfd) -> None:
    output = ["-o", str(tmp_path / "docs" / "out")]
    assert main(["tune", *collection, *QUICK, "-s", "sentence", *output]) == 0
    first = (tmp_path / "docs" / "out" / "tune.json").read_text()
    asked = len(fake.texts)
    assert main(["tune", *collection, *QUICK, "-s", "sentence", *output]) == 0
    assert (tmp_path / "docs" / "out" / "tune.json").read_text() == first
    assert len(fake.texts) == asked


def test_the_command_takes_a_space_from_a_file(collection, fake, tmp_path: Path, capfd) -> None:
    space = write(tmp_path, "fixed_sentences:\n  sentences: [1, 2, 3]\n")
    assert main(["tune", *collection, *QUICK, "--space", str(space), "-o", str(tmp_path / "out")]) == 0
    assert "All of the space was tried, in 3 trials of 6" in capfd.readouterr().out


def test_the_command_runs_every_combination_of_a_grid(collection, fake, tmp_path: Path, capfd) -> None:
    grid = ["-s", "sentence:size={30,60}", "-s", "recursive:size=40"]
    assert main(["tune", *collection, *QUICK, *grid, "-o", str(tmp_path / "out")]) == 0
    shown = capfd.readouterr().out
    assert "Each strategy's best configuration" in shown
    data = json.loads((tmp_path / "out" / "tune.json").read_text())
    assert [trial["spec"] for trial in data["trials"]] == ["sentence:size=30", "sentence:size=60", "recursive:size=40"]
    assert len(data["strategies"]["choices"]) == 2
    assert "a line a k" in (tmp_path / "out" / "tune.html").read_text(encoding="utf-8")
    space = write(tmp_path, "sentence:")
    assert main(["tune", *collection, *grid, "--space", str(space), "-o", str(tmp_path / "out")]) == 2
    assert "write the grid's lists into the file" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-s", "nonsense"], "no space is known for the strategy 'nonsense'"),
        (["--measure", "Recall"], "Recall needs k"),
        (["--by", "page"], "by is question or document"),
        (["--folds", "99"], "got 99"),
        (["--timeout", "0"], "timeout is at least 0.001"),
        (["--baseline", "recursive:size=0"], "size is at least 1"),
        (["--space", "nowhere.yaml"], "nowhere.yaml cannot be read"),
        (["-s", "lumber:llm=openai:m@http://localhost:1/v1"], "lumber asks a language model"),
    ],
)
def test_bad_input_is_one_sentence(collection, fake, tmp_path: Path, capfd, arguments, message: str) -> None:
    assert main(["tune", *collection, *arguments, "-o", str(tmp_path / "out")]) == 2
    shown = capfd.readouterr().err
    assert message in shown
    assert "Traceback" not in shown


def test_ctrl_c_says_how_to_go_on(collection, fake, tmp_path: Path, capfd, monkeypatch) -> None:
    from chunkcore.tuning import tuner

    real, runs = tuner.run_trial, []

    def stopping(*arguments):
        runs.append(arguments)
        if len(runs) == 4:
            raise KeyboardInterrupt
        return real(*arguments)

    monkeypatch.setattr(tuner, "run_trial", stopping)
    assert main(["tune", *collection, *QUICK, "-s", "sentence", "-o", str(tmp_path / "out")]) == 130
    assert "Stopped after 2 of 6 trials; the same command goes on." in capfd.readouterr().out
    assert json.loads((tmp_path / "out" / "tune.json").read_text())["stopped"] == "interrupted"


def test_without_optuna_the_extra_is_named(collection, monkeypatch, tmp_path: Path, capfd) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    assert main(["tune", *collection, "-o", str(tmp_path / "out")]) == 2
    assert 'pip install "chunkadapters[tune]"' in capfd.readouterr().err


# ---- what to paste


@pytest.mark.parametrize(
    "spec",
    [
        "recursive:size=100,overlap=25,keep=end",
        'recursive:separators=["\\n\\n","a \\"b\\" \'c\'"]',
        'sentence:splitter="regex:[.!?]\\\\s"',
    ],
)
def test_what_is_pasted_reads_back_as_the_same_configuration(spec: str, tmp_path: Path) -> None:
    import ast
    import shlex

    from chunkcore.chunkers import get_chunkers

    pasted = snippets(spec)
    wanted = get_chunker(spec)
    assert get_chunker(shlex.split(pasted["Command line"])[-1]) == wanted
    assert get_chunkers(write(tmp_path, pasted["YAML, for compare --config"])) == [wanted]
    for framework in ("LangChain", "LlamaIndex", "Haystack"):
        call = ast.parse(pasted[framework]).body[-1].value
        assert get_chunker(ast.literal_eval(call.args[0])) == wanted


def test_pasted_code_names_the_model_where_it_matters() -> None:
    pasted = snippets("cluster_semantic:max_size=200", "openvino:mine")
    assert all("embedder=openvino:mine" in pasted[each].replace("embedder: ", "embedder=") for each in pasted)
    assert 'fit_to="openvino:mine"' in snippets("recursive:counter=embedder", "openvino:mine")["Haystack"]
