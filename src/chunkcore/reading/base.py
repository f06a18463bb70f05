"""`Reader`, the registry `readers`, and `read_file`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import BinaryIO, ClassVar, NamedTuple

from chunkcore.document import Document
from chunkcore.errors import DataError
from chunkcore.files import NoTextError, UnreadError, empty, open_file, unreadable
from chunkcore.reading.encodings import decode_text
from chunkcore.registry import Registry

LARGEST = 512 * 1024**2  # bytes of a file that is read whole
_HEAD = 1024


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


@lru_cache(maxsize=1)
def _by_ending() -> dict[str, type[Reader]]:
    return {ending: reader for _, reader in readers.items() for ending in reader.endings}


def has_reader(path: Path) -> bool:
    """Whether a reader takes files of this ending; others are read as text first."""
    return path.suffix[1:].lower() in _by_ending()


def read_file(path: Path | str, name: str = "", *, inside: Path | None = None) -> Reading:
    r"""The document of a file: a PDF, DOCX, PPTX, XLSX, EPUB, e-mail, notebook, or text in any encoding.

    The kind follows from the name's ending, else from the first bytes. Everything but text becomes Markdown or, of a
    PDF, plain text (``metadata["format"]``), with marks ``page``. Nothing in a file is executed, and nothing is
    fetched. The file is opened once; all but UTF-8 text is read in a process with limits of time and memory.

    `name` becomes the document's id; by default it is the file's. With `inside`, a link that leaves that folder is
    refused.

    Raises:
        UnreadError: a file of a known kind that cannot be read, or a text whose encoding cannot be told.
        NoTextError: it is empty, or of no known kind.
        DataError: it cannot be opened.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "note.eml")
    ...     _ = file.write_text("Subject: Tea\n\nAt four.")
    ...     read_file(file).document.text
    '# Tea\n\nAt four.'
    """
    path = Path(path)
    name = name or path.name
    try:
        with open_file(path, inside=inside) as file:
            return _read_open(path, file, name)
    except PermissionError as error:
        raise UnreadError(path, f"cannot be read: {error.strerror}") from error
    except OSError as error:
        raise unreadable(path, error) from error
    except NoTextError:
        raise
    except DataError as error:  # damaged, or of an encoding that cannot be told
        raise UnreadError(path, str(error).removeprefix(f"{path} ")) from error


def _read_open(path: Path, file: BinaryIO, name: str) -> Reading:
    head = file.read(_HEAD)
    if not head:
        raise empty(path)
    reader = _reader_of(path, head)
    rest = file.read(LARGEST)
    if len(rest) == LARGEST:
        raise UnreadError(path, f"has over {LARGEST // 1024**2} MB: split it, or take it out")
    if reader is None:
        text, note = decode_text(head + rest, path)
        return Reading(Document(name, text), (note,) if note else ())
    from chunkcore.reading.guarded import read_guarded

    return read_guarded(reader, head + rest, path, name)


def _reader_of(path: Path, head: bytes) -> type[Reader] | None:
    reader = _by_ending().get(path.suffix[1:].lower())
    if reader is not None and not reader.magic:
        return reader
    recognised = next((kind for kind in _by_ending().values() if kind().recognises(head)), None)
    is_page = head.lstrip()[:15].lower().startswith((b"<!doctype html", b"<html"))  # an error page that is called .pdf
    return recognised or (None if is_page else reader)


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
