"""A Haystack document as a `Piece`: what names its source, and where it stands in it."""

from __future__ import annotations

from typing import Any

from haystack import Document

from chunkadapters._merging import Hit
from chunkadapters._retrieval import Piece, names, stated_spans
from chunkadapters._told import DERIVED
from chunkcore.errors import DataError

__all__ = ["hit_of", "piece_of"]

# Where Haystack's converters and fetchers, and users, write down what a document is called.
_NAMING_KEYS = ("file_path", "file_name", "name", "source", "path", "url", "title", "id")


def piece_of(document: Any) -> Piece:
    """What a document says of itself. Raises `DataError` where it is none."""
    if not isinstance(document, Document):
        raise DataError(f"expected Haystack documents, got a {type(document).__name__} among the answers")
    told, text = document.meta, document.content or ""
    rooted = isinstance(told.get("root_source_id"), str)
    prefix, several = ("root_idx_", "root_spans") if rooted else ("split_idx_", "spans")
    return Piece(
        text=text,
        score=float(document.score) if document.score is not None else 0.0,
        document_ids=names(
            told.get("root_source_id"), told.get("source_id"), document.id, *(told.get(key) for key in _NAMING_KEYS)
        ),
        derived=told.get(DERIVED) is True,
        spans=stated_spans(told.get(several), told.get(f"{prefix}start"), told.get(f"{prefix}end"), text),
    )


def hit_of(document: Document) -> Hit:
    """A document with the one that its place is in: the root of a chain of splitters, or its source."""
    piece, meta = piece_of(document), document.meta
    source = meta.get("root_source_id") or meta.get("source_id")
    return Hit(source if isinstance(source, str) else "", piece.spans, piece.text, piece.derived)
