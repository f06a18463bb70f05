"""How many questions are enough: to separate two systems, or to conclude that no difference matters.

All by the normal approximation, from the spread of the differences at hand: two digits of it are meant.
"""

from __future__ import annotations

import math
from statistics import NormalDist

__all__ = ["questions_to_equate", "questions_to_separate", "smallest_difference"]


def questions_to_separate(mean: float, deviation: float, *, confidence: float = 0.95, power: float = 0.8) -> float:
    """With so many questions a difference of this mean and spread is told from none in `power` of all cases.

    Args:
        mean: of the paired differences.
        deviation: their standard deviation.
        confidence: 1 less the share of equal systems that are told apart.
        power: the chance to see a difference that is there.

    >>> round(questions_to_separate(0.05, 0.3))
    283
    """
    return (_quantiles(confidence, power) * deviation / mean) ** 2 if mean else math.inf


def smallest_difference(deviation: float, questions: int, *, confidence: float = 0.95, power: float = 0.8) -> float:
    """The least difference that so many questions show in `power` of all cases.

    >>> round(smallest_difference(0.3, 283), 3)
    0.05
    """
    return _quantiles(confidence, power) * deviation / math.sqrt(questions) if questions else math.inf


def questions_to_equate(margin: float, deviation: float, *, confidence: float = 0.95, power: float = 0.8) -> float:
    """With so many questions systems that do not differ are shown, in `power` of all cases, to be within the margin.

    Source: Schuirmann's two one-sided tests (1987), at no difference.

    >>> round(questions_to_equate(0.02, 0.3))
    1927
    """
    one_sided = NormalDist().inv_cdf(confidence) + NormalDist().inv_cdf(0.5 + power / 2)
    return (one_sided * deviation / margin) ** 2 if margin else math.inf


def _quantiles(confidence: float, power: float) -> float:
    return NormalDist().inv_cdf(0.5 + confidence / 2) + NormalDist().inv_cdf(power)
