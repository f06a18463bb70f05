"""Documents and questions from files, as a `Benchmark`.

benchmark.py   the types; samples, stitched and written benchmarks
layout.py      the `Layout` base, and every known layout
loading.py     `load_benchmark`; rows to queries with evidence
"""

from typing import TYPE_CHECKING

from chunkcore.lazy import on_first_use

if TYPE_CHECKING or on_first_use(__name__):
    from chunkcore.evaluation.benchmarks.benchmark import Benchmark as Benchmark
    from chunkcore.evaluation.benchmarks.benchmark import DataProblem as DataProblem
    from chunkcore.evaluation.benchmarks.benchmark import Evidence as Evidence
    from chunkcore.evaluation.benchmarks.benchmark import Part as Part
    from chunkcore.evaluation.benchmarks.benchmark import Query as Query
    from chunkcore.evaluation.benchmarks.benchmark import parts_of as parts_of
    from chunkcore.evaluation.benchmarks.benchmark import question_documents as question_documents
    from chunkcore.evaluation.benchmarks.benchmark import sample_queries as sample_queries
    from chunkcore.evaluation.benchmarks.benchmark import stitch as stitch
    from chunkcore.evaluation.benchmarks.benchmark import whole_sentences as whole_sentences
    from chunkcore.evaluation.benchmarks.benchmark import write_benchmark as write_benchmark
    from chunkcore.evaluation.benchmarks.layout import Contents as Contents
    from chunkcore.evaluation.benchmarks.layout import Layout as Layout
    from chunkcore.evaluation.benchmarks.layout import known_layouts as known_layouts
    from chunkcore.evaluation.benchmarks.layout import layouts as layouts
    from chunkcore.evaluation.benchmarks.loading import load_benchmark as load_benchmark
