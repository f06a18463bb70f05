"""Files of any size and folders of any number to chunks: in parts, in processes, in bounded memory, resumable.

`sources.py` walks the inputs and yields pieces of work, `parts.py` says where a large text is parted, `cutting.py` is
what a worker does with a piece, `pool.py` has the processes, `stream.py` puts their results in order, and `output.py`
keeps what is done, so that a run that was killed goes on.
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
