"""Chunks to embed, move and delete when documents are indexed again, as a Haystack component."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import Any

from haystack import Document, component
from haystack.document_stores.types import DocumentStore

from chunkadapters._haystack import KEYS, ROOT, Serialized, check_documents
from chunkadapters.places import SEGMENTS, WHITE_SPACE

# Metadata of a chunk's place, which its vector does not depend on.
_PLACES = frozenset(
    [SEGMENTS, WHITE_SPACE, "split_id", "page_number", "_split_overlap"]
    + [name for keys in (KEYS, ROOT) for name in (keys.start, keys.end, keys.spans)]
)


@component
class ChunkcoreIndexUpdater(Serialized):
    """Between a splitter and an embedder: passes on only the chunks to embed, and lists the stale ones.

    Chunks are compared with the store's chunks of the same sources (``source_id``):

    - ``documents``: new chunks; connect this output to the embedder.
    - ``moved``: chunks whose text and metadata the store has at another place, with the store's vectors.
    - ``stale``: the store's ids without a chunk.
    - unchanged chunks are only counted.

    The store is only read. `ChunkcoreIndexWriter` writes the embedder's output and ``moved``, then deletes ``stale``:
    if the embedder fails, nothing is lost.

    Args:
        document_store: its ``filter_documents`` should return embeddings (an option of most stores); chunks without one
            are embedded again.

    >>> from haystack.document_stores.in_memory import InMemoryDocumentStore
    >>> store = InMemoryDocumentStore()
    >>> old, new = (Document(id=text, content=text, meta={"source_id": "a"}) for text in ("tea", "sea"))
    >>> store.write_documents([old])
    1
    >>> update = ChunkcoreIndexUpdater(store).run([new])
    >>> [chunk.content for chunk in update["documents"]], update["stale"], store.count_documents()
    (['sea'], ['tea'], 1)
    """

    def __init__(self, document_store: DocumentStore) -> None:
        self.document_store = document_store

    @component.output_types(documents=list[Document], moved=list[Document], stale=list[str], unchanged=int)
    def run(self, documents: list[Document], source_ids: list[str] | None = None) -> dict[str, Any]:
        """Compare chunks with the store.

        Args:
            documents: all chunks of their sources, from `ChunkcoreDocumentSplitter`.
            source_ids: further sources, which may have no chunks now: the store's other chunks of these are stale.

        Returns:
            ``documents`` to embed, ``moved`` ones with vectors, ids of ``stale`` ones, and the number ``unchanged``.

        Raises:
            TypeError: not a list of `Document`.
            ValueError: a document has no ``source_id``.
        """
        check_documents(self, documents)
        for chunk in documents:
            if not isinstance(chunk.meta.get("source_id"), str):
                raise ValueError(  # noqa: TRY004  # of the right type, with the wrong value
                    "ChunkcoreIndexUpdater compares chunks by their source, and document ID "
                    f"{chunk.id} has no source_id; put it after a splitter"
                )
        sources = sorted({chunk.meta["source_id"] for chunk in documents} | set(source_ids or ()))
        filters = {"field": "meta.source_id", "operator": "in", "value": sources}
        stored = self.document_store.filter_documents(filters=filters) if sources else []
        by_id = {chunk.id: chunk for chunk in stored}
        by_content: defaultdict[Any, list[Document]] = defaultdict(list)
        for chunk in stored:
            if chunk.embedding is not None or chunk.sparse_embedding is not None:
                by_content[_content(chunk)].append(chunk)
        fresh, moved, unchanged = [], [], 0
        for chunk in documents:
            if chunk.id in by_id and _same(by_id[chunk.id], chunk):
                unchanged += 1
            elif equals := by_content.get(_content(chunk)):
                dense, sparse = equals[0].embedding, equals[0].sparse_embedding
                moved.append(replace(chunk, embedding=dense, sparse_embedding=sparse))
            else:
                fresh.append(chunk)
        stale = sorted(by_id.keys() - {chunk.id for chunk in documents})
        return {"documents": fresh, "moved": moved, "stale": stale, "unchanged": unchanged}


def _same(stored: Document, chunk: Document) -> bool:
    """Whether the store has the chunk; some stores keep no tuples and no ``_split_overlap``."""
    meta = _lists(chunk.meta)
    if "_split_overlap" not in stored.meta:
        meta.pop("_split_overlap", None)
    return stored.content == chunk.content and _lists(stored.meta) == meta


def _lists(value: Any) -> Any:
    """Lists for tuples, as after a round trip through JSON."""
    if isinstance(value, list | tuple):
        return [_lists(item) for item in value]
    return {key: _lists(item) for key, item in value.items()} if isinstance(value, dict) else value


def _content(chunk: Document) -> str:
    """What the vector may depend on: text and metadata, without the place."""
    meta = {key: value for key, value in chunk.meta.items() if key not in _PLACES}
    return repr([chunk.content, sorted(meta.items(), key=lambda item: item[0])])
