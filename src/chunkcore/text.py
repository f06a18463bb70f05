"""The basic types: `Span`, `Mark`, `Document`, `Chunk`, and the text of several spans.

Offsets are half-open, in code points of the document's text: ``text[start:end]``.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass, field, replace
from itertools import accumulate, chain, pairwise
from typing import Any

from chunkcore.errors import DataError, echo, kind_of
from chunkcore.plain import (
    FrameList,
    Markup,
    columns_of,
    digest_of_texts,
    marked,
    shortened,
)


@dataclass(frozen=True, order=True, slots=True)
class Span:
    """A half-open range of code points, ``0 <= start < end``.

    Raises `DataError`: the range is empty, reversed or negative, or an end is not an integer.

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
            raise DataError(
                f"a span needs 0 <= start < end, got start={self.start}, end={self.end}"
            )

    def __len__(self) -> int:
        return self.end - self.start

    def slice(self, text: str) -> str:
        return text[self.start : self.end]


def _whole(value: object) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise DataError(f"a span's ends are whole numbers of code points, got {value!r}")
    return int(value.__index__())


_LINE_ENDS = "\n\r"
_GAP = 1000  # characters between two spans that are read for tags
_INLINE_TAG = (
    r"(?:</?(?:a|abbr|b|bdi|bdo|big|cite|code|data|del|dfn|em|font|i|ins|kbd|label|mark|q|s|samp|small|span|strike"
    r"|strong|sub|sup|time|tt|u|var|wbr)"
    r"(?:\s(?![^<>]*display\s*:\s*(?:block|flex|grid))[^<>]*)?/?>|<!--(?:(?!-->).)*-->)"  # no block by its style
)
_INLINE = re.compile(f"{_INLINE_TAG}+", re.DOTALL | re.IGNORECASE)
_LINE_BREAK = re.compile(
    rf"(?:{_INLINE_TAG}|[ \t])*[\r\n]+{_INLINE_TAG}*", re.DOTALL | re.IGNORECASE
)

_TAG = re.compile(r"\s*<")
_BLOCK = re.compile(
    r"</?(?:address|article|aside|blockquote|br|center|dd|details|div|dl|dt|fieldset|figcaption|figure|footer|form"
    r"|h[1-6]|header|hr|legend|li|main|menu|ol|option|p|pre|section|summary|table|tr|ul)"
    r"[\s/>]",
    re.IGNORECASE,
)


def joiner(
    text: str,
    end: int,
    start: int,
) -> str:
    r"""What stands between a span that ends at `end` and the next one, which starts at `start`.

    Nothing where they touch, where only inline tags and comments of HTML stand between, or where a line end stands at
    one of the two edges already; a line end where one of the edges is at a line's edge, but for inline tags, or a block
    of HTML begins or ends between; a space elsewhere.

    >>> joiner("| a |\n| b |\n| c |", 5, 12), joiner("One is. Two is.", 3, 8), joiner("<b>tea</b>pot", 6, 10)
    ('\n', ' ', '')
    """
    is_inline = start - end < _GAP and _INLINE.fullmatch(text, end, start)
    edges = {text[end - 1], text[start]}
    if end == start or is_inline or not edges.isdisjoint(_LINE_ENDS):
        return ""
    if _TAG.match(text, end, start) and _BLOCK.search(text, end, min(start, end + _GAP)):
        return "\n"
    # At an edge of the text the slice is empty, which is in any text.
    ends_line = text[end : end + 1] in _LINE_ENDS
    starts_line = text[start - 1 : start] in _LINE_ENDS
    is_break = start - end < _GAP and _LINE_BREAK.fullmatch(text, end, start)
    return "\n" if ends_line or starts_line or is_break else " "


def text_of_spans(text: str, spans: Sequence[Span]) -> str:
    r"""The text of several spans of a document's text, in their order, with a `joiner` between neighbours.

    A chunk, a passage, a table's repeated header and a scored hit all have this text for their spans.

    >>> table = "| tea | hot |\n|---|---|\n| ice | cold |\n| fog | damp |"
    >>> print(text_of_spans(table, [Span(0, 23), Span(39, 53)]))
    | tea | hot |
    |---|---|
    | fog | damp |
    """
    pieces = [span.slice(text) for span in spans[:1]]
    for before, span in pairwise(spans):
        pieces += joiner(text, before.end, span.start), span.slice(text)
    return "".join(pieces)


def offsets_of_spans(text: str, spans: Sequence[Span]) -> list[int]:
    """Where each span begins in `text_of_spans`.

    >>> offsets_of_spans("One is. Two is. Three is.", [Span(0, 7), Span(16, 25)])
    [0, 8]
    """
    offsets = [0][: len(spans)]
    for before, span in pairwise(spans):
        offsets.append(offsets[-1] + len(before) + len(joiner(text, before.end, span.start)))
    return offsets


def offsets_within(joined: str, spans: Sequence[Span]) -> list[int] | None:
    r"""`offsets_of_spans` where the document is not at hand, from the text of the spans; None if it is not theirs.

    >>> offsets_within("One is. Three is.", [Span(0, 7), Span(16, 25)]), offsets_within("One", [Span(0, 2)])
    ([0, 8], None)
    """
    for line_ends_join in (True, False):  # else they stand at the edges of the spans
        offsets = [0]
        for previous, span in pairwise(spans):
            place = offsets[-1] + len(previous)
            edge, following = joined[place - 1 : place], joined[place : place + 1]
            if previous.end != span.start and edge not in _LINE_ENDS:
                place += following == " " or (following == "\n" and line_ends_join)
            offsets.append(place)
        if spans and offsets[-1] + len(spans[-1]) == len(joined):
            return offsets
    return None


@dataclass(frozen=True, slots=True)
class Mark:
    """A labelled span of a document: a page, a section.

    Where a section begins, a chunk of `sentence` ends. `data` of a page has its ``number`` from 1, and where known its
    ``label``.

    >>> Mark("page", Span(0, 1800), {"number": 1}).kind
    'page'
    """

    kind: str
    span: Span
    data: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, **asdict(self.span), "data": dict(self.data)}

    @classmethod
    def from_dict(cls, row: Mapping[str, Any]) -> Mark:
        """The inverse of `to_dict`. Raises `DataError`: the row is no mark."""
        kind, data = row.get("kind"), row.get("data") or {}
        if not isinstance(kind, str) or not isinstance(data, Mapping):
            raise DataError(f"a mark has a kind, start, end and data, got {echo(row)}")
        return cls(kind, Span(row.get("start"), row.get("end")), data)  # type: ignore[arg-type]  # refuses None


@dataclass(frozen=True, slots=True)
class Document:
    """A text with a name, metadata and marks.

    Raises `DataError`: the text is no string, the id is empty, or a mark lies outside the text.

    >>> Document("faq.md", "Why is the sky blue?").id
    'faq.md'
    """

    id: str
    text: str
    metadata: Mapping[str, Any] = field(default_factory=dict)
    marks: tuple[Mark, ...] = ()

    def __repr__(self) -> str:
        return f"Document(id={self.id!r}, text={shortened(self.text)}, metadata={self.metadata}, marks={self.marks})"

    def _repr_html_(self) -> str:
        return marked(self.text, (), self.id)

    def highlight(self, pieces: Iterable[Any]) -> Markup:
        """The text with the spans of chunks, hits or passages marked; parts of passages by their scores.

        >>> sky = Document("faq.md", "Why is the sky blue?")
        >>> "<mark" in sky.highlight([Chunk("faq.md", 0, (Span(11, 14),), "sky", 1)])
        True
        """
        own = [_strengths(piece) for piece in pieces if piece.document_id == self.id]
        disjoint = []
        reached = 0
        for start, end, strength in sorted(chain.from_iterable(own)):
            if end > reached:
                disjoint.append((max(start, reached), end, strength))
                reached = end
        return marked(self.text, disjoint, self.id)

    def __post_init__(self) -> None:
        if not isinstance(self.id, str) or not self.id:
            raise DataError(f"a document's id is a non-empty string, got {self.id!r}")
        if not isinstance(self.text, str):
            raise DataError(
                f"document {self.id!r}: its text is a string, got {type(self.text).__name__}; decode bytes first"
            )
        if any(isinstance(value, dict | list | set) for value in self.metadata.values()):
            # What the caller changes in nested values later is not the document's.
            object.__setattr__(self, "metadata", deepcopy(dict(self.metadata)))
        object.__setattr__(self, "marks", tuple(self.marks))
        for mark in self.marks:
            if mark.span.end > len(self.text):
                raise DataError(
                    f"document {self.id!r}: mark {mark.kind!r} ends at {mark.span.end}, the text at {len(self.text)}"
                )

    @property
    def size(self) -> int:
        return len(self.text)

    def pages_of(self, place: Span | Iterable[Span]) -> tuple[int, ...]:
        """The numbers of the pages that hold some of a span or of several; () without page marks.

        >>> pages = (Mark("page", Span(0, 5), {"number": 1}), Mark("page", Span(6, 12), {"number": 2}))
        >>> Document("a.pdf", "Black and tea", marks=pages).pages_of(Span(3, 8))
        (1, 2)
        """
        spans = (place,) if isinstance(place, Span) else tuple(place)
        return next(pages_of_all(self.marks, [spans]))

    def part(self, start: int, end: int) -> Document:
        """The document's ``text[start:end]`` as a document of the same id, with the marks in it, cut to it."""
        marks = []
        for mark in self.marks:
            low, high = max(mark.span.start, start), min(mark.span.end, end)
            if low < high:
                marks.append(replace(mark, span=Span(low - start, high - start)))
        return Document(self.id, self.text[start:end], self.metadata, tuple(marks))


def check_document(value: object, name: str = "one of the documents") -> None:
    """Raise `DataError` for anything but a `Document`; of another library's, it says how to make one.

    >>> check_document("Tea is hot.")
    Traceback (most recent call last):
    chunkcore.errors.DataError: one of the documents is a chunkcore Document, got str: write Document("faq.md", text)...
    """
    if isinstance(value, Document):
        return
    advice = 'write Document("faq.md", text), or load_documents("docs/")'
    for attribute, framework in _TEXTS_OF_FRAMEWORKS.items():
        if isinstance(getattr(value, attribute, None), str):
            advice = f"join_pages_by_source(documents) of chunkadapters.{framework} makes them"
    raise DataError(f"{name} is a chunkcore Document, got {kind_of(value)}: {advice}")


_TEXTS_OF_FRAMEWORKS = {"text": "llamaindex", "content": "haystack", "page_content": "langchain"}


def pages_of_all(
    marks: Iterable[Mark],
    places: Iterable[Sequence[Span]],
) -> Iterator[tuple[int, ...]]:
    """`Document.pages_of` of many places."""
    pages = sorted(page_marks(marks), key=lambda page: page.span)
    starts = [page.span.start for page in pages]
    # Pages of a file do not overlap; those of a stranger's marks may.
    latest_ends = list(accumulate((page.span.end for page in pages), max))
    for spans in places:
        numbers = set()
        for span in spans:
            first = bisect_right(latest_ends, span.start)
            after = bisect_left(starts, span.end)
            numbers |= {n for n in range(first, after) if pages[n].span.end > span.start}
        yield tuple(dict.fromkeys(pages[number].data["number"] for number in sorted(numbers)))


def page_marks(marks: Iterable[Mark]) -> Iterator[Mark]:
    """The marks that are pages with a number."""
    return (mark for mark in marks if mark.kind == "page" and type(mark.data.get("number")) is int)


def _strengths(piece: Any) -> list[tuple[int, int, float]]:
    """Start and end of each span of a chunk, hit or passage, and how strongly it is marked: a part by its score."""
    parts = getattr(piece, "parts", ())
    most = max((part.score for part in parts), default=0.0)
    if len(parts) < 2 or most <= 0:
        return [(span.start, span.end, 0.5) for span in piece.spans]
    rows = []
    for part in parts:
        strength = min(1.0, max(0.0, part.score / most))
        rows += [(span.start, span.end, strength) for span in part.spans]
    return rows


@dataclass(frozen=True, slots=True)
class Chunk:
    """One or several spans of one document.

    Attributes:
        document_id: the document of the spans.
        index: the chunk's place in its document, from 0.
        spans: in reading order; touching neighbours are merged.
        text: `text_of_spans` of the source, or of a derived chunk a model's text.
        token_count: of `text`, in the chunker's counter.
        context: text about the chunk (a title path, a model's sentence); never source text.
        metadata: what the chunker adds.
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
        if not self.spans or type(self.spans[0]) is not Span:
            raise DataError(
                f"chunk {self.index} of {self.document_id!r}: spans are a tuple of Spans, got {self.spans!r}"
            )

    def __repr__(self) -> str:
        places = ", ".join(f"{span.start}–{span.end}" for span in self.spans)
        return f"Chunk({self.document_id!r}, {self.index}, {places}, {shortened(self.text)}, {self.token_count} tokens)"

    @property
    def start(self) -> int:
        return min(span.start for span in self.spans)

    @property
    def end(self) -> int:
        return max(span.end for span in self.spans)

    @property
    def id(self) -> str:
        """32 hexadecimal digits, equal in every run: document id + chunker fingerprint + spans (+ derived text)."""
        parts = [",".join([f"{span.start}-{span.end}" for span in self.spans])]
        if self.derived:  # a model can write several texts from one passage
            parts.append(self.text)
        return digest_of_texts([self.document_id, self.fingerprint, *parts])

    @property
    def embedded_text(self) -> str:
        """The text to embed: the context, if any, on a line before `text`."""
        return f"{self.context}\n{self.text}" if self.context else self.text


class Chunks(FrameList[Chunk]):
    """A list of chunks that is a table, too: `to_pandas` and `plot`, their lengths."""

    __slots__ = ()

    def tidy(self) -> dict[str, Sequence[Any]]:
        """A row a chunk: document, index, start, end, tokens, text; headings and pages, if a chunk has some."""
        return chunk_columns(self)


def chunk_columns(chunks: Iterable[Chunk]) -> dict[str, Sequence[Any]]:
    """`Chunks.tidy` of any chunks."""
    chunks = list(chunks)
    names = ("document", "index", "start", "end", "tokens", "text")
    rows = [
        (chunk.document_id, chunk.index, chunk.start, chunk.end, chunk.token_count, chunk.text)
        for chunk in chunks
    ]
    columns = columns_of(names, rows)
    for name in ("headings", "pages"):
        values = [chunk.metadata.get(name, []) for chunk in chunks]
        if any(values):
            columns[name] = values
    return columns
