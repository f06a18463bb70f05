"""A difference is called real where the questions support it, and the verdict says no more than that."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from chunkcore import DataError, OptionError, Report, compare, get_measure
from chunkcore.evaluation.comparison import unsettled_words
from chunkcore.evaluation.resampling import intervals, questions_to_show, resampled_means, units_to_show

from tests.results import mean_intervals

RECALL = get_measure("Recall", 5)


def report(name: str, scores: Sequence[float], *, unanswered: int = 0) -> Report:
    values = np.asarray(scores, dtype=np.float64)
    ids = tuple(f"q{i}" for i in range(len(values)))
    return Report(name, "b", ids, ("",) * len(ids), {RECALL: values}, unanswered=ids[:unanswered])


def noisy(mean: float, size: int = 400, seed: int = 0) -> np.ndarray:
    return mean + np.random.default_rng(seed).normal(0, 0.3, size)


HARD = noisy(0.5)  # what makes a question hard for every system


def near(shift: float, seed: int) -> np.ndarray:
    """Scores that differ from HARD by a shift and a little noise."""
    return HARD + shift + np.random.default_rng(seed).normal(0, 0.05, len(HARD))


def test_the_long_side_of_skewed_scores_is_the_longer() -> None:
    scores = np.repeat([0.0, 0.05, 0.4], [60, 27, 3])
    low, high = mean_intervals(scores[:, None], shares=True)
    plain = mean_intervals(scores[:, None])
    assert low[0] <= plain[0][0] < plain[1][0] < high[0]
    assert high[0] - scores.mean() > 1.5 * (scores.mean() - low[0])
    mirrored = mean_intervals(1 - scores[:, None], shares=True)
    assert mirrored[0][0] == pytest.approx(1 - high[0], abs=1e-9)


def test_a_clear_winner_is_named_with_its_lead() -> None:
    found = compare([report("b", near(-0.1, 1)), report("a", near(0, 2))])
    assert (found.best, found.tied) == ("a", ("a",))
    (difference,) = found.differences
    assert (difference.a, difference.b, difference.distinct) == ("b", "a", True)
    assert difference.low < difference.mean < difference.high < 0
    assert found.questions_needed is None, "nothing is open"
    assert found.firsts == {"a": 1, "b": 0}
    assert (difference.wins, difference.losses) == (28, 372)
    assert found.verdict.startswith("a is best: its Recall@5 is ")
    assert f"It is {-100 * difference.mean:.1f} points ahead of b" in found.verdict


def test_without_a_clear_winner_all_tied_are_named() -> None:
    means = {"worst": -0.3, "b": -0.001, "a": 0, "c": -0.0015}
    systems = [report(name, near(mean, seed)) for seed, (name, mean) in enumerate(means.items(), 1)]
    found = compare(systems, margin=0.002)
    assert found.best is None
    assert set(found.tied) == {"a", "b", "c"}
    first, second, third = found.tied
    best = max(systems, key=lambda system: system.mean(RECALL))
    assert best.name == first
    assert f"No system can be called best: {first} has the highest Recall@5" in found.verdict
    assert f"and is first in {100 * found.firsts[first]:.0f} % of resamples of these questions." in found.verdict
    assert f"It is statistically tied with {second} and {third}, and" in found.verdict
    assert "worst" not in found.verdict
    assert found.questions_needed is not None
    undecided = sum(not gap.distinct for gap in found.differences)
    second_best = next(system for system in systems if system.name == second)
    apart = best.values(RECALL) - second_best.values(RECALL)
    ends = questions_to_show(0.002, apart, confidence=1 - 0.05 / undecided)
    assert found.questions_needed == tuple(map(math.ceil, ends))
    assert "A difference of 0.2 points takes" in found.verdict
    assert "such questions" not in compare(systems, margin=0.02).verdict


def test_systems_within_the_margin_are_equivalent_and_those_that_may_be_farther_apart_are_not() -> None:
    systems = [report("a", near(0, 1)), report("b", near(0.001, 2))]
    assert compare(systems).differences[0].equivalent
    assert not compare(systems, margin=0.001).differences[0].equivalent
    for shift in (-0.1, 0.1):
        assert not compare([report("a", near(shift, 1)), systems[1]]).differences[0].equivalent
    few = [report(each.name, each.values(RECALL)[:10]) for each in systems]
    assert not compare(few).differences[0].equivalent


@pytest.mark.parametrize(("questions", "equivalent"), [(100, False), (149, False), (150, True)])
def test_systems_that_always_scored_the_same_are_equivalent_only_on_enough_questions(questions, equivalent):
    """Of 149 questions without a difference, 2 % of all questions might still have one: 0.98^149 = 0.049."""
    same = [0.5] * questions
    assert compare([report("a", same), report("b", same)]).differences[0].equivalent is equivalent


def test_a_difference_has_a_size_and_the_questions_won_and_lost() -> None:
    found = compare([report("a", [1, 1, 1, 0, 0.5]), report("b", [0, 0, 1, 1, 0.5])]).differences[0]
    assert (found.wins, found.losses) == (2, 1)
    assert (found.mean, found.reverse().mean) == (pytest.approx(0.2), -found.mean)
    assert (found.reverse().wins, found.reverse().a) == (1, "b")


def test_questions_of_a_document_that_agree_count_as_few_witnesses() -> None:
    """Twelve documents whose forty questions each all say the same: that is twelve answers, and not 480."""
    by_document = np.random.default_rng(7).normal(0.05, 0.12, 12)
    apart = np.repeat(by_document, 40)
    systems = [report("a", apart), report("b", np.zeros(480))]
    systems = [replace(each, documents=tuple(f"document {i // 40}" for i in range(480))) for each in systems]
    alone, together = compare(systems, by="question"), compare(systems)
    assert (alone.by, together.by) == ("question", "document")
    assert alone.best == "a"
    assert together.best is None
    wide, narrow = (each.differences[0].high - each.differences[0].low for each in (together, alone))
    assert 4 < wide / narrow < 9  # about the square root of 40
    assert "over 480 questions about 12 documents, which were resampled whole" in together.verdict
    assert alone.questions_needed is None
    assert together.questions_needed is not None
    assert together.questions_needed[0] > 480


@pytest.mark.parametrize("more", [1, 10, 24])
def test_a_verdict_between_two_does_not_turn_when_systems_are_added_or_removed(more: int) -> None:
    """Twelve documents: what is far behind stays behind, and nothing becomes tied or changes its side."""
    draw = np.random.default_rng(3)
    documents = tuple(f"document {i // 8}" for i in range(96))
    hard = np.repeat(draw.normal(0.6, 0.1, 12), 8) + draw.normal(0, 0.2, 96)
    means = [0.0, -0.02, -0.07, -0.25, *np.linspace(-0.01, -0.2, 24)]
    rows = [hard + mean + np.repeat(draw.normal(0, 0.06, 12), 8) + draw.normal(0, 0.15, 96) for mean in means]
    systems = [replace(report(f"s{number}", row), documents=documents) for number, row in enumerate(rows)]
    few, many = compare(systems[:4], resamples=1000), compare(systems[: 4 + more], resamples=1000)
    for gap in few.differences:
        other = many.between(gap.a, gap.b)
        assert (other.mean, other.low, other.high) == (gap.mean, gap.low, gap.high)
        assert (other.likely, other.p_value, other.equivalent) == (gap.likely, gap.p_value, gap.equivalent)
        assert other.adjusted_p >= other.p_value
    for found in (few, many):
        assert found.between("s0", "s3").distinct, "however many systems there are"
        assert "s3" not in found.tied
        assert not any(found.between(found.tied[0], name).likely for name in found.tied[1:])


def test_what_documents_leave_open_is_said_with_how_many_would_do() -> None:
    draw = np.random.default_rng(1)
    documents = tuple(f"{i // 6}" for i in range(72))
    rows = [np.repeat(draw.normal(0.5 - 0.16 * (number > 0), 0.15, 12), 6) for number in range(9)]
    systems = [replace(report(f"s{number}", row), documents=documents) for number, row in enumerate(rows)]
    found = compare(systems, resamples=1000)
    names = [gap.b for gap in found.unsettled]
    assert names, "likely behind, not for sure"
    assert not set(names) & set(found.tied)
    for gap in found.unsettled:
        apart = rows[0] - rows[int(gap.b[1:])]
        least = units_to_show(apart, confidence=1 - 0.05 / 8, clusters=documents)
        assert found.units_needed(gap) == math.ceil(least) > 12
    one, two = (unsettled_words(found, found.unsettled[:count]) for count in (1, 2))
    assert one.startswith(f"{names[0]} is likely behind")
    assert two.startswith(f"{names[0]} and {names[1]} are likely behind")
    assert "not enough documents: 12, some " in found.verdict


def test_equivalent_is_what_both_one_sided_tests_say() -> None:
    pair = [report("a", near(0, 1)), report("b", near(0, 2))]
    apart = (pair[0].values("Recall@5") - pair[1].values("Recall@5"))[:, None]
    means = resampled_means(apart, resamples=10_000, seed=0)
    low, high = intervals(means, np.array([len(apart)]), 0.9)  # two one-sided tests at 5 % are an interval at 90 %
    edge = max(float(high[0]), -float(low[0]))
    assert compare(pair, margin=edge + 1e-9).differences[0].equivalent
    assert not compare(pair, margin=edge - 1e-9).differences[0].equivalent


def test_each_system_is_compared_with_the_baseline() -> None:
    systems = [report("today", near(-0.1, 1)), report("a", near(0, 2)), report("b", near(-0.1, 3))]
    found = compare(systems)
    assert found.baseline == "today"
    assert [(gap.a, gap.b, gap.distinct) for gap in found.against] == [("a", "today", True), ("b", "today", False)]
    assert [gap.b for gap in compare(systems, baseline="b").against] == ["b", "b"]
    with pytest.raises(OptionError, match="no system is called 'c': expected one of today, a and b"):
        compare(systems, baseline="c")


def test_few_shared_documents_are_named_and_not_resampled() -> None:
    five, six = (tuple(f"{i % count}" for i in range(400)) for count in (5, 6))
    few = [replace(report(name, near(0, seed)), documents=five) for seed, name in enumerate("ab")]
    found = compare(few)
    assert (found.by, compare([replace(each, documents=six) for each in few]).by) == ("question", "document")
    assert "The questions are about 5 documents, too few to resample" in found.verdict
    apart = [replace(report(name, HARD[:5]), documents=tuple("vwxyz")) for name in "ab"]
    for verdict in (compare(few, by="document").verdict, compare(apart).verdict):
        assert "too few to resample" not in verdict


def test_what_was_found_in_no_document_is_a_caveat() -> None:
    located = {"a": {"spans": 40, "unlocated": 60}, "b": {"spans": 1000, "unlocated": 3}}
    systems = [replace(report(name, near(0, 1)), located=located[name]) for name in "ab"]
    assert systems[0].unlocated_share == 0.6
    verdict = compare(systems).verdict
    assert "60 % of what a retrieved was found in no document, and counts as no evidence." in verdict
    assert "of what b retrieved" not in verdict


def test_identical_strategies_are_tied_and_no_number_of_questions_separates_them() -> None:
    found = compare([report("a", HARD), report("b", HARD)])
    assert (found.best, found.tied, found.questions_needed) == (None, ("a", "b"), None)
    assert found.firsts == {"a": 0.5, "b": 0.5}
    assert "a and b score the same on every question, so no number of such questions would separate" in found.verdict


def test_what_was_stopped_early_is_never_tied() -> None:
    wave = np.tile([0.01, -0.01], 200)
    systems = [report("a", HARD), report("b", HARD + wave), report("c", HARD - wave)]
    found = compare([*systems, replace(report("d", HARD), asked=12)])
    assert set(found.tied) == set("abc")
    assert "are within 2.0 points." in found.verdict
    alike, ahead = compare(systems[:2]).verdict, compare([report("a", HARD), report("b", HARD + 0.01 + wave)]).verdict
    assert "show that a is within 2.0 points." in alike
    assert "too few questions" not in alike
    assert "b is best" in ahead
    assert "the intervals show that the difference is under 2.0 points." in ahead
    assert found.verdict.endswith("Surely behind and so stopped early, after 12 of 400 questions: d.")


def test_one_strategy_has_nothing_to_be_compared_with() -> None:
    found = compare([report("a", [1, 0, 1])])
    assert (found.best, found.tied, found.differences) == (None, ("a",), ())
    assert found.verdict.startswith("a has a Recall@5 of 66.7 % (95 % interval 0.0 to 100.0) over 3 questions.")
    assert "nothing to compare it with" in found.verdict


@pytest.mark.parametrize("questions", [1, 2, 5])
def test_a_handful_of_questions_proves_nothing(questions: int) -> None:
    found = compare([report("a", [1.0] * questions), report("b", [0.0] * questions)])
    assert (found.best, found.tied) == (None, ("a", "b"))
    assert "they score differently on too few questions to tell" in found.verdict
    assert found.questions_needed is None


def test_undefined_scores_are_left_out_of_a_pair() -> None:
    a, b = near(0.1, 1), near(0, 2)
    a[:100] = np.nan
    b[350:] = np.nan
    found = compare([report("a", a), report("b", b)])
    assert found.differences[0].mean == pytest.approx(np.nanmean(a - b))
    assert found.best == "a"
    assert "over 300 questions" in found.verdict


def test_a_system_for_which_the_measure_is_undefined_is_said_to_be() -> None:
    found = compare([report("a", near(0.1, 1)), report("b", near(0, 2)), report("x", [math.nan] * 400)])
    assert (found.best, found.tied) == ("a", ("a",))
    assert found.verdict.endswith("Recall@5 is not defined for x.")
    assert not any(each.distinct for each in found.differences if "x" in (each.a, each.b))
    nothing = compare([report("x", [math.nan] * 4), report("y", [math.nan] * 4)])
    assert (nothing.best, nothing.tied) == (None, ())
    assert nothing.verdict == "Recall@5 is not defined for any of the systems. There is nothing to compare."


def test_where_few_scores_differ_or_few_differ_much_no_number_is_given() -> None:
    for apart in (np.repeat([1.0, -1.0, 0.0], [3, 2, 85]), np.repeat([1.0, 0.01, -0.01], [1, 50, 39]), np.empty(0)):
        found = compare([report("a", apart), report("b", np.zeros(len(apart)))])
        assert not found.differences[0].distinct
        assert found.questions_needed is None


@pytest.mark.parametrize(
    ("reports", "options", "error", "message"),
    [
        ([], {}, DataError, "no report to compare"),
        ([report("a", [1]), report("a", [0])], {}, DataError, "two reports have the name 'a'"),
        ([report("a", [1]), report("b", [0, 1])], {}, DataError, "'a' and 'b' were scored on different queries"),
        ([report("a", [1])], {"measure": "IoU@5"}, OptionError, "a was not evaluated with IoU@5"),
        ([replace(report("a", [1]), scores={})], {}, OptionError, "a was not evaluated with Recall@5"),
        ([report("a", [1])], {"resamples": 3}, OptionError, "resamples is at least 100, got 3"),
        ([report("a", [1])], {"by": "cluster"}, OptionError, 'by is "auto", "question" or "document", got'),
        ([report("a", [1, 0])], {"by": "document"}, DataError, "documents that the reports do not name"),
        ([replace(report("a", [1, 0]), documents=("x", "x"))], {"by": "document"}, DataError, "about one document"),
        ([replace(report(name, [1]), counter=name) for name in "ba"], {}, UserWarning, "counted tokens of a and b"),
    ],
)
@pytest.mark.filterwarnings("error:Recall@5 counted")
def test_what_can_not_be_compared_is_refused(reports, options, error, message) -> None:
    with pytest.raises(error) as caught:
        compare(reports, **options)
    assert message in str(caught.value)
