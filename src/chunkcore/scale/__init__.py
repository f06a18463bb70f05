"""Files and folders of any size to chunks: in parts, in processes, in bounded memory, resumable.

sources.py    inputs to pieces of work, large texts in parts
workers.py    what is done with a piece, in this process or in several
stream.py     the results in order, and a file that a killed run resumes
"""

from typing import TYPE_CHECKING

from chunkcore.lazy import on_first_use

if TYPE_CHECKING:
    from chunkcore.scale.stream import (
        ResumableOutput as ResumableOutput,
        Stream as Stream,
        StreamOptions as StreamOptions,
    )

on_first_use(
    __name__,
    {
        "chunkcore.scale.stream": "ResumableOutput Stream StreamOptions",
    },
)
