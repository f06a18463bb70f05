"""Any Haystack splitter with right places, as a Haystack component."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from haystack import Document, component

from chunkadapters._haystack import KEYS, Serialized, check_documents, has_text
from chunkadapters.aligned import Piece, Unplaced, placed_records
from chunkadapters.places import WHOLE
from chunkcore.document import Document as CoreDocument
from haystack_integrations.components.preprocessors.chunkadapters.document_splitter import (
    page_numbers,
    root_places,
    shared,
)


@component
class ChunkcoreExactSplitter(Serialized):
    """Runs a splitter component, and writes each chunk's place: what `exact` makes of Haystack's splitters.

    The chunks are the splitter's, with their ids and metadata. Right are ``split_idx_start``, ``split_idx_end``,
    ``page_number``, ``root_source_id`` and its places, and ``_split_overlap``, as in `ChunkcoreDocumentSplitter`. A
    chunk whose place is not known has none of the places: its text is not in the document (``located`` "unlocated",
    ``derived`` true), or has several equally good places ("ambiguous"). A chunk of a chunk, as of a
    `HierarchicalDocumentSplitter`, is placed in that chunk, its ``source_id``.

    Args:
        splitter: a component that takes and gives documents.
        unplaced: "mark" chunks that are not in the text, or "refuse" them with a `DataError`.

    >>> from haystack.components.preprocessors import DocumentSplitter
    >>> splitter = ChunkcoreExactSplitter(DocumentSplitter(split_by="word", split_length=2))
    >>> [chunk.meta["split_idx_end"] for chunk in splitter.run([Document(content="one two one")])["documents"]]
    [8, 11]
    """

    def __init__(self, splitter: Any, unplaced: Unplaced = "mark") -> None:
        self.splitter = splitter
        self.unplaced = unplaced

    def warm_up(self) -> None:
        """Load what the splitter loads."""
        if hasattr(self.splitter, "warm_up"):
            self.splitter.warm_up()

    @component.output_types(documents=list[Document])
    def run(self, documents: list[Document]) -> dict[str, list[Document]]:
        """Split documents. Returns ``{"documents": chunks}``, in the documents' order.

        Raises:
            TypeError: not a list of `Document`.
            DataError: a chunk is not in its document, and `unplaced` is "refuse".
        """
        check_documents(self, documents)
        self.warm_up()
        split: list[Document] = []
        for document in documents:
            if document.content is None or has_text(document):
                split += self._placed(document, self.splitter.run(documents=[document])["documents"])
        return {"documents": split}

    @component.output_types(documents=list[Document])
    async def run_async(self, documents: list[Document]) -> dict[str, list[Document]]:
        return await asyncio.to_thread(self.run, documents)

    def _placed(self, document: Document, chunks: Sequence[Document]) -> list[Document]:
        by_source: dict[str, list[int]] = defaultdict(list)
        for place, chunk in enumerate(chunks):
            if chunk.content and chunk.id != document.id:
                by_source[chunk.meta.get("source_id", document.id)].append(place)
        parents = {chunk.id: chunk for chunk in (*chunks, document)}
        placed = list(chunks)
        for source_id, places in by_source.items():
            parent = parents.get(source_id, document)
            for place, chunk in zip(places, self._children(parent, [chunks[i] for i in places]), strict=True):
                placed[place] = chunk
        return placed

    def _children(self, parent: Document, chunks: Sequence[Document]) -> list[Document]:
        """The chunks of one text, with their places in it."""
        source = CoreDocument(parent.id, parent.content or "", parent.meta)
        pieces = [Piece(chunk.content or "", start=chunk.meta.get(KEYS.start)) for chunk in chunks]
        rows = list(placed_records(source, pieces, WHOLE, KEYS, self.unplaced))
        cut = [row for row, _ in rows]
        metas: list[dict[str, Any]] = []
        places = zip(chunks, rows, page_numbers(parent, cut), root_places(parent, cut), strict=True)
        for chunk, (_, record), page, root in places:
            kept = {key: value for key, value in chunk.meta.items() if key != KEYS.start}
            metas.append({**kept, "source_id": parent.id, **record, **root})
            if KEYS.start in record and "page_number" not in record:
                metas[-1]["page_number"] = page
            if "_split_overlap" in kept:
                metas[-1]["_split_overlap"] = []
        for (left, left_meta), (right, right_meta) in pairwise(zip(cut, metas, strict=True)):
            if "_split_overlap" in left_meta and KEYS.start in left_meta and KEYS.start in right_meta:
                for range_left, range_right in shared(left.spans, right.spans, 0):
                    left_meta["_split_overlap"].append({"doc_id": chunks[right.index].id, "range": range_right})
                    right_meta["_split_overlap"].append({"doc_id": chunks[left.index].id, "range": range_left})
        return [replace(chunk, meta=meta) for chunk, meta in zip(chunks, metas, strict=True)]
