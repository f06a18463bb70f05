"""Documents and questions from files, as a `Benchmark`.

benchmark.py   the types                       documents.py   documents from folders and JSON lines
questions.py   rows to queries with evidence   layout.py      the `Layout` base; our layout, and the Chroma report's
loading.py     `load_benchmark`                stitching.py   long documents made of short ones
reading_layouts.py, retrieval_layouts.py   the public datasets
"""

from chunkcore.evaluation.benchmarks import reading_layouts, retrieval_layouts  # noqa: F401
from chunkcore.evaluation.benchmarks.benchmark import (
    Benchmark,
    DataProblem,
    Evidence,
    Part,
    Query,
    parts_of,
    question_documents,
)
from chunkcore.evaluation.benchmarks.documents import load_documents
from chunkcore.evaluation.benchmarks.layout import Layout, known_layouts, layouts
from chunkcore.evaluation.benchmarks.loading import load_benchmark, load_segmented
from chunkcore.evaluation.benchmarks.stitching import sample_queries, stitch, whole_sentences, write_benchmark

__all__ = [
    "Benchmark",
    "DataProblem",
    "Evidence",
    "Layout",
    "Part",
    "Query",
    "known_layouts",
    "layouts",
    "load_benchmark",
    "load_documents",
    "load_segmented",
    "parts_of",
    "question_documents",
    "sample_queries",
    "stitch",
    "whole_sentences",
    "write_benchmark",
]
