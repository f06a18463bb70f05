"""A run's pool as a file of chunks, one JSON object a line: what ``chunkcore chunk`` writes is one."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from chunkcore.document import Document, Span
from chunkcore.errors import DataError
from chunkcore.evaluation.benchmark import Benchmark
from chunkcore.evaluation.digests import slices_digest
from chunkcore.evaluation.run import Retrieved
from chunkcore.evaluation.textfiles import json_lines

__all__ = ["json_line", "plain_spans", "read_pool", "read_spans", "write_pool"]


def read_pool(path: Path | str, benchmark: Benchmark) -> dict[str, Retrieved]:
    """The chunks of a file by their ids, in its order.

    A line has "id", "document_id" and "spans", pairs of offsets in code points; "text" is checked against the
    documents, or its passage's "digest" where "derived" is true; what else it has is not read. The file is read line
    by line.

    Raises:
        DataError: a line is malformed, names a document that the benchmark lacks or a place outside of it, or has a
            text that does not stand there; or two chunks share an id; with file and line. Or there are no chunks.
    """
    place = Path(path)
    documents = {document.id: document for document in benchmark.documents}
    found: dict[str, Retrieved] = {}
    for number, row in json_lines(place):
        where = f"{place}, line {number}"
        name = row.get("id")
        if not isinstance(name, str) or not name:
            raise DataError(f"{where}: expected a chunk with an id, as chunkcore chunk writes it, got {_keys(row)}")
        if name in found:
            raise DataError(f"{where}: a second chunk has the id {name!r}: cut the documents once, into one file")
        document = documents.get(row.get("document_id", ""))
        if document is None:
            raise DataError(
                f"{where}: the chunk is of the document {row.get('document_id')!r}, which the benchmark does not have: "
                "give the documents that were cut, under the same ids"
            )
        spans = read_spans(row.get("spans"), document, where)
        text = row.get("text", "")
        if not isinstance(text, str):
            raise DataError(f"{where}: a chunk's text is a string, got {type(text).__name__}")
        # Of a text that a model wrote, the digest of its passage is the witness.
        derived = row.get("derived") is True
        known = row.get("digest") if derived else None
        changed = known is not None and known != slices_digest(document.text, spans)
        if changed or (text and not derived and not _stands(text, spans, document)):
            raise DataError(
                f"{where}: the chunk's text does not stand at its spans in {document.id!r}: the chunks were cut from "
                "another version of it; cut this one"
            )
        found[name] = Retrieved(document.id, spans, 0.0, text, id=name)
    if not found:
        raise DataError(f"{place} holds no chunks: expected a line a chunk, as chunkcore chunk writes it")
    return found


def read_spans(value: Any, document: Document, where: str) -> tuple[Span, ...]:
    """Spans of the document from their pairs of offsets.

    Raises:
        DataError: they are no such pairs, or outside of the document; `where` is told.
    """
    try:
        spans = tuple(Span(*_pair(each)) for each in value)
    except (TypeError, ValueError) as error:
        raise DataError(f"{where}: spans are pairs of offsets such as [[0, 40]], got {value!r:.80}") from error
    if not spans:
        raise DataError(f"{where}: there is no span: expected pairs of offsets such as [[0, 40]]")
    last = max(span.end for span in spans)
    if last > len(document.text):
        raise DataError(
            f"{where}: a span ends at {last}, its document {document.id!r} at {len(document.text)}: spans are code "
            "points of the benchmark's own text"
        )
    return spans


def _pair(value: Any) -> tuple[int, int]:
    start, end = value
    if type(start) is not int or type(end) is not int:
        raise TypeError(value)
    return start, end


def _stands(text: str, spans: Sequence[Span], document: Document) -> bool:
    """Whether the spans' slices stand in the text, one after the other."""
    place = 0
    for span in spans:
        part = span.slice(document.text)
        place = text.find(part, place)
        if place < 0:
            return False
        place += len(part)
    return len(spans) > 1 or place == len(text)


def _keys(row: Mapping[str, Any]) -> str:
    return f"the keys {', '.join(map(repr, row))}"[:120] if row else "an empty object"


def write_pool(pool: Sequence[Retrieved], path: Path | str, benchmark: Benchmark) -> Path:
    """Write chunks of the benchmark's documents, so that `read_pool` reads them; whole, or not at all.

    Raises:
        DataError: a chunk has no id or no place.
        OSError: the file cannot be written.
    """
    from chunkcore.report.files import write_parts

    documents = {document.id: document for document in benchmark.documents}
    return write_parts(Path(path), _lines(pool, documents))


def _lines(pool: Sequence[Retrieved], documents: Mapping[str, Document]) -> Iterator[bytes]:
    for number, piece in enumerate(pool):
        if not piece.id or not piece.spans or piece.document_id not in documents:
            raise DataError(
                f"piece {number} of the pool has no {'place in the documents' if piece.id else 'id'}: give every "
                "`Retrieved` an id, a document of the benchmark and spans"
            )
        told: dict[str, Any] = {
            "document_id": piece.document_id,
            "id": piece.id,
            "spans": plain_spans(piece),
            "text": piece.text,
        }
        if not _stands(piece.text, piece.spans, documents[piece.document_id]):
            told |= {"derived": True, "digest": slices_digest(documents[piece.document_id].text, piece.spans)}
        yield json_line(told)


def plain_spans(piece: Retrieved) -> list[list[int]]:
    """The piece's spans as pairs."""
    return [[span.start, span.end] for span in piece.spans]


def json_line(data: Mapping[str, Any]) -> bytes:
    """An object as a line of UTF-8."""
    text = json.dumps(data, ensure_ascii=False)
    try:
        return f"{text}\n".encode()
    except UnicodeEncodeError:  # an unpaired surrogate, which JSON's escapes can say
        return f"{json.dumps(data)}\n".encode("ascii")
