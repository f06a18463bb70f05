"""Files of any kind to `Document`s with marks: `read_file`, and `readers`, to which a package can add its own.

| module | reads |
|---|---|
| `base` | readers, and the process with limits of time and memory in which they run |
| `opening` | which reader reads a file; text in any encoding |
| `pdf` | PDF, by pypdfium2 |
| `office` | Word, PowerPoint, Excel, EPUB, notebooks, by MarkItDown and openpyxl |
| `messages` | e-mail; HTML's visible text |
"""

from chunkcore.files import UnreadError
from chunkcore.reading.base import FileNotes, Reader, Reading, readers
from chunkcore.reading.opening import read_file

__all__ = ["FileNotes", "Reader", "Reading", "UnreadError", "read_file", "readers"]
