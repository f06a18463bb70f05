"""`Stream`: files in, lines of chunks out, in order, for any number of processes.

`ResumableOutput` is an output file to which finished documents are appended, so that a killed run resumes.
"""

from __future__ import annotations

import json
import os
import time
import zlib
from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from io import FileIO
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

from chunkcore.chunkers import Chunker
from chunkcore.concurrency import batches_of
from chunkcore.errors import ChunkcoreError, DataError, OptionError
from chunkcore.files import (
    NoTextError,
    UnreadError,
    append_lines,
    open_locked,
    sync_folder,
    write_parts,
)
from chunkcore.options import Bounds, check_options
from chunkcore.reading.folders import LeftOut, tell_written
from chunkcore.scale.sources import STANDARD_INPUT, Piece, Sources, input_files, lines_file
from chunkcore.scale.workers import Cut, Cutter, cut_batches, piece_documents
from chunkcore.text import Document

_BATCH_BYTES = 1_000_000
BATCH_PIECES = 64
_SMALLEST = 64  # bytes of a part: the longest character, and room for a better place


@dataclass(frozen=True, kw_only=True)
class StreamOptions:
    """How inputs are streamed. Only `part_size` and `errors` change the output.

    Raises `OptionError`: an option is out of range.
    """

    processes: int = 1
    workers: int = 1  # threads per process
    part_size: int = 8_000_000  # bytes, at least 64; larger documents are cut in parts
    errors: Literal["stop", "skip"] = (
        "stop"  # at a document that cannot be read or chunked; what is skipped is told
    )
    follow_links: bool = False  # read links that lead out of a folder
    bounds: ClassVar[Bounds] = {
        "processes": (1, 1_000),
        "workers": (1, 1_000),
        "part_size": _SMALLEST,
    }

    def __post_init__(self) -> None:
        check_options(self)


@dataclass
class Tally:
    """A stream's progress."""

    documents: int = 0  # that were chunked, each counted with its first part
    chunks: int = 0
    read: int = 0  # bytes of input
    skipped: int = 0  # documents or parts, for an error
    unread: int = (
        0  # files of a folder that were left out though they should have text: encrypted, broken
    )
    index: int = 0  # chunks so far of the document in parts
    by_argument: Counter[int] = field(default_factory=Counter)  # documents of each input


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

    Iterating raises `DataError`: a document cannot be read or two share an id (unless errors are skipped), or an input
    is empty; and `ChunkcoreError`: a document cannot be chunked, or the run as a whole fails.

    >>> import tempfile
    >>> from chunkcore.chunkers import get_chunker
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.txt").write_text("One two. Three four.")
    ...     stream = Stream([Path(folder)], get_chunker("sentence:size=2,counter=words"))
    ...     lines = b"".join(line for step in stream for line in step.lines).splitlines()
    >>> len(lines), stream.tally.documents, stream.tally.chunks
    (2, 1, 2)
    """

    def __init__(
        self, paths: Sequence[Path], chunker: Chunker, options: StreamOptions | None = None
    ) -> None:
        self.options = options or StreamOptions()
        self.chunker = chunker
        self.sources = Sources(
            paths, self.options.part_size, follow_links=self.options.follow_links
        )
        self.tally = Tally()
        self._done: Done | None = None
        self._skipped: set[str] = set()  # of those that are done
        self._seen: dict[bytes, int] = {}
        self._repeats: DataError | None = None  # of the document in parts
        self._left_out: defaultdict[int, LeftOut] = defaultdict(LeftOut)

    @property
    def is_repeatable(self) -> bool:
        """Whether the inputs can be read again: standard input and pipes cannot."""
        return all(
            path.is_file() or path.is_dir() or not path.exists() for path in self.sources.paths
        ) and (STANDARD_INPUT not in self.sources.paths)

    def skip(self, done: Done) -> None:
        """Skip the documents that an earlier run wrote. Iterating raises `ChangedDocumentError`: one's file changed."""
        self._done = done
        self.tally.chunks = done.chunks

    def __iter__(self) -> Iterator[Step]:
        cutter = Cutter(self.chunker, self.options.part_size, self.options.workers)
        batches: deque[list[Piece]] = deque()  # under way: a few, as `cut_batches` looks ahead

        def noted() -> Iterator[list[Piece]]:
            for batch in self.piece_batches():
                batches.append([piece._replace(data=None) for piece in batch])
                yield batch

        for cuts in cut_batches(cutter, noted(), self.options.processes):
            step = Step([], [])
            results = (
                self._take(step, piece, cut)
                for piece, cut in zip(batches.popleft(), cuts, strict=True)
            )
            stopped = next((error for error in results if error is not None), None)
            yield step
            if stopped is not None:
                raise stopped
        self._finish()

    def piece_batches(self) -> Iterator[list[Piece]]:
        """Consecutive pieces: enough to make sending them cheap, and single ones for waiting threads."""
        cheap = self.chunker.tokens_only
        most = BATCH_PIECES if cheap or self.options.processes > 1 else 1
        most_bytes = _BATCH_BYTES if cheap else _BATCH_BYTES // 10

        def size(piece: Piece) -> int:  # parts are large enough, and one may be waited for
            return most_bytes if piece.part is not None else piece.end - piece.begin

        return batches_of(
            (piece for piece in self.sources if not self._is_done(piece)), size, most_bytes, most
        )

    def _is_done(self, piece: Piece) -> bool:
        if self._done is None or piece.error is not None:
            return False
        name = piece.id
        if piece.kind == "line":
            try:
                name = next(
                    (document.id for document in piece_documents(piece, self.options.part_size)), ""
                )
            except DataError:
                return False
        if name not in self._done.ids or self._repeated(name, piece) is not None:
            return False
        if piece.stamp[1] > self._done.started:
            raise ChangedDocumentError(f"{piece.place} has changed since its chunks were written")
        self.tally.read += piece.end - piece.begin
        self._count(piece)
        self._skipped.add(name)
        return True

    def _count(self, piece: Piece) -> None:
        begins = not piece.part
        self.tally.documents += begins
        self.tally.by_argument[piece.argument] += begins

    def _take(self, step: Step, piece: Piece, cut: Cut) -> ChunkcoreError | None:
        """Add a piece to a step. Returns the error, if any, that ends the stream before it."""
        tally = self.tally
        repeats = self._repeated(cut.id, piece)
        is_left_out = piece.listed and isinstance(cut.error, NoTextError)
        error = None if is_left_out else cut.error or repeats
        if error is not None and self.options.errors == "stop":
            return error
        tally.read += piece.end - piece.begin
        if not piece.part:
            tally.index = 0
        if error is not None:
            tally.skipped += 1
            step.failures.append(Failure(cut.id or piece.id, piece.place, piece.part, error))
        elif isinstance(cut.error, NoTextError):
            tally.unread += isinstance(cut.error, UnreadError)
            self._left_out[piece.argument].add(piece.id, cut.error)
        elif cut.id:
            for note in cut.notes:
                self._left_out[piece.argument].notes.add(note, piece.id)
            step.lines.append(cut.numbered(tally.index))
            self._count(piece)
            tally.chunks += len(cut.lines)
            tally.index += len(cut.lines)
        return None

    def _repeated(self, name: str, piece: Piece) -> DataError | None:
        if not piece.part:
            may_repeat = (
                len(self.sources.paths) > 1 or piece.kind == "line"
            )  # paths in one folder differ
            self._repeats = None
            if name and piece.error is None and may_repeat:
                key = blake2b(name.encode("utf-8", "surrogatepass"), digest_size=16).digest()
                paths, first = self.sources.paths, self._seen.get(key)
                if first is None:
                    self._seen[key] = piece.argument
                elif first == piece.argument and piece.kind == "line":
                    self._repeats = DataError(
                        f"{piece.place}: the id {name!r} was given before; make ids unique"
                    )
                else:
                    self._repeats = DataError(
                        f"{paths[first]} and {paths[piece.argument]} both hold a document with the id {name!r}: give "
                        "each file once, and of folders the one above them, in which their paths differ"
                    )
        return self._repeats

    def _finish(self) -> None:
        if self._done and self._skipped < self._done.ids:
            gone = len(self._done.ids - self._skipped)
            raise ChangedDocumentError(f"{gone:,} documents whose chunks were written are gone")
        for argument, path in enumerate(self.sources.paths):
            left_out = self._left_out[argument]
            if not self.tally.by_argument[argument] and not self.tally.skipped:
                if lines_file(path):
                    raise DataError(
                        f'{path} holds no documents: expected lines like {{"id": ..., "text": ...}}'
                    )
                raise DataError(
                    f"{path} holds no documents: expected files with text in it, or a documents.jsonl{left_out}"
                )
            tell_written(path, self.sources.written.get(argument, []))
            left_out.tell(path)


def stream_documents(paths: Sequence[Path], part_size: int) -> Iterator[Document]:
    """The inputs as documents; each part of a large document is one. Raises `DataError`."""
    for piece in Sources(paths, part_size):
        try:
            yield from piece_documents(piece, part_size)
        except NoTextError:
            if not piece.listed:
                raise


def total_bytes(paths: Sequence[Path]) -> int | None:
    """Bytes of all input files that can be reached; None if standard input or a pipe is among them."""
    if any(path == STANDARD_INPUT or not (path.is_file() or path.is_dir()) for path in paths):
        return None
    size = 0
    for file in (file for path in paths for file in input_files(path)):
        with suppress(OSError):
            size += os.stat(file).st_size  # noqa: PTH116
    return size


_BEGINS = b'{"started": '
_ADVICE = "begin anew with --fresh, or name another output"


class ChangedDocumentError(DataError):
    """A document whose chunks an earlier run wrote has changed since."""


class Done(NamedTuple):
    """What an earlier run wrote: the ids of whole documents, their chunks, and when the run started (ns)."""

    ids: frozenset[str]
    chunks: int
    started: int


class ResumableOutput:
    """Appends lines to a file, so that a killed run loses only its last documents.

    Lines go to ``NAME.partial``. ``NAME.progress`` has the run's identity (inputs and options as plain values), then
    for each step the partial file's length and the checksum of what the step added. `finish` moves the partial file to
    its name. The next run after a kill keeps the steps whose checksums are right, but for a large document that has
    not ended, and skips their documents (`done`). Skipped documents are listed in ``NAME.errors.jsonl``, if there are
    any.

    Raises `OptionError`: the earlier run had another identity, or another process is writing; or `DataError`: the
    earlier run's files are damaged.
    """

    def __init__(self, path: Path, identity: Mapping[str, Any], *, fresh: bool = False) -> None:
        self.path = Path(os.path.realpath(path))  # a link stays; its target is written
        self.partial, self.progress, self.errors = beside(self.path)
        self.done: Done | None = None
        self._end = 0
        self._failures: list[bytes] = []
        self._progress = open_locked(self.progress, _ADVICE)
        try:
            self._begin(dict(identity), fresh=fresh)
        except BaseException:
            self._progress.close()
            raise

    def _begin(self, identity: dict[str, Any], *, fresh: bool) -> None:
        lines = self._progress.readall().splitlines(keepends=True)
        if lines and not (lines[0].startswith(_BEGINS) or _BEGINS.startswith(lines[0])):
            raise DataError(
                f"{self.progress} is there, and is no progress of chunkcore chunk: {_ADVICE}"
            )
        kept = b""
        if not fresh and self.partial.exists() and self.partial.stat().st_size:
            if not lines:
                self.progress.unlink()
                raise OptionError(
                    f"{self.partial} is there, and {self.progress.name} does not say whose it is: {_ADVICE}"
                )
            kept = self._kept(lines, identity)
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0)
        self._file = FileIO(os.open(self.partial, flags, 0o644), "r+")
        _cut_off(self._file, self._end)
        _cut_off(self._progress, 0)
        sync_folder(self.path.parent)
        self._add(
            self._progress,
            self.progress,
            kept or _line({"started": time.time_ns(), "identity": identity}),
        )

    def _kept(self, lines: Sequence[bytes], identity: Mapping[str, Any]) -> bytes:
        """The lines of the progress file whose steps are kept; sets `done` and the partial file's end."""
        header, *steps = map(_parsed, lines)
        if not isinstance(header, dict) or type(header.get("started")) is not int:
            raise DataError(f"{self.progress}, line 1: damaged: {_ADVICE}")
        before = header.get("identity") or {}
        changed = [name for name, value in identity.items() if before.get(name) != value]
        if changed:
            raise OptionError(
                f"{self.partial} was left by an earlier run with other {', '.join(changed)}: go on as before, {_ADVICE}"
            )
        blocks = list(_whole_blocks(self.partial, steps))
        while blocks and blocks[-1].unfinished:
            unfinished = blocks[-1].unfinished
            blocks = [block for block in blocks if unfinished not in block.ids]
        if blocks:
            self._end = blocks[-1].end
            ids = frozenset().union(*(block.ids for block in blocks))
            self.done = Done(ids, sum(block.chunks for block in blocks), header["started"])
        return b"".join(lines[: 1 + len(blocks)])

    def write(self, step: Step) -> None:
        """Append a step's lines, sync them to the disk, and note them in the progress file."""
        data = b"".join(step.lines)
        if data:
            self._add(self._file, self.partial, data)
            self._end += len(data)
            self._add(self._progress, self.progress, _line([self._end, zlib.crc32(data)]))
        if step.failures:
            self._failures += [_line(failure.to_dict()) for failure in step.failures]
            write_parts(self.errors, self._failures)

    def _add(self, file: FileIO, path: Path, data: bytes) -> None:
        try:
            append_lines(file, data)
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(path)) from error

    def close(self) -> None:
        self._file.close()
        self._progress.close()

    def finish(self) -> None:
        """Move the file to its name, atomically."""
        self._file.close()
        self.partial.replace(self.path)
        sync_folder(self.path.parent)
        if not self._failures:
            self.errors.unlink(missing_ok=True)
        self._end_progress()

    def leave(self) -> bool:
        """Close early: keep the files if they hold work, and return whether they do."""
        self._file.close()
        if self._end:
            self._progress.close()
            return True
        self.partial.unlink(missing_ok=True)
        self._end_progress()
        return False

    def _end_progress(self) -> None:
        if os.name == "nt":  # Windows removes no open file
            self._progress.close()
        self.progress.unlink(
            missing_ok=True
        )  # while it is locked, so that another process opens a new one
        self._progress.close()


class _Block(NamedTuple):
    """A step in the partial file: where it ends, its documents and chunks, and the last document if it is in parts."""

    end: int
    ids: frozenset[str]
    chunks: int
    unfinished: str


def _whole_blocks(path: Path, steps: Sequence[Any]) -> Iterator[_Block]:
    """The steps whose bytes are in the file as they were written, up to the first that is not."""
    end = 0
    with path.open("rb") as file:
        for step in steps:
            if not (
                isinstance(step, list)
                and [type(value) for value in step] == [int, int]
                and step[0] > end
            ):
                return
            data = file.read(step[0] - end)
            if len(data) < step[0] - end or zlib.crc32(data) != step[1]:
                return
            end = step[0]
            rows = [json.loads(line) for line in data.splitlines()]
            last = rows[-1]["document_id"] if "part" in rows[-1] else ""
            yield _Block(end, frozenset(row["document_id"] for row in rows), len(rows), last)


def beside(path: Path) -> list[Path]:
    """The files written beside an output: the partial file, its progress, the errors.

    >>> [file.name for file in beside(Path("out.jsonl"))]
    ['out.jsonl.partial', 'out.jsonl.progress', 'out.jsonl.errors.jsonl']
    """
    return [
        path.with_name(f"{path.name}.{ending}")
        for ending in ("partial", "progress", "errors.jsonl")
    ]


def _cut_off(file: FileIO, size: int) -> None:
    file.truncate(size)
    file.seek(size)


def _line(value: Any) -> bytes:
    return json.dumps(value).encode("ascii") + b"\n"


def _parsed(line: bytes) -> Any:
    try:
        return json.loads(line) if line.endswith(b"\n") else None
    except (ValueError, RecursionError):
        return None
