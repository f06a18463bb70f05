"""What of an index is to stay, to go and to come when documents are indexed again, as a Haystack component."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from haystack import Document, component, default_from_dict, default_to_dict
from haystack.document_stores.types import DocumentStore

__all__ = ["ChunkcoreIndexUpdater"]

# What says where a chunk stands, and no model reads when it is embedded.
_PLACES = frozenset(
    [
        *("split_id", "split_idx_start", "split_idx_end", "spans", "segments", "page_number", "_split_overlap"),
        *("root_idx_start", "root_idx_end", "root_spans"),
    ]
)


@component
class ChunkcoreIndexUpdater:
    """Stands between a splitter and an embedder: lets through only what has to be embedded, and says what is stale.

    Chunks are compared with those that the store has of the same sources (``source_id``):

    - a chunk that the store has as it is goes nowhere;
    - one whose text and metadata the store has, but at another place, comes out of ``moved`` with the vector that the
      store has;
    - any other comes out of ``documents``; connect that to the embedder;
    - the id of what the store has and is no longer a chunk of its source comes out of ``stale``.

    The store is only read. `ChunkcoreIndexWriter` takes what the embedder made, ``moved`` and ``stale``, writes and
    then deletes: where the embedder fails, nothing is lost.

    Args:
        document_store: the store that is written to. Its ``filter_documents`` should return embeddings (most stores
            have an option for that); chunks without one are embedded again.

    >>> from haystack.document_stores.in_memory import InMemoryDocumentStore
    >>> store = InMemoryDocumentStore()
    >>> old, new = (Document(id=text, content=text, meta={"source_id": "a"}) for text in ("tea", "sea"))
    >>> store.write_documents([old])
    1
    >>> found = ChunkcoreIndexUpdater(store).run([new])
    >>> [each.content for each in found["documents"]], found["stale"], store.count_documents()
    (['sea'], ['tea'], 1)
    """

    def __init__(self, document_store: DocumentStore) -> None:
        self.document_store = document_store

    def to_dict(self) -> dict[str, Any]:
        """The component as plain values, its store as it describes itself."""
        return default_to_dict(self, document_store=self.document_store)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> ChunkcoreIndexUpdater:
        """The component that `to_dict` described."""
        return default_from_dict(cls, data)

    @component.output_types(documents=list[Document], moved=list[Document], stale=list[str], unchanged=int)
    def run(self, documents: list[Document], source_ids: list[str] | None = None) -> dict[str, Any]:
        """Compare chunks with the store, which stays as it is.

        Args:
            documents: all chunks of their sources, as `ChunkcoreDocumentSplitter` makes them.
            source_ids: sources that there may be no chunks of any more: what the store has of them is stale.

        Returns:
            ``documents`` to embed, ``moved`` ones that have a vector, the ids of ``stale`` ones, and how many are
            ``unchanged``.

        Raises:
            TypeError: not a list of `Document`.
            ValueError: a document has no ``source_id``.
        """
        _check(documents)
        sources = sorted({each.meta["source_id"] for each in documents} | set(source_ids or ()))
        known = self._stored(sources)
        by_id = {each.id: each for each in known}
        by_content: defaultdict[Any, list[Document]] = defaultdict(list)
        for each in known:
            if each.embedding is not None or each.sparse_embedding is not None:
                by_content[_content(each)].append(each)
        fresh, moved, unchanged = [], [], 0
        for chunk in documents:
            stored = by_id.get(chunk.id)
            if stored is not None and _same(stored, chunk):
                unchanged += 1
            elif twins := by_content.get(_content(chunk)):
                twin = twins[0]
                moved.append(replace(chunk, embedding=twin.embedding, sparse_embedding=twin.sparse_embedding))
            else:
                fresh.append(chunk)
        stale = sorted(by_id.keys() - {each.id for each in documents})
        return {"documents": fresh, "moved": moved, "stale": stale, "unchanged": unchanged}

    def _stored(self, sources: Sequence[str]) -> list[Document]:
        if not sources:
            return []
        filters = {"field": "meta.source_id", "operator": "in", "value": list(sources)}
        return self.document_store.filter_documents(filters=filters)


def _check(documents: Any) -> None:
    if not isinstance(documents, list) or not all(isinstance(each, Document) for each in documents):
        raise TypeError("ChunkcoreIndexUpdater expects a list of Documents as input")
    for each in documents:
        if not isinstance(each.meta.get("source_id"), str):
            raise ValueError(  # noqa: TRY004  # of the right type, with the wrong value
                f"ChunkcoreIndexUpdater compares chunks by their source, and document ID {each.id} has no source_id; "
                "put it after a splitter"
            )


def _same(stored: Document, chunk: Document) -> bool:
    """Whether the store has the chunk as it is, as far as stores keep tuples and what Haystack says of overlaps."""
    told = _lists(chunk.meta)
    if "_split_overlap" not in stored.meta:
        told.pop("_split_overlap", None)
    return stored.content == chunk.content and _lists(stored.meta) == told


def _lists(value: Any) -> Any:
    """The value with lists for tuples, as what is kept as JSON comes back."""
    if isinstance(value, list | tuple):
        return [_lists(each) for each in value]
    return {key: _lists(each) for key, each in value.items()} if isinstance(value, dict) else value


def _content(chunk: Document) -> str:
    """What its vector depends on, whatever embeds it: source, text, and metadata that say something of the text."""
    told = {key: value for key, value in chunk.meta.items() if key not in _PLACES}
    return repr([chunk.content, sorted(told.items(), key=lambda item: item[0])])
