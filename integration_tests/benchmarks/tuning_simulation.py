"""What is a tuned score worth? Simulated: `python -m integration_tests.benchmarks.tuning_simulation`.

Configurations that are all equally good (0.5) are searched and one is chosen, again and again, on newly drawn
questions. What the choice is worth is therefore known: 0.5. Tables:

1. Configurations whose scores have nothing to do with each other, chosen among 60: how far the score is off that the
   winner was picked by, and the held-out one; how often the 95 % interval holds 0.5, and how often the choice is told
   from a baseline that is as good. Beside these the same by a bootstrap that does not choose anew.
2. The same where one of the configurations is 0.15 better than the baseline, and the others lie between: how often the
   choice is told from the baseline.
3. Configurations that score alike where their sizes are alike, so that a search can climb on what is only chance: how
   far scores are off for the search as `tune` makes it, where no proposal for a fold has seen its scores, and for one
   search that is told the scores of all questions and held out only afterwards.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from chunkcore.evaluation.measures import Scores
from chunkcore.evaluation.statistics.resampling import mean_intervals
from chunkcore.tuning import Branch, Space, Values
from chunkcore.tuning.choosing import Outcomes, hold_out, rechosen
from chunkcore.tuning.tuner import Proposal, Seen, propose

TRIALS, FOLDS, SIZES = 60, 5, 400
SPACE = Space(branches=(Branch(strategy="sentence", parameters={"size": Values(values=tuple(range(1, SIZES + 1)))}),))


def unrelated(rng: np.random.Generator, questions: int) -> Scores:
    """Scores of 60 configurations and a baseline: what makes a question hard for all, and chance."""
    hard = rng.normal(0.0, 0.25, size=(questions, 1))
    return 0.5 + hard + rng.normal(0.0, 0.25, size=(questions, TRIALS + 1))


def alike(rng: np.random.Generator, questions: int) -> Scores:
    """Scores at 400 sizes: waves of random length and place, so that neighbours score alike."""
    waves = 12
    frequency = rng.normal(0, 25, size=(questions, waves, 1))
    phase = rng.uniform(0, 2 * np.pi, size=(questions, waves, 1))
    return 0.5 + 0.3 * np.sqrt(2 / waves) * np.cos(frequency * np.arange(SIZES) / SIZES + phase).sum(axis=1)


def search(scores: Scores, fold_of: np.ndarray, seed: int, *, honest: bool) -> tuple[float, Scores]:
    """The score that the winner was picked by, and the held-out ones."""
    tried: list[int] = []
    folds: list[int | None] = []
    for number in range(TRIALS):
        fold = _turn(number) if honest else _told_all(number)
        chosen = fold_of != fold
        seen = [
            Seen(Proposal("sentence", {"size": size}), (float(scores[chosen, size].mean()),))
            for size, of in zip(tried, folds, strict=True)
            if not honest or of is None or of == fold
        ]
        found = propose(SPACE, seen, seed=1_000 * seed + number, blind=fold is None)
        tried.append(found.drawn["size"])
        folds.append(fold)
    quality = scores[:, tried]
    allowed = np.array([[not honest or of is None or of == fold for of in folds] for fold in range(FOLDS)])
    held = hold_out(Outcomes(quality, np.ones_like(quality), np.zeros(TRIALS)), fold_of, allowed)
    return float(quality.mean(axis=0).max()), held.scores


def _turn(number: int) -> int | None:
    """Whose turn it is: nobody's, or a fold's. As `tune` takes turns."""
    return None if number % 2 == 0 else number // 2 % FOLDS


def _told_all(number: int) -> int | None:
    """After ten that are drawn blindly, a search that no fold is kept from."""
    return None if number < 10 else -1


def held_out_row(scores: Scores, rng: np.random.Generator, folds: int) -> list[float]:
    """Of 60 configurations after a baseline: picked, held out, and what both ways of resampling say."""
    questions = len(scores)
    baseline, quality = scores[:, 0], scores[:, 1:]
    fold_of = rng.permutation(questions) % folds
    outcomes = Outcomes(quality, np.ones_like(quality), np.zeros(TRIALS))
    allowed = np.ones((folds, TRIALS), dtype=bool)
    held = hold_out(outcomes, fold_of, allowed)
    spread = rechosen(outcomes, baseline, fold_of, allowed, resamples=200, seed=int(rng.integers(1_000_000)))
    mean, lead = held.scores.mean(), (held.scores - baseline).mean()
    low, high = spread.interval(mean, spread.mean)
    left, right = spread.interval(lead, spread.lead)
    plain_low, plain_high = mean_intervals(np.column_stack((held.scores, held.scores - baseline)), resamples=1000)
    return [
        quality.mean(axis=0).max() - 0.5,
        mean - 0.5,
        low <= 0.5 <= high,
        not left <= 0 <= right,
        plain_low[0] <= 0.5 <= plain_high[0],
        not plain_low[1] <= 0 <= plain_high[1],
    ]


def first_tables(runs: int, better: float) -> None:
    print(f"\nThe best configuration is {100 * better:.0f} points better than the baseline.\n")
    print(
        "| questions | folds | picked, off by | held out, off by | its standard error | interval holds 0.5 "
        "| told from the baseline | plain interval | told by it |"
    )
    print("|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
    for questions, folds in ((30, 5), (100, 3), (100, 5), (100, 10), (300, 5)):
        rows = []
        for seed in range(runs):
            rng = np.random.default_rng([seed, questions, folds])
            scores = unrelated(rng, questions)
            scores[:, 1:] += np.linspace(0, better, TRIALS)
            rows.append(held_out_row(scores, rng, folds))
        table = 100 * np.array(rows, dtype=float)
        picked, mean, holds, told, plain, told_plain = table.mean(axis=0)
        error = table[:, 1].std() / np.sqrt(runs)
        print(
            f"| {questions} | {folds} | {picked:+.2f} | {mean:+.2f} | {error:.2f} "
            f"| {holds:.1f} % | {told:.1f} % | {plain:.1f} % | {told_plain:.1f} % |",
            flush=True,
        )


def last_table(runs: int, questions: int) -> None:
    print("\n| search | picked, off by | held out, off by | its standard error |")
    print("|---|---:|---:|---:|")
    for honest, name in ((True, "as `tune` searches"), (False, "one search that is told everything")):
        rows = []
        for seed in range(runs):
            rng = np.random.default_rng(seed)
            scores = alike(rng, questions)
            picked, held = search(scores, rng.permutation(questions) % FOLDS, seed, honest=honest)
            rows.append((picked, held.mean()))
        table = 100 * (np.array(rows) - 0.5)
        picked, mean = table.mean(axis=0)
        print(f"| {name} | {picked:+.2f} | {mean:+.2f} | {table[:, 1].std() / np.sqrt(runs):.2f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=500, help="of each row of the first two tables")
    parser.add_argument("--searches", type=int, default=250, help="of each row of the last table")
    parser.add_argument("--questions", type=int, default=60, help="of the last table")
    given = parser.parse_args()
    began = time.process_time()
    print("In points (hundredths of the measure).\n")
    first_tables(given.runs, 0.0)
    first_tables(given.runs, 0.15)
    if given.searches:
        last_table(given.searches, given.questions)
    print(f"\n{time.process_time() - began:.0f} seconds of one core")


if __name__ == "__main__":
    main()
