"""Lines of result files; intervals of means."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from chunkcore.evaluation.resampling import intervals, resampled_means, share_intervals, units_of


def keep_result(*values: object) -> None:
    """Add a line of CSV to the file that the environment variable ``RESULTS`` names; without it, do nothing."""
    if name := os.environ.get("RESULTS"):
        with Path(name).open("a", encoding="utf-8") as file:
            file.write(",".join(map(str, values)) + "\n")


def mean_intervals(
    columns: np.ndarray, *, resamples: int = 10_000, seed: int = 0, shares: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """The 95 % interval of each column's mean, as `compare` has it; `shares`: of scores from 0 to 1."""
    means = resampled_means(columns, resamples=resamples, seed=seed)
    if shares:
        return share_intervals(columns, means)
    return intervals(means, units_of(columns, None), 0.95)
