"""The first thing that a comparison says: what to use, why, what to avoid, and what to run next."""

from __future__ import annotations

import io
import math
import re
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import typer
from chunkcore.cli import app
from chunkcore.evaluation.comparison import compare
from chunkcore.evaluation.measures import get_measure
from chunkcore.evaluation.results import Cost, Report, System
from chunkcore.plain import markdown_cell, terminal_text
from chunkcore.report import html_report, markdown_report, snippets
from chunkcore.report.advice import Advice
from chunkcore.report.records import print_report
from chunkcore.study.comparing import ReportPage
from chunkcore.study.tuning import TuneOptions, conclude
from rich.console import Console

from tests.report_data import NASTY, study, system

RECALL, BUDGET = get_measure("Recall@5"), get_measure("Recall@1000tok")
HARD = np.random.default_rng(0).uniform(0, 1, 90)
TENTHS = np.arange(90) % 10 / 10
BEHIND = np.tile([0.105, -0.095], 45)  # by 0.5 points on average


def report(name: str, scores: Sequence[float], *, measure=RECALL, tokens: float = 500, read: int = 100) -> Report:
    values = np.asarray(scores, dtype=np.float64)
    ids = tuple(f"q{i}" for i in range(len(values)))
    retrieved = {measure.k: np.full(len(values), tokens)}
    cost = Cost(source_tokens=100, embedded_tokens=read, embedded_texts=1)
    options = {"retrieved_tokens": retrieved, "cost": cost, "system": system(name)}
    return Report(name, "b", ids, ("",) * len(ids), {measure: values}, **options)


def near(shift: float, seed: int, size: int = 90) -> np.ndarray:
    return np.clip(HARD[:size] + shift + np.random.default_rng(seed).normal(0, 0.15, size), 0, 1)


def advise(*reports: Report, measure=RECALL, **options) -> Advice:
    return Advice.of(ReportPage(compare(reports, measure, resamples=1000), **options))


def lines(advice: Advice) -> dict[str, str]:
    return dict(advice.lines)


def test_a_clear_winner_is_to_be_used() -> None:
    advice = advise(report("sentence:size=100", near(0.3, 1)), report("recursive:size=100", near(0, 2)))
    used = r"sentence:size=100: it finds [\d.]+ % of the evidence in k = 5 \(95 % interval"
    assert re.match(used, lines(advice)["Use"])
    assert list(advice.pasted) == ["LangChain", "LlamaIndex", "Haystack", "Command line"]
    assert advice.command == ""


def test_at_an_equal_budget_what_indexing_takes_decides_and_equal_costs_are_no_reason() -> None:
    def two(read: int) -> Advice:
        first = report("a", TENTHS, measure=BUDGET, tokens=1000, read=read)
        unknown = replace(report("yours", TENTHS - BEHIND / 2, measure=BUDGET, tokens=1000), cost=None)
        return advise(first, unknown, report("b", TENTHS - BEHIND, measure=BUDGET, tokens=1000), measure=BUDGET)

    dear, alike = two(180), two(100)
    assert dear.use == "b"
    assert "the lowest cost to index" in lines(dear)["Why this one"]
    assert "models read 1.0 times the documents' tokens, others up to 1.8 times" in lines(dear)["Why this one"]
    assert "Avoid" not in lines(dear), "less than twice the cost"
    assert alike.use == "a"
    why = "It has the best score, and no other within 2.0 points of it is known to cost less."
    assert lines(alike)["Why this one"] == why
    assert "in 1,000 retrieved tokens" in lines(alike)["Use"]


def test_what_is_surely_equal_needs_no_more_questions() -> None:
    equal = "Nothing: any tied system is within 2.0 points of it (equivalent)."
    assert lines(advise(*[report(name, np.tile(HARD, 5)) for name in "ab"]))["To settle it"] == equal
    few = lines(advise(report("a", [0] * 40), report("b", [1] * 4 + [0] * 36)))["Against the baseline"]
    assert few == "b is 10.0 points ahead of a (95 % interval +2.5 to +20.0): too few questions differ to tell."


def test_with_few_questions_the_next_command_is_given_and_it_is_one() -> None:
    label = "chunkcore questions label 'my docs'"
    few = advise(report("a", near(0.3, 1, 12)), report("b", near(0, 2, 12)), more_questions=label)
    assert few.lines[0][0] == "For now"
    assert lines(few)["Next"] == "12 questions can settle little: label 18 more at least, and compare again."
    program, group, name, *arguments = shlex.split(few.command)
    command = typer.main.get_command(app).commands[group].commands[name]
    assert program == "chunkcore"
    assert Path(command.make_context(name, arguments).params["docs"]) == Path("my docs")


def test_a_deployed_system_has_no_lines_to_paste_and_a_strategy_has_those_of_its_retriever_and_model() -> None:
    assert advise(report("our search", near(0.3, 1))).pasted == {}
    own = advise(report("recursive:size=100 · bm25", near(0.3, 1)), folder="my docs").pasted
    assert 'load_documents("my docs")' in own["LangChain"]
    assert shlex.split(own["Command line"])[2] == "my docs"


def test_without_scores_nothing_is_advised() -> None:
    advice = advise(report("a", [math.nan] * 4), report("b", [math.nan] * 4))
    assert (advice.use, advice.pasted, lines(advice)["Use"][:22]) == ("", {}, "Nothing can be advised")
    stopped = [replace(report(name, near(0, 1), tokens=9), asked=30) for name in "ab"]
    three = compare([report("a", near(0, 1)), report("c", near(0, 2)), stopped[1]], baseline="b", resamples=100)
    assert lines(Advice.of(ReportPage(three)))["Against the baseline"].startswith("c is 1.1 points ahead of b (95 %")
    assert advise(*stopped).use == advise(report("a", near(0, 1)), stopped[1]).use == "a", "both, or the cheaper one"


@pytest.mark.parametrize("names", [("recursive:size=200", "sentence:size=100", "fixed_token:size=250"), NASTY])
def test_terminal_markdown_and_page_begin_with_the_same_lines(names) -> None:
    page = study(names=names, questions=40)
    advice = Advice.of(page)
    stream = io.StringIO()
    print_report(page, Console(file=stream, width=4000, highlight=False))
    markdown, source = markdown_report(page), html_report(page)
    for _, text in advice.lines:
        assert terminal_text(text) in stream.getvalue()
        assert markdown_cell(text) in markdown
    assert stream.getvalue().split()[0] == advice.lines[0][0]
    assert markdown.index(f"- **{advice.lines[0][0]}**") < markdown.index("## Verdict") < markdown.index("## Scores")
    assert source.index('class="advice"') < source.index("<svg") < source.index('class="statistics"')
    assert next(iter(advice.pasted.values()), "") in markdown, "the page has all of them"


# How far a system is behind a, and how many questions a wave of its scores is long.
ABC = {"a": (0, 0), "b": (0.005, 1), "c": (0.015, 1), "d": (0.03, 1)}
FAR = {"a": (0, 0), "b": (0.03, 1)}
ALWAYS = {"a": (0, 0), "b": (0.005, 0), "none": (math.nan, 0)}
WAVES = {"a": (0, 0)} | {f"s{length}": (0.056, length) for length in (1, 2, 3, 5, 7, 9, 11, 13, 15)}
NO_GAP = "no significant difference on 90 questions. Under the margin of 2.0 points a difference would not matter."
LEAST = (
    "It has the fewest retrieved tokens of those within 2.0 points of the best score: 400 a question, others up to 800"
)
LIKELY = (
    "s1, s3, s5 and 5 more are likely behind, as the intervals leave out 0, but among 45 pairs chance alone may do "
    "that (p up to 0.2); not enough questions: 90, some 170 would settle it."
)
MORE = "show a difference of 2.0 points in 8 of 10 cases."
TIED = {
    "Tied": f"a: {NO_GAP}",
    "Why this one": f"{LEAST}.",
    "Avoid": "d (2.5 points lower): more than chance explains.",
    "To settle it": f"960 to 960 more questions {MORE}",
}
CHANCE = "It has the best score; any tied system is more than 2.0 points worse, though that may be chance."
ALONE = {"Tied": f"b: {NO_GAP}", "Why this one": CHANCE, "To settle it": f"700 to 700 more questions {MORE}"}


@pytest.mark.parametrize(
    ("systems", "baseline", "against", "others"),
    [
        (ABC, "a", "b is 0.5 points behind a (95 % interval -4.5 to +3.5): no significant difference.", TIED),
        (ABC, "b", "b is the baseline; no other is shown to be better.", TIED),
        (ABC, "c", "b is 1.0 points ahead of c (95 % interval +1.0 to +1.0): more than chance explains.", TIED),
        (FAR, "a", "a is the baseline; no other is shown to be better.", ALONE),
        (ALWAYS, "b", "b is the baseline; a: shown to be better.", {"Why this one": f"{LEAST}."}),
        (ALWAYS, "none", "none: Recall@5 is not defined for it.", {"Why this one": f"{LEAST}."}),
        (
            WAVES,
            "s3",
            "a is 5.6 points ahead of s3 (95 % interval +1.6 to +9.6): likely, but not shown among so many systems.",
            {"Likely worse": LIKELY, "Avoid": "s13 (8.3 points lower): more than chance explains."},
        ),
    ],
)
@pytest.mark.parametrize("measure", [RECALL, get_measure("F1@5")])
def test_every_line_of_a_comparison_says_what_the_scores_say(systems, baseline, against, others, measure) -> None:
    reports = []
    for name, (behind, length) in systems.items():
        wave = np.where(np.arange(90) // max(1, length) % 2, 0.2, -0.2) * bool(length)
        reports.append(report(name, TENTHS - behind + wave, measure=measure, tokens=800 if name == "a" else 400))
    (_, use), *told = Advice.of(ReportPage(compare(reports, measure, baseline=baseline, resamples=1000))).lines
    assert use.partition(": ")[2].startswith("it finds" if measure == RECALL else "its F1@5 is")
    assert dict(told) == {"Against the baseline": against.replace("Recall", measure.kind), **others}


def test_questions_of_whole_documents_are_counted_with_their_documents() -> None:
    two = [report("a", TENTHS), report("b", TENTHS - 0.01 + np.where(np.arange(90) // 6 % 2, 0.1, -0.1))]
    told = lines(advise(*(replace(each, documents=tuple(f"d{i // 6}" for i in range(90))) for each in two)))
    documents = "which is 170 to 190 more documents like these,"
    assert told["To settle it"] == f"1,000 to 1,200 more questions, {documents} {MORE}"


@pytest.mark.parametrize("questions", [29, 30])
@pytest.mark.parametrize("gain", [0.2, -0.1])
def test_a_search_advises_its_winner_only_where_other_questions_show_a_gain(questions, gain) -> None:
    scores = np.resize(TENTHS, questions)
    two = [report("sentence:size=9 · bm25", scores), report("recursive:size=9 · bm25", scores + gain)]
    folds = (np.arange(questions) % 5, None)
    options = TuneOptions(measure="Recall@5", resamples=100)
    tuning = conclude(two, two[0].name, folds, options, {})
    advice = Advice.of(ReportPage(tuning.comparison, tuning=tuning))
    label = "Keep the default"
    if gain > 0:
        label = "For now" if questions < 30 else "Use"
    used = two[int(gain > 0)]
    expect = f"{used.name}: expect a Recall@5 of {100 * used.mean(RECALL):.1f} % on other questions."
    few = [("Next", "29 questions can settle little: label 1 more at least, tune again.")] * (questions < 30)
    assert advice.lines == ((label, expect), ("Why", tuning.verdict), *few)
    assert (advice.use, bool(advice.command)) == (used.name, questions < 30)
    assert re.search(f'"{used.system.chunker}".*k=5, max_tokens=100_000', advice.pasted["Python"], re.DOTALL)


def test_pasted_code_has_the_model_counter_and_documents_of_its_system() -> None:
    own = System("cluster_semantic:size=9", "hybrid", "my:model")
    whole = snippets(replace(own, behind="whole"), "o200k_base")["LangChain"]
    assert 'corpus = chunk_corpus(documents, "cluster_semantic:size=9,embedder=my:model")' in whole
    assert 'index = get_retriever("hybrid").index(corpus, "my:model")' in whole
    assert 'units = chunk_corpus(documents, "sentence:size=50,counter=o200k_base")' in whole
    assert whole.endswith('index="words", max_tokens=1000, show="whole", counter="o200k_base")')
    assert "PassageRetriever" not in snippets(own)["LangChain"]
    splitters = {
        "cluster_semantic:embedder=b": "",
        "recursive": "",
        "recursive:counter=embedder": ', fit_to="my:model"',
    }
    for spec, fitted in splitters.items():
        assert snippets(replace(own, chunker=spec, retriever=""))["LangChain"].endswith(f'("{spec}"{fitted})')
