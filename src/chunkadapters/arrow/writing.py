"""From chunks to record batches that are no larger than Arrow's strings can be."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa

from chunkadapters._ids import unused_id
from chunkadapters.arrow.metadata import as_json
from chunkadapters.arrow.vectors import Embedding
from chunkcore.document import Chunk, Document, Span
from chunkcore.errors import ModelError

__all__ = ["Row", "batched", "chunk_rows", "error_row"]

Row = dict[str, Any]

_SURROGATE = re.compile("[\ud800-\udfff]")

# What is written at once. A string column holds 2 GiB, which no such batch comes near.
_ROWS = 8192
_CHARACTERS = 32_000_000
_LONG = ("document_id", "text", "context", "metadata")


def chunk_rows(document: Document, chunks: list[Chunk], embedding: Embedding | None) -> Iterator[Row]:
    """A document's chunks as rows: those are made one by one, and whatever may fail has been done before the first.

    Raises:
        ModelError: what a model wrote has an unpaired surrogate, which Arrow's strings cannot hold.
    """
    for chunk in chunks:
        if found := _SURROGATE.search(chunk.text) or _SURROGATE.search(chunk.context):
            raise ModelError(
                f"a model wrote an unpaired surrogate, which Arrow's strings cannot hold: {found.group()!r}"
            )
    given = document.metadata
    shared = as_json(given)
    told = [as_json(_beside(given, chunk.metadata)) if chunk.metadata else shared for chunk in chunks]
    return _rows(chunks, told, embedding)


def _rows(chunks: list[Chunk], metadata: list[str], embedding: Embedding | None) -> Iterator[Row]:
    taken: set[str] = set()
    for place, chunk in enumerate(chunks):
        row: Row = {
            "document_id": chunk.document_id,
            "chunk_id": unused_id(chunk.id, taken),
            "index": chunk.index,
            "spans": _pairs(chunk.spans),
            "text": chunk.text,
            "token_count": chunk.token_count,
            "context": chunk.context,
            "metadata": metadata[place],
            "derived": chunk.derived,
            "segments": [_pairs(segment) for segment in chunk.segments],
            "content_hash": chunk.content_hash,
        }
        if embedding is not None:
            row |= {"vector": embedding.vectors[place], "truncated": embedding.truncated[place]}
        yield row


def error_row(document_id: str | None, problem: str) -> Row:
    """The one row of a document that has no chunks."""
    return {"document_id": document_id, "error": problem}


def batched(answers: Iterable[Iterable[Row]], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Every document's rows, in order, in batches of a bounded size."""
    waiting: list[Row] = []
    characters = 0
    for rows in answers:
        for row in rows:
            waiting.append(row)
            characters += sum(len(row.get(column) or "") for column in _LONG)
            if len(waiting) == _ROWS or characters >= _CHARACTERS:
                yield pa.RecordBatch.from_pylist(waiting, schema=schema)
                waiting, characters = [], 0
    if waiting:
        yield pa.RecordBatch.from_pylist(waiting, schema=schema)


def _beside(given: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """What the strategy tells beside what the document was given, of which nothing is overwritten.

    >>> _beside({"title": "Tea"}, {"title": "Green", "headings": ["Tea"]})
    {'title': 'Tea', 'chunk_title': 'Green', 'headings': ['Tea']}
    """
    found = dict(given)
    for key, value in own.items():
        name = key
        while name in found:
            name = f"chunk_{name}"
        found[name] = value
    return found


def _pairs(spans: Iterable[Span]) -> list[tuple[int, int]]:
    return [(span.start, span.end) for span in spans]
