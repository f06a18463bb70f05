"""Small documents to find large ones by, as Haystack's `AutoMergingRetriever` wants them."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import Any

from haystack import Document, component, default_from_dict, default_to_dict

from chunkadapters._haystack.retrieval import hit_of
from chunkadapters.places import SEGMENTS, decode_segments, digest, segment_texts, unused_id
from chunkcore.errors import OptionError
from haystack_integrations.components.preprocessors.chunkadapters.document_splitter import (
    ChunkcoreDocumentSplitter,
    place,
)

__all__ = ["ChunkcoreChildSplitter"]

_OWN_PLACE = (SEGMENTS, "spans", "_split_overlap", "root_spans", "__children_ids")


@component
class ChunkcoreChildSplitter:
    """Cuts chunks into children that are embedded and searched, while the chunks stay for the answer.

    Both have the metadata by which Haystack's `AutoMergingRetriever` knows them: ``__parent_id``, ``__children_ids``,
    ``__level`` and ``__block_size`` (the strategy's ``size``, or 0 where it has none). A chunk with segments (of the
    strategy ``hierarchical``) has these as children; any other is cut by `strategy`.

    Args:
        strategy: by which chunks without segments are cut, as a spec string; None: such a chunk is its own only child.

    Raises:
        OptionError: a `ValueError`: it is no spec string.

    >>> place = {"source_id": "a", "split_idx_start": 0}
    >>> parent = Document(id="p", content="One two three. Four five six.", meta=place)
    >>> found = ChunkcoreChildSplitter("recursive:size=3,counter=words").run([parent])
    >>> [each.content for each in found["children"]], len(found["parents"][0].meta["__children_ids"])
    (['One two three.', 'Four five six.'], 2)
    """

    def __init__(self, strategy: str | None = None) -> None:
        if not isinstance(strategy, str | None):
            raise OptionError(f"strategy is a spec string such as 'recursive:size=50', got {type(strategy).__name__}")
        self.strategy = strategy
        self._splitter = None if strategy is None else ChunkcoreDocumentSplitter(strategy)

    def to_dict(self) -> dict[str, Any]:
        """The component as plain values."""
        return default_to_dict(self, strategy=self.strategy)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> ChunkcoreChildSplitter:
        """The component that `to_dict` described."""
        return default_from_dict(cls, data)

    def warm_up(self) -> None:
        """Load what the strategy loads."""
        if self._splitter is not None:
            self._splitter.warm_up()

    @component.output_types(parents=list[Document], children=list[Document])
    def run(self, documents: list[Document]) -> dict[str, list[Document]]:
        """Cut chunks into children.

        Args:
            documents: chunks, as `ChunkcoreDocumentSplitter` makes them.

        Returns:
            ``parents``, the chunks with what refers to their children, and ``children``.

        Raises:
            TypeError: not a list of `Document`.
        """
        if not isinstance(documents, list) or not all(isinstance(each, Document) for each in documents):
            raise TypeError("ChunkcoreChildSplitter expects a list of Documents as input")
        parents: list[Document] = []
        children: list[Document] = []
        for chunk in documents:
            level = chunk.meta.get("__level", 0)
            own = self._children(chunk)
            told = {"__level": level + 1, "__block_size": self._block_size, "__parent_id": chunk.id}
            children += [replace(each, meta={**each.meta, **told, "__children_ids": []}) for each in own]
            meta = {"__block_size": 0, "__parent_id": None, "__level": level, **chunk.meta}
            parents.append(replace(chunk, meta={**meta, "__children_ids": [each.id for each in own]}))
        return {"parents": parents, "children": children}

    @property
    def _block_size(self) -> int:
        size = getattr(getattr(self._splitter, "chunker", None), "size", 0)
        return size if isinstance(size, int) else 0

    def _children(self, chunk: Document) -> list[Document]:
        segments = decode_segments(chunk.meta.get(SEGMENTS))
        if not segments and self._splitter is not None and chunk.content:
            found: list[Document] = self._splitter.run([chunk])["documents"]
            return found
        rooted = isinstance(chunk.meta.get("root_source_id"), str)
        prefix, several = ("root_idx_", "root_spans") if rooted else ("split_idx_", "spans")
        kept = {key: value for key, value in chunk.meta.items() if key not in _OWN_PLACE}
        made: list[Document] = []
        taken: set[str] = set()
        for spans, text in segment_texts(hit_of(chunk), segments):
            meta = deepcopy(kept) | (place(spans, prefix, several) if spans else {})
            made.append(Document(id=unused_id(digest(f"{chunk.id}{spans}{text}"), taken), content=text, meta=meta))
        return made
