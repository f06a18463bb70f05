"""How often the gate fails where nothing changed: simulated questions, 1,000 checks a cell.

    python -m integration_tests.benchmarks.gate_false_alarms [--checks 1000]

- requirement: hits drawn with a chance of exactly what is required, 70 %.
- baseline, hits: two systems that hit each question with the same chance, which differs from question to question.
- baseline, recall: the same chance, with noise of 0.2 of their own, cut off at 0 and 1.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence

import numpy as np

from chunkcore.evaluation.gate import Check, check_baseline, check_requirement
from chunkcore.evaluation.measures import Scores, get_measure
from chunkcore.evaluation.results import Report

HITS = get_measure("HitRate", 5)
RESAMPLES = 1000
Draw = np.random.Generator


def report(values: Scores) -> Report:
    return Report("a", "drawn", tuple(map(str, range(len(values)))), ("",) * len(values), {HITS: values})


def requirement(draw: Draw, questions: int) -> Check:
    hits = (draw.random(questions) < 0.7).astype(np.float64)
    return check_requirement(report(hits), "HitRate@5>=0.70", resamples=RESAMPLES, seed=int(draw.integers(2**31)))


def hits(draw: Draw, questions: int) -> Check:
    chance = draw.beta(2, 1, questions)
    return change(draw, *((draw.random(questions) < chance).astype(np.float64) for _ in range(2)))


def recall(draw: Draw, questions: int) -> Check:
    chance = draw.beta(2, 1, questions)
    return change(draw, *(np.clip(chance + draw.normal(0, 0.2, questions), 0, 1) for _ in range(2)))


def change(draw: Draw, now: Scores, before: Scores) -> Check:
    return check_baseline(report(now), report(before), HITS, resamples=RESAMPLES, seed=int(draw.integers(2**31)))


KINDS: dict[str, Callable[[Draw, int], Check]] = {
    "requirement": requirement,
    "baseline, hits": hits,
    "baseline, recall": recall,
}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checks", type=int, default=1000, help="of each kind and number of questions")
    checks = parser.parse_args(arguments).checks
    print(f"| questions | {' | '.join(KINDS)} |\n|--:|{'--:|' * len(KINDS)}")
    for questions in (20, 30, 90, 300):
        draw = np.random.default_rng(questions)
        shares = [sum(kind(draw, questions).failed for _ in range(checks)) / checks for kind in KINDS.values()]
        print(f"| {questions} | {' | '.join(f'{share:.1%}' for share in shares)} |", flush=True)


if __name__ == "__main__":
    main()
