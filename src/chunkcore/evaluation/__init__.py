"""Evaluation by spans: from a benchmark and retrieved pieces to scores, and from scores to a verdict.

benchmarks/     documents, queries and their evidence; loaders
run_files.py    runs as files
counting.py     relevant, retrieved and repeated tokens of each query; measures.py turns them into scores
answer_measures.py   measures of answers
scoring.py      `score`: a run to a report (results.py)
comparison.py   `compare`: tests, equivalence and the verdict; resampling.py has the intervals
gate.py         the gate for continuous integration
"""

from typing import TYPE_CHECKING

from chunkcore.lazy import on_first_use

if TYPE_CHECKING:
    from chunkcore.evaluation.comparison import Difference as Difference
    from chunkcore.evaluation.gate import (
        Check as Check,
        check_baseline as check_baseline,
        check_requirement as check_requirement,
    )
    from chunkcore.evaluation.measures import measures_at as measures_at
    from chunkcore.evaluation.resampling import prediction_powered as prediction_powered
    from chunkcore.evaluation.results import (
        ChunkStatistics as ChunkStatistics,
        Cost as Cost,
        ModelPrices as ModelPrices,
    )
    from chunkcore.evaluation.scoring import Scorer as Scorer
    from chunkcore.locating.alignment import Aligner as Aligner

on_first_use(
    __name__,
    {
        "chunkcore.evaluation.comparison": "Difference",
        "chunkcore.evaluation.gate": "Check check_baseline check_requirement",
        "chunkcore.evaluation.measures": "measures_at",
        "chunkcore.evaluation.resampling": "prediction_powered",
        "chunkcore.evaluation.results": "ChunkStatistics Cost ModelPrices",
        "chunkcore.evaluation.scoring": "Scorer",
        "chunkcore.locating.alignment": "Aligner",
    },
)
