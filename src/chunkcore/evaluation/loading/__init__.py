"""Documents and questions from files, one file a layout: `load_benchmark` is the door to all of them."""

from __future__ import annotations

from chunkcore.evaluation.loading.benchmarks import load_benchmark
from chunkcore.evaluation.loading.chroma import load_chroma_corpora, load_chroma_questions
from chunkcore.evaluation.loading.documents import load_documents
from chunkcore.evaluation.loading.questions import load_questions

__all__ = ["load_benchmark", "load_chroma_corpora", "load_chroma_questions", "load_documents", "load_questions"]
