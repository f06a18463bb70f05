"""A LlamaIndex node as a `Piece`: what names its source, and where it stands in it."""

from __future__ import annotations

from typing import Any

from llama_index.core.schema import BaseNode, MetadataMode, NodeWithScore

from chunkadapters._merging import Hit
from chunkadapters._retrieval import Piece, names, stated_spans
from chunkadapters._told import DERIVED, SPANS
from chunkcore.errors import DataError

__all__ = ["hit_of", "piece_of"]


def piece_of(found: Any) -> Piece:
    """What a node, with a score or without, says of itself. Raises `DataError` where it is none."""
    node = found.node if isinstance(found, NodeWithScore) else found
    if not isinstance(node, BaseNode):
        raise DataError(f"expected nodes with scores, got a {type(node).__name__} among the answers")
    text = node.get_content(metadata_mode=MetadataMode.NONE)
    known = node.metadata
    return Piece(
        text=text,
        score=float(found.score or 0.0) if isinstance(found, NodeWithScore) else 0.0,
        document_ids=names(
            node.ref_doc_id, known.get("source_id"), known.get("file_path"), known.get("file_name"), known.get("source")
        ),
        derived=known.get(DERIVED) is True,
        spans=stated_spans(
            known.get(SPANS), getattr(node, "start_char_idx", None), getattr(node, "end_char_idx", None), text
        ),
    )


def hit_of(node: BaseNode) -> Hit:
    """A node with the document that its place is in."""
    piece = piece_of(node)
    document = node.ref_doc_id or node.metadata.get("source_id")
    return Hit(document if isinstance(document, str) else "", piece.spans, piece.text, piece.derived)
