"""Documents whose texts are read when they are used: from a temporary file (`store_documents`)."""

from __future__ import annotations

import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from chunkcore.document import Document
from chunkcore.errors import DataError, OptionError, echo
from chunkcore.files import ScratchFile

__all__ = ["store_documents"]

MEMORY = 256 * 2**20  # bytes
_HELD = 2**24  # characters of recently read texts: chunks of a document are read in a row


def store_documents(documents: Iterable[Document], *, memory_bytes: int = MEMORY) -> list[Document]:
    """Documents for a `Benchmark` of any size: texts beyond `memory_bytes` move to a temporary file (in `TMPDIR`).

    A stored document equals the original. Each use reads its text; the last 16 million characters read stay in memory.
    `size` reads nothing. A pickle or a changed copy is a plain document. The file lives as long as its documents.

    Raises:
        OptionError: memory_bytes is negative or not a whole number.
        DataError: an item is not a document.
        OSError: the disk is full.

    >>> small, large = store_documents([Document("a", "A fox."), Document("b", "Foxes nap.")], memory_bytes=60)
    >>> large.text, large == Document("b", "Foxes nap.")
    ('Foxes nap.', True)
    """
    if type(memory_bytes) is not int or memory_bytes < 0:
        raise OptionError(f"memory_bytes is a whole number of bytes, 0 or more, got {echo(memory_bytes)}")
    kept: list[Document] = []
    left = memory_bytes
    texts = _Texts()
    for document in documents:
        if not isinstance(document, Document):
            raise DataError(f"documents are chunkcore Documents, got {type(document).__name__}")
        size = sys.getsizeof(document.text)
        if size <= left:
            left -= size
            kept.append(document)
        else:
            kept.append(texts.stored(document))
    return kept


def _made(document: Document, size: int, read: Callable[[], str]) -> Document:
    stored = object.__new__(_StoredDocument)
    for name in ("id", "metadata", "marks"):
        object.__setattr__(stored, name, getattr(document, name))
    object.__setattr__(stored, "size", size)
    object.__setattr__(stored, "_read", read)
    return stored


class _StoredDocument(Document):
    __slots__ = ("_read", "size")

    _read: Callable[[], str]
    size: int

    def __new__(cls, *args: Any, **options: Any) -> Any:
        return Document(*args, **options)  # for `dataclasses.replace`

    @property
    def text(self) -> str:
        return self._read()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Document):
            return NotImplemented
        return (self.id, self.text, self.metadata, self.marks) == (other.id, other.text, other.metadata, other.marks)

    __hash__ = Document.__hash__

    def __repr__(self) -> str:
        return repr(Document(self.id, self.text, self.metadata, self.marks))

    def __reduce__(self) -> tuple[Any, ...]:
        return Document, (self.id, self.text, self.metadata, self.marks)


class _Texts:
    def __init__(self) -> None:
        self._file: ScratchFile | None = None
        self._held: OrderedDict[int, str] = OrderedDict()  # by where they begin
        self._characters = 0
        self._lock = threading.Lock()

    def stored(self, document: Document) -> Document:
        if type(document) is not Document:
            return document
        self._file = self._file or ScratchFile()
        data = document.text.encode("utf-8", "surrogatepass")
        return _made(document, document.size, partial(self._text, self._file.add(data), len(data)))

    def _text(self, start: int, size: int) -> str:
        if not size:
            return ""
        with self._lock:
            if start in self._held:
                self._held.move_to_end(start)
                return self._held[start]
        assert self._file is not None
        text = self._file.read(start, size).decode("utf-8", "surrogatepass")
        with self._lock:
            if start not in self._held:
                self._held[start] = text
                self._characters += len(text)
            while self._characters > _HELD and len(self._held) > 1:
                _, oldest = self._held.popitem(last=False)
                self._characters -= len(oldest)
        return text
