"""Files of any size and folders of any number to chunks: in parts, in processes, in bounded memory, resumable.

`sources.py` walks the inputs and yields pieces of work, `parts.py` says where a large text is parted, `cutting.py` is
what a worker does with a piece, `pool.py` has the processes, `stream.py` puts their results in order, and `output.py`
keeps what is done, so that a run that was killed goes on.
"""

from __future__ import annotations

from chunkcore.streaming.cutting import line_parts
from chunkcore.streaming.output import ResumableOutput, beside
from chunkcore.streaming.parts import cut_place, parts
from chunkcore.streaming.sources import Piece, Sources
from chunkcore.streaming.stream import Stream, StreamOptions, Tally, stream_documents, total_bytes

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
