"""Processes that cut, each with its own models; their results in order, a bounded number under way."""

from __future__ import annotations

import atexit
import json
import multiprocessing
import os
import re
import signal
import threading
import traceback
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields, replace
from io import BytesIO
from multiprocessing.connection import Connection
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple, Protocol, TypeVar

from chunkcore.chunkers import Chunker
from chunkcore.concurrency import ordered
from chunkcore.document import Chunk, Document, Span
from chunkcore.errors import ChunkcoreError, DataError, ModelError, NoAnswerError, OptionError, SizeError
from chunkcore.evaluation.benchmarks.documents import document_of
from chunkcore.files import decoded, json_object, open_file, unreadable
from chunkcore.reading import read_file
from chunkcore.scale.sources import Piece, file_stamp, parts

_encode = json.JSONEncoder(ensure_ascii=False).encode  # `json.dumps` makes an encoder a call
# UTF-8 cannot say a surrogate, and the others steer terminals; JSON's escapes say them all.
_ESCAPED = re.compile("[\x7f-\x9f\ud800-\udfff]")
# What is wrong with a document, and not with the options, a model or the machine.
_OF_A_DOCUMENT = (DataError, SizeError, NoAnswerError)


class Cut(NamedTuple):
    """What came of a piece: the document's id ("": it was none), its chunks, or the error; notes on reading the file.

    `lines` are each chunk in two halves, between which its index belongs; or all numbered lines as one first half.
    """

    id: str = ""
    lines: tuple[tuple[bytes, bytes], ...] = ()
    chunks: int = 0
    error: ChunkcoreError | None = None
    notes: tuple[str, ...] = ()

    def numbered(self, first: int) -> bytes:
        """The lines, the first of them with this index."""
        if self.lines and not self.lines[0][1]:
            return self.lines[0][0]
        return b"".join(
            [b"%s%d%s" % (head, number, tail) for number, (head, tail) in enumerate(self.lines, start=first)]
        )


class _Part(NamedTuple):
    """A document, or a part of one: how many code points are before it, its number, and notes on its file."""

    document: Document
    offset: int = 0
    number: int | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Cutter:
    """A strategy that cuts pieces, in `workers` threads; a document on a line over `part_size` bytes in parts."""

    chunker: Chunker
    part_size: int
    workers: int = 1

    def __call__(self, pieces: Sequence[Piece]) -> list[Cut]:
        """What comes of each piece. An error of one document is its `Cut.error`; any other is raised."""
        found: list[list[_Part] | ChunkcoreError] = [self._read(piece) for piece in pieces]
        several = [each for part in found if isinstance(part, list) for each in part]
        chunks = iter(self._together(several))
        return [
            Cut(piece.id, error=parts)
            if isinstance(parts, ChunkcoreError)
            else self._cut(parts, [next(chunks) for _ in parts])
            for piece, parts in zip(pieces, found, strict=True)
        ]

    def _read(self, piece: Piece) -> list[_Part] | ChunkcoreError:
        try:
            return list(_parts(piece, self.part_size))
        except _OF_A_DOCUMENT as error:
            return error

    def _together(self, several: list[_Part]) -> list[list[Chunk] | ChunkcoreError]:
        """The chunks of each: cut together where the strategy gains by that; one by one where one is bad."""
        documents = [each.document for each in several]
        if self.chunker.tokens_only and len(documents) > 1:
            try:
                return list(self.chunker.chunk_each(documents, workers=self.workers))
            except _OF_A_DOCUMENT:
                pass
        return [self._alone(document) for document in documents]

    def _alone(self, document: Document) -> list[Chunk] | ChunkcoreError:
        try:
            return self.chunker.chunk(document)
        except _OF_A_DOCUMENT as error:
            return error

    def _cut(self, several: Sequence[_Part], results: Sequence[list[Chunk] | ChunkcoreError]) -> Cut:
        if not several:
            return Cut()
        name = several[0].document.id
        lines: list[tuple[bytes, bytes]] = []
        for part, chunks in zip(several, results, strict=True):
            if isinstance(chunks, ChunkcoreError):
                return Cut(name, error=chunks)
            lines.extend(line_parts(chunk, part.offset, part.number) for chunk in chunks)
        cut = Cut(name, tuple(lines), len(lines), notes=several[0].notes)
        if several[0].number and len(several) == 1:
            return cut  # what came before it is not known here
        return cut._replace(lines=((cut.numbered(0), b""),) if lines else ())


def piece_documents(piece: Piece, part_size: int) -> Iterator[Document]:
    """The document of a piece; of a large document on a line its parts, each as a document."""
    return (part.document for part in _parts(piece, part_size))


def _parts(piece: Piece, part_size: int) -> Iterator[_Part]:
    if piece.error is not None:
        raise piece.error
    if piece.kind == "text":
        whole = piece.part is None and piece.data is None
        try:
            text = _text(piece)
            whole = whole and (text.startswith("%PDF-") or "\x00" in text[:100])  # which may be UTF-16
        except ChangedError:
            raise
        except DataError:
            if not whole:
                raise
        if not whole:
            yield _Part(Document(piece.id, text), piece.offset, piece.part)
            return
    if piece.kind != "line":
        document, notes = read_file(piece.path, piece.id, inside=Path(piece.inside) if piece.inside else None)
        try:
            stamp = file_stamp(Path(piece.path))
        except OSError as error:
            raise unreadable(Path(piece.path), error) from error
        if stamp != piece.stamp:
            raise ChangedError(_CHANGED.format(piece.path))
        yield from (part._replace(notes=notes) for part in _parted(document, part_size))
        return
    text = decoded(piece.data or b"", Path(piece.path), before=piece.begin, line=int(piece.place.rpartition(" ")[2]))
    text = text if piece.begin else text.removeprefix("\ufeff")
    if text.strip():
        yield from _parted(document_of(json_object(text, f"{piece.place}: "), piece.place), part_size)


def _parted(document: Document, part_size: int) -> Iterator[_Part]:
    data = b"" if len(document.text) * 4 <= part_size else document.text.encode("utf-8", "surrogatepass")
    if len(data) <= part_size:
        yield _Part(document)
        return
    offset = 0
    for number, each in enumerate(parts(BytesIO(data), part_size)):
        text = each.decode("utf-8", "surrogatepass")
        yield _Part(document.part(offset, offset + len(text)), offset, number)
        offset += len(text)


def line_parts(chunk: Chunk, offset: int = 0, part: int | None = None) -> tuple[bytes, bytes]:
    """A chunk of a document's part as a line of JSON, in two halves: before its index, and after it.

    Spans are offsets into a part of the document (`part`: its index), which begins at code point `offset`.
    """
    if offset:
        chunk = _moved(chunk, offset)
    head = {"document_id": chunk.document_id, "id": chunk.id}
    tail = {
        "spans": _pairs(chunk.spans),
        "text": chunk.text,
        "token_count": chunk.token_count,
        **({"context": chunk.context} if chunk.context else {}),
        **({"segments": [_pairs(each) for each in chunk.segments]} if chunk.segments else {}),
        **({"derived": True} if chunk.derived else {}),
        **({} if part is None else {"part": part}),
        "metadata": dict(chunk.metadata),
    }
    return f'{_json(head)[:-1]}, "index": '.encode(), f", {_json(tail)[1:]}\n".encode()


def _json(data: dict[str, Any]) -> str:
    text = _encode(data)
    if text.isascii() and "\x7f" not in text:
        return text
    return _ESCAPED.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _pairs(spans: Iterable[Span]) -> list[list[int]]:
    return [[span.start, span.end] for span in spans]


def _moved(chunk: Chunk, by: int) -> Chunk:
    def moved(spans: Iterable[Span]) -> tuple[Span, ...]:
        return tuple([Span(span.start + by, span.end + by) for span in spans])

    return replace(chunk, spans=moved(chunk.spans), segments=tuple([moved(each) for each in chunk.segments]))


def _text(piece: Piece) -> str:
    path = Path(piece.path or piece.place)
    if piece.data is not None:
        return decoded(piece.data, path, before=piece.begin)
    try:
        with open_file(path, inside=Path(piece.inside) if piece.inside else None) as file:
            told = os.fstat(file.fileno())
            file.seek(piece.begin)
            data = file.read(piece.end - piece.begin)
    except OSError as error:
        raise unreadable(path, error) from error
    if (told.st_size, told.st_mtime_ns) != piece.stamp or len(data) != piece.end - piece.begin:
        raise ChangedError(_CHANGED.format(path))
    return decoded(data, path, before=piece.begin)


class ChangedError(DataError):
    """The file is not what it was when its pieces were made."""


_CHANGED = "{} has changed while it was read: let nobody write to it, and cut it again"


T = TypeVar("T")


class BatchWork(Protocol[T]):
    """What is done with a batch: a dataclass with a strategy, such as `Cutter`. Its results have an ``error``."""

    @property
    def chunker(self) -> Chunker: ...
    @property
    def workers(self) -> int: ...
    def __call__(self, pieces: Sequence[Piece], /) -> list[T]: ...


Batch = Sequence[Piece]

_AHEAD = 2  # batches under way for each process: one that it cuts, and the next
_OWN = (SizeError, NoAnswerError, ModelError, OptionError, DataError)
_GONE = (
    "a worker process ended before its work did: it was killed, or ran out of memory; try fewer --processes or a "
    "smaller --part-size"
)


def cut_batches(cutter: BatchWork[T], batches: Iterator[Batch], processes: int) -> Iterator[list[T]]:
    """What comes of each batch, in order.

    With one process, strategies that wait for models run in the cutter's threads, a batch each. With several, each
    builds the strategy from its name and options; at most two batches a process are under way. Raises `OptionError`:
    the strategy holds an object that cannot be named to another process.
    """
    if processes > 1:
        yield from _in_processes(cutter, batches, processes)
    elif cutter.workers > 1 and not cutter.chunker.tokens_only:
        with ThreadPoolExecutor(cutter.workers) as threads:
            yield from ordered(threads, cutter, batches, 4 * cutter.workers)
    else:
        yield from map(cutter, batches)


def _in_processes(cutter: BatchWork[T], batches: Iterator[Batch], processes: int) -> Iterator[list[T]]:
    """Each of some threads hands a batch to a process that has none, and waits for what comes of it.

    The processes of `concurrent.futures` and of `multiprocessing.Pool` share one pipe and its lock. One that is killed
    while it answers would keep that lock, and everybody would wait for ever. Here each process has its own pipe, which
    ends with it. An error of a batch is raised in the batch's place, as in one process.
    """
    idle: SimpleQueue[_Worker] = SimpleQueue()

    def cut(batch: Batch | Exception) -> list[T]:
        if isinstance(batch, Exception):
            raise batch
        worker = idle.get()
        try:
            return worker.cut(batch)
        finally:
            idle.put(worker)

    def given() -> Iterator[Batch | Exception]:
        try:
            yield from batches
        except Exception as error:  # noqa: BLE001  # raised after what came before it
            yield error

    with ThreadPoolExecutor(processes) as threads, _started(cutter, processes) as workers:
        for worker in workers:
            idle.put(worker)
        yield from ordered(threads, cut, given(), _AHEAD * processes)


@contextmanager
def _started(cutter: BatchWork[Any], processes: int) -> Iterator[list[_Worker]]:
    """Processes that cut; at the end of the block those end that are at work, too."""
    told = {each.name: getattr(cutter, each.name) for each in fields(cutter)}  # type: ignore[arg-type]
    told["chunker"] = cutter.chunker.to_dict()
    workers: list[_Worker] = []

    def stop() -> None:
        for each in workers:
            each.stop()

    atexit.register(stop)  # of a generator that is not read to its end
    try:
        with _interrupts_ignored():
            workers.extend(_Worker(type(cutter), told) for _ in range(processes))
        yield workers
    finally:
        stop()
        atexit.unregister(stop)


@contextmanager
def _interrupts_ignored() -> Iterator[None]:
    """Processes that are started here ignore Ctrl-C from their first moment: their parent ends them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL if before is None else before)


class _Worker:
    def __init__(self, *settings: Any) -> None:
        # Spawned, not forked: models, their threads and open caches do not survive a fork.
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.busy = False
        # No daemon: daemons may have no processes, and some models' loaders start some.
        self.process = context.Process(target=_serve, args=(theirs, *settings), daemon=False)
        self.process.start()
        theirs.close()  # so that the pipe ends with the process

    def cut(self, batch: Batch) -> list[Any]:
        """What comes of a batch. Raises what the process raised, with its traceback, or that it died."""
        data = ForkingPickler.dumps(batch)
        self.busy = True
        try:
            self.pipe.send_bytes(data)
            answer = self.pipe.recv_bytes()
        except (EOFError, OSError):
            raise ChunkcoreError(_GONE) from None
        self.busy = False
        try:
            cuts, error, trace = ForkingPickler.loads(answer)
        except Exception as unread:
            raise ChunkcoreError(f"what a worker process answered cannot be read: {unread!r}") from unread
        if error is not None:
            raise error from ChunkcoreError(f"in a worker process:\n{trace}")
        return list(cuts)

    def stop(self) -> None:
        """Let the process end by itself; end it at once if it is at work, which may take long."""
        if self.busy:
            self.process.kill()
        with suppress(OSError):  # it may have died
            self.pipe.send_bytes(b"")
        self.process.join()


def _serve(pipe: Connection, kind: type[BatchWork[Any]], told: dict[str, Any]) -> None:
    """The work of a process: cut what comes until nothing does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_the_parent, daemon=True).start()
    cutter: BatchWork[Any] | None = None
    with suppress(EOFError, OSError):  # the parent is gone
        while data := pipe.recv_bytes():
            try:
                cutter = cutter or kind(**{**told, "chunker": Chunker.from_dict(told["chunker"])})
                found = cutter(ForkingPickler.loads(data))
                cuts = [cut if cut.error is None else cut._replace(error=_portable(cut.error)) for cut in found]
                answer = ForkingPickler.dumps((cuts, None, ""))
            except Exception as error:  # noqa: BLE001
                answer = ForkingPickler.dumps(([], _portable(error), traceback.format_exc()))
            pipe.send_bytes(answer)


def _end_with_the_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _portable(error: Exception) -> Any:
    """The error; or, if another process cannot build it, one of ours with the same message."""
    try:
        ForkingPickler.loads(ForkingPickler.dumps(error))
    except Exception:  # noqa: BLE001
        own = next((each for each in _OWN if isinstance(error, each)), ChunkcoreError)
        return own(str(error) if own is not ChunkcoreError else f"{type(error).__name__}: {error}")
    return error
