"""Where a chunk stands, as metadata: in its parent, at the root of a chain of splitters, over its neighbours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from chunkadapters._origin import Origin, decode_spans, encode_spans
from chunkadapters._told import DERIVED
from chunkcore.document import Span
from chunkcore.spans import intersect

__all__ = ["origin_of", "place", "shared"]

Range = tuple[int, int]


def place(spans: Sequence[Span], prefix: str, several: str) -> dict[str, Any]:
    """Spans as metadata: the first and the last offset, and every span where there are several.

    >>> from chunkcore.document import Span
    >>> place([Span(0, 5), Span(9, 12)], "split_idx_", "spans")
    {'split_idx_start': 0, 'split_idx_end': 12, 'spans': '0-5,9-12'}
    """
    if len(spans) == 1:
        return {f"{prefix}start": spans[0].start, f"{prefix}end": spans[0].end}
    told: dict[str, Any] = {
        f"{prefix}start": min(span.start for span in spans),
        f"{prefix}end": max(span.end for span in spans),
    }
    told[several] = encode_spans(spans)
    return told


def origin_of(meta: Mapping[str, Any], length: int) -> tuple[str, Origin] | None:
    """The document at the root of the chain that a parent belongs to, and where in it the parent stands.

    None where the parent is no chunk. An unknown origin where the metadata do not fit a text of `length`
    code points: where another splitter stood in between, or the text was altered, they speak of another text,
    and no place is better than a wrong one.
    """
    derived = meta.get(DERIVED) is True
    if "root_source_id" in meta:
        spans = decode_spans(meta.get("root_spans"))
        start, end = meta.get("root_idx_start"), meta.get("root_idx_end")
        return meta["root_source_id"], _stated(length, start, end, spans, derived)
    if "source_id" not in meta or "split_idx_start" not in meta:
        return None
    if "spans" in meta:  # handed down by a chunk of several places, whose own root is not known
        return meta["source_id"], Origin.unknown()
    return meta["source_id"], _stated(length, meta["split_idx_start"], meta.get("split_idx_end"), (), derived)


def _stated(length: int, start: object, end: object, spans: Sequence[Span], derived: bool) -> Origin:
    if not isinstance(start, int) or not isinstance(end, int | None):
        return Origin.unknown()
    return Origin.stated(length, start, end, spans, derived=derived)


def shared(left: Sequence[Span], right: Sequence[Span], gap: int) -> list[tuple[Range, Range]]:
    """What two chunks share, each time as a range in the left one's text and one in the right one's.

    A chunk of several spans has their slices as text, joined by `gap` characters.

    >>> from chunkcore.document import Span
    >>> shared([Span(0, 10)], [Span(8, 15)], 1)
    [((8, 10), (0, 2))]
    """
    if len(left) == 1 == len(right):
        if left[0].end <= right[0].start or right[0].end <= left[0].start:
            return []
    elif not intersect(left, right):
        return []
    found = []
    for a, a_shift in _shifts(left, gap):
        for b, b_shift in _shifts(right, gap):
            start, end = max(a.start, b.start), min(a.end, b.end)
            if start < end:
                found.append(((start - a_shift, end - a_shift), (start - b_shift, end - b_shift)))
    return found


def _shifts(spans: Sequence[Span], gap: int) -> list[tuple[Span, int]]:
    """Each span, and what its offsets in the source are over those in the chunk's text."""
    found, position = [], 0
    for span in spans:
        found.append((span, span.start - position))
        position += len(span) + gap
    return found
