"""The short documents that a long one was stitched from, as its metadata tell of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from chunkcore.document import Document, Span
from chunkcore.errors import DataError

__all__ = ["Part", "parts_of"]


@dataclass(frozen=True, slots=True)
class Part:
    """One original document, and where its whole text stands in the stitched one."""

    document_id: str
    span: Span


def parts_of(document: Document) -> tuple[Part, ...]:
    r"""The originals of a stitched document, in their order; any other document is its own only part.

    They are read from ``metadata["parts"]``, a list of objects with ``id``, ``start`` and ``end``. A document without
    text has none.

    Raises:
        DataError: the list is no such list, or its spans overlap, are out of order or leave the text.

    >>> where = [{"id": "a", "start": 0, "end": 6}, {"id": "b", "start": 8, "end": 14}]
    >>> [part.document_id for part in parts_of(Document("ab", "A naps.\n\nB naps.", {"parts": where}))]
    ['a', 'b']
    >>> parts_of(Document("fox.txt", "A fox."))
    (Part(document_id='fox.txt', span=Span(start=0, end=6)),)
    """
    if not document.text:
        return ()
    listed = document.metadata.get("parts")
    if listed is None:
        return (Part(document.id, Span(0, len(document.text))),)
    if not isinstance(listed, list | tuple) or not listed:
        raise DataError(f"{_of(document)} a list of objects with id, start and end, got {type(listed).__name__}")
    found = tuple(_part(document, number, row) for number, row in enumerate(listed, start=1))
    end = 0
    for number, part in enumerate(found, start=1):
        if part.span.start < end or part.span.end > len(document.text):
            raise DataError(
                f"{_of(document)} in order, apart, and within its {len(document.text)} characters: "
                f"part {number} is {part.span.start} to {part.span.end}, the one before ends at {end}"
            )
        end = part.span.end
    return found


def _part(document: Document, number: int, row: Any) -> Part:
    if not isinstance(row, Mapping) or not isinstance(row.get("id"), str):
        raise DataError(f"{_of(document)} objects with id, start and end; part {number} is {str(row)[:60]}")
    try:
        return Part(row["id"], Span(row.get("start"), row.get("end")))  # type: ignore[arg-type]
    except DataError as error:
        raise DataError(f"{_of(document)} spans of it; part {number}: {error}") from error


def _of(document: Document) -> str:
    return f"the parts of document {document.id!r} are"
