"""`Stream`: files in, lines of chunks out, in order, for any number of processes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal, NamedTuple

from chunkcore.chunkers import Chunker
from chunkcore.document import Document
from chunkcore.errors import ChunkcoreError, DataError, OptionError
from chunkcore.evaluation.benchmarks.documents import FolderWalk, LeftOut, tell_written
from chunkcore.files import NoTextError
from chunkcore.registry import check_number
from chunkcore.scale.sources import STANDARD_INPUT, Piece, Sources
from chunkcore.scale.workers import Cut, Cutter, cut_batches, piece_documents

_BATCH_BYTES = 1_000_000
_BATCH_PIECES = 64
_SMALLEST = 64  # bytes of a part: the longest character, and room for a better place


@dataclass(frozen=True, kw_only=True)
class StreamOptions:
    """How inputs are streamed. Only `part_size` and `errors` change the output.

    Attributes:
        processes: at least 1.
        workers: threads per process; at least 1.
        part_size: bytes; larger documents are cut in parts; at least 64.
        errors: stop at the first document that cannot be read or chunked, or skip and report it.

    Raises:
        OptionError: an option is out of range.
    """

    processes: int = 1
    workers: int = 1
    part_size: int = 8_000_000
    errors: Literal["stop", "skip"] = "stop"

    def __post_init__(self) -> None:
        for name in ("processes", "workers"):
            check_number(name, getattr(self, name), 1, 1_000)
        check_number("part_size", self.part_size, _SMALLEST)
        if self.errors not in ("stop", "skip"):
            raise OptionError(f"errors is stop or skip, got {self.errors!r}")


@dataclass
class Tally:
    """A stream's progress: all that resuming needs.

    Attributes:
        pieces: pieces done, in the order of the sources.
        documents: documents chunked, each counted with its first part.
        parted: documents cut in parts.
        chunks: chunks written.
        read: bytes of input.
        skipped: documents or parts skipped for an error.
        found: documents by argument.
        left_out: files without text by argument.
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

    Args:
        paths: files, folders, and ``-`` for standard input.

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
        batch: list[Piece] = []
        size = 0
        for piece in self._pieces:
            length = piece.end - piece.begin
            if batch and (size + length > most_bytes or len(batch) >= most):
                yield batch
                batch, size = [], 0
            batch.append(piece)
            size += (
                most_bytes if piece.part is not None else length
            )  # parts are large enough, and one may be waited for
        if batch:
            yield batch

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
        left_out = cut.has_no_text and piece.listed
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
            assert isinstance(cut.error, DataError)
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
        """The error if an earlier document has the id of this piece's document."""
        if not piece.part:
            may_repeat = len(self.sources.paths) > 1 or piece.kind == "line"  # paths in one folder differ
            self._repeats = self._second(name, piece) if name and piece.error is None and may_repeat else None
        return self._repeats

    def _second(self, name: str, piece: Piece) -> DataError | None:
        """None if the id is new, else the error."""
        key = blake2b(name.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        first = self._seen.get(key)
        if first is None:
            self._seen[key] = piece.argument
            return None
        paths = self.sources.paths
        if first == piece.argument and piece.kind == "line":
            return DataError(f"{piece.place}: the id {name!r} was given before; make ids unique")
        return DataError(_two_of_one_id(name, paths[first], paths[piece.argument]))

    def _finish(self) -> None:
        """Report skipped files. Raises `DataError` if an input has no documents."""
        for argument, path in enumerate(self.sources.paths):
            key = str(argument)
            left_out = self._left_out.get(argument, LeftOut())
            if not self.tally.found.get(key) and not self.tally.skipped:
                raise DataError(_nothing_in(path, left_out, is_lines=self.sources.is_lines(argument)))
            tell_written(path, self.sources.written.get(argument, []))
            left_out.tell(path, self.tally.left_out.get(key, 0))


def stream_documents(paths: Sequence[Path], part_size: int) -> Iterator[Document]:
    """The inputs as documents; each part of a large document is one.

    Raises:
        DataError: an input cannot be read, or a named file holds no text.
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
    total = 0
    for path in paths:
        if path == STANDARD_INPUT or not (path.is_file() or path.is_dir()):
            return None
        lines = path / "documents.jsonl"
        if path.is_dir() and not lines.is_file():
            total += sum(_size(file) for _, file in FolderWalk(path, lambda *_: None))
        else:
            total += _size(lines if path.is_dir() else path)
    return total


def _size(path: Path) -> int:
    try:
        return os.stat(path).st_size  # noqa: PTH116
    except OSError:
        return 0


def _nothing_in(path: Path, left_out: LeftOut, *, is_lines: bool) -> str:
    if is_lines:
        return f'{path} holds no documents: expected lines like {{"id": ..., "text": ...}}'
    return f"{path} holds no documents: expected files with text in it, or a documents.jsonl{left_out}"


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
