"""Grids, choices that are not flattered, and the page and command that show them."""

from __future__ import annotations

import json
import math
import re
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chunkcore import Benchmark, Document, Evidence, OptionError, Query, Span, get_chunker, run_experiment
from chunkcore.chunkers.configuration import read_specs
from chunkcore.cli import main
from chunkcore.datasets import load_dataset
from chunkcore.evaluation.measures import get_measure, measures_at
from chunkcore.report.advice import Advice
from chunkcore.report.tuning import option_panels, option_plot, tuning_html, tuning_markdown, write_tuning
from chunkcore.tuning import Goal, TuneOptions, Tuning, grid_space, load_space, parse_grid, parse_space, snippets, tune
from chunkcore.tuning.choosing import StrategyChoices, halves, optimism
from chunkcore.tuning.space import configuration, retriever_values
from tests.fakes import FakeEmbedder
from tests.report_data import NASTY

GRIDS = ("recursive:size={40,80,160},overlap={0,10}", "fixed_sentences:sentences={1,3}", "fixed_token:size=80")

MANY = ",".join(map(str, range(40)))


@pytest.fixture(scope="module")
def found() -> Tuning:
    return search(GRIDS)


def search(grids, embedder=None, benchmark=None, ks=(1, 3, 5), **options) -> Tuning:
    """A search of grids for the highest F1, averaged over the depths."""
    chosen = TuneOptions(**{"measure": [f"F1@{k}" for k in ks], "resamples": 300} | options)
    space = grid_space(grids)
    return tune(benchmark or load_dataset("lochmere"), space, embedder or FakeEmbedder(), options=chosen)


def mean(found: Tuning, spec: str, name: str, ks) -> float:
    (trial,) = [each for each in found.configurations if each.spec == spec]
    return np.mean([trial.mean(measure) for measure in found.goal.over_ks(name) if measure.k in ks])


# --- grids


def specs(text: str) -> list[str]:
    grid = parse_grid(text)
    return [grid.spec(drawn) for drawn in grid.combinations()]


def varied(text: str) -> dict[str, tuple[object, ...]]:
    return {option: each.values for option, each in parse_grid(text).varied.items()}


def test_a_grid_is_every_combination_of_the_values_in_braces() -> None:
    assert specs("recursive:size={50, 100},overlap={0,10},keep=end") == [
        "recursive:size=50,overlap=0,keep=end",
        "recursive:size=50,overlap=10,keep=end",
        "recursive:size=100,overlap=0,keep=end",
        "recursive:size=100,overlap=10,keep=end",
    ]
    assert varied("recursive:size={50,100},overlap={0},keep=end") == {"size": (50, 100)}
    assert parse_grid("recursive:size={100,50},keep=end").grid == "recursive:size={50,100},keep=end"


def test_numbers_are_sorted_and_words_stay_as_they_were_written() -> None:
    assert varied("recursive:size={400,50,100}") == {"size": (50, 100, 400)}
    assert varied("breakpoint:amount={0.5,0.25,1e0}") == {"amount": (0.25, 0.5, 1.0)}
    assert varied("breakpoint:threshold={percentile,distance}") == {"threshold": ("percentile", "distance")}


def test_a_value_can_be_a_list_or_a_quoted_string_with_commas() -> None:
    assert specs('recursive:separators={["\\n\\n",", "],["\\n"]}') == [
        'recursive:separators=["\\n\\n", ", "]',
        'recursive:separators=["\\n"]',
    ]
    assert specs('sentence:splitter={default,"regex:[.,]"}') == [
        "sentence:splitter=default",
        'sentence:splitter="regex:[.,]"',
    ]


@pytest.mark.parametrize("spec", ["recursive", "recursive:size=50", 'recursive:separators=["{a,b}"]'])
def test_a_strategy_without_braces_is_a_grid_of_one(spec: str) -> None:
    assert specs(spec) == [spec]
    assert not varied(spec)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("recursive:size={}", "the option size has an empty value"),
        ("recursive:size={50,}", "the option size has an empty value"),
        ("recursive:size={50,50}", "the option size has the value '50' twice"),
        ("recursive:size={50,100", "a bracket is not closed in the grid"),
        ("recursive:size", "expected option=value, got 'size'"),
        ("recursive:size={50,60},size=3", "the option size is given twice"),
        ("recursive:size={50,-1}", "size is"),
        ("recursive:color={red,blue}", "color"),
        ("unknown:size={1,2}", "unknown"),
        (
            f"recursive:size={{{MANY}}},overlap={{{MANY}}}",
            "is 1,600 configurations: narrow it to 1,000 at most",
        ),
        (3, "a grid is given as name:option={value,value}"),
    ],
)
def test_what_is_no_grid_is_told(spec: str, words: str) -> None:
    with pytest.raises(OptionError, match=re.escape(words)):
        parse_grid(spec)


@given(st.text(alphabet='recursive:size={}[]",0123 \\\n', max_size=30))
def test_any_text_is_a_grid_or_an_option_error(text: str) -> None:
    try:
        found = parse_grid(f"recursive:{text}")
    except OptionError:
        return
    assert all(get_chunker(found.spec(drawn)) for drawn in found.combinations())


def test_a_file_holds_grids_and_an_error_in_it_names_the_line(tmp_path: Path) -> None:
    file = tmp_path / "grids.yaml"
    file.write_text('- "recursive:size={50,100}"\n- {strategy: fixed_token, size: 80}\n', encoding="utf-8")
    assert read_specs(file, parse_grid) == ["recursive:size={50,100}", "fixed_token:size=80"]
    file.write_text('- recursive\n- "recursive:size={50,50}"\n', encoding="utf-8")
    with pytest.raises(OptionError, match=r"grids\.yaml, line 2: .* twice"):
        read_specs(file, parse_grid)


def test_braces_make_all_strategies_grids_and_without_any_each_is_searched() -> None:
    space = parse_space(["recursive:size={50,100}", "sentence"])
    assert (space.exhaustive, space.specs) == (True, ["recursive:size=50", "recursive:size=100", "sentence"])
    assert not parse_space(["recursive:size=50", "sentence"]).exhaustive


# --- choosing on one half, reporting on the other


@given(st.lists(st.integers(0, 5), min_size=2, max_size=30).filter(lambda each: len(set(each)) > 1), st.integers(0, 9))
def test_halves_are_two_and_keep_together_what_belongs_together(labels: list[int], seed: int) -> None:
    first = halves(list(map(str, labels)), np.random.default_rng(seed))
    assert 0 < first.sum() < len(labels)
    assert not {labels[n] for n in np.flatnonzero(first)} & {labels[n] for n in np.flatnonzero(~first)}
    if len(set(labels)) == len(labels):
        assert abs(2 * int(first.sum()) - len(labels)) <= 1


def choices(depths, candidates, count, **options) -> StrategyChoices:
    """Of candidates by strategy: scores of shape (questions, configurations, depths)."""
    scored = {
        name: dict(zip(specs, np.moveaxis(each, 1, 0), strict=True)) for name, (specs, each) in candidates.items()
    }
    goal = Goal.of([f"F1@{k}" for k in depths])
    return StrategyChoices.of(goal, scored, list(map(str, range(count))), **options)


def test_the_best_of_many_equal_configurations_is_flattered_and_its_reported_score_is_not() -> None:
    """Configurations that differ by chance alone: what a choice scores where it was not made is their common mean."""
    picked, reported, flattery = [], [], []
    for seed in range(40):
        noise = np.random.default_rng(seed).random((60, 30, 1))
        [choice] = choices((5,), {"any": (map(str, range(30)), noise)}, 60, seed=seed, resamples=10).choices
        picked.append(choice.picked)
        reported.append(choice.score)
        flattery.append(choice.optimism)
    assert np.mean(picked) > 0.58
    assert abs(np.mean(reported) - 0.5) < 0.02
    assert np.mean(flattery) == pytest.approx(np.mean(picked) - 0.5, abs=0.02)


def test_easier_questions_on_one_side_are_no_optimism() -> None:
    scores = np.tile(np.linspace(0, 1, 20)[:, None], (1, 4))
    assert optimism(scores, list(map(str, range(20))))[0] == pytest.approx(0, abs=1e-12)


def test_a_choice_is_made_by_the_first_half_alone() -> None:
    """Two configurations: one better on the half that chooses, the other on the half that reports."""
    first = np.array([True] * 10 + [False] * 10)
    scores = np.zeros((20, 2, 2))
    scores[:10, 0], scores[10:, 1] = 1.0, 1.0
    scores[10:, 0, 1] = 0.5
    [choice] = choices((1, 5), {"any": ("ab", scores)}, 20, first=first, resamples=100).choices
    assert (choice.configuration, choice.picked, choice.score) == ("a", 1.0, 0.25)
    assert choice.by_k == {1: 0.0, 5: 0.5}
    assert (choice.low, choice.high) == (0.25, 0.25)


def test_strategies_are_told_apart_on_the_second_half() -> None:
    draw = np.random.default_rng(0)
    base = draw.random((80, 1, 1)) / 2
    good, same, bad = base + 0.3, base + 0.3 + draw.normal(0, 0.2, base.shape), base
    candidates = {name: ([name], each) for name, each in (("bad", bad), ("good", good), ("same", same))}
    found = choices((5,), candidates, 80, first=np.arange(80) % 2 == 0, resamples=500)
    assert found.choices[2].strategy == "bad"
    distinct = {frozenset((gap.a, gap.b)): gap.distinct for gap in found.gaps}
    assert distinct == {
        frozenset(("good", "bad")): True,
        frozenset(("same", "bad")): True,
        frozenset(("good", "same")): False,
    }


def test_five_questions_tell_nothing_apart() -> None:
    """All five differ the same way, so the interval leaves 0 out; but signs fall so in one case of sixteen."""
    candidates = {name: ([name], np.full((10, 1, 1), score)) for name, score in (("a", 0.6), ("b", 0.4))}
    [gap] = choices((5,), candidates, 10, first=np.arange(10) < 5, resamples=100).gaps
    assert (gap.a, gap.p_value, gap.distinct) == ("a", 0.0625, False)
    assert gap.low == pytest.approx(0.2)


def test_a_search_gives_the_scores_of_its_runs_and_chooses_among_each_strategys(found: Tuning) -> None:
    benchmark = load_dataset("lochmere")
    chunkers = [get_chunker(each.spec) for each in found.configurations]
    reports = run_experiment(benchmark, chunkers, FakeEmbedder(), measures=measures_at((1, 3, 5)))
    by_spec = {each.spec: report for each, report in zip(found.configurations, reports, strict=True)}
    for each in found.configurations:
        report = by_spec[each.spec]
        assert each.measured[get_measure("F1@3")].tolist() == report.values("F1@3").tolist()
        assert each.quality == pytest.approx(np.mean([report.mean(f"F1@{k}") for k in (1, 3, 5)]))
    strategies = found.strategies
    candidates = {choice.strategy: choice.candidates for choice in strategies.choices}
    assert candidates == {"recursive": 6, "fixed_sentences": 2, "fixed_token": 1}
    assert set(strategies.choosing) | set(strategies.reporting) == {query.id for query in benchmark.queries}
    assert not set(strategies.choosing) & set(strategies.reporting)
    rows = [query.id in strategies.choosing for query in benchmark.queries]
    for choice in strategies.choices:
        mine = [each for each in found.configurations if each.spec.startswith(choice.strategy)]
        by_choosing = {
            each.spec: np.mean([by_spec[each.spec].values(f"F1@{k}")[rows].mean() for k in (1, 3, 5)]) for each in mine
        }
        assert by_choosing[choice.configuration] == pytest.approx(max(by_choosing.values()))
        assert choice.picked == pytest.approx(max(by_choosing.values()))
        later = [by_spec[choice.configuration].values(f"F1@{k}")[np.invert(rows)].mean() for k in (1, 3, 5)]
        assert list(choice.by_k.values()) == pytest.approx(later)
        assert choice.low <= choice.score <= choice.high
    assert strategies.choices[0].optimism >= 0 or strategies.choices[0].candidates == 1


def test_a_grid_is_held_out_in_folds_as_any_search_is(found: Tuning) -> None:
    assert found.stopped == ""
    assert len(found.trials) == found.wanted == 9
    assert found.picked == max(trial.quality for trial in found.trials)
    weighted = sum(fold.held_out * fold.questions for fold in found.folds) / 90
    assert weighted == pytest.approx(found.held_out)
    assert {fold.candidates for fold in found.folds} == {9}
    assert "(95 % interval" in found.verdict


def test_a_grid_goes_on_where_it_was_stopped(tmp_path: Path, found: Tuning) -> None:
    log, options = tmp_path / "study.jsonl", found.options

    def stop(step: str, done: int, total: int) -> None:
        if step == "trials" and done == 4:
            raise KeyboardInterrupt

    part = tune(load_dataset("lochmere"), found.space, FakeEmbedder(), options=options, study=log, progress=stop)
    assert (part.stopped, len(part.trials)) == ("interrupted", 4)
    whole = tune(load_dataset("lochmere"), found.space, FakeEmbedder(), options=options, study=log)
    assert whole.strategies.to_dict() == found.strategies.to_dict()
    assert whole.verdict == found.verdict


def test_the_same_seed_gives_the_same_choices_and_each_text_is_embedded_once() -> None:
    found, texts = [], []
    for seed in (0, 0, 1):
        model = FakeEmbedder()
        found.append(search(GRIDS[1:], model, ks=(3,), seed=seed, resamples=100).strategies)
        texts.append(model.texts)
    assert found[0].to_dict() == found[1].to_dict()
    assert found[0].choosing != found[2].choosing
    assert len(texts[0]) == len(set(texts[0]))


def test_equal_configurations_of_two_grids_are_run_and_counted_once() -> None:
    grids = ("recursive:size={40,80}", "recursive:size={80,160},overlap=0")
    found = search(grids, ks=(3,), resamples=100)
    assert len(found.configurations) == 4
    assert [(choice.strategy, choice.candidates) for choice in found.strategies.choices] == [("recursive", 3)]
    assert found.strategies.gaps == ()


def test_questions_about_one_document_stay_on_one_side() -> None:
    benchmark = load_dataset("lochmere")
    document = {query.id: query.evidence[0].document_id for query in benchmark.queries}
    found = search(GRIDS[2:], ks=(3,), by="document", resamples=100).strategies
    assert not {document[each] for each in found.choosing} & {document[each] for each in found.reporting}


@pytest.mark.parametrize(
    ("grids", "options"),
    [((), {}), (GRIDS, {"ks": ()}), (GRIDS, {"seed": -1}), (GRIDS, {"measure": "nDGC@1"}), (GRIDS, {"resamples": 1})],
)
def test_a_search_that_cannot_be_is_refused(grids: tuple[str, ...], options: dict[str, object]) -> None:
    with pytest.raises(OptionError):
        search(grids, **options)


@pytest.mark.parametrize("measures", [["F1@1", "Recall@1"], ["F1@1", "F1@1[character]"], []])
def test_a_mean_is_of_one_measure(measures: list[str]) -> None:
    with pytest.raises(OptionError, match=r"measure"):
        TuneOptions(measure=measures)


def test_one_question_cannot_be_halved() -> None:
    one = Benchmark("one", [Document("d", "One.")], [Query("q", "?", (Evidence("d", Span(0, 3)),))])
    with pytest.raises(OptionError, match=r"at most the number of questions that are asked about \(1\)"):
        search(GRIDS, benchmark=one)


# --- what is shown


def test_the_verdict_says_what_the_other_half_gives(found: Tuning) -> None:
    verdict, first = found.strategies.verdict, found.strategies.choices[0]
    assert verdict.startswith(f"{first.configuration} has a mean F1 over k = 1, 3, 5 of {100 * first.score:.1f} %")
    assert f"on {len(found.strategies.reporting)} questions that chose nothing." in verdict


def test_panels_are_one_an_option_and_a_set_of_the_others(found: Tuning) -> None:
    seen: list[list[str]] = []

    def lines(trials):
        seen.append([each.spec for each in trials])
        return ()

    made = [
        (each.option, each.fixed)
        for branch in found.space.branches
        for option in branch.varied
        for each in option_panels(found, branch, option, lines)
    ]
    assert made == [
        ("size", "overlap=0"),
        ("size", "overlap=10"),
        ("overlap", "size=40"),
        ("overlap", "size=80"),
        ("overlap", "size=160"),
        ("sentences", ""),
    ]
    assert seen[1] == [f"recursive:size={size},overlap=10" for size in (40, 80, 160)]


def test_a_plot_has_a_line_a_k_and_every_value_as_a_tip(found: Tuning) -> None:
    drawn = option_plot(found, "Recall", width=860)
    for k in (1, 3, 5):
        value = 100 * mean(found, "recursive:size=80,overlap=0", "Recall", (k,))
        assert f"<title>k = {k}: {value:.1f} % at size=80</title>" in drawn
    together = option_plot(found, width=860)
    for name in ("Recall", "Precision", "F1"):
        value = 100 * mean(found, "fixed_sentences:sentences=3", name, (1, 3, 5))
        assert f"<title>{name}: {value:.1f} % at sentences=3</title>" in together
    assert all(drawn.count(f'width="{width}"') == (1 if width == 860 else 0) for width in (860, 360))


def test_where_nothing_varies_there_is_no_plot() -> None:
    found = search(GRIDS[2:], ks=(3,), resamples=100)
    assert option_plot(found, width=860) == ""
    assert "a line a k" not in tuning_html(found, {}, Advice.of_search(found))


@pytest.mark.parametrize("measure", ["MRR", "DCG@3", "Recall@200tok", "F1@3[document]"])
def test_any_measure_of_retrieval_is_shown(measure: str, tmp_path: Path) -> None:
    found = search(GRIDS[1:2], measure=measure, resamples=100)
    page = write_tuning(found, tmp_path).html.read_text(encoding="utf-8")
    assert measure in page
    assert "nan" not in page


def test_the_files_say_the_same_and_nothing_in_them_can_do_anything(tmp_path: Path) -> None:
    documents = [Document(f"d{n}", f"{text} The valve is under the lid.") for n, text in enumerate(NASTY)]
    queries = [Query(f"q{n}", text, (Evidence(f"d{n}", Span(0, 5)),)) for n, text in enumerate(NASTY)]
    benchmark = Benchmark(NASTY[0], documents, queries)
    nasty = 'recursive:size={20,40},separators=["<script>alert(1)</script>"," "]'
    found = search([nasty, "fixed_token:size=30"], benchmark=benchmark, ks=(1, "min"), resamples=100)
    files = write_tuning(found, tmp_path, {NASTY[1]: NASTY[2], "Seed": "0"})
    html = files.html.read_text(encoding="utf-8")
    assert "<script" not in html
    assert "<img" not in html
    assert "http" not in html.replace("http-equiv", "").replace("http://www.w3.org/2000/svg", "").replace(
        "http://example.invalid", ""
    )
    assert "default-src 'none'" in unescape(html)
    assert "<script" not in files.markdown.read_text(encoding="utf-8")
    written = json.loads(files.json.read_text(encoding="utf-8"))["strategies"]
    first = written["configurations"][0]
    assert [each["configuration"] for each in written["configurations"]] == [each.spec for each in found.configurations]
    assert written["choices"][0]["score"] == pytest.approx(found.strategies.choices[0].score)
    assert first["means"]["F1@1"] == pytest.approx(mean(found, first["configuration"], "F1", (1,)))
    assert len(first["scores"]["F1@min"]) == len(queries)


def test_markdown_has_a_row_a_choice_a_pair_and_a_configuration(found: Tuning) -> None:
    text = tuning_markdown(found, {"Seed": "0"}, Advice.of_search(found))
    tables = {part.split("\n")[0]: part.count("\n| ") - 2 for part in text.split("## ")[1:]}
    assert tables["Each strategy's best configuration"] == 3
    assert tables["Differences of the choices, in points"] == 3
    assert tables["Every configuration, on all questions"] == 9
    assert tables["Chosen without each part of the questions"] == 5
    assert f"**{100 * found.strategies.choices[0].score:.1f}**" in text


# --- the command


def test_the_command_prints_choices_and_writes_the_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chunkcore.models.get_embedder", lambda name: FakeEmbedder())
    call = ["tune", "-s", "fixed_sentences:sentences={1,2,4}", "-s", "recursive:size=60", "--unit", "part"]
    call += ["--docs", str(tmp_path / "long"), "--queries", "40", "--measure", "F1", "-k", "1", "-k", "5"]
    call += ["--resamples", "100", "--no-cache"]
    assert main(["datasets", "stitch", "--sentences", "30", "-o", str(tmp_path / "long")]) == 0
    assert main([*call, "-o", str(tmp_path / "out")]) == 0
    told = capsys.readouterr().out
    assert "mean F1[part] over k = 1, 5" in told
    assert "20 questions that chose nothing" in told
    assert told.splitlines()[-1] == str(tmp_path / "out" / "tune.json")
    found = json.loads((tmp_path / "out" / "tune.json").read_text(encoding="utf-8"))
    assert found["strategies"]["unit"] == "part"
    assert len(found["strategies"]["configurations"]) == 4
    assert (tmp_path / "out" / "tune.html").is_file()


def test_evidence_sentences_are_those_that_the_evidence_touches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Evidence from the middle of one sentence into the next is both: a chunk of one sentence holds half of it."""
    monkeypatch.setattr("chunkcore.models.get_embedder", lambda name: FakeEmbedder())
    (tmp_path / "documents.jsonl").write_text(
        '{"id": "d", "text": "The fox naps here. A dog barks."}', encoding="utf-8"
    )
    rows = [
        {"id": each, "question": each, "evidence": ["naps here. A dog"]} for each in ("The fox naps?", "dog barks?")
    ]
    (tmp_path / "questions.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    call = ["tune", "--docs", str(tmp_path), "-s", "fixed_sentences:sentences={1,2}", "--unit", "sentence", "-k", "1"]
    assert main([*call, "--no-cache", "--resamples", "100", "-o", str(tmp_path / "out")]) == 0
    found = json.loads((tmp_path / "out" / "tune.json").read_text(encoding="utf-8"))
    assert found["strategies"]["configurations"][0]["scores"]["Recall@1[sentence]"] == [0.5, 0.5]


def test_a_dry_run_lists_the_configurations_and_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["tune", "-s", "recursive:size={50,100}", "--dry-run"]) == 0
    told = capsys.readouterr().out.splitlines()
    assert told == ["recursive:size=50", "recursive:size=100", "2 configurations, 90 questions"]
    assert not list(tmp_path.iterdir())


def test_grids_come_from_a_file_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "grids.yaml"
    file.write_text('- "recursive:size={50,100}"\n- sentence\n', encoding="utf-8")
    assert main(["tune", "--space", str(file), "-s", "fixed_token:size={30,60}", "--dry-run"]) == 0
    told = capsys.readouterr().out.splitlines()
    sizes = ["fixed_token:size=30", "fixed_token:size=60", "recursive:size=50", "recursive:size=100"]
    assert told == [*sizes, "sentence", "5 configurations, 90 questions"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["-s", "recursive:size={50,50}"], "the value '50' twice"),
        (["-s", "recursive:size={50,60}", "-s", "recursive:size={50,60}"], "given twice"),
        (["--unit", "paragraph"], "unknown unit 'paragraph'"),
        (["--measure", "DCG@5", "-s", "recursive:size={50,60}"], "--measure of grids is a share"),
        (["--measure", "PrecisionOmega", "-k", "5"], "takes no k"),
        (["--measure", "F1@5", "-k", "5"], "--measure F1@5 has its own depth: give the name alone"),
        (["--measure", "Accuracy@5"], "Accuracy@5"),
        (["--unit", "answer"], "Recall does not count answers"),
        (["-k", "0"], "--k: expected"),
        (["--by", "page"], "by is question or document"),
        (["--questions", "none.jsonl"], "without --docs"),
        (["--docs", "nowhere"], "does not exist"),
    ],
)
def test_bad_input_is_one_sentence(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tune", "--no-cache", *arguments]) == 2
    told = capsys.readouterr().err
    assert words in told
    assert "Traceback" not in told


def test_scores_that_are_not_known_are_null_and_choose_nothing() -> None:
    scores = np.full((6, 2, 1), math.nan)
    scores[:, 1] = 0.25
    found = choices(("min",), {"any": (("unknown", "known"), scores)}, 6, first=np.arange(6) < 3, resamples=50)
    [choice] = found.choices
    assert (choice.configuration, choice.score) == ("known", 0.25)


# --- retrievers, searched as one more option


def test_retrievers_are_searched_beside_the_options_and_each_scores_as_a_comparison_says() -> None:
    pytest.importorskip("bm25s")
    space = parse_space(["recursive:size={40,160}"]).with_retrievers(retriever_values(["dense", "bm25:b={0,1}"]))
    benchmark = load_dataset("lochmere")
    options = TuneOptions(measure="Recall@200tok", resamples=100)
    found = tune(benchmark, space, FakeEmbedder(), options=options)
    assert [trial.spec for trial in found.trials if trial.number >= 0] == [
        f"recursive:size={size} · {retriever}" for retriever in ("dense", "bm25:b=0", "bm25:b=1") for size in (40, 160)
    ]
    for trial in found.trials:
        spec, retriever = configuration(trial.spec)
        (report,) = run_experiment(
            benchmark,
            [get_chunker(spec)],
            FakeEmbedder(),
            measures=["Recall@200tok"],
            retrievers=[retriever or "dense"],
        )
        assert trial.quality == report.mean("Recall@200tok")
    pasted = snippets(found.winner.spec)
    assert configuration(found.winner.spec)[1] in pasted["Retriever"]
    assert " · " not in "".join(pasted.values())


@pytest.mark.parametrize("retriever", ["passages", "passages:lexical"])
def test_the_lines_to_paste_make_passages_in_each_framework(retriever: str) -> None:
    pasted = snippets(f"sentence:size=50 · {retriever}")
    for framework, package in (
        ("LangChain", "langchain_core"),
        ("LlamaIndex", "llama_index.core"),
        ("Haystack", "haystack"),
    ):
        pytest.importorskip(package)
        names: dict[str, Any] = {}
        exec(pasted[framework], names)
        assert names["passages_of"].keywords["max_tokens"] == 1000
        assert ("(documents)" in pasted[framework] or "(store)" in pasted[framework]) == (retriever != "passages")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["nothing"], "nothing"),
        (["bm25:b={0,7}"], "b is at least 0"),
        (["dense", "dense"], "each once"),
        ([f"hnsw:ef={{{','.join(map(str, range(1, 2000)))}}}"], "narrow it"),
    ],
)
def test_a_wrong_retriever_is_refused_before_anything_is_run(given, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        retriever_values(given)


def test_a_file_and_a_grid_may_name_retrievers(tmp_path: Path) -> None:
    pytest.importorskip("bm25s")
    file = tmp_path / "space.yaml"
    file.write_text("sentence:\n  size: [50, 100]\n  retriever: [bm25, dense]\n")
    assert load_space(file).branches[0].parameters["retriever"].values == ("bm25", "dense")
    assert grid_space(["sentence:retriever={bm25,dense}"]).specs == ["sentence · bm25", "sentence · dense"]
    file.write_text("sentence:\n  retriever: [bm25, dence]\n")
    with pytest.raises(OptionError, match="dence"):
        load_space(file)


def test_the_command_searches_retrievers_resumes_and_keeps_a_strategy_for_yaml(
    tmp_path: Path, fake: FakeEmbedder, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("bm25s")
    command = ["tune", "-s", "sentence:size={50,100}", "-r", "bm25:words={whole,first5}", "--resamples", "100"]
    output = ["-o", str(tmp_path / "out")]
    assert main([*command, *output]) == 0
    assert 'get_retriever("bm25:words=' in capsys.readouterr().out
    assert read_specs(tmp_path / "out" / "winner.yaml")[0].startswith("sentence:size=")
    before = (tmp_path / "out" / "study.jsonl").read_bytes()
    assert main([*command, *output]) == 0
    assert (tmp_path / "out" / "study.jsonl").read_bytes() == before
