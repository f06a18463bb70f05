"""Hits that share text become one, so that no token goes to a language model twice. Nothing here knows a framework."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from chunkadapters._ids import digest
from chunkadapters._origin import Origin
from chunkadapters._told import SEGMENTS, SPANS
from chunkcore.document import Span
from chunkcore.errors import OptionError
from chunkcore.spans import merge_touching

__all__ = ["GAP", "MERGED_IDS", "SEPARATOR", "Hit", "Merging", "United", "merged_id", "merged_metadata"]

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
