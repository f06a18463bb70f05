"""Files and folders to `Document`s with marks: `read_file`, `load_documents`, and `readers` for kinds of files.

Readers run in a process with limits of time and memory (`base`). `opening` chooses one by a file's name and bytes.
"""

from chunkcore.files import UnreadError
from chunkcore.reading.base import FileNotes, Reader, Reading, readers
from chunkcore.reading.folders import load_documents
from chunkcore.reading.opening import read_file

__all__ = [
    "FileNotes",
    "Reader",
    "Reading",
    "UnreadError",
    "load_documents",
    "read_file",
    "readers",
]
