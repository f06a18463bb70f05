"""What a chunk tells besides its text, as metadata that any vector store can keep: strings, numbers, booleans."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from chunkadapters._origin import Origin, encode_segments
from chunkcore.document import Chunk

__all__ = ["BOOKKEEPING", "CONTEXT", "DERIVED", "SEGMENTS", "SPANS", "inherited", "told"]

CONTEXT = "context"
DERIVED = "derived"
SEGMENTS = "segments"
SPANS = "spans"

# What no model should read.
BOOKKEEPING = (SPANS, SEGMENTS, DERIVED, "fallback", "fallback_reason")


def told(chunk: Chunk, given: Mapping[str, Any], origin: Origin) -> dict[str, Any]:
    """The chunk's own metadata beside those that its document was `given`, of which none is overwritten.

    - what the strategy tells, flat: a list of strings becomes ``"a > b"``, anything else that is nested its JSON;
    - ``context``: what was written about the chunk, where something was;
    - under ``chunk_`` and its name what the document has a value of that name for;
    - ``derived``: true where a model wrote the text; the chunk's place is then the passage that it was written from;
    - ``segments``: ``"0-12;20-31,40-44"``, the parts that are searched on their own, where there are any.

    >>> from chunkcore.document import Span
    >>> chunk = Chunk("d", 0, (Span(0, 3),), "Tea", 1, context="Of drinks.", metadata={"headings": ["A", "B"]})
    >>> told(chunk, {"context": "mine"}, Origin.at(0))
    {'headings': 'A > B', 'chunk_context': 'Of drinks.'}
    """
    found: dict[str, Any] = {}
    if chunk.metadata or chunk.context:
        for key, value in (*chunk.metadata.items(), (CONTEXT, chunk.context)):
            if (flat := _flat(value)) not in (None, ""):
                found[f"chunk_{key}" if key in given else key] = flat
    if chunk.derived or origin.passage:
        found[DERIVED] = True
    if chunk.segments:
        placed = [origin.place(segment) for segment in chunk.segments]
        if all(placed):
            found[SEGMENTS] = encode_segments(placed)
    return found


def inherited(metadata: Mapping[Any, Any], *, of_a_chunk: bool) -> dict[Any, Any]:
    """What a document's chunks take over: all, but of a chunk not where its own spans and segments are."""
    if of_a_chunk:
        return {key: value for key, value in metadata.items() if key not in (SPANS, SEGMENTS)}
    return dict(metadata)


def _flat(value: Any) -> Any:
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, list | tuple) and all(isinstance(each, str) for each in value):
        return " > ".join(value)
    return json.dumps(value, ensure_ascii=False, default=str)
