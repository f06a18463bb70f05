"""What a worker does: pieces of work to lines of JSON, with no bad document in the way of the others."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

from chunkcore.chunkers import Chunker
from chunkcore.document import Chunk, Document, Span
from chunkcore.errors import ChunkcoreError, DataError, NoAnswerError, SizeError
from chunkcore.evaluation.loading.documents import document_of
from chunkcore.evaluation.textfiles import NoTextError, decoded, json_object, unreadable
from chunkcore.streaming.parts import parts
from chunkcore.streaming.sources import Piece

__all__ = ["Cut", "Cutter", "line_parts", "piece_documents"]

_encode = json.JSONEncoder(ensure_ascii=False).encode  # `json.dumps` makes an encoder a call
# UTF-8 cannot say a surrogate, and the others steer terminals; JSON's escapes say them all.
_ESCAPED = re.compile("[\x7f-\x9f\ud800-\udfff]")
# What is wrong with a document, and not with the options, a model or the machine.
_OF_A_DOCUMENT = (DataError, SizeError, NoAnswerError)


class Cut(NamedTuple):
    """What came of a piece.

    Attributes:
        id: the document's; "" where the piece was none.
        lines: its chunks, each in two halves, between which its index belongs; or, where they are numbered
            already, the whole as the one first half.
        chunks: how many they are.
        error: why there are none.
    """

    id: str = ""
    lines: tuple[tuple[bytes, bytes], ...] = ()
    chunks: int = 0
    error: ChunkcoreError | None = None

    @property
    def has_no_text(self) -> bool:
        """Whether it is of a file that is empty, or no text in any encoding."""
        return isinstance(self.error, NoTextError)

    def numbered(self, first: int) -> bytes:
        """The lines, the first of them with this index."""
        if self.lines and not self.lines[0][1]:
            return self.lines[0][0]
        return b"".join(
            [b"%s%d%s" % (head, number, tail) for number, (head, tail) in enumerate(self.lines, start=first)]
        )


class _Part(NamedTuple):
    """A document, or a part of one, with its place in it: None where it is the whole."""

    document: Document
    offset: int = 0
    number: int | None = None


@dataclass(frozen=True)
class Cutter:
    """A strategy at work on pieces.

    Attributes:
        chunker: the strategy.
        part_size: bytes of text, over which a document on a line is cut in parts.
        workers: threads that help it.
    """

    chunker: Chunker
    part_size: int
    workers: int = 1

    def __call__(self, pieces: Sequence[Piece]) -> list[Cut]:
        """What comes of each piece. A document that cannot be read or cut is an error in its place.

        Raises:
            ChunkcoreError: something is wrong with more than a document.
        """
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
        """The chunks of each, cut together where the strategy gains by that, and one by one where one is bad."""
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
        cut = Cut(name, tuple(lines), len(lines))
        if several[0].number and len(several) == 1:
            return cut  # what came before it is not known here
        return cut._replace(lines=((cut.numbered(0), b""),) if lines else ())


def piece_documents(piece: Piece, part_size: int) -> Iterator[Document]:
    """The document that a piece is; its parts, each as a document, where it is a line and large.

    Raises:
        ChunkcoreError: it cannot be read.
    """
    return (part.document for part in _parts(piece, part_size))


def _parts(piece: Piece, part_size: int) -> Iterator[_Part]:
    if piece.error is not None:
        raise piece.error
    if piece.kind == "text":
        yield _Part(Document(piece.id, _text(piece)), piece.offset, piece.part)
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
        yield _Part(replace(document, text=text), offset, number)
        offset += len(text)


def line_parts(chunk: Chunk, offset: int = 0, part: int | None = None) -> tuple[bytes, bytes]:
    """A chunk as a line of JSON, in two halves: what stands before its index, and what after.

    Args:
        chunk: its spans are offsets into a part of its document.
        offset: code points of the document before that part.
        part: the part's number; None where the document is cut whole.
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
        with path.open("rb") as file:
            told = os.fstat(file.fileno())
            file.seek(piece.begin)
            data = file.read(piece.end - piece.begin)
    except OSError as error:
        raise unreadable(path, error) from error
    if (told.st_size, told.st_mtime_ns) != piece.stamp or len(data) != piece.end - piece.begin:
        raise DataError(f"{path} has changed while it was read: let nobody write to it, and cut it again")
    return decoded(data, path, before=piece.begin)
