"""Where the text that a framework hands in stands in its source, so that offsets add up through chains.

A splitter is often given the pieces of another splitter. What it cuts has offsets in those pieces; what
a reader wants are offsets in the document. `Origin` maps the one to the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from chunkcore.document import Span
from chunkcore.errors import DataError
from chunkcore.spans import merge_touching

__all__ = ["Origin", "decode_segments", "decode_spans", "encode_segments", "encode_spans"]


@dataclass(frozen=True, slots=True)
class Origin:
    """The places of a text's parts in its source.

    Attributes:
        parts: (offset in the text, span in the source), ascending; None where the places are not known.
        shift: where there is one part, what its offset in the source is over that in the text.
        passage: what a text that a model wrote was written from: all of it, for every part of the text.

    >>> Origin.at(100).place((Span(3, 8),))
    (Span(start=103, end=108),)
    """

    parts: tuple[tuple[int, Span], ...] | None
    shift: int | None = None
    passage: tuple[Span, ...] = ()

    @classmethod
    def at(cls, start: int) -> Origin:
        """A text that stands at one place of its source."""
        return cls(parts=(), shift=start)

    @classmethod
    def unknown(cls) -> Origin:
        """A text whose place nobody stated."""
        return cls(parts=None)

    @classmethod
    def stated(
        cls, length: int, start: int | None, end: int | None, spans: Sequence[Span], *, derived: bool = False
    ) -> Origin:
        """What metadata says of a text of `length` code points; unknown where it does not fit the text.

        A text that was altered after it was cut no longer has the length of its span, and offsets into
        it say nothing about the source. Of a `derived` text, which a model wrote, every part comes from
        the whole passage.
        """
        if derived:
            known = start is not None and end is not None and 0 <= start < end
            passage = tuple(spans) or ((Span(start, end),) if known else ())  # type: ignore[arg-type]
            return cls(parts=None, passage=passage)
        if len(spans) > 1:
            return cls._joined(length, spans)
        if start is None or start < 0 or (end is not None and end - start != length):
            return cls.unknown()
        return cls.at(start)

    @classmethod
    def _joined(cls, length: int, spans: Sequence[Span]) -> Origin:
        """Several spans, joined by one separator whose length is what is left of the text."""
        gap, rest = divmod(length - sum(map(len, spans)), len(spans) - 1)
        if gap < 0 or rest:
            return cls.unknown()
        parts, offset = [], 0
        for span in spans:
            parts.append((offset, span))
            offset += len(span) + gap
        return cls(parts=tuple(parts))

    def place(self, spans: tuple[Span, ...]) -> tuple[Span, ...]:
        """Spans of the text as spans of the source; () where their place is not known."""
        if self.passage:
            return self.passage
        if self.shift is not None:
            shift = self.shift
            return spans if shift == 0 else tuple(Span(span.start + shift, span.end + shift) for span in spans)
        found = []
        for span in spans:
            for offset, part in self.parts or ():
                start, end = max(span.start, offset), min(span.end, offset + len(part))
                if start < end:
                    found.append(Span(part.start + start - offset, part.start + end - offset))
        return merge_touching(found)


def encode_spans(spans: Sequence[Span]) -> str:
    """Spans as one string, since most vector stores keep only strings and numbers in their metadata.

    >>> encode_spans([Span(0, 12), Span(40, 55)])
    '0-12,40-55'
    """
    return ",".join(f"{span.start}-{span.end}" for span in spans)


def encode_segments(segments: Sequence[Sequence[Span]]) -> str:
    """Segments, each of one span or several, as one string.

    >>> encode_segments([[Span(0, 12)], [Span(20, 31), Span(40, 44)]])
    '0-12;20-31,40-44'
    """
    return ";".join(map(encode_spans, segments))


def decode_segments(value: object) -> tuple[tuple[Span, ...], ...]:
    """The segments that `encode_segments` wrote; () where it is something else.

    >>> decode_segments("0-12;20-31,40-44")[0]
    (Span(start=0, end=12),)
    """
    found = tuple(map(decode_spans, value.split(";"))) if isinstance(value, str) else ()
    return found if all(found) else ()


def decode_spans(value: object) -> tuple[Span, ...]:
    """The spans that `encode_spans` wrote, or that a list of pairs holds; () where it is neither.

    >>> decode_spans("0-12,40-55") == decode_spans([[0, 12], [40, 55]]), decode_spans("pages 3-4")
    (True, ())
    """
    try:
        if isinstance(value, str):
            pairs = [each.split("-") for each in value.split(",")]
            return tuple(Span(int(start), int(end)) for start, end in pairs)
        if isinstance(value, list | tuple):
            return tuple(Span(start, end) for start, end in value)
    except (ValueError, TypeError, DataError):
        pass
    return ()
