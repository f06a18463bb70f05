"""Overlapping and adjacent hits of a LangChain retriever as one document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.callbacks import Callbacks
from langchain_core.documents import BaseDocumentCompressor, BaseDocumentTransformer, Document
from pydantic import Field, PrivateAttr

from chunkadapters._merging import GAP, SEPARATOR, Merging, United, merged_id, merged_metadata
from chunkadapters.langchain.pieces import hit_of
from chunkadapters.langchain.splitter import place_of

__all__ = ["MergeOverlaps", "merge_overlaps"]


class MergeOverlaps(BaseDocumentTransformer, BaseDocumentCompressor):
    """Unites hits of one source that overlap or are adjacent, so that no token goes to the model twice.

    A document compressor, for ``ContextualCompressionRetriever(base_compressor=MergeOverlaps(), ...)``, and a document
    transformer, for ``DocumentCompressorPipeline`` and ``retriever | MergeOverlaps().transform_documents``.

    The result is in the order of the best hit of each. A united document has the text of its source at ``start_index``,
    ``end_index`` and, where that is several places, ``spans``; the other metadata of the hit that begins first, but
    the score of the best one; and ``merged_ids``, the ids of the hits, the best first. A hit stays as it is where it
    does not say where it stands (``source_id`` or ``source``, and ``start_index``), or where its text is not what
    stands there.

    Args:
        max_gap: hits with so many characters between them are adjacent; set is what a paragraph break may have. What
            stands there is not known: the texts are joined by the separator, and the document is of several spans.
        separator: what joins texts between which something stands.

    Raises:
        pydantic.ValidationError: (a ValueError) an option is out of range.

    >>> hits = [
    ...     Document(page_content=text, metadata={"source": "tea.md", "start_index": start})
    ...     for start, text in [(8, "is hot."), (0, "The tea is")]
    ... ]
    >>> [(each.page_content, each.metadata["end_index"]) for each in MergeOverlaps().transform_documents(hits)]
    [('The tea is hot.', 15)]
    """

    max_gap: int = Field(default=GAP, ge=0, strict=True)
    separator: str = SEPARATOR
    _merging: Merging = PrivateAttr()

    def model_post_init(self, context: Any) -> None:
        self._merging = Merging(max_gap=self.max_gap, separator=self.separator)

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> list[Document]:
        """The hits, united. The query plays no part."""
        return self.transform_documents(documents)

    async def acompress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> list[Document]:
        """`compress_documents`, which waits for nothing."""
        return self.transform_documents(documents)

    def transform_documents(self, documents: Sequence[Document], **kwargs: Any) -> list[Document]:
        """The hits, united.

        Raises:
            DataError: something else than documents is among them.
        """
        united = self._merging.unite([hit_of(each) for each in documents])
        return [_document(each, documents) for each in united]

    async def atransform_documents(self, documents: Sequence[Document], **kwargs: Any) -> list[Document]:
        """`transform_documents`, which waits for nothing."""
        return self.transform_documents(documents)


def merge_overlaps(documents: Sequence[Document], *, max_gap: int = GAP, separator: str = SEPARATOR) -> list[Document]:
    """The hits, united: `MergeOverlaps` at once."""
    return MergeOverlaps(max_gap=max_gap, separator=separator).transform_documents(documents)


def _document(united: United, hits: Sequence[Document]) -> Document:
    if len(united.members) == 1:
        return hits[united.first]
    members = [hits[place] for place in united.members]
    metadata = merged_metadata(hits[united.first].metadata, [each.id for each in members if each.id])
    metadata |= {key: value for key, value in members[0].metadata.items() if key in ("score", "relevance_score")}
    metadata |= place_of(united.spans)
    ids = [each.id or f"{each.metadata.get('start_index')}:{each.page_content}" for each in members]
    return Document(page_content=united.text, metadata=metadata, id=merged_id(ids))
