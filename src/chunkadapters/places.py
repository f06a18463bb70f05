"""Places in metadata: how each adapter writes where a chunk stands in its source, and reads it back.

A framework's document carries a place as a start, an end and, where there are several, its spans. `PlaceKeys` names the
keys and is the codec; `Origin` adds offsets up through a chain of splitters.
"""

from __future__ import annotations

import json
import math
import sys
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby, zip_longest
from typing import Any, Literal, NamedTuple, TypeAlias

from chunkcore.errors import DataError, echo
from chunkcore.locating import (
    NAMING_KEYS,
    NO_PAGE,
    NO_PLACE,
    Hit,
    Page,
    StatedPlace,
    names_of,
    read_spans,
    whole_number,
)
from chunkcore.plain import digest, plain
from chunkcore.spans import merge_touching
from chunkcore.text import (
    Chunk,
    Document,
    Mark,
    Span,
    offsets_within,
    page_marks,
    pages_of_all,
)

Metadata: TypeAlias = dict[Any, Any]  # of a framework's document: any values
MetadataLike: TypeAlias = Mapping[Any, Any]  # which are only read
Spans: TypeAlias = tuple[Span, ...]

CONTEXT = "context"
DERIVED = "derived"
PAGES = "pages"
_PARTS = ("page", "page_number", "row", "sheet", "seq_num", "element_id")  # of a source
PAGE_MARKS = "page_marks"
ALSO_IN = "also_in"  # other places that say the same as a passage
SPANS = "spans"
LOCATED = "located"  # how `exact` found a piece; see `chunkcore.run.MatchKind`
WHITE_SPACE = "white_space"  # the white space between a chunk and the next one

# Metadata of chunks that no model should read.
BOOKKEEPING = (SPANS, DERIVED, LOCATED, WHITE_SPACE, "fallback", "fallback_reason")
# Values of `located` without a certain place.
UNKNOWN_PLACE = ("ambiguous", "unlocated")


# ---- Ids


def unused_id(chunk_id: str, taken: set[str]) -> str:
    """The id, or one made from it if it is already in `taken`; the result is added to `taken`.

    Two chunks share an id if a document is given twice, or if both have the same span: an overlap that is stripped of
    its white space. Vector stores refuse equal ids, or keep only one of them.

    >>> taken = set()
    >>> unused_id("a", taken), unused_id("a", taken) == unused_id("a", taken), len(taken)
    ('a', False, 3)
    """
    unused, turn = chunk_id, 1
    while unused in taken:
        turn += 1
        unused = digest(f"{chunk_id}#{turn}")
    taken.add(unused)
    return unused


# ---- Places


@dataclass(frozen=True, slots=True)
class Origin:
    """Where the parts of a text stand in its source.

    Attributes:
        parts: the offset in the text and the span in the source of each part, ascending.
        passage: for a text that a model wrote, what it was written from: the place of each of its parts.

    >>> Origin(((0, Span(100, 120)),)).place((Span(3, 8),))
    (Span(start=103, end=108),)
    """

    parts: tuple[tuple[int, Span], ...] = ()
    passage: Spans = ()

    def place(self, spans: Spans) -> Spans:
        """Spans of the text as spans of the source; () if their place is not known."""
        if self.passage:
            return self.passage
        placed: list[Span] = []
        for span in spans:
            for offset, part in self.parts:
                start = max(span.start, offset)
                end = min(span.end, offset + len(part))
                if start < end:
                    by = part.start - offset
                    placed.append(Span(start + by, end + by))
        return merge_touching(placed)


WHOLE = Origin(((0, Span(0, sys.maxsize)),))  # of a text that is its own source
NOWHERE = Origin()  # of a text without a known place


def is_derived(metadata: MetadataLike) -> bool:
    """Whether a model wrote the text, by metadata that a store may have made a number or a text of."""
    return str(metadata.get(DERIVED)).lower() in ("true", "1", "1.0")


def part_of(source: str, metadata: MetadataLike) -> str:
    """The name of a source's part, such as a page: places refer to it."""
    name = source
    for key in _PARTS:
        # The pages of a chunk are no parts: its place is in the whole document.
        if key not in metadata or (key in PAGE_KEYS and PAGES in metadata):
            continue
        value = metadata[key]
        number = whole_number(value)  # stores turn 2 into 2.0
        name += f"#{key}={value}" if number is None else f"#{key}={number}"
    return name


def chunk_place(chunk: Chunk, origin: Origin) -> Spans:
    """The chunk's place in the source; () for a piece whose place `exact` does not know."""
    return () if chunk.metadata.get(LOCATED) in UNKNOWN_PLACE else origin.place(chunk.spans)


@dataclass(frozen=True)
class PlaceKeys:
    """The keys under which a framework's metadata holds a place: the first start, the last end, and several spans.

    >>> keys = PlaceKeys("start_index", "end_index")
    >>> keys.write([Span(0, 5), Span(9, 12)])
    {'start_index': 0, 'end_index': 12, 'spans': '0-5,9-12'}
    >>> keys.stated({"start_index": 4.0}, "tea").spans
    (Span(start=4, end=7),)
    """

    start: str
    end: str
    spans: str = SPANS
    page: Literal["page", "page_label", "page_number"] = "page_number"

    def write(self, spans: Sequence[Span]) -> Metadata:
        """The place as metadata, with `spans` only if there are several; {} for no place."""
        if not spans:
            return {}
        start, end = min(span.start for span in spans), max(span.end for span in spans)
        place: Metadata = {self.start: start, self.end: end}
        if len(spans) > 1:
            # Most vector stores keep only strings and numbers.
            place[self.spans] = ",".join(f"{span.start}-{span.end}" for span in spans)
        return place

    def stated(
        self,
        metadata: MetadataLike,
        text: str,
        *,
        searched: bool = False,
    ) -> StatedPlace:
        """The place that metadata state for a text; the text gives the end if only the start is there.

        Negative ends state no place: LangChain writes -1 where it finds a chunk nowhere. Spans whose ends are not the
        stated ones are inherited from the chunk that the text was cut from, and do not count.

        >>> PlaceKeys("start", "end").stated({"start": "chapter 1"}, "tea").problem
        "start is 'chapter 1', no whole number"
        >>> PlaceKeys("start", "end").stated({"start": 4, "end": 7, "spans": "0-3,9-12"}, "tea").spans
        (Span(start=4, end=7),)
        """
        ends: list[int | None] = []
        for key in (self.start, self.end):
            value = metadata.get(key)
            number = whole_number(value)
            if number is None and value is not None:
                return StatedPlace((), f"{key} is {echo(value)}, no whole number")
            ends.append(number)
        first, last = ends
        written = metadata.get(self.spans)
        if written is not None:
            several = read_spans(written)
            if first is last is None and not several:
                return StatedPlace((), f"{self.spans} is {echo(written)}, no spans")
            place = self.write(several)
            is_inherited = ends not in ([None, None], [place.get(self.start), place.get(self.end)])
            if several and not is_inherited:
                return StatedPlace(several, searched=searched)
        if last is None and first is not None:
            last = first + len(text)
        if first is None or last is None or not 0 <= first < last:
            return NO_PLACE
        return StatedPlace((Span(first, last),), searched=searched)

    def hit(
        self,
        text: str,
        metadata: MetadataLike,
        names: Iterable[object],
        score: object,
        *,
        document: str = "",
        id: str = "",  # noqa: A002
        searched: bool = False,
    ) -> Hit:
        """What a framework's retriever returned, as a hit; see there. A score that is no finite number is 0.

        Args:
            names: candidates, of which the strings and paths count.
            searched: the splitter searched for its chunk.

        >>> hit = PlaceKeys("start", "end").hit("tea", {"start": "4"}, [None, "a.md"], float("nan"))
        >>> hit.names, hit.score
        (('a.md',), 0.0)
        """
        try:
            number = float(score)  # type: ignore[arg-type]
        except (TypeError, ValueError, OverflowError):
            number = 0.0
        if not math.isfinite(number):
            number = 0.0
        # LangChain's and LlamaIndex' loaders give each page as a document.
        page = NO_PAGE
        if self.page != "page_number" and PAGES not in metadata:
            page = page_of(metadata)
        return Hit(
            text=text,
            score=number,
            names=names_of(*names),
            stated=self.stated(metadata, text, searched=searched),
            derived=is_derived(metadata),
            document=document,
            metadata=metadata,
            id=id,
            page=page,
        )

    def origin(self, metadata: MetadataLike, text: str) -> Origin:
        """Where a text stands, by its metadata. Of a derived text, its place is the whole passage.

        A text that was altered after it was cut no longer has the length of its spans: its place is unknown.
        """
        spans = self.stated(metadata, text).spans
        if is_derived(metadata):
            return Origin(passage=spans)
        offsets = offsets_within(text, spans)
        if offsets is None:
            return NOWHERE
        return Origin(tuple(zip(offsets, spans, strict=True)))

    def write_pages(
        self,
        marks: Sequence[Mark],
        spans: Sequence[Span],
        parent: Collection[Any],
    ) -> Metadata:
        """The first page under the framework's own key, and all under ``pages``; {} without page marks.

        LangChain's ``page`` counts from 0, as its loaders do, and comes with ``page_label``; Haystack's ``page_number``
        counts from 1; LlamaIndex' ``page_label`` is text. A key of the `parent` document gets the prefix ``chunk_``.
        """
        numbers = next(pages_of_all(marks, [spans])) if marks and spans else ()
        if not numbers:
            return {}
        first = numbers[0]
        pages: Metadata = {PAGES: ", ".join(map(str, numbers))}
        if self.page == "page_number":
            pages["page_number"] = first
        else:
            labels = {mark.data["number"]: mark.data.get("label") for mark in marks}
            pages["page_label"] = str(labels[first] or first)
        if self.page == "page":
            pages["page"] = first - 1
        return _beside(parent, pages)


def _beside(parent: Collection[Any], values: Metadata) -> Metadata:
    """The values, with the prefix ``chunk_`` before the keys that the parent has."""
    return {f"chunk_{key}" if key in parent else key: value for key, value in values.items()}


# ---- Pages: a framework's document carries its page marks as one string, which its chunks do not inherit


def with_page_marks(document: Document) -> Metadata:
    """The document's metadata with its page marks as ``page_marks``, for a framework's document of the same text."""
    metadata = dict(document.metadata)
    pages = []
    for mark in page_marks(document.marks):
        page = [mark.data["number"], mark.span.start, mark.span.end]
        label = mark.data.get("label")
        if label:
            page.append(label)
        pages.append(page)
    if pages:
        metadata[PAGE_MARKS] = json.dumps(pages, separators=(",", ":"))
    return metadata


def marks_of(metadata: MetadataLike) -> tuple[Mark, ...]:
    """The marks of `with_page_marks`; () if there are none, or they are not readable.

    >>> marks_of({"page_marks": '[[3,0,1800,"iii"]]'})
    (Mark(kind='page', span=Span(start=0, end=1800), data={'number': 3, 'label': 'iii'}),)
    """
    written = metadata.get(PAGE_MARKS)
    if not isinstance(written, str):
        return ()
    try:
        rows = json.loads(written)
        return tuple(_page_mark(*row) for row in rows)
    except (ValueError, TypeError, RecursionError, DataError):
        return ()


def _page_mark(number: Any, start: int, end: int, label: str = "") -> Mark:
    data: dict[str, object] = {"number": int(number)}
    if label:
        data["label"] = label
    return Mark("page", Span(start, end), data)


# ---- Everything else that a chunk says of itself


def chunk_metadata(chunk: Chunk, parent: MetadataLike, origin: Origin) -> Metadata:
    """What a chunk says of itself, flat. No key that its document (`parent`) has is overwritten.

    - the chunker's metadata: a list of strings becomes ``"a > b"``, any other nested value its JSON;
    - ``context``: the context written for the chunk;
    - ``chunk_`` and the key, if the document has that key;
    - ``derived``: true if a model wrote the text; the chunk's place is then the passage it was written from;

    >>> chunk = Chunk("d", 0, (Span(0, 3),), "Tea", 1, context="Of drinks.", metadata={"headings": ["A", "B"]})
    >>> chunk_metadata(chunk, {"context": "mine"}, WHOLE)
    {'headings': 'A > B', 'chunk_context': 'Of drinks.'}
    """
    values = {}
    for key, value in chunk.metadata.items():
        flat: Any = plain(value)
        if isinstance(flat, list) and all(isinstance(item, str) for item in flat):
            flat = " > ".join(flat)
        elif isinstance(flat, dict | list):
            flat = json.dumps(flat, ensure_ascii=False)
        if flat not in (None, ""):
            values[key] = flat
    if chunk.context:
        values[CONTEXT] = chunk.context
    metadata = _beside(parent, values)
    if chunk.derived or origin.passage:
        metadata[DERIVED] = True
    return metadata


def with_white_space(
    text: str, chunks: Iterable[Chunk], following: str = ""
) -> Iterator[tuple[Chunk, str]]:
    r"""Each chunk of a text, and the white space up to the next one; "" if they overlap or other text is between.

    `following` is the white space after the text itself, if the text is a chunk of a larger one.

    >>> chunks = [Chunk("d", 0, (Span(0, 1),), "a", 1), Chunk("d", 1, (Span(3, 4),), "b", 1)]
    >>> [white_space for _, white_space in with_white_space("a\n\nb ", chunks, "\n")]
    ['\n\n', ' \n']
    """
    listed = list(chunks)
    for chunk, later in zip_longest(listed, listed[1:]):
        end = chunk.spans[-1].end
        gap = text[end:] + following if later is None else text[end : later.spans[0].start]
        if not gap.isspace():
            gap = ""
        yield chunk, gap


def chunk_records(
    document: Document,
    chunks: Sequence[Chunk],
    origin: Origin,
    parent: MetadataLike,
    keys: PlaceKeys,
    taken: set[str],
) -> Iterator[tuple[str, str, Metadata]]:
    """Each chunk's text, its id, and its metadata beside its document's.

    These are its place, `chunk_metadata`, its pages and the white space after it. `origin` is the place of the
    document's text in its source; `parent` are the metadata that chunks inherit; `taken` are ids in use, to which the
    chunks' ids are added.
    """
    marks = marks_of(document.metadata)
    following = document.metadata.get(WHITE_SPACE)
    if not isinstance(following, str):
        following = ""
    for chunk, gap in with_white_space(document.text, chunks, following):
        place = chunk_place(chunk, origin)
        record = chunk_metadata(chunk, parent, origin)
        record |= keys.write(place) | keys.write_pages(marks, place, parent)
        if gap and not chunk.derived:
            record[WHITE_SPACE] = gap
        yield chunk.text, unused_id(chunk.id, taken), record


def inherited(
    metadata: MetadataLike,
    *,
    of_a_chunk: bool,
    drop: Sequence[str] = (),
) -> Metadata:
    """The metadata that a chunk inherits, as a copy.

    From a chunk that is cut again: all but its own spans, copies, white space and the keys to `drop`. From a source
    document: all but its page marks; ``spans`` and ``derived`` that read like a chunk's place become
    ``source_spans`` and ``source_derived``.
    """
    kept = {key: value for key, value in metadata.items() if key != PAGE_MARKS}
    if of_a_chunk:
        for key in (SPANS, ALSO_IN, WHITE_SPACE, *drop):
            kept.pop(key, None)
        return kept
    if read_spans(kept.get(SPANS)):
        kept["source_spans"] = kept.pop(SPANS)
    if kept.get(DERIVED) is True:
        kept["source_derived"] = kept.pop(DERIVED)
    return kept


# ---- Pages that a loader gave one by one

PAGE_KEYS = ("page", "page_label", "page_number")


class _Page(NamedTuple):
    source: str
    text: str
    metadata: MetadataLike
    number: int | None = None
    label: str = ""


def join_pages(documents: object) -> Document:
    r"""One chunkcore `Document` of a file's pages, with page marks, so that chunks cross pages and still name them.

    Args:
        documents: LangChain's documents of a file (``page`` from 0, ``page_label`` or ``page_number``), LlamaIndex'
            (``page_label``), or Haystack's (``page_number``, or form feeds in one document).

    Line ends stand between pages. The id is the pages' ``source``, ``file_path`` or ``file_name``; the metadata are
    those that all pages share.

    Raises `DataError`: no text, several sources (see `join_pages_by_source`), or not documents of these kinds.

    >>> from types import SimpleNamespace
    >>> page = lambda text, number: SimpleNamespace(page_content=text, metadata={"source": "a.pdf", "page": number})
    >>> joined = join_pages([page("Black", 0), page("tea", 1)])
    >>> joined.text, joined.pages_of(Span(3, 7)), joined.id
    ('Black\ntea', (1, 2), 'a.pdf')
    """
    joined = join_pages_by_source(documents)
    if len(joined) > 1:
        names = ", ".join(repr(document.id) for document in joined[:3])
        raise DataError(
            f"expected the pages of one file, got {len(joined)} ({names}, ...): use join_pages_by_source"
        )
    return joined[0]


def join_pages_by_source(documents: object) -> list[Document]:
    """`join_pages` for the pages of several files, in the order of their first pages."""
    if isinstance(documents, str | Mapping) or not isinstance(documents, Iterable):
        raise DataError(f"expected a list of documents, got {type(documents).__name__}")
    sources = defaultdict(list)
    for number, document in enumerate(documents):
        for page in _pages(document, number):
            sources[page.source].append(page)
    if not sources:
        raise DataError("expected at least one document, got none")
    return [_joined(source, pages) for source, pages in sources.items()]


def _pages(document: object, number: int) -> list[_Page]:
    """The pages of a framework's document, which is the `number`-th."""
    metadata = getattr(document, "metadata", getattr(document, "meta", None))
    texts = [getattr(document, key, None) for key in ("page_content", "text", "content")]
    text = next(filter(None, texts), "")
    if not isinstance(metadata, Mapping) or not isinstance(text, str):
        raise DataError(
            f"document {number} is a {type(document).__name__}: expected one of LangChain's, LlamaIndex' or "
            "Haystack's documents"
        )
    candidates = list(map(metadata.get, NAMING_KEYS))
    if not metadata.keys().isdisjoint(PAGE_KEYS):
        candidates.append("document")
    identity = getattr(document, "id", None) or f"document-{number}"
    source = names_of(*candidates, str(identity))[0]
    first, label = page_of(metadata)
    parts = text.split("\f") if hasattr(document, "meta") else [text]
    if len(parts) == 1:
        return [_Page(source, text, metadata, first, label)]
    return [_Page(source, part, metadata, page) for page, part in enumerate(parts, first or 1)]


def page_of(metadata: MetadataLike) -> Page:
    """A page's number, from 1, and its label, as loaders write them."""
    label = str(metadata.get("page_label") or "")
    number, index = whole_number(metadata.get("page_number")), whole_number(metadata.get("page"))
    if number is None and index is not None:
        number = index + 1
    if number is None:
        label = label or str(metadata.get("page_number") or "")
        if label.isdecimal() and label.isascii():
            number = int(label)
    return number, label


def _joined(source: str, pages: Sequence[_Page]) -> Document:
    texts = []
    marks = []
    end = number = 0
    # Elements of one page, as some loaders give, are one page.
    for (stated, label), group in groupby(pages, key=lambda page: (page.number, page.label)):
        text = "\n".join([page.text for page in group if page.text])
        number = number + 1 if stated is None else stated
        if not text.strip():
            continue  # a picture: it has a number and no text
        texts.append(text)
        marks.append(_page_mark(number, end, end + len(text), label))
        end += len(text) + 1
    if not texts:
        raise DataError(
            f"the pages of {source!r} have no text: they may be pictures; recognise their text first (OCR)"
        )
    metadata = shared_items([page.metadata for page in pages])
    for key in PAGE_KEYS:
        metadata.pop(key, None)
    return Document(source, "\n".join(texts), metadata, tuple(marks))


def shared_items(mappings: Sequence[MetadataLike]) -> Metadata:
    """The items that all mappings have.

    >>> shared_items([{"a": 1, "b": 2}, {"a": 1, "b": 3}])
    {'a': 1}
    """
    first, *others = mappings or [{}]
    shared = dict(first)
    for key, value in first.items():
        try:
            is_shared = all(key in other and value == other[key] for other in others)
        except ValueError:  # NumPy's arrays
            is_shared = False
            with suppress(TypeError):
                is_shared = all(plain(value) == plain(other.get(key)) for other in others)
        if not is_shared:
            del shared[key]
    return shared
