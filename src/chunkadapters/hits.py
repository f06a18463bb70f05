"""Hits: what a retriever returned, merged where they overlap, embedded late, and cut into their segments."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from chunkadapters.places import PAGES, SEGMENTS, SPANS, Origin, decode_segments, digest
from chunkcore.document import Chunk, Document, Span
from chunkcore.errors import DataError
from chunkcore.models import Embedder, LateEmbedder
from chunkcore.spans import merge_touching

# A paragraph break with carriage returns: what strategies leave out between neighbours.
GAP = 4
SEPARATOR = "\n"
MERGED_IDS = "merged_ids"

# For each hit, by its rank, its spans with their texts.
Parts = dict[int, list[tuple[Span, str]]]


@dataclass(frozen=True, slots=True)
class Hit:
    """One result of a retriever, as its framework returned it.

    Attributes:
        text: the source text, without anything that the framework wrote around it.
        score: the retriever's score, higher is better; 0 if there is none.
        document_ids: candidate names of the source document, the most telling first.
        spans: the place that the metadata states.
        derived: whether a model wrote the text; `spans` are then the passage it was written from.
        document: the document that `spans` refer to; "" if nothing names it.
    """

    text: str
    score: float = 0.0
    document_ids: tuple[str, ...] = ()
    spans: tuple[Span, ...] = ()
    derived: bool = False
    document: str = ""

    def parts(self) -> list[tuple[Span, str]]:
        """The spans with their texts; [] if the text does not fit them or is derived."""
        if not self.spans or not self.document or self.derived:
            return []
        start, end = min(self.spans).start, max(span.end for span in self.spans)
        origin = Origin.stated(len(self.text), start, end, self.spans)
        if origin.shift is not None:
            return [(Span(start, end), self.text)]
        return [(span, self.text[offset : offset + len(span)]) for offset, span in origin.parts or ()]


def names(*candidates: object) -> tuple[str, ...]:
    """The non-empty strings among the candidates, each once."""
    return tuple(dict.fromkeys(each for each in candidates if isinstance(each, str) and each))


# ---- Merging


@dataclass(frozen=True, slots=True)
class MergedHit:
    """One hit, or several merged into one.

    Attributes:
        members: ranks of the hits, ascending.
        first: the member that begins first in the document.
        spans: its place, ascending; () if unknown.
        text: the text at `spans`.
    """

    members: tuple[int, ...]
    first: int
    spans: tuple[Span, ...]
    text: str


def merge_hits(hits: Sequence[Hit], max_gap: int = GAP, separator: str = SEPARATOR) -> list[MergedHit]:
    """Hits of one document that overlap, touch, or are at most `max_gap` characters apart, merged.

    Results are in the order of each one's best member. The text of a gap is not known: the hits' texts are joined by
    the separator, and the result has several spans. The union of all spans stays the same, and no two results overlap.
    A hit stays as it is if its place is unknown, its text does not fit its spans, or a better hit has another text at
    the same place (another version of the document). Equal hits without a place are kept once. Quadratic in the number
    of hits of one document.

    >>> hits = [Hit("two t", spans=(Span(4, 9),), document="d"), Hit("one two", spans=(Span(0, 7),), document="d")]
    >>> merge_hits(hits)
    [MergedHit(members=(0, 1), first=1, spans=(Span(start=0, end=9),), text='one two t')]
    """
    placed: dict[str, Parts] = {}
    found: list[MergedHit] = []
    seen: set[tuple[str, tuple[Span, ...], str]] = set()
    for rank, hit in enumerate(hits):
        if parts := hit.parts():
            placed.setdefault(hit.document, {})[rank] = parts
        elif (key := (hit.document, hit.spans, hit.text)) not in seen:
            seen.add(key)
            found.append(MergedHit((rank,), rank, hit.spans, hit.text))
    for of_one in placed.values():
        for version in _versions(of_one):
            found += [_merged(group, hits, separator) for group in _groups(version, max_gap)]
    return sorted(found, key=lambda each: each.members[0])


def _groups(parts: Parts, max_gap: int) -> Iterable[Parts]:
    """The hits that lie together: what joins the spans of one hit, or of two, joins their groups."""
    groups = {rank: {rank: own} for rank, own in parts.items()}
    reach, before = -1, -1
    for start, end, rank in sorted((span.start, span.end, rank) for rank, own in parts.items() for span, _ in own):
        if before >= 0 and start - reach <= max_gap and groups[before] is not groups[rank]:
            joined = groups[before] | groups[rank]
            groups |= dict.fromkeys(joined, joined)
        if end > reach:
            reach, before = end, rank
    return {id(group): group for group in groups.values()}.values()


def _merged(parts: Parts, hits: Sequence[Hit], separator: str) -> MergedHit:
    if len(parts) == 1:
        (rank,) = parts
        return MergedHit((rank,), rank, hits[rank].spans, hits[rank].text)
    spans: list[Span] = []
    texts: list[str] = []
    for span, text in sorted((part for own in parts.values() for part in own), key=lambda part: part[0]):
        if spans and span.start <= spans[-1].end:
            new = max(0, span.end - spans[-1].end)
            texts[-1] += text[len(text) - new :]
            spans[-1] = Span(spans[-1].start, spans[-1].end + new)
        else:
            spans.append(span)
            texts.append(text)
    first = min(parts, key=lambda rank: (min(span.start for span, _ in parts[rank]), rank))
    return MergedHit(tuple(sorted(parts)), first, merge_touching(spans), separator.join(texts))


def _versions(parts: Parts) -> Iterator[Parts]:
    """The hits of one document, grouped by agreement on the text at shared places; the best hit's version first."""
    while parts:
        agreed: Parts = {}
        others: Parts = {}
        accepted: list[tuple[Span, str]] = []
        for rank, own in parts.items():  # the best first
            if all(_agree(mine, other) for mine in own for other in accepted):
                agreed[rank] = own
                accepted += own
            else:
                others[rank] = own
        yield agreed
        parts = others


def _agree(left: tuple[Span, str], right: tuple[Span, str]) -> bool:
    (a, left_text), (b, right_text) = left, right
    start, end = max(a.start, b.start), min(a.end, b.end)
    return end <= start or left_text[start - a.start : end - a.start] == right_text[start - b.start : end - b.start]


def merged_id(ids: Iterable[str]) -> str:
    """The id of a merged hit: the same for the same members in any order."""
    return digest("\n".join(sorted(ids)))


def merged_metadata(
    members: Sequence[Mapping[Any, Any]], ids: Iterable[object], drop: Iterable[str] = ()
) -> dict[Any, Any]:
    """The metadata of the first of `members`, the one that begins first; all members' ``pages``; and ``merged_ids``.

    What describes that member's own place is left out; the caller adds the merged place.
    """
    gone = {SPANS, SEGMENTS, *drop}
    found = {key: value for key, value in members[0].items() if key not in gone}
    pages = [each[PAGES].split(", ") for each in members if isinstance(each.get(PAGES), str)]
    if pages and all(number.isdecimal() for own in pages for number in own):
        found[PAGES] = ", ".join(map(str, sorted({int(number) for own in pages for number in own})))
    return found | {MERGED_IDS: ",".join(map(str, ids))}


# ---- Late chunking


def late_vectors(
    chunks: Sequence[Hit], texts: Mapping[str, str], model: LateEmbedder | Embedder | str
) -> list[list[float]]:
    """One vector a chunk, in the context of its whole document.

    Args:
        chunks: with their documents and spans.
        texts: the documents' texts by name.
        model: a model with token vectors; see `LateEmbedder`.

    Raises:
        DataError: a chunk states no place, or its text is not at that place in one of the documents.
        OptionError: the model gives no token vectors.
        ModelError: the model failed, or gave a wrong answer, twice.
    """
    late = model if isinstance(model, LateEmbedder) else LateEmbedder(model)
    for chunk in chunks:
        _check(chunk, texts)
    pieces = [Chunk(each.document, number, each.spans, each.text, 0) for number, each in enumerate(chunks)]
    documents = [Document(name, text) for name, text in texts.items()]
    found: list[list[float]] = late.embed_chunks(documents, pieces).tolist()
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


# ---- Segments: small texts to search, for chunks to answer with


def segments_of(chunk: Hit, metadata: Mapping[Any, Any]) -> list[tuple[tuple[Span, ...], str]]:
    """The place and text of each of a chunk's segments; the chunk itself if it has none.

    >>> chunk = Hit("Tea is hot. It boils", spans=(Span(10, 30),), document="d")
    >>> segments_of(chunk, {"segments": "10-21;22-30"})[1]
    ((Span(start=22, end=30),), 'It boils')
    """
    parts = chunk.parts()
    found = []
    for segment in decode_segments(metadata.get(SEGMENTS)) if parts else ():
        slices = [
            text[max(span.start, own.start) - own.start : min(span.end, own.end) - own.start]
            for span in segment
            for own, text in parts
            if max(span.start, own.start) < min(span.end, own.end)
        ]
        if slices:
            found.append((segment, SEPARATOR.join(slices)))
    return found or [(chunk.spans, chunk.text)]
