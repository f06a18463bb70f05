"""`Reader`, the registry `readers`, and notes on files."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from itertools import islice
from typing import ClassVar, NamedTuple

from chunkcore.document import Document
from chunkcore.registry import Registry


def on_reached(place: str) -> None:
    """Called by readers with how far they are, such as "page 17": for the message where a limit ends the reading."""


class Reading(NamedTuple):
    """A document, and notes on what is not as the file might lead one to expect: pages without text, an encoding."""

    document: Document
    notes: tuple[str, ...] = ()


class Reader(ABC):
    """Reads files of one kind, from their bytes, in a process with limits (`chunkcore.reading.guarded`).

    A reader defined in a program's main module or inside a function cannot be named to that process: it runs in the
    caller's, without limits.

    Attributes:
        name: the registered name.
        endings: of file names, without a dot.
        magic: how such files begin, whatever their names.
    """

    name: ClassVar[str] = ""
    endings: ClassVar[tuple[str, ...]] = ()
    magic: ClassVar[bytes] = b""

    @abstractmethod
    def read(self, data: bytes, name: str) -> Reading:
        """The document `name` of a file's bytes. Raises `UnreadError(name, reason)`; other exceptions become one."""

    def recognises(self, head: bytes) -> bool:
        """Whether a file that begins with these bytes is of this kind."""
        return bool(self.magic) and head.startswith(self.magic)


readers: Registry[type[Reader]] = Registry(
    "reader",
    "chunkcore.readers",
    base=Reader,
    attribute="name",
    modules=("chunkcore.reading.pdf", "chunkcore.reading.office", "chunkcore.reading.messages"),
)


class FileNotes:
    """Notes on a folder's files, each with the names of its files; a few names are kept.

    >>> notes = FileNotes()
    >>> for name in "abcdefg":
    ...     notes.add("is empty", name)
    >>> list(notes.lines())
    ['a, b, c, d, e and 2 more: is empty']
    """

    def __init__(self) -> None:
        self._names: dict[str, list[str]] = {}
        self._counts: dict[str, int] = {}

    def add(self, note: str, name: str) -> None:
        names = self._names.setdefault(note, [])
        names.extend([name] if len(names) < _NAMED else [])
        self._counts[note] = self._counts.get(note, 0) + 1

    @property
    def total(self) -> int:
        return sum(self._counts.values())

    def lines(self) -> Iterator[str]:
        for note, names in islice(self._names.items(), _LINES):
            more = self._counts[note] - len(names)
            yield f"{', '.join(names)}{f' and {more:,} more' if more else ''}: {note}"
        if rest := sum(islice(self._counts.values(), _LINES, None)):
            yield f"{rest:,} more for other reasons"


_NAMED = 5
_LINES = 20
