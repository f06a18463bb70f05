"""Measures: of retrieval (base.py) and of answers (answers.py)."""

from typing import TYPE_CHECKING

from chunkcore.evaluation.measures import answers  # noqa: F401  registers the measures
from chunkcore.lazy import on_first_use

if TYPE_CHECKING or on_first_use(__name__):
    from chunkcore.evaluation.measures.base import DEFAULT_DEPTHS as DEFAULT_DEPTHS
    from chunkcore.evaluation.measures.base import Counts as Counts
    from chunkcore.evaluation.measures.base import Depth as Depth
    from chunkcore.evaluation.measures.base import Measure as Measure
    from chunkcore.evaluation.measures.base import Ranking as Ranking
    from chunkcore.evaluation.measures.base import RetrievalMeasure as RetrievalMeasure
    from chunkcore.evaluation.measures.base import Unit as Unit
    from chunkcore.evaluation.measures.base import budget_of as budget_of
    from chunkcore.evaluation.measures.base import describe_depth as describe_depth
    from chunkcore.evaluation.measures.base import divide as divide
    from chunkcore.evaluation.measures.base import get_measure as get_measure
    from chunkcore.evaluation.measures.base import known_measures as known_measures
    from chunkcore.evaluation.measures.base import measures as measures
    from chunkcore.evaluation.measures.base import measures_at as measures_at
    from chunkcore.evaluation.measures.base import parse_depth as parse_depth
    from chunkcore.evaluation.measures.base import retrieval_measures as retrieval_measures
    from chunkcore.spans import Scores as Scores
