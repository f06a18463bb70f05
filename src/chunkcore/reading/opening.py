"""Documents from a file, whose reader follows from its name and first bytes, a folder, or a ``documents.jsonl``."""

from __future__ import annotations

import os
import re
import sys
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from chunkcore.boundaries import HTML_PAGE
from chunkcore.boundaries.sentences import marked_headings
from chunkcore.errors import DataError, echo, warn_user
from chunkcore.files import (
    CHECKSUMS,
    NoTextError,
    UnreadError,
    empty,
    json_lines,
    open_file,
    unreadable,
)
from chunkcore.options import suggesting
from chunkcore.reading.base import Reader, Reading, listed, note_lines, read_guarded, readers
from chunkcore.reading.encodings import decode_text
from chunkcore.reading.visible import Html, html_setting, section_marks, with_right_places
from chunkcore.text import Document, Mark

LARGEST = 512 * 1024**2  # bytes of a file that is read whole
_HEAD = 1024
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")


@lru_cache(maxsize=1)
def _by_ending() -> dict[str, type[Reader]]:
    return {ending: reader for _, reader in readers.items() for ending in reader.endings}


def read_file(
    path: Path | str, name: str = "", *, inside: Path | None = None, html: Html | None = None
) -> Reading:
    r"""The document of a file: a PDF, DOCX, PPTX, XLSX, EPUB, HTML, e-mail, notebook, or text in any encoding.

    The kind follows from the name's ending, else from the first bytes. Everything but text becomes Markdown or, of a
    PDF, plain text (``metadata["format"]``), with marks ``page`` and ``section``. Nothing in a file is executed, and
    nothing is fetched. The file is opened once; all but UTF-8 text is read in a process with limits of time and memory.

    `name` becomes the document's id; by default it is the file's. With `inside`, a link that leaves that folder is
    refused. `html`: "visible" reads a page as a reader sees it, with a mark ``source`` for `in_source`; "source" leaves
    its tags; by default `html_setting`.

    Raises:
        UnreadError: it cannot be opened, or read, or its encoding cannot be told.
        NoTextError: it is empty, or of no known kind.

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
            return _read_open(path, file, name, html or html_setting())
    except OSError as error:
        raise unreadable(path, error) from error


def _read_open(path: Path, file: BinaryIO, name: str, html: Html) -> Reading:
    if os.fstat(file.fileno()).st_size > LARGEST:
        raise UnreadError(path, f"has over {LARGEST // 1024**2} MB: split it, or take it out")
    data = file.read()
    if not data:
        raise empty(path)
    reader = _reader_of(path, data[:_HEAD])
    is_source = html == "source" and reader and reader.name == "HTML"
    if reader and not is_source:
        reading = read_guarded(reader, data, path, name)
        if not reading.document.text:
            raise UnreadError(path, "has no text that a reader sees: it may hold pictures only")
        return _with_sections(reading)
    text, notes = decode_text(data, path)
    metadata = {"html": "source"} if is_source else {}
    return Reading(Document(name, text, metadata), notes)


def _with_sections(reading: Reading) -> Reading:
    """With a mark ``section`` from each heading, or the first of several, to the next, unless a reader made some."""
    document = reading.document
    has_sections = any(mark.kind == "section" for mark in document.marks)
    if has_sections or document.metadata.get("format") != "markdown":
        return reading
    starts: list[int] = []
    end = 0
    for heading in marked_headings(document.text):
        if not starts or document.text[end : heading.start].strip():
            starts.append(heading.start)
        end = heading.end
    marks = document.marks + section_marks([*starts, document.size])
    return reading._replace(document=replace(document, marks=marks))


def _reader_of(path: Path, head: bytes) -> type[Reader] | None:
    reader = _by_ending().get(path.suffix[1:].lower())
    if reader and not reader.magic:
        return reader
    for kind in _by_ending().values():
        if kind().recognises(head):
            return kind
    begin = head.removeprefix(b"\xef\xbb\xbf").lstrip().decode("latin-1")
    is_page = HTML_PAGE.match(begin)  # an error page that is called .pdf
    if reader and reader.name == "Office before 2007":
        # Tags, or a table, that a program calls .xls.
        is_page = is_page or re.match("<[A-Za-z!]", begin)
        is_text = head.startswith(_UTF_16) or b"\0" not in head
        if is_text and not is_page:
            return None
    return _by_ending().get("html") if is_page else reader


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
    if not os.path.exists(root):  # noqa: PTH110  # Path.exists raises for a long text
        raise DataError(
            f"{root} does not exist: expected a folder of documents, a file, or a documents.jsonl; "
            'of a text make a Document("faq.md", text)'
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
            raise DataError(
                f'{lines} holds no documents: expected lines like {{"id": ..., "text": ...}}'
            )
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
        document = _document_of(row, place)
        if document.id in places:
            raise DataError(
                f"{place}: the id {echo(document.id)} was given before, at {places[document.id]}; make ids unique"
            )
        places[document.id] = place
        documents.append(document)
    return documents


def _document_of(row: Mapping[str, Any], place: str) -> Document:
    missing = [key for key in ("id", "text") if key not in row]
    if missing:
        raise DataError(
            f"{place}: the document has no {' and no '.join(missing)}; it has {echo(list(row))}"
        )
    others = dict(row)
    identity, text = others.pop("id"), others.pop("text")
    nested = others.pop("metadata", None) or {}
    if not isinstance(nested, dict):
        raise DataError(f"{place}: metadata is an object, got {type(nested).__name__}")
    if type(identity) is int:
        identity = str(identity)
    rows = others.get("marks")
    are_marks = isinstance(rows, list) and all(
        isinstance(mark, dict) and "kind" in mark for mark in rows
    )
    marks: tuple[Mark, ...] = ()
    try:
        if are_marks:
            marks = tuple(map(Mark.from_dict, others.pop("marks")))
        return with_right_places(Document(identity, text, {**nested, **others}, marks))
    except DataError as error:
        raise DataError(f"{place}: {error}") from error


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
    left_out: defaultdict[str, list[str]] = defaultdict(list)
    notes: defaultdict[str, list[str]] = defaultdict(list)
    unread = {} if unread is None else unread
    closed: dict[str, str] = {}
    skipped = {_place(file) for file in leave_out}
    inside = None if follow_links else root
    walk = walk_folder(root, closed, follow_links=follow_links)
    for folder, reason in closed.items():
        left_out[reason].append(folder)
    written = [file for file in walk.written if _place(file) not in skipped]
    if written:
        folders = sorted({file.parent.relative_to(root).as_posix() for file in written})
        places = f"({len(written):,}, in {listed(folders)}): write results elsewhere"
        warn_user(f"files written by chunkcore are left out of {root} {places}")
    documents = []
    for name, file in walk.files.items():
        if _place(file) in skipped:
            continue
        try:
            reading = read_file(file, name, inside=inside, html=html)
        except NoTextError as error:
            unread[name] = error.reason
            left_out[error.reason].append(name)
            continue
        for note in reading.notes:
            notes[note].append(name)
        documents.append(reading.document)
    lines = list(note_lines(left_out))
    if not (documents or may_be_none):
        expected = "expected files with text in it, or a documents.jsonl"
        raise DataError("; ".join([f"{root} holds no documents: {expected}", *lines]))
    for line in lines:
        warn_user(f"left out of {root}: {line}")
    for line in note_lines(notes):
        warn_user(f"in {root}, {line}")
    return documents


def _place(file: Path) -> Path:
    """A file's absolute path, without links to folders; a link to a file is a file of its own."""
    return file.parent.resolve() / file.name


class Walk(NamedTuple):
    """A folder's files, by their relative paths, sorted; and those that chunkcore wrote."""

    files: dict[str, Path]
    written: list[Path]


def walk_folder(root: Path, closed: dict[str, str], *, follow_links: bool) -> Walk:
    """Every regular file below a folder.

    Skipped are names with a leading dot, devices, pipes and sockets, and files and saved indexes that chunkcore wrote.
    Links to files are given as they are: `open_file` refuses those that leave the folder. Links to folders are skipped,
    but with `follow_links` entered once each. `closed` gets each folder that cannot be listed, and why.
    """
    files = {}
    written = []
    linked = {os.path.realpath(root)}  # folders that are entered by links
    waiting = [""]
    while waiting:
        folder = waiting.pop()
        folders = []
        names = set()
        try:
            with os.scandir(root / folder) as entries:
                for entry in sorted(entries, key=lambda entry: entry.name):
                    if entry.name.startswith("."):
                        continue
                    if _is_folder(entry, linked, follow_links=follow_links):
                        folders.append(f"{folder}{entry.name}/")
                    elif _is_file(entry):
                        names.add(entry.name)
        except OSError as error:
            closed[str(root / folder)] = f"cannot be read: {error.strerror or error}"
        ours = set(written_names(names))
        has_data = bool(folders) and all(map(_INDEX_DATA.search, folders))
        if folder and has_data and names == {_MANIFEST}:  # a saved index
            ours, folders = names, []
        written += [root / folder / name for name in sorted(ours)]
        for name in names - ours:
            files[as_utf8(folder + name)] = root / folder / name
        waiting += reversed(folders)
    return Walk(dict(sorted(files.items())), sorted(written))


def _is_folder(entry: os.DirEntry[str], linked: set[str], *, follow_links: bool) -> bool:
    """Whether to enter it; a folder that a link leads to is added to those that are `linked`."""
    if not follow_links or not entry.is_symlink():
        return entry.is_dir(follow_symlinks=False)
    target = os.path.realpath(entry.path)
    if not Path(target).is_dir():  # nor is a link to itself
        return False
    is_circle = any(place == target or place.startswith(f"{target}{os.sep}") for place in linked)
    linked.add(target)
    return not is_circle


def _is_file(entry: os.DirEntry[str]) -> bool:
    """Whether the entry is a file or a link to one."""
    try:
        return entry.is_file()
    except OSError:  # reading it raises the error
        return True


def as_utf8(name: str) -> str:
    """A file name as UTF-8, so that ids do not depend on the locale; invalid bytes become unpaired surrogates."""
    if sys.getfilesystemencoding().lower() == "utf-8":
        return name
    return os.fsencode(name).decode("utf-8", "surrogateescape")


REPORT_NAMES = ("report.md", "report.json", "questions.csv", "report.html")
BENCHMARK_NAMES = ("documents.jsonl", "questions.jsonl")
_MANIFEST = "manifest.json"
_INDEX_DATA = re.compile(r"(^|/)data-[0-9a-f]{16}/$")  # a saved index's folder of data
# The files of one output: it is there if all of the first are; the others are optional. "*" is a stem.
_OUTPUTS: dict[tuple[str, ...], tuple[str, ...]] = {
    ("report.json", "questions.csv"): REPORT_NAMES,
    BENCHMARK_NAMES: (),
    (CHECKSUMS,): ("questions.jsonl",),
    ("*.run.jsonl",): (),
    ("*.rejected.jsonl", "*.info.json", "*.jsonl"): (),
}


def written_names(names: set[str]) -> Iterator[str]:
    """Which of a folder's files an earlier command wrote: all names of one output are there.

    >>> sorted(set(written_names({"report.json", "questions.csv", "report.md", "own.md", "sweep.json"})))
    ['questions.csv', 'report.json', 'report.md']
    """
    for required, optional in _OUTPUTS.items():
        ending = required[0].removeprefix("*")
        for name in names:
            stem = name.removesuffix(ending)
            output = {pattern.replace("*", stem) for pattern in required}
            if name.endswith(ending) and output <= names:
                yield from output
                yield from names.intersection(optional)
