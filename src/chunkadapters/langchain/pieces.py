"""A LangChain document as a `Piece`: what names its source, and where it stands in it."""

from __future__ import annotations

from typing import Any

from langchain_core.documents import Document

from chunkadapters._retrieval import Piece, names, stated_spans
from chunkadapters._told import DERIVED, SPANS
from chunkcore.errors import DataError

__all__ = ["piece_of"]


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
