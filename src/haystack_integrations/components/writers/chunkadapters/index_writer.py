"""The last step of indexing again, as a Haystack component: write first, delete then."""

from __future__ import annotations

from typing import Any

from haystack import Document, component, default_from_dict, default_to_dict
from haystack.document_stores.types import DocumentStore, DuplicatePolicy

__all__ = ["ChunkcoreIndexWriter"]


@component
class ChunkcoreIndexWriter:
    """Writes what `ChunkcoreIndexUpdater` let through, once it is embedded, and then deletes what is stale.

    In this order, so that nothing is lost where an embedder or the store fails: the index then has what it had, and
    the next run goes on from there. Documents of the same ids are overwritten.

    Args:
        document_store: the store that the updater compares with.

    >>> from haystack.document_stores.in_memory import InMemoryDocumentStore
    >>> store = InMemoryDocumentStore()
    >>> writer = ChunkcoreIndexWriter(store)
    >>> writer.run(documents=[Document(id="1", content="tea")], moved=[], stale=[])
    {'documents_written': 1, 'documents_deleted': 0}
    >>> writer.run(documents=[Document(id="2", content="sea")], moved=[], stale=["1"])
    {'documents_written': 1, 'documents_deleted': 1}
    >>> [each.content for each in store.filter_documents()]
    ['sea']
    """

    def __init__(self, document_store: DocumentStore) -> None:
        self.document_store = document_store

    def to_dict(self) -> dict[str, Any]:
        """The component as plain values, its store as it describes itself."""
        return default_to_dict(self, document_store=self.document_store)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> ChunkcoreIndexWriter:
        """The component that `to_dict` described."""
        return default_from_dict(cls, data)

    @component.output_types(documents_written=int, documents_deleted=int)
    def run(self, documents: list[Document], moved: list[Document], stale: list[str]) -> dict[str, int]:
        """Write, then delete.

        Args:
            documents: what the embedder made of the updater's ``documents``.
            moved: the updater's.
            stale: the updater's: ids of what is to be deleted.

        Returns:
            ``documents_written``, as the store counts them, and ``documents_deleted``.
        """
        written = 0
        if chunks := [*documents, *moved]:
            written = self.document_store.write_documents(chunks, policy=DuplicatePolicy.OVERWRITE)
        if stale:
            self.document_store.delete_documents(stale)
        return {"documents_written": written, "documents_deleted": len(stale)}
