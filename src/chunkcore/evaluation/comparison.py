"""Which differences between systems are real: the paired bootstrap over queries, and a verdict in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from chunkcore.evaluation.measures import Measure
from chunkcore.evaluation.results import Report

__all__ = ["Comparison", "Difference"]


@dataclass(frozen=True, slots=True)
class Difference:
    """How far two systems are apart on the queries that both answered.

    Attributes:
        a: the first system's name.
        b: the second's.
        measure: what was compared.
        mean: of a - b over the queries.
        low: where its interval begins.
        high: where its interval ends.
        distinct: whether the data tells the two apart (see `compare`).
    """

    a: str
    b: str
    measure: Measure
    mean: float
    low: float
    high: float
    distinct: bool


@dataclass(frozen=True, eq=False)
class Comparison:
    """Systems on one benchmark, side by side.

    Attributes:
        reports: the systems'.
        measure: the one that the verdict is about.
        differences: of every pair, in the reports' order.
        intervals: of each system's own mean, by its name.
        best: the system that is better than every other; None where the data does not support one.
        tied: the names of all that can't be told from the one with the highest mean, that one first.
        questions_needed: roughly how many questions would separate the two highest means; None where no
            realistic number would, or where there is nothing to separate.
        resamples: of the bootstrap.
        seed: of the bootstrap.
        verdict: all of this in two to five sentences.
    """

    reports: tuple[Report, ...]
    measure: Measure
    differences: tuple[Difference, ...]
    intervals: Mapping[str, tuple[float, float]]
    best: str | None
    tied: tuple[str, ...]
    questions_needed: int | None
    resamples: int
    seed: int
    verdict: str
