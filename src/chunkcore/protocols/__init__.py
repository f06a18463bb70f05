"""What papers measured, as a few functions: each takes a benchmark and gives one, to be run as any other.

stitching.py   long documents from short ones, which remember them
queries.py     a sample of the questions; evidence as whole sentences
writing.py     a benchmark as a folder that `load_benchmark` reads

docs/protocols.md has the command of each protocol, what it gave, and what the paper reports.
"""

from __future__ import annotations

from chunkcore.evaluation.parts import Part, parts_of
from chunkcore.protocols.queries import sample_queries, whole_sentences
from chunkcore.protocols.stitching import stitch
from chunkcore.protocols.writing import write_benchmark

__all__ = ["Part", "parts_of", "sample_queries", "stitch", "whole_sentences", "write_benchmark"]
