"""A LangChain document as a `Piece`: what names its source, and where it stands in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_core.documents import Document

from chunkadapters._merging import Hit
from chunkadapters._retrieval import Piece, names, stated_spans
from chunkadapters._told import DERIVED, SPANS
from chunkcore.errors import DataError

__all__ = ["hit_of", "part_of", "piece_of"]

# Loaders make a document of each of these, and offsets are into that.
_PARTS = ("page", "page_number", "row", "sheet", "seq_num")


def piece_of(document: Any) -> Piece:
    """What a document says of itself. Raises `DataError` where it is none."""
    if not isinstance(document, Document):
        raise DataError(f"expected LangChain documents, got a {type(document).__name__} among the answers")
    known = document.metadata
    score = known.get("score", known.get("relevance_score"))
    return Piece(
        text=document.page_content,
        score=float(score) if isinstance(score, int | float) else 0.0,
        document_ids=names(known.get("source_id"), document.id, known.get("source")),
        derived=known.get(DERIVED) is True,
        spans=stated_spans(known.get(SPANS), known.get("start_index"), known.get("end_index"), document.page_content),
    )


def hit_of(document: Document) -> Hit:
    """A document with the source, or the part of one, that its place is in. Raises `DataError` where it is none."""
    piece, known = piece_of(document), document.metadata
    source = known.get("source_id") or known.get("source")
    return Hit(part_of(str(source), known) if source else "", piece.spans, piece.text, piece.derived)


def part_of(source: str, metadata: Mapping[Any, Any]) -> str:
    """What tells a source's part, such as a page, from the others: places are in that."""
    return "#".join([source, *(f"{key}={metadata[key]}" for key in _PARTS if key in metadata)])
