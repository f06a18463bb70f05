"""Files of any kind to `Document`s with marks: `read_file`, and `readers`, to which a package can add its own.

| module | reads |
|---|---|
| `base` | text in any encoding; which reader reads a file |
| `pdf` | PDF, by pypdfium2, in a process with limits |
| `packed` | Word's DOCX and EPUB |
| `messages` | e-mail and notebooks |
| `markup` | Markdown from their parts, with marks |
"""

from chunkcore.reading.base import FileNotes, Reader, Reading, UnreadError, read_file, readers

__all__ = ["FileNotes", "Reader", "Reading", "UnreadError", "read_file", "readers"]
