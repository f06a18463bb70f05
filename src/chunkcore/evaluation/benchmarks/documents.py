"""Documents from a folder of text files, one text file, a ``documents.jsonl``, or rows like its lines."""

from __future__ import annotations

import errno
import os
import sys
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from chunkcore.document import Document
from chunkcore.errors import DataError
from chunkcore.files import NoTextError, json_lines, read_text, written_names
from chunkcore.stored import store_documents

__all__ = [
    "FolderWalk",
    "Row",
    "as_utf8",
    "document_of",
    "documents_of",
    "listed",
    "load_documents",
    "tell_left_out",
    "tell_written",
]

Row = tuple[str, Mapping[str, Any]]
_NAMED = 5  # files that a message names


def load_documents(path: str | Path, *, leave_out: Collection[Path] = ()) -> list[Document]:
    """The documents at a path, in the order of their ids or of the file, as `store_documents` keeps them.

    A folder that holds ``documents.jsonl`` is that file. Of any other folder each file, at any depth, is a document;
    its id is its path relative to the folder. Left out are names that begin with a dot; files that chunkcore wrote
    earlier, such as reports, with a warning; and files without text (empty ones, images, archives, PDFs), with a
    warning. Text in another encoding is an error, since leaving it out would lose text. A ``.jsonl`` file has one
    ``{"id", "text", ...}`` a line, where everything else becomes metadata. Any other file is one document.

    Args:
        path: the folder or file.
        leave_out: files of the folder that are no documents.

    Raises:
        DataError: there is nothing there or nothing but files without text, a file is not UTF-8, a line is
            malformed, or two documents share an id.
    """
    root = Path(path)
    if root.is_dir():
        lines = root / "documents.jsonl"
        return _from_lines(lines) if lines.is_file() else _from_folder(root, leave_out)
    if not root.exists():
        raise DataError(f"{root} does not exist: expected a folder of documents, a text file, or a documents.jsonl")
    return _from_lines(root) if root.suffix == ".jsonl" else [Document(as_utf8(root.name), read_text(root))]


def documents_of(rows: Iterable[Row]) -> list[Document]:
    """The documents of rows like the lines of a ``documents.jsonl``, each with its place, which errors name.

    Raises:
        DataError: a row is no document, or two have one id.

    >>> documents_of([("line 1", {"id": 7, "text": "The fox naps.", "title": "Fox"})])
    [Document(id='7', text='The fox naps.', metadata={'title': 'Fox'}, marks=())]
    """
    return store_documents(_distinct(rows))


def _distinct(rows: Iterable[Row]) -> Iterator[Document]:
    places: dict[str, str] = {}
    for place, row in rows:
        document = document_of(row, place)
        if document.id in places:
            raise DataError(
                f"{place}: the id {document.id!r} was given before, at {places[document.id]}; make ids unique"
            )
        places[document.id] = place
        yield document


def document_of(row: Mapping[str, Any], place: str) -> Document:
    """The document that a row like a line of a ``documents.jsonl`` is; errors begin with its place.

    Raises:
        DataError: it has no id or no text, or one of another type.
    """
    missing = [key for key in ("id", "text") if key not in row]
    if missing:
        raise DataError(
            f"{place}: the document has no {' and no '.join(missing)}; it has {', '.join(row) or 'nothing'}"
        )
    others = {key: value for key, value in row.items() if key not in ("id", "text", "metadata")}
    nested = row.get("metadata") or {}
    if not isinstance(nested, dict):
        raise DataError(f"{place}: metadata is an object, got {type(nested).__name__}")
    identity = str(row["id"]) if type(row["id"]) is int else row["id"]
    try:
        return Document(identity, row["text"], {**nested, **others})
    except DataError as error:
        raise DataError(f"{place}: {error}") from error


def _from_lines(path: Path) -> list[Document]:
    found = documents_of((f"{path}, line {number}", row) for number, row in json_lines(path))
    if not found:
        raise DataError(f'{path} holds no documents: expected lines like {{"id": ..., "text": ...}}')
    return found


def _from_folder(root: Path, leave_out: Collection[Path]) -> list[Document]:
    skipped = {each.resolve() for each in leave_out}
    walk = FolderWalk(root)
    files = [(name, file) for name, file in walk if not skipped or file.resolve() not in skipped]
    tell_written(root, [file for file in walk.written if not skipped or file.resolve() not in skipped])
    without_text: list[str] = []
    found = store_documents(_with_text(files, without_text))
    if not found:
        seen = f"; empty or no text: {listed(without_text)}" if without_text else ""
        raise DataError(f"{root} holds no documents: expected text files in it, or a documents.jsonl{seen}")
    tell_left_out(root, without_text)
    return found


def _with_text(files: Iterable[tuple[str, Path]], without_text: list[str]) -> Iterator[Document]:
    """The files as documents; the names of files without text go to `without_text`."""
    for name, file in files:
        try:
            yield Document(name, read_text(file))
        except NoTextError:
            without_text.append(name)


def tell_left_out(root: Path, names: Sequence[str], count: int | None = None) -> None:
    """Warn of the files of a folder that hold no text; `count` where there are more than are named."""
    if names or count:
        number = len(names) if count is None else count
        told = f": {listed(names, number)}" if names else ""
        several = "1 file is" if number == 1 else f"{number:,} files are"
        warnings.warn(f"{several} left out of {root}, being empty or no text{told}", stacklevel=4)


def tell_written(root: Path, files: Collection[Path]) -> None:
    """Warn of the files of a folder that an earlier command wrote."""
    if not files:
        return
    folders = sorted({file.parent.relative_to(root).as_posix() for file in files})
    count = "1 file is" if len(files) == 1 else f"{len(files):,} files are"
    warnings.warn(
        f"{count} left out of {root}, having been written by chunkcore, in {listed(folders)}: write results elsewhere",
        stacklevel=4,
    )


def listed(names: Sequence[str], count: int | None = None) -> str:
    """The first of the names, and how many more there are; `count` where there are more than `names` has.

    >>> listed(["a", "b", "c", "d", "e", "f", "g"])
    'a, b, c, d, e and 2 more'
    """
    shown = names[:_NAMED]
    others = (len(names) if count is None else count) - len(shown)
    return f"{', '.join(shown)}{f' and {others:,} more' if others else ''}"


def _raise(path: Path, error: OSError) -> None:
    raise DataError(f"{path} cannot be read: {error.strerror or error}") from error


class FolderWalk:
    """Each regular file in a folder, at any depth, as its path relative to the folder, which sorts them, and its path.

    Left out are names that begin with a dot, links to folders, which may lead around in a circle, and files that
    chunkcore wrote earlier: `written` has these after the walk. Memory grows with the largest single folder (about
    100 bytes a name) and with the depth, not with the number of all files.

    Args:
        root: the folder.
        on_error: called with a folder that cannot be listed; by default it raises a `DataError`.
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
        """Paths in a folder, of folders with a slash at the end: sorted so, whole paths are sorted."""
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
        return error.errno != errno.ELOOP  # reading it gives the error


def as_utf8(name: str) -> str:
    """A file's name read as UTF-8, so that ids and their order do not depend on the locale's encoding.

    Where the locale has another encoding, Python has decoded the name by that. Bytes that are no UTF-8 become unpaired
    surrogates.
    """
    if sys.getfilesystemencoding().lower() == "utf-8":
        return name
    return os.fsencode(name).decode("utf-8", "surrogateescape")
