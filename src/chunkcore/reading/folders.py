"""Documents from a folder of files, one file (`read_file`), a ``documents.jsonl``, or its rows."""

from __future__ import annotations

import errno
import os
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from chunkcore.errors import DataError, echo, warn_user
from chunkcore.files import (
    CHECKSUMS,
    NoTextError,
    json_lines,
)
from chunkcore.options import suggesting
from chunkcore.reading.base import FileNotes, listed
from chunkcore.reading.opening import read_file
from chunkcore.reading.visible import Html
from chunkcore.text import Document, Mark

Row = tuple[str, Mapping[str, Any]]


@suggesting
def load_documents(
    path: str | Path,
    *,
    leave_out: Collection[Path] = (),
    unread: dict[str, str] | None = None,
    follow_links: bool = False,
    html: Html | None = None,
) -> list[Document]:
    """The documents at a path, in the order of their ids or of the file.

    A folder that holds ``documents.jsonl`` is that file. In any other folder each regular file, at any depth, is a
    document, as `read_file` reads it; its id is its relative path. Skipped are names with a leading dot and, with a
    warning that says why, files that chunkcore wrote, files and folders that cannot be read, and links out of the
    folder, which `follow_links` allows. docs/reference/formats.md has the formats.

    `leave_out` names files of the folder to skip; `unread` receives the names and reasons of files that were not read;
    `html` is as of `read_file`.

    Raises `DataError`: no file with text, a named file that cannot be read, a malformed line, or a repeated id.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "tea.md").write_text("Black tea is hot.")
    ...     [document.id for document in load_documents(folder)]
    ['tea.md']
    """
    root = Path(path)
    if not root.exists():
        raise DataError(
            f"{root} does not exist: expected a folder of documents, a file, or a documents.jsonl"
        )
    lines = root
    if root.is_dir():
        lines = root / "documents.jsonl"
        if not lines.is_file():
            return folder_documents(root, leave_out, unread, follow_links=follow_links, html=html)
    if lines.suffix == ".jsonl":
        rows = ((f"{lines}, line {number}", row) for number, row in json_lines(lines))
        documents = documents_of(rows)
        if not documents:
            expected = 'expected lines like {"id": ..., "text": ...}'
            raise DataError(f"{lines} holds no documents: {expected}")
        return documents
    reading = read_file(root, as_utf8(root.name), html=html)
    for note in reading.notes:
        warn_user(f"{root}: {note}")
    return [reading.document]


def documents_of(rows: Iterable[Row]) -> list[Document]:
    """The documents of ``documents.jsonl`` rows; each row comes with its place, for error messages.

    Raises `DataError`: a row is not a document, or an id is repeated.

    >>> documents_of([("line 1", {"id": 7, "text": "The fox naps.", "title": "Fox"})])
    [Document(id='7', text='The fox naps.', metadata={'title': 'Fox'}, marks=())]
    """
    documents = []
    places: dict[str, str] = {}
    for place, row in rows:
        document = document_of(row, place)
        if document.id in places:
            before = places[document.id]
            raise DataError(
                f"{place}: the id {echo(document.id)} was given before, at {before}; make ids unique"
            )
        places[document.id] = place
        documents.append(document)
    return documents


def document_of(row: Mapping[str, Any], place: str) -> Document:
    """The document of one ``documents.jsonl`` row. Raises `DataError`, with `place`: a wrong or missing id or text."""
    missing = [key for key in ("id", "text") if key not in row]
    if missing:
        raise DataError(
            f"{place}: the document has no {' and no '.join(missing)}; it has {', '.join(row)}"
        )
    fields = {"id", "text", "metadata"}
    marks = row.get("marks")
    parsed: tuple[Mark, ...] = ()
    nested = row.get("metadata") or {}
    if not isinstance(nested, dict):
        raise DataError(f"{place}: metadata is an object, got {type(nested).__name__}")
    identity = str(row["id"]) if type(row["id"]) is int else row["id"]
    try:
        if isinstance(marks, list) and all(map(_is_mark, marks)):
            fields.add("marks")
            parsed = tuple(map(Mark.from_dict, marks))
        others = {key: value for key, value in row.items() if key not in fields}
        return Document(identity, row["text"], {**nested, **others}, parsed)
    except DataError as error:
        raise DataError(f"{place}: {error}") from error


def _is_mark(value: object) -> bool:
    return isinstance(value, dict) and "kind" in value


def folder_documents(
    root: Path,
    leave_out: Collection[Path],
    unread: dict[str, str] | None,
    *,
    follow_links: bool,
    html: Html | None = None,
    may_be_none: bool = False,
) -> list[Document]:
    """The documents of a folder of files, see `load_documents`; `may_be_none`: no file needs to have text."""
    skipped = {_place(file) for file in leave_out}
    left_out, notes = FileNotes(), FileNotes()
    reasons: dict[str, str] = {}

    def closed(folder: Path, error: OSError) -> None:
        left_out.add(f"cannot be read: {error.strerror or error}", str(folder))

    walk = FolderWalk(root, closed, follow_links=follow_links)
    files = [(name, file) for name, file in walk if _place(file) not in skipped]
    tell_written(root, [file for file in walk.written if _place(file) not in skipped])
    documents: list[Document] = []
    for name, file in files:
        try:
            reading = read_file(file, name, inside=None if follow_links else root, html=html)
        except NoTextError as error:
            reasons[name] = error.reason
            left_out.add(error.reason, name)
            continue
        for note in reading.notes:
            notes.add(note, name)
        documents.append(reading.document)
    if unread is not None:
        unread.update(reasons)
    lines = list(left_out.lines())
    if not (documents or may_be_none):
        expected = "expected files with text in it, or a documents.jsonl"
        raise DataError("; ".join([f"{root} holds no documents: {expected}", *lines]))
    for line in lines:
        warn_user(f"left out of {root}: {line}")
    for line in notes.lines():
        warn_user(f"in {root}, {line}")
    return documents


def _place(file: Path) -> Path:
    """A file's absolute path, without links to folders; a link to a file is a file of its own."""
    return file.parent.resolve() / file.name


def tell_written(root: Path, files: Collection[Path]) -> None:
    """Warn of a folder's files that an earlier command wrote."""
    if not files:
        return
    folders = sorted({file.parent.relative_to(root).as_posix() for file in files})
    count = "1 file is" if len(files) == 1 else f"{len(files):,} files are"
    reason = f"having been written by chunkcore, in {listed(folders)}: write results elsewhere"
    warn_user(f"{count} left out of {root}, {reason}")


class FolderWalk:
    """Every regular file below a folder, sorted: its relative path, and its path.

    Skipped are names with a leading dot, devices, pipes and sockets, and files and saved indexes that chunkcore wrote,
    which `written` lists after the walk. Links to files are given as they are: `open_file` refuses those that leave the
    folder. Links to folders are skipped, but with `follow_links` entered once each. `on_error` gets each folder that
    cannot be listed.
    """

    def __init__(
        self,
        root: Path,
        on_error: Callable[[Path, OSError], None],
        *,
        follow_links: bool = False,
    ) -> None:
        self.root = root
        self.written: list[Path] = []
        self._on_error = on_error
        self._follow_links = follow_links
        self._linked = {os.path.realpath(root)}  # folders that are entered by links

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
        """Paths in a folder; folders end in a slash, so that whole paths sort."""
        folders = []
        files = set()
        try:
            with os.scandir(self.root / folder) as entries:
                for entry in entries:
                    if entry.name.startswith("."):
                        continue
                    if self._enters(entry):
                        folders.append(f"{folder}{entry.name}/")
                    elif _is_file(entry):
                        files.add(entry.name)
        except OSError as error:
            self._on_error(self.root / folder, error)
        has_data = bool(folders) and all(map(_INDEX_DATA.search, folders))
        if folder and has_data and files == {"manifest.json"}:  # a saved index
            self.written.append(self.root / folder / "manifest.json")
            return iter(())
        written = set(written_names(files))
        self.written.extend(self.root / folder / name for name in sorted(written))
        return iter(sorted([*folders, *(folder + name for name in files - written)], key=as_utf8))

    def _enters(self, entry: os.DirEntry[str]) -> bool:
        if not self._follow_links or not entry.is_symlink():
            return entry.is_dir(follow_symlinks=False)
        target = os.path.realpath(entry.path)
        if not Path(target).is_dir():  # nor is a link to itself
            return False
        is_circle = any(
            folder == target or folder.startswith(f"{target}{os.sep}") for folder in self._linked
        )
        self._linked.add(target)
        return not is_circle


def _is_file(entry: os.DirEntry[str]) -> bool:
    """Whether the entry is a file or a link to one; a link to itself is not."""
    try:
        return entry.is_file()
    except OSError as error:
        return error.errno != errno.ELOOP  # reading it raises the error


def as_utf8(name: str) -> str:
    """A file name as UTF-8, so that ids do not depend on the locale; invalid bytes become unpaired surrogates."""
    if sys.getfilesystemencoding().lower() == "utf-8":
        return name
    return os.fsencode(name).decode("utf-8", "surrogateescape")


REPORT_NAMES = ("report.md", "report.json", "questions.csv", "report.html")
BENCHMARK_NAMES = ("documents.jsonl", "questions.jsonl")
_INDEX_DATA = re.compile(r"(^|/)data-[0-9a-f]{16}/$")  # a saved index's folder of data


# The files of one output: it is there if all of the first are; the others are optional. "*" is a stem.
_OUTPUTS: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    (("report.json", "questions.csv"), REPORT_NAMES),
    (BENCHMARK_NAMES, ()),
    ((CHECKSUMS,), ("questions.jsonl",)),
    (("*.run.jsonl",), ()),
    (("*.rejected.jsonl", "*.info.json", "*.jsonl"), ()),
)


def written_names(names: set[str]) -> Iterator[str]:
    """Which of a folder's files an earlier command wrote: all names of one output are there.

    >>> sorted(set(written_names({"report.json", "questions.csv", "report.md", "own.md", "sweep.json"})))
    ['questions.csv', 'report.json', 'report.md']
    """
    for required, optional in _OUTPUTS:
        stems = [""]
        first = required[0]
        if "*" in first:
            ending = first.removeprefix("*")
            stems = [name.removesuffix(ending) for name in names if name.endswith(ending)]
        for stem in stems:
            output = {name.replace("*", stem) for name in (*required, *optional)}
            if all(name.replace("*", stem) in names for name in required):
                yield from names & output
