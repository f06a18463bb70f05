"""`store_documents`: documents of which only so much text is in memory; the rest is read when it is asked for."""

from __future__ import annotations

import sys
import threading
from collections import OrderedDict
from collections.abc import Iterable
from typing import Any

from chunkcore.document import Document
from chunkcore.errors import DataError, OptionError
from chunkcore.files import ScratchFile

__all__ = ["store_documents"]

MEMORY = 256 * 2**20  # bytes
_HELD = 2**24  # characters of the texts that were read last: chunks of a document are asked for one after the other


def store_documents(documents: Iterable[Document], *, memory_bytes: int = MEMORY) -> list[Document]:
    """Documents for a `Benchmark` of any size: so many bytes of text stay in memory, all further texts are in a file.

    A stored document is a `Document` as any other, equal to the one that it was made from. Its text is read whole
    whenever it is asked for, and some that were read last are held, 16 million characters or one text; its `size`
    costs nothing. A pickle or a changed copy of it is a plain document.

    The file lies in the temporary folder (`TMPDIR` says where; it should be on a disk), as long as a document of it is
    in use.

    Args:
        documents: taken one after the other, so that they need never be in memory together.
        memory_bytes: of texts that are kept in memory.

    Raises:
        OptionError: memory_bytes is under 0, or no whole number.
        DataError: something among the documents is none.
        OSError: the disk is full.

    >>> small, large = store_documents([Document("a", "A fox."), Document("b", "Foxes nap.")], memory_bytes=60)
    >>> large.text, large == Document("b", "Foxes nap.")
    ('Foxes nap.', True)
    """
    if type(memory_bytes) is not int or memory_bytes < 0:
        raise OptionError(f"memory_bytes is a whole number of bytes, 0 or more, got {memory_bytes!r}")
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


class _StoredDocument(Document):
    """A document without its text, and where that is."""

    __slots__ = ("_size", "_texts", "_where")

    _texts: _Texts
    _where: tuple[int, int]
    _size: int

    def __new__(cls, *args: Any, **options: Any) -> Any:
        return Document(*args, **options)  # what `dataclasses.replace` asks for: a document of its own

    @property
    def text(self) -> str:
        return self._texts.read(*self._where)

    @property
    def size(self) -> int:
        return self._size

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
    """Texts in a file that begins with the first; some that were read last are held."""

    def __init__(self) -> None:
        self._file: ScratchFile | None = None
        self._held: OrderedDict[int, str] = OrderedDict()  # by where they begin
        self._characters = 0
        self._lock = threading.Lock()

    def stored(self, document: Document) -> Document:
        """The document, with its text in the file; one of a class of its own stays what it is."""
        if type(document) is not Document:
            return document
        self._file = self._file or ScratchFile()
        data = document.text.encode("utf-8", "surrogatepass")
        stored = object.__new__(_StoredDocument)
        for name, value in (
            ("id", document.id),
            ("metadata", document.metadata),
            ("marks", document.marks),
            ("_texts", self),
            ("_where", (self._file.add(data), len(data))),
            ("_size", document.size),
        ):
            object.__setattr__(stored, name, value)
        return stored

    def read(self, start: int, size: int) -> str:
        """A text."""
        if not size:
            return ""
        with self._lock:
            if start in self._held:
                self._held.move_to_end(start)
                return self._held[start]
        assert self._file is not None
        text = self._file.read(start, size).decode("utf-8", "surrogatepass")
        with self._lock:
            self._hold(start, text)
        return text

    def _hold(self, start: int, text: str) -> None:
        if start in self._held:
            return
        self._held[start] = text
        self._characters += len(text)
        while self._characters > _HELD and len(self._held) > 1:
            _, oldest = self._held.popitem(last=False)
            self._characters -= len(oldest)
