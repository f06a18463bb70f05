"""`prediction_powered`: a mean from few labels and many verdicts of a model, with an interval of its own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from chunkcore.errors import DataError
from chunkcore.evaluation.resampling import cluster_sums, student_quantile
from chunkcore.options import check_number
from chunkcore.spans import Scores


class Powered(NamedTuple):
    """A mean and its interval.

    Attributes:
        mean: of the labels, corrected by the verdicts.
        low: the interval's lower end.
        high: its upper end.
        worth: how many labels alone would give as short an interval.
    """

    mean: float
    low: float
    high: float
    worth: float


def prediction_powered(
    labels: ArrayLike,
    verdicts: ArrayLike,
    more_verdicts: ArrayLike,
    *,
    documents: Sequence[str] | None = None,
    more_documents: Sequence[str] | None = None,
    confidence: float = 0.95,
) -> Powered:
    """The mean of your labels, narrowed by a model's verdicts on more questions of the same kind.

    The verdicts may be wrong, and wrong on one side: how far they are off is measured on the labelled questions. They
    count as much as they help. For two systems on the same questions, give differences of their scores.

    Args:
        labels: your scores, one a question.
        verdicts: the model's scores of the same questions.
        more_verdicts: the model's scores of questions without a label.
        documents: of the labelled questions, where questions share documents: these are then the units.
        more_documents: of the others.
        confidence: of the interval.

    Raises `DataError`: labels and verdicts are not of the same questions, or there are fewer than three units.

    Source: Angelopoulos, Bates, Fannjiang, Jordan and Zrnic, Prediction-Powered Inference (Science 382, 2023); the
    weight of the verdicts is that of Angelopoulos, Duchi and Zrnic, PPI++ (2023), proposition 2.

    >>> labels = [0, 1, 1, 0, 1, 1, 0, 1, 1, 1]
    >>> powered = prediction_powered(labels, labels, labels * 30)
    >>> round(powered.mean, 2), powered.worth > 100
    (0.7, True)
    """
    check_number("confidence", confidence, 0.01, 0.999, whole=False)
    known, judged, more = (
        np.asarray(row, dtype=np.float64) for row in (labels, verdicts, more_verdicts)
    )
    if known.shape != judged.shape:
        raise DataError(
            f"labels and verdicts are of the same questions, got {len(known)} and {len(judged)}"
        )
    units = min(
        len(cluster_sums(known[:, None], documents)),
        len(cluster_sums(more[:, None], more_documents)),
    )
    if units < 3:
        raise DataError("three questions (or documents) at least, with labels and without")
    spread_of_more = _variance(more, more, more_documents)
    weight = _variance(known, judged, documents)
    weight /= _variance(judged, judged, documents) + spread_of_more or 1.0
    weight = min(1.0, max(0.0, weight))
    off = known - weight * judged
    mean = float(weight * more.mean() + off.mean())
    variance = weight**2 * spread_of_more + _variance(off, off, documents)
    variance *= (units - 1) / (units - 2)  # the weight is an estimate, too
    reach = student_quantile((1 + confidence) / 2, units - 2) * math.sqrt(variance)
    alone = _variance(known, known, documents)
    worth = len(known) * alone / variance if variance else math.inf
    return Powered(mean, mean - reach, mean + reach, worth)


def _variance(one: Scores, other: Scores, documents: Sequence[str] | None) -> float:
    """The covariance of two columns' means, whose units are the documents."""
    apart = np.column_stack((one - one.mean(), other - other.mean()))
    sums = cluster_sums(apart, documents)
    count = len(sums)
    return float(sums[:, 0] @ sums[:, 1]) / len(one) ** 2 * count / (count - 1)
