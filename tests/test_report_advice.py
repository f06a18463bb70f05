"""The first thing that a comparison says: what to use, why, what to avoid, and what to run next."""

from __future__ import annotations

import io
import math
import re
import shlex
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import typer
from chunkcore.cli import app
from chunkcore.evaluation.comparison import compare
from chunkcore.evaluation.measures import get_measure
from chunkcore.evaluation.results import Cost, Report
from chunkcore.plain import markdown_cell, terminal_text
from chunkcore.report import html_report, markdown_report
from chunkcore.report.advice import Advice
from chunkcore.report.records import print_report
from chunkcore.study.comparing import ReportPage
from rich.console import Console

from tests.report_data import NASTY, study, system

RECALL, BUDGET = get_measure("Recall@5"), get_measure("Recall@1000tok")
HARD = np.random.default_rng(0).uniform(0, 1, 90)


def report(name: str, scores: Sequence[float], *, measure=RECALL, tokens: float = 500, read: int = 100) -> Report:
    values = np.asarray(scores, dtype=np.float64)
    ids = tuple(f"q{i}" for i in range(len(values)))
    retrieved = {measure.k: np.full(len(values), tokens)}
    cost = Cost(source_tokens=100, embedded_tokens=read, embedded_texts=1)
    return Report(
        name, "b", ids, ("",) * len(ids), {measure: values}, retrieved_tokens=retrieved, cost=cost, system=system(name)
    )


def near(shift: float, seed: int, size: int = 90) -> np.ndarray:
    return np.clip(HARD[:size] + shift + np.random.default_rng(seed).normal(0, 0.15, size), 0, 1)


def jittered(lower: float) -> np.ndarray:
    """HARD, a little lower on average, and by chance on each question."""
    noise = np.random.default_rng(1).normal(0, 0.1, len(HARD))
    return HARD + noise - noise.mean() - lower


def advise(*reports: Report, measure=RECALL, **options) -> Advice:
    return Advice.of(ReportPage(compare(reports, measure, resamples=1000), **options))


def lines(advice: Advice) -> dict[str, str]:
    return dict(advice.lines)


def test_a_clear_winner_is_to_be_used_and_what_is_surely_worse_to_be_avoided() -> None:
    advice = advise(report("sentence:size=100", near(0.3, 1)), report("recursive:size=100", near(0, 2)))
    told = lines(advice)
    assert advice.use == "sentence:size=100"
    assert re.match(r"sentence:size=100: it finds [\d.]+ % of the evidence in k = 5 \(95 % interval", told["Use"])
    assert re.fullmatch(r"recursive:size=100 \([\d.]+ points lower\): more than chance explains.", told["Avoid"])
    assert not {"Tied", "Why this one", "To settle it"} & set(told)
    assert list(advice.pasted) == ["LangChain", "LlamaIndex", "Haystack", "Command line"]
    assert advice.command == ""


def test_of_the_tied_the_one_that_retrieves_least_is_to_be_used() -> None:
    advice = advise(report("a", HARD, tokens=1500), report("b", jittered(0.005), tokens=400))
    told = lines(advice)
    assert advice.use == "b"
    assert told["Tied"].startswith("a: 90 questions show no significant difference. Under the margin of 2.0")
    assert (
        "the fewest retrieved tokens of those within 2.0 points of the highest score: 400 a question"
        in (told["Why this one"])
    )


def test_at_an_equal_budget_what_indexing_takes_decides_and_equal_costs_are_no_reason() -> None:
    def two(read: int) -> Advice:
        first = report("a", HARD, measure=BUDGET, tokens=1000, read=read)
        return advise(first, report("b", jittered(0.005), measure=BUDGET, tokens=1000), measure=BUDGET)

    dear, alike = two(180), two(100)
    assert dear.use == "b"
    assert "the lowest cost to index" in lines(dear)["Why this one"]
    assert "models read 1.0 times the documents' tokens, others up to 1.8 times" in lines(dear)["Why this one"]
    assert "Avoid" not in lines(dear), "less than twice the cost"
    assert alike.use == "a"
    assert lines(alike)["Why this one"] == (
        "It has the highest score, and no other within 2.0 points of it is known to cost less."
    )
    assert "in 1,000 retrieved tokens" in lines(alike)["Use"]


def test_a_cheap_one_is_not_used_where_it_seems_worse_by_more_than_the_margin() -> None:
    noisy = np.random.default_rng(3).normal(0, 0.5, 90)
    advice = advise(report("a", HARD, tokens=900), report("cheap", HARD + noisy - noisy.mean() - 0.03, tokens=10))
    assert advice.use == "a"
    assert "cheap" in lines(advice)["Tied"]
    assert "the tied are more than 2.0 points lower, though that may be chance" in lines(advice)["Why this one"]
    assert re.search(r"[\d,]+ to [\d,]+ more questions", lines(advice)["To settle it"])


def test_what_is_surely_equal_needs_no_more_questions() -> None:
    scores = np.tile(HARD, 5)
    advice = advise(report("a", scores), report("b", scores))
    assert (
        lines(advice)["To settle it"]
        == "Nothing between these: all of the tied are within 2.0 points of each other (equivalent)."
    )


def test_with_few_questions_the_next_command_is_given_and_it_is_one() -> None:
    few = advise(
        report("a", near(0.3, 1, 12)), report("b", near(0, 2, 12)), more_questions="chunkcore questions label 'my docs'"
    )
    assert few.lines[0][0] == "For now"
    assert lines(few)["Next"] == "12 questions settle little: label 18 more at least, and compare again."
    program, group, name, *arguments = shlex.split(few.command)
    command = typer.main.get_command(app).commands[group].commands[name]
    assert program == "chunkcore"
    assert Path(command.make_context(name, arguments).params["docs"]) == Path("my docs")


def test_a_deployed_system_has_no_lines_to_paste_and_a_strategy_has_those_of_its_retriever_and_model() -> None:
    assert advise(report("our search", near(0.3, 1))).pasted == {}
    pasted = advise(report("cluster_semantic:size=100 · bm25 · openvino:mine", near(0.3, 1))).pasted
    assert 'get_retriever("bm25")' in pasted["Python"]
    own = advise(report("recursive:size=100 · bm25", near(0.3, 1)), folder="my docs").pasted
    assert 'load_documents("my docs")' in own["LangChain"]
    assert shlex.split(own["Command line"])[2] == "my docs"
    assert all("embedder=openvino:mine" in pasted[title] for title in ("LangChain", "LlamaIndex", "Haystack"))


def test_without_scores_nothing_is_advised() -> None:
    advice = advise(report("a", [math.nan] * 4), report("b", [math.nan] * 4))
    assert (advice.use, advice.pasted) == ("", {})
    assert lines(advice)["Use"].startswith("Nothing can be advised")


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
    for text in list(advice.pasted.values())[:1]:  # the page has all of them
        assert text in markdown
