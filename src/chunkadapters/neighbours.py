"""Passages where not even texts are local: a store's hits, and what stands around them, in one more call."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from chunkadapters.behind import UNITS, Behind, HitIndex, Limits, OpenedIndex, Passage
from chunkcore.errors import DataError, OptionError, check_type
from chunkcore.locating import NO_PLACE, Hit, StatedPlace
from chunkcore.retrieval import chunk_corpus, get_retriever
from chunkcore.retrieval.where import Where
from chunkcore.run import Retrieved
from chunkcore.spans import shifted
from chunkcore.text import Document, Span, offsets_within

__all__ = ["StoreIndex"]

_GAP = 10  # characters between two chunks that are taken as white space

Place = tuple[str, int, str]  # a document, where in it a text begins, and the text


@dataclass(frozen=True, slots=True)
class _Region:
    """A continuous text of a document that a store holds in chunks; its `id` is a number."""

    id: str
    document_id: str
    start: int
    text: str

    def holds(self, span: Span) -> bool:
        return self.start <= span.start and span.end <= self.start + len(self.text)


class StoreIndex(HitIndex):
    """In place of an index on this machine: what a store has around its hits (docs/guides/passages.md).

    The hits and the chunks around them are joined, cut into small units, and scored for the question at every size, as
    by `chunkcore.retrieval.WindowIndex.behind`; how rare a word is, is counted in them alone.

    Args:
        neighbours: a function from a question's hits (`Hit`, with `id`, `document` and `spans`), best first, to pieces
            of their documents: chunks before and after each, which may overlap and repeat the hits. Whoever may not see
            a chunk must not get it from this function: the retriever's filters belong into it, too.

    Chunks at most 10 characters apart are one text, with white space between them. Passages are of the texts that hold
    a hit, with ``show="all"`` of all that came back. A hit without a place stays as it is. Cost: one call of the store.

    Raises:
        OptionError: `neighbours` is no function, or the index is asked without a retriever.
        DataError: `neighbours` gives something else than `Retrieved` with one span of the text's length.

    >>> from langchain_core.documents import Document
    >>> from langchain_core.runnables import RunnableLambda
    >>> from chunkadapters.langchain import PassageRetriever
    >>> chunks = {0: "Tea is hot.", 12: "It boils.", 22: "Ice is cold."}
    >>> hit = Document(page_content=chunks[12], metadata={"source": "tea.md", "start_index": 12})
    >>> def neighbours(hits):
    ...     return [Retrieved("tea.md", (Span(at, at + len(text)),), text=text) for at, text in chunks.items()]
    >>> retriever = PassageRetriever(RunnableLambda(lambda question: [hit]), index=StoreIndex(neighbours))
    >>> [passage.page_content for passage in retriever.invoke("What boils?")]
    ['Tea is hot. It boils. Ice is cold.']
    """

    def __init__(self, neighbours: Callable[[Sequence[Hit]], Iterable[Retrieved]]) -> None:
        if not callable(neighbours):
            raise OptionError(
                f"neighbours is a function from hits to pieces, got {type(neighbours).__name__}"
            )
        self._neighbours = neighbours
        self._warned: set[str] = set()

    def passages(self, question: str, limits: Limits, where: Where | None = None) -> list[Passage]:
        raise OptionError(
            "StoreIndex answers behind a retriever: it has no texts of its own to search"
        )

    def behind(self, question: str, hits: Sequence[Hit], options: Behind) -> list[Passage]:
        placed = [hit for hit in hits if _parts(hit)]
        pieces = [(hit.document, span.start, text) for hit in placed for span, text in _parts(hit)]
        around = self._neighbours(placed) if placed else ()
        check_type("what neighbours gives", around, Iterable, "several Retrieved")
        pieces += map(_place, around)
        regions = _regions(pieces)
        by_document: dict[str, list[_Region]] = {}
        for region in regions.values():
            by_document.setdefault(region.document_id, []).append(region)
        documents = [Document(region.id, region.text) for region in regions.values()]
        corpus = chunk_corpus(documents, UNITS, workers=1)  # few and short: threads would cost more
        opened = OpenedIndex(get_retriever("passages:lexical").index(corpus))
        opened._warned = self._warned
        options = Behind(
            opened,
            show="all" if options.show == "all" else "whole",
            max_tokens=options.limits.max_tokens,
            k=options.limits.k,
            balance=options.balance,
            counter=options.limits.counter,
        )
        found = opened.behind(question, [_into_region(hit, by_document) for hit in hits], options)
        return [_out_of_region(passage, regions) for passage in found]


def _parts(hit: Hit) -> list[tuple[Span, str]]:
    """The spans of a hit with their texts; [] if the text does not fit them, or is derived."""
    offsets = offsets_within(hit.text, hit.spans)
    if offsets is None or not hit.document or hit.derived:
        return []
    return [
        (span, hit.text[offset : offset + len(span)])
        for offset, span in zip(offsets, hit.spans, strict=True)
    ]


def _place(piece: Any) -> Place:
    if (
        not isinstance(piece, Retrieved)
        or len(piece.spans) != 1
        or len(piece.spans[0]) != len(piece.text)
    ):
        raise DataError(
            f"neighbours gives Retrieved(document_id, (span,), text=...) with the span's text, got {piece!r}"
        )
    return piece.document_id, piece.spans[0].start, piece.text


def _regions(places: Iterable[Place]) -> dict[str, _Region]:
    """Texts that overlap, touch or almost touch, joined. Of two that differ where they overlap, the first counts."""
    joined: list[Place] = []
    for name, start, text in sorted(
        set(places), key=lambda place: (place[0], place[1], -len(place[2]))
    ):
        before, first, whole = joined[-1] if joined else ("", 0, "")
        gap = start - first - len(whole)
        if not joined or name != before or gap > _GAP:
            joined.append((name, start, text))
        elif gap > 0:
            joined[-1] = name, first, whole + ("\n".ljust(gap) if gap > 1 else " ") + text
        elif text.startswith(whole[start - first :]):
            joined[-1] = name, first, whole + text[-gap:]
    return {str(number): _Region(str(number), *place) for number, place in enumerate(joined)}


def _into_region(hit: Hit, regions: Mapping[str, list[_Region]]) -> Hit:
    """The hit with its place in a region; without a name and place if none holds it."""
    candidates = regions.get(hit.document, []) if hit.spans else []
    number = (
        bisect_right([region.start for region in candidates], hit.spans[0].start) - 1
        if candidates
        else -1
    )
    if number < 0 or not all(map(candidates[number].holds, hit.spans)):
        return replace(hit, names=(), stated=NO_PLACE, document="")
    region = candidates[number]
    return replace(
        hit,
        names=(region.id,),
        stated=StatedPlace(shifted(hit.spans, -region.start)),
        document=region.id,
    )


def _out_of_region(passage: Passage, regions: Mapping[str, _Region]) -> Passage:
    if passage.document is None:
        return passage
    region = regions[passage.document.id]

    def moved(piece: Retrieved) -> Retrieved:
        parts = tuple(map(moved, piece.parts))
        return replace(
            piece,
            document_id=region.document_id,
            spans=shifted(piece.spans, region.start),
            parts=parts,
        )

    document = Document(region.document_id, region.text)
    return replace(passage, retrieved=moved(passage.retrieved), document=document)
