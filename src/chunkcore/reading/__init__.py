"""Files and folders to `Document`s with marks: `read_file`, `load_documents`, and `readers` for kinds of files.

Readers run in a process with limits of time and memory (`base`). `opening` chooses one by a file's name and bytes.
"""

from typing import TYPE_CHECKING

from chunkcore.lazy import on_first_use

if TYPE_CHECKING:
    from chunkcore.files import UnreadError as UnreadError
    from chunkcore.reading.base import Reader as Reader, Reading as Reading, readers as readers
    from chunkcore.reading.opening import load_documents as load_documents, read_file as read_file

on_first_use(
    __name__,
    {
        "chunkcore.files": "UnreadError",
        "chunkcore.reading.base": "Reader Reading readers",
        "chunkcore.reading.opening": "load_documents read_file",
    },
)
