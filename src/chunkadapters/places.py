"""Hits that share text become one, so that no token goes to a language model twice. Nothing here knows a framework."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, TypeVar

from chunkcore.document import Chunk, Span
from chunkcore.errors import DataError, OptionError
from chunkcore.models import LateEmbedder
from chunkcore.models.base import Embedder
from chunkcore.spans import merge_touching

__all__ = [
    "BOOKKEEPING",
    "CONTEXT",
    "DERIVED",
    "GAP",
    "MERGED_IDS",
    "SEGMENTS",
    "SEPARATOR",
    "SPANS",
    "Hit",
    "Merging",
    "Origin",
    "United",
    "decode_segments",
    "decode_spans",
    "digest",
    "encode_segments",
    "encode_spans",
    "inherited",
    "late_vectors",
    "merged_id",
    "merged_metadata",
    "segment_texts",
    "told",
    "unused_id",
]


def digest(text: str) -> str:
    """32 hexadecimal digits of a text; unpaired surrogates are welcome."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def unused_id(chunk_id: str, taken: set[str]) -> str:
    """The id, or one made from it where it is `taken`; it then is.

    Chunks share an id where a document is handed in twice, or where an overlap stripped of its white
    space leaves the very span of the chunk before. Vector stores refuse equal ids or keep one of them.

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


# A paragraph break with a carriage return: what strategies leave out between neighbours.
GAP = 4
SEPARATOR = "\n"
MERGED_IDS = "merged_ids"

K = TypeVar("K")
# Of each hit, by its place among all, its spans with the text at each.
Parts = dict[int, list[tuple[Span, str]]]


@dataclass(frozen=True, slots=True)
class Hit:
    """A retriever's result.

    Attributes:
        document: what names the document that the spans refer to; "" where nothing does.
        spans: where it stands there, as it says.
        text: its text; where it is not what stands at the spans, the hit has no place.
        derived: whether a model wrote the text.
    """

    document: str
    spans: tuple[Span, ...]
    text: str
    derived: bool = False

    def parts(self) -> list[tuple[Span, str]]:
        """Its spans with the text at each; none where the text does not fit them."""
        if not self.spans or not self.document or self.derived:
            return []
        start, end = min(self.spans).start, max(span.end for span in self.spans)
        origin = Origin.stated(len(self.text), start, end, self.spans)
        if origin.shift is not None:
            return [(Span(start, end), self.text)]
        return [(span, self.text[offset : offset + len(span)]) for offset, span in origin.parts or ()]


@dataclass(frozen=True, slots=True)
class United:
    """One hit, or several that are one now.

    Attributes:
        members: their places among the hits, the best first.
        first: the member that begins first in the document.
        spans: where it stands, in order; none where its place is not known.
        text: what stands there.
    """

    members: tuple[int, ...]
    first: int
    spans: tuple[Span, ...]
    text: str


@dataclass(frozen=True, kw_only=True)
class Merging:
    """Unites hits of one document that overlap, that are adjacent, or between which next to nothing stands.

    What stands between two hits is not known here, so that it is not filled in: their texts are joined by the
    separator, and the united one is of several spans.

    Attributes:
        max_gap: so many characters between two hits are next to nothing; 0 for hits that touch.
        separator: what joins texts between which something stands.

    Raises:
        OptionError: the gap is no whole number of at least 0, or the separator no text.
    """

    max_gap: int = GAP
    separator: str = SEPARATOR

    def __post_init__(self) -> None:
        if type(self.max_gap) is not int or self.max_gap < 0:
            raise OptionError(f"max_gap is a whole number of at least 0, got {self.max_gap!r}")
        if not isinstance(self.separator, str):
            raise OptionError(f"separator is a text, got {self.separator!r}")

    def unite(self, hits: Sequence[Hit]) -> list[United]:
        """The hits, united, in the order of the best of each.

        The union of their spans stays what it was, and no two of the results overlap. A hit stays as it is where its
        place is not known, where its text is none that stands there (it was altered, or a model wrote it), or where
        its text is another than a better hit's at the same place: that is of another version of the document. Of
        hits without a place that say the same one is kept.

        Time is quadratic in the number of hits of one document.

        >>> hits = [Hit("d", (Span(4, 9),), "two t"), Hit("d", (Span(0, 7),), "one two")]
        >>> Merging().unite(hits)
        [United(members=(0, 1), first=1, spans=(Span(start=0, end=9),), text='one two t')]
        """
        placed: dict[str, Parts] = {}
        found: list[United] = []
        seen: set[tuple[str, tuple[Span, ...], str]] = set()
        for place, hit in enumerate(hits):
            if parts := hit.parts():
                placed.setdefault(hit.document, {})[place] = parts
            elif (said := (hit.document, hit.spans, hit.text)) not in seen:
                seen.add(said)
                found.append(United((place,), place, hit.spans, hit.text))
        for of_one in placed.values():
            for group in _versions(of_one):
                found += [self._united(each, hits) for each in self._together(group)]
        return sorted(found, key=lambda each: each.members[0])

    def _together(self, parts: Parts) -> Iterator[Parts]:
        """The hits, those together that lie together."""
        parents = {place: place for place in parts}
        reach, before = -1, -1
        ends = sorted((span.start, span.end, place) for place, own in parts.items() for span, _ in own)
        for start, end, place in ends:
            if before >= 0 and start - reach <= self.max_gap:
                a, b = _root(parents, before), _root(parents, place)
                parents[max(a, b)] = min(a, b)
            if end > reach:
                reach, before = end, place
        groups: dict[int, Parts] = {}
        for place, own in parts.items():
            groups.setdefault(_root(parents, place), {})[place] = own
        yield from groups.values()

    def _united(self, parts: Parts, hits: Sequence[Hit]) -> United:
        if len(parts) == 1:
            (place,) = parts
            return United((place,), place, hits[place].spans, hits[place].text)
        ordered = sorted((part for own in parts.values() for part in own), key=lambda part: part[0])
        spans: list[Span] = []
        texts: list[str] = []
        for span, text in ordered:
            if spans and span.start <= spans[-1].end:
                new = max(0, span.end - spans[-1].end)
                texts[-1] += text[len(text) - new :]
                spans[-1] = Span(spans[-1].start, spans[-1].end + new)
            else:
                spans.append(span)
                texts.append(text)
        first = min(parts, key=lambda place: (min(span.start for span, _ in parts[place]), place))
        return United(tuple(sorted(parts)), first, merge_touching(spans), self.separator.join(texts))


def _root(parents: dict[int, int], place: int) -> int:
    while parents[place] != place:
        parents[place] = parents[parents[place]]
        place = parents[place]
    return place


def _versions(parts: Parts) -> Iterator[Parts]:
    """The hits of one document, those together that agree on what stands where, the best hit's version first."""
    while parts:
        agreed: Parts = {}
        others: Parts = {}
        accepted: list[tuple[Span, str]] = []
        for place, own in parts.items():  # the best first
            if all(_agree(mine, other) for mine in own for other in accepted):
                agreed[place] = own
                accepted += own
            else:
                others[place] = own
        yield agreed
        parts = others


def _agree(left: tuple[Span, str], right: tuple[Span, str]) -> bool:
    """Whether two texts are the same where their spans overlap."""
    (a, left_text), (b, right_text) = left, right
    start, end = max(a.start, b.start), min(a.end, b.end)
    return end <= start or left_text[start - a.start : end - a.start] == right_text[start - b.start : end - b.start]


def merged_id(ids: Iterable[str]) -> str:
    """An id for what several hits have become: the same for the same ones, whatever their order."""
    return digest("\n".join(sorted(ids)))


def merged_metadata(first: Mapping[K, Any], ids: Iterable[object], drop: Iterable[str] = ()) -> dict[Any, Any]:
    """The metadata of the hit that begins first, and whose hits' ids they are now.

    Page, headings and the like are those of where the text begins. What was said of the first hit's own spans is left
    out: the caller says where the united one stands.
    """
    gone = {SPANS, SEGMENTS, *drop}
    return {key: value for key, value in first.items() if key not in gone} | {MERGED_IDS: ",".join(map(str, ids))}


def late_vectors(
    chunks: Sequence[Hit], texts: Mapping[str, str], model: LateEmbedder | Embedder | str
) -> list[list[float]]:
    """A vector a chunk, in the context of its whole document.

    Args:
        chunks: with the document that each is of, and its spans there.
        texts: of the documents.
        model: with token vectors; see `LateEmbedder`.

    Raises:
        DataError: a chunk says no place, or one in a document that is not given or has another text there.
        OptionError: the model gives no token vectors.
        ModelError: the model failed, or answered with something that is no answer, twice.
    """
    late = model if isinstance(model, LateEmbedder) else LateEmbedder(model)
    rows: dict[str, list[int]] = {}
    for row, chunk in enumerate(chunks):
        _check(chunk, texts)
        rows.setdefault(chunk.document, []).append(row)
    found: list[list[float]] = [[] for _ in chunks]
    for document, own in rows.items():
        vectors = late.embed_spans(texts[document], [chunks[row].spans for row in own])
        for row, vector in zip(own, vectors.tolist(), strict=True):
            found[row] = vector
    return found


def _check(chunk: Hit, texts: Mapping[str, str]) -> None:
    shown = f"the chunk that begins with {chunk.text[:40]!r}"
    if not chunk.document or not chunk.spans:
        raise DataError(f"{shown} does not say where in its document it stands: cut it with chunkadapters' splitter")
    if chunk.document not in texts:
        raise DataError(
            f"{shown} is of {chunk.document!r}, which is not among the documents: give those it was cut from"
        )
    text = texts[chunk.document]
    if any(span.slice(text) != part for span, part in chunk.parts()):
        raise DataError(f"{shown} does not stand where it says in {chunk.document!r}: give the text it was cut from")


def segment_texts(
    chunk: Hit, segments: Sequence[tuple[Span, ...]], separator: str = "\n"
) -> list[tuple[tuple[Span, ...], str]]:
    """The places and texts of a chunk's segments; the chunk's own where it has none.

    >>> chunk = Hit("d", (Span(10, 30),), "Tea is hot. It boils")
    >>> segment_texts(chunk, [(Span(10, 21),), (Span(22, 30),)])[1]
    ((Span(start=22, end=30),), 'It boils')
    """
    parts = chunk.parts()
    found = []
    for segment in segments if parts else ():
        slices = [
            text[max(span.start, own.start) - own.start : min(span.end, own.end) - own.start]
            for span in segment
            for own, text in parts
            if max(span.start, own.start) < min(span.end, own.end)
        ]
        if slices:
            found.append((segment, separator.join(slices)))
    return found or [(chunk.spans, chunk.text)]
