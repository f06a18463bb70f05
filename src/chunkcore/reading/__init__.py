"""Files of any kind to `Document`s with marks: `read_file`, and `readers`, to which a package can add its own.

Readers run in a process with limits of time and memory (`base`); `opening` chooses one by a file's name and bytes.
"""

from chunkcore.files import UnreadError
from chunkcore.reading.base import FileNotes, Reader, Reading, readers
from chunkcore.reading.opening import read_file

__all__ = ["FileNotes", "Reader", "Reading", "UnreadError", "read_file", "readers"]
