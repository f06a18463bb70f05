"""Does the comparison keep what it promises? Simulated: `python -m integration_tests.benchmarks.statistics_simulation`.

Systems whose true scores are known are compared again and again, each time on newly drawn questions. Tables:

1. Two equal systems: how often the 95 % interval of the difference holds 0, how often the randomisation test alone
   says p <= 0.05, how often the two are called distinct.
2. Many systems about shared documents: how often any pair is called distinct where all are equal, and how often two
   that are behind are found, by the max-statistic and by Holm's correction.
3. Two systems that differ by just the margin (how often they are called equivalent, wrongly), or not at all (rightly).
4. Equal systems whose questions come in documents that suit one of them: by question, and by document.
5. One system: how often the 95 % interval of its mean holds the true mean, and how wide it is; beside it percentiles.
6. How often the range of `questions_to_show` holds the number that a difference of the margin needs.
7. Systems that are stopped early: how often one of the best is, and what it does to the errors of 2.

The scores are made in five ways, which look like those of real comparisons: see `KINDS`.
"""

from __future__ import annotations

import argparse
import math
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from statistics import NormalDist

import numpy as np
from chunkcore import Report, compare, get_measure
from chunkcore.evaluation.resampling import questions_to_show, surely_below
from chunkcore.spans import Scores
from chunkcore.study.behind import PARTS
from tests.results import mean_intervals

MEASURE = get_measure("Recall", 5)
RESAMPLES = 1000

Draw = Callable[[np.random.Generator, int, int], Scores]


def questions_to_separate(mean: float, deviation: float) -> float:
    """Questions that separate a paired difference of this mean and standard deviation from 0 in 8 of 10 cases."""
    return ((NormalDist().inv_cdf(0.975) + NormalDist().inv_cdf(0.8)) * deviation / mean) ** 2 if mean else math.inf


def found_or_not(rng: np.random.Generator, systems: int, questions: int) -> Scores:
    """Evidence is found or not: 0 or 1, alike on most questions."""
    easy = rng.random((1, questions)) < 0.6
    return np.where(easy, 1.0, rng.random((systems, questions)) < 0.3)


def many_ties(rng: np.random.Generator, systems: int, questions: int) -> Scores:
    """Recall between 0 and 1; half of the questions score the same for all."""
    hard = rng.uniform(0.3, 0.7, (1, questions))
    moved = rng.random((1, questions)) < 0.5
    return hard + np.where(moved, rng.uniform(-0.3, 0.3, (systems, questions)), 0)


def even(rng: np.random.Generator, systems: int, questions: int) -> Scores:
    """Every score from 0 to 1 is as likely."""
    return rng.uniform(0, 1, (systems, questions))


def skewed(rng: np.random.Generator, systems: int, questions: int) -> Scores:
    """Precision: mostly small, seldom large."""
    return np.exp(rng.normal(-3.5, 0.8, (1, questions)) + rng.normal(0, 0.6, (systems, questions)))


def lopsided(rng: np.random.Generator, systems: int, questions: int) -> Scores:
    """The first is often a little better, and seldom much worse; on average it is not."""
    u = rng.random(questions)
    scores = np.full((systems, questions), 0.5)
    scores[0] += np.where(u < 0.6, 0.1, np.where(u < 0.8, -0.3, 0.0))
    return scores


KINDS: dict[str, Draw] = {"found or not": found_or_not, "many ties": many_ties, "even": even}
KINDS |= {"skewed": skewed, "lopsided": lopsided}


def reports(scores: Scores) -> list[Report]:
    """One of each row."""
    ids = tuple(map(str, range(scores.shape[1])))
    return [Report(str(number), "", ids, ("",) * len(ids), {MEASURE: row}) for number, row in enumerate(scores)]


def equal_pair(draw: Draw, questions: int, runs: int, seed: int = 0) -> Counter[str]:
    """How often the interval holds 0, the test says p <= 0.05, and the two are distinct."""
    rng = np.random.default_rng(seed)
    seen: Counter[str] = Counter()
    for run in range(runs):
        scores = draw(rng, 2, questions)
        result = compare(reports(scores), MEASURE, resamples=RESAMPLES, seed=run).differences[0]
        seen["covered"] += result.low <= 0 <= result.high
        seen["rejected"] += result.p_value <= 0.05
        seen["distinct"] += result.distinct
    return seen


def holm(p_values: list[float]) -> list[float]:
    """P-values corrected by Holm's method (1979), to compare with."""
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    corrected, least = [0.0] * len(p_values), 0.0
    for rank, place in enumerate(order):
        least = max(least, min(1.0, p_values[place] * (len(p_values) - rank)))
        corrected[place] = least
    return corrected


def family(systems: int, documents: int, size: int, behind: float, runs: int, seed: int = 0) -> Counter[str]:
    """Systems about shared documents that differ by chance, but for the last two, which are truly behind.

    Counts any false "distinct", a false best, and the true gaps that are found, by the max-statistic and by Holm.
    """
    rng = np.random.default_rng(seed)
    names = tuple(str(number // size) for number in range(documents * size))
    seen: Counter[str] = Counter()
    for run in range(runs):
        hard = np.repeat(rng.normal(0.6, 0.1, documents), size) + rng.normal(0, 0.2, documents * size)
        suits = np.repeat(rng.normal(0, 0.06, (systems, documents)), size, axis=1)
        scores = hard + suits + rng.normal(0, 0.15, (systems, documents * size))
        scores[-2:] -= behind
        made = [replace(report, documents=names) for report in reports(scores)]
        result = compare(made, MEASURE, resamples=RESAMPLES, seed=run, by="document")
        gaps, last = result.differences, {str(systems - 2), str(systems - 1)}
        corrected = dict(zip(gaps, holm([gap.p_value for gap in gaps]), strict=True))
        true = [gap for gap in gaps if behind and len(last & {gap.a, gap.b}) == 1]
        false = [gap for gap in gaps if gap not in true]
        seen["false"] += any(gap.distinct for gap in false)
        seen["false, Holm"] += any(corrected[gap] <= 0.05 for gap in false)
        seen["uncorrected"] += any(gap.p_value <= 0.05 for gap in false)
        seen["best"] += result.best is not None
        seen["found"] += sum(gap.distinct for gap in true)
        seen["found, Holm"] += sum(corrected[gap] <= 0.05 for gap in true)
        seen["true"] += len(true)
    return seen


def equivalent(draw: Draw, gap: float, margin: float, questions: int, runs: int, seed: int = 0) -> int:
    """How often two systems that truly differ by the gap are called equivalent."""
    rng = np.random.default_rng(seed)
    count = 0
    for run in range(runs):
        scores = draw(rng, 2, questions)
        scores[1] -= gap
        result = compare(reports(scores), MEASURE, resamples=RESAMPLES, seed=run, margin=margin)
        count += result.differences[0].equivalent
    return count


def clustered(documents: int, size: int, runs: int, seed: int = 0) -> Counter[str]:
    """Equal systems, but each document suits one of them: how often they are distinct, by question and by document."""
    rng = np.random.default_rng(seed)
    names = tuple(str(number // size) for number in range(documents * size))
    seen: Counter[str] = Counter()
    for run in range(runs):
        scores = even(rng, 2, documents * size)
        scores[0] += np.repeat(rng.normal(0, 0.15, documents), size)
        systems = [replace(report, documents=names) for report in reports(scores)]
        for kind in ("question", "document"):
            result = compare(systems, MEASURE, resamples=RESAMPLES, seed=run, by=kind).differences[0]
            seen[f"distinct by {kind}"] += result.distinct
            seen[f"covered by {kind}"] += result.low <= 0 <= result.high
    return seen


def precision(rng: np.random.Generator, size: int) -> Scores:
    return np.minimum(1, np.exp(rng.normal(-3.5, 1.0, size)))


def recall(missed: float, whole: float) -> Callable[[np.random.Generator, int], Scores]:
    """All of the evidence is missed or found with these chances; else any share of it."""

    def draw(rng: np.random.Generator, size: int) -> Scores:
        kind = rng.random(size)
        return np.where(kind < missed, 0.0, np.where(kind < missed + whole, 1.0, rng.random(size)))

    return draw


def inflated(zeros: float) -> Callable[[np.random.Generator, int], Scores]:
    """Precision, and a share of zeros."""
    return lambda rng, size: np.where(rng.random(size) < zeros, 0.0, precision(rng, size))


SINGLE: dict[str, Callable[[np.random.Generator, int], Scores]] = {
    "found in 5 %": recall(0.95, 0.05),
    "found in 30 %": recall(0.7, 0.3),
    "found in 90 %": recall(0.1, 0.9),
    "recall, high": recall(0.04, 0.86),
    "recall, middling": recall(0.25, 0.5),
    "recall, low": recall(0.75, 0.1),
    "even": recall(0, 0),
    "IoU (beta 0.5, 5)": lambda rng, size: rng.beta(0.5, 5, size),
    "precision (log-normal)": precision,
    "precision, 40 % zeros": inflated(0.4),
    "precision, 80 % zeros": inflated(0.8),
}


def covered(name: str, questions: int, runs: int, seed: int = 0) -> dict[str, tuple[float, float]]:
    """By interval, the share of runs in which it holds the true mean, and its mean width. A run is a column."""
    draw, rng = SINGLE[name], np.random.default_rng(seed)
    true = float(draw(np.random.default_rng(99), 4_000_000).mean())
    columns = np.stack([draw(rng, questions) for _ in range(runs)], axis=1)
    result = {}
    for kind in ("used", "percentile"):
        low, high = mean_intervals(columns, resamples=RESAMPLES, seed=seed, shares=kind == "used")
        assert kind != "used" or ((low >= 0).all() and (high <= 1).all())
        result[kind] = float(np.mean((low <= true) & (true <= high))), float(np.mean(high - low))
    return result


def shown(draw: Draw, margin: float, questions: int, runs: int, seed: int = 0) -> tuple[int, int, int, float, float]:
    """The number of questions needed; how often a range is given, and how often it holds that; its ends (medians)."""
    rng = np.random.default_rng(seed)
    many = draw(rng, 2, 400_000)
    needed = round(questions_to_separate(margin, float((many[0] - many[1]).std())))
    ranges = [questions_to_show(margin, np.subtract(*draw(rng, 2, questions))) for _ in range(runs)]
    stated = [value for value in ranges if value[0] == value[0]]
    low, high = np.median(stated, axis=0).tolist() if stated else (0.0, 0.0)
    return needed, len(stated), sum(low <= needed <= high for low, high in stated), low, high


def raced(systems: int, size: int, behind: float, runs: int, seed: int = 0) -> Counter[str]:
    """As `family`, about 12 documents, with and without `Race`: how often one of the best is stopped, how often the two
    that are behind are, the questions that are asked, and false and found differences.
    """
    rng = np.random.default_rng(seed)
    documents = 12
    names = tuple(str(number // size) for number in range(documents * size))
    seen: Counter[str] = Counter()
    for run in range(runs):
        hard = np.repeat(rng.normal(0.6, 0.1, documents), size) + rng.normal(0, 0.2, documents * size)
        suits = np.repeat(rng.normal(0, 0.06, (systems, documents)), size, axis=1)
        scores = hard + suits + rng.normal(0, 0.15, (systems, documents * size))
        scores[-2:] -= behind
        whole = [replace(report, documents=names) for report in reports(scores)]
        order = rng.permutation(systems)
        stopped, best = list(whole), order[0]
        parts = np.array_split(np.random.default_rng(run).permutation(len(names)), PARTS)
        for system in order[1:]:
            asked = np.zeros(len(names), dtype=bool)
            for part in parts[:-1]:
                asked[part] = True
                if surely_below(np.where(asked, scores[system] - scores[best], np.nan), names):
                    kept = {MEASURE: np.where(asked, scores[system], np.nan)}
                    stopped[system] = replace(whole[system], scores=kept, asked=int(asked.sum()))
                    break
            seen["asked"] += stopped[system].asked or len(names)
            if stopped[system].asked is None and scores[system].mean() > scores[best].mean():
                best = system
        last = {str(systems - 2), str(systems - 1)} if behind else set()
        ended = {report.name for report in stopped if report.asked is not None}
        seen["best stopped"] += bool(ended - last)
        seen["behind stopped"] += len(ended & last)
        for name, made in (("all", whole), ("stopped", stopped)):
            gaps = compare(made, MEASURE, resamples=RESAMPLES, seed=run, by="document").differences
            true = [gap for gap in gaps if len(last & {gap.a, gap.b}) == 1]
            seen[f"false, {name}"] += any(gap.distinct for gap in gaps if gap not in true)
            seen[f"found, {name}"] += sum(gap.distinct for gap in true)
            seen[f"true, {name}"] += len(true)
    return seen


def single_table(runs: int) -> None:
    _row("scores", "questions", "interval holds the mean", "its width", "percentile interval", "its width")
    _row(*["---"] * 6)
    for name in SINGLE:
        for questions in (10, 30, 90, 300):
            _row(
                name,
                questions,
                *(f"{100 * value:.1f}" for pair in covered(name, questions, runs).values() for value in pair),
            )


def range_table(runs: int) -> None:
    _row("scores", "questions at hand", "margin", "needed", "a range is given", "it holds that", "range, median")
    _row(*["---"] * 7)
    margins = {"found or not": 0.05, "many ties": 0.02, "even": 0.05, "skewed": 0.01, "lopsided": 0.02}
    for name, margin in margins.items():
        for questions in (30, 90, 300):
            needed, stated, count, low, high = shown(KINDS[name], margin, questions, runs)
            shares = _share(stated, runs), _share(count, max(1, stated))
            _row(name, questions, margin, needed, *shares, f"{low:.0f} to {high:.0f}")


def pair_table(runs: int) -> None:
    _row("scores", "questions", "interval holds 0", "p <= 0.05", "distinct")
    _row(*["---"] * 5)
    keys = ("covered", "rejected", "distinct")
    for name, draw in KINDS.items():
        for questions in (10, 30, 90, 300):
            seen = equal_pair(draw, questions, runs)
            _row(name, questions, *(_share(seen[key], runs) for key in keys))


def family_table(runs: int) -> None:
    keys = ("false", "false, Holm", "uncorrected", "best", "found", "found, Holm")
    _row("systems", "documents", "behind", *keys)
    _row(*["---"] * 9)
    for systems, documents, size in ((4, 12, 8), (13, 12, 8), (20, 12, 8)):
        for behind in (0.0, 0.1, 0.2):
            seen = family(systems, documents, size, behind, runs)
            shares = [_share(seen[key], seen["true"] or 1 if key.startswith("found") else runs) for key in keys]
            _row(systems, documents, behind, *shares)


def margin_table(runs: int) -> None:
    _row("scores", "questions", "margin", "equivalent, wrongly", "equivalent, rightly")
    _row(*["---"] * 5)
    for name, margin in (("found or not", 0.1), ("many ties", 0.05), ("even", 0.1), ("skewed", 0.02)):
        for questions in (30, 90, 300):
            counts = [equivalent(KINDS[name], gap, margin, questions, runs) for gap in (margin, 0)]
            _row(name, questions, margin, *(_share(count, runs) for count in counts))


def document_table(runs: int) -> None:
    keys = ("distinct by question", "distinct by document", "covered by question", "covered by document")
    _row("documents", "questions of each", *keys)
    _row(*["---"] * 6)
    for documents, size in ((8, 20), (12, 20), (40, 10), (100, 5)):
        seen = clustered(documents, size, runs)
        _row(documents, size, *(_share(seen[key], runs) for key in keys))


def race_table(runs: int) -> None:
    keys = ("best stopped", "false, all", "false, stopped")
    _row("systems", "questions", "behind", *keys, "behind stopped", "found, all", "found, stopped", "asked")
    _row(*["---"] * 10)
    for systems, size in ((4, 8), (13, 8), (13, 25)):
        for behind in (0.0, 0.1, 0.2):
            seen = raced(systems, size, behind, runs)
            shares = [_share(seen[key], runs) for key in keys]
            shares.append(_share(seen["behind stopped"], 2 * runs))
            shares += [_share(seen[f"found, {name}"], seen[f"true, {name}"] or 1) for name in ("all", "stopped")]
            shares.append(_share(seen["asked"], runs * (systems - 1) * 12 * size))
            _row(systems, 12 * size, behind, *shares)


_TABLES = (pair_table, family_table, margin_table, document_table, single_table, range_table, race_table)
TABLES = {str(number): table for number, table in enumerate(_TABLES, 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=2000, help="comparisons of each kind")
    parser.add_argument("--tables", default="1234567", help="which ones to print")
    options = parser.parse_args()
    error = 100 * (0.05 * 0.95 / options.runs) ** 0.5
    print(f"{options.runs} comparisons a row: the standard error of 5 % is {error:.1f} points.")
    for number in options.tables:
        began = time.perf_counter()
        print(f"\n{number}\n")
        TABLES[number](options.runs)
        print(f"\n{time.perf_counter() - began:.0f} s", flush=True)


def _row(*cells: object) -> None:
    print(f"| {' | '.join(map(str, cells))} |", flush=True)


def _share(count: int, runs: int) -> str:
    return f"{100 * count / runs:.1f}"


if __name__ == "__main__":
    main()
