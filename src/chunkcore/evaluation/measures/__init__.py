"""Measures: the base classes, measures of retrieval, measures of answers."""

from chunkcore.evaluation.measures import answers, retrieval  # noqa: F401  registers the measures
from chunkcore.evaluation.measures.base import (
    Counts,
    Depth,
    Measure,
    Ranking,
    RetrievalMeasure,
    Unit,
    budget_of,
    describe_depth,
    divide,
    get_measure,
    known_measures,
    measures,
    measures_at,
    parse_depth,
    retrieval_measures,
)
from chunkcore.spans import Scores

__all__ = [
    "Counts",
    "Depth",
    "Measure",
    "Ranking",
    "RetrievalMeasure",
    "Scores",
    "Unit",
    "budget_of",
    "describe_depth",
    "divide",
    "get_measure",
    "known_measures",
    "measures",
    "measures_at",
    "parse_depth",
    "retrieval_measures",
]
