"""Overlapping hits of a Haystack retriever as one document."""

from __future__ import annotations

from collections.abc import Sequence

from haystack import Document, component

from chunkadapters._haystack import Serialized, check_documents, hit_of, joined_meta
from chunkadapters.hits import GAP, SEPARATOR, MergedHit, merge_hits, merged_id
from chunkcore.errors import OptionError
from chunkcore.registry import check_number


@component
class ChunkcoreMergeOverlaps(Serialized):
    """Merges hits of one document that overlap or touch, so that no token goes to the model twice.

    Best after a ranker and before a prompt builder. Results are in the order of their best hits, with its score. A
    merged document has the source's text at ``split_idx_start``, ``split_idx_end`` and (for several places) ``spans``;
    the other metadata of the first hit by place, with its page and ``split_id``; and ``merged_ids``, the hits' ids,
    best first. Hits of a chain of splitters are merged by their places in its first document (``root_source_id``,
    ``root_idx_start``) and state only these. A hit is unchanged if it does not state its place, or if its text differs
    from the source there.

    Args:
        max_gap: also merge hits with at most this many characters between them; by default those of a paragraph break.
            The text of the gap is unknown: the result has several spans.
        separator: joins texts across a gap.

    Raises:
        OptionError: a `ValueError`: an option is out of range.

    >>> hits = [
    ...     Document(content=text, meta={"source_id": "tea", "split_idx_start": start})
    ...     for start, text in [(8, "is hot."), (0, "The tea is")]
    ... ]
    >>> [each.content for each in ChunkcoreMergeOverlaps().run(hits)["documents"]]
    ['The tea is hot.']
    """

    def __init__(self, max_gap: int = GAP, separator: str = SEPARATOR) -> None:
        check_number("max_gap", max_gap)
        if not isinstance(separator, str):
            raise OptionError(f"separator is a text, got {separator!r}")
        self.max_gap, self.separator = max_gap, separator

    @component.output_types(documents=list[Document])
    def run(self, documents: list[Document]) -> dict[str, list[Document]]:
        """Merge hits, given best first. Returns ``{"documents": merged}``, in the order of their best hits.

        Raises `TypeError` unless given a list of `Document`.
        """
        check_documents(self, documents)
        merged = merge_hits(list(map(hit_of, documents)), self.max_gap, self.separator)
        return {"documents": [_document(each, documents) for each in merged]}


def _document(merged: MergedHit, hits: Sequence[Document]) -> Document:
    if len(merged.members) == 1:
        return hits[merged.first]
    members = [hits[rank] for rank in merged.members]
    ids = [each.id for each in members]
    meta = joined_meta([hits[merged.first].meta, *(each.meta for each in members)], ids, merged.spans)
    return Document(id=merged_id(ids), content=merged.text, meta=meta, score=members[0].score)
