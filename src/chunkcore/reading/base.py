"""`Reader`, the registry `readers`, `read_file`, and text in any encoding."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from codecs import getincrementaldecoder
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import ClassVar, NamedTuple

from chunkcore.document import Document
from chunkcore.errors import ChunkcoreError, DataError
from chunkcore.files import NoTextError, decoded, empty, refuse_device, unreadable
from chunkcore.registry import Registry

_LARGEST = 512 * 1024**2  # bytes of a file that is read whole
_HEAD = 1024


class UnreadError(NoTextError):
    """A file that cannot be read: encrypted, broken, pictures only, of an unknown encoding, not permitted, or its
    package is missing.

    Attributes:
        reason: what follows the file's name.
    """

    def __init__(self, path: object, reason: str = "") -> None:
        super().__init__(f"{path} {reason}" if reason else str(path))
        self.reason = reason

    def __reduce__(self) -> tuple[type[UnreadError], tuple[str, str]]:
        return UnreadError, (str(self).removesuffix(f" {self.reason}"), self.reason)


class Reading(NamedTuple):
    """A document, and notes on what is not as the file might lead one to expect: pages without text, an encoding."""

    document: Document
    notes: tuple[str, ...] = ()


class Reader(ABC):
    """Reads files of one kind.

    Attributes:
        name: the registered name.
        endings: of file names, without a dot.
        magic: how such files begin, whatever their names.
    """

    name: ClassVar[str] = ""
    endings: ClassVar[tuple[str, ...]] = ()
    magic: ClassVar[bytes] = b""

    @abstractmethod
    def read(self, path: Path, name: str) -> Reading:
        """The document `name` of a file. Raises `UnreadError`: it cannot be read; another exception is told as that."""

    def recognises(self, head: bytes) -> bool:
        """Whether a file that begins with these bytes is of this kind."""
        return bool(self.magic) and head.startswith(self.magic)


readers: Registry[type[Reader]] = Registry(
    "reader",
    "chunkcore.readers",
    base=Reader,
    attribute="name",
    modules=("chunkcore.reading.pdf", "chunkcore.reading.packed", "chunkcore.reading.messages"),
)


@lru_cache(maxsize=1)
def _by_ending() -> dict[str, type[Reader]]:
    return {ending: reader for _, reader in readers.items() for ending in reader.endings}


def has_reader(path: Path) -> bool:
    """Whether a reader takes files of this ending; others are read as text first."""
    return path.suffix[1:].lower() in _by_ending()


def read_file(path: Path | str, name: str = "") -> Reading:
    r"""The document of a file: a PDF, DOCX, EPUB, e-mail, notebook, or text in any encoding.

    The kind follows from the name's ending, else from the first bytes. Everything but text becomes Markdown or, of a
    PDF, plain text (``metadata["format"]``), with marks: ``page``, ``heading``, ``table``. Nothing in a file is
    executed, and nothing is fetched.

    `name` becomes the document's id; by default it is the file's.

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
        refuse_device(path)
        size = path.stat().st_size
        with path.open("rb") as file:
            head = file.read(_HEAD)
        if not head:
            raise empty(path)
        reader = _by_ending().get(path.suffix[1:].lower())
        if reader is None or reader.magic:  # else a web page that is called .pdf would be a broken PDF
            found = next((each for each in _by_ending().values() if each().recognises(head)), None)
            is_page = head.lstrip()[:15].lower().startswith((b"<!doctype html", b"<html"))
            reader = found or (None if is_page else reader)
        if reader is not None:
            return _read(reader(), path, name)
        if size > _LARGEST:
            raise UnreadError(path, f"has {size / 1024**2:,.0f} MB and is not UTF-8: convert it, or split it")
        text, note = decode_text(path.read_bytes(), path)
    except PermissionError as error:
        raise UnreadError(path, f"cannot be read: {error.strerror}") from error
    except OSError as error:
        raise unreadable(path, error) from error
    except NoTextError:
        raise
    except DataError as error:  # damaged, or of an encoding that cannot be told
        raise UnreadError(path, str(error).removeprefix(f"{path} ")) from error
    return Reading(Document(name, text), (note,) if note else ())


def _read(reader: Reader, path: Path, name: str) -> Reading:
    try:
        return reader.read(path, name)
    except (ChunkcoreError, OSError):
        raise
    except Exception as error:  # a stranger's file may fail a parser in any way, and the other files go on
        told = " ".join(f"{type(error).__name__}: {error}".split())[:100].rstrip(": ")
        raise UnreadError(path, f"is broken ({reader.name}: {told}): mend it, or take it out") from error


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

# ---- Encodings

_BOMS = (
    (b"\xff\xfe\x00\x00", "utf-32"),
    (b"\x00\x00\xfe\xff", "utf-32"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)
_DECLARED = re.compile(rb"""(?:charset|encoding)\s*=\s*["']?\s*([A-Za-z0-9_.:-]{2,40})""", re.IGNORECASE)
_LOOKED_AT = 200_000  # bytes from which an encoding is guessed
# What Western European texts have beside ASCII. Others have more of cp1252's letters, or other letters in their place.
_WESTERN = re.compile("[\t\n\r\x20-\x7eàâäçéèêëîïôöùûüßñáíóúæœÀÂÄÇÉÈÊËÎÏÔÖÙÛÜÑÁÍÓÚÆŒ¡¿“”‘’„–—…€£«»°§·©®\u00a0]*")
_KANA = re.compile("[\u3041-\u30fc]")
_NOT_ASCII = re.compile("[^\x00-\x7f]")


def decode_text(data: bytes, path: Path) -> tuple[str, str]:
    """The text, and a note if it is not UTF-8.

    A byte order mark, zeros in every second byte, or a charset that the text declares tell the encoding; else Western
    European and Japanese texts are told by their letters, and others by charset-normalizer. Damaged UTF-8 is no other
    encoding.

    Raises:
        NoTextError: binary data.
        DataError: the encoding cannot be told; names the byte, and charset-normalizer if it is not installed.

    >>> decode_text("Crème brûlée".encode("cp1252"), Path("menu.txt"))
    ('Crème brûlée', 'is no UTF-8, and was read as cp1252')
    """
    encoding = _by_zeros(data[:_LOOKED_AT])
    if encoding is None:
        try:
            return decoded(data, path), ""
        except NoTextError:
            raise
        except DataError as error:
            encoding = next((name for mark, name in _BOMS if data.startswith(mark)), None) or _encoding_of(data)
            if encoding is None:
                missing = (
                    "" if find_spec("charset_normalizer") else '; pip install "chunkadapters[files]" tells encodings'
                )
                raise DataError(f"{error}{missing}") from None
    try:
        return data.decode(encoding), f"is no UTF-8, and was read as {encoding}"
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path} is not UTF-8 text, and damaged as {encoding} (byte {error.start}): convert it"
        ) from None


def _by_zeros(data: bytes) -> str | None:
    """UTF-16 without a byte order mark, of a script that needs few high bytes, zero among them."""
    if b"\x00" not in data[:1000] or data.startswith(tuple(mark for mark, _ in _BOMS)):
        return None
    for encoding, high, low in (("utf-16-le", data[1::2], data[::2]), ("utf-16-be", data[::2], data[1::2])):
        is_likely = 0 in high and 0 not in low and len(set(high)) <= 4 < len(set(low))
        text = data.decode(encoding, "replace") if is_likely else ""
        shown = sum(letter.isprintable() or letter.isspace() for letter in text)
        if len(text) > 3 and shown > 0.95 * len(text) and "\ufffd" not in text[:-1]:
            return encoding
    return None


def is_utf8(head: bytes) -> bool:
    """Whether a text in UTF-8 may begin with these bytes, the last of which may be half a character."""
    try:
        getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return False
    return True


def _encoding_of(data: bytes) -> str | None:
    text = data.decode("utf-8", "replace")
    if 2 * text.count("\ufffd") <= len(_NOT_ASCII.findall(text)) - 1:
        return None  # damaged UTF-8
    with suppress(UnicodeDecodeError):
        data.decode("utf-8", "surrogatepass")
        return None  # UTF-8 with surrogates
    return _declared(data) or _by_letters(data[:_LOOKED_AT]) or _guessed(data[:_LOOKED_AT])


def _declared(data: bytes) -> str | None:
    found = _DECLARED.search(data[:2048])
    with suppress(LookupError, ValueError, TypeError):  # unknown, wrong, or no encoding of texts
        if found is not None:
            encoding = found[1].decode("ascii").lower()
            data.decode(encoding)
            return encoding
    return None


def _by_letters(data: bytes) -> str | None:
    """Encodings that charset-normalizer confuses with others."""
    for encoding in ("cp932", "euc_jp"):
        text = data.decode(encoding, "ignore")
        kana, foreign = len(_KANA.findall(text)), len(_NOT_ASCII.findall(text))
        if kana > 0.2 * foreign and len(text.encode(encoding, "ignore")) >= len(data) - 2:
            return encoding
    text = data.decode("cp1252", "replace")
    letters = sum(map(str.isalpha, text))
    if _WESTERN.fullmatch(text) and 3 * sum(map(str.isalpha, _NOT_ASCII.findall(text))) <= letters:
        return "cp1252"
    return None


def _guessed(data: bytes) -> str | None:
    try:
        from charset_normalizer import from_bytes
    except ImportError:
        return None
    enough = len(data) - len(data.translate(None, bytes(range(128, 256)))) > 3
    best = from_bytes(data).best() if enough else None
    return None if best is None else best.encoding
