"""`store_documents`: documents of which only so much text is in memory; the rest is read when it is asked for."""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterable
from functools import lru_cache, partial
from typing import Any

from chunkcore.document import Document
from chunkcore.errors import DataError

__all__ = ["store_documents"]

MEMORY = 256 * 2**20  # bytes
_HELD = 4  # texts that were read last: chunks of a document are asked for one after the other


def store_documents(documents: Iterable[Document], *, memory_bytes: int = MEMORY) -> list[Document]:
    """Documents for a `Benchmark` of any size: the first texts stay in memory, the others stand in a file.

    A stored document is a `Document` as any other, equal to the one that it was made from; its text is read when it
    is asked for, about as fast as it is copied while the system has the file in its memory. A pickle or a changed copy
    of it is a plain one. The file lies in the temporary folder (`TMPDIR` says where), as long as its documents are
    in use.

    Args:
        documents: taken one after the other, so that they need never be in memory together.
        memory_bytes: of texts that are kept in memory.

    Raises:
        OSError: the disk is full.

    >>> small, large = store_documents([Document("a", "A fox."), Document("b", "Foxes nap.")], memory_bytes=60)
    >>> large.text, large == Document("b", "Foxes nap.")
    ('Foxes nap.', True)
    """
    kept: list[Document] = []
    used = 0
    file: _TextFile | None = None
    for document in documents:
        used += sys.getsizeof(document.text)
        if used <= memory_bytes:
            kept.append(document)
        else:
            file = file or _TextFile()
            kept.append(_stored(document, file.add(document.text)))
    if file is not None:
        file.flush()
    return kept


class _StoredDocument(Document):
    """A document without its text, and how that is read."""

    __slots__ = ("_read",)

    _read: Callable[[], str]

    def __new__(cls, *args: Any, **options: Any) -> Any:
        return Document(*args, **options)  # what `dataclasses.replace` asks for: a document of its own

    @property
    def text(self) -> str:
        return self._read()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Document):
            return NotImplemented
        return (self.id, self.text, self.metadata, self.marks) == (other.id, other.text, other.metadata, other.marks)

    __hash__ = Document.__hash__

    def __reduce__(self) -> tuple[Any, ...]:
        return Document, (self.id, self.text, self.metadata, self.marks)


def _stored(document: Document, read: Callable[[], str]) -> Document:
    stored = object.__new__(_StoredDocument)
    for name, value in (
        ("id", document.id),
        ("metadata", document.metadata),
        ("marks", document.marks),
        ("_read", read),
    ):
        object.__setattr__(stored, name, value)
    return stored


class _TextFile:
    """Texts in a file without a name. Threads, and processes that were forked, may read it at the same time."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115
        weakref.finalize(self, self._file.close)
        self._lock = threading.Lock()
        self._size = 0
        self._text = lru_cache(maxsize=_HELD)(self._read)

    def add(self, text: str) -> Callable[[], str]:
        """Write a text behind the others; what comes back reads it."""
        data = text.encode("utf-8", "surrogatepass")
        self._file.write(data)
        start, self._size = self._size, self._size + len(data)
        return partial(self._text, start, len(data))

    def flush(self) -> None:
        """Before this, what was written last cannot be read."""
        self._file.flush()

    def _read(self, start: int, size: int) -> str:
        data = self._bytes(start, size)
        if len(data) != size:
            raise DataError(f"the file of the documents' texts ends at {start + len(data)} of {self._size} bytes")
        return data.decode("utf-8", "surrogatepass")

    def _bytes(self, start: int, size: int) -> bytes:
        if hasattr(os, "pread") and size < 2**30:  # it reads no more than 2 GB at once
            return os.pread(self._file.fileno(), size, start)
        with self._lock:
            self._file.seek(start)
            return self._file.read(size)
