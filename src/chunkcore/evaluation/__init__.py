"""Evaluation by spans: from a benchmark and retrieved pieces to scores, and from scores to a verdict.

benchmarks/     documents, queries and their evidence; loaders of public layouts
alignment.py    locates retrieved text in the documents; text_search.py finds candidates
experiment.py   `run_experiment`: strategies x retrievers -> reports; `run_retriever`; what they cost
run_files.py    runs and pools of chunks as files
counting.py     relevant, retrieved and repeated tokens of each query; measures/ turns them into scores
scoring.py      `score`: a run to a report (results.py)
segmentation.py whether chunks begin where topics change
statistics/     intervals, tests, equivalence and the verdict; the gate for continuous integration
"""

from chunkcore.evaluation.alignment import Aligner
from chunkcore.evaluation.measures import measures_at
from chunkcore.evaluation.results import ChunkStatistics, Cost
from chunkcore.evaluation.run_files import read_pool, write_pool
from chunkcore.evaluation.scoring import Scorer
from chunkcore.evaluation.segmentation import (
    BoundaryScores,
    SegmentOptions,
    SegmentReport,
    boundary_scores,
    boundary_similarity,
    pk,
    score_segments,
    window_diff,
)
from chunkcore.evaluation.statistics.comparison import Difference
from chunkcore.evaluation.statistics.gate import Check, check_baseline, check_requirement
from chunkcore.evaluation.statistics.resampling import pareto_front

__all__ = [
    "Aligner",
    "BoundaryScores",
    "Check",
    "ChunkStatistics",
    "Cost",
    "Difference",
    "Scorer",
    "SegmentOptions",
    "SegmentReport",
    "boundary_scores",
    "boundary_similarity",
    "check_baseline",
    "check_requirement",
    "measures_at",
    "pareto_front",
    "pk",
    "read_pool",
    "score_segments",
    "window_diff",
    "write_pool",
]
