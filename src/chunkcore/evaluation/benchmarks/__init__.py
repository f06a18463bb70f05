"""Documents and questions from files. `load_benchmark` is the door; a file a layout behind it.

rows.py          what every layout is read as: rows like our own JSON lines, with their places
files.py         which files a path holds, and a look at their keys
layouts.py       all layouts, and which of them a path is of
documents.py     rows to documents            questions.py     rows to queries, and problems
benchmarks.py    `load_benchmark`             segmented.py     `load_segmented`
"""

from __future__ import annotations

from chunkcore.evaluation.benchmarks.documents import load_documents
from chunkcore.evaluation.benchmarks.loading import LAYOUTS, load_benchmark, load_segmented

__all__ = ["LAYOUTS", "load_benchmark", "load_documents", "load_segmented"]
