"""What a reader sees of a document: no pictures as base64. Places stay those of the source."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

from chunkcore.boundaries.html import HtmlText
from chunkcore.text import Document, Mark, Span

_PICTURE = re.compile(r"(?<=;base64,)[A-Za-z0-9+/=\s%]{200,}(?![A-Za-z0-9+/=])")


@dataclass(frozen=True)
class VisibleDocument(Document):
    """A document of the text that a reader sees of another, its `source`."""

    source: Document | None = None
    seen: HtmlText | None = field(default=None, repr=False, compare=False)

    @cached_property
    def _map(self) -> HtmlText:
        assert self.seen is not None
        return self.seen

    def places(self, spans: Sequence[Span]) -> tuple[Span, ...]:
        """Where spans of this text stand in the source."""
        return tuple(
            Span(*ends) for span in spans for ends in self._map.spans(span.start, span.end)
        )


def without_pictures(document: Document) -> Document:
    """The document without its pictures as base64; the document itself where it has none."""
    if ";base64," not in document.text:
        return document
    pieces = list(_pieces(document.text))
    if len(pieces) < 2:
        return document
    return _of(document, HtmlText(document.text, pieces))


def _pieces(text: str) -> Iterator[tuple[int, int]]:
    """The ranges between pictures."""
    edges = [0, *(end for match in _PICTURE.finditer(text) for end in match.span()), len(text)]
    for number, (start, end) in enumerate(pairwise(edges)):
        if number % 2 == 0 and start < end:
            yield start, end


def _of(document: Document, seen: HtmlText) -> VisibleDocument:
    marks = [
        Mark(mark.kind, Span(seen.place(mark.span.start), seen.place(mark.span.end)), mark.data)
        for mark in document.marks
        if seen.place(mark.span.start) < seen.place(mark.span.end)
    ]
    return VisibleDocument(document.id, seen.text, document.metadata, tuple(marks), document, seen)
