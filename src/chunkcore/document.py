"""The basic types: `Span`, `Mark`, `Document`, `Chunk`.

Offsets are half-open, in code points of the document's text: ``text[start:end]``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b
from typing import Any

from chunkcore.errors import DataError

__all__ = ["Chunk", "Document", "Mark", "Span"]


@dataclass(frozen=True, order=True, slots=True)
class Span:
    """A half-open range of code points, ``0 <= start < end``.

    Raises:
        DataError: the range is empty, reversed or negative, or an end is not an integer.

    >>> span = Span(4, 9)
    >>> len(span), span.slice("the quick fox")
    (5, 'quick')
    """

    start: int
    end: int

    def __post_init__(self) -> None:
        if type(self.start) is not int or type(self.end) is not int:
            # NumPy integers become plain ints, for JSON and pickle.
            object.__setattr__(self, "start", _whole(self.start))
            object.__setattr__(self, "end", _whole(self.end))
        if not 0 <= self.start < self.end:
            raise DataError(f"a span needs 0 <= start < end, got start={self.start}, end={self.end}")

    def __len__(self) -> int:
        return self.end - self.start

    def slice(self, text: str) -> str:
        return text[self.start : self.end]


def _whole(value: object) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise DataError(f"a span's ends are whole numbers of code points, got {value!r}")
    return int(value.__index__())


@dataclass(frozen=True, slots=True)
class Mark:
    """A labelled span of a document: a page, a heading, a table.

    >>> Mark("page", Span(0, 1800), {"number": 1}).kind
    'page'
    """

    kind: str
    span: Span
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Document:
    """A text with a name, metadata and marks.

    Raises:
        DataError: the text is no string, the id is empty, or a mark lies outside the text.

    >>> Document("faq.md", "Why is the sky blue?").id
    'faq.md'
    """

    id: str
    text: str
    metadata: Mapping[str, Any] = field(default_factory=dict)
    marks: tuple[Mark, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.id, str) or not self.id:
            raise DataError(f"a document's id is a non-empty string, got {self.id!r}")
        if not isinstance(self.text, str):
            raise DataError(
                f"document {self.id!r}: its text is a string, got {type(self.text).__name__}; decode bytes first"
            )
        object.__setattr__(self, "marks", tuple(self.marks))
        for mark in self.marks:
            if mark.span.end > len(self.text):
                raise DataError(
                    f"document {self.id!r}: mark {mark.kind!r} ends at {mark.span.end}, the text at {len(self.text)}"
                )

    @property
    def size(self) -> int:
        return len(self.text)


@dataclass(frozen=True, slots=True)
class Chunk:
    """One or several spans of one document.

    Attributes:
        document_id: the document of the spans.
        index: the chunk's place in its document, from 0.
        spans: in reading order; touching neighbours are merged.
        text: the source slices, joined by the chunker's separator.
        token_count: of `text`, in the chunker's counter.
        context: text about the chunk (a title path, a model's sentence); never source text.
        metadata: what the strategy adds.
        fingerprint: of the chunker and its options.
        segments: the spans of parts with their own vectors, for multi-vector search; usually empty.
        derived: a model wrote `text`; the spans are then the source passage.

    >>> chunk = Chunk("faq.md", 0, (Span(0, 3),), "Why", 1)
    >>> chunk.start, chunk.end, chunk.id == Chunk("faq.md", 0, (Span(0, 3),), "Why", 1).id
    (0, 3, True)
    """

    document_id: str
    index: int
    spans: tuple[Span, ...]
    text: str
    token_count: int
    context: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    fingerprint: str = ""
    segments: tuple[tuple[Span, ...], ...] = ()
    derived: bool = False

    def __post_init__(self) -> None:
        if not self.spans:
            raise DataError(f"chunk {self.index} of {self.document_id!r} has no span")

    @property
    def start(self) -> int:
        return min(span.start for span in self.spans)

    @property
    def end(self) -> int:
        return max(span.end for span in self.spans)

    @property
    def id(self) -> str:
        """32 hexadecimal digits, equal in every run: document id + chunker fingerprint + spans (+ derived text)."""
        found = _begun(self.document_id, self.fingerprint).copy()
        found.update(_framed(",".join([f"{span.start}-{span.end}" for span in self.spans])))
        if self.derived:  # a model can write several texts from one passage
            found.update(_framed(self.text))
        return found.hexdigest()

    @property
    def embedded_text(self) -> str:
        """The text to embed: the context, if any, on a line before `text`."""
        return f"{self.context}\n{self.text}" if self.context else self.text

    @property
    def content_hash(self) -> str:
        """32 hexadecimal digits of context and text. Chunks of equal hash have equal embeddings."""
        found = blake2b(_framed(self.context), digest_size=16)
        found.update(_framed(self.text))
        return found.hexdigest()


@lru_cache(maxsize=64)  # the chunks of a document share them
def _begun(*parts: str) -> blake2b:
    return blake2b(b"".join(map(_framed, parts)), digest_size=16)


def _framed(text: str) -> bytes:
    """Bytes with their length, so that ("ab", "c") and ("a", "bc") differ. Unpaired surrogates are allowed."""
    data = text.encode("utf-8", "surrogatepass")
    return len(data).to_bytes(8, "little") + data
