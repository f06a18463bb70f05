"""Overlapping and adjacent hits of a Haystack retriever as one document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from haystack import Document, component, default_from_dict, default_to_dict

from chunkadapters._haystack.retrieval import hit_of
from chunkadapters.places import GAP, SEPARATOR, Merging, United, merged_id, merged_metadata
from haystack_integrations.components.preprocessors.chunkadapters.document_splitter import place

__all__ = ["ChunkcoreMergeOverlaps"]

# What a hit says of its own place, or of its neighbours.
_OF_ONE_HIT = ("_split_overlap", "root_spans", "split_idx_end", "root_idx_end")


@component
class ChunkcoreMergeOverlaps:
    """Unites hits of one document that overlap or are adjacent, so that no token goes to the model twice.

    Best after a ranker and before a prompt builder. The result is in the order of the best hit of each, with its
    score. A united document has the source's text at ``split_idx_start``, ``split_idx_end`` and, where that is several
    places, ``spans``; the other metadata of the hit that begins first, its page and ``split_id`` among them; and
    ``merged_ids``, the ids of the hits, the best first. Hits that came through a chain of splitters are united by
    their places in its root (``root_source_id``, ``root_idx_start``), and say only these. A hit stays as it is where it
    does not say where it stands, or where its text is not what stands there.

    Args:
        max_gap: hits with so many characters between them are adjacent; set is what a paragraph break may have. What
            stands there is not known: the texts are joined by the separator, and the document is of several spans.
        separator: what joins texts between which something stands.

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
        self._merging = Merging(max_gap=max_gap, separator=separator)

    def to_dict(self) -> dict[str, Any]:
        """The component as plain values."""
        return default_to_dict(self, max_gap=self._merging.max_gap, separator=self._merging.separator)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> ChunkcoreMergeOverlaps:
        """The component that `to_dict` described."""
        return default_from_dict(cls, data)

    @component.output_types(documents=list[Document])
    def run(self, documents: list[Document]) -> dict[str, list[Document]]:
        """Unite hits.

        Args:
            documents: the hits, the best first.

        Returns:
            ``{"documents": united}``, in the order of the best of each.

        Raises:
            TypeError: not a list of `Document`.
        """
        if not isinstance(documents, list) or not all(isinstance(each, Document) for each in documents):
            raise TypeError(f"{type(self).__name__} expects a list of Documents as input, got {_described(documents)}")
        return {"documents": [_document(each, documents) for each in self._merging.unite(list(map(hit_of, documents)))]}


def _described(given: Any) -> str:
    if not isinstance(given, list):
        return type(given).__name__
    return f"a list with {next(type(each).__name__ for each in given if not isinstance(each, Document))}"


def _document(united: United, hits: Sequence[Document]) -> Document:
    if len(united.members) == 1:
        return hits[united.first]
    members = [hits[place] for place in united.members]
    ids = [each.id for each in members]
    meta = merged_metadata(hits[united.first].meta, ids, _OF_ONE_HIT)
    if "root_source_id" in meta:
        meta = {key: value for key, value in meta.items() if not key.startswith("split_") and key != "source_id"}
        meta |= place(united.spans, "root_idx_", "root_spans")
    else:
        meta |= place(united.spans, "split_idx_", "spans")
    return Document(id=merged_id(ids), content=united.text, meta=meta, score=members[0].score)
