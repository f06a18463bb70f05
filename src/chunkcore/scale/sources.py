"""Inputs as pieces of work, in a fixed order: documents, parts of large files, lines of JSON, standard input."""

from __future__ import annotations

import codecs
import os
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import BinaryIO, Literal, NamedTuple

import regex

from chunkcore.errors import ChunkcoreError, DataError
from chunkcore.files import UnreadError, byte_lines, empty, open_file, unreadable
from chunkcore.reading.encodings import is_utf8
from chunkcore.reading.folders import FolderWalk, as_utf8
from chunkcore.reading.opening import has_reader

# Tried in this order: a pattern, and how much of its match belongs to the part before.
_PLACES: tuple[tuple[tuple[bytes, int], ...], ...] = (
    *(
        ((b"\n\n" + b"#" * level + b" ", 2), (b"\r\n\r\n" + b"#" * level + b" ", 4))
        for level in (1, 2, 3)
    ),
    ((b"\n\n", 2), (b"\r\n\r\n", 4)),
    ((b"\n", 1),),
    ((b". ", 2), ("。".encode(), 3)),
    ((b" ", 1),),
)
GRAPHEME = regex.compile(r"\X")
_LOOKED_AT = 4096  # bytes searched for the end of a grapheme; a longer grapheme is cut


def parts(stream: BinaryIO, size: int) -> Iterator[bytes]:
    r"""The stream's UTF-8 bytes in parts of at most `size` bytes, cut at `cut_place`.

    Memory is about twice `size`. Parts depend on the bytes and the size only.

    >>> from io import BytesIO
    >>> list(parts(BytesIO(b"One two.\n\nThree four.\n\nFive."), 24))
    [b'One two.\n\nThree four.\n\n', b'Five.']
    """
    held = b""
    while True:
        data = held + _filled(stream, size + 1 - len(held))
        if len(data) <= size:
            if data:
                yield data
            return
        end = cut_place(data[:size])
        yield data[:end]
        held = data[end:]


def cut_place(data: bytes) -> int:
    r"""The length in bytes of the first part of UTF-8 text that continues after `data`; at least one character.

    The cut is the last place in the second half of the best kind found there: before a Markdown heading of level 1, 2
    or 3; after a blank line; a line; a sentence (a full stop and a space, or 。); a space; a grapheme.

    >>> cut_place(b"# A\n\nOne two three.\n\n## B\n\nTwo.\n\nThree."), cut_place(b"no line end in here")
    (21, 15)
    """
    middle = len(data) // 2
    for kind in _PLACES:
        places = [(data.rfind(mark, middle), kept) for mark, kept in kind]
        ends = [place + kept for place, kept in places if place >= 0]
        if ends:
            return max(ends)
    return _grapheme_place(data)


def _grapheme_place(data: bytes) -> int:
    """Before the last grapheme, which may continue after the bytes."""
    begin = _character_place(data, max(1, len(data) - _LOOKED_AT)) if len(data) > _LOOKED_AT else 0
    try:
        text, _ = codecs.utf_8_decode(
            data[begin:], "surrogatepass"
        )  # without an incomplete last character
    except UnicodeDecodeError:
        text = ""  # the error appears when the part is decoded
    starts = [match.start() for match in GRAPHEME.finditer(text)]
    if starts[1:]:
        return begin + len(text[: starts[-1]].encode("utf-8", "surrogatepass"))
    return _character_place(data, len(data) - 1)  # one grapheme, as far as the bytes show


def _character_place(data: bytes, place: int) -> int:
    """The start of the character that contains this byte, unless it is the first."""
    begin = place
    while begin > place - 4 and begin > 0 and data[begin] & 0xC0 == 0x80:
        begin -= 1
    return begin or max(1, place)


def _filled(stream: BinaryIO, size: int) -> bytes:
    """Read `size` bytes, or all that are left: a pipe returns less."""
    blocks = bytearray()
    while len(blocks) < size:
        data = stream.read(size - len(blocks))
        if not data:
            break
        blocks += data
    return bytes(blocks)


STANDARD_INPUT = Path("-")
_BLOCK = 1 << 16
# The first byte of a character: all but 0x80 to 0xBF.
_CONTINUING = bytes(range(0x80, 0xC0))


class Piece(NamedTuple):
    """A document, or a part of one, as a unit of work. Small, because it is sent to other processes."""

    kind: Literal[
        "text", "line", "file"
    ]  # text of a file or in `data`, a line of JSON, or a file for `read_file`
    id: str  # the document's; "" if the line holds it
    place: str  # the name in messages
    argument: int  # index of the input
    listed: bool = (
        False  # found in a folder; then a file without text is skipped, else it is an error
    )
    path: str = ""
    begin: int = 0  # the first byte in the file
    end: int = 0  # the byte after the last
    offset: int = 0  # code points of the document before this piece
    part: int | None = None  # index among the document's parts; None if it is the whole document
    stamp: tuple[int, int] = (0, 0)  # see `file_stamp`
    data: bytes | None = None  # the bytes, if the file cannot be read again
    error: ChunkcoreError | None = None  # why the piece cannot be read
    inside: str = ""  # the folder that links may not leave


class Sources:
    r"""The pieces of files, folders, JSON-lines files and standard input (``-``). Can be iterated repeatedly.

    Order: arguments, paths in a folder, lines in a file. Memory holds the names of one directory, one part of a file,
    one line of JSON. Files of over `part_size` bytes are cut in parts.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.txt").write_text("One two.\n\nThree four.\n\nFive.")
    ...     [(piece.id, piece.part, piece.begin, piece.end) for piece in Sources([Path(folder)], 24)]
    [('a.txt', 0, 0, 23), ('a.txt', 1, 23, 28)]
    """

    def __init__(
        self, paths: Sequence[Path], part_size: int, *, follow_links: bool = False
    ) -> None:
        self.paths = list(paths)
        self.part_size = part_size
        self.follow_links = follow_links
        self.written: dict[
            int, list[Path]
        ] = {}  # by argument, earlier outputs of chunkcore in the folder

    def __iter__(self) -> Iterator[Piece]:
        for argument, path in enumerate(self.paths):
            if path == STANDARD_INPUT:
                yield from self._piped(
                    Piece("text", "-", "standard input", argument), sys.stdin.buffer
                )
            elif lines := lines_file(path):
                yield from self._lines(argument, lines)
            elif path.is_dir():
                yield from self._folder(argument, path)
            else:
                yield from self._file(argument, as_utf8(path.as_posix()), path)

    def _folder(self, argument: int, root: Path) -> Iterator[Piece]:
        failed: list[Piece] = []

        def note(path: Path, error: OSError) -> None:
            reason = f"cannot be read: {error.strerror or error}"
            failed.append(_failed(argument, str(path), UnreadError(path, reason), listed=True))

        walk = FolderWalk(root, note, follow_links=self.follow_links)
        for name, file in walk:
            yield from failed
            failed.clear()
            yield from self._file(argument, name, file, root)
        yield from failed
        self.written[argument] = walk.written

    def _file(
        self, argument: int, name: str, path: Path, root: Path | None = None
    ) -> Iterator[Piece]:
        listed = root is not None
        place = str(path)
        try:
            if path.is_fifo() and not listed:  # such as a shell's process substitution
                with path.open("rb") as stream:
                    yield from self._piped(Piece("text", name, place, argument), stream)
                return
            stamp = file_stamp(path)
            size, _ = stamp
            inside = None if self.follow_links else root
            whole = Piece(
                "file",
                name,
                place,
                argument,
                listed,
                place,
                0,
                size,
                stamp=stamp,
                inside=str(inside or ""),
            )
            if not size:
                open_file(path, inside=inside).close()
                raise empty(path)
            if has_reader(path) or size <= self.part_size:
                yield whole
            else:
                yield from self._large(whole, path, inside)
        except OSError as error:
            is_left_out = listed and isinstance(error, PermissionError)
            yield _failed(argument, place, _problem(path, error), name, listed=is_left_out)
        except DataError as error:
            yield _failed(argument, place, error, name, listed=listed)

    def _large(self, whole: Piece, path: Path, inside: Path | None) -> Iterator[Piece]:
        """The parts of a text; or the file, in another encoding or of a kind that its name does not tell."""
        with open_file(path, inside=inside) as file:
            if is_utf8(iter(partial(file.read, _BLOCK), b""), whole=True):
                file.seek(0)
                for part in self._parts(whole._replace(kind="text"), file):
                    yield part._replace(data=None)
                return
        yield whole

    def _parts(self, whole: Piece, stream: BinaryIO) -> Iterator[Piece]:
        begin = offset = 0
        for number, data in enumerate(parts(stream, self.part_size)):
            end = begin + len(data)
            yield whole._replace(begin=begin, end=end, offset=offset, part=number, data=data)
            begin, offset = end, offset + len(data.translate(None, _CONTINUING))

    def _lines(self, argument: int, path: Path) -> Iterator[Piece]:
        try:
            stamp = file_stamp(path)
            for number, begin, data in byte_lines(path):
                if data.isspace():
                    continue
                place, end = f"{path}, line {number}", begin + len(data)
                whole = Piece(
                    "line", "", place, argument, False, str(path), begin, end, stamp=stamp
                )
                yield whole._replace(data=data)
        except OSError as error:
            yield _failed(argument, str(path), _problem(path, error))
        except DataError as error:
            yield _failed(argument, str(path), error)

    def _piped(self, whole: Piece, stream: BinaryIO) -> Iterator[Piece]:
        """The parts of input that can be read only once; the second part shows that there are several."""
        waiting: Piece | None = None
        for piece in self._parts(whole, stream):
            if waiting is not None:
                yield waiting
            waiting = piece
        if waiting is not None:
            yield waiting._replace(part=waiting.part or None)
        else:
            error = DataError(f"{whole.place} is empty: pipe a text into the command")
            yield _failed(whole.argument, whole.place, error, whole.id)


def lines_file(path: Path) -> Path | None:
    """The file with a document, including its id, on each line, that an input names; None for any other input."""
    if path.is_dir():
        return path / "documents.jsonl" if (path / "documents.jsonl").is_file() else None
    return path if path.suffix == ".jsonl" else None


def input_files(path: Path) -> Iterator[Path]:
    """The files that are read of an input: none of standard input."""
    if lines := lines_file(path):
        yield lines
    elif path.is_dir():
        yield from (file for _, file in FolderWalk(path, lambda *_: None))
    elif path != STANDARD_INPUT:
        yield path


def file_stamp(path: Path) -> tuple[int, int]:
    """The file's size, and its modification time in nanoseconds."""
    state = os.stat(path)  # noqa: PTH116  # Path.stat is several times slower, and there may be millions
    return state.st_size, state.st_mtime_ns


def _failed(
    argument: int, place: str, error: ChunkcoreError, name: str = "", *, listed: bool = False
) -> Piece:
    return Piece("text", name or place, place, argument, listed, error=error)


def _problem(path: Path, error: OSError) -> DataError:
    if isinstance(error, FileNotFoundError):
        return DataError(
            f"{path} does not exist: expected a folder of documents, a text file, or a documents.jsonl"
        )
    return unreadable(path, error)
