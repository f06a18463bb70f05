"""What a reader sees of a document: no pictures as base64. Places stay those of the source."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from chunkcore.boundaries.html import HtmlText
from chunkcore.text import Document, Mark, Span

_PICTURE = re.compile(r"(?<=;base64,)[A-Za-z0-9+/=\s%]{200,}(?![A-Za-z0-9+/=])")


@dataclass(frozen=True)
class VisibleDocument(Document):
    """A document of the text that a reader sees of another, its `source`."""

    source: Document | None = None
    seen: HtmlText | None = field(default=None, repr=False, compare=False)

    def places(self, spans: Sequence[Span]) -> tuple[Span, ...]:
        """Where spans of this text stand in the source."""
        assert self.seen is not None
        places: list[Span] = []
        for span in spans:
            places += [Span(*ends) for ends in self.seen.spans(span.start, span.end)]
        return tuple(places)


def without_pictures(document: Document) -> Document:
    """The document without its pictures as base64; the document itself where it has none."""
    if ";base64," not in document.text:
        return document
    pieces: list[tuple[int, int]] = []
    start = 0
    for match in _PICTURE.finditer(document.text):
        pieces.append((start, match.start()))
        start = match.end()
    if not pieces:
        return document
    if start < document.size:
        pieces.append((start, document.size))
    seen = HtmlText(document.text, pieces)
    marks: list[Mark] = []
    for mark in document.marks:
        span = Span(seen.place(mark.span.start), seen.place(mark.span.end))
        if span.start < span.end:
            marks.append(Mark(mark.kind, span, mark.data))
    return VisibleDocument(document.id, seen.text, document.metadata, tuple(marks), document, seen)
