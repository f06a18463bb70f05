"""`Race`: systems that are surely behind are asked no further questions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np

from chunkcore.evaluation.benchmarks.benchmark import Benchmark, Query, question_documents
from chunkcore.evaluation.comparison import By, shared_documents
from chunkcore.evaluation.measures import Depth, Measure
from chunkcore.evaluation.resampling import FEWEST_UNALIKE, cluster_sums, student_quantile
from chunkcore.evaluation.results import Report
from chunkcore.spans import Scores

Key = TypeVar("Key")

LEAST = 30  # questions of a part
PARTS = 3
CONFIDENCE = 0.9995  # of the interval at each look: docs/evidence/statistics.md has the errors


@dataclass
class Race:
    """Compares a system with the best before it, after each third of the questions, which are drawn at random.

    Attributes:
        measure: of the verdict.
        by: what is resampled, as in `compare`.
        seed: of the draw.
        kept: names that are asked everything.
    """

    benchmark: Benchmark
    measure: Measure
    by: By = "auto"
    seed: int = 0
    kept: frozenset[str] = frozenset()
    _best: Report | None = field(default=None, init=False)

    def parts(self, *names: str) -> list[list[Query]]:
        """The questions that a system of these names is asked one part after another."""
        queries = list(self.benchmark.queries)
        is_kept = not self.kept.isdisjoint(names)
        if self._best is None or is_kept or len(queries) < PARTS * LEAST:
            return [queries]
        order = np.random.default_rng(self.seed).permutation(len(queries))
        return [[queries[place] for place in part] for part in np.array_split(order, PARTS)]

    def is_behind(self, report: Report) -> bool:
        """Whether a system that was asked a part of the questions is surely behind the best."""
        if self._best is None or self.measure not in report.scores:
            return False
        best, scores = self._best.values(self.measure), report.values(self.measure)
        return surely_below(self.measure.sign * (scores - best), self._clusters())

    def add(self, report: Report) -> None:
        """Take a system that was asked everything: the next are compared with the best of them."""
        if self.measure not in report.scores:
            return
        mean = self.measure.sign * report.mean(self.measure)
        if self._best is None or mean > self.measure.sign * self._best.mean(self.measure):
            self._best = report

    def _clusters(self) -> list[str] | None:
        documents = question_documents(self.benchmark)
        return shared_documents([documents[query.id] for query in self.benchmark.queries], self.by)


def surely_below(differences: Scores, clusters: Sequence[str] | None) -> bool:
    """Whether the interval of the mean at `CONFIDENCE` is below 0, by Student's t over the units that are resampled.

    A bootstrap of few documents has no such far ends. NaN is a question that was not asked.

    >>> apart = np.tile([-0.3, 0.1, -0.2], 10)
    >>> surely_below(apart, None), surely_below(apart[:3], None)
    (True, False)
    """
    is_asked = ~np.isnan(differences)
    unalike = np.count_nonzero(differences[is_asked])
    labels = None
    if clusters is not None:
        labels = np.array(clusters, dtype=object)[is_asked].tolist()
    mean = float(differences[is_asked].mean()) if unalike else 0.0
    sums = cluster_sums(differences[is_asked, None] - mean, labels)[:, 0]
    if unalike < FEWEST_UNALIKE or len(sums) < FEWEST_UNALIKE:
        return False
    error = math.sqrt(len(sums) / (len(sums) - 1) * float(np.sum(sums**2))) / int(is_asked.sum())
    return mean + student_quantile((1 + CONFIDENCE) / 2, len(sums) - 1) * error < 0


def asked_alone(report: Report, asked: Sequence[Query]) -> Report:
    """The report of a system that was asked these questions alone: without scores for the others, or seconds."""
    ids = {query.id for query in asked}
    is_asked = np.array([name in ids for name in report.query_ids], dtype=np.bool_)

    def alone(columns: Mapping[Key, Scores]) -> dict[Key, Scores]:
        return {key: np.where(is_asked, column, math.nan) for key, column in columns.items()}

    found: dict[Depth, tuple[tuple[float, ...], ...]] = {}
    for k, rows in report.found.items():
        pairs = zip(report.query_ids, rows, strict=True)
        found[k] = tuple(row if name in ids else (math.nan,) * len(row) for name, row in pairs)
    return replace(
        report,
        scores=alone(report.scores),
        retrieved_tokens=alone(report.retrieved_tokens),
        found=found,
        unanswered=tuple(name for name in report.unanswered if name in ids),
        seconds={step: value for step, value in report.seconds.items() if step != "search"},
        bounds={},
        asked=len(ids),
    )
