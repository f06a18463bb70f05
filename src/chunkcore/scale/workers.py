"""Pieces to chunks, in this process or in several, each with its own models; the results in order."""

from __future__ import annotations

import json
import os
import pickle
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from io import BytesIO
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple, TypeVar

from chunkcore.chunkers import Chunker, get_chunker
from chunkcore.concurrency import ordered
from chunkcore.errors import (
    ChunkcoreError,
    DataError,
    NoAnswerError,
    SizeError,
)
from chunkcore.files import decoded, json_object, open_file, unreadable
from chunkcore.processes import Worker, answers, import_from, place_of, requests, write_block
from chunkcore.reading import read_file
from chunkcore.reading.folders import document_of
from chunkcore.reading.visible import Html, html_setting, in_source, source_of
from chunkcore.scale.sources import Piece, file_stamp, parts
from chunkcore.spans import pairs_of, shifted
from chunkcore.text import Chunk, Document

T = TypeVar("T")
_encode = json.JSONEncoder(ensure_ascii=False).encode  # `json.dumps` makes an encoder a call
# UTF-8 cannot say a surrogate, and the others steer terminals; JSON's escapes say them all.
_ESCAPED = re.compile("[\x7f-\x9f\ud800-\udfff]")
# What is wrong with a document, and not with the options, a model or the machine.
_OF_A_DOCUMENT = (DataError, SizeError, NoAnswerError)


class Cut(NamedTuple):
    """What came of a piece: the document's id ("": it was none), its chunks, or the error; notes on reading the file.

    `lines` are each chunk in two halves, between which its index belongs.
    """

    id: str = ""
    lines: tuple[tuple[bytes, bytes], ...] = ()
    error: ChunkcoreError | None = None
    notes: tuple[str, ...] = ()

    def numbered(self, first: int) -> bytes:
        """The lines, the first of them with this index."""
        return b"".join(
            [
                b"%s%d%s" % (head, number, tail)
                for number, (head, tail) in enumerate(self.lines, first)
            ]
        )


class _Part(NamedTuple):
    """A document, or a part of one: how many code points are before it, its number, and notes on its file."""

    document: Document
    offset: int = 0
    number: int | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Cutter:
    """A chunker that cuts pieces, in `workers` threads; a document on a line over `part_size` bytes in parts."""

    chunker: Chunker
    part_size: int
    workers: int = 1
    html: Html = field(default_factory=html_setting)

    def __call__(self, pieces: Sequence[Piece]) -> list[Cut]:
        """What comes of each piece. An error of one document is its `Cut.error`; any other is raised."""
        documents = [_or_error(_parts, piece, self.part_size, self.html) for piece in pieces]
        chunks = iter(
            self._together(
                [part for parts in documents if isinstance(parts, list) for part in parts]
            )
        )
        return [
            Cut(piece.id, error=parts)
            if isinstance(parts, ChunkcoreError)
            else self._cut(parts, [next(chunks) for _ in parts])
            for piece, parts in zip(pieces, documents, strict=True)
        ]

    def _together(self, several: list[_Part]) -> list[list[Chunk] | ChunkcoreError]:
        """The chunks of each: cut together where the chunker gains by that; one by one where one is bad."""
        documents = [part.document for part in several]
        if self.chunker.tokens_only and len(documents) > 1:
            try:
                return list(
                    map(list, self.chunker.chunks_per_document(documents, workers=self.workers))
                )
            except _OF_A_DOCUMENT:
                pass
        return [_or_error(self.chunker.chunk, document) for document in documents]

    def _cut(
        self, several: Sequence[_Part], results: Sequence[list[Chunk] | ChunkcoreError]
    ) -> Cut:
        if not several:
            return Cut()
        name = several[0].document.id
        lines: list[tuple[bytes, bytes]] = []
        for part, chunks in zip(several, results, strict=True):
            if isinstance(chunks, ChunkcoreError):
                return Cut(name, error=chunks)
            lines.extend(line_parts(chunk, part) for chunk in chunks)
        return Cut(name, tuple(lines), notes=several[0].notes)


def _or_error(call: Callable[..., Iterable[T]], *arguments: Any) -> list[T] | ChunkcoreError:
    """What a call gives, or the error that is a document's fault."""
    try:
        return list(call(*arguments))
    except _OF_A_DOCUMENT as error:
        return error


def piece_documents(piece: Piece, part_size: int) -> Iterator[Document]:
    """The document of a piece; of a large document on a line its parts, each as a document."""
    return (part.document for part in _parts(piece, part_size))


def _parts(piece: Piece, part_size: int, html: Html | None = None) -> Iterator[_Part]:
    if piece.error is not None:
        raise piece.error
    if piece.kind == "text":
        yield _Part(Document(piece.id, _text(piece)), piece.offset, piece.part)
        return
    if piece.kind == "file":
        inside = Path(piece.inside) if piece.inside else None
        document, notes = read_file(piece.path, piece.id, inside=inside, html=html)
        try:
            stamp = file_stamp(Path(piece.path))
        except OSError as error:
            raise unreadable(Path(piece.path), error) from error
        if stamp != piece.stamp:
            raise DataError(_CHANGED.format(piece.path))
        yield from (part._replace(notes=notes) for part in _parted(document, part_size))
        return
    text = decoded(
        piece.data or b"",
        Path(piece.path),
        before=piece.begin,
        line=int(piece.place.rpartition(" ")[2]),
    )
    text = text if piece.begin else text.removeprefix("\ufeff")
    if text.strip():
        yield from _parted(
            document_of(json_object(text, f"{piece.place}: "), piece.place), part_size
        )


def _parted(document: Document, part_size: int) -> Iterator[_Part]:
    is_whole = len(document.text) * 4 <= part_size or source_of(document) is not None
    data = b"" if is_whole else document.text.encode("utf-8", "surrogatepass")
    if len(data) <= part_size:
        yield _Part(document)
        return
    offset = 0
    for number, part in enumerate(parts(BytesIO(data), part_size)):
        text = part.decode("utf-8", "surrogatepass")
        yield _Part(document.part(offset, offset + len(text)), offset, number)
        offset += len(text)


def line_parts(chunk: Chunk, part: _Part) -> tuple[bytes, bytes]:
    """A chunk of a document's part as a line of JSON, in two halves: before its index, and after it.

    Its spans are those of the whole document's file.
    """
    if part.offset:
        segments = tuple([shifted(spans, part.offset) for spans in chunk.segments])
        chunk = replace(chunk, spans=shifted(chunk.spans, part.offset), segments=segments)
    head = {"document_id": chunk.document_id, "id": chunk.id}
    in_file = [in_source(part.document, spans) for spans in (chunk.spans, *chunk.segments)]
    spans, *segments_in_file = map(pairs_of, in_file)
    tail = {
        "spans": spans,
        "text": chunk.text,
        "token_count": chunk.token_count,
        **({"context": chunk.context} if chunk.context else {}),
        **({"segments": segments_in_file} if chunk.segments else {}),
        **({"derived": True} if chunk.derived else {}),
        **({} if part.number is None else {"part": part.number}),
        "metadata": dict(chunk.metadata),
    }
    return f'{_json(head)[:-1]}, "index": '.encode(), f", {_json(tail)[1:]}\n".encode()


def _json(data: dict[str, Any]) -> str:
    text = _encode(data)
    if text.isascii() and "\x7f" not in text:
        return text
    return _ESCAPED.sub(lambda sign: f"\\u{ord(sign[0]):04x}", text)


def _text(piece: Piece) -> str:
    path = Path(piece.path or piece.place)
    if piece.data is not None:
        return decoded(piece.data, path, before=piece.begin)
    try:
        with open_file(path, inside=Path(piece.inside) if piece.inside else None) as file:
            state = os.fstat(file.fileno())
            file.seek(piece.begin)
            data = file.read(piece.end - piece.begin)
    except OSError as error:
        raise unreadable(path, error) from error
    if (state.st_size, state.st_mtime_ns) != piece.stamp or len(data) != piece.end - piece.begin:
        raise DataError(_CHANGED.format(path))
    return decoded(data, path, before=piece.begin)


_CHANGED = "{} has changed while it was read: let nobody write to it, and cut it again"


_AHEAD = 2  # batches under way for each process: one that it cuts, and the next
_GONE = (
    "a worker process ended before its work did: it was killed, or ran out of memory; try fewer --processes or a "
    "smaller --part-size"
)


def cut_batches(
    cutter: Cutter, batches: Iterator[Sequence[Piece]], processes: int
) -> Iterator[list[Cut]]:
    """The results of each batch, in order.

    With one process, chunkers that wait for models run in the cutter's threads, a batch each. With several, each
    builds the chunker from its name and options; at most two batches a process are under way. Raises:
        OptionError: the chunker holds an object that cannot be named to another process.
        ChunkcoreError: a process was killed.
    """
    if processes > 1:
        yield from _in_processes(cutter, batches, processes)
    elif cutter.workers > 1 and not cutter.chunker.tokens_only:
        with ThreadPoolExecutor(cutter.workers) as threads:
            yield from ordered(threads, cutter, batches, 4 * cutter.workers)
    else:
        yield from map(cutter, batches)


def _in_processes(
    cutter: Cutter, batches: Iterator[Sequence[Piece]], processes: int
) -> Iterator[list[Cut]]:
    """Not by `multiprocessing`: it starts processes that import from the current folder (see `processes`)."""
    settings = pickle.dumps(_Settings.of(cutter))
    workers = [Worker("chunkcore.scale.workers:serve") for _ in range(processes)]
    idle: SimpleQueue[Worker] = SimpleQueue()

    def cut(batch: Sequence[Piece]) -> list[Cut]:
        worker = idle.get()
        worker.send(pickle.dumps(batch))
        answer = worker.receive()
        idle.put(worker)
        if answer is None:
            raise ChunkcoreError(_GONE)
        result: list[Cut] | Exception = pickle.loads(answer)  # noqa: S301  # of our own process
        if isinstance(result, Exception):
            raise result
        return result

    with ThreadPoolExecutor(processes) as threads:
        try:
            for worker in workers:
                worker.send(settings)
                idle.put(worker)
            yield from ordered(threads, cut, batches, _AHEAD * processes)
        finally:
            for worker in workers:
                worker.stop()


@dataclass(frozen=True)
class _Settings:
    """What another process needs to cut as a cutter does."""

    folder: str  # where relative paths begin
    module: str  # of the chunker
    place: str  # of the module, see `place_of`
    chunker: dict[str, Any]
    part_size: int
    workers: int
    html: Html

    @classmethod
    def of(cls, cutter: Cutter) -> _Settings:
        module = type(cutter.chunker).__module__
        configuration = json.loads(json.dumps(cutter.chunker.to_dict()))
        return cls(
            os.getcwd(),  # noqa: PTH109
            module,
            place_of(module),
            configuration,
            cutter.part_size,
            cutter.workers,
            cutter.html,
        )

    def cutter(self) -> Cutter:
        os.chdir(self.folder)
        import_from(self.module, self.place)
        return Cutter(get_chunker(self.chunker), self.part_size, self.workers, self.html)


# ---- In another process


def serve() -> None:
    """Cut the pieces that come; the first block has the settings."""
    output = answers()
    blocks = requests()
    settings = pickle.loads(next(blocks))  # noqa: S301  # of the process that started this one
    cutter: Cutter | None = None
    for block in blocks:
        result: list[Cut] | Exception
        try:
            cutter = cutter or settings.cutter()
            result = list(map(_portable_cut, cutter(pickle.loads(block))))  # noqa: S301
        except Exception as error:  # noqa: BLE001  # raised again in the other process
            result = _portable(error)
        write_block(output, pickle.dumps(result))


def _portable_cut(cut: Cut) -> Cut:
    return cut if cut.error is None else cut._replace(error=_portable(cut.error))


def _portable(error: Any) -> Any:
    """The error; or, if another process cannot build it, one of ours with the same message."""
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301
    except Exception:  # noqa: BLE001
        return ChunkcoreError(f"{type(error).__name__}: {error}")
    return error
