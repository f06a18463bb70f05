"""How often `tune` advises another configuration than the default, where none is better, and where one is.

    python -m integration_tests.benchmarks.tuning_simulation --runs 1000

Each question has a chance of being answered, drawn evenly from 0 to 1, and each of twelve configurations answers it or
not by that chance. With documents, a configuration's chance at all questions of a document is shifted (normal, 0.15).
`better` is added to the chances of one configuration that is not the default.
"""

from __future__ import annotations

import argparse

import numpy as np
from chunkcore.evaluation.measures import get_measure
from chunkcore.evaluation.results import Report, System
from chunkcore.study.tuning import TuneOptions, conclude
from tests.results import keep_result

CONFIGURATIONS = [System(f"c{number}", "r") for number in range(12)]
OPTIONS = TuneOptions(resamples=1000)


def advises_another(draw: np.random.Generator, documents: int, each: int, better: float) -> bool:
    count = documents * each
    chance = draw.uniform(0, 1, (count, 1)) + np.zeros((1, len(CONFIGURATIONS)))
    if each > 1:
        chance += np.repeat(draw.normal(0, 0.15, (documents, len(CONFIGURATIONS))), each, axis=0)
    chance[:, 1] += better
    scores = (draw.uniform(0, 1, chance.shape) < chance).astype(np.float64)
    names = tuple(f"d{number // each}" for number in range(count))
    ids = tuple(map(str, range(count)))
    reports = [
        Report(item.name, "b", ids, ("",) * count, {OPTIONS.goal: column}, documents=names)
        for item, column in zip(CONFIGURATIONS, scores.T, strict=True)
    ]
    folds = draw.permutation(documents) % OPTIONS.folds
    split = np.repeat(folds, each), list(names) if each > 1 else None
    return conclude(reports, CONFIGURATIONS[0].name, split, OPTIONS, {}).gain


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    runs = parser.parse_args().runs
    assert OPTIONS.goal == get_measure("Recall@1000tok")
    for documents, each in ((60, 1), (150, 1), (20, 6)):
        shares = []
        for better in (0.0, 0.1, 0.2):
            draw = np.random.default_rng(0)
            shares.append(np.mean([advises_another(draw, documents, each, better) for _ in range(runs)]))
            keep_result(documents, each, better, f"{100 * shares[-1]:.1f}")
        print(f"{documents} x {each}: " + ", ".join(f"{100 * share:.1f} %" for share in shares), flush=True)


if __name__ == "__main__":
    main()
