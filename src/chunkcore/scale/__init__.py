"""Chunk files and folders of any size: in parts, in processes, in bounded memory, resumable.

sources.py yields pieces of work, workers.py chunks them in processes, stream.py puts the results in order, and
output.py writes them with a journal, so that a killed run resumes.
"""

from __future__ import annotations

from chunkcore.scale.output import ResumableOutput, beside
from chunkcore.scale.sources import Piece, Sources, cut_place, parts
from chunkcore.scale.stream import Stream, StreamOptions, Tally, stream_documents, total_bytes
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
