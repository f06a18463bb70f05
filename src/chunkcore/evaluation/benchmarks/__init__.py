"""Documents and questions from files, as a `Benchmark`.

benchmark.py   the types; files of documents and questions
loading.py     `load_benchmark`; rows to queries with evidence
"""

from typing import TYPE_CHECKING

from chunkcore.lazy import on_first_use

if TYPE_CHECKING:
    from chunkcore.evaluation.benchmarks.benchmark import (
        Benchmark as Benchmark,
        DataProblem as DataProblem,
        Evidence as Evidence,
        Query as Query,
    )
    from chunkcore.evaluation.benchmarks.loading import load_benchmark as load_benchmark

on_first_use(
    __name__,
    {
        "chunkcore.evaluation.benchmarks.benchmark": "Benchmark DataProblem Evidence Query",
        "chunkcore.evaluation.benchmarks.loading": "load_benchmark",
    },
)
