"""Evaluation by spans: from a benchmark and retrieved pieces to scores, and from scores to a verdict.

benchmarks/     documents, queries and their evidence; loaders of public layouts
run_files.py    runs and pools of chunks as files
counting.py     relevant, retrieved and repeated tokens of each query; measures.py turns them into scores
answer_measures.py   measures of answers
scoring.py      `score`: a run to a report (results.py)
segmentation.py whether chunks begin where topics change
comparison.py   `compare`: tests, equivalence and the verdict; resampling.py has the intervals
gate.py         the gate for continuous integration
"""

from typing import TYPE_CHECKING

from chunkcore.lazy import on_first_use

if TYPE_CHECKING or on_first_use(__name__):
    from chunkcore.evaluation.comparison import Difference as Difference
    from chunkcore.evaluation.gate import Check as Check
    from chunkcore.evaluation.gate import check_baseline as check_baseline
    from chunkcore.evaluation.gate import check_requirement as check_requirement
    from chunkcore.evaluation.measures import measures_at as measures_at
    from chunkcore.evaluation.resampling import pareto_front as pareto_front
    from chunkcore.evaluation.results import ChunkStatistics as ChunkStatistics
    from chunkcore.evaluation.results import Cost as Cost
    from chunkcore.evaluation.results import ModelPrices as ModelPrices
    from chunkcore.evaluation.run_files import read_pool as read_pool
    from chunkcore.evaluation.run_files import write_pool as write_pool
    from chunkcore.evaluation.scoring import Scorer as Scorer
    from chunkcore.evaluation.segmentation import BoundaryScores as BoundaryScores
    from chunkcore.evaluation.segmentation import SegmentReport as SegmentReport
    from chunkcore.evaluation.segmentation import boundary_scores as boundary_scores
    from chunkcore.evaluation.segmentation import load_segmented as load_segmented
    from chunkcore.evaluation.segmentation import pk as pk
    from chunkcore.evaluation.segmentation import score_segments as score_segments
    from chunkcore.evaluation.segmentation import window_diff as window_diff
    from chunkcore.locating.alignment import Aligner as Aligner
