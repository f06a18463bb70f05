"""Files and folders of any size to chunks: in parts, in processes, in bounded memory, resumable.

sources.py    inputs to pieces of work, large texts in parts
workers.py    what is done with a piece, in this process or in several
stream.py     the results in order, and a file that a killed run resumes
"""

from __future__ import annotations

from chunkcore.scale.sources import Piece, Sources, cut_place, parts
from chunkcore.scale.stream import ResumableOutput, Stream, StreamOptions, Tally, beside, stream_documents, total_bytes
from chunkcore.scale.workers import line_parts

__all__ = [
    "Piece",
    "ResumableOutput",
    "Sources",
    "Stream",
    "StreamOptions",
    "Tally",
    "beside",
    "cut_place",
    "line_parts",
    "parts",
    "stream_documents",
    "total_bytes",
]
