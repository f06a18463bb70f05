"""The basic types: `Span`, `Mark`, `Document`, `Chunk`, and the text of several spans.

Offsets are half-open, in code points of the document's text: ``text[start:end]``.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b
from itertools import accumulate, pairwise
from typing import Any

from chunkcore.errors import DataError, check_type, echo, kind_of
from chunkcore.frames import FrameList, Markup, columns_of, marked, shortened
from chunkcore.plain import digest_of_texts, framed


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


def joiner(text: str, end: int, start: int) -> str:
    r"""What stands between a span that ends at `end` and the next one, which starts at `start`.

    Nothing where they touch, or where a line end stands at one of the two edges already; a line end where one of the
    edges is at a line's edge; a space elsewhere.

    >>> joiner("| a |\n| b |\n| c |", 5, 12), joiner("One is. Two is.", 3, 8)
    ('\n', ' ')
    """
    if end == start:
        return ""
    if text[end - 1] in _LINE_ENDS or text[start] in _LINE_ENDS:
        return ""
    ends_line = end == len(text) or text[end] in _LINE_ENDS
    starts_line = start == 0 or text[start - 1] in _LINE_ENDS
    return "\n" if ends_line or starts_line else " "


def text_of_spans(text: str, spans: Sequence[Span]) -> str:
    r"""The text of several spans of a document's text, in their order, with a `joiner` between neighbours.

    A chunk, a passage, a table's repeated header and a scored hit all have this text for their spans.

    >>> table = "| tea | hot |\n|---|---|\n| ice | cold |\n| fog | damp |"
    >>> print(text_of_spans(table, [Span(0, 23), Span(39, 53)]))
    | tea | hot |
    |---|---|
    | fog | damp |
    """
    if len(spans) == 1:
        return text[spans[0].start : spans[0].end]
    pieces: list[str] = []
    for number, span in enumerate(spans):
        if number:
            pieces.append(joiner(text, spans[number - 1].end, span.start))
        pieces.append(text[span.start : span.end])
    return "".join(pieces)


def offsets_of_spans(text: str, spans: Sequence[Span]) -> list[int]:
    """Where each span begins in `text_of_spans`.

    >>> offsets_of_spans("One is. Two is. Three is.", [Span(0, 7), Span(16, 25)])
    [0, 8]
    """
    offsets: list[int] = []
    place = 0
    for number, span in enumerate(spans):
        if number:
            place += len(joiner(text, spans[number - 1].end, span.start))
        offsets.append(place)
        place += len(span)
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

    def __post_init__(self) -> None:
        check_type("a mark's kind", self.kind, str, "a string")
        check_type("a mark's span", self.span, Span, "a Span")
        check_type("a mark's data", self.data, Mapping, "a mapping")

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "start": self.span.start,
            "end": self.span.end,
            "data": dict(self.data),
        }

    @classmethod
    def from_dict(cls, row: Mapping[str, Any]) -> Mark:
        """The inverse of `to_dict`. Raises `DataError`: the row is no mark."""
        check_type("a mark", row, Mapping, "a mapping with kind, start, end and data")
        span = Span(row.get("start"), row.get("end"))  # type: ignore[arg-type]
        return cls(row.get("kind"), span, row.get("data") or {})  # type: ignore[arg-type]


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

    def __new__(cls, *values: Any, **named: Any) -> Document:
        if cls is Document and (named or len(values) == 1):  # neither is a pickle's
            more = named.keys() - {"id", "text"}
            if len(values) + len(named) - len(more) < 2 or more - {"metadata", "marks"}:
                seen = echo([*values, *named])
                raise DataError(
                    f'a document has an id and a text, as in Document("faq.md", text); got {seen}'
                )
        return object.__new__(cls)

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
        check_type("pieces", pieces, Iterable, "several chunks or hits")
        shares = []
        for piece in pieces:
            if getattr(piece, "document_id", None) != self.id:
                continue
            parts = getattr(piece, "parts", ()) or (piece,)
            most = max((getattr(part, "score", 1.0) for part in parts), default=1.0)
            for part in parts:
                share = getattr(part, "score", 1.0) / most if len(parts) > 1 and most > 0 else 0.5
                shares += [(span.start, span.end, min(1.0, max(0.0, share))) for span in part.spans]
        disjoint: list[tuple[int, int, float]] = []
        for start, end, share in sorted(shares):
            start = max(start, disjoint[-1][1] if disjoint else 0)
            if end > start:
                disjoint.append((start, end, share))
        return marked(self.text, disjoint, self.id)

    def __post_init__(self) -> None:
        if not isinstance(self.id, str) or not self.id:
            raise DataError(f"a document's id is a non-empty string, got {self.id!r}")
        if not isinstance(self.text, str):
            raise DataError(
                f"document {self.id!r}: its text is a string, got {type(self.text).__name__}; decode bytes first"
            )
        check_type(f"document {self.id!r}: its metadata", self.metadata, Mapping, "a mapping")
        check_type(f"document {self.id!r}: its marks", self.marks, Iterable, "a tuple of Mark")
        object.__setattr__(self, "marks", tuple(self.marks))
        for mark in self.marks:
            check_type(f"document {self.id!r}: each of its marks", mark, Mark, "a Mark")
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
        return next(pages_of_all(self.marks, [_spans(place)]))

    def part(self, start: int, end: int) -> Document:
        """The document's ``text[start:end]`` as a document of the same id, with the marks in it, cut to it."""
        marks = []
        for mark in self.marks:
            low, high = max(mark.span.start, start), min(mark.span.end, end)
            if low < high:
                marks.append(Mark(mark.kind, Span(low - start, high - start), mark.data))
        return Document(self.id, self.text[start:end], self.metadata, tuple(marks))


def check_document(value: object, name: str = "one of the documents") -> None:
    """Raise `DataError` for anything but a `Document`; of another library's, it says how to make one.

    >>> check_document("Tea is hot.")
    Traceback (most recent call last):
    chunkcore.errors.DataError: one of the documents is a chunkcore Document, got str: write Document("faq.md", text)
    """
    if not isinstance(value, Document):
        held = [
            held
            for held in ("page_content", "content", "text")
            if isinstance(getattr(value, held, None), str)
        ]
        text = f"document.{held[0]}" if held else "text"
        raise DataError(
            f'{name} is a chunkcore Document, got {kind_of(value)}: write Document("faq.md", {text})'
        )


def pages_of_all(
    marks: Iterable[Mark], places: Iterable[Sequence[Span]]
) -> Iterator[tuple[int, ...]]:
    """`Document.pages_of` of many places."""
    pages = sorted(page_marks(marks), key=lambda page: page.span)
    starts, ends = [page.span.start for page in pages], [page.span.end for page in pages]
    latest = list(
        accumulate(ends, max)
    )  # pages of a file do not overlap, those of a stranger's marks may
    for spans in places:
        numbers = {
            number: pages[number].data["number"]
            for span in spans
            for number in range(bisect_right(latest, span.start), bisect_left(starts, span.end))
            if ends[number] > span.start
        }
        yield tuple(dict.fromkeys(numbers[number] for number in sorted(numbers)))


def _spans(place: Span | Iterable[Span]) -> Sequence[Span]:
    if isinstance(place, Span):
        return (place,)
    check_type("a place", place, Iterable, "a Span or several")
    spans = tuple(place)
    for span in spans:
        check_type("a place", span, Span, "a Span or several")
    return spans


def page_marks(marks: Iterable[Mark]) -> Iterator[Mark]:
    """The marks that are pages with a number."""
    return (mark for mark in marks if mark.kind == "page" and type(mark.data.get("number")) is int)


_CHUNK_TYPES = (
    ("document_id", str, "a string"),
    ("index", int, "a whole number"),
    ("text", str, "a string"),
    ("token_count", int, "a whole number"),
    ("metadata", dict, "a mapping"),
)


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
        spans = self.spans
        if not (isinstance(spans, tuple) and spans and all(type(span) is Span for span in spans)):
            raise DataError(
                f"chunk {self.index} of {self.document_id!r}: spans are a tuple of Spans, got {spans!r}"
            )
        for name, kind, expected in _CHUNK_TYPES:
            value = getattr(self, name)
            if type(value) is not kind:  # the usual types, which are quicker to compare
                check_type(f"a chunk's {name}", value, Mapping if kind is dict else kind, expected)

    def __repr__(self) -> str:
        places = ", ".join(f"{span.start}–{span.end}" for span in self.spans)
        return f"Chunk({self.document_id!r}, {self.index}, {places}, {shortened(self.text)}, {self.token_count} tokens)"

    def _repr_html_(self) -> str:
        places = " and ".join(f"{span.start:,}–{span.end:,}" for span in self.spans)
        return marked(
            self.text, (), f"{self.document_id}, characters {places}, {self.token_count:,} tokens"
        )

    @property
    def start(self) -> int:
        return min(span.start for span in self.spans)

    @property
    def end(self) -> int:
        return max(span.end for span in self.spans)

    @property
    def id(self) -> str:
        """32 hexadecimal digits, equal in every run: document id + chunker fingerprint + spans (+ derived text)."""
        places = ",".join([f"{span.start}-{span.end}" for span in self.spans])
        # A model can write several texts from one passage.
        return _id(
            self.document_id, self.fingerprint, places, *([self.text] if self.derived else [])
        )

    @property
    def embedded_text(self) -> str:
        """The text to embed: the context, if any, on a line before `text`."""
        return f"{self.context}\n{self.text}" if self.context else self.text

    @property
    def content_hash(self) -> str:
        """32 hexadecimal digits of context and text. Chunks of equal hash have equal embeddings."""
        return digest_of_texts((self.context, self.text))


class Chunks(FrameList[Chunk]):
    """A list of chunks that is a table, too: `to_pandas`, `to_arrow`, and `plot`, their lengths."""

    __slots__ = ()

    def tidy(self) -> dict[str, Sequence[Any]]:
        """A row a chunk: document, index, start, end, tokens, text; headings and pages, if a chunk has some."""
        return chunk_columns(self)


def chunk_columns(chunks: Iterable[Chunk]) -> dict[str, Sequence[Any]]:
    """`Chunks.tidy` of any chunks."""
    names, held = ("document", "index", "start", "end", "tokens", "text"), list(chunks)
    rows = [
        (chunk.document_id, chunk.index, chunk.start, chunk.end, chunk.token_count, chunk.text)
        for chunk in held
    ]
    more = [
        name for name in ("headings", "pages") if any(chunk.metadata.get(name) for chunk in held)
    ]
    return columns_of(names, rows) | {
        name: [chunk.metadata.get(name, []) for chunk in held] for name in more
    }


def slice_id(document_id: str, fingerprint: str, start: int, end: int) -> str:
    """The `Chunk.id` of a chunk of one span whose text is the document's."""
    return _id(document_id, fingerprint, f"{start}-{end}")


def _id(document_id: str, fingerprint: str, *parts: str) -> str:
    hashed = _begun(document_id, fingerprint).copy()
    for part in parts:
        hashed.update(framed(part))
    return hashed.hexdigest()


@lru_cache(maxsize=64)  # the chunks of a document share them
def _begun(*parts: str) -> blake2b:
    return blake2b(b"".join(map(framed, parts)), digest_size=16)
