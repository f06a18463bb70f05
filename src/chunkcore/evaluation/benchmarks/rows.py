"""What every layout is read as: rows like the lines of our own JSONL files, each with its place for messages."""

from __future__ import annotations

import errno
import os
import re
import sys
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

from chunkcore.document import Document, Span
from chunkcore.errors import DataError
from chunkcore.files import written_names

__all__ = [
    "Contents",
    "FolderWalk",
    "Holds",
    "Layout",
    "Row",
    "TextBuilder",
    "as_utf8",
    "begins_with",
    "brief",
    "data_files",
    "lacking",
    "lacks_keys",
    "listed",
    "member",
    "members",
    "regular_files",
    "shown_type",
    "with_keys",
]

_HEAD = 1024**2  # bytes of a JSON file whose keys are looked at
_LOOKED_AT = 100  # files of a folder, which may have very many, by which a layout is recognised
_NAMED = 5  # files that a message names
_KEY = re.compile(rb'"([A-Za-z_][A-Za-z0-9_]*)"\s*:')


def lacking(root: Path, *names: str) -> str:
    """Which of these files and folders a folder does not have; a pattern such as ``qrels/*.tsv`` needs one match."""
    return " and ".join(name for name in names if not (root.is_dir() and any(root.glob(name))))


def data_files(root: Path, suffixes: Collection[str]) -> list[Path]:
    """The file itself, or a folder's files of these suffixes, by name."""
    if not root.is_dir():
        return [root] if root.is_file() else []
    return sorted(
        file
        for file in root.iterdir()
        if file.is_file() and not file.name.startswith(".") and file.suffix.lower() in suffixes
    )


def with_keys(root: Path, keys: Collection[str], suffixes: Collection[str]) -> list[Path]:
    """Those of the files whose first megabyte has all of these as keys of JSON objects; a warning names the others."""
    files = data_files(root, suffixes)
    found = [file for file in files if set(keys) <= _keys_seen(file)]
    others = [file.name for file in files if file not in found]
    if others:
        warnings.warn(
            f"{len(others):,} of the files in {root} left out, being of another layout: {listed(others)}", stacklevel=3
        )
    return found


def lacks_keys(root: Path, keys: Collection[str], suffixes: Collection[str]) -> str:
    """What is missing where none of the first files is of `with_keys`, in words."""
    if any(set(keys) <= _keys_seen(file) for file in data_files(root, suffixes)[:_LOOKED_AT]):
        return ""
    return f"a {' or '.join(suffixes)} file with the keys {', '.join(keys)}"


def listed(names: Sequence[str], count: int | None = None) -> str:
    """The first of the names, and how many more there are; `count` where the names are not all that is meant.

    >>> listed(["a", "b", "c", "d", "e", "f", "g"])
    'a, b, c, d, e and 2 more'
    """
    shown = names[:_NAMED]
    others = (len(names) if count is None else count) - len(shown)
    return f"{', '.join(shown)}{f' and {others:,} more' if others else ''}"


def regular_files(root: Path) -> Iterator[Path]:
    """Every file below a folder, or the file itself, in the order of their paths.

    Hidden ones are passed over, and links to folders, which may lead around in a circle.
    """
    waiting = [root]
    while waiting:
        place = waiting.pop()
        if place.is_file():
            yield place
        elif place.is_dir():
            inside = [each for each in place.iterdir() if not each.name.startswith(".")]
            waiting += sorted((each for each in inside if not (each.is_symlink() and each.is_dir())), reverse=True)


def begins_with(root: Path, mark: bytes) -> bool:
    """Whether one of the first files begins with a mark."""
    return any(_head(file, len(mark)) == mark for file in islice(regular_files(root), _LOOKED_AT))


def _keys_seen(file: Path) -> set[str]:
    return {found.decode("ascii") for found in _KEY.findall(_head(file, _HEAD))}


def _head(file: Path, size: int) -> bytes:
    try:
        with file.open("rb") as opened:
            return opened.read(size)
    except OSError:
        return b""  # whoever reads it as the layout that was asked for is told


def _raise(path: Path, error: OSError) -> None:
    raise DataError(f"{path} cannot be read: {error.strerror or error}") from error


class FolderWalk:
    """Each regular file in a folder, at any depth: its path relative to the folder, by which they are sorted, and it.

    Names that begin with a dot are passed over, and links to folders, which may lead around in a circle. So is what
    chunkcore wrote earlier: `written` has it after the walk. Memory grows with the largest single folder (about
    100 bytes a name) and with the depth, never with the number of all files.

    Args:
        root: the folder.
        on_error: told of a folder that cannot be listed. By default that is a `DataError`.
    """

    def __init__(self, root: Path, on_error: Callable[[Path, OSError], None] = _raise) -> None:
        self.root = root
        self.written: list[Path] = []
        self._on_error = on_error

    def __iter__(self) -> Iterator[tuple[str, Path]]:
        self.written = []
        waiting = [self._names("")]
        while waiting:
            for name in waiting[-1]:
                if name.endswith("/"):
                    waiting.append(self._names(name))
                    break
                yield as_utf8(name), self.root / name
            else:
                waiting.pop()

    def _names(self, folder: str) -> Iterator[str]:
        """Paths of what a folder holds, those of folders with a slash at the end: so sorted, whole paths are."""
        folders: list[str] = []
        files: set[str] = set()
        try:
            with os.scandir(self.root / folder) as entries:
                for entry in entries:
                    if entry.name.startswith("."):
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(f"{folder}{entry.name}/")
                    elif _is_file(entry):
                        files.add(entry.name)
        except OSError as error:
            self._on_error(self.root / folder, error)
        written = set(written_names(files))
        self.written.extend(self.root / folder / name for name in sorted(written))
        return iter(sorted([*folders, *(folder + name for name in files - written)], key=as_utf8))


def _is_file(entry: os.DirEntry[str]) -> bool:
    """Whether it is a file or leads to one; a link to itself leads nowhere."""
    try:
        return entry.is_file()
    except OSError as error:
        return error.errno != errno.ELOOP  # whoever reads it is told what is wrong, and has all others


def as_utf8(name: str) -> str:
    """A file's name read as UTF-8, so that ids and their order do not depend on the encoding that is set here.

    Where that is another one, Python has read the name in it. Bytes that are no UTF-8 are unpaired surrogates.
    """
    if sys.getfilesystemencoding().lower() == "utf-8":
        return name
    return os.fsencode(name).decode("utf-8", "surrogateescape")


Row = tuple[str, Mapping[str, Any]]
Holds = Literal["evidence", "answers", "boundaries"]
T = TypeVar("T")

_KINDS = {
    dict: "an object",
    list: "a list",
    str: "a string",
    int: "a whole number",
    bool: "true or false",
    float: "a number",
    type(None): "null",
}


class Contents(NamedTuple):
    """Documents, and rows of questions about them, which `QuestionReader` reads."""

    documents: list[Document]
    questions: Iterable[Row] = ()


@dataclass(frozen=True, kw_only=True)
class Layout:
    """How a public collection lies on a disk, and how it is read.

    Attributes:
        name: what it is asked for by.
        files: what it looks like, in a line.
        holds: what its questions come with: evidence; answers, and no evidence; or no questions, but texts whose
            sections are known.
        lacks: what a path lacks to be of this layout, in words; "" where it is of it.
        read: what the path holds. The second argument names the questions' file, where the user did.
        boundaries: where sections of its texts are known, rows ``{"id", "text", "boundaries"}`` of them.
        takes_questions: whether the questions' file may be named.
    """

    name: str
    files: str
    holds: Holds
    lacks: Callable[[Path], str]
    read: Callable[[Path, Path | None], Contents]
    boundaries: Callable[[Path], Iterable[Row]] | None = None
    takes_questions: bool = False


def member(value: Any, key: str, kind: type[T], place: str, default: T | None = None) -> T:
    """What an object holds under a key; the default, where there is one, for nothing or null.

    Raises:
        DataError: it is no object, has no such key, or something else under it.

    >>> member({"qas": []}, "qas", list, "dev.json, data[0]")
    []
    """
    if not isinstance(value, Mapping):
        raise DataError(f"{place}: expected an object, got {shown_type(value)}")
    if default is not None and value.get(key) is None:
        return default
    if key not in value:
        raise DataError(f"{place}: there is no {key!r}, but {', '.join(map(repr, list(value)[:9])) or 'nothing'}")
    return _checked(value[key], kind, f"{place}: expected {key!r} to be")


def members(value: Any, key: str, kind: type[T], place: str, default: list[T] | None = None) -> list[T]:
    """What a list holds that is under a key of an object.

    Raises:
        DataError: there is no such list, or something else in it.

    >>> members({"options": ["He", "She"]}, "options", str, "dev.json, data[0]")
    ['He', 'She']
    """
    listed = member(value, key, list, place, default)
    return [_checked(each, kind, f"{place}.{key}[{number}]: expected") for number, each in enumerate(listed)]


def _checked(found: object, kind: type[T], expected: str) -> T:
    if not isinstance(found, kind) or (isinstance(found, bool) and kind is not bool):
        raise DataError(f"{expected} {_KINDS[kind]}, got {shown_type(found)}")
    return found


def brief(place: str, file: Path) -> str:
    """A place in a file by the file's name: what a list of many such places has room for.

    >>> brief("/data/dev.json, data[0]", Path("/data/dev.json"))
    'dev.json, data[0]'
    """
    return place.replace(str(file), file.name, 1)


def shown_type(value: object) -> str:
    """What a JSON value is, in words.

    >>> shown_type([1]), shown_type(True)
    ('a list', 'true or false')
    """
    return _KINDS.get(type(value), type(value).__name__)


class TextBuilder:
    r"""Joins parts with one separator. Blank parts are left out.

    >>> builder = TextBuilder("\n\n")
    >>> builder.add("Foxes"), builder.add(" "), builder.add("They nap.")
    (Span(start=0, end=5), None, Span(start=7, end=16))
    >>> builder.text
    'Foxes\n\nThey nap.'
    """

    def __init__(self, separator: str) -> None:
        self._separator = separator
        self._parts: list[str] = []
        self._size = 0

    def add(self, part: str) -> Span | None:
        """Add a part, and tell where it stands; None for a blank one, which stands nowhere."""
        if not part.strip():
            return None
        start = self._size + len(self._separator) * bool(self._parts)
        self._parts.append(part)
        self._size = start + len(part)
        return Span(start, self._size)

    @property
    def text(self) -> str:
        """All parts so far."""
        return self._separator.join(self._parts)
