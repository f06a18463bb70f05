"""`Stream`: files in, lines of chunks out, in order, for any number of processes.

`ResumableOutput` is an output file with a journal, so that a killed run resumes.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields, replace
from functools import partial
from hashlib import blake2b
from io import FileIO
from pathlib import Path
from typing import Any, Literal, NamedTuple

from chunkcore.chunkers import Chunker
from chunkcore.concurrency import batches_of
from chunkcore.document import Document
from chunkcore.errors import ChunkcoreError, DataError, OptionError
from chunkcore.evaluation.benchmarks.documents import LeftOut, tell_written
from chunkcore.files import AppendLog, NoTextError, write_all
from chunkcore.reading import UnreadError
from chunkcore.registry import check_options, check_ranges
from chunkcore.scale.sources import STANDARD_INPUT, Piece, Sources, input_files, lines_file
from chunkcore.scale.workers import Cut, Cutter, cut_batches, piece_documents

_BATCH_BYTES = 1_000_000
_BATCH_PIECES = 64
_SMALLEST = 64  # bytes of a part: the longest character, and room for a better place


@dataclass(frozen=True, kw_only=True)
class StreamOptions:
    """How inputs are streamed. Only `part_size` and `errors` change the output.

    Attributes:
        workers: threads per process.
        part_size: bytes; larger documents are cut in parts; at least 64.
        errors: stop at the first document that cannot be read or chunked, or skip and report it.

    Raises `OptionError`: an option is out of range.
    """

    processes: int = 1
    workers: int = 1
    part_size: int = 8_000_000
    errors: Literal["stop", "skip"] = "stop"

    def __post_init__(self) -> None:
        check_options(self)
        check_ranges(self, processes=(1, 1_000), workers=(1, 1_000), part_size=_SMALLEST)


@dataclass
class Tally:
    """A stream's progress: all that resuming needs.

    Attributes:
        pieces: pieces done, in the order of the sources.
        documents: documents chunked, each counted with its first part; `found` by argument, `parted` cut in parts.
        read: bytes of input.
        skipped: documents or parts skipped for an error.
        left_out: files without text by argument.
        unread: those of them that should have text: encrypted, broken, of an unknown encoding.
        index: chunks so far of the document in parts.
        last: place of the last piece.
        inputs: hash of the inputs: files, sizes, modification times.
    """

    pieces: int = 0
    documents: int = 0
    parted: int = 0
    chunks: int = 0
    read: int = 0
    skipped: int = 0
    found: dict[str, int] = field(default_factory=dict)
    left_out: dict[str, int] = field(default_factory=dict)
    unread: int = 0
    index: int = 0
    last: str = ""
    inputs: str = ""

    @classmethod
    def from_dict(cls, data: object) -> Tally | None:
        """The tally of these plain values; None if they are not a tally."""
        kinds = {each.name: type(getattr(cls(), each.name)) for each in fields(cls)}
        if not isinstance(data, dict) or {name: type(value) for name, value in data.items()} != kinds:
            return None
        return cls(**data)

    def copy(self) -> Tally:
        """A snapshot: the tally itself keeps counting."""
        return replace(self, found=dict(self.found), left_out=dict(self.left_out))


class Failure(NamedTuple):
    """A skipped document or part, and the reason."""

    id: str
    place: str
    part: int | None
    error: ChunkcoreError

    def to_dict(self) -> dict[str, Any]:
        part = {} if self.part is None else {"part": self.part}
        return {"document_id": self.id, "place": self.place, **part, "error": str(self.error)}


class Step(NamedTuple):
    """Lines of some consecutive pieces, and the failures among them."""

    lines: list[bytes]
    failures: list[Failure]


class Stream:
    """The chunks of files, folders, JSON lines and standard input as lines of JSON, in the order of the inputs.

    A document over ``options.part_size`` bytes is cut in parts that end at paragraphs (`cut_place`), and each part is
    chunked like a document; spans, indices and ids are those of the whole document. The output is the same for any
    number of processes and threads.

    Iterating raises:
        DataError: a document cannot be read or two share an id (unless errors are skipped), or an input is empty.
        ChunkcoreError: a document cannot be chunked, or the run as a whole fails.

    >>> import tempfile
    >>> from chunkcore.chunkers import get_chunker
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.txt").write_text("One two. Three four.")
    ...     stream = Stream([Path(folder)], get_chunker("sentence:size=2,counter=words"))
    ...     lines = b"".join(line for step in stream for line in step.lines).splitlines()
    >>> len(lines), stream.tally.documents, stream.tally.chunks
    (2, 1, 2)
    """

    def __init__(self, paths: Sequence[Path], chunker: Chunker, options: StreamOptions | None = None) -> None:
        self.options = options or StreamOptions()
        self.chunker = chunker
        self.sources = Sources(paths, self.options.part_size)
        self.tally = Tally()
        self._pieces = iter(self.sources)
        self._digest = blake2b(digest_size=16)
        self._seen: dict[bytes, int] = {}
        self._repeats: DataError | None = None  # of the document in parts
        self._left_out: dict[int, LeftOut] = {}

    @property
    def is_repeatable(self) -> bool:
        """Whether the inputs can be read again: standard input and pipes cannot."""
        return all(path.is_file() or path.is_dir() or not path.exists() for path in self.sources.paths) and (
            STANDARD_INPUT not in self.sources.paths
        )

    def go_on(self, tallies: Sequence[Tally]) -> None:
        """Skip what an earlier run did; `tallies` is its progress. Raises `DataError` if inputs have changed."""
        before = "the first document"
        for tally in tallies:
            while self.tally.pieces < tally.pieces:
                piece = next(self._pieces, None)
                if piece is None:
                    raise DataError(f"there are fewer documents than before, when {tally.last} was among them")
                self._pass(piece)
            if self.tally.inputs != tally.inputs:
                raise DataError(f"what is read from {before} to {tally.last} is not what it was: a file was changed")
            before = tally.last
        if tallies:
            self.tally = tallies[-1].copy()

    def __iter__(self) -> Iterator[Step]:
        cutter = Cutter(self.chunker, self.options.part_size, self.options.workers)
        batches: list[list[Piece]] = []  # under way: a few, as `cut_batches` looks ahead

        def noted() -> Iterator[list[Piece]]:
            for batch in self._batches():
                batches.append([piece._replace(data=None) for piece in batch])
                yield batch

        for cuts in cut_batches(cutter, noted(), self.options.processes):
            step = Step([], [])
            stopped = next((each for each in map(partial(self._take, step), batches.pop(0), cuts) if each), None)
            yield step
            if stopped is not None:
                raise stopped
        self._finish()

    def _batches(self) -> Iterator[list[Piece]]:
        """Consecutive pieces: enough to make sending them cheap, and single ones for waiting threads."""
        cheap = self.chunker.tokens_only
        most = _BATCH_PIECES if cheap or self.options.processes > 1 else 1
        most_bytes = _BATCH_BYTES if cheap else _BATCH_BYTES // 10

        def size(piece: Piece) -> int:  # parts are large enough, and one may be waited for
            return most_bytes if piece.part is not None else piece.end - piece.begin

        return batches_of(self._pieces, size, most_bytes, most)

    def _pass(self, piece: Piece) -> None:
        self._note(piece)
        name = piece.id
        if piece.kind == "line" and piece.error is None:
            try:
                name = next((each.id for each in piece_documents(piece, self.options.part_size)), "")
            except DataError:
                return
        self._repeated(name, piece)

    def _note(self, piece: Piece) -> None:
        self.tally.pieces += 1
        self.tally.last = piece.place
        self.tally.read += piece.end - piece.begin
        identity = repr((piece.place, piece.begin, piece.end, piece.stamp, piece.error is None))
        self._digest.update(identity.encode("utf-8", "surrogatepass"))
        self.tally.inputs = self._digest.hexdigest()

    def _take(self, step: Step, piece: Piece, cut: Cut) -> ChunkcoreError | None:
        """Add a piece to a step. Returns the error, if any, that ends the stream before it."""
        argument = str(piece.argument)
        left_out = piece.listed and isinstance(cut.error, NoTextError)
        begins = not piece.part
        repeats = self._repeated(cut.id, piece)
        error = None if left_out else cut.error or repeats
        if error is not None and self.options.errors == "stop":
            return error
        self._note(piece)
        tally = self.tally
        if begins:
            tally.index = 0
        if error is not None:
            tally.skipped += 1
            step.failures.append(Failure(cut.id or piece.id, piece.place, piece.part, error))
        elif left_out:
            tally.left_out[argument] = tally.left_out.get(argument, 0) + 1
            assert isinstance(cut.error, NoTextError)
            tally.unread += isinstance(cut.error, UnreadError)
            self._left_out.setdefault(piece.argument, LeftOut()).add(piece.id, cut.error)
        elif cut.id:
            for note in cut.notes:
                self._left_out.setdefault(piece.argument, LeftOut()).notes.add(note, piece.id)
            step.lines.append(cut.numbered(tally.index))
            tally.documents += begins
            tally.parted += piece.part == 0
            tally.found[argument] = tally.found.get(argument, 0) + begins
            tally.chunks += cut.chunks
            tally.index += cut.chunks
        return None

    def _repeated(self, name: str, piece: Piece) -> DataError | None:
        if not piece.part:
            may_repeat = len(self.sources.paths) > 1 or piece.kind == "line"  # paths in one folder differ
            self._repeats = None
            if name and piece.error is None and may_repeat:
                key = blake2b(name.encode("utf-8", "surrogatepass"), digest_size=16).digest()
                paths, first = self.sources.paths, self._seen.get(key)
                if first is None:
                    self._seen[key] = piece.argument
                elif first == piece.argument and piece.kind == "line":
                    self._repeats = DataError(f"{piece.place}: the id {name!r} was given before; make ids unique")
                else:
                    self._repeats = DataError(_two_of_one_id(name, paths[first], paths[piece.argument]))
        return self._repeats

    def _finish(self) -> None:
        for argument, path in enumerate(self.sources.paths):
            key = str(argument)
            left_out = self._left_out.get(argument, LeftOut())
            if not self.tally.found.get(key) and not self.tally.skipped:
                if lines_file(path):
                    raise DataError(f'{path} holds no documents: expected lines like {{"id": ..., "text": ...}}')
                raise DataError(
                    f"{path} holds no documents: expected files with text in it, or a documents.jsonl{left_out}"
                )
            tell_written(path, self.sources.written.get(argument, []))
            left_out.tell(path)


def stream_documents(paths: Sequence[Path], part_size: int) -> Iterator[Document]:
    """The inputs as documents; each part of a large document is one.

    Raises `DataError`: an input cannot be read, or a named file holds no text.
    """
    for piece in Sources(paths, part_size):
        try:
            yield from piece_documents(piece, part_size)
        except NoTextError:
            if not piece.listed:
                raise


def total_bytes(paths: Sequence[Path]) -> int | None:
    """Bytes of all input files; None if standard input or a pipe is among them.

    Unreachable files are not counted: reading them raises.
    """
    if any(path == STANDARD_INPUT or not (path.is_file() or path.is_dir()) for path in paths):
        return None
    return sum(_size(file) for path in paths for file in input_files(path))


def _size(path: Path) -> int:
    try:
        return os.stat(path).st_size  # noqa: PTH116
    except OSError:
        return 0


def _two_of_one_id(name: str, first: Path, second: Path) -> str:
    one, other = (path if path.as_posix() == name else path / name for path in (first, second))
    # Path.is_file raises for an id longer than a file name can be.
    are_files = os.path.isfile(one) and os.path.isfile(other)  # noqa: PTH113
    if first == second or (are_files and one.samefile(other)):
        return f"two documents have the id {name!r}: give each file once, or a folder of them"
    if are_files:
        return (
            f"two files have one name, {name!r} in {first} and in {second}, and documents are told apart by it: "
            "chunk the folder above them, in which their paths differ"
        )
    return f"{first} and {second} both hold a document with the id {name!r}: make the ids unique, or chunk each alone"


PAUSE = 5.0  # seconds between two lines of the journal: a kill loses at most this much work
_FORMAT = "chunkcore chunk 1"
_ADVICE = "begin anew with --fresh, or name another output"


class _Line(NamedTuple):
    """A line of the journal: the tally, and the bytes of output and of errors written so far."""

    tally: Tally
    output: int
    errors: int


class ResumableOutput:
    """Writes lines to a file so that a killed run resumes.

    Lines go to ``NAME.partial``. Every few seconds, after a sync to disk, ``NAME.journal`` records its length. `finish`
    moves the file to its name. The next run after a kill truncates the file to the journal's last whole line; one of
    another identity (inputs and options as plain values) is refused, unless it begins `fresh`. Skipped documents are
    listed in ``NAME.errors.jsonl``, if there are any.

    Raises:
        OptionError: the earlier run had other options, or another process is writing.
        DataError: the earlier run's files are damaged.
        OSError: the file cannot be written.
    """

    def __init__(self, path: Path, identity: Mapping[str, Any], *, fresh: bool = False) -> None:
        self.path = Path(os.path.realpath(path))  # a link stays; its target is written
        self.partial, self.journal, self.errors = beside(self.path)
        self.tallies: list[Tally] = []  # progress of an earlier run, at several times
        self._identity = dict(identity)
        self._done: _Line | None = None
        self._kept_at = time.monotonic()
        self._files: dict[Path, FileIO] = {}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._log = AppendLog(
            self.journal,
            {"format": _FORMAT, **self._identity},
            what="journal of chunkcore chunk",
            advice=_ADVICE,
            check=self._check,
            fresh=fresh,
        )
        try:
            self._begin(fresh=fresh)
        except BaseException:
            self.close()
            raise
        self._has_kept = bool(self.tallies)

    def _begin(self, *, fresh: bool) -> None:
        if not self.partial.exists():
            self._log.clear()  # the output was moved already; a kill left the journal
        lines = []
        for number, entry in self._log.entries:
            tally, sizes = Tally.from_dict(entry.get("tally")), (entry.get("output"), entry.get("errors"))
            if tally is None or any(type(size) is not int for size in sizes):
                raise DataError(f"{self.journal}, line {number}: damaged: {_ADVICE}")
            lines.append(_Line(tally, *sizes))  # type: ignore[arg-type]
        size = os.fstat(self._open(self.partial).fileno()).st_size
        if size and not fresh and self._log.is_new:
            self._log.close()
            self.journal.unlink()
            raise OptionError(f"{self.partial} is there, and no journal tells whose it is: {_ADVICE}")
        errors = self.errors.stat().st_size if self.errors.exists() else 0
        kept = [line for line in lines if line.output <= size and line.errors <= errors]
        if lines and not kept:
            shorter = self.errors if lines[0].output <= size else self.partial
            raise DataError(f"{shorter} is shorter than {self.journal.name} says it was: {_ADVICE}")
        self.tallies = [line.tally for line in kept]
        if kept:
            self._done = kept[-1]
        else:
            self._log.clear()
        _cut_off(self._files[self.partial], self._done.output if self._done else 0)
        if self.errors.exists():
            _cut_off(self._open(self.errors), self._done.errors if self._done else 0)

    def _check(self, head: dict[str, Any]) -> None:
        changed = [
            f"{name} was {_brief(head.get(name))}, and now it is {_brief(value)}"
            for name, value in self._identity.items()
            if head.get(name) != value
        ]
        if changed:
            raise OptionError(
                f"{self.partial} was left by an earlier run in which {'; '.join(changed)}: go on as before, {_ADVICE}"
            )

    def write(self, step: Step, tally: Tally) -> None:
        """Append a step's lines and failures. `tally` counts everything up to and including this step."""
        self._add(self.partial, b"".join(step.lines))
        if step.failures:
            self._open(self.errors)
            lines = [json.dumps(each.to_dict()).encode("ascii") + b"\n" for each in step.failures]
            self._add(self.errors, b"".join(lines))
        if self._done is None:
            self._kept_at = time.monotonic()  # loading, before the first lines, is no work that could be lost
        self._done = _Line(tally.copy(), self._size(self.partial), self._size(self.errors))
        if time.monotonic() - self._kept_at >= PAUSE:
            self.keep()

    def _open(self, path: Path) -> FileIO:
        if path not in self._files:
            flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0)
            self._files[path] = FileIO(os.open(path, flags, 0o644), "r+")
        return self._files[path]

    def _add(self, path: Path, data: bytes) -> None:
        try:
            write_all(self._files[path], data)
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(path)) from error

    def keep(self) -> None:
        """Sync to disk, then add a line to the journal."""
        if self._done is None:
            return
        for file in self._files.values():
            os.fsync(file.fileno())
        self._log.append({**self._done._asdict(), "tally": asdict(self._done.tally)})
        self._has_kept = True
        self._kept_at = time.monotonic()

    def finish(self) -> None:
        """Move the file to its name, atomically."""
        for file in self._files.values():
            os.fsync(file.fileno())
            file.close()
        self.partial.replace(self.path)
        if self.errors.exists() and not self.errors.stat().st_size:
            self.errors.unlink()
        self._end_journal()

    def leave(self) -> bool:
        """Close early: keep the files if they hold work, and return whether they do."""
        if self._has_kept:
            with suppress(OSError, ValueError, DataError):  # a full disk, say: then what was kept before stays
                self.keep()
            self.close()
            return True
        for path, file in self._files.items():
            file.close()
            path.unlink(missing_ok=True)
        self._end_journal()
        return False

    def _end_journal(self) -> None:
        if os.name == "nt":  # Windows removes no open file
            self._log.close()
        self.journal.unlink(missing_ok=True)  # while it is locked, so that another process opens a new one
        self._log.close()

    def close(self) -> None:
        for file in self._files.values():
            file.close()
        self._log.close()

    def _size(self, path: Path) -> int:
        return self._files[path].tell() if path in self._files else 0


def beside(path: Path) -> list[Path]:
    """The files written beside an output: the partial file, its journal, the errors.

    >>> [each.name for each in beside(Path("out.jsonl"))]
    ['out.jsonl.partial', 'out.jsonl.journal', 'out.jsonl.errors.jsonl']
    """
    return [path.with_name(f"{path.name}.{ending}") for ending in ("partial", "journal", "errors.jsonl")]


def _cut_off(file: FileIO, size: int) -> None:
    file.truncate(size)
    file.seek(size)


def _brief(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 100 else f"{text[:100]}…"
