"""Passages where not even texts are local: a store's hits, and what stands around them, in one more call."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from chunkadapters.behind import (
    UNITS,
    Behind,
    HitIndex,
    OpenedIndex,
    Passage,
    PassageWarning,
    Show,
)
from chunkcore.errors import DataError, OptionError, warn_user
from chunkcore.locating import NO_PLACE, Hit, StatedPlace
from chunkcore.retrieval import chunk_corpus, get_retriever
from chunkcore.retrieval.where import Where
from chunkcore.run import Retrieved
from chunkcore.spans import shifted
from chunkcore.text import Document, offsets_within

__all__ = ["StoreIndex"]

_GAP = 10  # characters between two chunks that are taken as white space


@dataclass(frozen=True, order=True, slots=True)
class _Region:
    """A continuous text of a document, of which a store holds chunks; `start` is its place in the document."""

    document_id: str
    start: int
    text: str

    @property
    def end(self) -> int:
        return self.start + len(self.text)


class StoreIndex(HitIndex):
    """In place of an index on this machine: what a store has around its hits (docs/guides/passages.md).

    The hits and the chunks around them are joined, cut into small units, and scored for the question at every size, as
    by `chunkcore.retrieval.WindowIndex.behind`; how rare a word is, is counted in them alone.

    Args:
        neighbours: a function from a question's hits (`Hit`, with `id`, `document` and `spans`), best first, to pieces
            of their documents: chunks before and after each, which may overlap and repeat the hits. Whoever may not see
            a chunk must not get it from this function: the retriever's filters belong into it, too.

    Passages show the hits' own text, and `neighbours` is not called, unless ``show="whole"`` asks for the texts that
    hold a hit, or ``show="all"`` for all that came back; a call that brings a filter is then refused, as the function
    would not see it. Chunks at most 10 characters apart are one text, with white space between them. A hit without a
    place stays as it is. Some stores write their own address over the names of documents: hits of a name that the
    function gave no piece of are not joined, and hits of a name under which two different texts have one place stay as
    they are. Cost: one call of the store.

    Raises:
        OptionError: `show` is something else, or the index is asked without a retriever.
        DataError: `neighbours` gives something else than `Retrieved` with one span of the text's length.

    >>> from langchain_core.documents import Document
    >>> from langchain_core.runnables import RunnableLambda
    >>> from chunkadapters.langchain import PassageRetriever
    >>> from chunkcore import Span
    >>> chunks = {0: "Tea is hot.", 12: "It boils.", 22: "Ice is cold."}
    >>> hit = Document(page_content=chunks[12], metadata={"source": "tea.md", "start_index": 12})
    >>> def neighbours(hits):
    ...     return [Retrieved("tea.md", (Span(at, at + len(text)),), text=text) for at, text in chunks.items()]
    >>> search = RunnableLambda(lambda question: [hit])
    >>> retriever = PassageRetriever(search, index=StoreIndex(neighbours), show="whole")
    >>> [passage.page_content for passage in retriever.invoke("What boils?")]
    ['Tea is hot. It boils. Ice is cold.']
    """

    shows_more = ("whole", "all")

    def __init__(self, neighbours: Callable[[Sequence[Hit]], Iterable[Retrieved]]) -> None:
        self._neighbours = neighbours
        self._warned: set[str] = set()

    def passages(
        self,
        question: str,
        options: Behind,
        where: Where | None,
    ) -> list[Passage]:
        raise OptionError(
            "StoreIndex answers behind a retriever: it has no texts of its own to search"
        )

    def check_show(self, show: Show) -> None:
        if callable(show):
            raise OptionError(
                'show is "hits", "whole" or "all" with a StoreIndex, which has no metadata of documents'
            )

    def behind(
        self,
        question: str,
        hits: Sequence[Hit],
        options: Behind,
    ) -> list[Passage]:
        parts = set()
        asking = []
        for hit in hits:
            offsets = offsets_within(hit.text, hit.spans)
            if offsets is None or not hit.document or hit.derived:
                continue  # the text does not fit its spans
            for offset, span in zip(offsets, hit.spans, strict=True):
                text = hit.text[offset : offset + len(span)]
                parts.add(_Region(hit.document, span.start, text))
            asking.append(hit)
        around: list[_Region] = []
        if asking and options.show != "hits":
            around += map(_region_of, self._neighbours(asking))
        confirmed = {region.document_id for region in around}
        regions = self._joined(sorted(parts.union(around)), confirmed)
        documents = [Document(name, region.text) for name, region in regions.items()]
        corpus = chunk_corpus(documents, UNITS, workers=1)  # few and short: threads would cost more
        opened = OpenedIndex(get_retriever("passages:lexical").index(corpus))
        opened.warned = self._warned
        inside = [_into_region(hit, regions) for hit in hits]
        answer = opened.behind(question, inside, options)
        return [_out_of_region(passage, regions) for passage in answer]

    def _joined(self, parts: Iterable[_Region], confirmed: Collection[str]) -> dict[str, _Region]:
        """Texts that overlap or almost touch, joined, by name; none of a document with two texts at one place."""
        regions: list[_Region] = []
        torn = set()
        for part in parts:
            name = part.document_id
            if not regions or regions[-1].document_id != name:
                regions.append(part)
                continue
            before = regions[-1]
            gap = part.start - before.end
            if gap < 0:
                shared = before.text[gap:][: len(part.text)]
                if not part.text.startswith(shared):
                    torn.add(name)
                more = part.text[-gap:]
            elif gap <= _GAP and name in confirmed:
                white_space = "\n".ljust(gap) if gap > 1 else " " * gap
                more = white_space + part.text
            else:
                regions.append(part)
                continue
            regions[-1] = replace(before, text=before.text + more)
        if torn - self._warned:
            self._warned |= torn
            warn_user(
                f"the store has two different texts at one place of {min(torn)!r}, so that its hits stay as they are. "
                "Was it written anew, or does the store write one name over those of its documents?",
                PassageWarning,
            )
        return {
            f"{region.document_id} from character {region.start}": region
            for region in regions
            if region.document_id not in torn
        }


def _region_of(piece: Retrieved) -> _Region:
    if isinstance(piece, Retrieved) and len(piece.spans) == 1:
        (span,) = piece.spans
        if len(span) == len(piece.text):
            return _Region(piece.document_id, span.start, piece.text)
    raise DataError(
        f"neighbours gives Retrieved(document_id, (span,), text=...) with the span's text, got {piece!r}"
    )


def _into_region(hit: Hit, regions: Mapping[str, _Region]) -> Hit:
    """The hit with its place in a region; without a name and place if none holds it."""
    for name, region in regions.items():
        inside = [region.start <= span.start and span.end <= region.end for span in hit.spans]
        if inside and all(inside) and region.document_id == hit.document:
            stated = StatedPlace(shifted(hit.spans, -region.start))
            return replace(hit, names=(name,), stated=stated, document=name)
    return replace(hit, names=(), stated=NO_PLACE, document="")


def _out_of_region(passage: Passage, regions: Mapping[str, _Region]) -> Passage:
    if passage.document is None:
        return passage

    def moved(piece: Retrieved) -> Retrieved:
        place = regions[piece.document_id]
        return replace(
            piece,
            document_id=place.document_id,
            spans=shifted(piece.spans, place.start),
            parts=tuple(map(moved, piece.parts)),
            sources=tuple(map(moved, piece.sources)),
        )

    region = regions[passage.document.id]
    document = Document(region.document_id, region.text)
    copies = tuple(_out_of_region(copy, regions) for copy in passage.copies)
    return replace(passage, retrieved=moved(passage.retrieved), document=document, copies=copies)
